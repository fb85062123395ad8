"""Puts each document's terminals in order, by count falling, then rank, without comparing them one by one."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.cpu.memory import trailing_zeros

UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
Int64 = npt.NDArray[np.int64]

FEW = 48
"""Terminals up to which each one's place is the number of those before it, counted: a processor does many at once."""

COUNTERS = 256
"""Counts below this are put in order by counting; the few above digit by digit."""

_1 = np.uint64(1)


@nb.njit(nogil=True, cache=True)
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
    """Put the terminals of documents ``first`` to ``stop``, which stand one after another from ``at`` on, in order.

    ``by_rank`` turns ``rank`` round. The bitmap ``marks`` and its ``summary`` are zero before and after. ``keys`` has
    room for ``FEW``, ``spare`` and ``spare_counts`` for all terminals, ``histogram`` for ``COUNTERS``.
    """
    for m in range(first, stop):
        n = sizes[m]
        most = nb.uint64(0)
        for k in range(at, at + n):
            most = max(most, nb.uint64(counts[k]))
        if n <= FEW and most < nb.uint64(1 << 31):
            for k in range(n):
                spare[k] = terminals[at + k]
                spare_counts[k] = counts[at + k]
                keys[k] = nb.int64(rank[spare[k]]) - (nb.int64(spare_counts[k]) << 32)
            for k in range(n):
                key = keys[k]
                place = nb.int64(at)
                for j in range(n):
                    place += keys[j] < key
                terminals[place] = spare[k]
                counts[place] = spare_counts[k]
            at += n
            continue
        for k in range(at, at + n):
            place = nb.int64(rank[terminals[k]])
            marks[place >> 6] |= _1 << nb.uint64(place & 63)
            summary[place >> 12] |= _1 << nb.uint64(place >> 6 & 63)
            spare_counts[place] = counts[k]
        clipped = nb.int64(min(most, nb.uint64(COUNTERS - 1)))
        for c in range(clipped + 1):
            histogram[c] = 0
        k = nb.int64(0)
        for i in range(len(summary)):
            words = summary[i]
            summary[i] = 0
            while words != 0:
                word = (i << 6) + trailing_zeros(words)
                words &= words - _1
                bits = marks[word]
                marks[word] = 0
                while bits != 0:
                    place = (word << 6) + trailing_zeros(bits)
                    bits &= bits - _1
                    spare[k] = place
                    k += 1
                    histogram[min(nb.uint64(spare_counts[place]), nb.uint64(COUNTERS - 1))] += 1
        before = nb.int64(at)
        for c in range(clipped, -1, -1):
            before, histogram[c] = before + histogram[c], before
        for k in range(n):
            count = spare_counts[spare[k]]
            c = min(nb.uint64(count), nb.uint64(COUNTERS - 1))
            terminals[histogram[c]] = by_rank[spare[k]]
            counts[histogram[c]] = count
            histogram[c] += 1
        large = histogram[COUNTERS - 1] - at if clipped == COUNTERS - 1 else nb.int64(0)
        shift = nb.uint64(0)
        while large > 1 and shift < nb.uint64(64) and most >> shift != 0:
            for c in range(256):
                histogram[c] = 0
            for k in range(large):
                spare[k] = terminals[at + k]
                spare_counts[k] = counts[at + k]
                histogram[255 - nb.int64(nb.uint64(spare_counts[k]) >> shift & nb.uint64(255))] += 1
            before = nb.int64(at)
            for c in range(256):
                before, histogram[c] = before + histogram[c], before
            for k in range(large):
                c = nb.uint64(255) - (nb.uint64(spare_counts[k]) >> shift & nb.uint64(255))
                terminals[histogram[c]] = spare[k]
                counts[histogram[c]] = spare_counts[k]
                histogram[c] += 1
            shift += nb.uint64(8)
        at += n
