"""Sorts records by count."""

from __future__ import annotations

import numpy as np

from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.runtime.array_types import Int64, UInt64
from polars_tadoc.runtime.jit import kernel
from polars_tadoc.runtime.parallel import even_chunks, map_parallel
from polars_tadoc.runtime.scratch import scratch

SMALL = 1 << 12
"""Smaller counts are sorted by counting, the few larger ones by comparing."""


def by_falling_count(
    keys: UInt64, counts: UInt64, stretches: list[tuple[int, int]] | None = None
) -> tuple[UInt64, UInt64, Int64]:
    """Sort records by descending count; stable.

    Parameters
    ----------
    keys
        uint64[limbs, records].
    counts
        uint64.
    stretches
        Ranges of the records, one per thread; None: all.

    Returns
    -------
    (uint64[limbs, records], uint64[n], int64[n + 1])
        The keys, the distinct counts, and the offsets of each one's records.

    """
    chunks = even_chunks(len(counts)) if stretches is None else stretches
    buckets = np.array(map_parallel(lambda chunk: _histogram(counts, chunk), chunks))[:, ::-1]
    ends = np.cumsum(buckets.T.reshape(-1)).reshape(SMALL + 1, len(chunks)).T  # of one bucket, chunk after chunk
    starts = np.ascontiguousarray((ends - buckets)[:, ::-1])
    large = int(buckets[:, 0].sum())
    records = sum(stop - first for first, stop in chunks)
    made, large_counts = scratch((len(keys), records), np.uint64), np.empty(large, np.uint64)

    def place(number: int) -> None:
        _place(keys, counts, starts[number], made, large_counts, *chunks[number])

    map_parallel(place, range(len(chunks)))
    order = np.argsort(~large_counts, kind="stable")
    made[:, :large] = made[:, :large][:, order]
    distinct, sizes = np.unique(large_counts, return_counts=True)
    small = buckets[:, 1:].sum(axis=0)
    kept = np.flatnonzero(small)
    each = np.concatenate([distinct[::-1], (SMALL - 1 - kept).astype(np.uint64)])
    return made, each, running_sum(np.concatenate([sizes[::-1], small[kept]]))


def count_order(counts: UInt64) -> Int64:
    """Return the indices that sort counts in descending order, int64; stable."""
    places = np.arange(len(counts), dtype=np.uint64)[None]
    order: Int64 = by_falling_count(places, counts)[0][0].view(np.int64)
    return order


def least_of_largest(counts: UInt64, many: int, stretches: list[tuple[int, int]] | None = None) -> int:
    """Return the least of the ``many`` largest counts in ranges, one per thread; None: all."""
    chunks = even_chunks(len(counts)) if stretches is None else stretches
    histograms = np.array(map_parallel(lambda chunk: _histogram(counts, chunk), chunks))
    from_above = np.cumsum(histograms.sum(axis=0)[::-1])
    bucket = SMALL - int(np.searchsorted(from_above, many))
    if bucket < SMALL:
        return bucket
    large = np.concatenate([own[own >= SMALL] for own in (counts[slice(*chunk)] for chunk in chunks)])
    return int(np.partition(large, len(large) - many)[len(large) - many])


def _histogram(counts: UInt64, chunk: tuple[int, int]) -> Int64:
    histogram = np.zeros(SMALL + 1, np.int64)
    _count(counts, histogram, *chunk)
    return histogram


@kernel
def _count(counts: UInt64, histogram: Int64, first: int, last: int) -> None:
    for i in range(first, last):
        histogram[min(counts[i], np.uint64(SMALL))] += 1


@kernel
def _place(
    keys: UInt64, counts: UInt64, starts: Int64, made: UInt64, large_counts: UInt64, first: int, last: int
) -> None:
    for i in range(first, last):
        bucket = min(counts[i], np.uint64(SMALL))
        at = starts[bucket]
        starts[bucket] = at + 1
        for limb in range(len(keys)):
            made[limb, at] = keys[limb, i]
        if bucket == np.uint64(SMALL):
            large_counts[at] = counts[i]
