"""A hash table of the names that twigs use; looked up with Expat's zero-terminated texts."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.runtime.addresses import copy_bytes, equal_bytes, load_u8, load_u64
from polars_tadoc.runtime.jit import inner, kernel

ELEMENTS, ATTRIBUTES, TEXTS, VALUES = range(4)
"""Scopes of names; the values of the attribute with number n have the scope ``VALUES + n``."""

ENTRY = 4
"""64-bit words per entry: the key's address (0: empty), its hash, its scope and length, and its meaning (the symbol in
the low half, the attribute's number in the high half; 0 for a deleted key)."""

_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_LOW = np.uint64(0xFFFFFFFF)
_ANY = np.uint64(0xFFFFFFFFFFFFFFFF)
_0, _1, _5, _8, _16, _24, _32, _64 = (np.uint64(number) for number in (0, 1, 5, 8, 16, 24, 32, 64))


@kernel
def put_names(addresses: Any, scopes: Any, meanings: Any, names: Any, keys: Any, used: Any) -> tuple[int, Any]:
    """Insert distinct keys into a table whose slots are a power of two and more than its entries.

    An existing key gets its new meaning, 0 to delete it. New keys are copied to ``keys`` from byte ``used`` on. Returns
    the number of new entries, and the bytes used then.
    """
    mask = np.uint64(len(names) // ENTRY - 1)
    new = 0
    for key in range(len(addresses)):
        scope = scopes[key]
        hashed, length = _hash(addresses[key], scope, _ANY)
        place = np.int64(_slot_of(names, mask, scope, addresses[key], hashed, length)) * ENTRY
        if names[place] == _0:
            address = np.uint64(keys.ctypes.data) + np.uint64(used)
            copy_bytes(address, addresses[key], length + _1)
            names[place] = address
            names[place + 1] = hashed
            names[place + 2] = scope << _32 | length
            used += np.int64(length) + 1
            new += 1
        names[place + 3] = meanings[key]
    return new, used


@kernel
def count_names(names: Any) -> tuple[int, Any]:
    """Count the keys with a meaning, and their bytes."""
    count = 0
    size: Any = 0
    for place in range(0, len(names), ENTRY):
        if names[place + 3] != _0:
            count += 1
            size += np.int64(names[place + 2] & _LOW) + 1
    return count, size


@kernel
def move_names(names: Any, wider: Any, keys: Any) -> Any:
    """Move the keys with a meaning to an empty table, and their bytes to ``keys``; return the latter's size."""
    mask = np.uint64(len(wider) // ENTRY - 1)
    used: Any = 0
    for old in range(0, len(names), ENTRY):
        if names[old + 3] != _0:
            slot = names[old + 1] & mask
            while wider[slot * np.uint64(ENTRY)] != _0:
                slot = slot + _1 & mask
            place, length = np.int64(slot) * ENTRY, names[old + 2] & _LOW
            address = np.uint64(keys.ctypes.data) + np.uint64(used)
            copy_bytes(address, names[old], length + _1)
            wider[place] = address
            for word in range(1, ENTRY):
                wider[place + word] = names[old + word]
            used += np.int64(length) + 1
    return used


@inner
def _slot_of(names: Any, mask: Any, scope: Any, text: Any, hashed: Any, length: Any) -> Any:
    """Return the slot of a key, or its free slot."""
    slot = hashed & mask
    while True:
        place = np.int64(slot) * ENTRY
        if names[place] == _0 or (
            names[place + 1] == hashed
            and names[place + 2] == scope << _32 | length
            and _equal(names[place], text, length)
        ):
            return slot
        slot = slot + _1 & mask


@inner
def find_name(names: Any, mask: Any, longest: Any, scope: Any, text: Any) -> Any:
    """Return the meaning of the text at an address in a scope, or 0; reads no more bytes than the longest key has.

    Names include namespaces, and default values come with every element: reading all of them would be quadratic.
    """
    hashed, length = _hash(text, scope, longest)
    if length > longest:
        return _0
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
def _hash(text: Any, scope: Any, longest: Any) -> Any:
    """Return a text's hash and length; beyond ``longest`` bytes, some larger length and any hash."""
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
            if place - text > longest:
                break
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
