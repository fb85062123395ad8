"""Splits the joined words of coded rows, and puts them in the order of their ids."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.runtime.addresses import (
    load_u8,
    load_u16,
    load_u32,
    load_u64,
    store_u8,
    store_u16,
    store_u32,
    store_u64,
    trailing_zeros,
)
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.jit import inner, kernel

OFTEN = 1 << 10
"""Words that occur this often, or more often, are not ordered by counting."""

_LINE_END = 0x0A
_LINE_ENDS, _LOW_BITS = np.uint64(0x0A0A_0A0A_0A0A_0A0A), np.uint64(0x7F7F_7F7F_7F7F_7F7F)
_1, _2, _3, _4, _8 = (np.uint64(number) for number in (1, 2, 3, 4, 8))


@inner
def _split_lines(start: Any, stop: Any, bounds: UInt64, word: Any, end: Any) -> bool:
    """Fill where the words ``word`` to ``end`` start and end: lines from one address to another."""
    begin, at = np.uint64(start), np.uint64(start)
    while at < stop:
        marks, many = np.uint64(0), min(stop - at, _8)
        if many == _8:
            differs = load_u64(at) ^ _LINE_ENDS  # then the high bit of each byte is 0 for line ends
            differs = ((differs & _LOW_BITS) + _LOW_BITS) | differs | _LOW_BITS
            marks = ~differs
        else:
            for i in range(many):
                marks |= np.uint64(load_u8(at + i) == _LINE_END) << (_8 * i + np.uint64(7))
        while marks:
            if word == end:
                return False
            line_end = at + np.uint64(trailing_zeros(marks)) // _8
            bounds[_2 * word], bounds[_2 * word + _1] = begin, line_end
            begin = line_end + _1
            word += _1
            marks &= marks - _1
        at += many
    return bool(begin == stop and word == end)


OK, WRONG_SIZE, CUTS = range(3)


@kernel
def split(starts: UInt64, stops: UInt64, sizes: UInt32, widths: Int64, bounds: UInt64) -> int:
    """Fill each word's start and end: addresses, in turn; return ``OK``, or what is wrong.

    Parameters
    ----------
    starts, stops
        Addresses of the words of each shape.
    sizes
        Number of words of each shape.
    widths
        Bytes of each word of a shape; 0 if a line end follows each.
    bounds
        Filled: two addresses for each word.

    """
    word = np.uint64(0)
    for shape in range(len(sizes)):
        end, width = word + np.uint64(sizes[shape]), np.uint64(widths[shape])
        if width == 0:
            if not _split_lines(starts[shape], stops[shape], bounds, word, end):
                return WRONG_SIZE
            word = end
            continue
        at = starts[shape]
        if stops[shape] - at != width * (end - word):
            return WRONG_SIZE
        while word < end:
            if load_u8(at) & 0xC0 == 0x80:
                return CUTS
            bounds[_2 * word], bounds[_2 * word + _1] = at, at + width
            at += width
            word += _1
    return OK


@kernel
def order_by_weight(weights: UInt64, in_order: UInt64, counts: Int64, order: UInt64) -> int:
    """Order words by descending weight, those of equal weights as before; ``in_order`` has twice their numbers.

    ``counts`` has ``OFTEN + 1`` zeros. Returns how many words come first because they weigh ``OFTEN`` or more: these
    are in the order that they had.
    """
    for at in range(len(in_order)):
        counts[min(weights[in_order[at] >> _1], np.uint64(OFTEN))] += 1
    often, place = counts[OFTEN], 0
    for weight in range(OFTEN, -1, -1):
        place, counts[weight] = place + counts[weight], place
    for at in range(len(in_order)):
        word = in_order[at] >> _1
        weight = min(weights[word], np.uint64(OFTEN))
        order[np.uint64(counts[weight])] = word
        counts[weight] += 1
    return int(often)


@inner
def copy_word(start: Any, end: Any, to: Any) -> None:
    """Copy the bytes of a word."""
    size = end - start
    if size >= _8:
        while start + _8 < end:
            store_u64(to, load_u64(start))
            start += _8
            to += _8
        store_u64(to + (end - start) - _8, load_u64(end - _8))
    elif size >= _4:
        store_u32(to, load_u32(start))
        store_u32(to + size - _4, load_u32(end - _4))
    elif size >= _2:
        store_u16(to, load_u16(start))
        store_u16(to + size - _2, load_u16(end - _2))
    elif size == _1:
        store_u8(to, load_u8(start))


@kernel
def gather(bounds: UInt64, order: UInt64, offsets: Int64, address: Any) -> None:
    """Copy the words in an order to an address, and fill where each starts, and where the last one ends."""
    to = np.uint64(address)
    offsets[0] = 0
    for i in range(np.uint64(len(order))):
        start, end = bounds[_2 * order[i]], bounds[_2 * order[i] + _1]
        copy_word(start, end, to)
        to += end - start
        offsets[i + _1] = np.int64(to - np.uint64(address))


@kernel
def split_gaps(data: UInt8, offsets: Int64, out: UInt8) -> bool:
    """Copy strings without the NUL after each, and fill their offsets; return whether there are as many."""
    strings, at = np.uint64(0), np.uint64(0)
    offsets[0] = 0
    for i in range(np.uint64(len(data))):
        if data[i] != 0:
            out[at] = data[i]
            at += _1
            continue
        if strings + _1 == np.uint64(len(offsets)):
            return False
        strings += _1
        offsets[strings] = np.int64(at)
    return bool(strings + _1 == np.uint64(len(offsets)) and (len(data) == 0 or data[-1] == 0))
