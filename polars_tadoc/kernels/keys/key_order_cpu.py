"""Sorts counted 64-bit keys into result order: by descending count, or ascending.

Indices are unsigned: indices that may be negative cost a comparison and a select at each use.
"""

from __future__ import annotations

from itertools import pairwise

import numba as nb
import numpy as np
import numpy.typing as npt

from polars_tadoc.config import thread_count
from polars_tadoc.kernels.keys.key_buckets_cpu import NOTHING
from polars_tadoc.kernels.keys.key_counts_cpu import Counted
from polars_tadoc.runtime.array_types import Int64, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.parallel import even_chunks, map_parallel

CLASSES = 64
"""Smaller counts have a class each, whose keys are sorted separately; larger ones are in class 0."""

RANGE = 1 << 17
"""Keys per range that is sorted separately."""

_0, _1 = (np.uint64(number) for number in (0, 1))
_CLASSES = np.uint64(CLASSES)


@polled
@njit
def _tally_classes(
    keys: UInt64,
    counts: UInt64,
    starts: Int64,
    sizes: Int64,
    first: int,
    stop: int,
    least: int,
    pivots: UInt64,
    tallies: Int64,
) -> None:
    """Count the keys of each class of counts and each range of keys."""
    began = interrupts()
    ranges = nb.uint64(len(pivots)) + _1
    for bucket in range(first, stop):
        for i in range(nb.uint64(starts[bucket]), nb.uint64(starts[bucket] + sizes[bucket])):
            if i & nb.uint64(0xFFFF) == 0 and interrupts() != began:
                return
            if counts[i] >= nb.uint64(least):
                group = counts[i] if counts[i] < _CLASSES else _0
                part = _0
                for pivot in pivots:
                    part += nb.uint64(keys[i] >= pivot)
                tallies[group * ranges + part] += 1


@polled
@njit
def _scatter_classes(
    keys: UInt64,
    counts: UInt64,
    starts: Int64,
    sizes: Int64,
    first: int,
    stop: int,
    least: int,
    pivots: UInt64,
    places: Int64,
    ordered: UInt64,
    many: UInt64,
) -> None:
    """Copy keys to their classes and ranges, from ``places`` on (skipped if negative); class 0 with counts."""
    began = interrupts()
    ranges = nb.uint64(len(pivots)) + _1
    for bucket in range(first, stop):
        for i in range(nb.uint64(starts[bucket]), nb.uint64(starts[bucket] + sizes[bucket])):
            if i & nb.uint64(0xFFFF) == 0 and interrupts() != began:
                return
            if counts[i] >= nb.uint64(least):
                group = counts[i] if counts[i] < _CLASSES else _0
                part = _0
                for pivot in pivots:
                    part += nb.uint64(keys[i] >= pivot)
                place = places[group * ranges + part]
                if place >= 0:
                    places[group * ranges + part] = place + 1
                    at = nb.uint64(place)
                    ordered[at] = keys[i]
                    if group == 0:
                        many[at] = counts[i]


def in_result_order(counted: Counted, min_count: int = 1, top: int | None = None) -> tuple[UInt64, UInt64]:
    """Sort keys by descending count, then ascending.

    Nearly all keys of natural text have small counts: the keys of each small count are one array that is sorted
    separately.

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
    least = max(min_count, 1)
    pivots = _pivots(counted)
    chunks = counted.chunks()
    tallies = np.zeros((len(chunks), CLASSES, len(pivots) + 1), np.int64)
    read = (counted.keys, counted.counts, counted.starts, counted.sizes)
    map_parallel(lambda k: _tally_classes(*read, *chunks[k], least, pivots, tallies[k].reshape(-1)), range(len(chunks)))
    classes = np.concatenate([tallies[:, :1], tallies[:, :0:-1]], axis=1)  # class 0, then descending counts
    by_class = classes.sum(axis=(0, 2))
    taken = CLASSES
    if top is not None:
        taken = int(np.searchsorted(np.cumsum(by_class), max(top, 0))) + 1 if top > 0 else 0
    by_class[taken:] = 0
    before = np.concatenate([[0], np.cumsum(classes.transpose(1, 2, 0).ravel())])
    places = before[:-1].reshape(CLASSES, len(pivots) + 1, len(chunks)).transpose(2, 0, 1).copy()
    places[:, taken:] = -1
    by_group = np.concatenate([places[:, :1], places[:, :0:-1]], axis=1).reshape(len(chunks), -1)
    ordered, many = np.empty(int(by_class.sum()), np.uint64), np.empty(int(by_class[0]), np.uint64)
    map_parallel(
        lambda k: _scatter_classes(*read, *chunks[k], least, pivots, by_group[k], ordered, many), range(len(chunks))
    )
    edges = np.concatenate([[0], np.cumsum(classes[:, 1:taken].sum(axis=0).ravel())]) + len(many)
    _sort_stretches(ordered, edges)
    order = _order_of_many(ordered[: len(many)], many, top)
    counts = np.repeat(np.arange(CLASSES - 1, 0, -1, dtype=np.uint64), by_class[1:])
    rest = slice(len(many), None if top is None else max(top, len(many)))
    if len(many) == 0:
        return ordered[rest], counts[: len(ordered[rest])]
    keys = np.concatenate([ordered[: len(many)][order], ordered[rest]])
    return keys, np.concatenate([many[order], counts[: len(ordered[rest])]])


def order_of(keys: UInt64) -> npt.NDArray[np.intp]:
    """Return the indices that sort distinct keys; works in ranges, because NumPy cannot be interrupted in a sort."""
    if len(keys) < 64 * RANGE:  # at most a second
        return np.argsort(keys)
    stretches = even_chunks(len(keys), 8 * RANGE, len(keys) // (8 * RANGE))
    parts = map_parallel(lambda own: own[0] + np.argsort(keys[slice(*own)]), stretches)
    order = np.concatenate(parts)
    joined: npt.NDArray[np.intp] = order[np.argsort(keys[order], kind="stable")]  # merges sorted runs
    return joined


def _order_of_many(keys: UInt64, counts: UInt64, top: int | None) -> npt.NDArray[np.intp]:
    if top is not None and top < len(keys):
        bound = np.partition(counts, len(counts) - top)[len(counts) - top] if top > 0 else 0
        chosen = np.flatnonzero(counts >= bound)  # including all ties of the last one
        return chosen[np.lexsort((keys[chosen], ~counts[chosen]))][: max(top, 0)]
    return np.lexsort((keys, ~counts))


def _pivots(counted: Counted) -> UInt64:
    """Choose keys that split the keys into ranges of about equal size, from a sample."""
    ranges = min(4 * thread_count(), counted.size // RANGE)
    if ranges < 2:
        return NOTHING
    filled = counted.sizes > 0
    starts, sizes = counted.starts[filled], counted.sizes[filled]
    shares = np.arange(1, 2 * 64, 2)[:, None] * sizes // 128
    sample = np.sort(counted.keys[(starts + shares).ravel()])
    return sample[np.arange(1, ranges) * len(sample) // ranges].copy()


def _sort_stretches(keys: UInt64, edges: Int64) -> None:
    """Sort each range of an array, larger ones first, so that threads finish together."""
    if len(keys) < RANGE:
        for first, stop in pairwise(edges.tolist()):
            keys[first:stop].sort()
        return
    stretches = sorted(pairwise(edges.tolist()), key=lambda edge: edge[0] - edge[1])
    large = [(first, stop) for first, stop in stretches if stop - first >= RANGE // 16]
    map_parallel(lambda edge: keys[edge[0] : edge[1]].sort(), large)
    for first, stop in stretches[len(large) :]:
        if stop - first > 1:
            keys[first:stop].sort()


def ascending(counted: Counted) -> UInt64:
    """Return the distinct keys, ascending."""
    ones = Counted(counted.keys, np.ones(len(counted.keys), np.uint64), counted.starts, counted.sizes)
    return in_result_order(ones)[0]
