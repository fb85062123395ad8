"""Finds the words of a sorted vocabulary that are spelled like a given one."""

from __future__ import annotations

from typing import Any

import numba as nb

from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32
from polars_tadoc.runtime.jit import inner, kernel

SHORT, LONG = 3, 6
"""Fuzzy words of fewer characters than ``SHORT`` allow no edit, of fewer than ``LONG`` one, others two (as in
Elasticsearch)."""


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


def table_size(size: int, edits: int) -> int:
    """Return the work space of :func:`find_alike` for a word of some characters."""
    return (size + edits + 3) * (size + 4)


@kernel
def find_alike(offsets: Any, data: Any, word: UInt32, edits: int, table: Int64, found: Int64, distances: Int64) -> Any:
    """Find the words within a number of edits, each an insertion, deletion, replacement or swap of neighbours.

    The rows of the table of distances (Wagner and Fischer, 1974, with swaps as in Lowrance and Wagner, 1975) are kept
    for the characters that a word shares with the one before it, as if the vocabulary were a trie. Of each row only the
    cells within ``edits`` of the diagonal are computed (Ukkonen, 1985). A row without a small distance ends all words
    that begin with its characters.

    Parameters
    ----------
    offsets, data
        The words, ascending by UTF-8 bytes, followed by padding.
    word
        uint32: the code points of the given word.
    edits
        Maximum number of edits.
    table
        Work space: :func:`table_size`.
    found, distances
        Output: numbers of the words, and their edits; room for all.

    Returns
    -------
    int
        Number of words found.

    """
    size, count = nb.int64(len(word)), nb.int64(0)
    depths, width, far = size + edits + 2, size + 1, nb.int64(edits) + 1  # longer words are too far
    rows = table[: (depths + 1) * width]
    points, starts = table[(depths + 1) * width :], table[(depths + 1) * (width + 1) :]  # bytes before each character
    leasts = table[(depths + 1) * (width + 2) :]
    for i in range(width):
        rows[i] = i
    leasts[0], starts[0] = 0, 0
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
        start, stop = nb.int64(offsets[number]), nb.int64(offsets[number + 1])
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
            bytes_read = 1 if lead < 0x80 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            point = lead if bytes_read == 1 else lead & (0xFF >> (bytes_read + 1))
            for i in range(1, bytes_read):
                point = point << 6 | (nb.int64(data[at + i]) & 0x3F)
            known += 1
            at += bytes_read
            points[known], starts[known] = point, at - start
            own, above = known * width, (known - 1) * width
            low, high = max(nb.int64(1), known - edits), min(size, known + edits)
            rows[own + low - 1] = known if low == 1 else far
            if high < size:
                rows[own + high + 1] = far
            left = rows[own + low - 1]
            least = left
            for i in range(low, high + 1):
                letter = nb.int64(word[i - 1])
                left = min(rows[above + i] + 1, left + 1, rows[above + i - 1] + nb.int64(point != letter))
                if known > 1 and i > 1 and point == nb.int64(word[i - 2]) and points[known - 1] == letter:
                    left = min(left, rows[above - width + i - 2] + 1)
                rows[own + i] = left
                least = min(least, left)
            leasts[known] = least
            if min(least, leasts[known - 1] + 1) > edits or known == depths:  # a swap may go back to the row before
                dead_bytes = starts[known]
                known -= 1
                break
        if dead_bytes < 0 and size - known <= edits and known - size <= edits and rows[known * width + size] <= edits:
            found[count], distances[count] = number, rows[known * width + size]
            count += 1
