"""Lengths of the strings in a page of a Parquet file, without decoding the strings.

Pages are untrusted: nothing is read out of bounds, and malformed pages give -1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.runtime.array_types import Int64, UInt8
from polars_tadoc.runtime.jit import inner, kernel

MOST = (1 << 31) - 1
"""Maximum length of a string, and maximum number of values, of a page."""


@kernel
def varint(data: UInt8, at: int) -> Any:
    """Read a varint of at most 35 bits and return it with its end; -1 if the bytes end before."""
    number = np.int64(0)
    for shift in range(0, 35, 7):
        if at >= len(data):
            return 0, -1
        byte = np.int64(data[at])
        number |= (byte & 127) << shift
        at += 1
        if byte < 128:
            return number, at
    return 0, -1


@inner
def bits_at(data: UInt8, bit: int, width: int) -> Any:
    """Read a number of at most 32 bits at a bit offset; its bytes must exist."""
    number, shift = np.int64(0), -(bit & 7)
    for at in range(bit >> 3, (bit + width + 7) >> 3):
        byte = np.int64(data[at])
        number |= byte << shift if shift >= 0 else byte >> -shift
        shift += 8
    return number & ((1 << width) - 1)


@kernel
def delta_total(data: UInt8, most: int) -> int:
    """Sum DELTA_BINARY_PACKED lengths.

    Parameters
    ----------
    data
        The page from the start of the lengths.
    most
        Maximum number of lengths.

    Returns
    -------
    int
        The sum; -1 if the page is malformed or a length is invalid.

    """
    block, at = varint(data, 0)
    parts, at = varint(data, at) if at >= 0 else (0, -1)
    left, at = varint(data, at) if at >= 0 else (0, -1)
    first, at = varint(data, at) if at >= 0 else (0, -1)
    if at < 0 or parts == 0 or block % (32 * parts) or block == 0 or left > most:
        return -1
    if left == 0:
        return 0
    value = (first >> 1) ^ -(first & 1)
    total, left = value, left - 1
    while left > 0 and 0 <= value <= MOST:
        least, at = varint(data, at)
        if at < 0 or at + parts > len(data):
            return -1
        least = (least >> 1) ^ -(least & 1)
        widths, at = at, at + parts
        for part in range(parts):
            width = np.int64(data[widths + part])
            count = min(left, block // parts)
            if width > 32 or 8 * (len(data) - at) < count * width:
                return -1
            for place in range(count):
                value = (value + least + bits_at(data, 8 * at + place * width, width)) & 0xFFFFFFFF  # wraps at 32 bits
                if value > MOST:
                    return -1
                total += value
            left -= count
            at += block // parts * width // 8
            if left == 0:
                break
    return total if 0 <= value <= MOST else -1


@kernel
def plain_lengths(data: UInt8, lengths: Int64) -> bool:
    """Read the length of each string of a PLAIN page; False if it is malformed."""
    at = 0
    for place in range(len(lengths)):
        if at + 4 > len(data):
            return False
        length: Any = np.int64(data[at]) | np.int64(data[at + 1]) << 8 | np.int64(data[at + 2]) << 16
        length |= np.int64(data[at + 3]) << 24
        at += 4 + length
        if at > len(data):
            return False
        lengths[place] = length
    return True


@kernel
def dictionary_total(data: UInt8, lengths: Int64, most: int) -> int:
    """Sum the lengths of the dictionary strings that a page refers to, in runs and bit-packed groups.

    Parameters
    ----------
    data
        The page from the start of the references; the first byte is their width in bits.
    lengths
        Lengths of the dictionary's strings.
    most
        Maximum number of references.

    Returns
    -------
    int
        The sum; -1 if the page is malformed.

    """
    if len(data) == 0:
        return 0
    width: Any = np.int64(data[0])
    at, total, left = 1, 0, most
    if width > 32:
        return -1
    size = (width + 7) >> 3
    while left > 0 and at < len(data):
        header, at = varint(data, at)
        if at < 0:
            return -1
        count = min(left, header >> 1 if header & 1 == 0 else (header >> 1) * 8)
        if header & 1 == 0:
            if at + size > len(data):
                return -1
            place = bits_at(data, 8 * at, 8 * size)
            if count > 0 and place >= len(lengths):
                return -1
            total += count * lengths[place] if count > 0 else 0
            at += size
        else:
            count = min(count, 8 * (len(data) - at) // width if width else count)
            for one in range(count):
                place = bits_at(data, 8 * at + one * width, width)
                if place >= len(lengths):
                    return -1
                total += lengths[place]
            at += (header >> 1) * width
        left -= count
        if count == 0 and header & 1:
            return -1
    return total
