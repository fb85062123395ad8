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
from typing import NamedTuple

import numpy as np

from polars_tadoc.config import thread_count
from polars_tadoc.kernels.repair import batch_repair_cpu as kernels
from polars_tadoc.kernels.repair import pairs_cpu as counting
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.parallel import even_chunks, map_parallel

POSITIONS_AT_A_TIME = 1 << 20
"""Maximum positions counted between two barriers of the threads; 27 bytes each."""

POSITIONS_PER_BUCKET = 1 << 14
"""Positions per additional bucket of pairs."""

POSITIONS_PER_TASK = 1 << 17
"""Minimum positions per task."""


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
    slots = np.empty((size + 7) // 8 * 8, np.uint32)
    alive = sum(map_parallel(lambda c: kernels.mark_alive(sequence, state, *c), even_chunks(size)))
    rules = _Rules(vocabulary_size)
    round_number = 0
    stalled_before = False
    counter = _Counter(alive)
    while alive > 1:
        on_round(round_number, alive)
        round_number += 1
        pairs = counter.count(_Sequence(sequence[:size], state, slots), alive)
        pairs.select()
        replaced, any_selected = pairs.make_rules(rules)
        stalled = replaced == 0
        if stalled and (stalled_before or not any_selected):
            break
        stalled_before = stalled
        size, alive = pairs.rewrite(stalled)
        del pairs  # frees its table before the next round's
        state[size : (size + 15) // 8 * 8] = counting.DEAD
    return BinaryRules(*rules.arrays(), sequence[:size].copy())


class _Rules:
    """The rules so far, with an index by pair."""

    def __init__(self, vocabulary_size: int) -> None:
        self.vocabulary_size, self.known = vocabulary_size, 0
        self.left, self.right = np.empty(1 << 10, np.uint32), np.empty(1 << 10, np.uint32)
        self.index = np.zeros(1 << 12, np.uint32)

    def assign(self, table: UInt64, entries: UInt32, symbols: UInt32) -> None:
        """Assign each listed table entry its rule's symbol."""
        most = self.known + len(entries)
        if most > len(self.left):
            capacity = 1 << most.bit_length()
            self.left, self.right = np.resize(self.left, capacity), np.resize(self.right, capacity)
            self.index = np.zeros(4 * capacity, np.uint32)
            kernels.fill_index(self.left, self.right, self.known, self.index)
        self.known = int(
            kernels.assign_rules(
                table, entries, self.vocabulary_size, self.known, symbols, self.left, self.right, self.index
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
class _Sequence:
    """The sequence at the start of a round."""

    symbols: UInt32
    state: UInt8
    slots: UInt32
    """Each alive position's entry in the table of pairs."""

    @property
    def blocks(self) -> UInt64:
        """The state, eight positions at a time, so that dead ranges cost an eighth."""
        return self.state.view(np.uint64)[: (len(self.symbols) + 7) // 8]

    def chunks(self, count: int) -> list[tuple[int, int]]:
        """Chunks of whole blocks, in blocks."""
        return list(pairwise(len(self.blocks) * i // count for i in range(count + 1)))


class _Buckets:
    """Pairs with a common hash prefix: counted by one thread at a time, in separate tables."""

    def __init__(self, first: int, size: int, positions: int, sieved: bool) -> None:
        self.first = first
        # four bits per position: one in twelve pairs that occur once still gets an entry
        self.seen = np.zeros((size, 1 << max(0, positions // 32).bit_length() if sieved else 1), np.uint64)
        self.index = np.zeros((size, 1 << (64 + positions // 16).bit_length()), np.uint32)
        self.progress = np.zeros((size, counting.PROGRESS), np.int64)

    def count(self, hashes: UInt64, filled: Int64, which: int, pairs: _Pairs) -> None:
        """Count all shares' pairs of these buckets."""
        self.progress[:, [counting.SHARE, counting.PLACE]] = 0
        tables = (pairs.table, pairs.rules, pairs.free)
        while counting.count(hashes, filled, self.first, which, self.seen, self.index, self.progress, *tables):
            larger = np.zeros((len(self.index), 2 * self.index.shape[1]), np.uint32)
            counting.fill_index(self.index, pairs.table, larger)
            self.index = larger


class _Counter:
    """Counts the pairs of each round; statistics of a round determine how the next one counts."""

    def __init__(self, alive: int) -> None:
        size = max(1 << 15, 3 * min(alive // 16, POSITIONS_AT_A_TIME))
        self.hashes = np.empty(size, np.uint64)
        self.bucket_of = np.empty(size, np.uint8)
        self.worth_sieving = True

    def count(self, sequence: _Sequence, alive: int) -> _Pairs:
        """Count pairs exactly."""
        bucket_count = 1 << max(0, min(alive // POSITIONS_PER_BUCKET, counting.BUCKETS).bit_length() - 1)
        pairs = _Pairs(sequence, alive, alive + bucket_count * counting.RUN)
        group_count = min(_tasks(alive), bucket_count)
        groups = [
            _Buckets(first, stop - first, alive // bucket_count, self.worth_sieving)
            for first, stop in pairwise(bucket_count * g // group_count for g in range(group_count + 1))
        ]
        if self.worth_sieving:
            self._count(sequence, alive, bucket_count, groups, pairs, counting.REPEATED)
            self._count(sequence, alive, bucket_count, groups, pairs, counting.KNOWN)
        else:
            self._count(sequence, alive, bucket_count, groups, pairs, counting.ALL)
        pairs.close()
        # few pairs occur once: a second look costs more than their entries
        self.worth_sieving = len(pairs.rules) > alive // 16
        return pairs

    def _count(
        self, sequence: _Sequence, alive: int, bucket_count: int, groups: list[_Buckets], pairs: _Pairs, which: int
    ) -> None:
        """Count positions, or, if only ``KNOWN`` pairs count, those without an entry."""
        waiting = which == counting.KNOWN
        walk = (sequence.state, sequence.blocks, sequence.slots, waiting)
        shares = _tasks(alive)
        size = len(self.hashes) // shares
        hashes = self.hashes[: shares * size].reshape(shares, size)
        bucket_of = self.bucket_of[: shares * size].reshape(shares, size)
        filled = np.zeros((shares, bucket_count), np.int64)
        at, stops = zip(*sequence.chunks(shares), strict=True)

        def scatter(t: int) -> int:
            own = (hashes[t], filled[t], bucket_of[t])
            return int(counting.scatter(sequence.symbols, *walk, at[t], stops[t], *own))

        def gather(t: int) -> None:
            counting.gather(*walk, at[t], stopped[t], hashes[t], bucket_count, bucket_of[t])

        while at != stops:
            stopped = tuple(map_parallel(scatter, range(shares)))
            map_parallel(lambda group: group.count(hashes, filled, which, pairs), groups)
            map_parallel(gather, range(shares))
            at = stopped


class _Pairs:
    """The pairs of one round."""

    def __init__(self, sequence: _Sequence, alive: int, most: int) -> None:
        self.sequence, self.alive = sequence, alive
        # untouched memory is never allocated
        self.table = np.empty(counting.FIELDS * most, np.uint64)
        self.rules = np.empty(most, np.uint32)  # first positions until the rules are numbered
        self.free = np.zeros(1, np.uint64)

    def close(self) -> None:
        """Drop unused entries."""
        taken = int(self.free[0])
        self.table, self.rules = self.table[: counting.FIELDS * taken], self.rules[:taken]

    def select(self) -> None:
        """Select the positions to replace."""
        s = self.sequence
        map_parallel(
            lambda chunk: kernels.select(s.symbols, s.state, s.blocks, s.slots, self.table, self.rules, *chunk),
            s.chunks(_tasks(self.alive)),
        )

    def make_rules(self, rules: _Rules) -> tuple[int, bool]:
        """Find or make the rules of the pairs to replace; new ones are numbered by first use.

        Returns the number of replaced pairs, and whether any position is selected at all.
        """
        entries, places = np.empty(len(self.rules), np.uint32), np.empty(len(self.rules), np.uint32)
        count, any_selected = kernels.list_rules(self.table, self.rules, entries, places)
        rules.assign(self.table, entries[:count][np.argsort(places[:count])], self.rules)
        return count, any_selected

    def rewrite(self, stalled: bool) -> tuple[int, int]:
        """Rewrite every chunk in place, then close the gaps; return the new size and the number of alive positions."""
        s, rules = self.sequence, self.rules
        chunks = [(8 * first, min(8 * stop, len(s.symbols))) for first, stop in s.chunks(_tasks(len(s.symbols) // 4))]
        consumed = [
            first > 0 and s.state[first - 1] == counting.SELECTED and rules[s.slots[first - 1]] != counting.NONE
            for first, _ in chunks
        ]
        written = map_parallel(
            lambda k: kernels.rewrite(s.symbols, s.state, s.blocks, s.slots, rules, *chunks[k], consumed[k], stalled),
            range(len(chunks)),
        )
        size = alive = 0
        for (first, _), (symbols, alive_here, starts_new) in zip(chunks, written, strict=True):
            if size > 0 and symbols > 0:  # the pair across the seam
                last = size - 1
                if s.symbols[first] == SEPARATOR:
                    alive -= int(s.state[last] != counting.DEAD)
                    s.state[last] = counting.DEAD
                elif starts_new and s.symbols[last] != SEPARATOR and s.state[last] == counting.DEAD:
                    s.state[last] = counting.ALIVE
                    alive += 1
            if size != first:
                s.symbols[size : size + symbols] = s.symbols[first : first + symbols]
                s.state[size : size + symbols] = s.state[first : first + symbols]
            size += symbols
            alive += alive_here
        return size, alive
