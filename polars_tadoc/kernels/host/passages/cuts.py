"""Cuts intervals of words out of texts, with one of the two separators around each."""

from __future__ import annotations

import numpy as np

from polars_tadoc.runtime.addresses import copy_bytes, load_u8
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import inner, polled_kernel

_LINE_BREAK = 10


@inner
def _line_breaks(address: np.uint64, start: int, stop: int) -> int:
    count = 0
    for at in range(start, stop):
        count += load_u8(address + np.uint64(at)) == _LINE_BREAK
    return count


@polled_kernel
def choose_separators(
    addresses: UInt64, rows: Int64, befores: Int64, starts: Int64, stops: Int64, afters: Int64
) -> None:
    """Turn intervals of words into the intervals of bytes to remove.

    Of the two separators the one with more line breaks stays, of equal ones the first.

    Parameters
    ----------
    addresses
        uint64 by row: address of its text.
    rows
        int64 by interval: its row.
    befores, starts, stops, afters
        int64 by interval, in bytes: end of the word before, start and end of the interval's words, start of the word
        after. ``starts`` and ``stops`` become those of the bytes to remove.

    """
    began = interrupts()
    for k in range(len(rows)):
        if k & 0xFFF == 0 and interrupts() != began:
            return
        address = addresses[rows[k]]
        first = _line_breaks(address, befores[k], starts[k])
        if _line_breaks(address, stops[k], afters[k]) > first:
            starts[k] = befores[k]
        else:
            stops[k] = afters[k]


@polled_kernel
def remove_bytes(
    addresses: UInt64,
    lengths: UInt32,
    cut_offsets: Int64,
    starts: Int64,
    stops: Int64,
    text_offsets: Int64,
    data: UInt8,
) -> None:
    """Write each text without some intervals of its bytes.

    Parameters
    ----------
    addresses, lengths
        uint64 and uint32 by row: address and bytes of its text.
    cut_offsets
        int64, rows + 1: the intervals of each row.
    starts, stops
        int64 by interval, ascending: bytes to remove.
    text_offsets, data
        int64, rows + 1, and uint8: the results.

    """
    target, began = np.uint64(data.ctypes.data), interrupts()
    for row in range(len(lengths)):
        to, at = target + np.uint64(text_offsets[row]), np.int64(0)
        for k in range(cut_offsets[row], cut_offsets[row + 1] + 1):
            if k & 0xFFF == 0 and interrupts() != began:
                return
            is_last = k == cut_offsets[row + 1]
            stop = np.int64(lengths[row]) if is_last else starts[k]
            copy_bytes(to, addresses[row] + np.uint64(at), np.uint64(stop - at))
            to += np.uint64(stop - at)
            at = stop if is_last else stops[k]
