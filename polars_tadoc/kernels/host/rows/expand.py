"""Expands rows to text in two passes: one checks and bounds, one writes."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.primitives.varint import read_varint
from polars_tadoc.runtime.addresses import load_u8, load_u64, store_u8, store_u64
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import kernel

OK, GAPS_CUT, GAP_RANGE, GAP_PLACE, TOO_LONG = 0, 1, 2, 3, 4

_8 = np.uint64(8)
_NEVER = 1 << 62
_NOTHING = -1
_MUCH = 1 << 22
"""Bytes copied between two interrupt checks."""


@kernel
def measure(
    vocabulary_size: int,
    expansion_lengths: UInt64,
    led_bytes: UInt64,
    leads: UInt32,
    gap_bytes: UInt64,
    root_offsets: Int64,
    roots: UInt32,
    gap_addresses: UInt64,
    gap_sizes: UInt32,
    most_words: int,
    most_bytes: int,
    row_words: Int64,
    row_bytes: Int64,
) -> Any:
    """Fill words and UTF-8 bytes of each row; return ``(code, row)`` of the first error.

    Bytes are an upper bound: predicted gaps that the row replaces count, too, see :func:`replaced_bytes`. Every gap
    stream is read to its end, so that the writing pass need not check again. All rows together may expand to at most
    ``most_words`` words and ``most_bytes`` bytes.
    """
    total = nb.int64(0)
    total_size = nb.int64(0)
    for row in range(len(row_words)):
        words = nb.int64(0)
        size = nb.int64(0)
        for i in range(root_offsets[row], root_offsets[row + 1]):
            symbol = nb.int64(roots[i])
            words += nb.int64(expansion_lengths[symbol - vocabulary_size]) if symbol >= vocabulary_size else 1
            size += nb.int64(led_bytes[symbol])
            if i == root_offsets[row]:
                size -= nb.int64(gap_bytes[leads[symbol] >> 1])
            if total + words > most_words or total_size + size > most_bytes:
                return TOO_LONG, row
        total += words
        address = gap_addresses[row]
        left = nb.int64(gap_sizes[row])
        gap = nb.int64(0)
        while left > 0:
            passed, used = read_varint(address, left)
            if used == 0:
                return GAPS_CUT, row
            address += nb.uint64(used)
            left -= used
            code, used = read_varint(address, left)
            if used == 0:
                return GAPS_CUT, row
            address += nb.uint64(used)
            left -= used
            gap += passed
            if gap > words:
                return GAP_PLACE, row
            if code >= len(gap_bytes) or (code == 0 and (gap == 0 or gap == words)):
                return GAP_RANGE, row  # code 0 is one space between words
            size += nb.int64(gap_bytes[code])
            gap += 1
            if total_size + size > most_bytes:
                return TOO_LONG, row
        total_size += size
        row_words[row] = words
        row_bytes[row] = size
    return OK, 0


@polled
@njit
def replaced_bytes(
    vocabulary_size: int,
    rule_offsets: UInt32,
    symbols: UInt32,
    levels: int,
    expansion_lengths: UInt64,
    leads: UInt32,
    gap_bytes: UInt64,
    predicted_gaps: UInt32,
    root_offsets: Int64,
    roots: UInt32,
    gap_addresses: UInt64,
    gap_sizes: UInt32,
    row_words: Int64,
    row_bytes: Int64,
) -> None:
    """Subtract from each row's bytes the predicted gaps that it replaces; :func:`measure` has checked the streams.

    Gaps ascend, so each search continues from the previous one's symbol: no symbol of a row is visited twice.
    """
    began = interrupts()
    place = np.empty(levels + 1, np.int64)  # in the bodies around the search's position, below the row's own symbols
    end = np.empty(levels + 1, np.int64)  # words up to the end of each of these rules
    for row in range(len(row_words)):
        if interrupts() != began:
            return
        address = gap_addresses[row]
        left = nb.int64(gap_sizes[row])
        gap = nb.int64(-1)
        i = root_offsets[row]
        depth = 0
        start = nb.int64(0)  # words before the search's current symbol
        while left > 0:
            passed, used = read_varint(address, left)
            _, used_too = read_varint(address + nb.uint64(used), left - used)
            address += nb.uint64(used + used_too)
            left -= used + used_too
            gap += 1 + passed
            if gap == 0 or gap == row_words[row]:
                continue
            while True:
                if depth > 0 and start == end[depth - 1]:
                    depth -= 1
                elif start == gap:
                    break
                else:
                    symbol = nb.int64(symbols[place[depth - 1]] if depth > 0 else roots[i])
                    length = nb.int64(expansion_lengths[symbol - vocabulary_size]) if symbol >= vocabulary_size else 1
                    if start + length > gap:
                        place[depth] = rule_offsets[symbol - vocabulary_size]
                        end[depth] = start + length
                        depth += 1
                        continue
                    start += length
                if depth > 0:
                    place[depth - 1] += 1
                else:
                    i += 1
            if depth > 0:
                row_bytes[row] -= nb.int64(gap_bytes[predicted_gaps[vocabulary_size + place[depth - 1]]])
            else:
                row_bytes[row] -= nb.int64(gap_bytes[leads[roots[i]] >> 1])


@njit(inline="always")
def _copy(source: int, target: int, length: int, last: int) -> Any:
    """Copy bytes, eight at a time below ``last`` (bytes after the target are overwritten later)."""
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


@njit(inline="always")
def _copy_text(source: int, target: int, length: int, last: int, began: int) -> Any:
    """Copy bytes that may be many: an interrupt ends it after some MB."""
    read, at, left = nb.uint64(source), nb.uint64(target), nb.int64(length)
    while left > _MUCH and interrupts() == began:
        at = _copy(read, at, _MUCH, last)
        read += nb.uint64(_MUCH)
        left -= _MUCH
    return _copy(read, at, min(left, _MUCH), last)


@njit(inline="always")
def _next_special(before: int, address: int, left: int) -> Any:
    """Return position and code of the next gap that differs from its prediction, and the rest of the stream."""
    if left <= 0:
        return nb.int64(_NEVER), nb.int64(0), address, left
    passed, used = read_varint(address, left)
    code, used_too = read_varint(address + nb.uint64(used), left - used)
    return before + 1 + passed, code, address + nb.uint64(used + used_too), left - used - used_too


@polled
@njit
def write(
    vocabulary_size: int,
    rule_offsets: UInt32,
    symbols: UInt32,
    levels: int,
    expansion_lengths: UInt64,
    symbol_bytes: UInt64,
    leads: UInt32,
    predicted_gaps: UInt32,
    word_offsets: Int64,
    words_address: int,
    gap_offsets: Int64,
    gaps_address: int,
    root_offsets: Int64,
    roots: UInt32,
    gap_addresses: UInt64,
    gap_sizes: UInt32,
    row_words: Int64,
    row_bytes: Int64,
    target: int,
    last: int,
) -> None:
    """Write the rows' concatenated text from address ``target``, and each row's bytes to ``row_bytes``.

    ``last`` bounds wide stores. Strings are read eight bytes at a time: both string buffers have at least eight spare
    bytes. If all gaps inside a long rule are as predicted, its text is copied from its first occurrence in the output.
    """
    began = interrupts()
    at = nb.uint64(target)
    position = np.empty(levels + 1, np.int64)
    stop = np.empty(levels + 1, np.int64)
    written = np.zeros(len(rule_offsets) - 1, np.uint64)  # position of each rule's predicted text in the output
    words_read = nb.int64(0)
    for row in range(len(row_words)):
        if interrupts() != began:
            return
        row_start = at
        address = gap_addresses[row]
        left = nb.int64(gap_sizes[row])
        word = nb.int64(0)  # words written
        special, special_code, address, left = _next_special(nb.int64(-1), address, left)
        for i in range(root_offsets[row], root_offsets[row + 1]):
            if i & 0xFF == 0 and interrupts() != began:
                return
            symbol = nb.int64(roots[i])
            code = nb.int64(leads[symbol] >> 1) if i > root_offsets[row] else nb.int64(_NOTHING)
            depth = 0
            while True:
                if word == special:
                    code = special_code
                    special, special_code, address, left = _next_special(special, address, left)
                if code == 0:
                    store_u8(at, nb.uint8(32))
                    at += nb.uint64(1)
                elif code > 0:
                    first = gap_offsets[code - 1]
                    length = gap_offsets[code] - first
                    at = _copy(nb.uint64(gaps_address) + nb.uint64(first), at, length, last)
                known = False
                while symbol >= vocabulary_size:
                    rule = symbol - vocabulary_size
                    if leads[symbol] & 1:
                        length = nb.int64(expansion_lengths[rule])
                        if special >= word + length:
                            known = written[rule] != 0
                            if known:
                                at = _copy_text(written[rule], at, nb.int64(symbol_bytes[symbol]), last, began)
                                word += length
                                break
                            written[rule] = at
                    position[depth] = nb.int64(rule_offsets[rule]) + 1
                    stop[depth] = rule_offsets[rule + 1]
                    depth += 1
                    symbol = nb.int64(symbols[rule_offsets[rule]])
                words_read += 1
                if words_read & 0xFFF == 0 and interrupts() != began:
                    return
                if not known:
                    first = word_offsets[symbol]
                    length = word_offsets[symbol + 1] - first
                    at = _copy(nb.uint64(words_address) + nb.uint64(first), at, length, last)
                    word += 1
                while depth > 0 and position[depth - 1] == stop[depth - 1]:
                    depth -= 1
                if depth == 0:
                    break
                place = position[depth - 1]
                position[depth - 1] += 1
                code = nb.int64(predicted_gaps[vocabulary_size + place])
                symbol = nb.int64(symbols[place])
        if word == special:
            first = gap_offsets[special_code - 1]
            length = gap_offsets[special_code] - first
            at = _copy(nb.uint64(gaps_address) + nb.uint64(first), at, length, last)
        row_bytes[row] = nb.int64(at - row_start)
