"""Copies classes' tables to their documents' results, by document or by terminal."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.runtime.addresses import load_u32, load_u64
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import kernel

_1, _4, _8 = np.uint64(1), np.uint64(4), np.uint64(8)


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
def offset_terminals(cursors: Any, offsets: Int64) -> None:
    """Convert each chunk's numbers of postings to the positions of its first posting of each terminal."""
    total = nb.int64(0)
    for t in range(cursors.shape[1]):
        offsets[t] = total
        for chunk in range(cursors.shape[0]):
            total, cursors[chunk, t] = total + cursors[chunk, t], total
    offsets[cursors.shape[1]] = total


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
