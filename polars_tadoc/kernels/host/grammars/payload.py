"""Converts a grammar's arrays to and from the layout of its payload."""

from __future__ import annotations

import numba as nb
import numpy as np

from polars_tadoc.runtime.addresses import load_u8
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.jit import inner, kernel

MAX_SHARED = 255
"""Maximum bytes that a string shares with the one before: their number has one byte."""

_LETTERS = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)


@kernel
def front_code(first: int, last: int, offsets: Int64, data: UInt8, shared: UInt8, rest: UInt8) -> int:
    """Split strings ``first`` to ``last`` into the prefix shared with the one before and the rest.

    Returns the bytes of the rests, written from the offset of the first string on.
    """
    begin = offsets[first]
    out = begin
    for s in range(first, last):
        start, stop = offsets[s], offsets[s + 1]
        common = 0
        if s > 0:
            before = offsets[s - 1]
            most = min(stop - start, start - before, MAX_SHARED)
            while common < most and data[start + common] == data[before + common]:
                common += 1
        shared[s] = common
        for i in range(start + common, stop):
            rest[out] = data[i]
            out += 1
    return int(out - begin)


@kernel
def unfold(shared: UInt8, offsets: Int64, rest: UInt8, data: UInt8) -> bool:
    """Invert :func:`front_code`; False if a prefix or a rest does not fit. Never accesses memory out of bounds."""
    at = 0
    for s in range(len(shared)):
        start, stop = offsets[s], offsets[s + 1]
        common = nb.int64(shared[s])
        own = stop - start - common
        before = start - offsets[s - 1] if s > 0 else 0
        if own < 0 or common > before or own > len(rest) - at:
            return False
        for i in range(common):
            data[start + i] = data[start - before + i]
        for i in range(own):
            data[start + common + i] = rest[at + i]
        at += own
    return at == len(rest)


@kernel
def split_planes(numbers: UInt32, planes: UInt8) -> None:
    """Write the lowest bytes of all numbers, then the next ones: four planes."""
    n = len(numbers)
    for i in range(n):
        number = numbers[i]
        planes[i] = number & nb.uint32(255)
        planes[n + i] = (number >> nb.uint32(8)) & nb.uint32(255)
        planes[2 * n + i] = (number >> nb.uint32(16)) & nb.uint32(255)
        planes[3 * n + i] = number >> nb.uint32(24)


@kernel
def join_planes(planes: UInt8, numbers: UInt32) -> None:
    """Combine numbers from their four planes of bytes."""
    n = len(numbers)
    for i in range(n):
        low = nb.uint32(planes[i]) | (nb.uint32(planes[n + i]) << nb.uint32(8))
        high = nb.uint32(planes[2 * n + i]) | (nb.uint32(planes[3 * n + i]) << nb.uint32(8))
        numbers[i] = low | (high << nb.uint32(16))


@kernel
def split_bodies(first: int, stop: int, rule_offsets: UInt32, symbols: UInt32, others: UInt8) -> None:
    """Write the planes of all symbols but first ones, for the rules from ``first`` to ``stop``."""
    n = len(others) // 4
    for rule in range(first, stop):
        for i in range(nb.int64(rule_offsets[rule]) + 1, nb.int64(rule_offsets[rule + 1])):
            for plane in range(4):
                others[plane * n + i - rule - 1] = (symbols[i] >> nb.uint32(8 * plane)) & nb.uint32(255)


@inner
def _write_planes(numbers: UInt32, count: int, at: int, planes: UInt8) -> None:
    """Write the planes of the first ``count`` of some numbers, from place ``at`` of each plane on."""
    n = len(planes) // 4
    for plane in range(4):
        to = planes[plane * n + at : plane * n + at + count]
        shift = nb.uint32(8 * plane)
        for k in range(count):
            to[k] = (numbers[k] >> shift) & nb.uint32(255)


@kernel
def split_gaps(
    first: int,
    stop: int,
    rule_offsets: UInt32,
    symbols: UInt32,
    body_gaps: UInt32,
    expected: UInt32,
    block: UInt32,
    surprises: UInt8,
) -> None:
    """Write the planes of the gaps before all symbols but first ones, for the rules from ``first`` to ``stop``.

    Inverts :func:`join_gaps`: a gap is 0 where its code is expected, else the code plus 1. ``block`` is work space of
    one number or more: the bytes of many numbers at once are written in vectors, in a third of the time.
    """
    at, used = nb.int64(rule_offsets[first]) - first, 0
    for rule in range(first, stop):
        i, end = nb.int64(rule_offsets[rule]) + 1, nb.int64(rule_offsets[rule + 1])
        while i < end:
            many = min(end - i, len(block) - used)
            for k in range(many):
                gap = body_gaps[i + k]
                is_expected = gap == expected[symbols[i + k]]
                block[used + k] = nb.uint32(0) if is_expected else nb.uint32(gap + nb.uint32(1))
            i += many
            used += many
            if used == len(block):
                _write_planes(block, used, at, surprises)
                at += used
                used = 0
    _write_planes(block, used, at, surprises)


@kernel
def join_bodies(rule_offsets: UInt32, first_symbols: UInt32, other_symbols: UInt32, symbols: UInt32) -> None:
    """Write the bodies: first symbols are zigzag differences from rule to rule, the others are stored as they are."""
    at = 0
    symbol = nb.uint32(0)
    for rule in range(len(rule_offsets) - 1):
        step = first_symbols[rule]
        symbol = nb.uint32(symbol + ((step >> nb.uint32(1)) ^ nb.uint32(-nb.int64(step & nb.uint32(1)))))
        symbols[rule_offsets[rule]] = symbol
        for i in range(nb.int64(rule_offsets[rule]) + 1, rule_offsets[rule + 1]):
            symbols[i] = other_symbols[at]
            at += 1


@kernel
def expect_gaps(word_gaps: UInt32, rule_offsets: UInt32, symbols: UInt32, expected: UInt32) -> None:
    """Fill by symbol the gap code predicted by its first word; 0 for malformed rules."""
    vocabulary_size = len(word_gaps)
    for word in range(vocabulary_size):  # a single slice assignment would add a second of compilation
        expected[word] = word_gaps[word]
    for rule in range(len(rule_offsets) - 1):
        first = symbols[rule_offsets[rule]]
        expected[vocabulary_size + rule] = expected[first] if first < vocabulary_size + rule else nb.uint32(0)


@kernel
def join_gaps(
    rule_offsets: UInt32, symbols: UInt32, body_gaps: UInt32, expected: UInt32, predicted_gaps: UInt32
) -> None:
    """Write the predicted gaps of the bodies: 0 means the expected code, other values are the code plus 1."""
    at = 0
    for rule in range(len(rule_offsets) - 1):
        for i in range(nb.int64(rule_offsets[rule]) + 1, rule_offsets[rule + 1]):
            if body_gaps[at] != 0:
                predicted_gaps[i] = body_gaps[at] - nb.uint32(1)
            elif symbols[i] < len(expected):
                predicted_gaps[i] = expected[symbols[i]]
            at += 1


@kernel
def encode_base64(first: int, stop: int, addresses: UInt64, starts: Int64, text: UInt8) -> None:
    """Write groups of four letters, ``first`` to ``stop``, of the base64 text of pieces that follow each other.

    Piece ``k`` has the bytes ``starts[k]`` to ``starts[k + 1]`` of all, and is at ``addresses[k]``; none is empty. The
    last group is padded if the bytes are no multiple of three.
    """
    group, at, size = first, 3 * first, starts[-1]
    piece = np.searchsorted(starts, at, side="right") - 1
    while group < stop:
        source = addresses[piece] + nb.uint64(at - starts[piece])
        inside = min((starts[piece + 1] - at) // 3, stop - group)
        for k in range(inside):
            byte = source + nb.uint64(3 * k)
            bits = nb.uint32(load_u8(byte)) << nb.uint32(16) | nb.uint32(load_u8(byte + nb.uint64(1))) << nb.uint32(8)
            bits |= nb.uint32(load_u8(byte + nb.uint64(2)))
            for letter in range(4):
                text[4 * (group + k) + letter] = _LETTERS[(bits >> nb.uint32(18 - 6 * letter)) & nb.uint32(63)]
        group += inside
        at += 3 * inside
        if group < stop:  # of two pieces or more, or the last one
            bits, count = nb.uint32(0), min(3, size - at)
            for k in range(count):
                if at == starts[piece + 1]:
                    piece += 1
                byte = addresses[piece] + nb.uint64(at - starts[piece])
                bits |= nb.uint32(load_u8(byte)) << nb.uint32(16 - 8 * k)
                at += 1
            for letter in range(4):
                is_padding = letter > count
                code = _LETTERS[(bits >> nb.uint32(18 - 6 * letter)) & nb.uint32(63)]
                text[4 * group + letter] = 61 if is_padding else code
            group += 1
            if at < size and at == starts[piece + 1]:
                piece += 1
