"""Replaces pairs of adjacent symbols in documents reduced to their tags, which repeat far more than the original text.

Rounds as in Re-Pair (Larsson and Moffat, DCC 1999), with all pairs of a round at once: pairs are counted, and a pair
that is as frequent as the following one becomes a rule.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.runtime.array_types import Int64, UInt32
from polars_tadoc.runtime.jit import inner, kernel

FEWEST = 4
"""Minimum uses of a pair that becomes a rule."""

ENOUGH = 0.95
"""Stop after a round that keeps more than this share of the symbols."""

_0, _1, _2, _32, _ODD = (np.uint64(number) for number in (0, 1, 2, 32, 0x9E3779B97F4A7C15))


def fold(symbols: int, offsets: Int64, documents: UInt32) -> tuple[UInt32, Int64, UInt32]:
    """Replace frequent pairs by new symbols, from ``symbols`` on.

    Returns
    -------
    (uint32 array, int64 array, uint32 array)
        The two symbols of each new symbol; the documents: offsets and symbols.

    """
    pairs = [np.empty(0, np.uint32)]
    while True:
        size = len(documents)
        table = np.zeros(4 << max(size, 1).bit_length(), np.uint64)
        _count(offsets, documents, table)
        next_offsets, shorter = np.empty_like(offsets), np.empty_like(documents)
        made = np.empty(2 * (size // FEWEST), np.uint32)
        count = _replace(symbols, offsets, documents, table, next_offsets, shorter, made)
        pairs.append(made[: 2 * count])
        symbols += count
        offsets, documents = next_offsets, shorter[: next_offsets[-1]]
        if len(documents) >= ENOUGH * size:
            return np.concatenate(pairs), offsets, documents.copy()


@inner
def _find(table: Any, key: Any) -> Any:
    """Return the slot of a pair of numbers: the pair + 1; its count or, above 32 bits, its new symbol."""
    mask = np.uint64(len(table) - 1)
    product = key * _ODD
    slot = (product ^ product >> _32) << _1 & mask
    while table[slot] != key and table[slot] != _0:
        slot = slot + _2 & mask
    return slot


@kernel
def _count(offsets: Any, documents: Any, table: Any) -> None:
    for document in range(len(offsets) - 1):
        for i in range(np.uint64(offsets[document]) + _1, np.uint64(offsets[document + 1])):
            key = np.uint64(documents[i - _1]) << _32 | np.uint64(documents[i])
            slot = _find(table, key)
            table[slot] = key
            table[slot + _1] += _1


@kernel
def _replace(symbols: Any, offsets: Any, documents: Any, table: Any, next_offsets: Any, shorter: Any, made: Any) -> Any:
    """Replace pairs from left to right; return the number of new rules."""
    low = (_1 << _32) - _1
    at, count = _0, _0
    for document in range(len(offsets) - 1):
        i, stop = np.uint64(offsets[document]), np.uint64(offsets[document + 1])
        next_offsets[document] = at
        here = _find(table, np.uint64(documents[i]) << _32 | np.uint64(documents[i + _1])) if i + _1 < stop else _0
        while i < stop:
            shorter[at] = documents[i]
            if i + _1 < stop:
                behind = here
                if i + _2 < stop:
                    behind = _find(table, np.uint64(documents[i + _1]) << _32 | np.uint64(documents[i + _2]))
                uses = table[here + _1] & low
                if uses >= FEWEST and uses >= table[behind + _1] & low:
                    if table[here + _1] >> _32 == _0:
                        made[_2 * count], made[_2 * count + _1] = documents[i], documents[i + _1]
                        count += _1
                        table[here + _1] |= count << _32
                    shorter[at] = np.uint64(symbols) + (table[here + _1] >> _32) - _1
                    i += _1
                    if i + _2 < stop:
                        behind = _find(table, np.uint64(documents[i + _1]) << _32 | np.uint64(documents[i + _2]))
                here = behind
            i += _1
            at += _1
    next_offsets[len(offsets) - 1] = at
    return count
