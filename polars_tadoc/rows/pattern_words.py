"""Automata over words and gaps, made of a pattern's automaton over characters and the words and gaps of a grammar."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.host.patterns.exact_rows import (
    ALWAYS,
    FOUND_AFTER,
    FOUND_BEFORE,
    LOUD_GAP,
    MATCHES,
    UNKNOWN,
    WordSteps,
    find_common,
    run_gaps_apart,
)
from polars_tadoc.kernels.host.patterns.match import FOUND, REST, Automaton, Text, run_gaps
from polars_tadoc.kernels.host.patterns.words import (
    MAX_WIDTH,
    choose_words,
    classify_words,
    find_required,
    pass_words,
    run_some,
    sum_up_words,
)
from polars_tadoc.model.grammar import Grammar
from polars_tadoc.rows.pattern_automaton import PatternAutomaton
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt16, UInt32, UInt64, array_dataclass
from polars_tadoc.runtime.cached_property import cached_property
from polars_tadoc.runtime.parallel import even_chunks, map_parallel

MAX_BEFORE = 48
"""Maximum states before words: all words are run from each."""

MAX_AFTER = 200
"""Maximum states after words."""

MAX_CLASSES = 254
"""Maximum classes of words that are not quiet."""

CHUNK = 1 << 14
"""Minimum words per thread."""

_LAST_BIT = 7

_BEYOND = np.uint64(1 << 63)
_BITS = np.full(256, _BEYOND, np.uint64)
"""Bit by byte: one by letter, one for digits, one for other ASCII characters, and one for all others."""
_BITS[:128] = 1 << 62
_BITS[ord("0") : ord("9") + 1] = 1 << 61
for _at, _first in ((0, "a"), (26, "A")):
    _BITS[ord(_first) : ord(_first) + 26] = np.left_shift(np.uint64(1), np.arange(_at, _at + 26, dtype=np.uint64))


@array_dataclass
class GapOrder:
    """The gaps of a grammar, ascending by bytes."""

    codes: UInt32
    common: UInt32
    """Bytes in common with the one before."""
    characters: UInt32
    """Their characters, as code points."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self.codes.nbytes + self.common.nbytes + self.characters.nbytes + 256

    @classmethod
    def of(cls, grammar: Grammar) -> GapOrder:
        """Sort the gaps."""
        gaps = grammar.gaps
        codes = gaps.series.arg_sort().to_numpy().astype(np.uint32) + np.uint32(1)
        common = np.zeros(len(codes), np.uint32)
        find_common(gaps.data.ctypes.data, gaps.offsets, codes, common)
        joined = " " + (gaps.series.str.join("").item() if len(codes) else "")
        return cls(codes, common, np.unique(np.frombuffer(joined.encode("utf-32-le"), np.uint32)))


@array_dataclass
class WordOrder:
    """The words of a grammar by their characters: to run only some of them."""

    sets: UInt64
    """By word: the bits of its bytes."""
    firsts: UInt8
    lasts: UInt8
    """``firsts``, ``lasts``: by word, its first byte, and its last one; of an empty word 255, which no text has."""
    order: UInt32
    """The words by their first bytes; empty ones as if it were 255."""
    starts: Int64
    """By first byte: offsets in ``order``."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return int(self.sets.nbytes + 2 * self.lasts.nbytes + self.order.nbytes + self.starts.nbytes + 256)

    @classmethod
    def of(cls, grammar: Grammar) -> WordOrder:
        """Sum up the words."""
        offsets, data = grammar.words.offsets, np.append(grammar.words.data, np.uint8(255))
        sets = np.zeros(grammar.vocabulary_size, np.uint64)
        sum_up_words(offsets, data.ctypes.data, _BITS, sets)
        is_empty = offsets[1:] == offsets[:-1]
        firsts = np.where(is_empty, 255, data[offsets[:-1]]).astype(np.uint8)
        lasts = np.where(is_empty, 255, data[offsets[1:] - 1]).astype(np.uint8)
        starts = np.concatenate([[0], np.cumsum(np.bincount(firsts, minlength=256))])
        return cls(sets, firsts, lasts, np.argsort(firsts, kind="stable").astype(np.uint32), starts)

    def choose(self, automaton: Automaton, own: PatternAutomaton) -> UInt32:
        """Return the words that may lead from ``REST`` elsewhere, or match."""
        required, ends = np.empty(MAX_WIDTH, np.uint64), np.ones(256, np.uint8)
        count = 0
        if not own.counts:
            bits = np.zeros(own.width, np.uint64)
            np.bitwise_or.at(bits, own.classes[:128], _BITS[:128])
            bits[own.beyond] |= _BEYOND
            count = find_required(automaton.steps, own.width, bits, required)
            leads = np.delete(own.steps, FOUND, axis=0) != REST
            ends[:128] = leads.any(axis=0)[own.classes[:128]]
        moves = int(np.bitwise_or.reduce(_BITS[automaton.stays == 0], initial=np.uint64(0)))
        some = np.empty(len(self.sets), np.uint32)
        return some[: choose_words(self.sets, self.lasts, np.uint64(moves), required[:count], ends, some)]

    def after_firsts(self, own: PatternAutomaton, state: int) -> tuple[UInt16, UInt64]:
        """Return, by first byte, the state after it, and the bits of bytes that lead from there elsewhere, or match.

        These are all bits where words are to be read.
        """
        following = np.full(256, state, np.uint16)
        following[:128] = own.steps[state, own.classes[:128]]
        moves = np.full(256, np.iinfo(np.uint64).max, np.uint64)
        for one in set(following[:128].tolist()):
            stays = (own.steps[one] == one) & (own.hits[one] == 0)
            bytes_stay = np.full(256, stays[own.beyond].all())
            bytes_stay[:128] = stays[own.classes[:128]]
            moves[:128][following[:128] == one] = np.bitwise_or.reduce(_BITS[~bytes_stay], initial=np.uint64(0))
        moves[:128][own.hits[state, own.classes[:128]] != 0] = np.iinfo(np.uint64).max
        return following, moves

    def apart(self, own: PatternAutomaton, state: int) -> UInt32:
        """Return the words whose first characters may lead from a state elsewhere than from ``REST``."""
        differ = (own.steps[state] != own.steps[REST]) | (own.hits[state] != own.hits[REST])
        firsts = np.full(256, differ[own.beyond].any())
        firsts[:128] = differ[own.classes[:128]]
        firsts[255] = True
        if firsts.all():
            return np.arange(len(self.order), dtype=np.uint32)
        begins, stops = self.starts[:-1][firsts], self.starts[1:][firsts]
        return np.concatenate(
            [self.order[one:two] for one, two in zip(begins, stops, strict=True) if one < two] or [self.order[:0]]
        )


@array_dataclass
class WordAutomaton:
    """A pattern over words and gaps."""

    steps: WordSteps
    class_masks: UInt8
    class_outs: UInt16
    """``class_masks``, ``class_outs``: by class of words, as ``masks`` and ``outs`` by word."""

    @cached_property
    def masks(self) -> UInt8:
        """By word, as in :class:`polars_tadoc.kernels.host.patterns.exact_rows.Quiet`."""
        return self.class_masks[self.steps.classes]

    @cached_property
    def outs(self) -> UInt16:
        """By word, likewise."""
        return self.class_outs[self.steps.classes]

    @cached_property
    def loud(self) -> UInt32:
        """The words that are not quiet between all gaps, ascending."""
        return np.flatnonzero(self.steps.classes).astype(np.uint32)

    @cached_property
    def has_ends(self) -> bool:
        """Whether rows may match in which all words are quiet."""
        steps = self.steps
        return bool(steps.ends_after.any() or steps.ends_before.any() or steps.start or self.has_loud_gaps)

    @cached_property
    def has_loud_gaps(self) -> bool:
        """Whether a gap by itself may complete a match."""
        return bool((self.steps.gap_bits & LOUD_GAP).any())

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        arrays = (one for one in self.steps if isinstance(one, np.ndarray))
        of_words = 7 * len(self.steps.classes)
        return sum(one.nbytes for one in (*arrays, self.class_masks, self.class_outs)) + of_words + 512

    @classmethod
    def of(
        cls, text: Text, gaps: GapOrder, automaton: Automaton, own: PatternAutomaton, words: UInt32 | WordOrder
    ) -> WordAutomaton | None:
        """Build the automaton; None if it would be too large.

        Parameters
        ----------
        text, gaps
            Words and gaps.
        automaton, own
            The pattern, over characters.
        words
            Words that may not be quiet, ascending; or all, in order.

        """
        return _Builder(text, gaps, automaton, own, words).build()


class _Builder:
    def __init__(
        self, text: Text, gaps: GapOrder, automaton: Automaton, own: PatternAutomaton, words: UInt32 | WordOrder
    ) -> None:
        self._text, self._order, self._automaton, self._own = text, gaps, automaton, own
        self._all = words if isinstance(words, WordOrder) else None
        self._places = np.arange(text.vocabulary_size if isinstance(words, WordOrder) else len(words), dtype=np.uint32)
        self._words: UInt32 = self._places if isinstance(words, WordOrder) else words
        self._counts = own.counts
        self._codes = len(text.gap_offsets)
        self._after: dict[int, int] = {}
        """Numbers of states after words, by state of the pattern; equal ones share one."""
        self._rows: dict[bytes, int] = {}
        self._usual = np.full(self._codes, REST, np.uint16), np.zeros(self._codes, np.uint32)
        """State after each gap, and the matches, from ``REST``."""
        known = gaps.characters < len(own.classes)
        inside = np.unique(np.where(known, own.classes[np.where(known, gaps.characters, 0)], 0))
        if (own.steps[REST, inside] != REST).any() or own.hits[REST, inside].any():
            counts = np.empty(self._codes, np.uint64)
            run_gaps(text, automaton, REST, self._usual[0], counts)
            self._usual[1][:] = counts
        self._gaps: list[tuple[UInt32, UInt16, UInt32]] = []
        """Gaps that differ from those, by state after a word: code, state after it, matches."""
        self._ends: list[int] = []
        self._before: list[int] = []
        """States before words, from which all were run; ``REST`` is the first."""
        self._has_rest = False
        """Whether ``REST`` itself is a state before words."""
        self._touched = np.zeros(len(self._words), np.uint8)
        """By word: whether it leads from any state to another than ``REST``, or matches."""
        counted = MAX_BEFORE if own.counts else 0  # memory that is not written takes no room
        self._exits = np.empty((MAX_BEFORE, len(self._words)), np.uint16)
        self._matches = np.empty((counted, len(self._words) if counted else 0), np.uint32)
        """``_exits``, ``_matches``: state after each word, and matches, by number of the state before it."""

    def build(self) -> WordAutomaton | None:
        start = self._own.start
        self._add_after(REST)
        first = self._add_after(start)
        todo = [start, *_distinct(self._usual[0])]
        seen = 0
        while todo or seen < len(self._gaps):
            while seen < len(self._gaps):
                todo += _distinct(self._gaps[seen][1])
                seen += 1
            if not todo:
                break
            state = todo.pop()
            self._has_rest |= state == REST
            if not self._before:
                todo.append(state)
                state = REST
            if state in self._before or self._is_found(state):
                continue
            if len(self._before) == MAX_BEFORE or len(self._gaps) > MAX_AFTER:
                return None
            for after in self._run_words(state):
                if not self._is_found(after):
                    self._add_after(after)
        if len(self._gaps) > MAX_AFTER:
            return None
        return self._tables(first)

    def _run_words(self, state: int) -> list[int]:
        """Run all words from a state; return the states after them."""
        row, reached = len(self._before), np.zeros(max(len(self._own.steps), FOUND + 1), np.uint8)
        self._before.append(state)
        none = np.empty(0, np.uint32)
        matches = list(self._matches) or [none] * MAX_BEFORE
        some = self._places
        if self._all is not None:  # the others do as from the first state; from that one, nothing
            some = self._all.apart(self._own, state) if row else self._all.choose(self._automaton, self._own)
        if len(some) < len(self._words):
            self._exits[row] = self._exits[0] if row else REST
            matches[row][:] = matches[0] if row else 0
        if self._all is not None and row:
            others = np.empty(len(some), np.uint32)
            after, moves = self._all.after_firsts(self._own, state)
            read = self._all.sets, self._all.firsts, after, moves, some
            count = pass_words(*read, self._touched, self._exits[row], matches[row], others)
            if count < len(some):
                reached[after[np.diff(self._all.starts) > 0]] = 1
            some = others[:count]
        run = self._text, self._automaton, self._words, state, REST, self._exits[0], matches[0], some
        written = reached, self._touched, self._exits[row], matches[row]
        map_parallel(lambda own: run_some(*run, *own, *written), even_chunks(len(some), CHUNK))
        return np.flatnonzero(reached).tolist()

    def _is_found(self, state: int) -> bool:
        return state == FOUND and not self._counts

    def _add_after(self, state: int) -> int:
        """Number a state after a word."""
        if state in self._after:
            return self._after[state]
        codes, exits = np.empty(self._codes, np.uint32), np.empty(self._codes, np.uint16)
        counts = np.empty(self._codes, np.uint32)
        order = self._order
        found = 0
        if state != REST:
            found = run_gaps_apart(
                self._text, self._automaton, state, order.codes, order.common, *self._usual, codes, exits, counts
            )
        own = codes[:found], exits[:found], counts[:found]
        end = int(self._own.at_end[state])
        only_start = self._own.is_over and state == self._own.start  # there a match may begin, elsewhere not
        key = b"".join(one.tobytes() for one in own) + bytes([end, only_start])
        if key not in self._rows:
            self._rows[key] = len(self._gaps)
            self._gaps.append(own)
            self._ends.append(end)
        self._after[state] = self._rows[key]
        return self._rows[key]

    def _tables(self, first: int) -> WordAutomaton | None:
        """Number the states before words, and classes of words."""
        width = max(len(self._own.steps), FOUND + 1)
        after = np.zeros(width, np.uint64)
        for state, number in self._after.items():
            after[state] = number
        if not self._counts:
            after[FOUND] = FOUND_AFTER
        listed = self._before if self._has_rest else self._before[1:]
        first_row, stop, rows = len(self._before) - len(listed), len(self._before), len(listed)
        exits, matches = self._exits[first_row:stop], self._matches[first_row:stop]
        some = np.flatnonzero(self._touched.view(np.bool_)).astype(np.uint32)
        firsts, own = np.zeros(MAX_CLASSES, np.uint32), np.zeros(len(self._words), np.uint8)
        found = classify_words(exits, matches, some, after, np.zeros(1024, np.uint32), firsts, own)
        if found < 0:
            return None
        table = np.zeros((rows, 1 + found), np.uint64)
        table[:, 1:] = after[exits[:, firsts[:found]]]
        if self._counts:
            table[:, 1:] |= matches[:, firsts[:found]].astype(np.uint64) << np.uint64(8)
        columns: list[Any] = []
        numbers: dict[bytes, int] = {}
        before = np.zeros(width, np.uint8)
        ends: list[int] = []
        usual = int(self._usual[0][0])  # after a space
        for row in sorted(range(rows), key=lambda one: (listed[one] != usual, one)):
            state = listed[row]
            end = int(self._own.at_end[state])
            key = table[row].tobytes() + bytes([end])
            if key not in numbers:
                numbers[key] = len(columns)
                columns.append(table[row])
                ends.append(end)
            before[state] = numbers[key]
        if not self._counts:
            before[FOUND] = FOUND_BEFORE
        classes = own
        if self._all is None:
            classes = np.zeros(self._text.vocabulary_size, np.uint8)
            classes[self._words] = own
        values = np.stack(columns).T
        bits = np.left_shift(1, np.minimum(np.arange(len(columns)), _LAST_BIT)).astype(np.uint8)
        masks = np.bitwise_or.reduce(np.where(values != values[:, :1], bits, 0), axis=1).astype(np.uint8)
        outs = _bits_after((values[:, 0] & np.uint64(0xFF)).astype(np.int64))
        outs[values[:, 0] > np.uint64(0xFF)] |= np.uint16(1 << MATCHES)
        entries = np.zeros((len(self._gaps), self._codes + 1), np.uint8)
        entry_counts = np.zeros(entries.shape if self._counts else (0, 0), np.uint32)
        entries[:, :-1] = before[self._usual[0]]
        if self._counts:
            entry_counts[:, :-1] = self._usual[1]
        for row, (codes, states, matches) in enumerate(self._gaps):
            entries[row, codes] = before[states]
            if self._counts:
                entry_counts[row, codes] = matches
        entries[first, -1] = before[self._own.start]
        usual_row = entries[0]
        gap_bits = np.left_shift(1, np.minimum(usual_row, _LAST_BIT).astype(np.uint16)).astype(np.uint16)
        gap_bits[usual_row == 0] = 0
        gap_bits[usual_row == FOUND_BEFORE] = LOUD_GAP
        if self._counts:
            gap_bits[entry_counts[0] != 0] |= np.uint16(LOUD_GAP)
        alive = np.full(self._codes + 1, ALWAYS, np.uint16)
        own_bits = _bits_after(np.arange(len(entries)))
        for row in range(1, len(entries)):
            apart = entries[row] != usual_row
            if self._counts:
                apart |= entry_counts[row] != entry_counts[0]
            apart[-1] = self._ends[row] != self._ends[0]
            alive[apart] |= own_bits[row]
        dtype = np.uint64 if self._counts else np.uint8
        steps = WordSteps(
            classes,
            (values + np.uint64(1)).astype(dtype).reshape(-1),
            len(columns),
            entries.reshape(-1),
            entry_counts.reshape(-1),
            self._codes + 1,
            first,
            np.array(self._ends, np.uint32),
            np.array(ends, np.uint32),
            self._own.is_over,
            gap_bits,
            alive,
        )
        return WordAutomaton(steps, masks, outs)


def _bits_after(states: Int64) -> UInt16:
    """Return the bit of each state after a symbol."""
    bits = np.left_shift(1, np.minimum(states, UNKNOWN))
    bits[states == 0] = 0
    bits[states == FOUND_AFTER] = 1 << MATCHES
    return bits.astype(np.uint16)


def _distinct(states: UInt16) -> list[int]:
    if len(states) < 64:
        return list(set(states.tolist()))
    return np.flatnonzero(np.bincount(states)).tolist()
