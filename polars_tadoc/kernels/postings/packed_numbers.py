"""Packs numbers of similar size for a file: low bits at one width; the few larger numbers separately."""

from __future__ import annotations

from typing import Any

import numba as nb

from polars_tadoc.runtime.addresses import bit_length, count_ones, load_u64, trailing_zeros
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt64
from polars_tadoc.runtime.jit import kernel

MAX_BITS = 56
"""A number of this width, preceded by up to seven bits, fits in eight bytes."""


@kernel
def count_lengths(numbers: UInt64, lengths: Int64) -> None:
    """Count the numbers by their number of significant bits."""
    for i in range(len(numbers)):
        lengths[bit_length(numbers[i])] += 1


@kernel
def split(numbers: UInt64, width: int, low: UInt8, steps: UInt64, highs: UInt64) -> None:
    """Pack the lowest ``width`` bits of numbers.

    Parameters
    ----------
    numbers
        uint64.
    width
        uint64, 1 to ``MAX_BITS``.
    low
        uint8, initially zero, of the size of the packed bits.
    steps
        uint64 per number that needs more bits: numbers between it and the previous one.
    highs
        uint64 per number that needs more bits: its high bits, minus 1.

    """
    e, after = 0, 0
    word, filled, at = nb.uint64(0), nb.uint64(0), 0
    mask = (nb.uint64(1) << width) - nb.uint64(1)
    for i in range(len(numbers)):
        word |= (numbers[i] & mask) << filled
        filled += width
        while filled >= nb.uint64(8):
            low[at] = nb.uint8(word & nb.uint64(255))
            at += 1
            word >>= nb.uint64(8)
            filled -= nb.uint64(8)
        if numbers[i] > mask:
            steps[e] = nb.uint64(i - after)
            highs[e] = (numbers[i] >> width) - nb.uint64(1)
            e += 1
            after = i + 1
    if filled:
        low[at] = nb.uint8(word)


@kernel
def unpack(data: UInt8, start: int, width: int, numbers: Any) -> None:
    """Unpack the low bits of numbers.

    Parameters
    ----------
    data
        uint8; the numbers begin at byte ``start``, and eight bytes follow them.
    start, width
        The first byte; the bits of a number, 1 to ``MAX_BITS``.
    numbers
        Output, uint32 or uint64.

    """
    mask, base = (nb.uint64(1) << nb.uint64(width)) - nb.uint64(1), nb.uint64(data.ctypes.data) + nb.uint64(start)
    for i in range(len(numbers)):
        bit = nb.uint64(i) * nb.uint64(width)
        numbers[i] = load_u64(base + (bit >> nb.uint64(3))) >> (bit & nb.uint64(7)) & mask


@kernel
def add_highs(numbers: Any, width: int, steps: Any, highs: Any) -> Any:
    """Add the bits above the lowest ``width``; return whether all exceptions are within the numbers."""
    at = nb.uint64(0)
    for e in range(len(steps)):
        step = nb.uint64(steps[e])
        if step >= nb.uint64(len(numbers)) - at:
            return False
        at += step
        numbers[at] |= (nb.uint64(highs[e]) + nb.uint64(1)) << nb.uint64(width)
        at += nb.uint64(1)
    return True


@kernel
def place_in_blocks(steps: Any, block_sizes: Int64, offsets: Int64, places: UInt8) -> Any:
    """Divide exceptions among blocks.

    Parameters
    ----------
    steps
        By exception, the values between it and the previous one.
    block_sizes
        int64 by block: number of values.
    offsets
        int64, blocks + 1, output: the first exception of each block.
    places
        Output by exception: its place in its block.

    Returns
    -------
    bool
        Whether all exceptions are within the blocks.

    """
    e, at = 0, nb.uint64(0)  # values of this block before the next exception
    if len(steps):
        at = nb.uint64(steps[0])
    for block in range(len(block_sizes)):
        size = nb.uint64(block_sizes[block])
        offsets[block] = e
        while e < len(steps) and at < size:
            places[e] = nb.uint8(at)
            e += 1
            if e < len(steps):
                at += nb.uint64(steps[e]) + nb.uint64(1)
        at -= size
    offsets[len(block_sizes)] = e
    return e == len(steps)


@kernel
def find_blocks(unary: UInt64, block_sizes: Int64, unary_offsets: Int64) -> Any:
    """Find the start of each block of unary numbers; each number ends with a one bit.

    Parameters
    ----------
    unary
        uint64.
    block_sizes
        int64 by block: number of values, at least 1.
    unary_offsets
        int64, blocks + 1, in bits: output if the result is True.

    Returns
    -------
    bool
        Whether there are enough one bits.

    """
    at = 0
    word = unary[0] if len(unary) else nb.uint64(0)
    unary_offsets[0] = 0
    for q in range(len(block_sizes)):
        missing = block_sizes[q]
        while count_ones(word) < missing:
            missing -= count_ones(word)
            at += 1
            if at >= len(unary):
                return False
            word = unary[at]
        for _ in range(missing - 1):
            word &= word - nb.uint64(1)
        unary_offsets[q + 1] = 64 * at + trailing_zeros(word) + 1
        word &= word - nb.uint64(1)
    return True
