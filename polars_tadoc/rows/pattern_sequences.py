"""The automaton of a pattern over classes of words, whatever separates them."""

from __future__ import annotations

import numpy as np

from polars_tadoc.kernels.host.patterns.match import FOUND, REST, Automaton, Text, run_gaps
from polars_tadoc.kernels.host.patterns.sequences import filter_rows, run_words
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.grammar import Grammar
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt16, UInt32, UInt64, array_dataclass

MAX_STATES = 32
"""Maximum states over classes of words; patterns that need more don't drop rows in this way."""

MAX_AFTER_GAPS = 8
"""Maximum states of the pattern's own automaton after gaps: all words are run from each."""

_START = -1


@array_dataclass
class WordSequences:
    """Which sequences of words may match."""

    classes: UInt8
    steps: UInt8
    start: int
    ends: UInt8
    after_gap: UInt8
    """By state of the pattern's own automaton: whether a gap can lead to it from ``REST``."""

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self.classes.nbytes + self.steps.nbytes + self.ends.nbytes + self.after_gap.nbytes

    @classmethod
    def of(cls, text: Text, automaton: Automaton, start: int) -> WordSequences | None:
        """Build the automaton; None if it would be too large, or any sequence may match."""
        return _Builder(text, automaton, start).build()

    def drop(self, corpus: Corpus, text: Text, flags: UInt8, pending: UInt64) -> None:
        """Clear the flags of rules that leave ``REST`` at rest, and the bits of documents that cannot match."""
        grammar = corpus.grammar
        known = np.zeros(len(self.steps) * grammar.rule_count, np.uint8)
        loud = np.packbits(flags[grammar.vocabulary_size :] != 0, bitorder="little")
        rules = np.zeros(-(-grammar.rule_count // 64), np.uint64)
        rules.view(np.uint8)[: len(loud)] = loud
        moved = np.ones(len(self.steps), np.uint8)
        moved[REST] = 0
        offsets = grammar.rule_offsets.astype(np.int64)
        self._filter(grammar, text, REST, moved, flags, offsets, grammar.symbols, rules, known)
        still = np.unpackbits(rules.view(np.uint8), bitorder="little")[: grammar.rule_count]
        flags[grammar.vocabulary_size :] *= still
        self._filter(grammar, text, self.start, self.ends, flags, corpus.root_offsets, corpus.roots, pending, known)

    def _filter(
        self,
        grammar: Grammar,
        text: Text,
        start: int,
        ends: UInt8,
        flags: UInt8,
        offsets: Int64,
        symbols: UInt32,
        pending: UInt64,
        known: UInt8,
    ) -> None:
        filter_rows(
            text,
            self.classes,
            self.steps.shape[1],
            self.steps.reshape(-1),
            start,
            ends,
            flags,
            grammar.level_count,
            offsets,
            symbols,
            pending,
            known,
        )


_NOTHING = np.zeros(0, np.uint8)
NO_SEQUENCES = WordSequences(_NOTHING, _NOTHING.reshape(0, 1), 0, _NOTHING, _NOTHING)
"""Of patterns that have none."""


class _Builder:
    def __init__(self, text: Text, automaton: Automaton, start: int) -> None:
        self._text, self._automaton, self._start = text, automaton, start
        self._images: dict[int, frozenset[int]] = {}
        self._exits: dict[int, UInt16] = {}

    def build(self) -> WordSequences | None:
        before = {REST: self._after_gap(REST), _START: self._after_gap(self._start) | {self._start}}
        todo = sorted(before[REST] | before[_START])
        while todo:
            state = todo.pop()
            if state == FOUND or len(self._exits) == MAX_AFTER_GAPS:
                return None
            exits = np.empty(self._text.vocabulary_size, np.uint16)
            run_words(self._text, self._automaton, state, exits)
            self._exits[state] = exits
            for after in np.flatnonzero(np.bincount(exits, minlength=2)).tolist():
                if after != FOUND and after not in before:
                    before[after] = self._after_gap(after)
                    if len(before) > MAX_STATES:
                        return None
            reached = frozenset().union(*before.values()) - {FOUND}
            todo = sorted(reached - self._exits.keys())
        order = sorted(self._exits)
        table = np.stack([self._exits[state] for state in order])
        loud = np.flatnonzero((table != REST).any(axis=0))
        keys = table[:, loud].astype(np.uint64)
        weights = np.array([65_599**k % (1 << 64) for k in range(len(order))], np.uint64)
        _, firsts, numbers = np.unique(weights @ keys, return_index=True, return_inverse=True)
        if len(firsts) > 254:
            return None
        classes = np.zeros(self._text.vocabulary_size, np.uint8)
        classes[loud] = 1 + numbers.reshape(-1)
        columns = np.concatenate([np.zeros((len(order), 1), np.uint64), keys[:, firsts]], axis=1)
        if (columns[:, classes[loud]] != keys).any():  # two sums of exits are equal
            return None
        exits_of = {state: row.tolist() for state, row in zip(order, columns, strict=True)}
        return self._determinise(before, exits_of, columns.shape[1], classes)

    def _after_gap(self, state: int) -> frozenset[int]:
        """Return the states after any gap."""
        if state not in self._images:
            codes = len(self._text.gap_offsets)
            exits, counts = np.empty(codes, np.uint16), np.empty(codes, np.uint64)
            run_gaps(self._text, self._automaton, state, exits, counts)
            self._images[state] = frozenset(np.flatnonzero(np.bincount(exits)).tolist())
        return self._images[state]

    def _determinise(
        self, before: dict[int, frozenset[int]], after: dict[int, list[int]], width: int, classes: UInt8
    ) -> WordSequences | None:
        """Number the sets of states after words; the set of ``REST`` alone is ``REST``."""
        numbers: dict[frozenset[int], int] = {frozenset({REST}): REST, frozenset({FOUND}): FOUND}
        order = [*numbers, frozenset({_START})]
        numbers[order[-1]] = len(order) - 1
        steps: list[list[int]] = []
        ends: list[bool] = []
        at_end = self._automaton.at_end
        for own in order:  # which grows
            if own == {FOUND}:
                steps.append([FOUND] * width)
                ends.append(True)
                continue
            reached = frozenset().union(*(before[state] for state in own))
            words = {self._start if state == _START else state for state in own}
            ends.append(FOUND in reached or any(at_end[state] for state in words | reached))
            row = []
            for k in range(width):
                following = frozenset([FOUND]) if FOUND in reached else frozenset(after[t][k] for t in reached)
                if FOUND in following:
                    following = frozenset({FOUND})
                if following not in numbers:
                    if len(order) == MAX_STATES:
                        return None
                    numbers[following] = len(order)
                    order.append(following)
                row.append(numbers[following])
            steps.append(row)
        after_gap = np.zeros(len(at_end), np.uint8)
        after_gap[list(before[REST])] = 1
        return WordSequences(classes, np.array(steps, np.uint8), 2, np.array(ends, np.uint8), after_gap)
