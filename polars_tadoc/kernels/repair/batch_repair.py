"""Batch RePair: each round turns many pairs into rules; all engines use one definition.

RePair (Larsson and Moffat, 1999) replaces the most frequent pair, one pair at a time. Here a round counts all adjacent
pairs. Each pair with count two or more has a priority (count, hash of the pair). A position is selected if its pair's
priority exceeds those of both adjacent positions. A pair that is selected at half of its occurrences or more becomes a
rule there. Pairs never cross the end of a row. A pair of old symbols never gains occurrences, so a position whose pair
was seen once is dead until an adjacent symbol changes, and only alive positions are counted again. Definition:
:func:`polars_tadoc.kernels.repair.reference.batch_repair`.

Reasons:

- The hash in the priority: if ties were ordered by symbol, duplicated rows would yield one pair per round.
- Half of the occurrences: if a pair loses most of its positions to adjacent ones, its count is stale, and another pair
may fit
  better. Without this bound log files take 8 % more symbols than with exact RePair, with it 4 %
  (``benchmarks/construction.py``).
- Lines: where paragraphs or lines repeat, the first rounds take each of them as a row, and see equal ones once
    (:mod:`polars_tadoc.kernels.repair.lines.repeated_lines`).
- Runs of one symbol are split from their start, and a pair is a rule only once: a row's symbols depend only on its
words
    and the pairs' counts, so equal rows of a grammar get equal symbols, and rounds see them once, with a weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polars_tadoc.config import thread_count
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.repair import batch_repair_cpu as kernels
from polars_tadoc.kernels.repair import equal_rows_cpu as copies
from polars_tadoc.kernels.repair import pairs_cpu as counting
from polars_tadoc.kernels.repair import rounds_cpu as rounds
from polars_tadoc.kernels.repair.lines.repeated_lines import INNER_ROUNDS, RepeatedLines, inner_share, row_starts
from polars_tadoc.kernels.repair.rounds_cpu import Buckets, Positions
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.parallel import even_chunks, map_parallel, weighted_chunks
from polars_tadoc.runtime.process.shared_tasks import share_tasks

POSITIONS_PER_BUCKET = 1 << 15
"""Positions per additional bucket of pairs."""

MIN_SAVED = 1 / 16
"""Minimum share of positions in rows that equal others for treating each row once."""

FEWEST_ENTRY_BITS, MOST_ENTRY_BITS = 1, 28
"""Bits of an entry in an item; a bucket with more repeated pairs needs billions of positions."""

POSITIONS_PER_TASK = 1 << 15
"""Minimum positions per task."""

POSITIONS_PER_THREAD = 1 << 14
"""Positions for each additional thread of a pass: threads begin in turn, 0.1 ms apart."""

FEWEST_TO_SPREAD = 1 << 12
"""Minimum new rules of a round that several threads add to the index."""

SPARSE, FEWEST_SPARSE = 1 << 6, 1 << 15
"""Rounds run over regions only with at least this many positions for each alive one, and this many in all."""

MARGIN = 8
"""Symbols of a region before and after an alive pair, and maximum rounds until regions are listed again."""

NO_LIMIT = 1 << 62
"""More rounds than there are."""

POSITIONS_PER_LIST, MOST_LIST_BITS = 10, 9
"""Bits of the alive positions for each bucket of listed pairs, and most bits of such a bucket."""


class BinaryRules(NamedTuple):
    """Rules of two symbols each, rule k being symbol ``vocabulary_size + k``, and the remaining sequence."""

    left: UInt32
    right: UInt32
    sequence: UInt32
    """Symbols of all rows, ``SEPARATOR`` after each row."""
    round_offsets: Int64 | None = None
    """First rule of each round, which uses rules of earlier rounds only, and the number of all; None: unknown."""


def build(
    sequence: UInt32,
    vocabulary_size: int,
    on_round: Callable[[int, int], None] = lambda round_, alive: None,
    part: int = 1,
    whole: int = 2,
    has_marks: bool = False,
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
    part, whole
        A pair becomes a rule if it is selected at ``part / whole`` of its occurrences or more.
    has_marks
        Whether the ends of lines inside rows are marked, by
        :func:`~polars_tadoc.kernels.repair.lines.repeated_lines.mark_lines`.

    """
    equal = EqualRows.of(sequence)
    kept, classes = equal.drop_copies(sequence)
    rules = _Rules(vocabulary_size, kept, part, whole)
    split = RepeatedLines.split(sequence[:kept], classes) if has_marks else None
    if split is not None:
        lines, distinct, weights = split
        rules.part, rules.whole = inner_share(part, whole)
        inside = _run_rounds(distinct, len(distinct), weights, rules, on_round, INNER_ROUNDS)
        rules.part, rules.whole = part, whole
        kept, classes = lines.join(inside, sequence)
        del split, lines, distinct, weights, inside
    left = _run_rounds(sequence, kept, classes, rules, on_round)
    # the rounds' other work space is free again
    return BinaryRules(*rules.arrays(), equal.restore(left), np.array(rules.round_offsets))


def _run_rounds(
    sequence: UInt32,
    size: int,
    classes: UInt8,
    rules: _Rules,
    on_round: Callable[[int, int], None],
    most: int = NO_LIMIT,
) -> UInt32:
    """Fill ``rules``, rewriting the first ``size`` symbols in ``most`` rounds; return the rewritten ones."""
    state = _states(size)
    alive = sum(map_parallel(lambda c: kernels.mark_alive(sequence[:size], state, *c), even_chunks(size)))
    rounds = _Rounds(Positions(sequence, state, classes), size, alive, rules, on_round)
    while rounds.goes_on and rounds.number < most:
        if size >= FEWEST_SPARSE and rounds.alive < rounds.size // SPARSE:
            rounds.run_regions(most)
        else:
            rounds.run()
    return rounds.here.symbols[: rounds.size]


def _states(size: int) -> UInt8:
    return np.zeros((size + 23) // 8 * 8, np.uint8)  # at least eight dead positions follow the last


class _Rounds:
    """Rounds over a sequence, which they overwrite."""

    def __init__(
        self,
        here: Positions,
        size: int,
        alive: int,
        rules: _Rules,
        on_round: Callable[[int, int], None],
        space: _WorkSpace | None = None,
    ) -> None:
        self.here, self.size, self.alive, self.rules, self.on_round = here, size, alive, rules, on_round
        self.number = 0
        self.has_stalled = self.ends = False
        """Whether the last round made no rule, and whether no later round makes one."""
        self._sequence, self._is_weighted = here.symbols, len(here.classes) > 0
        self._space = space or _WorkSpace.of(size, alive, self._is_weighted)
        self._spare = Positions(
            self._space.items.view(np.uint32)[:size], np.empty_like(here.state), self._space.classes
        )

    @property
    def goes_on(self) -> bool:
        """Whether there is another round."""
        return not self.ends and self.alive > (not self._is_weighted)

    def run(self) -> None:
        """Run a round."""
        self.on_round(self.number, self.alive)
        self.number += 1
        split = _split(self.alive, self.rules.vocabulary_size + self.rules.known)
        if split.key_bits > 32 and self.here.symbols is not self._sequence:  # items need the memory
            _copy(self.here.symbols[: self.size], self._sequence)
            self._spare = self._spare._replace(symbols=self.here.symbols)
            self.here = self.here._replace(symbols=self._sequence)
        pairs = _Round(self.here, self._spare, self.size, self.alive, split, self._space)
        new, any_selected = pairs.find(self.rules)
        stalled = pairs.replaced == 0
        self.ends = stalled and (self.has_stalled or not any_selected)
        if self.ends:
            return
        self.has_stalled = stalled
        before = self.here
        self.size, self.alive, self.here = pairs.replace(self.rules, new)
        self._spare = before if self.here is self._spare else self._spare
        self.here.state[self.size : (self.size + 15) // 8 * 8] = counting.DEAD

    def run_regions(self, most: int) -> None:
        """Run rounds, up to number ``most``, over the few regions that they can change, then put these back.

        A round changes no more than the symbols beside alive pairs, so it takes ``MARGIN`` rounds to reach a region's
        ends. Runs of one symbol are split from their start, so regions have whole runs.
        """
        (symbols, state, classes), size = self.here, self.size
        starts, stops = np.empty((2, self.alive), np.int64)
        blocks = state.view(np.uint64)
        regions = int(kernels.list_regions(symbols[:size], state, blocks, size, MARGIN, starts, stops))
        starts, stops = starts[:regions], stops[:regions]
        own_size = int((stops - starts).sum()) + regions
        own = Positions(
            np.empty(own_size, np.uint32), _states(own_size), np.empty(own_size if self._is_weighted else 0, np.uint8)
        )
        kernels.take_regions(symbols, starts, stops, SEPARATOR, own.symbols)
        kernels.take_regions(state, starts, stops, counting.DEAD, own.state)
        if self._is_weighted:
            kernels.take_regions(classes, starts, stops, 0, own.classes)
        is_unused = self.here.symbols is self._sequence and classes is not self._space.classes
        is_unused = is_unused and own_size < len(self._space.items)
        space = self._space if is_unused else None
        inner = _Rounds(own, own_size, self.alive, self.rules, self.on_round, space)
        inner.number, inner.has_stalled = self.number, self.has_stalled
        while inner.goes_on and inner.number < min(self.number + MARGIN, most):
            inner.run()
        self.size = int(kernels.put_regions(*self.here, size, starts, stops, *inner.here))
        self.here.state[self.size : (size + 15) // 8 * 8] = counting.DEAD
        self.number, self.has_stalled, self.ends, self.alive = inner.number, inner.has_stalled, inner.ends, inner.alive


@dataclass(frozen=True)
class EqualRows:
    """Rows that occur several times, of which the rounds see one, with a weight."""

    starts: Int64
    """Of each row, and the end of the last."""
    first: Int64
    """By row: the first row that equals it."""
    classes: UInt8
    """By row: the class of its weight, or ``DROPPED``; empty if too few rows are equal."""

    @classmethod
    def of(cls, sequence: UInt32) -> EqualRows:
        """Find the equal rows of a sequence."""
        starts = row_starts(sequence)
        rows = len(starts) - 1
        first, classes = np.arange(rows), np.zeros(rows, np.uint8)
        chunks = weighted_chunks(starts)
        hashes = np.empty(rows, np.uint64)
        map_parallel(lambda c: copies.hash_rows(sequence, starts[c[0] : c[1] + 1], hashes[c[0] : c[1]]), chunks)
        copies.list_first(hashes, first)
        map_parallel(lambda c: copies.confirm(sequence, starts, first, *c), chunks)
        copies.classify(first, classes)
        saved = int(np.diff(starts)[classes == copies.DROPPED].sum())
        return cls(starts, first, classes if saved > MIN_SAVED * len(sequence) else classes[:0])

    def drop_copies(self, sequence: UInt32) -> tuple[int, UInt8]:
        """Drop the rows that others represent; return the new size and the classes by position, if there are any."""
        if len(self.classes) == 0:
            return len(sequence), self.classes
        before = running_sum(np.diff(self.starts) * (self.classes != copies.DROPPED))
        size = int(before[-1])
        classes = np.empty(size, np.uint8)
        given = sequence, self.starts, self.classes
        if thread_count() < FEWEST_TO_COPY:
            copies.keep_rows(*given, 0, len(self.classes), 0, sequence, classes)
            return size, classes
        kept = np.empty(size, np.uint32)
        map_parallel(lambda own: copies.keep_rows(*given, *own, before[own[0]], kept, classes), weighted_chunks(before))
        _copy(kept, sequence)
        return size, classes

    def restore(self, sequence: UInt32) -> UInt32:
        """Return the symbols of all rows."""
        if len(self.classes) == 0:
            return sequence.copy()
        starts = row_starts(sequence)
        kept = np.cumsum(self.classes != copies.DROPPED) - 1
        sources = kept[self.first]
        ends = np.concatenate([[0], np.cumsum(np.diff(starts)[sources])])
        rows = np.empty(int(ends[-1]), np.uint32)
        chunks = weighted_chunks(ends)
        map_parallel(
            lambda c: copies.copy_rows(sequence, starts[sources[c[0] : c[1]]], ends[c[0] : c[1] + 1], rows), chunks
        )
        return rows


class _Rules:
    """The rules so far, with an index by pair."""

    def __init__(self, vocabulary_size: int, size: int, part: int, whole: int) -> None:
        self.part, self.whole = part, whole
        self.vocabulary_size, self.known = vocabulary_size, 0
        # every rule shortens the sequence by a symbol at least; untouched memory is never allocated
        self.left, self.right = np.empty(size, np.uint32), np.empty(size, np.uint32)
        self.index = np.zeros(1 << 12, np.uint32)
        self.round_offsets = [0]

    def add(self, new: Int64) -> tuple[Int64, int]:
        """Make room in the index for new rules, whose numbers are given by task.

        Returns the number of each task's first one, then of all rules; and the first rule that is not in the index.
        """
        firsts = self.known + running_sum(new)
        first, self.known = self.known, int(firsts[-1])
        self.round_offsets.append(self.known)
        if 3 * self.known > 2 * len(self.index):
            del self.index  # frees it before there is a new one
            first, self.index = 0, np.zeros(1 << (3 * self.known // 2).bit_length(), np.uint32)
        return firsts, first

    def for_kernels(self) -> rounds.Rules:
        """Return the rules in the form for kernels."""
        return rounds.Rules(self.left, self.right, self.index, self.part, self.whole)

    def arrays(self) -> tuple[UInt32, UInt32]:
        """Return the left and right symbols by rule."""
        return self.left[: self.known].copy(), self.right[: self.known].copy()


def _most_tasks() -> int:
    return 1 if thread_count() == 1 else max(4 * thread_count(), 8)


FEWEST_TO_COPY = 4
"""Threads from which on the sequence is rewritten to other memory: then no gaps are left to be closed."""

MOST_BITS = 12
"""Buckets are doubled up to this many bits if pairs' keys then need 32 bits only."""


@dataclass(frozen=True)
class _WorkSpace:
    """Memory of all rounds: fresh pages would cost more than the work. Untouched memory is never allocated."""

    items: UInt64
    """Items of 64 bits, or memory for a sequence, which items of 32 bits are in."""
    tasks: int
    """Most tasks of a step."""
    classes: UInt8
    """By item: the class of its row's weight; empty if all weights are 1."""
    table: UInt64
    """Entries of the pairs that occur more than once."""
    rules: UInt32
    """By entry: its rule's symbol."""
    chosen: UInt32
    """Entries of selected positions, which are at most every other position."""

    @classmethod
    def of(cls, size: int, alive: int, weighted: bool) -> _WorkSpace:
        """Allocate what a sequence takes."""
        entries, tasks = (alive if weighted else alive // 2) + (1 << MOST_BITS), _most_tasks()
        return cls(
            np.empty(size, np.uint64),
            tasks,
            np.empty(size if weighted else 0, np.uint8),
            np.empty(counting.FIELDS * entries, np.uint64),
            np.empty(entries, np.uint32),
            np.empty(4 * ((size + 7) // 8 + tasks) + counting.AHEAD, np.uint32),
        )

    def tasks_of(self, positions: int) -> int:
        """Return the number of tasks for a pass: more than threads, as alive positions are unevenly distributed."""
        return max(1, min(self.tasks, positions // POSITIONS_PER_TASK))


def _split(alive: int, highest: int) -> counting.Split:
    """Split pairs so that the keys of a bucket's pairs are in a core's cache, and of 32 bits if they can be."""
    bits = max(0, min(alive // POSITIONS_PER_BUCKET, counting.BUCKETS).bit_length() - 1)
    more = 2 * highest.bit_length() - 32
    if more <= min(MOST_BITS, alive.bit_length() - 8):
        bits = max(bits, more)
    return counting.Split.of(highest, bits)


def _in_pairs(symbols: UInt32) -> UInt64:
    """Return memory of a sequence as numbers of 64 bits."""
    aligned = symbols[symbols.ctypes.data % 8 // 4 :]
    return aligned[: len(aligned) // 2 * 2].view(np.uint64)


def _copy(symbols: UInt32, to: UInt32) -> None:
    map_parallel(lambda own: np.copyto(to[slice(*own)], symbols[slice(*own)]), even_chunks(len(symbols)))


class _Round:
    """The pairs of one round, and the sequence at its start."""

    def __init__(
        self, here: Positions, spare: Positions, size: int, alive: int, split: counting.Split, space: _WorkSpace
    ) -> None:
        self.here, self.spare, self.size, self.alive = here, spare, size, alive
        self.space, self.split = space, split
        blocks = (size + 7) // 8  # eight positions at a time, so that dead ranges cost an eighth
        shares = min(space.tasks_of(max(alive, size // 4)), blocks)
        self.shares = np.arange(shares + 1) * blocks // shares
        """Edges of ranges of blocks, one per task."""
        self.tasks = space.tasks_of(alive)
        list_bits = min(max(alive.bit_length() - POSITIONS_PER_LIST, 0), MOST_LIST_BITS)
        self.shift = max(size.bit_length() - list_bits, 0)
        self.lists = Buckets.room(self.tasks, 1 << list_bits)
        buckets = 1 << (63 - int(split.shift))
        self.buckets = Buckets.room(shares, buckets)
        # neighbours are never selected both. Shares begin at the same places in every round, so that memory is reused
        room = -(-(len(space.chosen) - counting.AHEAD - 4 * space.tasks) // (4 * shares))
        self.chosen = rounds.Chosen(space.chosen, 4 * room, np.zeros(shares, np.int64))
        bases, free = np.zeros(buckets, np.uint64), np.zeros(1, np.uint64)
        self.pairs = rounds.Pairs(space.table, bases, free, space.rules, _in_pairs(spare.symbols))

    def find(self, rules: _Rules) -> tuple[Int64, bool]:
        """Find the pairs to replace.

        Returns the number of those without a rule, by task, and whether any position is selected at all.
        """
        items: NDArray[np.unsignedinteger] = self.space.items if self.split.key_bits > 32 else self.spare.symbols
        new, selected = np.zeros(self.tasks, np.int64), np.zeros(self.tasks, np.uint8)
        walk = (self.here, self.size, self.shares, self.split, self.buckets, items, self.spare.classes)
        listing = (self.lists, self.shift, rules.for_kernels(), rules.vocabulary_size, new, selected)
        bits = (FEWEST_ENTRY_BITS, MOST_ENTRY_BITS)
        share_tasks(
            lambda progress: rounds.find_pairs(progress, *walk, bits, self.tasks, self.pairs, self.chosen, *listing),
            rounds.FIND_STEPS,
            1 + (self.alive + self.size // 16) // POSITIONS_PER_THREAD,
        )
        return new, bool(selected.any())

    @property
    def replaced(self) -> int:
        """The number of pairs to replace."""
        return int(self.lists.edges[-1])

    def replace(self, rules: _Rules, new: Int64) -> tuple[int, int, Positions]:
        """Make the new rules and rewrite; return the new size, the number of alive positions, and where they are.

        Few threads rewrite each share in place, then close the gaps: that takes less memory.
        """
        many = len(self.shares) - 1
        is_apart = many > 1 and thread_count() >= FEWEST_TO_COPY
        made = self.spare if is_apart else self.here
        firsts, unindexed = rules.add(new)
        tasks = len(even_chunks(rules.known - unindexed, FEWEST_TO_SPREAD, 2))
        ends, written = np.zeros((many, 3), np.int64), np.zeros((many, 4), np.int64)
        found = (self.here, self.size, self.shares, self.pairs, self.chosen, self.lists)
        numbering = (rules.for_kernels(), rules.vocabulary_size, firsts, unindexed, tasks)
        stalled = self.replaced == 0
        share_tasks(
            lambda progress: rounds.replace_pairs(progress, *found, *numbering, stalled, made, is_apart, ends, written),
            rounds.REPLACE_STEPS,
            1 + self.size // 8 // POSITIONS_PER_THREAD,
        )
        symbols, state = made.symbols, made.state
        size = alive = 0
        for first, kept, alive_here, starts_new in written.tolist():
            if size > 0 and kept > 0:  # the pair across the seam
                if symbols[first] == SEPARATOR:
                    alive -= int(state[size - 1] != counting.DEAD)
                    state[size - 1] = counting.DEAD
                elif starts_new and symbols[size - 1] != SEPARATOR and state[size - 1] == counting.DEAD:
                    state[size - 1] = counting.ALIVE
                    alive += 1
            if size != first and kept > 0:
                for array in made if len(made.classes) else made[:2]:
                    array[size : size + kept] = array[first : first + kept]
            size += kept
            alive += alive_here
        return size, alive, made
