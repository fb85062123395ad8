"""Groups rows of equal words, and lists the distinct n-grams of rows.

Keys of hash tables are random numbers: texts that collide with one key don't collide with the next process's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.host.near.signatures import mixed
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import inner, kernel

NONE = np.uint32(0xFFFFFFFF)
_ONE = np.uint64(1)
_32 = np.uint64(32)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@polled
@kernel
def hash_rows(starts: Int64, words: UInt32, first: int, stop: int, key: np.uint64, found: UInt64) -> None:
    """Hash the words of rows.

    Parameters
    ----------
    starts, words
        int64, rows + 1, and uint32: the rows, a separator after each.
    first, stop
        The rows to hash.
    key
        Random.
    found
        uint64 by row: the hashes.

    """
    began = interrupts()
    for row in range(first, stop):
        if interrupts() != began:
            return
        h = key
        for i in range(starts[row], starts[row + 1] - 1):
            if i & 0xFFFF == 0 and interrupts() != began:
                return
            h = (h ^ np.uint64(words[i])) * _FACTOR
            h ^= h >> _32
            h += key
        found[row] = mixed(h)


@polled
@kernel
def group_rows(starts: Int64, words: UInt32, hashes: UInt64, slots: UInt32, found: UInt32) -> None:
    """Find the first row with the words of each row.

    Parameters
    ----------
    starts, words, hashes
        The rows, and :func:`hash_rows` of them.
    slots
        uint32, a power of two above the number of rows, zeros: scratch.
    found
        uint32 by row: the first row with these words, or ``NONE`` for rows without words.

    """
    last, began = np.uint64(len(slots) - 1), interrupts()
    for row in range(len(starts) - 1):
        if interrupts() != began:
            return
        begin, size = starts[row], starts[row + 1] - 1 - starts[row]
        if size == 0:
            found[row] = NONE
            continue
        slot = hashes[row] & last
        while True:
            other = np.int64(slots[np.int64(slot)]) - 1
            if other < 0:
                slots[np.int64(slot)] = np.uint32(row + 1)
                found[row] = np.uint32(row)
                break
            is_equal = hashes[other] == hashes[row] and starts[other + 1] - 1 - starts[other] == size
            if is_equal:
                for k in range(size):
                    if k & 0xFFFF == 0 and interrupts() != began:
                        return
                    if words[starts[other] + k] != words[begin + k]:
                        is_equal = False
                        break
            if is_equal:
                found[row] = np.uint32(other)
                break
            slot = (slot + _ONE) & last


@polled
@kernel
def copy_rows(starts: Int64, words: UInt32, rows: Int64, first: int, stop: int, new_starts: Int64, new: UInt32) -> None:
    """Copy rows with their separators.

    Parameters
    ----------
    starts, words
        The rows.
    rows, first, stop
        int64: numbers of the rows to copy, and the interval of them that is copied now.
    new_starts, new
        int64 and uint32: the copies.

    """
    began = interrupts()
    for k in range(first, stop):
        if interrupts() != began:
            return
        source, to = starts[rows[k]], new_starts[k]
        for i in range(new_starts[k + 1] - to):
            if i & 0xFFFFF == 0 and interrupts() != began:
                return
            new[to + i] = words[source + i]


@inner
def _find(table: UInt64, last: np.uint64, key: np.uint64, stamp: np.uint64, number: np.uint32) -> Any:
    """Return a number's slot in a table of numbers with stamps, or the free one where it would be, and its entry."""
    slot = ((np.uint64(number) + _ONE) * key) >> _32 & last
    entry = stamp << _32 | np.uint64(number)
    while table[np.int64(slot)] != entry and table[np.int64(slot)] >> _32 == stamp:
        slot = (slot + _ONE) & last
    return np.int64(slot), entry


@inner
def insert(table: UInt64, last: np.uint64, key: np.uint64, stamp: np.uint64, number: np.uint32) -> bool:
    """Insert a number into a table of numbers with stamps; return whether it was new."""
    slot, entry = _find(table, last, key, stamp, number)
    is_new: bool = table[slot] != entry
    table[slot] = entry
    return is_new


@inner
def has(table: UInt64, last: np.uint64, key: np.uint64, stamp: np.uint64, number: np.uint32) -> bool:
    """Tell whether a table has a number."""
    slot, entry = _find(table, last, key, stamp, number)
    is_held: bool = table[slot] == entry
    return is_held


@polled
@kernel
def list_ngrams(
    starts: Int64,
    first: UInt32,
    first_row: int,
    stop_row: int,
    ngram: int,
    key: np.uint64,
    table: UInt64,
    ngrams: UInt32,
    sizes: Int64,
) -> None:
    """List the distinct n-grams of rows, numbered by their first places.

    Parameters
    ----------
    starts
        int64, rows + 1.
    first
        uint32 by place: first place of the n-gram that begins there.
    first_row, stop_row
        The rows to list.
    ngram
        Words of an n-gram; rows have at least as many.
    key
        Random, odd.
    table
        uint64, a power of two, at least twice the n-grams of a row, zeros: scratch.
    ngrams
        uint32 by place: the distinct n-grams of each row, from the row's start on.
    sizes
        int64 by row: their number.

    """
    began = interrupts()
    for row in range(first_row, stop_row):
        if interrupts() != began:
            return
        begin, stamp = starts[row], np.uint64(row - first_row + 1)
        places = starts[row + 1] - ngram - begin
        last: Any = np.uint64(1)
        while last + _ONE < np.uint64(2 * places):
            last = last + last + _ONE
        count = 0
        for i in range(begin, begin + places):
            if i & 0xFFF == 0 and interrupts() != began:
                return
            if insert(table, last, key, stamp, first[i]):
                ngrams[begin + count] = first[i]
                count += 1
        sizes[row] = count
