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
from polars_tadoc.runtime.jit import inner, kernel
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks
from polars_tadoc.runtime.scratch import scratch

FEW = 16
"""Posting lists of at most this many documents use insertion sort."""

_0, _1, _8, _255 = (np.uint64(number) for number in (0, 1, 8, 255))
_FEW = np.uint64(FEW)


@polled
@kernel
def _measure_postings(
    offsets: Int64, counts: UInt64, least: int, most: int, first: int, stop: int, sizes: Int64
) -> Any:
    """Write the kept size of each list, at most ``most``; -1 if its counts sum up to less than ``least``."""
    began = interrupts()
    all_kept = nb.int64(0)
    for k in range(nb.uint64(first), nb.uint64(stop)):
        if k & nb.uint64(0xFF) == 0 and interrupts() != began:
            return nb.int64(0)
        start, end = nb.uint64(offsets[k]), nb.uint64(offsets[k + _1])
        total = end - start
        if least > 1:  # otherwise any document is enough
            total = _0
            for i in range(start, end):
                total += counts[i]
        kept = total >= nb.uint64(least)
        sizes[k] = min(end - start, nb.uint64(most)) if kept else -1
        all_kept += sizes[k] if kept else 0
    return all_kept


@inner
def sort_list(
    documents: UInt32,
    counts: UInt64,
    start: Any,
    end: Any,
    histogram: Int64,
    spare_documents: UInt32,
    spare_counts: UInt64,
) -> None:
    """Sort a list by descending count, stably, in place; the spare arrays have room for it, the histogram 256."""
    if end - start <= _FEW:
        for i in range(start + _1, end):
            document, count = documents[i], counts[i]
            j: Any = i
            while j > start and counts[j - _1] < count:
                documents[j], counts[j] = documents[j - _1], counts[j - _1]
                j -= _1
            documents[j], counts[j] = document, count
    else:
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
                place = nb.uint64(histogram[digit])
                spare_documents[place], spare_counts[place] = documents[i], counts[i]
                histogram[digit] += 1
            for i in range(start, end):
                documents[i], counts[i] = spare_documents[i - start], spare_counts[i - start]
            shift += _8


@polled
@njit
def _sort_postings(
    offsets: Int64,
    documents: UInt32,
    counts: UInt64,
    sizes: Int64,
    first: int,
    stop: int,
    to: int,
    made_documents: UInt32,
    made_counts: UInt64,
) -> None:
    """Sort each posting list by descending count, stably, in place, and copy its kept part to the made ones.

    ``to`` is where these copies begin. If the made arrays are empty, all of each list is kept where it is, and
    ``sizes`` is not read.
    """
    began = interrupts()
    histogram = np.zeros(256, np.int64)
    longest = nb.int64(0)
    for k in range(nb.uint64(first), nb.uint64(stop)):
        longest = max(longest, offsets[k + _1] - offsets[k])
    spare_documents, spare_counts = np.empty(longest, np.uint32), np.empty(longest, np.uint64)
    copied = len(made_documents) > 0
    out = nb.uint64(to)
    for k in range(nb.uint64(first), nb.uint64(stop)):
        if k & nb.uint64(0xFF) == 0 and interrupts() != began:
            return
        start, end = nb.uint64(offsets[k]), nb.uint64(offsets[k + _1])
        if copied and sizes[k] <= 0:
            continue
        sort_list(documents, counts, start, end, histogram, spare_documents, spare_counts)
        if copied:
            for i in range(nb.uint64(sizes[k])):
                made_documents[out + i], made_counts[out + i] = documents[start + i], counts[start + i]
            out += nb.uint64(sizes[k])


def rank_postings(
    offsets: Int64, documents: UInt32, counts: UInt64, min_count: int = 1, top: int | None = None
) -> tuple[Int64 | None, Int64, UInt32, UInt64]:
    """Sort each posting list by descending count, then ascending.

    Parameters
    ----------
    offsets, documents, counts
        int64, lists + 1, uint32, ascending within a list, and uint64; they are reordered in place.
    min_count
        Lists with a lower total count are dropped, as are empty ones.
    top
        Maximum number of documents per list.

    Returns
    -------
    (int64 array or None, int64 array, uint32 array, uint64 array)
        Numbers of the kept lists, None for all; offsets of their documents, kept + 1; documents; counts.

    """
    chunks = weighted_chunks(offsets)

    def has_empty(own: tuple[int, int]) -> bool:
        return bool((offsets[own[0] + 1 : own[1] + 1] == offsets[slice(*own)]).any())

    if min_count > 1 or top is not None or any(map_parallel(has_empty, chunks)):
        limits = (
            min(max(min_count, 1), (1 << 63) - 1),
            len(documents) if top is None else min(max(top, 0), len(documents)),
        )
        sizes = scratch(len(offsets) - 1, np.int64)
        ends = map_parallel(lambda own: _measure_postings(offsets, counts, *limits, *own, sizes), chunks)
        starts = running_sum(np.array(ends, np.int64))
        kept = None if sizes.min(initial=0) >= 0 else np.flatnonzero(sizes >= 0)
        if kept is not None or starts[-1] < len(documents):
            made = allocate(int(starts[-1]), np.uint32)[1], allocate(int(starts[-1]), np.uint64)[1]
            if starts[-1]:
                each = list(zip(chunks, starts.tolist(), strict=False))
                map_parallel(
                    lambda own: _sort_postings(offsets, documents, counts, sizes, *own[0], own[1], *made), each
                )
            return kept, running_sum(sizes if kept is None else sizes[kept]), *made
    nothing = np.empty(0, np.int64), documents[:0], counts[:0]
    map_parallel(lambda own: _sort_postings(offsets, documents, counts, nothing[0], *own, 0, *nothing[1:]), chunks)
    return None, offsets, documents, counts
