"""Finds rows with equal symbols, so that the rounds of batch RePair see each row once, with a weight.

Equal rows get equal symbols (:mod:`.batch_repair`), so the rules are the same. A weight is stored as a class of one
byte: weights up to ``EXACT`` have one each, then each power of two; a row that occurs more often is kept several times.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.runtime.addresses import move
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.secret import first_secret

EXACT = 128
DROPPED = 255
"""Class of a row that others represent."""

LANES = 4

_K1, _K2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_1, _32 = np.uint64(1), np.uint64(32)


@njit(inline="always")
def weight_of(class_: int) -> Any:
    """Return how many rows a row of this class represents."""
    return nb.uint64(class_) + _1 if class_ < EXACT else nb.uint64(2 * EXACT) << nb.uint64(class_ - EXACT)


@njit
def class_of(weight: int) -> Any:
    """Return the class with the highest weight up to this one, ``DROPPED`` for 0, and what remains of the weight."""
    if weight == 0:
        return DROPPED, nb.int64(0)
    if weight <= EXACT:
        return weight - 1, nb.int64(0)
    if weight < 2 * EXACT:
        return EXACT - 1, weight - EXACT
    power = 0
    while (4 * EXACT) << power <= weight:
        power += 1
    return EXACT + power, weight - ((2 * EXACT) << power)


@polled
@njit
def hash_rows(sequence: UInt32, starts: Int64, hashes: UInt64) -> None:
    """Hash each row; ``starts`` has the first position of each row and the one after the last."""
    began = interrupts()
    lanes = np.empty(LANES, np.uint64)
    for row in range(len(hashes)):
        if interrupts() != began:
            return
        lanes[:] = nb.uint64(starts[row + 1] - starts[row])
        i, stop = starts[row], starts[row + 1]
        while i + LANES <= stop:
            for lane in range(LANES):  # independent, so that multiplications overlap
                h = (lanes[lane] ^ nb.uint64(sequence[i + lane])) * _K1
                lanes[lane] = h ^ (h >> _32)
            i += LANES
        h = nb.uint64(0)
        while i < stop:
            h = (h ^ nb.uint64(sequence[i])) * _K1
            h ^= h >> _32
            i += 1
        for lane in range(LANES):
            h = (h ^ lanes[lane]) * _K2
            h ^= h >> _32
        hashes[row] = h


@njit
def list_first(hashes: UInt64, first: Int64) -> None:
    """Write the first row with the same hash, by row."""
    slots = 8
    while slots < 2 * len(hashes):
        slots *= 2
    table = np.zeros(slots, np.uint32)  # of rows + 1: positions, and so rows, have 32 bits
    for row in range(len(hashes)):
        s = nb.int64((hashes[row] * first_secret()) >> _32 & nb.uint64(slots - 1))
        while table[s] != 0 and hashes[nb.int64(table[s]) - 1] != hashes[row]:
            s = (s + 1) & (slots - 1)
        if table[s] == 0:
            table[s] = row + 1
        first[row] = nb.int64(table[s]) - 1


@polled
@njit
def confirm(sequence: UInt32, starts: Int64, first: Int64, begin: int, stop: int) -> None:
    """Set ``first`` of rows that differ from their first one to themselves; such hash collisions may stay unequal."""
    began = interrupts()
    for row in range(begin, stop):
        if interrupts() != began:
            return
        own, other = starts[row], starts[first[row]]
        size = starts[row + 1] - own
        same = size == starts[first[row] + 1] - other
        if same and own != other:
            for i in range(size):
                if sequence[own + i] != sequence[other + i]:
                    same = False
                    break
        if not same:
            first[row] = row


@njit
def classify(first: Int64, classes: UInt8) -> None:
    """Give rows classes whose weights sum to the number of equal rows; the others are ``DROPPED``."""
    left = np.zeros(len(first), np.int64)  # by first row: weight that no row has yet
    for row in range(len(first)):
        left[first[row]] += 1
    for row in range(len(first)):
        classes[row], left[first[row]] = class_of(left[first[row]])


@polled
@njit
def keep_rows(
    sequence: UInt32, starts: Int64, row_classes: UInt8, first: int, stop: int, to: int, kept: UInt32, classes: UInt8
) -> None:
    """Copy those of a range of rows that are not dropped to ``kept[to:]``, and fill the classes by position.

    ``kept`` may be the sequence if the range is all rows.
    """
    began = interrupts()
    out, is_apart = nb.int64(to), kept.ctypes.data != sequence.ctypes.data
    for row in range(first, stop):
        if interrupts() != began:
            return
        if row_classes[row] == DROPPED:
            continue
        size = starts[row + 1] - starts[row]
        if is_apart:
            for i in range(size):
                kept[out + i] = sequence[starts[row] + i]
        elif out != starts[row]:
            move(sequence, out, starts[row], size)
        classes[out : out + size] = row_classes[row]
        out += size


@polled
@njit
def copy_rows(sequence: UInt32, sources: Int64, starts: Int64, out: UInt32) -> None:
    """Write rows to ``out[starts[0]:]``, each from its source on; ``starts`` also has the end of the last one."""
    began = interrupts()
    for row in range(len(sources)):
        if interrupts() != began:
            return
        for i in range(starts[row + 1] - starts[row]):
            out[starts[row] + i] = sequence[sources[row] + i]
