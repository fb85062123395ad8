"""Decodes lists of postings on the CPU (:mod:`polars_tadoc.kernels.postings.coded` defines the layout)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from polars_tadoc.kernels.postings.coded import BLOCK, RICE, SPARE_BYTES, Postings, Stream
from polars_tadoc.kernels.postings.unary_cpu import add_high_parts, block_on_stack, increment, ones_on_stack, store_ones
from polars_tadoc.kernels.postings.unpack_cpu import UNPACKED, sum_gaps, unpack_block
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.runtime.addresses import (
    bit_length,
    count_ones,
    load_u8,
    load_u32,
    load_u64,
    store_u32,
    trailing_zeros,
)
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.jit import address_of, call, inner, kernel
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks


def decode_lists(postings: Postings, lists: UInt32) -> tuple[Int64, UInt32, UInt32]:
    """Decode whole lists.

    Parameters
    ----------
    postings
        The coded lists.
    lists
        uint32: numbers of lists, in any order.

    Returns
    -------
    (int64 array, uint32 array, uint32 array)
        Offsets of the lists, lists + 1; documents, ascending within each; their counts.

    """
    offsets = running_sum(postings.frequencies[lists].astype(np.int64))
    documents = np.empty(int(offsets[-1]), np.uint32)
    counts = np.empty(int(offsets[-1]), np.uint32)
    addresses = addresses_of(postings)
    map_parallel(
        lambda chunk: _decode_lists(addresses, lists, offsets, chunk[0], chunk[1], documents, counts),
        weighted_chunks(offsets),
    )
    return offsets, documents, counts


def count_at(postings: Postings, number: int, place: int) -> int:
    """Decode the count at ``place`` of list ``number``; both must exist."""
    block = int(postings.block_offsets[number]) + place // BLOCK
    return int(_count_at(addresses_of(postings), np.uint64(number), np.uint64(block), np.uint64(place % BLOCK)))


def load_postings(postings: Postings) -> Postings:
    """Make postings resident for the kernels; on the CPU they already are."""
    return postings


def resident_postings(postings: Postings, budget: int) -> Postings:
    """Make postings resident for the kernels; on the CPU they already are, so the budget has no effect."""
    return postings


class StreamView(NamedTuple):
    """Addresses of a stream's arrays; arrays would need 100 updates of reference counts per block."""

    widths: Any
    low: Any
    low_offsets: Any
    exception_offsets: Any
    exception_places: Any
    exception_highs: Any
    unary: Any
    unary_end: Any
    unary_offsets: Any


class View(NamedTuple):
    """Addresses of the arrays of postings, which their owner keeps alive, for kernels that decode block by block."""

    codec: Any
    documents: Any
    frequencies: Any
    block_offsets: Any
    heads: Any
    gaps: StreamView
    counts: StreamView
    unpack: Any
    """Address of ``_unpack``, compiled: inlining it in six kernels added five seconds to the first search's compile
    time."""
    add_unary: Any
    """Address of ``_add_unary``, compiled."""
    lists: Any
    """Number of lists."""


def addresses_of(postings: Postings) -> UInt64:
    """Return the addresses of postings for :func:`view_at`, in one array: passing tuples takes 10 µs longer."""
    if postings.addresses is None:
        postings.addresses = np.array(_addresses(postings), np.uint64)
    return postings.addresses  # type: ignore[no-any-return]


def _addresses(postings: Postings) -> list[int]:
    def of(arrays: Any) -> list[int]:
        return [array.ctypes.data for array in arrays]

    def stream(arrays: Stream) -> list[int]:
        *before, unary, unary_offsets = of(arrays)
        return [*before, unary, unary + len(arrays.unary) - SPARE_BYTES, unary_offsets]

    arrays = of([postings.frequencies, postings.block_offsets, postings.heads])
    compiled = [int(address_of(_unpack, 4)), int(address_of(_add_unary, 7))]
    numbers = [int(postings.codec), int(postings.documents)]
    return [*numbers, *arrays, *stream(postings.gaps), *stream(postings.counts), *compiled, len(postings.frequencies)]


@inner
def view_at(a: UInt64) -> View:
    """Return the view of postings from the result of :func:`addresses_of`."""
    gaps = StreamView(a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13])
    counts = StreamView(a[14], a[15], a[16], a[17], a[18], a[19], a[20], a[21], a[22])
    return View(a[0], a[1], a[2], a[3], a[4], gaps, counts, a[23], a[24], a[25])


def _unpack(source: int, width: int, groups: int, target: int) -> None:
    unpack_block(source, width, groups, target)


def _add_unary(bit: int, unary: int, end: int, size: int, width: int, groups: int, target: int) -> None:
    """Add the high parts of a block of a Rice stream; values beyond the end of the bits are undefined."""
    ones = ones_on_stack()
    word_at = unary + (bit >> nb.uint64(3))
    before = nb.uint32(0) - nb.uint32(bit & nb.uint64(7))  # positions count from the block's first bit, modulo 2^32
    word = load_u64(word_at) & (~nb.uint64(0) << (bit & nb.uint64(7)))
    found = nb.uint64(0)
    while True:
        store_ones(word, before, ones + (found << nb.uint64(2)))
        found += nb.uint64(count_ones(word))
        before += nb.uint32(64)
        word_at += nb.uint64(8)
        if found >= size or word_at >= end:
            break
        word = load_u64(word_at)
    add_high_parts(ones, width, groups, target)


@inner
def _add_exceptions(first: int, last: int, places: int, highs: int, width: int, target: int) -> None:
    for e in range(first, last):
        at = target + (nb.uint64(load_u8(places + e) & nb.uint8(BLOCK - 1)) << nb.uint64(2))
        high = nb.uint64(load_u32(highs + (e << nb.uint64(2))))
        store_u32(at, load_u32(at) | nb.uint32(high << width))


# inlined: passing all addresses took a third of a block's time
@njit(inline="always")
def _size(postings: View, number: int, block: int) -> Any:
    """Return the number of postings of a block."""
    first = load_u64(postings.block_offsets + (number << nb.uint64(3)))
    frequency = nb.uint64(load_u32(postings.frequencies + (number << nb.uint64(2))))
    return min(nb.uint64(BLOCK), frequency - nb.uint64(BLOCK) * (block - first))


@njit(inline="always")
def _decode_values(postings: View, stream: StreamView, number: int, block: int, size: int, target: int) -> Any:
    """Decode a block's values to an address; return how many groups of ``UNPACKED`` were written."""
    width = nb.uint64(load_u8(stream.widths + number))
    groups = (size + nb.uint64(UNPACKED - 1)) // nb.uint64(UNPACKED)
    # a block begins at a whole byte: its 128 values of any width fill whole bytes
    before = (block - load_u64(postings.block_offsets + (number << nb.uint64(3)))) * nb.uint64(BLOCK // 8) * width
    source = stream.low + load_u64(stream.low_offsets + (number << nb.uint64(3))) + before
    call(postings.unpack, source, width, groups, target)
    if postings.codec == nb.uint64(RICE):
        bit = load_u64(stream.unary_offsets + (block << nb.uint64(3)))
        call(postings.add_unary, bit, stream.unary, stream.unary_end, size, width, groups, target)
    else:
        offsets = stream.exception_offsets + (block << nb.uint64(3))
        first, last = load_u64(offsets), load_u64(offsets + nb.uint64(8))
        if first < last:
            _add_exceptions(first, last, stream.exception_places, stream.exception_highs, width, target)
    return groups


@njit(inline="always")
def decode_documents(postings: View, number: int, block: int, target: int) -> Any:
    """Decode the documents of a block.

    Parameters
    ----------
    postings
        The addresses of the lists.
    number
        uint64: the list.
    block
        uint64: global number of the block; ``block_offsets[number]`` is the list's first.
    target
        uint64: address of room for ``BLOCK`` uint32. The documents are written there, each below the number of
        documents even if the lists are damaged; the values after them are undefined.

    Returns
    -------
    uint64
        Number of documents, at most ``BLOCK``.

    """
    size = _size(postings, number, block)
    groups = _decode_values(postings, postings.gaps, number, block, size, target)
    head = load_u32(postings.heads + (block << nb.uint64(2)))
    sum_gaps(target, groups, head - nb.uint32(1), nb.uint32(postings.documents - nb.uint64(1)))
    return size


@njit(inline="always")
def decode_counts(postings: View, number: int, block: int, target: int) -> Any:
    """Decode the counts of a block; parameters as for :func:`decode_documents`."""
    size = _size(postings, number, block)
    groups = _decode_values(postings, postings.counts, number, block, size, target)
    increment(target, groups)
    return size


@kernel
def _count_at(addresses: UInt64, number: int, block: int, place: int) -> Any:
    return decode_count(view_at(addresses), number, block, place)


@inner
def decode_count(postings: View, number: int, block: int, place: int) -> Any:
    """Decode a single count.

    Parameters
    ----------
    postings
        The addresses of the lists.
    number, block
        uint64: as for :func:`decode_documents`.
    place
        uint64: position in the block.

    Returns
    -------
    uint32
        The count.

    """
    stream = postings.counts
    width = nb.uint64(load_u8(stream.widths + number))
    first = load_u64(postings.block_offsets + (number << nb.uint64(3)))
    bit = ((block - first) * nb.uint64(BLOCK) + place) * width
    at = stream.low + load_u64(stream.low_offsets + (number << nb.uint64(3))) + (bit >> nb.uint64(3))
    low = load_u64(at) >> (bit & nb.uint64(7)) & ((nb.uint64(1) << width) - nb.uint64(1))
    if postings.codec == nb.uint64(RICE):
        start = load_u64(stream.unary_offsets + (block << nb.uint64(3)))
        high = _read_unary(stream.unary, stream.unary_end, start, place)
    else:
        offsets = stream.exception_offsets + (block << nb.uint64(3))
        first, last = load_u64(offsets), load_u64(offsets + nb.uint64(8))
        high = _read_exception(stream.exception_places, stream.exception_highs, first, last, place)
    return nb.uint32((low | high << width) + nb.uint64(1))


@inner
def _read_exception(places: int, highs: int, start: int, stop: int, place: int) -> Any:
    for e in range(start, stop):
        at = nb.uint64(load_u8(places + e))
        if at >= place:
            return nb.uint64(load_u32(highs + nb.uint64(4) * e)) if at == place else nb.uint64(0)
    return nb.uint64(0)


@inner
def _read_unary(unary: int, end: int, bit: int, place: int) -> Any:
    """Count the zero bits between the one bit number ``place`` after a bit and the one before it; 0 at the end."""
    at = unary + (bit >> nb.uint64(6)) * nb.uint64(8)
    start = bit & nb.uint64(63)
    word = load_u64(at) & (~nb.uint64(0) << start)
    zeros = nb.uint64(0) - start  # modulo 2^64: positions count from this word's first bit
    while True:
        ones = nb.uint64(count_ones(word))
        if ones > place:
            break
        zeros = zeros + nb.uint64(64) if ones == 0 else nb.uint64(64 - bit_length(word))
        place -= ones
        at += nb.uint64(8)
        if at >= end:
            return nb.uint64(0)
        word = load_u64(at)
    for _ in range(place):
        one = nb.uint64(trailing_zeros(word))
        zeros = nb.uint64(0) - one - nb.uint64(1)
        word &= word - nb.uint64(1)
    return zeros + nb.uint64(trailing_zeros(word))


@kernel
def _decode_lists(
    addresses: UInt64, lists: UInt32, offsets: Int64, start: int, stop: int, documents: UInt32, counts: UInt32
) -> None:
    view, room = view_at(addresses), block_on_stack()
    bytes_each = nb.uint64(4 * BLOCK)
    for k in range(start, stop):
        number = nb.uint64(lists[k])
        size = offsets[k + 1] - offsets[k]
        block = load_u64(view.block_offsets + (number << nb.uint64(3)))
        to_documents = nb.uint64(documents.ctypes.data) + nb.uint64(4 * offsets[k])
        to_counts = nb.uint64(counts.ctypes.data) + nb.uint64(4 * offsets[k])
        for _ in range(size // BLOCK):
            decode_documents(view, number, block, to_documents)
            decode_counts(view, number, block, to_counts)
            block += nb.uint64(1)
            to_documents += bytes_each
            to_counts += bytes_each
        if size % BLOCK:  # whole groups are written, which would overwrite the start of the next list
            place = offsets[k + 1] - size % BLOCK
            decode_documents(view, number, block, room)
            for i in range(size % BLOCK):
                documents[place + i] = load_u32(room + nb.uint64(4 * i))
            decode_counts(view, number, block, room)
            for i in range(size % BLOCK):
                counts[place + i] = load_u32(room + nb.uint64(4 * i))
