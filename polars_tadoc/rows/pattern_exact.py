"""Rows with all gaps spelled out, kept between calls: what patterns run over."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from polars_tadoc.compress.decompress import WRONG
from polars_tadoc.errors import InvalidGrammarError
from polars_tadoc.kernels.host.patterns import exact as kernels
from polars_tadoc.kernels.host.patterns import exact_rows as kernels_rows
from polars_tadoc.kernels.host.patterns.match import FULL, Text
from polars_tadoc.kernels.host.rows import phrases
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.rows.pattern_words import WordAutomaton
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64, array_dataclass
from polars_tadoc.runtime.arrow_memory import binary_views
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks

SPARSE = 32
"""Symbols that are not quiet are looked up by their words, not by reading all, if fewer than one in this many is."""

CHUNK = 1 << 16
"""Minimum symbols per thread."""

MARKED = 1 << 14
"""Minimum symbols per thread if the others are skipped."""


def text_of(corpus: Corpus) -> Text:
    """Return the arrays of a grammar, as kernels take them; addresses point into the grammar's."""
    grammar = corpus.grammar
    return Text(
        grammar.vocabulary_size,
        grammar.words.offsets,
        grammar.words.data.ctypes.data,
        grammar.gaps.offsets,
        grammar.gaps.data.ctypes.data,
        grammar.rule_offsets,
        grammar.symbols,
        grammar.predicted_gaps,
        grammar.leading_gaps,
        grammar.short_lengths,
        grammar.expansion_lengths,
    )


@array_dataclass
class ExactRows:
    """Rules and rows in which every gap is the one that occurs.

    Rules that rows do not use are left out; numbers of rules differ from the grammar's.
    """

    vocabulary_size: int
    rule_count: int
    offsets: Int64
    """Offsets of bodies: of rules, then of rows, each with one place more behind its last word."""
    symbols: UInt32
    """Bodies: only lower rules."""
    gaps: UInt32
    """Code of the gap before each symbol, and after the last of a row; not before the first of a rule. The number of
    codes: no gap."""
    row_count: int
    short_lengths: UInt8
    """Words of each symbol, at most 255."""
    owners: phrases.Owners
    """By symbol: the rules whose bodies contain it."""
    places: phrases.Owners
    """By symbol: its places in rows, from the first row's first symbol on."""

    level_count: int
    no_gap_is_empty: bool

    @property
    def bodies(self) -> kernels_rows.Exact:
        """Rules and rows as kernels take them."""
        size, rules = self.vocabulary_size, self.rule_count
        return kernels_rows.Exact(size, rules, self.offsets, self.symbols, self.gaps, self.short_lengths)

    def occurrences(self, words: UInt32) -> int:
        """Count the places of some words in rules and rows."""
        counted = 0
        for offsets in (self.owners.offsets, self.places.offsets):
            counted += int((offsets[words + np.uint32(1)] - offsets[words]).sum())
        return counted

    def search(self, own: WordAutomaton, must: UInt32 | None = None, back: int = -1) -> npt.NDArray[Any]:
        """Return the matches by row: uint8, 1 if there is one, or uint64 counts.

        Parameters
        ----------
        own
            The pattern.
        must
            Words of which each match holds one, if that is known.
        back
            Words of a match before it.

        """
        size, steps = self.vocabulary_size, own.steps
        exact = self.bodies
        quiet = kernels_rows.Quiet(
            np.zeros(size + self.rule_count, np.uint8), np.zeros(size + self.rule_count, np.uint16)
        )
        if must is None:
            quiet.masks[:size], quiet.outs[:size] = own.masks, own.outs
        else:
            quiet.outs[must] = 1 << kernels_rows.UNKNOWN
        bits = np.zeros(0, np.uint64)
        words = own.loud if must is None else must
        if must is not None or (not own.has_loud_gaps and self.occurrences(words) * SPARSE < len(self.symbols)):
            places = len(self.symbols) - int(self.offsets[self.rule_count])
            bits = np.zeros(-(-places // 64) + 1, np.uint64)
            pending = np.zeros(-(-self.rule_count // 64), np.uint64)
            kernels_rows.sum_up_some(
                exact, steps, *self.owners, *self.places, words, must is not None, pending, quiet, bits
            )
        elif not steps.is_over:
            kernels_rows.sum_up_all(exact, steps, quiet)
        table = np.zeros(steps.width * self.rule_count, steps.exits.dtype)
        counts = np.zeros(self.row_count, steps.exits.dtype)
        read = exact, steps, quiet, bits, back, own.has_ends, self.level_count, table
        map_parallel(lambda rows: kernels_rows.run_rows(*read, *rows, counts), self._chunks(bits, own.has_ends))
        return counts

    def _chunks(self, bits: UInt64, all_rows: bool) -> list[tuple[int, int]]:
        """Split the rows for threads, by the symbols to read; ``bits`` are the places that are not quiet, if known."""
        before = self.offsets[self.rule_count :]
        if len(bits) and not all_rows:
            counted = np.bitwise_count(bits)
            if int(counted.sum()) < 2 * MARKED:
                return [(0, self.row_count)]
            marked = running_sum(counted.astype(np.int64))
            places = np.minimum((before - before[0]) >> 6, len(bits))
            return weighted_chunks(marked[places], MARKED)
        return weighted_chunks(before, CHUNK)

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        own = self.offsets.nbytes + self.symbols.nbytes + self.gaps.nbytes
        return own + self.short_lengths.nbytes + sum(one.nbytes for one in (*self.owners, *self.places))

    @classmethod
    def of(cls, corpus: Corpus, most: int) -> ExactRows | None:
        """Spell out a corpus; None if its variants would take more than some bytes, or a rule has 2^32 words.

        Raises
        ------
        InvalidGrammarError
            A row's gaps are damaged.

        """
        text, grammar = text_of(corpus), corpus.grammar
        if grammar.longest >= 1 << 32 or corpus.roots.nbytes > most:  # variants have places in rules in 32 bits
            return None
        roots, gaps = np.empty(len(corpus.roots), np.uint32), np.empty(len(corpus.roots), np.uint32)
        ends, used = np.empty(corpus.document_count, np.uint32), np.zeros(1, np.int64)
        addresses, sizes, owner = binary_views(corpus.gaps)
        room, begin = 1 << 12, 0
        made, slots = _grown(None, room), np.zeros(4 * room, np.uint32)
        while True:
            code, begin = kernels.spell_out(
                text,
                grammar.level_count,
                corpus.root_offsets,
                corpus.roots,
                addresses,
                sizes,
                begin,
                made,
                slots,
                used,
                roots,
                gaps,
                ends,
            )
            if code in WRONG:
                raise InvalidGrammarError(f"row {corpus.rows[begin]}: {WRONG[code]}: the data is damaged")
            if code != FULL:
                break
            room *= 2
            if sum(array.nbytes for array in made) > most:
                return None
            made, slots = _grown(made, room), np.zeros(4 * room, np.uint32)
            kernels.insert_all(made.hashes, int(used[0]), slots)
        del owner  # the addresses point into it
        return cls._compact(corpus, made, int(used[0]), roots, gaps, ends)

    @classmethod
    def _compact(
        cls, corpus: Corpus, made: kernels.Variants, count: int, roots: UInt32, gaps: UInt32, ends: UInt32
    ) -> ExactRows:
        """Leave out rules without use; put rules and rows together."""
        grammar, size = corpus.grammar, corpus.grammar.vocabulary_size
        stop = len(grammar.symbols)
        offsets = np.concatenate([grammar.rule_offsets.astype(np.int64), stop + made.offsets[1 : count + 1]])
        filled = made.offsets[count]
        symbols = np.concatenate([grammar.symbols, made.symbols[:filled]])
        numbers = np.zeros(len(offsets) - 1, np.uint32)
        rules = kernels.reach(size, offsets, symbols, roots, numbers)
        kept = numbers != 0
        lengths = np.diff(offsets)[kept]
        inside = np.repeat(kept, np.diff(offsets))
        stops = corpus.root_offsets[1:] - corpus.root_offsets[0]
        behind = np.full(len(stops), size + len(numbers), np.uint32)
        bodies = np.concatenate([symbols[inside], np.insert(roots, stops, behind)])
        renumbered = np.empty(len(bodies), np.uint32)
        kernels.renumber(size, bodies, np.append(numbers, np.uint32(rules + 1)), renumbered)
        short = grammar.short_lengths
        shorts = np.concatenate([short[:size], np.concatenate([short[size:], short[made.rules[:count]]])[kept]])
        begins = np.concatenate([[0], np.cumsum(lengths)])
        inner = int(begins[-1])
        predicted = np.concatenate([grammar.predicted_gaps[size:], made.gaps[:filled]])
        codes = np.concatenate([predicted[inside], np.insert(gaps, stops, ends)])
        for code in grammar.gaps.series.is_in([" "]).arg_true().to_list():
            codes[codes == code + 1] = 0  # as where a space is predicted
        return cls(
            size,
            int(rules),
            np.concatenate([begins, inner + stops + np.arange(1, len(stops) + 1)]),
            renumbered,
            codes,
            len(stops),
            shorts,
            owners_of(size + rules, begins, renumbered[:inner]),
            owners_of(size + rules + 1, np.arange(len(bodies) - inner + 1), renumbered[inner:]),
            grammar.level_count,
            not grammar.gaps.series.is_in([""]).any(),
        )


def _grown(made: kernels.Variants | None, room: int) -> kernels.Variants:
    sizes = (room + 1, 16 * room, 16 * room, room, room + 1, 8 * room, room)
    types = (np.int64, np.uint32, np.uint32, np.uint32, np.int64, np.uint64, np.uint64)
    grown = kernels.Variants(*(np.zeros(size, dtype) for size, dtype in zip(sizes, types, strict=True)))
    if made is not None:
        arrays: list[tuple[Any, Any]] = list(zip(made, grown, strict=True))
        for old, new in arrays:
            new[: len(old)] = old
    return grown


def owners_of(size: int, offsets: Int64, symbols: UInt32) -> phrases.Owners:
    """Return the bodies that contain each symbol."""
    owners = phrases.Owners(np.zeros(size + 2, np.uint32), np.empty(len(symbols), np.uint32))
    phrases.find_owners(phrases.Text(size, offsets.view(np.uint64), symbols, np.zeros(1, np.uint32)), owners)
    return owners
