"""Counts each document's words without rules: counters by word, and bitmaps that list words in order."""

from __future__ import annotations

import numba as nb
import numpy as np

from polars_tadoc.runtime.addresses import trailing_zeros
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.arrow_memory import allocate
from polars_tadoc.runtime.jit import kernel
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks


def terms_of_text(
    terminals: int, root_offsets: Int64, roots: UInt32, rank: UInt32 | None = None
) -> tuple[Int64, UInt32, UInt64]:
    """Count each document's distinct terminals, by rank.

    Parameters
    ----------
    terminals
        Number of terminals.
    root_offsets, roots
        int64, documents + 1, and uint32: the documents' terminals, fewer than 2^32 per document.
    rank
        uint32 by terminal: its rank; None for the order of terminals.

    Returns
    -------
    (int64[documents + 1], uint32 array, uint64 array)
        Offsets of each document's terminals, the terminals, and their counts in the document.

    """
    if rank is not None:
        offsets, places, counts = terms_of_text(terminals, root_offsets, rank[roots])
        by_rank = np.empty(terminals, np.uint32)
        by_rank[rank] = np.arange(terminals, dtype=np.uint32)
        return offsets, by_rank[places], counts
    chunks = weighted_chunks(root_offsets)
    offsets = np.zeros(len(root_offsets), np.int64)

    def measure(chunk: tuple[int, int]) -> None:
        _count_distinct(root_offsets, roots, *chunk, np.zeros(terminals, np.uint32), offsets)

    map_parallel(measure, chunks)
    room = int(offsets.max()) + 1
    np.cumsum(offsets, out=offsets)
    _, words = allocate(int(offsets[-1]), np.uint32)  # used in results without a copy
    _, counts = allocate(int(offsets[-1]), np.uint64)

    def count(chunk: tuple[int, int]) -> None:
        found, counters = np.empty(room, np.uint32), np.zeros(terminals, np.uint32)
        bits = [np.zeros((terminals >> shift) + 1, np.uint64) for shift in (6, 12, 18)]
        _count_terms(root_offsets, roots, *chunk, found, counters, *bits, offsets, words, counts)

    map_parallel(count, chunks)
    return offsets, words, counts


@kernel
def _count_distinct(root_offsets: Int64, roots: UInt32, first: int, last: int, latest: UInt32, distinct: Int64) -> None:
    """Count the distinct terminals of documents ``first`` to ``last``: ``distinct[1 + document]``."""
    for document in range(first, last):
        own = nb.uint32(document + 1)
        found = 0
        for i in range(root_offsets[document], root_offsets[document + 1]):
            found += latest[roots[i]] != own
            latest[roots[i]] = own
        distinct[document + 1] = found


@kernel
def _count_terms(
    root_offsets: Int64,
    roots: UInt32,
    first: int,
    last: int,
    found: UInt32,
    counters: UInt32,
    bits: UInt64,
    bits_of_64: UInt64,
    bits_of_4096: UInt64,
    offsets: Int64,
    words: UInt32,
    counts: UInt64,
) -> None:
    """Count documents ``first`` to ``last``; counters and bits are zero before and after.

    ``found`` is work space, one more than the maximum number of terminals of a document.

    A bit of ``bits_of_64`` tells that a word of ``bits`` is nonzero, one of ``bits_of_4096`` that a word of those is:
    so a document's words are listed in order without scanning missing ones.
    """
    one = nb.uint64(1)
    for document in range(first, last):
        distinct = 0
        for i in range(root_offsets[document], root_offsets[document + 1]):
            word = roots[i]
            found[distinct] = word  # no unpredictable branch
            distinct += counters[word] == 0
            counters[word] += nb.uint32(1)
        for i in range(distinct):
            word = nb.uint64(found[i])
            bits[word >> nb.uint64(6)] |= one << (word & nb.uint64(63))
            bits_of_64[word >> nb.uint64(12)] |= one << ((word >> nb.uint64(6)) & nb.uint64(63))
            bits_of_4096[word >> nb.uint64(18)] |= one << ((word >> nb.uint64(12)) & nb.uint64(63))
        at = offsets[document]
        for high in range(len(bits_of_4096)):
            upper = bits_of_4096[high]
            bits_of_4096[high] = 0
            while upper != 0:
                middle_at = 64 * high + trailing_zeros(upper)
                upper &= upper - one
                middle = bits_of_64[middle_at]
                bits_of_64[middle_at] = 0
                while middle != 0:
                    low_at = 64 * middle_at + trailing_zeros(middle)
                    middle &= middle - one
                    low = bits[low_at]
                    bits[low_at] = 0
                    while low != 0:
                        word_ = 64 * low_at + trailing_zeros(low)
                        low &= low - one
                        words[at] = word_
                        counts[at] = counters[word_]
                        counters[word_] = 0
                        at += 1
