"""Counts hashes: keeps them by bucket, and counts a bucket at a time in a table that fits a core's cache.

Most sequences of most texts occur once: tables of all of them would cost more memory, which the system must clear, than
the hashes themselves.

Indices are unsigned in kernels: indices that may be negative cost a comparison and a select at each use.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numba as nb
import numpy as np

from polars_tadoc.kernels.keys.key_order_cpu import Counted
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import polled_njit
from polars_tadoc.runtime.parallel import even_chunks, map_parallel
from polars_tadoc.runtime.scratch import scratch, scratch_zeros
from polars_tadoc.runtime.secret import first_secret

BUCKETS = 9
"""Bits of a hash that number its bucket."""

HELD = 1 << 24
"""Hashes that are kept until they are counted; at least twice as many as there are counted ones."""

FIRST_SLOTS = 8
"""Bits of the slots of a table at first."""

PART = 1 << 19
"""Hashes that a thread counts at a time: they need memory as if all were distinct, and it is kept for the next call."""

_ODD, _ODD_TOO = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
_K1, _K2 = np.uint64(_ODD), np.uint64(_ODD_TOO)
_BACK1, _BACK2 = np.uint64(pow(_ODD, -1, 1 << 64)), np.uint64(pow(_ODD_TOO, -1, 1 << 64))
_0, _1, _2, _32, _64 = (np.uint64(number) for number in (0, 1, 2, 32, 64))
_BUCKET_BITS, _BUCKET_SHIFT = np.uint64(BUCKETS), np.uint64(64 - BUCKETS)


@njit
def hashed(key: int) -> Any:
    """Spread a key over 64 bits, differently in each process; no two keys have the same hash."""
    h = (nb.uint64(key) ^ first_secret()) * _K1
    return (h ^ (h >> _32)) * _K2


@njit
def bucket_of(h: int) -> Any:
    """Return the bucket of a hash."""
    return nb.uint64(h) >> _BUCKET_SHIFT


@njit
def _unhashed(h: int) -> Any:
    key = nb.uint64(h) * _BACK2
    return (key ^ (key >> _32)) * _BACK1 ^ first_secret()


class Counts(NamedTuple):
    """Distinct hashes and their counts; those of a bucket are ``sizes[bucket]`` from ``starts[bucket]`` on."""

    hashes: UInt64
    counts: UInt64
    starts: Int64
    sizes: Int64

    @classmethod
    def none(cls) -> Counts:
        """Return no hashes."""
        nothing = np.zeros(1 << BUCKETS, np.int64)
        return cls(np.empty(0, np.uint64), np.empty(0, np.uint64), nothing, nothing)


@njit
def _grow(tables: UInt64, half: int, slot_bits: int) -> None:
    """Move the hashes of a table of ``slot_bits`` to one twice as large in the other half; the table is then empty."""
    room = nb.uint64(len(tables)) // _2
    own, other = nb.uint64(half) * room, (_1 - nb.uint64(half)) * room
    size = _1 << nb.uint64(slot_bits)
    shift, last = _64 - nb.uint64(slot_bits) - _1, _2 * size - _1
    for at in range(own, own + _2 * size, _2):
        if tables[at + _1] != _0:
            slot = tables[at] << _BUCKET_BITS >> shift
            while tables[other + _2 * slot + _1] != _0:
                slot = (slot + _1) & last
            tables[other + _2 * slot], tables[other + _2 * slot + _1] = tables[at], tables[at + _1]
            tables[at + _1] = _0


@njit
def _count_bucket(
    bucket: int, held: UInt64, offsets: Int64, blocks: int, before: Counts, tables: UInt64, half: int, slot_bits: int
) -> Any:
    """Count the hashes of a bucket in a table, which is empty; return its half of ``tables``, bits and distinct hashes.

    ``offsets`` are those of each bucket in each block of hashes that are held.
    """
    many = _0
    for block in range(nb.uint64(blocks + 1)):  # the last one: those that were counted before
        is_counted = block == nb.uint64(blocks)
        if is_counted:
            i = nb.uint64(before.starts[bucket])
            end = i + nb.uint64(before.sizes[bucket])
        else:
            i, end = nb.uint64(offsets[block, bucket]), nb.uint64(offsets[block, bucket + 1])
        while i < end:
            size = _1 << nb.uint64(slot_bits)
            most, shift, last = size // _2, _64 - nb.uint64(slot_bits), size - _1
            if many >= most:
                _grow(tables, half, slot_bits)
                half, slot_bits = 1 - half, slot_bits + 1
                continue
            base = nb.uint64(half) * (nb.uint64(len(tables)) // _2)
            stop = min(end, i + most - many)
            while i < stop:
                h = before.hashes[i] if is_counted else held[i]
                added = before.counts[i] if is_counted else _1
                slot = h << _BUCKET_BITS >> shift
                while True:
                    at = base + _2 * slot
                    count = tables[at + _1]
                    if count == _0 or tables[at] == h:
                        break
                    slot = (slot + _1) & last
                tables[at], tables[at + _1] = h, count + added
                many += nb.uint64(count == _0)
                i += _1
    return half, slot_bits, many


@njit
def _gather(tables: UInt64, base: int, slot_bits: int) -> None:
    """Move the hashes of a table to its first slots; no branch, as which slots are free is not predictable."""
    to = nb.uint64(base)
    for place in range(base, base + (_2 << nb.uint64(slot_bits)), _2):
        h, count = tables[place], tables[place + _1]
        tables[place + _1] = _0
        tables[to], tables[to + _1] = h, count
        to += _2 * nb.uint64(count != _0)


@polled_njit
def _add_buckets(
    held: UInt64,
    offsets: Int64,
    blocks: int,
    before: Counts,
    first: int,
    stop: int,
    tables: UInt64,
    hashes: UInt64,
    counts: UInt64,
    sizes: Int64,
) -> Any:
    """Count the hashes of buckets, and write them; return how many there are."""
    began, half, slot_bits, out = interrupts(), 0, FIRST_SLOTS, _0
    for bucket in range(first, stop):
        if interrupts() != began:
            return 0
        half, slot_bits, many = _count_bucket(bucket, held, offsets, blocks, before, tables, half, slot_bits)
        sizes[bucket] = nb.int64(many)
        base = nb.uint64(half) * (nb.uint64(len(tables)) // _2)
        _gather(tables, base, slot_bits)
        for place in range(base, base + _2 * many, _2):
            hashes[out], counts[out] = tables[place], tables[place + _1]
            tables[place + _1] = _0
            out += _1
    return nb.int64(out)


@polled_njit
def _read_buckets(
    held: UInt64,
    offsets: Int64,
    blocks: int,
    before: Counts,
    first: int,
    stop: int,
    tables: UInt64,
    rank: UInt32,
    n: int,
    width: int,
    is_pairs: bool,
    keeps_single: bool,
    keys: UInt64,
    counts: UInt64,
    singles: UInt64,
) -> tuple[int, int]:
    """Count the hashes of buckets; write keys of ranks, each of ``width`` bits, and counts.

    The lower rank of a pair comes first. Keys that occurred once are written to ``singles``, if they are to be kept.
    Returns how many of both. Each array has room for one more.
    """
    began, half, slot_bits = interrupts(), 0, FIRST_SLOTS
    out, out_once, many, wide = _0, _0, nb.uint64(n), nb.uint64(width)
    bits = _64 // many
    mask, below, keeps = ~_0 >> (_64 - bits), (_1 << wide) - _1, nb.uint64(keeps_single)
    for bucket in range(first, stop):
        if interrupts() != began:
            return 0, 0
        half, slot_bits, distinct = _count_bucket(bucket, held, offsets, blocks, before, tables, half, slot_bits)
        base = nb.uint64(half) * (nb.uint64(len(tables)) // _2)
        _gather(tables, base, slot_bits)
        for place in range(base, base + _2 * distinct, _2):
            count, key, packed = tables[place + _1], _unhashed(tables[place]), _0
            tables[place + _1] = _0
            for k in range(many):
                packed = packed << wide | nb.uint64(rank[key >> bits * (many - _1 - nb.uint64(k)) & mask])
            if is_pairs:
                one, other = packed >> wide, packed & below
                packed = min(one, other) << wide | max(one, other)
            # no branch: which keys occur once is not predictable
            keys[out], counts[out], singles[out_once] = packed, count, packed
            out += nb.uint64(count != _1)
            out_once += nb.uint64(count == _1) & keeps
    return nb.int64(out), nb.int64(out_once)


class HashCounts:
    """Counts of hashes that are given block by block, ordered by bucket.

    Memory holds ``HELD`` hashes or one block, a ``PART`` for each thread, and at most four times the distinct hashes.

    Parameters
    ----------
    expected
        About how many hashes there will be.

    """

    def __init__(self, expected: int) -> None:
        self._expected = expected
        self._held, self._offsets = np.empty(0, np.uint64), np.zeros((0, (1 << BUCKETS) + 1), np.int64)
        self._counted = Counts.none()

    def add(self, sizes: Int64, write: Callable[[UInt64, Int64], object]) -> None:
        """Take the hashes of a block.

        Parameters
        ----------
        sizes
            int64[parts, buckets].
        write
            Writes the hashes to an array, never an empty one: those of a part and bucket from a place on,
            int64[parts, buckets].

        """
        total = int(sizes.sum())
        if self._first + total >= len(self._held):
            if len(self._offsets):
                self._count()
            room = max(min(HELD, self._expected), 2 * int(self._counted.sizes.sum()), total + 1)
            if room > len(self._held):
                self._held = scratch(room, np.uint64)
        before = self._first + running_sum(sizes.T.ravel())
        write(self._held, before[:-1].reshape(-1, len(sizes)).T.copy())
        self._offsets = np.concatenate([self._offsets, before[:: len(sizes)][None]])

    @property
    def _first(self) -> int:
        return int(self._offsets[-1, -1]) if len(self._offsets) else 0

    def _chunks(self) -> tuple[list[tuple[int, int]], Int64, int]:
        """Split the buckets: one chunk per thread. Return also the room that each needs, and that of tables."""
        many = self._counted.sizes + np.diff(self._offsets, axis=1).sum(axis=0)
        places = running_sum(many)
        slots = 1 << max(FIRST_SLOTS, (2 * int(many.max(initial=0)) + 1).bit_length())
        return even_chunks(1 << BUCKETS, 1 << BUCKETS if places[-1] < 1 << 14 else 1), places, 4 * slots

    def _count(self) -> None:
        """Count the keys in memory."""
        sizes = np.zeros(1 << BUCKETS, np.int64)
        given = (self._held, self._offsets, len(self._offsets), self._counted)

        def count(own: tuple[int, int], tables: UInt64, rooms: list[UInt64]) -> tuple[int, int]:
            many: int = _add_buckets(*given, *own, tables, *rooms, sizes)
            return many, many

        hashes, counts = _joined(self._counted_parts(count, 2), 2)
        self._counted, self._offsets = Counts(hashes, counts, running_sum(sizes)[:-1], sizes), self._offsets[:0]

    def read(
        self, rank: UInt32, n: int, width: int, is_pairs: bool, min_count: int, more: UInt64, more_counts: UInt64
    ) -> tuple[Counted, UInt64]:
        """Return the keys with counts above 1; and those that occurred once, if they are to be kept.

        Parameters
        ----------
        rank
            uint32 by number of a word: its rank.
        n, width, is_pairs
            Words of a key, bits of a rank, and whether the lower rank comes first.
        min_count
            Keys with lower counts may be missing.
        more, more_counts
            Keys of ranks that were counted elsewhere.

        """
        form, given = (rank, n, width, is_pairs, min_count <= 1), (self._held, self._offsets, len(self._offsets))

        def read(own: tuple[int, int], tables: UInt64, rooms: list[UInt64]) -> tuple[int, int, int]:
            many, single = _read_buckets(*given, self._counted, *own, tables, *form, *rooms)
            return many, many, single

        parts, is_once = self._counted_parts(read, 3), more_counts == 1
        parts.append([more[~is_once], more_counts[~is_once], more[is_once][: len(more) if min_count <= 1 else 0]])
        keys, counts, once = _joined(parts, 3)
        return Counted.of(keys, counts), once

    def _counted_parts(
        self, count: Callable[[tuple[int, int], UInt64, list[UInt64]], tuple[int, ...]], arrays: int
    ) -> list[list[UInt64]]:
        """Count buckets, ``PART`` hashes at a time by thread; return copies of the arrays that ``count`` fills.

        It takes a range of buckets, tables and arrays, and returns how many numbers it wrote to each.
        """
        chunks, places, room = self._chunks()

        def counted(chunk: tuple[int, int]) -> list[list[UInt64]]:
            tables, (first, stop) = scratch_zeros(room, np.uint64), chunk
            parts = max(1, min(stop - first, int(places[stop] - places[first]) // PART))
            edges = [first + (stop - first) * k // parts for k in range(parts + 1)]
            size = int(np.diff(places[edges]).max()) + 1
            rooms = [scratch(size, np.uint64) for _ in range(arrays)]
            return [
                [_copied(part[:many]) for part, many in zip(rooms, count(own, tables, rooms), strict=True)]
                for own in pairwise(edges)
            ]

        return [part for parts in map_parallel(counted, chunks) for part in parts]


def _copied(numbers: UInt64) -> UInt64:
    copy = scratch(len(numbers), np.uint64)
    copy[:] = numbers
    return copy


def _joined(parts: list[list[UInt64]], arrays: int) -> list[UInt64]:
    """Concatenate the arrays of parts."""
    sizes = np.array([[len(array) for array in part] for part in parts], np.int64).reshape(-1, arrays)
    starts = [running_sum(own) for own in sizes.T]
    made: list[UInt64] = [scratch(own[-1], np.uint64) for own in starts]

    def copy(k: int) -> None:
        for array, part, start in zip(made, parts[k], starts, strict=True):
            array[start[k] : start[k + 1]] = part

    map_parallel(copy, range(len(parts)))
    parts.clear()  # frees them
    return made
