"""Finds the words of a vocabulary that are spelled like a given one."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.runtime.addresses import count_ones
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.jit import inner, kernel

SHORT, LONG = 3, 6
"""Fuzzy words of fewer characters than ``SHORT`` allow no edit, of fewer than ``LONG`` one, others two (as in
Elasticsearch)."""

LENGTHS = 64
"""Words of this many characters, or more, are kept as one length."""

_TESTED = 256
"""Signatures that are compared before words are: without a branch between, so by vector instructions."""

_0, _1, _31 = (nb.uint64(i) for i in (0, 1, 31))


@inner
def _character(data: UInt8, at: int) -> Any:
    """Return the character at a byte, and the number of its bytes."""
    lead = nb.int64(data[at])
    size = 1 if lead < 0x80 else (2 if lead < 0xE0 else (3 if lead < 0xF0 else 4))
    point = lead if size == 1 else lead & (0xFF >> (size + 1))
    for i in range(1, size):
        point = point << 6 | (nb.int64(data[at + i]) & 0x3F)
    return point, size


@inner
def _with_character(signature: int, point: int) -> Any:
    """Add a character to a signature: a bit for the first one of its class, another for the second one."""
    first = _1 << (nb.uint64(point) & _31)
    return signature | (first if signature & first == _0 else first << nb.uint64(32))


@kernel
def sign_words(
    offsets: Any, data: Any, lengths: UInt8, signatures: UInt64, starts: Int64, order: UInt32, sorted_signatures: UInt64
) -> None:
    """Sort words by their number of characters, with a signature of each.

    An edit changes at most one character to another one, so it clears at most one bit of a signature, and sets at most
    one.

    Parameters
    ----------
    offsets, data
        The words in UTF-8, followed by padding.
    lengths, signatures
        Work space: a number by word.
    starts
        Output: ``LENGTHS`` + 2 numbers: where each length begins.
    order, sorted_signatures
        Output: the words by ascending length, then number; their signatures.

    """
    for i in range(len(starts)):
        starts[i] = 0
    for word in range(len(lengths)):
        at, size, signature = nb.int64(offsets[word]), nb.int64(0), _0
        while at < offsets[word + 1]:
            point, width = _character(data, at)
            signature = _with_character(signature, point)
            at += width
            size += 1
        lengths[word], signatures[word] = min(size, LENGTHS), signature
        starts[lengths[word] + 1] += 1
    for i in range(LENGTHS + 1):
        starts[i + 1] += starts[i]
    for word in range(len(lengths)):  # starts become ends of the lengths before
        place = starts[lengths[word]]
        starts[lengths[word]] = place + 1
        order[place], sorted_signatures[place] = word, signatures[word]
    for i in range(LENGTHS, -1, -1):
        starts[i + 1] = starts[i]
    starts[0] = 0


@inner
def decode_word(data: UInt8, points: UInt32) -> Any:
    """Write the characters of a word in UTF-8; return their number."""
    at, size = nb.int64(0), nb.int64(0)
    while at < len(data):
        point, width = _character(data, at)
        points[size] = point
        at += width
        size += 1
    return size


def table_size(size: int) -> int:
    """Return the work space of :func:`find_alike` for a word of some characters."""
    return 3 * (size + 2) + _TESTED // 8


@inner
def _distance(data: UInt8, first: int, stop: int, word: UInt32, edits: int, rows: Int64) -> Any:
    """Return the edits from one word to another one, or a larger number than ``edits``."""
    size, width, far = nb.int64(len(word)), nb.int64(len(word) + 2), nb.int64(edits) + 1
    above, own, before = nb.int64(0), width, 2 * width
    for i in range(min(size, edits) + 1):
        rows[i] = i
    if edits < size:
        rows[edits + 1] = far
    known, last, least_before, at = nb.int64(0), nb.int64(-1), nb.int64(0), nb.int64(first)
    while at < stop:
        point, bytes_read = _character(data, at)
        at += bytes_read
        known += 1
        low, high = max(nb.int64(1), known - edits), min(size, known + edits)
        if low > size + 1:
            return far
        left = known if low == 1 else far
        rows[own + low - 1] = left
        least = left
        for i in range(low, high + 1):
            letter = nb.int64(word[i - 1])
            left = min(rows[above + i] + 1, left + 1, rows[above + i - 1] + nb.int64(point != letter))
            if known > 1 and i > 1 and point == nb.int64(word[i - 2]) and last == letter:
                left = min(left, rows[before + i - 2] + 1)
            rows[own + i] = left
            least = min(least, left)
        if high < size:
            rows[own + high + 1] = far
        if min(least, least_before + 1) > edits:  # a swap may go back to the row before
            return far
        last, least_before = point, least
        above, own, before = own, before, above
    return rows[above + size] if known - size <= edits and size - known <= edits else far


@kernel
def find_alike(
    offsets: Any, data: Any, starts: Any, order: Any, signatures: Any, word: UInt32, edits: int, table: Int64,
    found: Int64, distances: Int64,
) -> Any:  # fmt: skip
    """Find the words within a number of edits, each an insertion, deletion, replacement or swap of neighbours.

    Of the words of about the same length, those whose signatures differ by few bits are compared: by the cells within
    ``edits`` of the diagonal (Ukkonen, 1985) of the table of distances (Wagner and Fischer, 1974, with swaps as in
    Lowrance and Wagner, 1975).

    Parameters
    ----------
    offsets, data
        The words in UTF-8, followed by padding.
    starts, order, signatures
        As :func:`sign_words` writes them.
    word
        uint32: the code points of the given word.
    edits
        Maximum number of edits.
    table
        Work space: :func:`table_size`.
    found, distances
        Output: numbers of the words, by ascending length, then number; and their edits; room for all.

    Returns
    -------
    int
        Number of words found.

    """
    size, own, count = nb.int64(len(word)), _0, nb.int64(0)
    for i in range(size):
        own = _with_character(own, word[i])
    rows, flags = table[_TESTED // 8 :], table[: _TESTED // 8].view(np.uint8)
    first = starts[min(max(size - edits, 0), LENGTHS)]
    stop = starts[min(size + edits, LENGTHS) + 1]
    while first < stop:
        tested = min(stop - first, _TESTED)
        for i in range(tested):
            other = signatures[first + i]
            more, less = count_ones(other & ~own), count_ones(own & ~other)
            flags[i] = nb.uint8(max(more, less) <= edits)
        for i in range(tested):
            if flags[i]:
                number = nb.int64(order[first + i])
                distance = _distance(data, offsets[number], offsets[number + 1], word, edits, rows)
                if distance <= edits:
                    found[count], distances[count] = number, distance
                    count += 1
        first += tested
    return count
