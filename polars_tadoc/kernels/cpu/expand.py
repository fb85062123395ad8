"""Expands rows to text: one pass that measures and checks, one that writes."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.cpu.memory import load_u8, load_u64, store_u8, store_u64

UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
Int64 = npt.NDArray[np.int64]

OK, GAPS_CUT, GAP_RANGE, GAP_PLACE, TOO_LONG = 0, 1, 2, 3, 4

_8 = np.uint64(8)


@nb.njit(nogil=True, cache=True, inline="always")
def _read_varint(address: int, left: int) -> Any:
    """Value and bytes read; 0 bytes where the stream ends inside or the value passes 35 bits."""
    value = nb.int64(0)
    for i in range(min(left, 5)):
        byte = nb.int64(load_u8(nb.uint64(address) + nb.uint64(i)))
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value, i + 1
    return value, 0


@nb.njit(nogil=True, cache=True)
def measure(
    vocabulary_size: int,
    word_bytes: UInt64,
    expansion_lengths: UInt64,
    expansion_bytes: UInt64,
    gap_bytes: UInt64,
    root_offsets: Int64,
    roots: UInt32,
    gap_addresses: UInt64,
    gap_sizes: UInt32,
    limit: int,
    row_words: Int64,
    row_bytes: Int64,
) -> Any:
    """Fill words and UTF-8 bytes of each row; returns ``(code, row)`` of the first thing wrong.

    Every gap stream is read to its end here, so that the writing pass need not check again. All rows
    together may stand for ``limit`` words and sixteen times as many bytes.
    """
    total = nb.int64(0)
    total_size = nb.int64(0)
    for row in range(len(row_words)):
        words = nb.int64(0)
        size = nb.int64(0)
        for i in range(root_offsets[row], root_offsets[row + 1]):
            symbol = nb.int64(roots[i])
            if symbol < vocabulary_size:
                words += 1
                size += nb.int64(word_bytes[symbol])
            else:
                words += nb.int64(expansion_lengths[symbol - vocabulary_size])
                size += nb.int64(expansion_bytes[symbol - vocabulary_size])
            if total + words > limit or total_size + size > 16 * limit:
                return TOO_LONG, row
        total += words
        size += max(words - 1, 0)
        address = gap_addresses[row]
        left = nb.int64(gap_sizes[row])
        gap = nb.int64(0)
        while left > 0:
            skipped, used = _read_varint(address, left)
            if used == 0:
                return GAPS_CUT, row
            address += nb.uint64(used)
            left -= used
            gap_id, used = _read_varint(address, left)
            if used == 0:
                return GAPS_CUT, row
            address += nb.uint64(used)
            left -= used
            gap += skipped
            if gap > words:
                return GAP_PLACE, row
            if gap_id >= len(gap_bytes):
                return GAP_RANGE, row
            size += nb.int64(gap_bytes[gap_id])
            if gap != 0 and gap != words:
                size -= 1  # in place of the assumed space
            gap += 1
            if total_size + size > 16 * limit:
                return TOO_LONG, row
        total_size += size
        row_words[row] = words
        row_bytes[row] = size
    return OK, 0


@nb.njit(nogil=True, cache=True, inline="always")
def _copy(source: int, target: int, length: int, last: int) -> Any:
    """Copy bytes, eight at a time where that stays below ``last`` (what lies after the target is written later)."""
    read, at, end = nb.uint64(source), nb.uint64(target), nb.uint64(target) + nb.uint64(length)
    while at < end:
        if at + _8 <= nb.uint64(last):
            store_u64(at, load_u64(read))
            read += _8
            at += _8
        else:
            store_u8(at, load_u8(read))
            read += nb.uint64(1)
            at += nb.uint64(1)
    return end


@nb.njit(nogil=True, cache=True)
def write(
    vocabulary_size: int,
    rule_offsets: UInt32,
    symbols: UInt32,
    levels: int,
    word_offsets: Int64,
    words_address: int,
    gap_word_offsets: Int64,
    gap_words_address: int,
    root_offsets: Int64,
    roots: UInt32,
    gap_addresses: UInt64,
    gap_sizes: UInt32,
    row_words: Int64,
    target: int,
    last: int,
) -> None:
    """Write the rows' text one after another from address ``target``; ``last`` bounds wide stores.

    Strings are read eight bytes at a time: both string buffers end in at least eight spare bytes.
    """
    at = nb.uint64(target)
    position = np.empty(levels + 1, np.int64)
    stop = np.empty(levels + 1, np.int64)
    for row in range(len(row_words)):
        address = gap_addresses[row]
        left = nb.int64(gap_sizes[row])
        words = row_words[row]
        special = nb.int64(-1)  # the next gap that is not the assumed one
        special_id = nb.int64(0)
        if left > 0:
            special, used = _read_varint(address, left)
            special_id, used_too = _read_varint(address + nb.uint64(used), left - used)
            address += nb.uint64(used + used_too)
            left -= used + used_too
        word = nb.int64(0)
        for i in range(root_offsets[row], root_offsets[row + 1]):
            depth = 0
            symbol = nb.int64(roots[i])
            while True:
                if symbol >= vocabulary_size:
                    rule = symbol - vocabulary_size
                    position[depth] = rule_offsets[rule]
                    stop[depth] = rule_offsets[rule + 1]
                    depth += 1
                else:
                    if word == special:
                        first = gap_word_offsets[special_id]
                        length = gap_word_offsets[special_id + 1] - first
                        at = _copy(nb.uint64(gap_words_address) + nb.uint64(first), at, length, last)
                        special = nb.int64(-1)
                        if left > 0:
                            skipped, used = _read_varint(address, left)
                            special_id, used_too = _read_varint(address + nb.uint64(used), left - used)
                            address += nb.uint64(used + used_too)
                            left -= used + used_too
                            special = word + 1 + skipped
                    elif word > 0:
                        store_u8(at, nb.uint8(32))
                        at += nb.uint64(1)
                    first = word_offsets[symbol]
                    length = word_offsets[symbol + 1] - first
                    at = _copy(nb.uint64(words_address) + nb.uint64(first), at, length, last)
                    word += 1
                while depth > 0 and position[depth - 1] == stop[depth - 1]:
                    depth -= 1
                if depth == 0:
                    break
                symbol = nb.int64(symbols[position[depth - 1]])
                position[depth - 1] += 1
        if special == words:
            first = gap_word_offsets[special_id]
            length = gap_word_offsets[special_id + 1] - first
            at = _copy(nb.uint64(gap_words_address) + nb.uint64(first), at, length, last)
