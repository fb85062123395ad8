"""Sorts the documents of posting lists by count.

Indices are unsigned in kernels: indices that may be negative cost a comparison and a select at each use.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.arrow_memory import allocate, buffer_under
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks

FEW = 16
"""Posting lists of at most this many documents use insertion sort."""

_0, _1, _8, _255 = (np.uint64(number) for number in (0, 1, 8, 255))
_FEW = np.uint64(FEW)


@polled
@njit
def _sort_postings(
    offsets: Int64, documents: UInt32, counts: UInt64, least: int, most: int, first: int, stop: int, sizes: Int64
) -> Any:
    """Sort each posting list by descending count, stably, in place, and move the kept part to the lists before.

    ``sizes`` gets the size of each list then, -1 if its counts sum up to less than ``least``. Returns the end of all.
    """
    began = interrupts()
    histogram = np.zeros(256, np.int64)
    longest = nb.int64(0)
    for k in range(nb.uint64(first), nb.uint64(stop)):
        longest = max(longest, offsets[k + _1] - offsets[k])
    spare_documents, spare_counts = np.empty(longest, np.uint32), np.empty(longest, np.uint64)
    out = nb.uint64(offsets[first])
    for k in range(nb.uint64(first), nb.uint64(stop)):
        if k & nb.uint64(0xFF) == 0 and interrupts() != began:
            return 0
        start, end = nb.uint64(offsets[k]), nb.uint64(offsets[k + _1])
        total = end - start
        if least > 1:  # otherwise any document is enough
            total = _0
            for i in range(start, end):
                total += counts[i]
        if total < nb.uint64(least):
            sizes[k] = -1
            continue
        if end - start <= _FEW:
            for i in range(start + _1, end):
                document, count = documents[i], counts[i]
                j: Any = i
                while j > start and counts[j - _1] < count:
                    documents[j], counts[j] = documents[j - _1], counts[j - _1]
                    j -= _1
                documents[j], counts[j] = document, count
        elif most > 0:
            greatest, fewest = _0, counts[start]
            for i in range(start, end):
                greatest, fewest = max(greatest, counts[i]), min(fewest, counts[i])
            shift = _0
            while fewest < greatest and shift < nb.uint64(64) and greatest >> shift != 0:
                for c in range(256):
                    histogram[c] = 0
                for i in range(start, end):
                    histogram[_255 - (counts[i] >> shift & _255)] += 1
                before = nb.int64(0)
                for c in range(256):
                    before, histogram[c] = before + histogram[c], before
                for i in range(start, end):
                    digit = _255 - (counts[i] >> shift & _255)
                    to = nb.uint64(histogram[digit])
                    spare_documents[to], spare_counts[to] = documents[i], counts[i]
                    histogram[digit] += 1
                for i in range(start, end):
                    documents[i], counts[i] = spare_documents[i - start], spare_counts[i - start]
                shift += _8
        size = min(end - start, nb.uint64(most))
        sizes[k] = size
        if out < start:
            for i in range(size):
                documents[out + i], counts[out + i] = documents[start + i], counts[start + i]
        out += size
    return nb.int64(out)


def rank_postings(
    offsets: Int64, documents: UInt32, counts: UInt64, min_count: int = 1, top: int | None = None
) -> tuple[Int64 | None, Int64, UInt32, UInt64]:
    """Sort each posting list by descending count, then ascending.

    Parameters
    ----------
    offsets, documents, counts
        int64, lists + 1, uint32, ascending within a list, and uint64; they are reordered in place.
    min_count
        Lists with a lower total count are dropped.
    top
        Maximum number of documents per list.

    Returns
    -------
    (int64 array or None, int64 array, uint32 array, uint64 array)
        Numbers of the kept lists, None for all; offsets of their documents, kept + 1; documents; counts.

    """
    sizes = np.empty(len(offsets) - 1, np.int64)
    limits = max(min_count, 1), len(documents) if top is None else min(max(top, 0), len(documents))
    chunks = weighted_chunks(offsets)

    def sort(chunk: tuple[int, int]) -> int:
        return int(_sort_postings(offsets, documents, counts, *limits, *chunk, sizes)) if chunk[0] < chunk[1] else 0

    ends = map_parallel(sort, chunks)
    size = 0
    for (first, stop), end in zip(chunks, ends, strict=True):
        if first < stop:
            for array in (documents, counts):
                _move(array, size, int(offsets[first]), end)
            size += end - int(offsets[first])
    kept = None if sizes.min(initial=0) >= 0 else np.flatnonzero(sizes >= 0)
    made = offsets if size == len(documents) and kept is None else running_sum(sizes if kept is None else sizes[kept])
    return kept, made, _first(documents, size), _first(counts, size)


def _move(array: npt.NDArray[Any], to: int, first: int, stop: int) -> None:
    """Move a part of an array towards its start."""
    if to < first < stop:
        start, item = array.ctypes.data, array.itemsize
        ctypes.memmove(start + item * to, start + item * first, item * (stop - first))


def _first(array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """Return the first numbers of an array, in Arrow's memory if they are there; a few of many are copied."""
    if size == len(array):
        return array
    if 2 * size < len(array):
        made = allocate(size, array.dtype)[1]
        made[:] = array[:size]
        return made
    buffer = buffer_under(array)
    return array[:size] if buffer is None else np.frombuffer(buffer.slice(0, size * array.itemsize), array.dtype)
