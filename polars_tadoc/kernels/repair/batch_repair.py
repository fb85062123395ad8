"""Batch RePair: each round turns many pairs into rules; all engines use one definition.

RePair (Larsson and Moffat, 1999) replaces the most frequent pair, one pair at a time. Here a round counts all adjacent
pairs. Each pair with count two or more has a priority (count, hash of the pair). A position is selected if its pair's
priority exceeds those of both adjacent positions. A pair that is selected at half of its occurrences or more becomes a
rule there. Pairs never cross the end of a row. A pair of old symbols never gains occurrences, so a position whose pair
was seen once is dead until an adjacent symbol changes, and only alive positions are counted again. Definition:
:func:`polars_tadoc.kernels.traverse.reference.batch_repair`.

Reasons:

- The hash in the priority: if ties were ordered by symbol, duplicated rows would yield one pair per round.
- Half of the occurrences: if a pair loses most of its positions to adjacent ones, its count is stale, and another pair
may fit
  better. Without this bound log files take 8 % more symbols than with exact RePair, with it 4 %
  (``benchmarks/construction.py``).
- Runs of one symbol are split from their start, and a pair is a rule only once: a row's symbols depend only on its
words
    and the pairs' counts, so equal rows of a grammar get equal symbols.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np

from polars_tadoc.config import thread_count
from polars_tadoc.kernels.repair import batch_repair_cpu as kernels
from polars_tadoc.kernels.repair import pairs_cpu as counting
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.runtime.array_types import UInt8, UInt32, UInt64
from polars_tadoc.runtime.parallel import even_chunks, map_parallel

POSITIONS_PER_BUCKET = 1 << 15
"""Positions per additional bucket of pairs."""

POSITIONS_PER_TASK = 1 << 17
"""Minimum positions per task."""

Result = TypeVar("Result")


class BinaryRules(NamedTuple):
    """Rules of two symbols each, rule k being symbol ``vocabulary_size + k``, and the remaining sequence."""

    left: UInt32
    right: UInt32
    sequence: UInt32
    """Symbols of all rows, ``SEPARATOR`` after each row."""


def build(
    sequence: UInt32, vocabulary_size: int, on_round: Callable[[int, int], None] = lambda round_, alive: None
) -> BinaryRules:
    """Run rounds until no pair repeats; ``sequence`` is overwritten.

    Parameters
    ----------
    sequence
        uint32 word ids, ``SEPARATOR`` after each row.
    vocabulary_size
        Number of words; the first rule gets this symbol.
    on_round
        Called before each round with its number and the number of alive positions.

    """
    size = len(sequence)
    state = np.zeros((size + 23) // 8 * 8, np.uint8)  # at least eight dead positions follow the last
    alive = sum(map_parallel(lambda c: kernels.mark_alive(sequence, state, *c), even_chunks(size)))
    rules, space = _Rules(vocabulary_size), _WorkSpace.of(size, alive)
    round_number = 0
    stalled_before = False
    while alive > 1:
        on_round(round_number, alive)
        round_number += 1
        pairs = _Round(sequence[:size], state, alive, space)
        pairs.count()
        pairs.select()
        replaced, any_selected = pairs.make_rules(rules)
        stalled = replaced == 0
        if stalled and (stalled_before or not any_selected):
            break
        stalled_before = stalled
        size, alive = pairs.rewrite(stalled)
        state[size : (size + 15) // 8 * 8] = counting.DEAD
    return BinaryRules(*rules.arrays(), sequence[:size].copy())


class _Rules:
    """The rules so far, with an index by pair."""

    def __init__(self, vocabulary_size: int) -> None:
        self.vocabulary_size, self.known = vocabulary_size, 0
        self.left, self.right = np.empty(1 << 10, np.uint32), np.empty(1 << 10, np.uint32)
        self.index = np.zeros(1 << 12, np.uint32)

    def assign(self, sequence: UInt32, places: UInt64, symbols: UInt32) -> None:
        """Assign each listed table entry its rule's symbol; ``places`` as of ``list_rules``, ascending."""
        most = self.known + len(places)
        if most > len(self.left):
            capacity = 1 << most.bit_length()
            self.left, self.right = np.resize(self.left, capacity), np.resize(self.right, capacity)
            self.index = np.zeros(4 * capacity, np.uint32)
            kernels.fill_index(self.left, self.right, self.known, self.index)
        self.known = int(
            kernels.assign_rules(
                sequence, places, self.vocabulary_size, self.known, symbols, self.left, self.right, self.index
            )
        )

    def arrays(self) -> tuple[UInt32, UInt32]:
        """Return the left and right symbols by rule."""
        return self.left[: self.known].copy(), self.right[: self.known].copy()


def _tasks(positions: int) -> int:
    """Return the number of tasks for a pass: more than threads, as alive positions are unevenly distributed."""
    threads = thread_count()
    return 1 if threads == 1 else max(1, min(max(2 * threads, 8), positions // POSITIONS_PER_TASK))


@dataclass(frozen=True)
class _WorkSpace:
    """Memory of all rounds: fresh pages would cost more than the work. Untouched memory is never allocated."""

    items: UInt64
    """Of each alive position by bucket: its pair's hash, then the pair's count and entry."""
    table: UInt64
    """Entries of the pairs that occur more than once."""
    rules: UInt32
    """By entry: its rule's symbol."""
    chosen: UInt32
    """Entries of selected positions, which are at most every other position."""

    @classmethod
    def of(cls, size: int, alive: int) -> _WorkSpace:
        """Allocate what a sequence takes."""
        entries = alive // 2 + counting.BUCKETS
        return cls(
            np.empty(alive + 1, np.uint64),
            np.empty(counting.FIELDS * entries, np.uint64),
            np.empty(entries, np.uint32),
            np.empty((size + 7) // 8 * 4 + counting.AHEAD, np.uint32),
        )


class _Round:
    """The pairs of one round, and the sequence at its start."""

    def __init__(self, symbols: UInt32, state: UInt8, alive: int, space: _WorkSpace) -> None:
        self.symbols, self.state, self.space = symbols, state, space
        # eight positions at a time, so that dead ranges cost an eighth
        self.blocks = state.view(np.uint64)[: (len(symbols) + 7) // 8]
        shares = min(_tasks(max(alive, len(symbols) // 4)), len(self.blocks))
        self.shares = list(pairwise(len(self.blocks) * i // shares for i in range(shares + 1)))
        """Ranges of blocks, one per task."""
        self.groups = _tasks(alive)
        self.bits = max(0, min(alive // POSITIONS_PER_BUCKET, counting.BUCKETS).bit_length() - 1)
        self.entries = 0

    def _map(self, function: Callable[..., Result]) -> list[Result]:
        """Apply a function of a share's number and its range of blocks to all shares."""
        return map_parallel(lambda k: function(k, *self.shares[k]), range(len(self.shares)))

    def count(self) -> None:
        """Count pairs exactly."""
        walk, items = (self.symbols, self.state, self.blocks), self.space.items
        sizes = np.zeros((len(self.shares), 1 << self.bits), np.int64)
        self._map(lambda k, first, stop: counting.measure(*walk, first, stop, self.bits, sizes[k]))
        ends = np.cumsum(sizes.T.reshape(-1))
        self.starts = np.ascontiguousarray((ends - sizes.T.reshape(-1)).reshape(sizes.T.shape).T.astype(np.uint64))
        """By share and bucket."""
        self._map(lambda k, first, stop: counting.scatter(*walk, first, stop, self.bits, self.starts[k], items))
        edges = np.append(self.starts[0].astype(np.int64), ends[-1])
        cuts = np.searchsorted(edges, np.arange(self.groups + 1) * ends[-1] // self.groups)
        cuts[0], cuts[-1] = 0, len(edges) - 1
        free = np.zeros(1, np.uint64)
        map_parallel(
            lambda group: counting.count(items, edges[group[0] : group[1] + 1], self.space.table, free),
            list(pairwise(cuts.tolist())),
        )
        self.entries = int(free[0])

    def select(self) -> None:
        """Select the positions to replace."""
        space = self.space
        chosen = [space.chosen[4 * first :] for first, _ in self.shares]  # neighbours are never selected both
        walk = (self.symbols, self.state, self.blocks)
        counts = self._map(
            lambda k, first, stop: kernels.select(
                *walk, first, stop, self.bits, self.starts[k], space.items, space.table, chosen[k]
            )
        )
        self.chosen = [own[: count + counting.AHEAD] for own, count in zip(chosen, counts, strict=True)]
        """By share: the selected positions' entries, and some more items."""

    def make_rules(self, rules: _Rules) -> tuple[int, bool]:
        """Find or make the rules of the pairs to replace; new ones are numbered by first use.

        Returns the number of replaced pairs, and whether any position is selected at all.
        """
        own = self.space.rules[: self.entries]
        places = np.empty(len(own) + 1, np.uint64)
        count, any_selected = kernels.list_rules(self.space.table, own, places)
        rules.assign(self.symbols, np.sort(places[:count]), own)
        return count, any_selected

    def rewrite(self, stalled: bool) -> tuple[int, int]:
        """Rewrite every share in place, then close the gaps; return the new size and the number of alive positions."""
        symbols, state, rules = self.symbols, self.state, self.space.rules
        chunks = [(8 * first, min(8 * stop, len(symbols))) for first, stop in self.shares]
        consumed = [False] + [
            stop > 0 and state[stop - 1] == counting.SELECTED and rules[own[-1 - counting.AHEAD]] != counting.NONE
            for (_, stop), own in zip(chunks[:-1], self.chosen, strict=False)
        ]
        written = map_parallel(
            lambda k: kernels.rewrite(
                symbols, state, self.blocks, self.chosen[k], rules, *chunks[k], consumed[k], stalled
            ),
            range(len(chunks)),
        )
        size = alive = 0
        for (first, _), (kept, alive_here, starts_new) in zip(chunks, written, strict=True):
            if size > 0 and kept > 0:  # the pair across the seam
                last = size - 1
                if symbols[first] == SEPARATOR:
                    alive -= int(state[last] != counting.DEAD)
                    state[last] = counting.DEAD
                elif starts_new and symbols[last] != SEPARATOR and state[last] == counting.DEAD:
                    state[last] = counting.ALIVE
                    alive += 1
            if size != first:
                symbols[size : size + kept] = symbols[first : first + kept]
                state[size : size + kept] = state[first : first + kept]
            size += kept
            alive += alive_here
        return size, alive
