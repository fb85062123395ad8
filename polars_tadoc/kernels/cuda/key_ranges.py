"""Ranges of keys that are counted at a time, by what device memory allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

BUCKET_BITS = 12


def key_ranges(
    count: Callable[[int, int, int], np.ndarray[Any, np.dtype[np.int64]]],
    capacity: Callable[[], int],
    low: int,
    bits: int,
) -> Iterator[tuple[int, int, int]]:
    """Yield ranges of pairs of ranks and their entries; only one pair of ranks may be beyond the capacity."""
    shift = max(0, bits - BUCKET_BITS)
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(count(low, shift, 1 << (bits - shift)))])
    first = 0
    while before[first] < before[-1]:
        most = capacity()
        stop = int(np.searchsorted(before, before[first] + most, side="right")) - 1
        stop = max(stop, int(np.searchsorted(before, before[first], side="right")))
        entries = int(before[stop] - before[first])
        if entries > most and shift > 0:
            stop = int(np.searchsorted(before, before[first], side="right"))
            yield from key_ranges(count, capacity, low + (stop - 1 << shift), shift)
        else:
            yield low + (first << shift), low + (stop << shift), entries
        first = stop
