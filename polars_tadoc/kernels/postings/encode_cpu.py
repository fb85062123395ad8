"""Encodes lists of postings on the CPU (:mod:`polars_tadoc.kernels.postings.coded` defines the layout)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from polars_tadoc.errors import LimitExceededError
from polars_tadoc.kernels.postings.coded import BLOCK, RICE, SPARE_BYTES, Postings, Stream
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.runtime.addresses import atomic_or, bit_length, store_u64
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.jit import inner, kernel
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks

_MAX_BITS = 32
_PLACE_BITS = 8


def encode(
    codec: int,
    document_count: int,
    offsets: Int64,
    documents: UInt32,
    counts: Any,
    widths: tuple[int, int] | None = None,
) -> Postings:
    """Encode lists of postings, with the widths of gaps and counts that minimise each list's bits.

    Parameters
    ----------
    codec
        ``PFORDELTA`` or ``RICE``.
    document_count
        Number of documents.
    offsets
        int64, lists + 1.
    documents
        uint32, ascending within each list, below ``document_count``.
    counts
        uint32 or uint64 by posting, at least 1.
    widths
        Fixed widths of the gaps and the counts of all lists, for parts of a long list; at most 32.

    Returns
    -------
    Postings
        The lists in the given order.

    Raises
    ------
    LimitExceededError
        A document contains a term 2^32 times or more.

    """
    if len(counts) and int(counts.max()) >> 32:
        raise LimitExceededError(
            "build_index: a document contains a word more than 4,294,967,295 times; split this document"
        )
    sizes = np.diff(offsets)
    block_offsets = running_sum(-(-sizes // BLOCK))
    heads = np.empty(int(block_offsets[-1]), np.uint32)
    gaps_width, counts_width = (None, None) if widths is None else widths
    map_parallel(
        lambda chunk: _copy_heads(offsets, block_offsets, documents, chunk[0], chunk[1], heads),
        weighted_chunks(offsets),
    )
    return Postings(
        codec,
        document_count,
        sizes.astype(np.uint32),
        block_offsets,
        heads,
        _encode_stream(codec, offsets, block_offsets, documents, True, gaps_width),
        _encode_stream(codec, offsets, block_offsets, counts.astype(np.uint32, copy=False), False, counts_width),
    )


def width_of(codec: int, parts: Iterable[npt.NDArray[np.unsignedinteger]]) -> int:
    """Return the width that minimises a list's bits, the smallest of equal ones, as :func:`encode` chooses it.

    Parameters
    ----------
    codec
        ``PFORDELTA`` or ``RICE``.
    parts
        The coded values, one part of the list after another.

    """
    lengths = np.zeros(_MAX_BITS + 1, np.int64)
    highs = [0] * (_MAX_BITS + 1)  # sum of the values' high parts, by width
    powers = np.uint64(1) << np.arange(_MAX_BITS, dtype=np.uint64)
    for part in parts:
        lengths += np.bincount(np.searchsorted(powers, part, side="right"), minlength=_MAX_BITS + 1)
        if codec == RICE:
            highs = [more + int((part >> part.dtype.type(w)).sum(dtype=np.uint64)) for w, more in enumerate(highs)]
    total = int(lengths.sum())
    if codec == RICE:
        costs = [total * width + high for width, high in enumerate(highs)]
    else:
        longer = [int(lengths[width + 1 :].sum()) for width in range(_MAX_BITS + 1)]
        costs = [
            total * width + (_PLACE_BITS + 1) * longer[width] + sum(longer[width + 1 :])
            for width in range(_MAX_BITS + 1)
        ]
    return costs.index(min(costs))


def low_offsets(sizes: Int64, widths: npt.NDArray[np.unsignedinteger]) -> Int64:
    """Return the byte offset of each list's low bits, lists + 1, from the lists' sizes and widths."""
    return running_sum((sizes * widths.astype(np.int64) + 7) // 8)


def padded(size: int) -> int:
    """Return the padded length of an array of ``size`` bytes of bits."""
    return -(-size // 8) * 8 + SPARE_BYTES


def no_high_parts() -> tuple[Int64, UInt8, UInt32, UInt8, Int64]:
    """Return the arrays of a stream after its low bits, without exceptions or unary numbers."""
    none = np.zeros(1, np.int64)
    return none, np.empty(0, np.uint8), np.empty(0, np.uint32), np.zeros(SPARE_BYTES, np.uint8), none


def _encode_stream(
    codec: int, offsets: Int64, block_offsets: Int64, numbers: UInt32, are_documents: bool, width: int | None
) -> Stream:
    chunks = weighted_chunks(offsets)
    widths = np.empty(len(offsets) - 1, np.uint8)
    lists = _Lists(offsets, block_offsets, numbers, are_documents, widths)
    high_sizes = np.empty(int(block_offsets[-1]), np.int64)

    def choose(chunk: tuple[int, int]) -> None:
        room = np.empty(_MAX_BITS + 1, np.int64)
        fixed = -1 if width is None else width
        _choose_widths(codec, lists, *chunk, fixed, high_sizes, room)

    map_parallel(choose, chunks)
    starts = low_offsets(np.diff(offsets), widths)
    high_offsets = running_sum(high_sizes)
    low = np.zeros(padded(int(starts[-1])), np.uint8)
    map_parallel(lambda chunk: _write_low(lists, *chunk, starts, low), chunks)
    stream = Stream(widths, low, starts, *no_high_parts())
    size = int(high_offsets[-1])
    if codec == RICE:
        unary = np.zeros(padded(-(-size // 8)), np.uint8)
        stream = stream._replace(unary=unary, unary_offsets=high_offsets)
    else:
        places, highs = np.empty(size, np.uint8), np.empty(size, np.uint32)
        stream = stream._replace(exception_offsets=high_offsets, exception_places=places, exception_highs=highs)

    def write_high(chunk: tuple[int, int]) -> None:
        if codec == RICE:
            _write_unary(lists, *chunk, high_offsets, unary.view(np.uint64))
        else:
            _write_exceptions(lists, *chunk, high_offsets, places, highs)

    map_parallel(write_high, chunks)
    return stream


class _Lists(NamedTuple):
    """Lists of numbers to code, for kernels."""

    offsets: Int64
    block_offsets: Int64
    numbers: UInt32
    are_documents: bool
    """Whether gaps between the numbers are coded; otherwise the numbers less one."""
    widths: UInt8


@kernel
def _copy_heads(offsets: Int64, block_offsets: Int64, documents: UInt32, start: int, stop: int, heads: UInt32) -> None:
    for t in range(start, stop):
        for q in range(block_offsets[t], block_offsets[t + 1]):
            heads[q] = documents[offsets[t] + BLOCK * (q - block_offsets[t])]


@inner
def _value(numbers: UInt32, start: int, i: int, are_documents: bool) -> Any:
    """Return the coded value of posting i of the list that starts at ``start``."""
    if not are_documents:
        return nb.uint64(numbers[i]) - nb.uint64(1)
    if (i - start) % BLOCK == 0:
        return nb.uint64(0)
    return nb.uint64(numbers[i]) - nb.uint64(numbers[i - 1]) - nb.uint64(1)


@inner
def _pfordelta_width(numbers: UInt32, first: int, last: int, are_documents: bool, lengths: Int64) -> Any:
    """Return the width that minimises a list's bits, the smallest of equal ones; ``lengths`` is work space."""
    for length in range(_MAX_BITS + 1):
        lengths[length] = 0
    longest = 0
    for i in range(first, last):
        length = bit_length(_value(numbers, first, i, are_documents))
        lengths[length] += 1
        longest = max(longest, length)
    best, exceptions = longest, 0
    cost = best_cost = (last - first) * longest
    for width in range(longest - 1, -1, -1):
        cost += exceptions + lengths[width + 1] * (_PLACE_BITS + 1) - (last - first)
        exceptions += lengths[width + 1]
        if cost <= best_cost:
            best, best_cost = width, cost
    return best


@inner
def _rice_bits(numbers: UInt32, first: int, last: int, are_documents: bool, width: int) -> Any:
    """Return the bits of a list, without the one bit of each value."""
    bits = nb.uint64((last - first) * width)
    for i in range(first, last):
        bits += _value(numbers, first, i, are_documents) >> nb.uint64(width)
    return bits


@inner
def _rice_width(numbers: UInt32, first: int, last: int, are_documents: bool) -> Any:
    """Return the width that minimises a list's bits, the smallest of equal ones.

    Each further bit reduces a value's high part by half of it, rounded up, which is less each time: the cost has one
    minimum, at or near the width of the mean.
    """
    width = bit_length(_rice_bits(numbers, first, last, are_documents, 0) // nb.uint64(max(1, last - first)))
    bits = _rice_bits(numbers, first, last, are_documents, width)
    while width < _MAX_BITS:
        more = _rice_bits(numbers, first, last, are_documents, width + 1)
        if more >= bits:
            break
        width, bits = width + 1, more
    while width > 0:
        less = _rice_bits(numbers, first, last, are_documents, width - 1)
        if less > bits:
            break
        width, bits = width - 1, less
    return width


@kernel
def _choose_widths(
    codec: int,
    lists: _Lists,
    start: int,
    stop: int,
    fixed: int,
    high_sizes: Int64,
    lengths: Int64,
) -> None:
    """Choose each list's width, or use a nonnegative one for all.

    ``high_sizes`` is filled with each block's number of exceptions or of unary bits.
    """
    for t in range(start, stop):
        first, last = lists.offsets[t], lists.offsets[t + 1]
        if fixed >= 0:
            width = fixed
        elif codec == RICE:
            width = _rice_width(lists.numbers, first, last, lists.are_documents)
        else:
            width = _pfordelta_width(lists.numbers, first, last, lists.are_documents, lengths)
        lists.widths[t] = width
        for q in range(lists.block_offsets[t], lists.block_offsets[t + 1]):
            place = first + BLOCK * (q - lists.block_offsets[t])
            size = min(BLOCK, last - place)
            bits = size if codec == RICE else 0
            for i in range(place, place + size):
                high = nb.int64(_value(lists.numbers, first, i, lists.are_documents) >> nb.uint64(width))
                bits += high if codec == RICE else nb.int64(high != 0)
            high_sizes[q] = bits


@kernel
def _write_low(
    lists: _Lists,
    start: int,
    stop: int,
    low_offsets: Int64,
    low: UInt8,
) -> None:
    base = nb.uint64(low.ctypes.data)
    for t in range(start, stop):
        width = nb.uint64(lists.widths[t])
        mask = (nb.uint64(1) << width) - nb.uint64(1)
        at = base + nb.uint64(low_offsets[t])
        word, filled = nb.uint64(0), nb.uint64(0)
        for i in range(lists.offsets[t], lists.offsets[t + 1]):
            value = _value(lists.numbers, lists.offsets[t], i, lists.are_documents) & mask
            word |= value << filled
            filled += width
            if filled >= nb.uint64(64):
                store_u64(at, word)
                at += nb.uint64(8)
                filled -= nb.uint64(64)
                word = value >> (width - filled)
        at -= base
        while nb.int64(at) < low_offsets[t + 1]:  # byte by byte: another thread may write the next list
            low[nb.int64(at)] = nb.uint8(word & nb.uint64(255))
            word >>= nb.uint64(8)
            at += nb.uint64(1)


@kernel
def _write_unary(
    lists: _Lists,
    start: int,
    stop: int,
    unary_offsets: Int64,
    unary: UInt64,
) -> None:
    """Set the one bits; atomically, because threads may share a word."""
    if start == stop:
        return
    bit = unary_offsets[lists.block_offsets[start]]
    at, word = bit >> 6, nb.uint64(0)
    for t in range(start, stop):
        for i in range(lists.offsets[t], lists.offsets[t + 1]):
            bit += nb.int64(
                _value(lists.numbers, lists.offsets[t], i, lists.are_documents) >> nb.uint64(lists.widths[t])
            )
            if bit >> 6 != at:
                atomic_or(unary, at, word)
                at, word = bit >> 6, nb.uint64(0)
            word |= nb.uint64(1) << nb.uint64(bit & 63)
            bit += 1
    atomic_or(unary, at, word)


@kernel
def _write_exceptions(
    lists: _Lists,
    start: int,
    stop: int,
    exception_offsets: Int64,
    places: UInt8,
    highs: UInt32,
) -> None:
    at = exception_offsets[lists.block_offsets[start]]
    for t in range(start, stop):
        for i in range(lists.offsets[t], lists.offsets[t + 1]):
            high = _value(lists.numbers, lists.offsets[t], i, lists.are_documents) >> nb.uint64(lists.widths[t])
            if high != nb.uint64(0):
                places[at] = nb.uint8((i - lists.offsets[t]) % BLOCK)
                highs[at] = nb.uint32(high)
                at += 1
