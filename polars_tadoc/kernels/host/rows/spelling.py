"""Finds the words of a sorted vocabulary that are spelled like a given one."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.jit import inner


@inner
def _begin_alike(offsets: Int64, data: UInt8, one: int, other: int, size: int) -> Any:
    """Tell whether a word begins with the first ``size`` bytes of another one."""
    first, second = offsets[one], offsets[other]
    if offsets[other + 1] - second < size:
        return False
    same = 0
    while same < size and data[first + same] == data[second + same]:
        same += 1
    return same == size


@njit
def find_alike(offsets: Int64, data: UInt8, word: UInt32, edits: int, found: Int64, distances: Int64) -> Any:
    """Find the words within a number of edits, each an insertion, deletion, replacement or swap of neighbours.

    The rows of the table of distances (Wagner and Fischer, 1974, with swaps as in Lowrance and Wagner, 1975) are kept
    for the characters that a word shares with the one before it, as if the vocabulary were a trie. A row without a
    small distance ends all words that begin with its characters.

    Parameters
    ----------
    offsets, data
        The words, ascending by UTF-8 bytes, followed by padding.
    word
        uint32: the code points of the given word.
    edits
        Maximum number of edits.
    found, distances
        Output: numbers of the words, and their edits; room for all.

    Returns
    -------
    int
        Number of words found.

    """
    size, count = len(word), nb.int64(0)
    depths = size + edits + 2  # longer words are too far
    rows, points = np.empty((depths + 1, size + 1), np.int64), np.empty(depths + 1, np.int64)
    for i in range(size + 1):
        rows[0, i] = i
    starts = np.zeros(depths + 1, np.int64)  # bytes before each character
    known, dead_bytes = nb.int64(0), nb.int64(-1)
    first = nb.int64(0)  # start of the word before
    number, terms = nb.int64(-1), len(offsets) - 1
    while True:
        number += 1
        if dead_bytes >= 0:  # gallop over the words that begin with the same characters
            low, step = number - 1, nb.int64(1)
            while low + step < terms and _begin_alike(offsets, data, number - 1, low + step, dead_bytes):
                low, step = low + step, step + step
            while step > 0:
                if low + step < terms and _begin_alike(offsets, data, number - 1, low + step, dead_bytes):
                    low += step
                step //= 2
            number = low + 1
        if number >= terms:
            return count
        start, stop = offsets[number], offsets[number + 1]
        shared = nb.int64(0)
        most = starts[known] if dead_bytes < 0 else dead_bytes
        while shared < most and start + shared < stop and data[first + shared] == data[start + shared]:
            shared += 1
        first, dead_bytes = start, nb.int64(-1)
        while known > 0 and starts[known] > shared:
            known -= 1
        at = start + starts[known]
        while at < stop:
            lead = nb.int64(data[at])
            width = 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            point = lead if width == 1 else lead & (0xFF >> (width + 1))
            for i in range(1, width):
                point = point << 6 | (nb.int64(data[at + i]) & 0x3F)
            known += 1
            at += width
            points[known], starts[known] = point, at - start
            rows[known, 0] = least = known
            for i in range(1, size + 1):
                is_other = nb.int64(point != nb.int64(word[i - 1]))
                own = min(rows[known - 1, i] + 1, rows[known, i - 1] + 1, rows[known - 1, i - 1] + is_other)
                if (
                    known > 1
                    and i > 1
                    and point == nb.int64(word[i - 2])
                    and points[known - 1] == nb.int64(word[i - 1])
                ):
                    own = min(own, rows[known - 2, i - 2] + 1)
                rows[known, i] = own
                least = min(least, own)
            # a swap may go back to the row before
            for i in range(size + 1):
                least = min(least, rows[known - 1, i] + 1)
            if least > edits or known == depths:
                dead_bytes = starts[known]
                known -= 1
                break
        if dead_bytes < 0 and rows[known, size] <= edits:
            found[count], distances[count] = number, rows[known, size]
            count += 1
