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
- Runs of one symbol are split from their start, and a pair is a rule only once: a row's symbols depend only on its
words
    and the pairs' counts, so equal rows of a grammar get equal symbols, and rounds see them once, with a weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from polars_tadoc.config import thread_count
from polars_tadoc.kernels.host.records.sort_keys import sort_with
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.repair import batch_repair_cpu as kernels
from polars_tadoc.kernels.repair import equal_rows_cpu as copies
from polars_tadoc.kernels.repair import pairs_cpu as counting
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.parallel import even_chunks, map_parallel, weighted_chunks

POSITIONS_PER_BUCKET = 1 << 15
"""Positions per additional bucket of pairs."""

MIN_SAVED = 1 / 16
"""Minimum share of positions in rows that equal others for treating each row once."""

FEWEST_ENTRY_BITS, MOST_ENTRY_BITS = 1, 28
"""Bits of an entry in an item; a bucket with more repeated pairs needs billions of positions."""

POSITIONS_PER_TASK = 1 << 17
"""Minimum positions per task."""

FEWEST_TO_SPREAD = 1 << 12
"""Minimum new rules of a round that several threads add to the index."""

SPARSE, FEWEST_SPARSE = 1 << 9, 1 << 15
"""Rounds run over regions only with at least this many positions for each alive one, and this many in all."""

MARGIN = 16
"""Symbols of a region before and after an alive pair, and maximum rounds until regions are listed again."""

SORTED = 1 << 16
"""Minimum new rules of a round that all threads sort, by buckets."""

Result = TypeVar("Result")


class BinaryRules(NamedTuple):
    """Rules of two symbols each, rule k being symbol ``vocabulary_size + k``, and the remaining sequence."""

    left: UInt32
    right: UInt32
    sequence: UInt32
    """Symbols of all rows, ``SEPARATOR`` after each row."""


def build(
    sequence: UInt32,
    vocabulary_size: int,
    on_round: Callable[[int, int], None] = lambda round_, alive: None,
    part: int = 1,
    whole: int = 2,
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

    """
    equal = EqualRows.of(sequence)
    kept, classes = equal.drop_copies(sequence)
    rules = _Rules(vocabulary_size, kept, part, whole)
    left = _run_rounds(sequence, kept, classes, rules, on_round)
    # the rounds' other work space is free again
    return BinaryRules(*rules.arrays(), equal.restore(left))


def _run_rounds(
    sequence: UInt32, size: int, classes: UInt8, rules: _Rules, on_round: Callable[[int, int], None]
) -> UInt32:
    """Fill ``rules``, rewriting the first ``size`` symbols; return the rewritten ones."""
    state = _states(size)
    alive = sum(map_parallel(lambda c: kernels.mark_alive(sequence[:size], state, *c), even_chunks(size)))
    rounds = _Rounds(_Positions(sequence, state, classes), size, alive, rules, on_round)
    while rounds.goes_on:
        if size >= FEWEST_SPARSE and rounds.alive < rounds.size // SPARSE:
            rounds.run_regions()
        else:
            rounds.run()
    return rounds.here.symbols[: rounds.size]


def _states(size: int) -> UInt8:
    return np.zeros((size + 23) // 8 * 8, np.uint8)  # at least eight dead positions follow the last


class _Rounds:
    """Rounds over a sequence, which they overwrite."""

    def __init__(
        self,
        here: _Positions,
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
        symbols = self._space.items.view(np.uint32)
        self._spare = _Positions(symbols, np.empty_like(here.state), self._space.classes)

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
        pairs.count()
        pairs.select()
        replaced, any_selected = pairs.make_rules(self.rules)
        stalled = replaced == 0
        self.ends = stalled and (self.has_stalled or not any_selected)
        if self.ends:
            return
        self.has_stalled = stalled
        before = self.here
        self.size, self.alive, self.here = pairs.rewrite(stalled)
        self._spare = before if self.here is self._spare else self._spare
        self.here.state[self.size : (self.size + 15) // 8 * 8] = counting.DEAD

    def run_regions(self) -> None:
        """Run rounds over the few regions that they can change, then put these back: the rest need not be read.

        A round changes no more than the symbols beside alive pairs, so it takes ``MARGIN`` rounds to reach a region's
        ends. Runs of one symbol are split from their start, so regions have whole runs.
        """
        (symbols, state, classes), size = self.here, self.size
        starts, stops = np.empty((2, self.alive), np.int64)
        blocks = state.view(np.uint64)
        regions = int(kernels.list_regions(symbols[:size], state, blocks, size, MARGIN, starts, stops))
        starts, stops = starts[:regions], stops[:regions]
        own_size = int((stops - starts).sum()) + regions
        own = _Positions(
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
        while inner.goes_on and inner.number < self.number + MARGIN:
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
        starts = _row_starts(sequence)
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
        kept = int(np.diff(self.starts)[self.classes != copies.DROPPED].sum())
        classes = np.empty(kept, np.uint8)
        return int(copies.keep_rows(sequence, self.starts, self.classes, classes)), classes

    def restore(self, sequence: UInt32) -> UInt32:
        """Return the symbols of all rows."""
        if len(self.classes) == 0:
            return sequence.copy()
        starts = _row_starts(sequence)
        kept = np.cumsum(self.classes != copies.DROPPED) - 1
        sources = kept[self.first]
        ends = np.concatenate([[0], np.cumsum(np.diff(starts)[sources])])
        rows = np.empty(int(ends[-1]), np.uint32)
        chunks = weighted_chunks(ends)
        map_parallel(
            lambda c: copies.copy_rows(sequence, starts[sources[c[0] : c[1]]], ends[c[0] : c[1] + 1], rows), chunks
        )
        return rows


def _row_starts(sequence: UInt32) -> Int64:
    """Return the first position of each row, and the end of the last."""
    ends = map_parallel(lambda c: np.flatnonzero(sequence[slice(*c)] == SEPARATOR) + c[0], even_chunks(len(sequence)))
    return np.concatenate([[-1], *ends]) + 1


class _Rules:
    """The rules so far, with an index by pair."""

    def __init__(self, vocabulary_size: int, size: int, part: int, whole: int) -> None:
        self.part, self.whole = part, whole
        self.vocabulary_size, self.known = vocabulary_size, 0
        # every rule shortens the sequence by a symbol at least; untouched memory is never allocated
        self.left, self.right = np.empty(size, np.uint32), np.empty(size, np.uint32)
        self.index = np.zeros(1 << 12, np.uint32)

    def assign(self, sequence: UInt32, places: UInt64, symbols: UInt32) -> None:
        """Assign each listed table entry its rule's symbol; ``places`` as of ``list_rules``, ascending."""
        chunks = even_chunks(len(places))
        found = np.empty(len(places), np.uint32)

        def find(own: tuple[int, int]) -> int:
            listed = slice(*own)
            return int(kernels.find_rules(sequence, places[listed], self.left, self.right, self.index, found[listed]))

        new = map_parallel(find, chunks)
        firsts = self.known + running_sum(np.array(new, np.int64))

        def assign(k: int) -> None:
            listed, before = slice(*chunks[k]), int(firsts[k])
            rest = (self.vocabulary_size, before, symbols, self.left, self.right)
            kernels.assign_rules(sequence, places[listed], found[listed], *rest)

        map_parallel(assign, range(len(chunks)))
        first, self.known = self.known, self.known + sum(new)
        if 2 * self.known > len(self.index):  # so that no segment is ever full
            del self.index  # frees it before there is a new one
            first, self.index = 0, np.zeros(1 << (2 * self.known).bit_length(), np.uint32)
        self._add(first)

    def _add(self, first: int) -> None:
        """Add the rules from number ``first`` on to the index."""
        segments = kernels.SEGMENTS
        parts = even_chunks(segments, 1) if self.known - first >= FEWEST_TO_SPREAD else [(0, segments)]
        map_parallel(lambda own: kernels.index_rules(self.left, self.right, first, self.known, self.index, *own), parts)

    def arrays(self) -> tuple[UInt32, UInt32]:
        """Return the left and right symbols by rule."""
        return self.left[: self.known].copy(), self.right[: self.known].copy()


def _most_tasks() -> int:
    return 1 if thread_count() == 1 else max(2 * thread_count(), 8)


def _tasks(positions: int) -> int:
    """Return the number of tasks for a pass: more than threads, as alive positions are unevenly distributed."""
    return max(1, min(_most_tasks(), positions // POSITIONS_PER_TASK))


FEWEST_TO_COPY = 4
"""Threads from which on the sequence is rewritten to other memory: then no gaps are left to be closed."""

MOST_BITS = 12
"""Buckets are doubled up to this many bits if pairs' keys then need 32 bits only."""


@dataclass(frozen=True)
class _WorkSpace:
    """Memory of all rounds: fresh pages would cost more than the work. Untouched memory is never allocated."""

    items: UInt64
    """Items of 64 bits; those of 32 bits are in memory for the sequence."""
    places: UInt64
    """By entry; may be the items' memory, which are not needed any more then."""
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
        entries = (alive if weighted else alive // 2) + (1 << MOST_BITS)
        items = np.empty(max(size, entries) + 1, np.uint64)
        return cls(
            items,
            items if thread_count() < FEWEST_TO_COPY else np.empty(entries + 1, np.uint64),
            np.empty(size if weighted else 0, np.uint8),
            np.empty(counting.FIELDS * entries, np.uint64),
            np.empty(entries, np.uint32),
            np.empty(4 * ((size + 7) // 8 + _most_tasks()) + counting.AHEAD, np.uint32),
        )


class _Positions(NamedTuple):
    """The sequence, or memory for it."""

    symbols: UInt32
    state: UInt8
    classes: UInt8
    """Class of the weight of each position's row; empty if all weights are 1."""


def _split(alive: int, highest: int) -> counting.Split:
    """Split pairs so that the keys of a bucket's pairs are in a core's cache, and of 32 bits if they can be."""
    bits = max(0, min(alive // POSITIONS_PER_BUCKET, counting.BUCKETS).bit_length() - 1)
    more = 2 * highest.bit_length() - 32
    if more <= min(MOST_BITS, alive.bit_length() - 8):
        bits = max(bits, more)
    return counting.Split.of(highest, bits)


def _copy(symbols: UInt32, to: UInt32) -> None:
    map_parallel(lambda own: np.copyto(to[slice(*own)], symbols[slice(*own)]), even_chunks(len(symbols)))


class _Round:
    """The pairs of one round, and the sequence at its start."""

    def __init__(
        self, here: _Positions, spare: _Positions, size: int, alive: int, split: counting.Split, space: _WorkSpace
    ) -> None:
        self.spare, self.space, self.split = spare, space, split
        self.here = here
        self.symbols, self.state, self.classes = symbols, state, _ = here.symbols[:size], here.state, here.classes
        # eight positions at a time, so that dead ranges cost an eighth
        self.blocks = state.view(np.uint64)[: (len(symbols) + 7) // 8]
        shares = min(_tasks(max(alive, len(symbols) // 4)), len(self.blocks))
        self.shares = list(pairwise(len(self.blocks) * i // shares for i in range(shares + 1)))
        """Ranges of blocks, one per task."""
        self.groups = _tasks(alive)
        self.buckets = 1 << (63 - int(split.shift))
        self.items: NDArray[np.unsignedinteger] = space.items if split.key_bits > 32 else spare.symbols
        """Of each alive position by bucket: its pair's key, then the pair's count and entry."""
        self.bases = np.zeros(self.buckets, np.uint64)
        """By bucket: its first entry."""
        self.entry_bits = self.entries = 0

    def _map(self, function: Callable[..., Result]) -> list[Result]:
        """Apply a function of a share's number and its range of blocks to all shares."""
        return map_parallel(lambda k: function(k, *self.shares[k]), range(len(self.shares)))

    def count(self) -> None:
        """Count pairs exactly."""
        walk, items, classes = (self.symbols, self.state, self.blocks), self.items, self.spare.classes
        written = (items, self.classes, classes)
        sizes = np.zeros((len(self.shares), self.buckets), np.int64)
        self._map(lambda k, first, stop: counting.measure(*walk, first, stop, self.split, sizes[k]))
        ends = np.cumsum(sizes.T.reshape(-1))
        self.starts = np.ascontiguousarray((ends - sizes.T.reshape(-1)).reshape(sizes.T.shape).T.astype(np.uint64))
        """By share and bucket."""
        self._map(lambda k, first, stop: counting.scatter(*walk, first, stop, self.split, self.starts[k], *written))
        edges = np.append(self.starts[0].astype(np.int64), ends[-1])
        self.entry_bits = min(max(int(np.diff(edges).max()).bit_length(), FEWEST_ENTRY_BITS), MOST_ENTRY_BITS)
        cuts = np.searchsorted(edges, np.arange(self.groups + 1) * ends[-1] // self.groups)
        cuts[0], cuts[-1] = 0, len(edges) - 1
        free = np.zeros(1, np.uint64)
        table = self.space.table

        def count(group: tuple[int, int]) -> None:
            first, stop = group
            own = (edges[first : stop + 1], self.entry_bits, table, free, self.bases[first:stop])
            counting.count(items, classes, *own)

        map_parallel(count, list(pairwise(cuts.tolist())))
        self.entries = int(free[0])

    def select(self) -> None:
        """Select the positions to replace."""
        space, shares = self.space, len(self.shares)
        # neighbours are never selected both. Shares begin at the same places in every round, so that memory is reused
        room = -(-(len(space.chosen) - counting.AHEAD - 4 * _most_tasks()) // (4 * shares))
        chosen = [space.chosen[4 * room * k :] for k in range(shares)]
        walk = (self.symbols, self.state, self.blocks, self.classes)
        entries = (self.entry_bits, self.bases, space.table)
        counts = self._map(
            lambda k, first, stop: kernels.select(
                *walk, first, stop, self.split, self.starts[k], self.items, *entries, chosen[k]
            )
        )
        self.chosen = [own[: count + counting.AHEAD] for own, count in zip(chosen, counts, strict=True)]
        """By share: the selected positions' entries, and some more items."""

    def make_rules(self, rules: _Rules) -> tuple[int, bool]:
        """Find or make the rules of the pairs to replace; new ones are numbered by first use.

        Returns the number of replaced pairs, and whether any position is selected at all.
        """
        own, table = self.space.rules[: self.entries], self.space.table
        places = self.space.places
        chunks = even_chunks(len(own), POSITIONS_PER_TASK)
        share = rules.part, rules.whole
        found = map_parallel(lambda chunk: kernels.list_rules(table, own, places, *chunk, *share), chunks)
        count = 0
        for (first, _), (many, _) in zip(chunks, found, strict=True):
            places[count : count + many] = places[first : first + many]
            count += many
        listed = places[:count]
        if count > SORTED:
            listed, _ = sort_with(listed, None)
        else:
            listed.sort()
        rules.assign(self.symbols, listed, own)
        return count, any(is_selected for _, is_selected in found)

    def _is_replaced(self, position: int, chosen: UInt32) -> bool:
        """Tell whether the pair at a position is replaced, which is its share's last selected one if it is selected."""
        if self.state[position] != counting.SELECTED:
            return False
        return bool(self.space.rules[chosen[-1 - counting.AHEAD]] != counting.NONE)

    def rewrite(self, stalled: bool) -> tuple[int, int, _Positions]:
        """Rewrite every share; return the new size, the number of alive positions, and where they are.

        Few threads rewrite each share in place, then close the gaps: that takes less memory.
        """
        state, rules, many = self.state, self.space.rules, len(self.shares)
        chunks = [(8 * first, min(8 * stop, len(self.symbols))) for first, stop in self.shares]
        consumed = [False] + [
            self._is_replaced(stop - 1, own) for (_, stop), own in zip(chunks[:-1], self.chosen, strict=False)
        ]
        ends = [
            stop - (stop - 2 >= first and self._is_replaced(stop - 2, own))
            for (first, stop), own in zip(chunks, self.chosen, strict=True)
        ]
        """Without the last symbols that are consumed: the places after them are other shares'."""
        is_apart = many > 1 and thread_count() >= FEWEST_TO_COPY
        made, to, most = self.here, [first for first, _ in chunks], [stop - first for first, stop in chunks]
        if is_apart:
            replaced = map_parallel(lambda own: kernels.count_replaced(own[: -counting.AHEAD], rules), self.chosen)
            lost = np.array(replaced) + np.array(consumed, np.int64) - np.array([*consumed[1:], False], np.int64)
            most = (np.array(most) - lost).tolist()
            made, to = self.spare, running_sum(np.array(most)).tolist()
        read = (self.symbols, state, self.blocks, self.classes)
        written = map_parallel(
            lambda k: kernels.rewrite(
                *read, self.chosen[k], rules, chunks[k][0], ends[k], consumed[k], stalled, *made, to[k], most[k]
            ),
            range(many),
        )
        symbols, state = made.symbols, made.state
        size = alive = 0
        moves = []
        last = 0
        for first, (kept, alive_here, starts_new) in zip(to, written, strict=False):
            if size > 0 and kept > 0:  # the pair across the seam
                if symbols[first] == SEPARATOR:
                    alive -= int(state[last] != counting.DEAD)
                    state[last] = counting.DEAD
                elif starts_new and symbols[last] != SEPARATOR and state[last] == counting.DEAD:
                    state[last] = counting.ALIVE
                    alive += 1
            if size != first and kept > 0:
                moves.append((first, size, kept))
            if kept > 0:
                last = first + kept - 1
            size += kept
            alive += alive_here
        for first, to_, length in moves:
            for array in (symbols, state, self.classes) if len(self.classes) else (symbols, state):
                array[to_ : to_ + length] = array[first : first + length]
        return size, alive, made
