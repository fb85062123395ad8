"""Orders records by count."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.cpu.jit import kernel

Int64 = npt.NDArray[np.int64]
UInt64 = npt.NDArray[np.uint64]

SMALL = 1 << 12
"""Counts below are sorted by counting; the few above by comparing."""


def by_falling_count(counts: UInt64) -> Int64:
    """Return the places of records in the order of falling counts; equal ones stay in theirs.

    Parameters
    ----------
    counts
        uint64.

    Returns
    -------
    int64 array

    """
    places = np.empty(len(counts), np.int64)
    histogram = np.zeros(SMALL + 1, np.int64)
    _count(counts, histogram)
    large = int(histogram[SMALL])
    starts = np.zeros(SMALL + 1, np.int64)
    starts[:SMALL] = np.cumsum(histogram[::-1])[::-1][1:]  # records of larger counts
    _place(counts, starts, places)
    if large:
        first = places[:large]
        first[:] = first[np.argsort(~counts[first], kind="stable")]
    return places


@kernel
def _count(counts: UInt64, histogram: Int64) -> None:
    for i in range(len(counts)):
        histogram[min(counts[i], np.uint64(SMALL))] += 1


@kernel
def _place(counts: UInt64, starts: Int64, places: Int64) -> None:
    for i in range(len(counts)):
        bucket = min(counts[i], np.uint64(SMALL))
        places[starts[bucket]] = i
        starts[bucket] += 1
