"""Words that every match of a literal must hold: only rows with their sequence are read, and only around the rarest.

:class:`LiteralWords` is for rows as they are stored, :class:`LiteralRows` for rows with all gaps spelled out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice, product

import numpy as np

from polars_tadoc.compress.compress import named_tokenizer
from polars_tadoc.kernels.host.patterns import literal_rows, literals
from polars_tadoc.kernels.host.patterns.exact_rows import Exact, find_in_words
from polars_tadoc.kernels.host.patterns.match import Text
from polars_tadoc.kernels.host.patterns.windows import find_partial_words
from polars_tadoc.kernels.host.rows.phrase_words import UNKNOWN
from polars_tadoc.kernels.tokenize import characters
from polars_tadoc.kernels.tokenize.tokenize_cpu import MARK
from polars_tadoc.kernels.tokenize.tokenizer import BUILT_IN, Tokenizer
from polars_tadoc.kernels.traverse.results_cpu import load_rules
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.grammar import Grammar
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.rows.matching import Links, Target
from polars_tadoc.rows.pattern_exact import ExactRows, text_of
from polars_tadoc.rows.phrase_words import PhraseWords
from polars_tadoc.runtime.array_types import UInt8, UInt32, UInt64, array_dataclass

RARE = 64
"""A word in fewer rules than this is looked for alone."""

FREQUENT = 2000
"""A single word in more rules than this is no help."""

MAX_ALIKE = 64
"""Maximum alternative words of a place; a place with more is not searched first."""

MAX_PHRASES = 64
"""Maximum sequences of classes of words; with more, rows are only searched for the rarest word."""


MAX_CUT = 1 << 16
"""Maximum rules at a time that cut a literal."""

SPARSE = 8
"""All is read for words or gaps without more text if they have more than one place in this many."""

SOUGHT, COMPARED = 128, 32
"""Places that are read one after another in the time in which one of a word is looked up, with the rules that begin or
end with it; and in which one of a gap is compared."""

_NOTHING = np.zeros(0, np.uint8)

READS = 16
"""Maximum places of bodies to compare with a literal, for each symbol of rules and rows."""


@array_dataclass
class LiteralWords:
    """The words of a literal, by place: the ids of the words of the text that may be there."""

    places: tuple[UInt32, ...]

    @classmethod
    def of(cls, literal: str, grammar: Grammar, apart: bool = False) -> LiteralWords | None:
        """Cut a literal into words.

        Words inside a literal are words of the text, too; the first and the last may be parts of words, unless a
        separator is beside them. None if the literal has no word, or is inside one and words may touch (not
        ``apart``), or if words depend on the text around them.
        """
        tokenizer = named_tokenizer(grammar)
        if tokenizer.name not in BUILT_IN or not tokenizer.has_classes:
            return None
        if not apart and _begins_with_mark(literal, tokenizer):
            return None
        cut = PhraseWords.cut((literal,), tokenizer)
        size, spans = len(literal.encode()), cut.spans.reshape(-1, 2).tolist()
        if not spans:
            return None
        if spans == [[0, size]]:
            return cls((_with_part(cut.data[:size], grammar.words),)) if apart else None
        ids, words = cut.find(grammar.words), grammar.words
        places = [ids[place : place + 1] for place in range(len(spans))]
        if any(
            own[0] == UNKNOWN and start > 0 and stop < size for own, (start, stop) in zip(places, spans, strict=True)
        ):
            return cls((ids[:0],))
        for place, (start, stop) in enumerate(spans):
            if start == 0 or stop == size:
                found = np.empty(grammar.vocabulary_size, np.uint32)
                part = cut.data[start:stop]
                number = find_partial_words(words.offsets, words.data.ctypes.data, part, start == 0, found)
                places[place] = found[:number]
        return cls(tuple(places))

    @property
    def is_nowhere(self) -> bool:
        """Whether the text lacks a word."""
        return any(len(own) == 0 for own in self.places)

    def rarest(self, links: Links) -> tuple[int, int]:
        """Return the place whose words are in the fewest rules, and the number of those rules."""
        offsets = links.owners.offsets
        rules = [int((offsets[own + 1] - offsets[own]).sum()) for own in self.places]
        place = int(np.argmin(rules))
        return place, rules[place]

    def rows(self, corpus: Corpus, place: int) -> UInt64 | None:
        """Tell by document whether words around a place follow each other, whatever separates them; None if unknown."""
        places = [own for own in self.places[max(0, place - 1) : place + 2] if len(own) <= MAX_ALIKE]
        if len(places) < 2 or len(self.places[place]) > MAX_ALIKE:  # the places that remain must be adjacent
            return None
        terminals, where = np.unique(np.concatenate(places), return_inverse=True)
        masks = np.zeros(len(terminals), np.uint64)
        bits = np.repeat(np.uint64(1) << np.arange(len(places), dtype=np.uint64), [len(own) for own in places])
        np.bitwise_or.at(masks, where, bits)
        classes, names = np.unique(masks, return_inverse=True)
        choices = [[k for k, mask in enumerate(classes.tolist()) if mask >> place & 1] for place in range(len(places))]
        phrases = list(islice(product(*choices), MAX_PHRASES + 1))
        if len(phrases) > MAX_PHRASES:
            return None
        found = np.zeros(corpus.document_count, np.uint64)
        stands = terminals, names.reshape(-1).astype(np.uint32)
        target = Target(load_rules(corpus.grammar), corpus.root_offsets, corpus.roots, corpus.cache_key, stands)
        offsets = np.arange(len(phrases) + 1) * len(places)
        target.count(np.array(phrases, np.uint32).reshape(-1), offsets, True, found)
        return found


def _begins_with_mark(literal: str, tokenizer: Tokenizer) -> bool:
    """Tell whether a literal's first word depends on the text before: marks end an ideograph's word, or begin one."""
    classes, first = characters.classes(tokenizer.name), ord(literal[0])
    return bool(classes.pages[(int(classes.page_of[first >> 8]) << 8) + (first & 0xFF)] == MARK)


def _with_part(part: UInt8, words: Vocabulary) -> UInt32:
    """Return the words that contain some bytes."""
    found = np.empty(len(words), np.uint32)
    number = find_in_words(words.data, int(words.offsets[-1]), words.offsets, part, found)
    return found[:number]


@array_dataclass
class LiteralPlan:
    """A search for a literal."""

    rows: UInt64
    """Bitmap of rows."""
    cost: int
    """Estimate in places that are read one after another, about nanoseconds."""
    search: Callable[[], int | None] | None
    """Fills ``rows``; None: no row matches."""

    def run(self) -> UInt64 | None:
        """Return a bitmap of the rows that contain the literal; None if another way is faster."""
        is_costly = self.search is not None and self.search() == literal_rows.COSTLY
        return None if is_costly else self.rows


@array_dataclass
class LiteralRows:
    """Where words and rules occur in rows with all gaps spelled out, for literals."""

    corpus: Corpus
    """Holds the memory that the addresses in ``text`` point into."""
    text: Text
    exact: Exact
    links: literals.Links
    by_ending: UInt32
    """Words in the order of their last bytes."""
    gap_order: UInt32
    """Gap codes from 1 on, in the order of their bytes."""
    gap_counts: UInt32
    """Places of each gap in rules and rows; the last one: no gap."""
    words_touch: bool
    levels: int

    @classmethod
    def of(cls, corpus: Corpus, exact: ExactRows) -> LiteralRows | None:
        """Link a corpus' rows; None if its words depend on the text around them."""
        grammar = corpus.grammar
        tokenizer, gaps = named_tokenizer(grammar), grammar.gaps.series
        if tokenizer.name not in BUILT_IN or not tokenizer.has_classes:
            return None
        if gaps.n_unique() != len(gaps):  # then a gap would have several codes
            return None
        text, bodies = text_of(corpus), exact.bodies
        keys = np.empty(grammar.vocabulary_size, np.uint64)
        literals.find_keys(text, keys)
        lengths = np.diff(exact.offsets[exact.rule_count :])
        row_of = np.repeat(np.arange(exact.row_count, dtype=np.uint32), lengths)[:: literals.ROW_PLACES].copy()
        return cls(
            corpus,
            text,
            bodies,
            literals.Links(*exact.owners, *exact.places, row_of),
            np.argsort(keys, kind="stable").astype(np.uint32),
            gaps.arg_sort().to_numpy().astype(np.uint32) + np.uint32(1),
            np.bincount(exact.gaps, minlength=len(gaps) + 2).astype(np.uint32),
            not exact.no_gap_is_empty,
            exact.level_count + 2,
        )

    @staticmethod
    def size_of(corpus: Corpus, exact: ExactRows) -> int:
        """Return the bytes of memory that it takes in addition."""
        places = len(exact.symbols) - int(exact.offsets[exact.rule_count])
        entries = exact.vocabulary_size + places // literals.ROW_PLACES + 2 * len(corpus.grammar.gaps)
        return 4 * entries + 1024

    def plan(self, literal: str) -> LiteralPlan | None:
        """Look a literal of at least one character up; None if its first word depends on the text before it."""
        tokenizer = named_tokenizer(self.corpus.grammar)
        if self.words_touch and _begins_with_mark(literal, tokenizer):
            return None
        cut = PhraseWords.cut((literal,), tokenizer)
        rows = np.zeros(-(-self.corpus.document_count // 64), np.uint64)
        if len(cut.spans) == 0:
            return LiteralPlan(rows, len(self.exact.symbols), partial(self._mark_gaps, cut.data, rows))
        if cut.spans.tolist() == [0, len(cut.data)]:
            bytes_of_words = len(self.corpus.grammar.words.data)
            return LiteralPlan(rows, bytes_of_words // 8, partial(self._mark_words, cut.data, rows))
        return self._plan_sequence(cut, rows)

    def _mark_gaps(self, part: UInt8, rows: UInt64) -> None:
        """Mark the rows of which a gap contains some bytes."""
        found = _with_part(part, self.corpus.grammar.gaps)
        wanted = np.zeros(len(self.gap_counts), np.uint8)
        wanted[0] = part.tobytes() == b" "
        wanted[found + np.uint32(1)] = 1
        if int(self.gap_counts[wanted != 0].sum()) * SPARSE > len(self.exact.symbols):
            self._read_all(found[:0], wanted, rows)
        elif wanted.any():
            literal_rows.mark_gaps(self.exact, self.links, wanted, self._pending(), rows)

    def _mark_words(self, part: UInt8, rows: UInt64) -> None:
        """Mark the rows of which a word contains some bytes."""
        words, places = _with_part(part, self.corpus.grammar.words), 0
        for offsets in (self.links.rule_offsets, self.links.place_offsets):
            places += int((offsets[words + np.uint32(1)] - offsets[words]).sum())
        if places * SPARSE > len(self.exact.symbols):
            self._read_all(words, np.zeros(len(self.gap_counts), np.uint8), rows)
        elif places:
            literal_rows.mark_words(self.exact, self.links, words, self._pending(), rows)

    def _plan_sequence(self, cut: PhraseWords, rows: UInt64) -> LiteralPlan:
        """Look up words and gaps that follow each other."""
        exact, text, count = self.exact, self.text, len(cut.spans) // 2
        ids, codes, ranges = np.empty(count, np.uint32), np.zeros(count, np.uint32), np.empty(2 * count + 1, np.int64)
        orders = self.corpus.grammar.words.by_rank, self.by_ending, self.gap_order
        rarest = literals.read_literal(cut.data, cut.spans, text, *orders, self.links, ids, codes, ranges)
        if rarest == literals.NOWHERE:
            return LiteralPlan(rows, 0, None)
        is_end = rarest == 0 and cut.spans[0] == 0
        words = orders[int(is_end)][ranges[2 * rarest] : ranges[2 * rarest + 1]]
        own, anchor, wanted = literals.Literal(cut.data, cut.spans, ids, codes), 2 * rarest + 1, _NOTHING
        costs, places = int(ranges[2 * count]) * SOUGHT, len(exact.symbols)
        if costs > places:
            flags = np.empty(len(self.gap_counts), np.uint8)
            gap, found = literals.find_rarest_gap(own, text, self.gap_counts, flags)
            if found * COMPARED + places < costs:
                words, wanted, anchor, costs = words[:0], flags, 2 * gap, found * COMPARED + places
        most = READS * places + (1 << 16)

        def search() -> int:
            work = np.empty(self.levels, np.int64), np.empty(self.levels, np.int64), np.empty(3 * MAX_CUT, np.int64)
            sought = own, anchor, words, wanted, most
            return int(literal_rows.mark_literal(exact, text, self.links, *sought, *work, self._pending(), rows))

        return LiteralPlan(rows, costs, search)

    def _read_all(self, words: UInt32, wanted: UInt8, rows: UInt64) -> None:
        flags = np.zeros(self.exact.vocabulary_size + self.exact.rule_count + 1, np.uint8)
        flags[words] = 1
        literal_rows.read_all(self.exact, flags, wanted, rows)

    def _pending(self) -> UInt64:
        return np.zeros(-(-self.exact.rule_count // 64), np.uint64)
