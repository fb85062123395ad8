"""A hash table of what twigs name, looked up by texts as Expat gives them: they end with a zero byte."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.cpu.jit import inner, kernel
from polars_tadoc.kernels.cpu.memory import equal_bytes, load_u8, load_u64

ELEMENTS, ATTRIBUTES, TEXTS, VALUES = range(4)
"""Scopes of names; the values of the attribute with number n have the scope ``VALUES + n``."""

ENTRY = 4
"""Words of 64 bits in an entry: the key's address (0: no entry), its hash, its scope and length, and what it means (the
symbol in the low half, the attribute's number in the high half)."""

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_0, _1, _5, _8, _16, _24, _32, _64 = (np.uint64(number) for number in (0, 1, 5, 8, 16, 24, 32, 64))


@kernel
def fill_names(addresses: Any, scopes: Any, meanings: Any, names: Any) -> None:
    """Write keys into an empty table, whose slots are a power of two and more than the keys."""
    mask = np.uint64(len(names) // ENTRY - 1)
    for key in range(len(addresses)):
        hashed, length = _hash(addresses[key], scopes[key])
        slot = hashed & mask
        while names[slot * np.uint64(ENTRY)] != _0:
            slot = slot + _1 & mask
        place = np.int64(slot) * ENTRY
        names[place] = addresses[key]
        names[place + 1] = hashed
        names[place + 2] = scopes[key] << _32 | length
        names[place + 3] = meanings[key]


@inner
def find_name(names: Any, mask: Any, scope: Any, text: Any) -> Any:
    """Return what the text at an address means in a scope, or 0."""
    hashed, length = _hash(text, scope)
    slot = hashed & mask
    while True:
        entry = names + (slot << _5)
        key = load_u64(entry)
        if key == _0:
            return _0
        if (
            load_u64(entry + _8) == hashed
            and load_u64(entry + _16) == scope << _32 | length
            and _equal(key, text, length)
        ):
            return load_u64(entry + _24)
        slot = slot + _1 & mask


@inner
def _hash(text: Any, scope: Any) -> Any:
    hashed = scope * _FACTOR
    word, shift, place = _0, _0, text
    byte = np.uint64(load_u8(place))
    while byte != _0:
        word |= byte << shift
        shift += _8
        if shift == _64:
            hashed = (hashed ^ word) * _FACTOR
            hashed ^= hashed >> _32
            word, shift = _0, _0
        place += _1
        byte = np.uint64(load_u8(place))
    hashed = (hashed ^ word) * _FACTOR
    return hashed ^ hashed >> _32, place - text


@inner
def _equal(key: Any, text: Any, length: Any) -> Any:
    if length >= _8:
        return equal_bytes(key, text, length)
    place = _0
    while place < length and load_u8(key + place) == load_u8(text + place):
        place += _1
    return place == length
