"""Reads blocks of a query's lists, coded or uncoded.

A list is opened once: the data for reading it is in one row of uint64, and functions take the row's address, because
array arguments would cost more than decoding.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb

from polars_tadoc.kernels.postings.coded import BLOCK, Lists
from polars_tadoc.kernels.postings.decode_cpu import View, decode_count, decode_counts, decode_documents
from polars_tadoc.runtime.addresses import load_u32, load_u64, store_u32, store_u64
from polars_tadoc.runtime.jit import inner

_1, _2, _3, _4, _6, _7, _8 = (nb.uint64(i) for i in (1, 2, 3, 4, 6, 7, 8))
_63, _BLOCK, _BLOCK_BYTES = nb.uint64(63), nb.uint64(BLOCK), nb.uint64(4 * BLOCK)

ROW_BYTES = nb.uint64(64)
"""Numbers in the row of an opened list."""

# byte offsets in a row
_HEADS = nb.uint64(0)
_STRIDE = nb.uint64(8)
BLOCKS = nb.uint64(16)
"""Number of blocks of the list."""
_SIZE = nb.uint64(24)
_NUMBER = nb.uint64(32)
FIRST_BLOCK = nb.uint64(40)
"""For a coded list: the global number of its first block."""
_COUNTS = nb.uint64(48)
_BITMAP = _COUNTS
"""For a coded list: the address of the bitmap of its documents, or 0."""
NEXT_BLOCK = nb.uint64(56)
"""The next block to read; initially 0."""
_PLAIN = ~nb.uint64(0)


@inner
def open_list(view: View, extra: Lists, number: int, row: int) -> None:
    """Fill the row of a list; a list that does not exist is empty."""
    number, own = nb.int64(number), nb.int64(view.lists)
    store_u64(row + NEXT_BLOCK, nb.uint64(0))
    if number < own:
        at = nb.uint64(number)
        first = load_u64(view.block_offsets + _8 * at)
        store_u64(row + _HEADS, view.heads + _4 * first)
        store_u64(row + _STRIDE, _4)
        store_u64(row + BLOCKS, load_u64(view.block_offsets + _8 * at + _8) - first)
        store_u64(row + _SIZE, nb.uint64(load_u32(view.frequencies + _4 * at)))
        store_u64(row + _NUMBER, at)
        store_u64(row + FIRST_BLOCK, first)
        store_u64(row + _BITMAP, nb.uint64(0))
        return
    first, size = nb.int64(0), nb.int64(0)
    if number - own < len(extra.offsets) - 1:
        first = extra.offsets[number - own]
        size = extra.offsets[number - own + 1] - first
    store_u64(row + _HEADS, nb.uint64(extra.documents.ctypes.data) + _4 * nb.uint64(first))
    store_u64(row + _STRIDE, _BLOCK_BYTES)
    store_u64(row + BLOCKS, nb.uint64((size + BLOCK - 1) // BLOCK))
    store_u64(row + _SIZE, nb.uint64(size))
    store_u64(row + _NUMBER, _PLAIN)
    store_u64(row + _COUNTS, nb.uint64(extra.counts.ctypes.data) + _4 * nb.uint64(first))


class Bitmaps(NamedTuple):
    """The documents of the longest lists as bitmaps."""

    lists: Any
    """int64, ascending: numbers of these lists."""
    words: Any
    """uint64: their bitmaps, one after another."""


@inner
def open_marked(view: View, extra: Lists, bitmaps: Bitmaps, number: int, row: int) -> None:
    """Fill the row of a list, with its bitmap if there is one."""
    open_list(view, extra, number, row)
    low, high = nb.int64(0), nb.int64(len(bitmaps.lists))
    while low < high:
        middle = (low + high) >> 1
        if bitmaps.lists[middle] < number:
            low = middle + 1
        else:
            high = middle
    if low < len(bitmaps.lists) and bitmaps.lists[low] == number:
        size = len(bitmaps.words) // len(bitmaps.lists)
        store_u64(row + _BITMAP, nb.uint64(bitmaps.words.ctypes.data) + _8 * nb.uint64(low * size))


@inner
def bitmap_of(row: int) -> Any:
    """Return the address of the bitmap of a list's documents, 0 without one."""
    return load_u64(row + _BITMAP) if is_coded(row) else nb.uint64(0)


@inner
def is_coded(row: int) -> Any:
    """Tell whether a list is coded."""
    return load_u64(row + _NUMBER) != _PLAIN


@inner
def list_number(row: int) -> Any:
    """Return the number of a coded list."""
    return load_u64(row + _NUMBER)


@inner
def head(row: int, block: int) -> Any:
    """Return the first document of one of the list's blocks."""
    return nb.uint64(load_u32(load_u64(row + _HEADS) + block * load_u64(row + _STRIDE)))


@inner
def list_size(row: int) -> Any:
    """Return the number of postings of the list."""
    return load_u64(row + _SIZE)


@inner
def _copy(source: int, size: int, target: int) -> None:
    for i in range(size):
        store_u32(target + _4 * i, load_u32(source + _4 * i))


@inner
def read_documents(view: View, row: int, block: int, target: int) -> Any:
    """Decode the documents of a block.

    Parameters
    ----------
    view
        Addresses of the postings.
    row
        Address of the list's row.
    block
        uint64: number of the block in the list.
    target
        Address of room for ``BLOCK`` uint32. Up to a multiple of sixteen, arbitrary valid documents follow those of the
        block.

    Returns
    -------
    uint64
        Number of documents.

    """
    number = load_u64(row + _NUMBER)
    if number != _PLAIN:
        return decode_documents(view, number, load_u64(row + FIRST_BLOCK) + block, target)
    size = min(_BLOCK, load_u64(row + _SIZE) - block * _BLOCK)
    _copy(load_u64(row + _HEADS) + block * _BLOCK_BYTES, size, target)
    for i in range(size, _BLOCK):
        store_u32(target + _4 * i, nb.uint32(0))
    return size


@inner
def read_counts(view: View, row: int, block: int, target: int) -> None:
    """Decode the counts of a block; parameters as for :func:`read_documents`."""
    number = load_u64(row + _NUMBER)
    if number != _PLAIN:
        decode_counts(view, number, load_u64(row + FIRST_BLOCK) + block, target)
        return
    size = min(_BLOCK, load_u64(row + _SIZE) - block * _BLOCK)
    _copy(load_u64(row + _COUNTS) + block * _BLOCK_BYTES, size, target)


@inner
def read_count(view: View, row: int, block: int, place: int) -> Any:
    """Decode the count of one posting of a block."""
    number = load_u64(row + _NUMBER)
    if number == _PLAIN:
        return load_u32(load_u64(row + _COUNTS) + block * _BLOCK_BYTES + _4 * place)
    return decode_count(view, number, load_u64(row + FIRST_BLOCK) + block, place)
