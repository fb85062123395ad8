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
  may fit better. Without this bound log files take 8 % more symbols than with exact RePair
  (``benchmarks/construction.py``).
- Runs of one symbol are split from their start, and a pair is a rule only once: a row's symbols depend only on its
  words and the pairs' counts, so equal rows of a grammar get equal symbols, and rounds see them once, with a weight.
- Lines: where paragraphs or lines repeat, the first rounds take each of them as a row, and see equal ones once
  (:mod:`polars_tadoc.kernels.repair.lines.repeated_lines`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from polars_tadoc.config import thread_count
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.repair import batch_repair_cpu as kernels
from polars_tadoc.kernels.repair import equal_rows_cpu as copies
from polars_tadoc.kernels.repair import pairs_cpu as counting
from polars_tadoc.kernels.repair.lines.repeated_lines import INNER_ROUNDS, RepeatedLines, inner_share, row_starts
from polars_tadoc.kernels.repair.rounds import region_cpu as region
from polars_tadoc.kernels.repair.rounds import rounds_cpu as rounds
from polars_tadoc.kernels.repair.rounds.rounds_cpu import Positions
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.arrow_memory import drop_pages, touched_in_part
from polars_tadoc.runtime.free_memory import trim_heap
from polars_tadoc.runtime.parallel import even_chunks, map_parallel, weighted_chunks
from polars_tadoc.runtime.process.shared_tasks import share_tasks
from polars_tadoc.runtime.scratch import HUGE_PAGE, pages

POSITIONS_PER_BUCKET = 1 << 15
"""Positions per additional bucket of pairs."""

MIN_SAVED = 1 / 16
"""Minimum share of positions in rows that equal others for treating each row once."""

FEWEST_ENTRY_BITS, MOST_ENTRY_BITS = 1, 28
"""Bits of an entry in an item; a bucket with more repeated pairs needs billions of positions."""

POSITIONS_PER_TASK = 1 << 15
"""Minimum positions per task; a quarter with many threads, which would wait for the longest."""

POSITIONS_PER_THREAD = 1 << 14
"""Positions for each additional thread of a pass: threads begin in turn, 0.1 ms apart."""

INDEX_SHIFT = 3
"""The rules' index begins with a place for each 4 to 8 symbols: growing it takes all threads' time."""

FEWEST_TO_SPREAD = 1 << 12
"""Minimum new rules of a round that several threads add to the index."""

SPARSE, FEWEST_SPARSE = 1 << 4, 1 << 15
"""Rounds run over regions only with at least this many positions for each alive one, and this many in all."""

MARGIN = 16
"""Symbols of a region before and after an alive pair, and maximum rounds until regions are listed again."""

LARGE = 1 << 20
"""Symbols from which on freed memory is returned before the rounds."""

NO_LIMIT = 1 << 62
"""More rounds than there are."""

MOST_ROUNDS = 64
"""Most rounds of a call of machine code."""

WORK = 1 << 22
"""Alive positions per thread after which such a call returns, some 0.1 seconds: to tell how far the rounds are."""


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
    starts: Int64 | None = None,
) -> BinaryRules:
    """Run rounds until no pair repeats; ``sequence`` is overwritten, and may become the result's.

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
    starts
        The first position of each row, and the end of the last, if known.

    """
    starts = row_starts(sequence) if starts is None else starts
    equal = EqualRows.of(sequence, starts)
    starts, classes = equal.drop_copies(sequence, starts)
    kept = int(starts[-1])
    rules = _Rules(vocabulary_size, kept, part, whole)
    split = RepeatedLines.split(sequence[:kept], starts, classes) if has_marks else None
    del starts
    if split is not None:
        lines, distinct, weights = split
        rules.part, rules.whole = inner_share(part, whole)
        inside = _run_rounds(distinct, len(distinct), weights, rules, on_round, INNER_ROUNDS)
        rules.part, rules.whole = part, whole
        kept, classes = lines.join(inside, sequence)
        del split, lines, distinct, weights, inside
    if kept >= LARGE and thread_count() < FEWEST_TO_COPY:
        trim_heap()  # hashes and places of rows
        drop_pages(sequence[kept:])
    left = _run_rounds(sequence, kept, classes, rules, on_round)
    if left.ctypes.data != sequence.ctypes.data:
        _copy(left, sequence[: len(left)])
        left = sequence[: len(left)]
    # the rounds' work space is free again
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
    sparse = SPARSE if size >= FEWEST_SPARSE else 0
    while rounds.goes_on and rounds.number < most:
        if sparse and rounds.alive < rounds.size // sparse:
            rounds.run_regions(most)
        else:
            rounds.run(most - rounds.number, sparse)
    return rounds.here.symbols[: rounds.size]


def _states(size: int) -> UInt8:
    count = (size + 23) // 8 * 8  # at least eight dead positions follow the last
    return pages(count) if count >= HUGE_PAGE else np.zeros(count, np.uint8)


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
        self._space = space or _WorkSpace.of(size, alive, self._is_weighted, rules.vocabulary_size + rules.known)
        self._spare = Positions(
            self._space.items.view(np.uint32)[:size], np.empty_like(here.state), self._space.classes
        )

    @property
    def goes_on(self) -> bool:
        """Whether there is another round."""
        return not self.ends and self.alive > (not self._is_weighted)

    def run(self, most: int, sparse: int = 0) -> None:
        """Run rounds in one call of machine code.

        Parameters
        ----------
        most
            How many, if it does not return before.
        sparse
            It returns before a round with at least this many positions for each alive one; 0: before none.

        """
        sizing, rules, most = self._space.sizing, self.rules, min(most, MOST_ROUNDS)
        self.on_round(self.number, self.alive)
        is_wide = int(region.split_of(self.alive, rules.vocabulary_size + rules.known, sizing).key_bits) > 32
        if is_wide and self.here.symbols is not self._sequence:  # items need the memory
            _copy(self.here.symbols[: self.size], self._sequence)
            self._spare = self._spare._replace(symbols=self.here.symbols)
            self.here = self.here._replace(symbols=self._sequence)
        both, room = (self.here, self._spare), self._space.room
        items = (self._space.items,) * 2 if is_wide else (self._spare.symbols, self.here.symbols)
        listed = (_in_pairs(self._spare.symbols), _in_pairs(self.here.symbols))
        threads = int(region.threads_of(self.size, self.alive, sizing))
        limits = region.Limits(int(not self._is_weighted), sparse, threads, WORK * sizing.threads)
        own = [self.size, self.alive, 0, rules.known, self.has_stalled, region.RUNS, 0, 0, 0]
        room.free[0], resumes = 0, False
        while True:
            record = np.zeros((most + 1, region.FIELDS), np.int64)
            record[0] = own
            given = (record, *both, items, listed, room, rules.for_kernels(), rules.vocabulary_size)
            run = partial(_run, (*given, sizing, limits, resumes))
            share_tasks(run, region.STEPS * most, threads)
            last = 0
            while record[last, region.STATE] == region.RUNS:
                last += 1
                self._begin(record[last], both)
                if record[last, region.STATE] != region.WAITS:
                    self.number += 1
                    self.on_round(self.number, self.alive)
            if record[last, region.STATE] != region.GROWS:
                break
            rules.grow(int(record[last, region.AFTER]))
            own, most, resumes = record[last], most - last, True
            own[region.UNINDEXED], own[region.STATE] = 0, region.RUNS
        self.number += 1
        self.ends = bool(record[last, region.STATE] == region.ENDS)

    def _begin(self, record: Int64, both: tuple[Positions, Positions]) -> None:
        """Set what the round of a record begins with."""
        self.size, self.alive, at, known, has_stalled = record[: region.STALLED + 1].tolist()
        self.here, self._spare = both[at], both[1 - at]
        self.rules.known, self.has_stalled = known, bool(has_stalled)
        self.rules.round_offsets.append(known)

    def run_regions(self, most: int) -> None:
        """Run rounds, up to number ``most``, over the few regions that they can change, then put these back.

        A round changes no more than the symbols beside alive pairs, so it takes ``MARGIN`` rounds to reach a region's
        ends. Runs of one symbol are split from their start, so regions have whole runs.
        """
        (symbols, state, classes), size = self.here, self.size
        is_apart = self._space.sizing.is_apart
        starts, stops = _list_regions(symbols[:size], state, self.alive)
        before = running_sum(stops - starts + 1)
        own_size = int(before[-1])
        own = Positions(
            np.empty(own_size, np.uint32), _states(own_size), np.empty(own_size if self._is_weighted else 0, np.uint8)
        )

        def take(chunk: tuple[int, int]) -> None:
            some, target = slice(*chunk), slice(*before[[*chunk]])
            kernels.take_regions(symbols, starts[some], stops[some], SEPARATOR, own.symbols[target])
            kernels.take_regions(state, starts[some], stops[some], counting.DEAD, own.state[target])
            if self._is_weighted:
                kernels.take_regions(classes, starts[some], stops[some], 0, own.classes[target])

        map_parallel(take, weighted_chunks(before))
        is_unused = self.here.symbols is self._sequence and classes is not self._space.classes
        is_unused = is_unused and own_size < len(self._space.items) and not is_apart
        space = self._space if is_unused else None
        if is_unused:
            drop_pages(self._space.items)  # the regions need few
        inner = _Rounds(own, own_size, self.alive, self.rules, self.on_round, space)
        inner.number, inner.has_stalled = self.number, self.has_stalled
        most = min(self.number + MARGIN, most)
        while inner.goes_on and inner.number < most:
            inner.run(most - inner.number)
        self._put(inner, starts, stops, before)
        self.number, self.has_stalled, self.ends, self.alive = inner.number, inner.has_stalled, inner.ends, inner.alive

    def _put(self, inner: _Rounds, starts: Int64, stops: Int64, before: Int64) -> None:
        """Put rewritten regions in place of the original ones: by many threads into other memory."""
        is_apart, size, here = self._space.sizing.is_apart, self.size, self.here
        made, regions = self._spare if is_apart else here, len(starts)
        chunks, inside = [(0, regions)], [0]
        if is_apart:
            chunks = [(first, stop) for first, stop in weighted_chunks(np.append(starts, size)) if first < stop]
            rows = map_parallel(lambda own: kernels.count_ends(here.symbols, *own, starts, stops), chunks)
            inside = row_starts(inner.here.symbols[: inner.size])[np.cumsum([0, *rows])].tolist()

        def put(k: int) -> int:
            (first, stop), taken = chunks[k], inside[k]
            to, source = int(starts[first] - before[first] + taken), int(starts[first])
            if k == 0 and is_apart:
                to = source = 0
            end = int(starts[stop]) if stop < regions else size
            some = (starts[first:stop], stops[first:stop], source, end)
            return int(kernels.put_regions(*here, *some, *inner.here, taken, *made, to))

        self.size = map_parallel(put, range(len(chunks)))[-1]
        if is_apart:
            self.here, self._spare = made, here
        self.here.state[self.size : (self.size + 15) // 8 * 8] = counting.DEAD


@dataclass(frozen=True)
class EqualRows:
    """Rows that occur several times, of which the rounds see one, with a weight."""

    first: Int64
    """By row: the first row that equals it."""
    classes: UInt8
    """By row: the class of its weight, or ``DROPPED``; empty if too few rows are equal."""

    @classmethod
    def of(cls, sequence: UInt32, starts: Int64) -> EqualRows:
        """Find the equal rows of a sequence; ``starts`` has the first position of each, and the end of the last."""
        rows = len(starts) - 1
        first, classes = np.arange(rows), np.zeros(rows, np.uint8)
        chunks = weighted_chunks(starts)
        hashes = np.empty(rows, np.uint64)
        map_parallel(lambda c: copies.hash_rows(sequence, starts[c[0] : c[1] + 1], hashes[c[0] : c[1]]), chunks)
        copies.list_first(hashes, first)
        map_parallel(lambda c: copies.confirm(sequence, starts, first, *c), chunks)
        copies.classify(first, classes)
        saved = int(np.diff(starts)[classes == copies.DROPPED].sum())
        return cls(first, classes if saved > MIN_SAVED * len(sequence) else classes[:0])

    def drop_copies(self, sequence: UInt32, starts: Int64) -> tuple[Int64, UInt8]:
        """Drop the rows that others represent; return the others' starts and the classes by position, if there are any.

        ``starts`` and the result have the end of the last row, too.
        """
        if len(self.classes) == 0:
            return starts, self.classes
        is_kept = self.classes != copies.DROPPED
        before = running_sum(np.diff(starts) * is_kept)
        size, kept_starts = int(before[-1]), np.append(before[:-1][is_kept], before[-1])
        classes = np.empty(size, np.uint8)
        given = sequence, starts, self.classes
        if thread_count() < FEWEST_TO_COPY:
            copies.keep_rows(*given, 0, len(self.classes), 0, sequence, classes)
            return kept_starts, classes
        kept = np.empty(size, np.uint32)
        map_parallel(lambda own: copies.keep_rows(*given, *own, before[own[0]], kept, classes), weighted_chunks(before))
        _copy(kept, sequence)
        return kept_starts, classes

    def restore(self, sequence: UInt32) -> UInt32:
        """Return the symbols of all rows: in other memory if any rows are equal."""
        if len(self.classes) == 0:
            return sequence
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


def _list_regions(symbols: UInt32, state: UInt8, alive: int) -> tuple[Int64, Int64]:
    """List the regions around alive positions."""
    size, blocks = len(symbols), state.view(np.uint64)

    def of(own: tuple[int, int]) -> tuple[Int64, Int64]:
        starts, stops = np.empty((2, min(alive, 8 * (own[1] - own[0]))), np.int64)
        many = int(kernels.list_regions(symbols, state, blocks, *own, size, MARGIN, starts, stops))
        return starts[:many], stops[:many]

    found = [own for own in map_parallel(of, even_chunks((size + 7) // 8)) if len(own[0])]
    for k in range(1, len(found)):
        stops, starts = found[k - 1][1], found[k][0]
        if starts[0] <= stops[-1]:  # as within a chunk
            starts[0] = found[k - 1][0][-1]
            found[k - 1] = found[k - 1][0][:-1], stops[:-1]
    return np.concatenate([own[0] for own in found]), np.concatenate([own[1] for own in found])


class _Rules:
    """The rules so far, with an index by pair."""

    def __init__(self, vocabulary_size: int, size: int, part: int, whole: int) -> None:
        self.part, self.whole = part, whole
        self.vocabulary_size, self.known = vocabulary_size, 0
        # every rule shortens the sequence by a symbol at least; untouched memory is never allocated
        self.left, self.right = touched_in_part(size, np.uint32), touched_in_part(size, np.uint32)
        self.index = _index(max(12, (size >> INDEX_SHIFT).bit_length()))
        self.round_offsets = [0]

    def grow(self, known: int) -> None:
        """Make an empty index for as many rules."""
        del self.index  # frees it before there is a new one
        self.index = _index((3 * known // 2).bit_length())

    def for_kernels(self) -> rounds.Rules:
        """Return the rules in the form for kernels."""
        return rounds.Rules(self.left, self.right, self.index, self.part, self.whole)

    def arrays(self) -> tuple[UInt32, UInt32]:
        """Return the left and right symbols by rule: the rest of their memory was never touched."""
        return self.left[: self.known], self.right[: self.known]


def _index(bits: int) -> UInt32:
    return pages(4 << bits).view(np.uint32)


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
    sizing: region.Sizing
    room: region.Room
    classes: UInt8
    """By item: the class of its row's weight; empty if all weights are 1."""

    @classmethod
    def of(cls, size: int, alive: int, weighted: bool, symbols: int) -> _WorkSpace:
        """Allocate what a sequence takes."""
        threads, entries = thread_count(), (alive if weighted else alive // 2) + (1 << MOST_BITS)
        is_apart = threads >= FEWEST_TO_COPY
        per_task = max(1, POSITIONS_PER_TASK // 4) if is_apart else POSITIONS_PER_TASK
        sizing = region.Sizing(
            tasks=max(1, min(_most_tasks(), size // per_task)),
            threads=threads,
            per_task=per_task,
            per_thread=POSITIONS_PER_THREAD,
            per_bucket=POSITIONS_PER_BUCKET,
            buckets=counting.BUCKETS,
            most_bits=MOST_BITS,
            entry_bits=(FEWEST_ENTRY_BITS, MOST_ENTRY_BITS),
            to_spread=FEWEST_TO_SPREAD,
            is_apart=is_apart,
        )
        table, rules = touched_in_part(entries, np.uint64), touched_in_part(entries, np.uint32)
        # entries of selected positions, which are at most every other position
        chosen = touched_in_part(4 * ((size + 7) // 8 + sizing.tasks) + counting.AHEAD, np.uint32)
        room = region.Room.of(sizing, table, rules, chosen)
        classes = np.empty(size if weighted else 0, np.uint8)
        touched = 8 if int(region.split_of(alive, symbols, sizing).key_bits) > 32 else 4
        items = pages(8 * size, touched * size).view(np.uint64) if size >= LARGE else np.empty(size, np.uint64)
        return cls(items, sizing, room, classes)


def _run(given: tuple[Any, ...], progress: Int64) -> None:
    region.run_rounds(progress, *given)


def _in_pairs(symbols: UInt32) -> UInt64:
    """Return memory of a sequence as numbers of 64 bits."""
    aligned = symbols[symbols.ctypes.data % 8 // 4 :]
    return aligned[: len(aligned) // 2 * 2].view(np.uint64)


def _copy(symbols: UInt32, to: UInt32) -> None:
    map_parallel(lambda own: np.copyto(to[slice(*own)], symbols[slice(*own)]), even_chunks(len(symbols)))
