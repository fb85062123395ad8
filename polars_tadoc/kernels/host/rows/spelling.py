"""Finds the words of a vocabulary that are spelled like a given one."""

from __future__ import annotations

from typing import Any, NamedTuple

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


@inner
def _as_key(key: int, size: int, byte: int) -> Any:
    """Append a byte to a key of at most eight, the first one highest."""
    return key | nb.uint64(byte) << nb.uint64(56 - 8 * size) if size < 8 else key


@kernel
def sign_words(
    offsets: Any, data: Any, lengths: UInt8, signatures: UInt64, starts: Int64, order: UInt32,
    sorted_signatures: UInt64, heads: UInt64, tails: UInt64,
) -> None:  # fmt: skip
    """Sort words by their number of characters, with a signature of each, and the bytes at both ends.

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
    heads, tails
        Output, in the same order: the first eight bytes of each word as a number, the first one highest; the last
        eight, the last one highest.

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
        head, tail, first, stop = _0, _0, nb.int64(offsets[word]), nb.int64(offsets[word + 1])
        for i in range(min(stop - first, 8)):
            head, tail = _as_key(head, i, data[first + i]), _as_key(tail, i, data[stop - 1 - i])
        heads[place], tails[place] = head, tail
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


@inner
def _range_of(word: UInt32, first: int, stop: int, is_end: bool) -> Any:
    """Return the smallest and largest key of words that begin with some characters, or end with them."""
    key, size = _0, nb.int64(0)
    for i in range(stop - first):
        point = nb.int64(word[stop - 1 - i if is_end else first + i])
        width = 1 if point < 0x80 else (2 if point < 0x800 else (3 if point < 0x10000 else 4))
        for j in range(width):
            at = width - 1 - j if is_end else j
            byte = point >> (6 * (width - 1 - at))
            if width > 1:
                byte = (byte | 0xF00 >> width if at == 0 else byte & 0x3F | 0x80) & 0xFF
            key = _as_key(key, size, byte)
            size = min(size + 1, 8)
    return key, key | (~_0 >> nb.uint64(8 * size) if size < 8 else _0)


@inner
def _first_at_least(keys: UInt64, first: int, stop: int, key: int) -> Any:
    while first < stop:
        middle = (first + stop) >> 1
        if keys[middle] < key:
            first = middle + 1
        else:
            stop = middle
    return first


class _Sought(NamedTuple):
    """A word that others are compared with."""

    word: Any
    signature: Any
    edits: Any
    rows: Any


@inner
def _differs(own: int, other: int, edits: int) -> Any:
    """Tell whether two signatures differ by more than some edits do."""
    return max(count_ones(other & ~own), count_ones(own & ~other)) > edits


@inner
def _compare(
    offsets: Any, data: Any, number: int, sought: _Sought, count: int, found: Int64, distances: Int64
) -> Any:  # fmt: skip
    """Add a word to those found if it is one; return how many there are."""
    distance = _distance(data, offsets[number], offsets[number + 1], sought.word, sought.edits, sought.rows)
    if distance <= sought.edits:
        found[count], distances[count] = number, distance
        count += 1
    return count


@inner
def _find_near(
    offsets: Any, data: Any, starts: Any, order: Any, signatures: Any, heads: Any, tails: Any, places: Any,
    sought: _Sought, found: Int64, distances: Int64,
) -> Any:  # fmt: skip
    """Find the words within one edit: they have the same first half, or the same characters after the one behind it."""
    size, count = nb.int64(len(sought.word)), nb.int64(0)
    half = size >> 1
    low, high = _range_of(sought.word, 0, half, False)
    low_end, high_end = _range_of(sought.word, min(half + 1, size), size, True)
    for length in range(min(max(size - 1, 0), LENGTHS), min(size + 1, LENGTHS) + 1):
        stop = nb.int64(starts[length + 1])
        place = _first_at_least(heads, nb.int64(starts[length]), stop, low)
        while place < stop and heads[place] <= high:
            if not _differs(sought.signature, signatures[place], sought.edits):
                count = _compare(offsets, data, nb.int64(order[place]), sought, count, found, distances)
            place += 1
        at = _first_at_least(tails, nb.int64(starts[length]), stop, low_end)
        while at < stop and tails[at] <= high_end:
            place = nb.int64(places[at])
            is_new = heads[place] < low or heads[place] > high
            if is_new and not _differs(sought.signature, signatures[place], sought.edits):
                count = _compare(offsets, data, nb.int64(order[place]), sought, count, found, distances)
            at += 1
    return count


@kernel
def find_alike(
    offsets: Any, data: Any, starts: Any, order: Any, signatures: Any, heads: Any, tails: Any, places: Any,
    word: UInt32, edits: int, table: Int64, found: Int64, distances: Int64,
) -> Any:  # fmt: skip
    """Find the words within a number of edits, each an insertion, deletion, replacement or swap of neighbours.

    Of the words of about the same length, and within one edit, of those with the same first half or the same end, those
    whose signatures differ by few bits are compared: by the cells within
    ``edits`` of the diagonal (Ukkonen, 1985) of the table of distances (Wagner and Fischer, 1974, with swaps as in
    Lowrance and Wagner, 1975).

    Parameters
    ----------
    offsets, data
        The words in UTF-8, followed by padding.
    starts, order, signatures, heads
        As :func:`sign_words` writes them.
    tails, places
        Its tails, ascending within each length, and the place in ``order`` of each.
    word
        uint32: the code points of the given word.
    edits
        Maximum number of edits.
    table
        Work space: :func:`table_size`.
    found, distances
        Output: numbers of the words, in any order, and their edits; room for all.

    Returns
    -------
    int
        Number of words found.

    """
    size, own, count = nb.int64(len(word)), _0, nb.int64(0)
    for i in range(size):
        own = _with_character(own, word[i])
    rows, flags = table[_TESTED // 8 :], table[: _TESTED // 8].view(np.uint8)
    sought = _Sought(word, own, nb.int64(edits), rows)
    if edits == 1 and size > 2:  # shorter words have no end to look for
        return _find_near(
            offsets, data, starts, order, signatures, heads, tails, places, sought, found, distances
        )  # fmt: skip
    first = starts[min(max(size - edits, 0), LENGTHS)]
    stop = starts[min(size + edits, LENGTHS) + 1]
    while first < stop:
        tested = min(stop - first, _TESTED)
        for i in range(tested):
            flags[i] = nb.uint8(not _differs(own, signatures[first + i], edits))
        for i in range(tested):
            if flags[i]:
                count = _compare(offsets, data, nb.int64(order[first + i]), sought, count, found, distances)
        first += tested
    return count
