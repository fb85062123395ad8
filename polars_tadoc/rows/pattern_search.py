"""Runs the automaton of a pattern over the rules and rows of a corpus."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from polars_tadoc.compress.decompress import WRONG
from polars_tadoc.config import settings
from polars_tadoc.errors import InvalidGrammarError
from polars_tadoc.kernels.host.patterns import match as kernels
from polars_tadoc.kernels.host.patterns.windows import match_windows
from polars_tadoc.kernels.host.rows.expand import OK
from polars_tadoc.kernels.host.rows.phrases import Owners, find_rows
from polars_tadoc.kernels.traverse.results_cpu import load_rules
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.grammar import Grammar
from polars_tadoc.rows.matching import Links
from polars_tadoc.rows.pattern_anchor import FREQUENT, RARE, LiteralWords
from polars_tadoc.rows.pattern_automaton import PatternAutomaton
from polars_tadoc.rows.pattern_exact import ExactRows, text_of
from polars_tadoc.rows.pattern_sequences import NO_SEQUENCES, WordSequences
from polars_tadoc.rows.pattern_triples import RowTriples
from polars_tadoc.rows.pattern_words import GapOrder, WordAutomaton, WordOrder
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.arrow_memory import binary_views
from polars_tadoc.runtime.cache import ByteLRU
from polars_tadoc.runtime.cached_property import cached_property

MAX_AFTER_GAP = 8
"""Words are tested from this many states; a gap after which the automaton is in any other is not quiet."""

TABLE = 1 << 15
"""Initial slots for rules by state."""

MAX_TABLE = 1 << 22
"""Maximum slots, of 16 bytes: rows that need more are decompressed."""

DROPPED = 200_000
"""Bytes of gaps (and 16 for each row) of the rows to read from which on rows are dropped by their words first."""

MAX_KNOWN = 1 << 26
"""Maximum bytes of the table of states after rules, for that."""

TRIED = 200_000
"""Steps through symbols after which the rest is estimated."""

WORDS_A_SYMBOL = 1 << 10
"""Words by symbol of rows and rules from which on rules are read, each once, instead of the words around matches."""

BYTES_A_STEP = 16
"""Bytes of text that Polars searches, decompressed first, in the time of a step."""

SPARSE = 16
"""Rules are flagged by their flagged words, not one by one, if fewer than one word in this many is flagged."""


_automata: ByteLRU[WordAutomaton] = ByteLRU(lambda: settings().host_cache_bytes // 16, lambda own: own.nbytes)
"""Cache of automata over words and gaps, by grammar and pattern."""

_gap_orders: ByteLRU[GapOrder] = ByteLRU(lambda: settings().host_cache_bytes // 16, lambda own: own.nbytes)
"""Cache of sorted gaps, by grammar."""

_word_orders: ByteLRU[WordOrder] = ByteLRU(lambda: settings().host_cache_bytes // 16, lambda own: own.nbytes)
"""Cache of words by their characters, by grammar."""

_sequences: ByteLRU[WordSequences] = ByteLRU(lambda: settings().host_cache_bytes // 16, lambda own: own.nbytes + 256)
"""Cache of automata over words, by grammar and pattern."""


class Characters:
    """The distinct characters of a grammar's words and gaps, as code points."""

    def __init__(self, grammar: Grammar) -> None:
        firsts = grammar.gaps.series.str.head(1).unique().to_list()
        self.after_words: UInt32 | None = None
        """First characters of gaps; None if there is an empty gap."""
        if "" not in firsts:
            self.after_words = np.array([ord(" "), *map(ord, firsts)], np.uint32)
        seen = np.zeros(0x110000, np.bool_)
        seen[ord(" ")] = True
        for data in (grammar.words.series, grammar.gaps.series):
            text = data.str.join("").item() if len(data) else ""
            seen[np.frombuffer(text.encode("utf-32-le"), np.uint32)] = True
        self.all = np.flatnonzero(seen).astype(np.uint32)
        """All, ascending."""
        self.nbytes = 256 + self.all.nbytes

    @classmethod
    def of(cls, corpus: Corpus) -> Characters:
        """Return a corpus' characters, from the cache if possible."""
        return _characters.get(corpus.key) or _characters.put(corpus.key, cls(corpus.grammar))


_characters: ByteLRU[Characters] = ByteLRU(lambda: settings().host_cache_bytes // 16, lambda own: own.nbytes)
"""Cache of characters, by grammar."""


def flag_owners(text: kernels.Text, owners: Owners, words: UInt32, flags: UInt8) -> None:
    """Flag the rules that contain some words, directly or not."""
    pending = np.zeros(-(-(len(text.rule_offsets) - 1) // 64), np.uint64)
    kernels.flag_owners(text.vocabulary_size, owners.offsets, owners.rules, words, pending, flags)


class Search:
    """One automaton on one corpus."""

    def __init__(self, corpus: Corpus, automaton: PatternAutomaton) -> None:
        self._is_inside = False  # whether all matches are inside words
        self._corpus, self._own = corpus, automaton

    @cached_property
    def _text(self) -> kernels.Text:
        grammar = self._corpus.grammar
        self._data = grammar.words.data, grammar.gaps.data  # the addresses point into them
        return text_of(self._corpus)

    @cached_property
    def _known(self) -> kernels.Automaton:
        own = self._own
        return kernels.Automaton(
            own.classes,
            own.width,
            own.steps.reshape(-1),
            own.hits.reshape(-1),
            self._at_rest(),
            np.zeros(len(own.steps), np.uint8),
            own.at_end,
            self._stays(),
        )

    def _stays(self) -> UInt8:
        """Tell by byte whether ``REST`` stays at rest; bytes of characters beyond ASCII only all together."""
        own = self._own
        stays = (own.steps[kernels.REST] == kernels.REST) & (own.hits[kernels.REST] == 0)
        beyond = stays[own.beyond].all()
        return np.concatenate([stays[own.classes[:128]], np.full(128, beyond)]).astype(np.uint8)

    def _at_rest(self) -> UInt8:
        """Tell by state whether any gap, and the end, continues it as it does ``REST``."""
        own, starts = self._own, Characters.of(self._corpus).after_words
        steps, hits = own.steps, own.hits
        if starts is not None:
            known = starts < len(own.classes)
            classes = np.unique(np.where(known, own.classes[np.where(known, starts, 0)], 0))
            steps, hits = steps[:, classes], hits[:, classes]
        same = (steps == steps[kernels.REST]).all(axis=1) & (hits == hits[kernels.REST]).all(axis=1)
        same &= own.at_end == own.at_end[kernels.REST]
        if starts is None:
            same[:] = False
            same[kernels.REST] = True
        same[kernels.FOUND] = False
        return np.asarray(same, np.uint8)

    def of_exact(self, exact: ExactRows) -> Callable[[], npt.NDArray[Any]] | None:
        """Return a call that searches spelled out rows, by document; None if the automaton would be too large."""
        own, grammar = self._own, self._corpus.grammar
        words = None if own.literal is None else LiteralWords.of(own.literal, grammar, exact.no_gap_is_empty)
        gaps = _gap_orders.get(self._corpus.key) or _gap_orders.put(self._corpus.key, GapOrder.of(grammar))
        if words is None:
            key = f"{self._corpus.key} {own.key}"
            made = _automata.get(key)
            if made is None:
                everything = _word_orders.get(self._corpus.key)
                if everything is None:
                    everything = _word_orders.put(self._corpus.key, WordOrder.of(grammar))
                made = WordAutomaton.of(self._text, gaps, self._known, own, everything)
                if made is None:
                    return None
                _automata.put(key, made)
            triples = None if own.counts else RowTriples.of(exact, made.steps)
            return partial(exact.search, made) if triples is None else partial(triples.search, exact, made, own.key)
        if words.is_nowhere:
            return partial(np.zeros, exact.row_count, np.uint8)
        made = WordAutomaton.of(self._text, gaps, self._known, own, np.unique(np.concatenate(words.places)))
        if made is None:
            return None
        place = int(np.argmin([exact.occurrences(one) for one in words.places]))
        return partial(exact.search, made, words.places[place], place)

    def run(self) -> tuple[npt.NDArray[Any], Int64 | None]:
        """Return the matches by document, and the documents that remain to be searched in another way, if any."""
        corpus = self._corpus
        words = None if self._own.literal is None else LiteralWords.of(self._own.literal, corpus.grammar)
        if words is not None:
            counts = self._match_around(words)
            if counts is not None:
                return counts, None
        loud = self._test_gaps()
        flags = self._flag(loud)
        counts = np.zeros(corpus.document_count, np.uint64)
        pending = np.zeros(-(-corpus.document_count // 64), np.uint64)
        find_rows(flags, corpus.root_offsets.view(np.uint64), corpus.roots, pending)
        ends = self._own.at_end[(self._known.after_gap | self._known.at_rest) != 0].any()
        if not ends and (self._is_inside or not (len(loud) or pending.any())):
            return np.unpackbits(pending.view(np.uint8), bitorder="little")[: len(counts)], None
        addresses, sizes, owner = binary_views(corpus.gaps)
        if ends:
            self._add_ends(sizes, pending)
        if len(loud):
            self._require_sound(*kernels.find_rows_by_gaps(loud, addresses, sizes, pending))
        self._drop_rows(flags, loud, pending)
        slots, most = TABLE, TRIED
        while slots < 16 * corpus.grammar.level_count:
            slots *= 2
        waiting = pending.copy()
        keys, values = np.zeros(slots, np.uint64), np.empty(slots, np.uint64)
        while slots <= MAX_TABLE:
            code, row = kernels.match_rows(
                self._text,
                self._known,
                self._own.start,
                flags,
                loud,
                corpus.grammar.level_count,
                corpus.root_offsets,
                corpus.roots,
                addresses,
                sizes,
                most,
                self._own.is_over,
                pending,
                keys,
                values,
                counts,
            )
            self._require_sound(code, row)
            if code == OK:
                return counts, None
            if code == kernels.FULL:
                slots *= 4
                new_keys, new_values = np.zeros(slots, np.uint64), np.empty(slots, np.uint64)
                kernels.move_table(keys, values, new_keys, new_values)
                keys, values = new_keys, new_values
            elif self._is_costly(waiting, pending):
                break
            else:
                most = 1 << 62
        del owner  # the addresses point into it
        bits = np.unpackbits(pending.view(np.uint8), bitorder="little")[: corpus.document_count]
        return counts, np.flatnonzero(bits)

    def _is_costly(self, waiting: UInt64, left: UInt64) -> bool:
        """Whether decompressing the documents left is faster, by the steps that those before have taken."""
        corpus = self._corpus
        before = np.concatenate([[0], np.cumsum(corpus.grammar.led_bytes[corpus.roots])])
        sizes = np.diff(before[corpus.root_offsets])
        done = np.unpackbits((waiting & ~left).view(np.uint8), bitorder="little")[: corpus.document_count]
        return bool(sizes[done != 0].sum() < TRIED * BYTES_A_STEP)

    def _drop_rows(self, flags: UInt8, loud: UInt8, pending: UInt64) -> None:
        """Clear the bits of documents whose words match nothing whatever separates them, if that pays."""
        corpus = self._corpus
        rows = int(np.bitwise_count(pending).sum())
        gaps = int(corpus.gaps.bin.size().sum() or 0) + 16 * corpus.document_count
        if self._own.is_over or self._own.hits.any() or rows * gaps < DROPPED * corpus.document_count:
            return
        key = f"{corpus.key} {self._own.key}"
        sequences = _sequences.get(key)
        if sequences is None:
            made = WordSequences.of(self._text, self._known, self._own.start)
            sequences = _sequences.put(key, made or NO_SEQUENCES)
        if len(sequences.steps) and len(sequences.steps) * corpus.grammar.rule_count <= MAX_KNOWN:
            if len(loud):
                flags[:] = kernels.INSIDE
            sequences.drop(corpus, self._text, flags, pending)
            self._known.after_gap[:] &= sequences.after_gap

    def _match_around(self, words: LiteralWords) -> UInt64 | None:
        """Return the matches by document, of a literal with these words; None if they are too frequent for this way."""
        corpus, grammar = self._corpus, self._corpus.grammar
        counts = np.zeros(corpus.document_count, np.uint64)
        if words.is_nowhere:
            return counts
        if corpus.known_word_total > WORDS_A_SYMBOL * corpus.symbol_count:
            return None
        links = Links.of(load_rules(grammar), corpus.cache_key)
        place, rules = words.rarest(links)
        candidates = words.rows(corpus, place) if rules >= RARE else None
        if candidates is None and rules > FREQUENT:
            return None
        if candidates is not None and not candidates.any():
            return counts
        flags = np.zeros(grammar.vocabulary_size + grammar.rule_count, np.uint8)
        flags[words.places[place]] = kernels.INSIDE
        flag_owners(self._text, links.owners, words.places[place], flags)
        pending = np.zeros(-(-corpus.document_count // 64), np.uint64)
        if candidates is None:
            find_rows(flags, corpus.root_offsets.view(np.uint64), corpus.roots, pending)
        else:
            bits = np.packbits(candidates != 0, bitorder="little")
            pending.view(np.uint8)[: len(bits)] = bits
        if pending.any():
            addresses, sizes, owner = binary_views(corpus.gaps)
            outcome = match_windows(
                self._text,
                self._known,
                flags,
                place,
                len(words.places) - place,  # a literal may end after the gap behind its last word
                grammar.level_count,
                corpus.root_offsets,
                corpus.roots,
                addresses,
                sizes,
                pending,
                counts,
            )
            del owner  # the addresses point into it
            self._require_sound(*outcome)
        return counts

    def _add_ends(self, sizes: UInt32, pending: UInt64) -> None:
        """Add the documents whose end may complete a match although all symbols are quiet."""
        rows = np.ones(len(sizes), np.bool_)
        if not self._own.at_end[kernels.REST]:  # then only a gap at the end, or a row without words
            rows = (sizes != 0) | (np.diff(self._corpus.root_offsets) == 0)
        bits = np.packbits(rows, bitorder="little")
        pending.view(np.uint8)[: len(bits)] |= bits

    def _require_sound(self, code: int, document: int) -> None:
        """Raise for an error in a document's gaps."""
        if code in WRONG:
            raise InvalidGrammarError(f"row {self._corpus.rows[document]}: {WRONG[code]}: the data is damaged")

    def _test_gaps(self) -> UInt8:
        """Choose the states from which words are tested; return which gaps are not quiet, empty if all are."""
        own, known = self._own, self._known
        codes = len(self._text.gap_offsets)
        exits, counts = np.empty(codes, np.uint16), np.empty(codes, np.uint64)
        loud = np.zeros(codes, np.bool_)
        after: set[int] = {own.start}
        for state in {kernels.REST, own.start}:
            kernels.run_gaps(self._text, known, state, exits, counts)
            matched = (counts != 0) | (exits == kernels.FOUND)
            reached = np.bincount(exits[~matched], minlength=len(own.steps))
            for one in np.argsort(-reached, kind="stable")[: MAX_AFTER_GAP + 1].tolist():
                if reached[one] and len(after) < MAX_AFTER_GAP:
                    after.add(one)
            loud |= matched
            known.after_gap[list(after)] = 1
            loud |= known.after_gap[exits] == 0
        return loud.astype(np.uint8) if loud.any() else np.zeros(0, np.uint8)

    def _flag(self, loud: UInt8) -> UInt8:
        """Flag the symbols that are not quiet."""
        grammar, text = self._corpus.grammar, self._text
        flags = np.zeros(grammar.vocabulary_size + grammar.rule_count, np.uint8)
        states = np.flatnonzero(self._known.after_gap).astype(np.uint16)
        found, open_words = kernels.find_words(text, self._known, states, flags)
        self._is_inside = open_words == 0 and not len(loud)
        if len(loud) or found * SPARSE > grammar.vocabulary_size:
            kernels.flag_rules(text, loud, flags)
        elif found:
            owners = Links.of(load_rules(grammar), self._corpus.cache_key).owners
            flag_owners(text, owners, np.flatnonzero(flags).astype(np.uint32), flags)
        return flags
