"""Copies classes' tables to their documents' results, by document or by terminal."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.keys.posting_order_cpu import sort_list
from polars_tadoc.runtime.addresses import load_u32, load_u64, prefetch
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import inner, kernel

AHEAD = 16
"""Prefetch distance in items of a stream."""

_1, _4, _8, _32, _AHEAD = (np.uint64(number) for number in (1, 4, 8, 32, AHEAD))


@kernel
def offset_documents(sizes: Int64, classes: UInt32, offsets: Int64) -> None:
    """Compute the documents' offsets from their classes' sizes."""
    total = nb.int64(0)
    for d in range(len(classes)):
        offsets[d] = total
        total += sizes[classes[d]]
    offsets[len(classes)] = total


@kernel
def copy_documents(
    sizes: Int64,
    from_terminals: UInt64,
    from_counts: UInt64,
    count_size: int,
    classes: UInt32,
    offsets: Int64,
    first: int,
    stop: int,
    terminals: UInt32,
    counts: UInt64,
) -> None:
    """Copy each document's entries from its class's arrays (addresses) to its position."""
    for d in range(first, stop):
        c = classes[d]
        at, size = nb.uint64(offsets[d]), nb.uint64(sizes[c])
        source, count_source = from_terminals[c], from_counts[c]
        for k in range(size):
            terminals[at + k] = load_u32(source + _4 * k)
        if count_size == 4:
            for k in range(size):
                counts[at + k] = load_u32(count_source + _4 * k)
        else:
            for k in range(size):
                counts[at + k] = load_u64(count_source + _8 * k)


@polled
@kernel
def count_postings(
    sizes: Int64, from_terminals: UInt64, classes: UInt32, first: int, stop: int, postings: Int64
) -> None:
    """Count the documents that contain each terminal."""
    began = interrupts()
    for d in range(first, stop):
        if interrupts() != began:
            return
        source = from_terminals[classes[d]]
        for k in range(nb.uint64(sizes[classes[d]])):
            postings[load_u32(source + _4 * k)] += 1


@kernel
def offset_terminals(cursors: Any, first: int, stop: int, total: int, offsets: Int64) -> None:
    """Convert each chunk's numbers of postings to the positions of its first posting of each terminal of a range.

    ``total`` is the number of postings of the terminals before.
    """
    for t in range(first, stop):
        offsets[t] = total
        for chunk in range(cursors.shape[0]):
            total, cursors[chunk, t] = total + cursors[chunk, t], total


@polled
@kernel
def scatter_postings(
    sizes: Int64,
    from_terminals: UInt64,
    from_counts: UInt64,
    count_size: int,
    classes: UInt32,
    first: int,
    stop: int,
    cursors: Int64,
    documents: UInt32,
    counts: UInt64,
) -> None:
    """Append each document to the postings of its terminals, with counts if there is room for them."""
    began = interrupts()
    counted = len(counts) > 0
    for d in range(first, stop):
        if interrupts() != began:
            return
        c = classes[d]
        source, count_source, size = from_terminals[c], from_counts[c], nb.uint64(sizes[c])
        if not counted:
            for k in range(size):
                t = load_u32(source + _4 * k)
                at = nb.uint64(cursors[t])
                cursors[t] = at + _1
                documents[at] = d
            continue
        for k in range(size):
            t = load_u32(source + _4 * k)
            at = nb.uint64(cursors[t])
            cursors[t] = at + _1
            documents[at] = d
            counts[at] = load_u32(count_source + _4 * k) if count_size == 4 else load_u64(count_source + _8 * k)


@polled
@kernel
def tally_ranges(
    sizes: Int64, from_terminals: UInt64, classes: UInt32, shift: int, first: int, stop: int, tallies: Int64
) -> None:
    """Count the postings of each range of ``1 << shift`` terminals."""
    began = interrupts()
    for d in range(first, stop):
        if interrupts() != began:
            return
        source = from_terminals[classes[d]]
        for k in range(nb.uint64(sizes[classes[d]])):
            tallies[nb.uint64(load_u32(source + _4 * k)) >> nb.uint64(shift)] += 1


@polled
@kernel
def spread_postings(
    sizes: Int64,
    from_terminals: UInt64,
    from_counts: UInt64,
    classes: UInt32,
    shift: int,
    first: int,
    stop: int,
    places: Int64,
    postings: UInt64,
    counts: UInt32,
) -> None:
    """Append each document to the postings of its terminals' ranges: the terminal within the range, and the document.

    Counts, of 4 bytes, are copied if there is room for them.
    """
    began = interrupts()
    counted = len(counts) > 0
    mask = (_1 << nb.uint64(shift)) - _1
    for d in range(first, stop):
        if interrupts() != began:
            return
        c = classes[d]
        source, count_source, document = from_terminals[c], from_counts[c], nb.uint64(d)
        for k in range(nb.uint64(sizes[c])):
            t = nb.uint64(load_u32(source + _4 * k))
            at = nb.uint64(places[t >> nb.uint64(shift)])
            places[t >> nb.uint64(shift)] = at + _1
            postings[at] = (t & mask) << _32 | document
            prefetch(postings, nb.int64(at + _AHEAD))  # more streams than the hardware prefetches
            if counted:
                counts[at] = load_u32(count_source + _4 * k)


@polled
@kernel
def order_postings(
    postings: UInt64,
    own_counts: UInt32,
    bounds: Int64,
    shift: int,
    first: int,
    stop: int,
    cursors: Int64,
    offsets: Int64,
    documents: UInt32,
    counts: UInt64,
) -> None:
    """Order the postings of ranges by terminal, in a core's cache; write the terminals' offsets, too."""
    began = interrupts()
    counted = len(counts) > 0
    for r in range(nb.uint64(first), nb.uint64(stop)):
        if interrupts() != began:
            return
        base, start, end = r << nb.uint64(shift), nb.uint64(bounds[r]), nb.uint64(bounds[r + _1])
        width = min(_1 << nb.uint64(shift), nb.uint64(len(offsets) - 1) - base)
        for t in range(width):
            cursors[t] = 0
        for i in range(start, end):
            cursors[postings[i] >> _32] += 1
        total = nb.int64(start)
        for t in range(width):
            offsets[base + t] = total
            total, cursors[t] = total + cursors[t], total
        for i in range(start, end):
            t = postings[i] >> _32
            at = nb.uint64(cursors[t])
            cursors[t] = at + _1
            documents[at] = nb.uint32(postings[i])
            if counted:
                counts[at] = own_counts[i]


@polled
@kernel
def measure_ranges(
    postings: UInt64,
    own_counts: UInt32,
    bounds: Int64,
    shift: int,
    terminals: int,
    first: int,
    stop: int,
    least: int,
    most: int,
    sizes: Int64,
    totals: UInt64,
    told: Int64,
) -> None:
    """Tell how many lists, and how many of their postings, :func:`rank_ranges` keeps of some ranges."""
    began = interrupts()
    lists, kept = nb.int64(0), nb.int64(0)
    for r in range(nb.uint64(first), nb.uint64(stop)):
        if interrupts() != began:
            return
        width = min(_1 << nb.uint64(shift), nb.uint64(terminals) - (r << nb.uint64(shift)))
        _size_lists(postings, own_counts, nb.uint64(bounds[r]), nb.uint64(bounds[r + _1]), width, sizes, totals)
        for t in range(width):
            if totals[t] >= nb.uint64(least):
                lists += 1
                kept += min(sizes[t], most)
    told[0], told[1] = lists, kept


@inner
def _size_lists(
    postings: UInt64, own_counts: UInt32, start: Any, end: Any, width: Any, sizes: Int64, totals: UInt64
) -> None:
    """Count the postings of each terminal of a range, and add up their counts."""
    for t in range(width):
        sizes[t] = 0
        totals[t] = 0
    for i in range(start, end):
        t = postings[i] >> _32
        sizes[t] += 1
        totals[t] += nb.uint64(own_counts[i])


@polled
@njit
def rank_ranges(
    postings: UInt64,
    own_counts: UInt32,
    bounds: Int64,
    shift: int,
    terminals: int,
    first: int,
    stop: int,
    least: int,
    most: int,
    list_at: int,
    at: int,
    kept: UInt32,
    offsets: Int64,
    documents: UInt32,
    counts: UInt64,
) -> None:
    """Order the postings of ranges by terminal, then by descending count, in a core's cache; write the kept ones.

    Lists whose counts sum up to less than ``least`` are dropped, others have at most ``most`` documents. ``list_at``
    and ``at`` are the positions of the first list and of its first document. ``kept`` gets the lists' terminals if
    there is room for them.
    """
    began = interrupts()
    longest = nb.int64(0)
    for r in range(nb.uint64(first), nb.uint64(stop)):
        longest = max(longest, bounds[r + _1] - bounds[r])
    sizes, cursors = np.empty((2, 1 << shift), np.int64)
    totals = np.empty(1 << shift, np.uint64)
    own_documents, spare_documents = np.empty((2, longest), np.uint32)
    own, spare = np.empty((2, longest), np.uint64)
    histogram = np.empty(256, np.int64)
    listed, out = nb.uint64(list_at), nb.uint64(at)
    for r in range(nb.uint64(first), nb.uint64(stop)):
        if interrupts() != began:
            return
        base, start, end = r << nb.uint64(shift), nb.uint64(bounds[r]), nb.uint64(bounds[r + _1])
        width = min(_1 << nb.uint64(shift), nb.uint64(terminals) - base)
        _size_lists(postings, own_counts, start, end, width, sizes, totals)
        total = nb.int64(0)
        for t in range(width):
            total, cursors[t] = total + sizes[t], total
        for i in range(start, end):
            t = postings[i] >> _32
            place = nb.uint64(cursors[t])
            cursors[t] = place + _1
            own_documents[place], own[place] = nb.uint32(postings[i]), own_counts[i]
        stop_at = nb.uint64(0)
        for t in range(width):
            start_at, stop_at = stop_at, stop_at + nb.uint64(sizes[t])
            if totals[t] < nb.uint64(least):
                continue
            sort_list(own_documents, own, start_at, stop_at, histogram, spare_documents, spare)
            offsets[listed] = out
            if len(kept):
                kept[listed] = base + t
            listed += _1
            for i in range(min(stop_at - start_at, nb.uint64(most))):
                documents[out], counts[out] = own_documents[start_at + i], own[start_at + i]
                out += _1
