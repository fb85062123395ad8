"""Sorts the documents of posting lists by count.

Indices are unsigned in kernels: indices that may be negative cost a comparison and a select at each use.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.arrow_memory import allocate
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks

FEW = 16
"""Posting lists of at most this many documents use insertion sort."""

_0, _1, _8, _255 = (np.uint64(number) for number in (0, 1, 8, 255))
_FEW = np.uint64(FEW)


@polled
@njit
def _measure_postings(
    offsets: Int64, counts: UInt64, least: int, most: int, first: int, stop: int, sizes: Int64
) -> None:
    """Compute the size to keep of each posting list: -1 if its counts sum up to less than ``least``."""
    began = interrupts()
    for k in range(nb.uint64(first), nb.uint64(stop)):
        if k & nb.uint64(0xFF) == 0 and interrupts() != began:
            return
        total = nb.uint64(offsets[k + _1]) - nb.uint64(offsets[k])
        if least > 1:  # otherwise any document is enough
            total = _0
            for i in range(nb.uint64(offsets[k]), nb.uint64(offsets[k + _1])):
                total += counts[i]
        sizes[k] = min(offsets[k + _1] - offsets[k], most) if total >= nb.uint64(least) else -1


@polled
@njit
def _write_postings(
    offsets: Int64,
    documents: UInt32,
    counts: UInt64,
    out_offsets: Int64,
    first: int,
    stop: int,
    out_documents: UInt32,
    out_counts: UInt64,
) -> None:
    """Sort each posting list by descending count, stably, in place, and write the part to keep."""
    began = interrupts()
    histogram = np.zeros(256, np.int64)
    longest = nb.int64(0)
    for k in range(nb.uint64(first), nb.uint64(stop)):
        if out_offsets[k + _1] > out_offsets[k]:
            longest = max(longest, offsets[k + _1] - offsets[k])
    spare_documents, spare_counts = np.empty(longest, np.uint32), np.empty(longest, np.uint64)
    for k in range(nb.uint64(first), nb.uint64(stop)):
        if k & nb.uint64(0xFF) == 0 and interrupts() != began:
            return
        start, end = nb.uint64(offsets[k]), nb.uint64(offsets[k + _1])
        if out_offsets[k + _1] == out_offsets[k]:
            continue
        if end - start <= _FEW:
            for i in range(start + _1, end):
                document, count = documents[i], counts[i]
                j: Any = i
                while j > start and counts[j - _1] < count:
                    documents[j], counts[j] = documents[j - _1], counts[j - _1]
                    j -= _1
                documents[j], counts[j] = document, count
        else:
            most, fewest = _0, counts[start]
            for i in range(start, end):
                most, fewest = max(most, counts[i]), min(fewest, counts[i])
            shift = _0
            while fewest < most and shift < nb.uint64(64) and most >> shift != 0:
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
        out = nb.uint64(out_offsets[k])
        for i in range(nb.uint64(out_offsets[k + _1]) - out):
            out_documents[out + i] = documents[start + i]
            out_counts[out + i] = counts[start + i]


def rank_postings(
    offsets: Int64, documents: UInt32, counts: UInt64, min_count: int, top: int | None
) -> tuple[Int64, Int64, UInt32, UInt64]:
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
    (int64 array, int64 array, uint32 array, uint64 array)
        Numbers of the kept lists; offsets of their documents, kept + 1; documents; counts.

    """
    if min_count <= 1 and top is None:  # everything keeps its position
        map_parallel(
            lambda chunk: _write_postings(offsets, documents, counts, offsets, *chunk, documents, counts),
            weighted_chunks(offsets),
        )
        kept = np.flatnonzero(np.diff(offsets))
        return kept, np.append(offsets[kept], offsets[-1]), documents, counts
    sizes = np.zeros(len(offsets) - 1, np.int64)
    most = len(documents) if top is None else max(top, 0)
    map_parallel(
        lambda chunk: _measure_postings(offsets, counts, max(min_count, 1), most, *chunk, sizes),
        weighted_chunks(offsets),
    )
    kept = np.flatnonzero(sizes >= 0)
    kept_offsets = running_sum(np.maximum(sizes, 0))
    size = int(kept_offsets[-1])
    kept_documents, kept_counts = allocate(size, np.uint32)[1], allocate(size, np.uint64)[1]  # results take them so
    map_parallel(
        lambda chunk: _write_postings(offsets, documents, counts, kept_offsets, *chunk, kept_documents, kept_counts),
        weighted_chunks(offsets),
    )
    return kept, np.append(kept_offsets[kept], kept_offsets[-1]), kept_documents, kept_counts
