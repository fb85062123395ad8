"""Counts 64-bit keys, with one table per bucket.

Indices are unsigned: indices that may be negative cost a comparison and a select at each use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.keys.key_buckets_cpu import (
    AHEAD,
    NOTHING,
    Buckets,
    Shares,
    bucket_count,
    hash_key,
    spread_keys,
)
from polars_tadoc.runtime.addresses import prefetch
from polars_tadoc.runtime.array_types import Int64, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.parallel import even_chunks, map_parallel, weighted_chunks

SLOTS = 1 << 15
"""Initial size of a bucket's table: half a core's cache."""

LATER = 4
"""A tally's tables initially have room for this many times the first keys."""

_0, _1, _2 = (np.uint64(number) for number in (0, 1, 2))
_AHEAD = np.uint64(AHEAD)


@njit
def _fill(
    table: UInt64, base: int, slots: int, taken: int, keys: UInt64, weights: UInt64, first: int, stop: int
) -> Any:
    """Add keys (and their weights, 1 each if there are none) to the table at ``base``.

    Returns the used slots, or the complement of the next key's position if one too many was used.
    """
    mask = nb.uint64(slots - 1)
    most = slots - slots // 4
    weighted = len(weights) > 0
    start, end = nb.uint64(base), nb.uint64(stop)
    for i in range(nb.uint64(first), end):
        soon = hash_key(keys[min(i + _AHEAD, end - _1)]) & mask
        prefetch(table, nb.int64(start + (soon << _1)))
        key = keys[i]
        slot = hash_key(key) & mask
        at = start + (slot << _1)
        while table[at] != key and table[at + _1] != 0:
            slot = (slot + _1) & mask
            at = start + (slot << _1)
        taken += table[at + _1] == 0  # whether a key is new is unpredictable: no branch
        table[at] = key
        table[at + _1] += weights[i] if weighted else _1
        if taken > most:
            return ~nb.int64(i + _1)
    return taken


@polled
@njit
def _count(
    keys: UInt64,
    offsets: Int64,
    weighted_keys: UInt64,
    weights: UInt64,
    weighted_offsets: Int64,
    first: int,
    stop: int,
    distinct: UInt64,
    counts: UInt64,
    sizes: Int64,
) -> None:
    """Sum each bucket's weights by key; the distinct keys are written from the bucket's start on."""
    began = interrupts()
    nothing = np.zeros(0, np.uint64)
    table = np.zeros(2 * SLOTS, np.uint64)
    none = nb.int64(0)
    for bucket in range(first, stop):
        if interrupts() != began:
            return
        start, end = offsets[bucket], offsets[bucket + 1]
        heavy_start, heavy_end = weighted_offsets[bucket], weighted_offsets[bucket + 1]
        slots = 4
        while slots < 2 * (end - start + heavy_end - heavy_start) and slots < SLOTS:
            slots *= 2
        while True:  # most keys of a large bucket may be equal: its table only grows when needed
            if len(table) < 2 * slots:
                table = np.empty(2 * slots, np.uint64)
            for at in range(nb.uint64(2 * slots)):
                table[at] = 0
            taken = _fill(table, none, slots, none, weighted_keys, weights, heavy_start, heavy_end)
            if taken >= 0:
                taken = _fill(table, none, slots, taken, keys, nothing, start, end)
            if taken >= 0:
                break
            slots *= 2
        out = nb.uint64(start + heavy_start)
        last, place = out + nb.uint64(taken), _0
        while out < last:
            distinct[out], counts[out] = table[place], table[place + _1]
            out += nb.uint64(table[place + _1] != 0)
            place += _2
        sizes[bucket] = taken


@polled
@njit
def _add(
    table: UInt64,
    bases: Int64,
    taken: Int64,
    keys: UInt64,
    weights: UInt64,
    done: Int64,
    stops: Int64,
    first: int,
    stop: int,
) -> None:
    """Add each bucket's keys from ``done`` on to its table, until the table is too full."""
    began = interrupts()
    for bucket in range(first, stop):
        if interrupts() != began:
            return
        slots = (bases[bucket + 1] - bases[bucket]) // 2
        if done[bucket] < stops[bucket]:
            got = _fill(table, bases[bucket], slots, taken[bucket], keys, weights, done[bucket], stops[bucket])
            taken[bucket] = got if got >= 0 else slots - slots // 4 + 1
            done[bucket] = stops[bucket] if got >= 0 else ~got


@polled
@njit
def _list_table(
    table: UInt64, bases: Int64, starts: Int64, first: int, stop: int, distinct: UInt64, counts: UInt64
) -> None:
    """List the keys and counts of each bucket's table."""
    began = interrupts()
    for bucket in range(first, stop):
        if interrupts() != began:
            return
        out = nb.uint64(starts[bucket])
        for at in range(nb.uint64(bases[bucket]), nb.uint64(bases[bucket + 1]), _2):
            if table[at + _1] != 0:
                distinct[out], counts[out] = table[at], table[at + _1]
                out += _1


@dataclass(frozen=True)
class Counted:
    """Distinct keys and their counts, unsorted, in ranges of two arrays."""

    keys: UInt64
    counts: UInt64
    starts: Int64
    sizes: Int64

    @property
    def size(self) -> int:
        """Number of distinct keys."""
        return int(self.sizes.sum())

    @classmethod
    def of(cls, keys: UInt64, counts: UInt64) -> Counted:
        """Wrap arrays of distinct keys and their counts."""
        chunks = np.array(even_chunks(len(keys)), np.int64).reshape(-1, 2)
        return cls(keys, counts, chunks[:, 0].copy(), chunks[:, 1] - chunks[:, 0])

    def chunks(self) -> list[tuple[int, int]]:
        """Groups of ranges of about equal size, for threads."""
        return weighted_chunks(np.concatenate([[0], np.cumsum(self.sizes)]))


def count(
    keys: UInt64, weighted_keys: UInt64 = NOTHING, weights: UInt64 = NOTHING, shares: Shares | None = None
) -> Counted:
    """Count keys: each of ``keys`` counts 1, each of ``weighted_keys`` its weight.

    Parameters
    ----------
    keys, weighted_keys
        uint64, any values.
    weights
        uint64 by weighted key, at least 1; a key's sum must fit 64 bits.
    shares
        Ranges of ``keys``, if not all.

    """
    many = len(keys) if shares is None else sum(stop - first for first, stop in shares)
    buckets = bucket_count(many + len(weighted_keys))
    return count_buckets(spread_keys(keys, NOTHING, buckets, shares), spread_keys(weighted_keys, weights, buckets))


def count_buckets(plain: Buckets, heavy: Buckets) -> Counted:
    """Count keys in corresponding buckets: each of ``plain`` counts 1, each of ``heavy`` its weight."""
    starts = plain.offsets + heavy.offsets
    distinct, counts = np.empty(starts[-1], np.uint64), np.empty(starts[-1], np.uint64)
    sizes = np.zeros(len(starts) - 1, np.int64)
    map_parallel(
        lambda chunk: _count(
            plain.keys, plain.offsets, heavy.keys, heavy.weights, heavy.offsets, *chunk, distinct, counts, sizes
        ),
        weighted_chunks(starts),
    )
    return Counted(distinct, counts, starts[:-1], sizes)


class Tally:
    """Counts keys that arrive in batches: each bucket keeps its table, so that no key is read twice.

    Parameters
    ----------
    most
        Expected total number of keys, which determines the number of buckets.

    """

    def __init__(self, most: int) -> None:
        self._most, self._seen = most, 0
        self._buckets = bucket_count(most)
        self._taken = np.zeros(self._buckets, np.int64)
        self._bases = np.zeros(self._buckets + 1, np.int64)
        self._table = NOTHING

    def add(self, keys: UInt64, weights: UInt64 = NOTHING, shares: Shares | None = None) -> None:
        """Count keys, each 1 or its weight; see :func:`count`."""
        spread = spread_keys(keys, weights, self._buckets, shares)
        self._seen += len(keys)
        if len(self._table) == 0:
            nothing = spread_keys(NOTHING, NOTHING, self._buckets)
            self._start(count_buckets(*((nothing, spread) if len(weights) else (spread, nothing))))
            return
        done, stops = spread.offsets[:-1].copy(), spread.offsets[1:]
        self._fill(spread.keys, spread.weights, done, stops)
        while not np.array_equal(done, stops):
            self._grow()
            self._fill(spread.keys, spread.weights, done, stops)

    def _fill(self, keys: UInt64, weights: UInt64, done: Int64, stops: Int64) -> None:
        read = (self._table, self._bases, self._taken, keys, weights, done, stops)
        map_parallel(lambda chunk: _add(*read, *chunk), weighted_chunks(np.append(0, np.cumsum(stops - done))))

    def _start(self, first: Counted) -> None:
        """Make tables with room for later keys, assuming that new ones are half as frequent."""
        later = min(self._most / max(self._seen, 1) - 1, LATER)
        slots = 4
        while slots < first.sizes.max() * (1 + later / 2) * 3 / 2:
            slots *= 2
        self._put(first, np.full(self._buckets, 2 * slots))

    def _put(self, found: Counted, widths: Int64) -> None:
        """Make new tables of the given widths from the keys found."""
        self._bases = np.append(0, np.cumsum(widths))
        self._table = np.zeros(self._bases[-1], np.uint64)
        self._taken[:] = 0
        self._fill(found.keys, found.counts, found.starts.copy(), found.starts + found.sizes)

    def _grow(self) -> None:
        """Double the tables that are more than half full; nearly all are, as keys are distributed evenly."""
        widths = np.diff(self._bases)
        self._put(self.counted(), np.where(4 * self._taken > widths, 2 * widths, widths))

    def counted(self) -> Counted:
        """Return the counts so far; the tables are not needed any more."""
        starts = np.append(0, np.cumsum(self._taken))
        distinct, counts = np.empty(starts[-1], np.uint64), np.empty(starts[-1], np.uint64)
        map_parallel(
            lambda chunk: _list_table(self._table, self._bases, starts, *chunk, distinct, counts),
            weighted_chunks(self._bases),
        )
        return Counted(distinct, counts, starts[:-1], self._taken.copy())
