"""Orders counted 64-bit keys as in results, by descending count.

Nothing is compared: a radix sort orders keys in a core's cache, a counting sort orders counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from polars_tadoc.config import thread_count
from polars_tadoc.kernels.host.records.by_count import by_falling_count, least_of_largest
from polars_tadoc.kernels.host.records.sort_keys import Run, merge_runs, merge_sums, sort_with
from polars_tadoc.kernels.keys.key_buckets_cpu import NOTHING, Room, Shares
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.primitives.to_arrow_cpu import spread
from polars_tadoc.runtime.array_types import Int64, UInt64
from polars_tadoc.runtime.arrow_memory import view
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import polled_njit
from polars_tadoc.runtime.parallel import even_chunks, map_parallel, weighted_chunks
from polars_tadoc.runtime.scratch import scratch

MAX_COUNT = (1 << 64) - 1

RUNS = 24
"""Sorted batches that are merged together: the time for a key grows with their number."""

_1 = np.uint64(1)


@dataclass(frozen=True)
class Counted:
    """Distinct keys and their counts, in ranges of two arrays, in no order."""

    keys: UInt64
    counts: UInt64
    starts: Int64
    sizes: Int64

    @classmethod
    def of(cls, keys: UInt64, counts: UInt64) -> Counted:
        """Wrap whole arrays of distinct keys and their counts."""
        chunks = np.array(even_chunks(len(keys)), np.int64).reshape(-1, 2)
        return cls(keys, counts, chunks[:, 0].copy(), chunks[:, 1] - chunks[:, 0])

    def chunks(self) -> list[tuple[int, int]]:
        """Groups of ranges of about equal size, for threads."""
        return weighted_chunks(running_sum(self.sizes))


def in_result_order(counted: Counted, min_count: int = 1, top: int | None = None) -> tuple[UInt64, UInt64]:
    """Order distinct keys by descending count, then ascending.

    Parameters
    ----------
    counted
        Distinct keys and their counts.
    min_count
        Keys with lower counts, or count 0, are dropped.
    top
        Maximum number of keys.

    Returns
    -------
    (uint64 array, uint64 array)
        Keys and counts.

    """
    keys, counts = _largest(*_kept(counted, max(min_count, 1)), top)
    return order_by_count(*sort_with(keys, counts), None, top)


Batch = tuple[UInt64, UInt64 | None, Shares | None]
"""Keys in any order; the count of each, None for 1; the ranges of keys, None for all."""


def sum_in_result_order(
    batches: Iterable[Batch], min_count: int = 1, top: int | None = None, bits: int | None = None
) -> tuple[UInt64, UInt64]:
    """Add the counts of equal keys, and order the keys as :func:`in_result_order` does.

    Parameters
    ----------
    batches
        Keys, read before the next batch is asked for. Memory holds one batch, the same for all, and the distinct keys
        of earlier ones. A key's sum must fit in 64 bits.
    min_count, top
        As for :func:`in_result_order`.
    bits
        Bits of the largest key, if known.

    """
    keys, sums, stretches = _summed(batches, max(min_count, 1), bits)
    if top is None:
        return order_by_count(keys, sums, stretches, None)
    edges = np.array(stretches, np.int64)
    counted = Counted(keys, sums, edges[:, 0].copy(), edges[:, 1] - edges[:, 0])
    many = int(counted.sizes.sum())
    least = 1 if top >= many else MAX_COUNT if top == 0 else least_of_largest(sums, top, stretches)
    return order_by_count(*_kept(counted, least), None, top)


def sum_in_key_order(batches: Iterable[Batch], bits: int | None = None) -> tuple[UInt64, UInt64]:
    """Add the counts of equal keys; keys ascend. Parameters as for :func:`sum_in_result_order`."""
    keys, sums, stretches = _summed(batches, 1, bits)
    if len(stretches) == 1:
        return keys[slice(*stretches[0])], sums[slice(*stretches[0])]
    edges = np.array(stretches, np.int64).reshape(-1, 2)
    return _kept(Counted(keys, sums, edges[:, 0].copy(), edges[:, 1] - edges[:, 0]), 1)


def _summed(batches: Iterable[Batch], least: int, bits: int | None) -> tuple[UInt64, UInt64, Shares]:
    """Return ascending keys with at least a sum, and the sums, in stretches of both arrays."""
    last: tuple[UInt64, UInt64 | None] = NOTHING, NOTHING
    runs: list[Run] = []
    room = Room()
    for keys, counts, shares in batches:
        if len(last[0]):
            runs += _runs(*merge_sums(*last))
            if len(runs) > RUNS * thread_count():
                runs = _runs(*merge_runs(runs))
        keys, own = sort_with(keys, counts, bits, shares, room)
        last = keys, None if counts is None else own
    keys, sums, stretches = merge_sums(*last, 0 if runs else least)
    del room, last  # before more memory is taken
    if runs:
        keys, sums, stretches = merge_runs(runs + _runs(keys, sums, stretches), least)
    return keys, sums, stretches


def _runs(keys: UInt64, counts: UInt64, stretches: Shares) -> list[Run]:
    return [(keys[first:stop], counts[first:stop]) for first, stop in stretches if stop > first]


def order_by_count(keys: UInt64, counts: UInt64, stretches: Shares | None, top: int | None) -> tuple[UInt64, UInt64]:
    """Order ascending keys by descending count, and keep the first ``top``; of ``stretches``, one per thread."""
    made, each, starts = by_falling_count(keys[None], counts, stretches)
    return made[0, :top], view(spread(each, starts))[:top]


def _largest(keys: UInt64, counts: UInt64, top: int | None) -> tuple[UInt64, UInt64]:
    """Keep the keys that may be among the first ``top``, with all ties of the last."""
    if top is None or top >= len(keys):
        return keys, counts
    if top == 0:
        return NOTHING, NOTHING
    return _kept(Counted.of(keys, counts), least_of_largest(counts, top))


def _kept(counted: Counted, least: int) -> tuple[UInt64, UInt64]:
    """Copy the keys with at least this count, and their counts, in order."""
    bound, chunks = np.uint64(min(least, MAX_COUNT)), counted.chunks()
    read = (counted.keys, counted.counts, counted.starts, counted.sizes, bound)
    sizes = np.zeros(len(chunks), np.int64)
    map_parallel(lambda k: _copy_kept(*read, *chunks[k], sizes[k : k + 1], NOTHING, NOTHING), range(len(chunks)))
    before = running_sum(sizes)
    keys, counts = scratch(before[-1], np.uint64), scratch(before[-1], np.uint64)
    if len(keys):
        map_parallel(lambda k: _copy_kept(*read, *chunks[k], before[k : k + 1], keys, counts), range(len(chunks)))
    return keys, counts


@polled_njit
def _copy_kept(
    keys: UInt64,
    counts: UInt64,
    starts: Int64,
    sizes: Int64,
    least: Any,
    first: int,
    stop: int,
    at: Int64,
    made: UInt64,
    made_counts: UInt64,
) -> None:
    """Copy keys with at least this count to ``at[0]`` onwards, if ``made`` is not empty; advance ``at[0]``."""
    began = interrupts()
    out = np.uint64(at[0])
    for bucket in range(first, stop):
        for i in range(np.uint64(starts[bucket]), np.uint64(starts[bucket] + sizes[bucket])):
            if i & np.uint64(0xFFFF) == 0 and interrupts() != began:
                return
            if counts[i] >= least:
                if len(made) > 0:
                    made[out], made_counts[out] = keys[i], counts[i]
                out += _1
    at[0] = out
