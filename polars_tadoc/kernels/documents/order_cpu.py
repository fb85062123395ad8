"""Sorts each document's terminals by descending count, then rank, without comparison sorting."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.runtime.addresses import trailing_zeros
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.jit import kernel

FEW = 48
"""Up to this many terminals, a terminal's position is the counted number of those before it, which vectorises well."""

COUNTERS = 256
"""Smaller counts are sorted by counting; the few larger ones by radix sort."""

_0, _1, _6, _8, _12, _63, _64, _255 = (np.uint64(number) for number in (0, 1, 6, 8, 12, 63, 64, 255))
_FEW, _SIGNED = np.uint64(FEW), np.uint64(1 << 31)


@kernel
def order_documents(
    sizes: Int64,
    first: int,
    stop: int,
    at: int,
    terminals: UInt32,
    counts: Any,
    rank: UInt32,
    by_rank: UInt32,
    marks: UInt64,
    summary: UInt64,
    keys: Int64,
    spare: UInt32,
    spare_counts: Any,
    histogram: Int64,
) -> None:
    """Sort the terminals of documents ``first`` to ``stop``, contiguous from ``at`` on.

    ``by_rank`` is the inverse of ``rank``. The bitmap ``marks`` and its ``summary`` are zero before and after. ``keys``
    has room for ``FEW``, ``spare`` and ``spare_counts`` for all terminals, ``histogram`` for ``COUNTERS``.
    """
    start, most_counted = nb.uint64(at), nb.uint64(COUNTERS - 1)
    for m in range(first, stop):
        n = nb.uint64(sizes[m])
        most = _0
        for k in range(start, start + n):
            most = max(most, nb.uint64(counts[k]))
        if n <= _FEW and most < _SIGNED:
            for k in range(n):
                spare[k] = terminals[start + k]
                spare_counts[k] = counts[start + k]
                keys[k] = nb.int64(rank[spare[k]]) - (nb.int64(spare_counts[k]) << 32)
            for k in range(n):
                key = keys[k]
                place = start
                for j in range(n):
                    place += nb.uint64(keys[j] < key)
                terminals[place] = spare[k]
                counts[place] = spare_counts[k]
            start += n
            continue
        for k in range(start, start + n):
            place = nb.uint64(rank[terminals[k]])
            marks[place >> _6] |= _1 << (place & _63)
            summary[place >> _12] |= _1 << (place >> _6 & _63)
            spare_counts[place] = counts[k]
        clipped = min(most, most_counted)
        for c in range(clipped + _1):
            histogram[c] = 0
        reached = _0
        for i in range(nb.uint64(len(summary))):
            words = summary[i]
            summary[i] = 0
            while words != 0:
                word = (i << _6) + nb.uint64(trailing_zeros(words))
                words &= words - _1
                bits = marks[word]
                marks[word] = 0
                while bits != 0:
                    place = (word << _6) + nb.uint64(trailing_zeros(bits))
                    bits &= bits - _1
                    spare[reached] = place
                    reached += _1
                    histogram[min(nb.uint64(spare_counts[place]), most_counted)] += 1
        before = nb.int64(start)
        for c in range(clipped + _1):
            before, histogram[clipped - c] = before + histogram[clipped - c], before
        for k in range(n):
            place = nb.uint64(spare[k])
            count = spare_counts[place]
            bucket = min(nb.uint64(count), most_counted)
            to = nb.uint64(histogram[bucket])
            histogram[bucket] += 1
            terminals[to] = by_rank[place]
            counts[to] = count
        large = nb.uint64(histogram[COUNTERS - 1]) - start if clipped == most_counted else _0
        shift = _0
        while large > _1 and shift < _64 and most >> shift != 0:
            for c in range(256):
                histogram[c] = 0
            for k in range(large):
                spare[k] = terminals[start + k]
                spare_counts[k] = counts[start + k]
                histogram[_255 - (nb.uint64(spare_counts[k]) >> shift & _255)] += 1
            before = nb.int64(start)
            for c in range(256):
                before, histogram[c] = before + histogram[c], before
            for k in range(large):
                bucket = _255 - (nb.uint64(spare_counts[k]) >> shift & _255)
                to = nb.uint64(histogram[bucket])
                histogram[bucket] += 1
                terminals[to] = spare[k]
                counts[to] = spare_counts[k]
            shift += _8
        start += n


@kernel
def rank_documents(
    sizes: Int64,
    first: int,
    stop: int,
    at: int,
    terminals: UInt32,
    counts: Any,
    rank: UInt32,
    by_rank: UInt32,
    marks: UInt64,
    summary: UInt64,
    spare_counts: Any,
) -> None:
    """Sort the terminals of documents by rank alone; otherwise as :func:`order_documents`."""
    start = nb.uint64(at)
    for m in range(first, stop):
        n = nb.uint64(sizes[m])
        for k in range(start, start + n):
            place = nb.uint64(rank[terminals[k]])
            marks[place >> _6] |= _1 << (place & _63)
            summary[place >> _12] |= _1 << (place >> _6 & _63)
            spare_counts[place] = counts[k]
        to = start
        for i in range(nb.uint64(len(summary))):
            words = summary[i]
            summary[i] = 0
            while words != 0:
                word = (i << _6) + nb.uint64(trailing_zeros(words))
                words &= words - _1
                bits = marks[word]
                marks[word] = 0
                while bits != 0:
                    place = (word << _6) + nb.uint64(trailing_zeros(bits))
                    bits &= bits - _1
                    terminals[to] = by_rank[place]
                    counts[to] = spare_counts[place]
                    to += _1
        start += n
