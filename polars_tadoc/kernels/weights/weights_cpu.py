"""Weighs the terms of documents by BM25 and TF-IDF, and selects the top terms; each in one pass over the postings."""

from __future__ import annotations

import math
from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.primitives.codes import DELETED
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.runtime.array_types import Float64, Int64, UInt32, UInt64
from polars_tadoc.runtime.arrow_memory import allocate
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import inner, kernel, polled_kernel
from polars_tadoc.runtime.parallel import even_chunks, map_parallel, weighted_chunks

NORMS = {None: 0, "l1": 1, "l2": 2}
"""Norms, as the kernel's argument."""

COUNTED = 256
"""Logarithms of smaller counts are in a table."""

BLOCK = 64
"""Squares summed without compensation: the error is at most this many roundings of one of them."""

_NONE = np.zeros(0)


def document_frequencies(terminals: UInt32, size: int) -> UInt64:
    """Count the documents that contain each terminal.

    Parameters
    ----------
    terminals
        uint32 by posting; distinct within a document.
    size
        Number of terminals.

    Returns
    -------
    uint64 array
        By terminal, length ``size``.

    """

    def count(chunk: tuple[int, int]) -> UInt64:
        frequencies = np.zeros(size, np.uint64)
        _count_documents(terminals, *chunk, frequencies)
        return frequencies

    parts = map_parallel(count, even_chunks(len(terminals), max(1 << 17, 4 * size)))
    for part in parts[1:]:
        parts[0] += part
    return parts[0]


def document_lengths(offsets: Int64, counts: UInt64) -> UInt64:
    """Sum the counts of each document: uint64 by document; ``offsets`` are documents + 1."""
    lengths = np.empty(len(offsets) - 1, np.uint64)
    map_parallel(lambda chunk: _sum_counts(offsets, counts, *chunk, lengths), weighted_chunks(offsets))
    return lengths


def weigh_bm25(
    offsets: Int64, terminals: UInt32, counts: UInt64, weights: Float64, norms: Float64, bases: Float64 | None
) -> Float64:
    """Weigh terms by ``weight * (count / (count + norm)) + base``, rounded after every operation.

    Parameters
    ----------
    offsets
        int64, documents + 1: offsets of each document's postings.
    terminals, counts
        uint32 and uint64 by posting.
    weights, bases
        float64 by terminal; bases may be None if all are 0.
    norms
        float64 by document.

    Returns
    -------
    float64 array
        By posting.

    """
    _, weighed = allocate(len(terminals), np.float64)  # used in results without a copy
    added = _NONE if bases is None else bases

    def weigh(chunk: tuple[int, int]) -> None:
        _weigh_bm25(offsets, terminals, counts, weights, norms, added, bases is not None, *chunk, weighed)

    map_parallel(weigh, weighted_chunks(offsets))
    return weighed


def weigh_tfidf(
    offsets: Int64, terminals: UInt32, counts: UInt64, idf: Float64 | None, sublinear: bool, norm: str | None
) -> Float64:
    """Weigh terms by their count times ``idf``, with documents scaled to norm 1.

    Parameters
    ----------
    offsets, terminals, counts
        As for :func:`weigh_bm25`.
    idf
        float64 by terminal; None for 1.
    sublinear
        Replace the count by ``1 + ln(count)``.
    norm
        "l1", "l2" or None. A document whose weights are all zero stays unchanged.

    Returns
    -------
    float64 array
        By posting.

    """
    _, weighed = allocate(len(terminals), np.float64)
    logarithms = 1.0 + np.log(np.maximum(np.arange(COUNTED if sublinear else 0), 1))
    factors = _NONE if idf is None else idf

    def weigh(chunk: tuple[int, int]) -> None:
        _weigh_tfidf(
            offsets, terminals, counts, factors, idf is not None, logarithms, sublinear, NORMS[norm], *chunk, weighed
        )

    map_parallel(weigh, weighted_chunks(offsets))
    return weighed


def top_weights(
    offsets: Int64, terminals: UInt32, weights: Float64, rank: UInt32 | None, top: int
) -> tuple[Int64, UInt32, Float64]:
    """Keep each document's terms of highest weight.

    Parameters
    ----------
    offsets, terminals, weights
        int64, documents + 1, uint32 and float64 by posting.
    rank
        uint32 by terminal: rank for ties; None for the order of terminals.
    top
        Maximum number of terms per document.

    Returns
    -------
    (int64 array, uint32 array, float64 array)
        Offsets by document; terminals and weights, by descending weight, then rank.

    """
    taken = running_sum(np.minimum(offsets[1:] - offsets[:-1], min(top, np.iinfo(np.int64).max)))
    kept, heaviest = np.empty(taken[-1], np.uint32), np.empty(taken[-1])
    places = np.zeros(0, np.uint32) if rank is None else rank

    def pick(chunk: tuple[int, int]) -> None:
        _pick(offsets, terminals, weights, places, rank is not None, taken, *chunk, kept, heaviest)

    map_parallel(pick, weighted_chunks(offsets))
    return taken, kept, heaviest


def merge_terms(offsets: Int64, terminals: UInt32, counts: UInt64, image: UInt32) -> tuple[Int64, UInt32, UInt64]:
    """Map the terms of documents, and sum the counts of adjacent equal ones.

    Parameters
    ----------
    offsets, terminals, counts
        int64, documents + 1, uint32 and uint64 by posting; a document's terms with equal images are adjacent, deleted
        ones may be anywhere.
    image
        uint32 by terminal: its image, ``DELETED`` for none.

    Returns
    -------
    (int64 array, uint32 array, uint64 array)
        Offsets by document, documents + 1; images and counts, in the order of the terms.

    """
    chunks, sizes = weighted_chunks(offsets), np.zeros(len(offsets), np.int64)
    map_parallel(lambda chunk: _size_merged(offsets, terminals, image, *chunk, sizes), chunks)
    merged_offsets = np.cumsum(sizes)
    _, merged = allocate(int(merged_offsets[-1]), np.uint32)
    _, sums = allocate(int(merged_offsets[-1]), np.uint64)

    def merge(chunk: tuple[int, int]) -> None:
        _merge(offsets, terminals, counts, image, *chunk, merged_offsets, merged, sums)

    map_parallel(merge, chunks)
    return merged_offsets, merged, sums


@kernel
def _size_merged(offsets: Int64, terminals: UInt32, image: UInt32, first: int, stop: int, sizes: Int64) -> None:
    for d in range(first, stop):
        size, before = 0, nb.uint32(DELETED)
        for i in range(offsets[d], offsets[d + 1]):
            own = image[terminals[i]]
            if own != nb.uint32(DELETED):
                size += own != before
                before = own
        sizes[d + 1] = size


@kernel
def _merge(
    offsets: Int64,
    terminals: UInt32,
    counts: UInt64,
    image: UInt32,
    first: int,
    stop: int,
    merged_offsets: Int64,
    merged: UInt32,
    sums: UInt64,
) -> None:
    for d in range(first, stop):
        at, before = merged_offsets[d] - 1, nb.uint32(DELETED)
        for i in range(offsets[d], offsets[d + 1]):
            own = image[terminals[i]]
            if own == nb.uint32(DELETED):
                continue
            if own != before:
                at += 1
                merged[at], sums[at], before = own, 0, own
            sums[at] += counts[i]


@kernel
def _count_documents(terminals: UInt32, first: int, stop: int, frequencies: UInt64) -> None:
    for i in range(first, stop):
        frequencies[terminals[i]] += nb.uint64(1)


@polled_kernel
def _sum_counts(offsets: Int64, counts: UInt64, first: int, stop: int, lengths: UInt64) -> None:
    began = interrupts()
    for d in range(first, stop):
        if d & 0xFFF == 0 and interrupts() != began:
            return
        total = nb.uint64(0)
        for i in range(offsets[d], offsets[d + 1]):
            total += counts[i]
        lengths[d] = total


@polled_kernel
def _weigh_bm25(
    offsets: Int64,
    terminals: UInt32,
    counts: UInt64,
    weights: Float64,
    norms: Float64,
    bases: Float64,
    based: bool,
    first: int,
    stop: int,
    weighed: Float64,
) -> None:
    began = interrupts()
    for d in range(first, stop):
        if d & 0xFF == 0 and interrupts() != began:
            return
        norm = norms[d]
        for i in range(offsets[d], offsets[d + 1]):
            count = nb.float64(counts[i])
            weight = weights[terminals[i]] * (count / (count + norm))
            weighed[i] = weight + bases[terminals[i]] if based else weight


@polled_kernel
def _weigh_tfidf(
    offsets: Int64,
    terminals: UInt32,
    counts: UInt64,
    idf: Float64,
    inverse: bool,
    logarithms: Float64,
    sublinear: bool,
    norm: int,
    first: int,
    stop: int,
    weighed: Float64,
) -> None:
    began = interrupts()
    for d in range(first, stop):
        if d & 0xFF == 0 and interrupts() != began:
            return
        total, lost = 0.0, 0.0
        for start in range(offsets[d], offsets[d + 1], BLOCK):
            part = 0.0
            for i in range(start, min(start + BLOCK, offsets[d + 1])):
                weight = nb.float64(counts[i])
                if sublinear:
                    weight = logarithms[counts[i]] if counts[i] < nb.uint64(len(logarithms)) else 1.0 + math.log(weight)
                if inverse:
                    weight *= idf[terminals[i]]
                weighed[i] = weight
                part += weight * weight if norm == 2 else abs(weight)
            # Kahan summation: add the rounding error of long documents again
            part -= lost
            before, total = total, total + part
            lost = (total - before) - part
        if norm != 0:
            size = math.sqrt(total) if norm == 2 else total
            if size != 0.0:
                for i in range(offsets[d], offsets[d + 1]):
                    weighed[i] /= size


@inner
def _before(weight: float, terminal: int, other_weight: float, other: int, rank: UInt32, ranked: bool) -> Any:
    """Tell whether a term precedes another one: higher weight, or equal weight and lower rank."""
    if weight != other_weight:
        return weight > other_weight
    return rank[terminal] < rank[other] if ranked else terminal < other


@inner
def _sink(
    kept: UInt32, heaviest: Float64, base: int, size: int, terminal: int, weight: float, rank: UInt32, ranked: bool
) -> None:
    """Replace the root of a heap that is stored last, and sift it down."""
    at = 0
    while True:
        down = 2 * at + 1
        if down >= size:
            break
        if down + 1 < size and _before(
            heaviest[base + down], kept[base + down], heaviest[base + down + 1], kept[base + down + 1], rank, ranked
        ):
            down += 1
        if _before(heaviest[base + down], kept[base + down], weight, terminal, rank, ranked):
            break
        kept[base + at], heaviest[base + at] = kept[base + down], heaviest[base + down]
        at = down
    kept[base + at], heaviest[base + at] = terminal, weight


@kernel
def _pick(
    offsets: Int64,
    terminals: UInt32,
    weights: Float64,
    rank: UInt32,
    ranked: bool,
    taken: Int64,
    first: int,
    stop: int,
    kept: UInt32,
    heaviest: Float64,
) -> None:
    """Keep the top terms in a heap with the lowest at its root; popping them fills the output from its end."""
    for d in range(first, stop):
        base = taken[d]
        size = taken[d + 1] - base
        if size == 0:
            continue
        for i in range(size):  # build the heap
            terminal, weight = terminals[offsets[d] + i], weights[offsets[d] + i]
            at = i
            while at > 0:
                up = (at - 1) >> 1
                other = kept[base + up]
                if not _before(heaviest[base + up], other, weight, terminal, rank, ranked):
                    break
                kept[base + at], heaviest[base + at] = other, heaviest[base + up]
                at = up
            kept[base + at], heaviest[base + at] = terminal, weight
        for i in range(offsets[d] + size, offsets[d + 1]):
            if _before(weights[i], terminals[i], heaviest[base], kept[base], rank, ranked):
                _sink(kept, heaviest, base, size, terminals[i], weights[i], rank, ranked)
        for end in range(size - 1, 0, -1):
            terminal, weight = kept[base + end], heaviest[base + end]
            kept[base + end], heaviest[base + end] = kept[base], heaviest[base]
            _sink(kept, heaviest, base, end, terminal, weight, rank, ranked)
