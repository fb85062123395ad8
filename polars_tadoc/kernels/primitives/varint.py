"""Varints: seven bits of a number per byte, lowest first; the high bit is set in all but the last byte.

Streams are given by address, because Numba updates an array's reference count, atomically, at every call that takes it.
The caller keeps the memory alive.
"""

from __future__ import annotations

from typing import Any

import numba as nb

from polars_tadoc.runtime.addresses import load_u8, store_u8
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.jit import inner


@njit(inline="always")
def read_varint(address: int, left: int) -> Any:
    """Return the value and the number of bytes read; 0 bytes if the stream ends early or the value exceeds 35 bits."""
    value = nb.int64(0)
    for i in range(min(left, 5)):
        byte = nb.int64(load_u8(nb.uint64(address) + nb.uint64(i)))
        value |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            return value, i + 1
    return value, 0


@inner
def read_own_varint(data: int, at: int) -> Any:
    """Return the value and the position of the next one, unchecked: for streams written by :func:`write_varint`."""
    value = 0
    shift = 0
    while True:
        byte = nb.int64(load_u8(data + nb.uint64(at)))
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


@inner
def write_varint(data: int, at: int, value: int) -> int:
    """Write a nonnegative value; return the position of the next one."""
    while value >= 0x80:
        store_u8(data + nb.uint64(at), nb.uint8((value & 0x7F) | 0x80))
        value >>= 7
        at += 1
    store_u8(data + nb.uint64(at), nb.uint8(value))
    return at + 1


@inner
def varint_size(value: int) -> int:
    """Return the number of bytes that :func:`write_varint` writes."""
    size = 1
    while value >= 0x80:
        value >>= 7
        size += 1
    return size
