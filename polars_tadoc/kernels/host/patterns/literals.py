"""Looks up the words and gaps of a literal.

The elements of a literal are numbered: ``2 * k`` is the gap before word ``k``, ``2 * k + 1`` that word. The first and
the last element may be ends of a longer gap or word.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb

from polars_tadoc.kernels.host.patterns.match import Text
from polars_tadoc.runtime.addresses import load_u8
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.jit import inner, kernel

PART = 0xFFFFFFFF
"""Id of a word of which the literal has only an end."""

NOWHERE = -1
"""The text lacks a word or a gap of the literal."""

ROW_PLACES = 16
"""Places in rows by entry of ``Links.row_of``."""

_KEY = 8


class Links(NamedTuple):
    """Where symbols occur."""

    rule_offsets: UInt32
    rules: UInt32
    """By symbol: the rules that contain it, ascending."""
    place_offsets: UInt32
    places: UInt32
    """By symbol: its places in rows, from the first row's first symbol on."""
    row_of: UInt32
    """The row of each ``ROW_PLACES``-th place."""


class Literal(NamedTuple):
    """A string as words and gaps."""

    data: UInt8
    spans: Int64
    """Start and end of each word."""
    words: UInt32
    """Ids of its words; ``PART``: any word with these bytes at its end (of the first), or at its start."""
    gaps: UInt32
    """Code of the gap before each word but the first."""


@inner
def _key(word: int, at_end: bool, text: Text) -> Any:
    """Return the first bytes of a word, or its last ones in descending order, as a number."""
    first, stop = text.word_offsets[word], text.word_offsets[word + 1]
    own = nb.uint64(0)
    for k in range(_KEY):
        own <<= nb.uint64(8)
        if first + k < stop:
            own |= nb.uint64(load_u8(nb.uint64(text.words_at + (stop - 1 - k if at_end else first + k))))
    return own


@kernel
def find_keys(text: Text, keys: UInt64) -> None:
    """Fill the last bytes of each word, in descending order, as a number."""
    for word in range(len(keys)):
        keys[word] = _key(word, True, text)


@inner
def _first_from(key: int, at_end: bool, order: UInt32, text: Text) -> Any:
    """Return the place of the first word whose key is at least ``key``."""
    low, high = 0, len(order)
    while low < high:
        middle = (low + high) >> 1
        if _key(order[middle], at_end, text) < nb.uint64(key):
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _compare(address: int, size: int, data: UInt8, first: int, stop: int) -> Any:
    """Compare bytes at an address with those of a literal; return less than 0, 0 or more than 0."""
    length = stop - first
    for i in range(min(size, length)):
        own, other = nb.int64(load_u8(nb.uint64(address + i))), nb.int64(data[first + i])
        if own != other:
            return own - other
    return size - length


@inner
def _has_end(address: int, size: int, data: UInt8, start: int, stop: int, is_last: bool) -> Any:
    """Tell whether a string begins with some bytes of a literal, or ends with them."""
    length = stop - start
    if size < length:
        return False
    return _compare(address + (size - length if is_last else 0), length, data, start, stop) == 0


@kernel
def read_literal(
    data: UInt8,
    spans: Int64,
    text: Text,
    by_rank: UInt32,
    by_ending: UInt32,
    gap_order: UInt32,
    links: Links,
    words: UInt32,
    gaps: UInt32,
    ranges: Int64,
) -> int:
    """Look up the words and gaps of a literal; return the number of the word with the fewest places.

    Parameters
    ----------
    data, spans
        The literal's bytes, and start and end of each of its words.
    text
        Words and gaps.
    by_rank, by_ending
        Words in order, and in the order of their last bytes.
    gap_order
        Gap codes from 1 on in order.
    links
        Where words occur.
    words, gaps
        Output as in :class:`Literal`.
    ranges
        Output by word: first and last place of its words in ``by_ending`` (a first word that is cut) or ``by_rank``;
        last, the number of places of the returned one.

    Returns
    -------
    int
        ``NOWHERE`` if the text lacks one.

    """
    count = len(words)
    for k in range(1, count):
        start, stop = spans[2 * k - 1], spans[2 * k]
        gaps[k] = 0
        if stop - start == 1 and data[start] == 32:
            continue
        low, high = 0, len(gap_order)
        while low < high:
            middle = (low + high) >> 1
            first = text.gap_offsets[gap_order[middle] - nb.uint32(1)]
            size = text.gap_offsets[gap_order[middle]] - first
            side = _compare(text.gaps_at + first, size, data, start, stop)
            if side == 0:
                gaps[k] = gap_order[middle]
                break
            if side < 0:
                low = middle + 1
            else:
                high = middle
        if gaps[k] == 0:
            return NOWHERE
    best, fewest = 0, nb.int64(1) << 62
    for k in range(count):
        start, stop = spans[2 * k], spans[2 * k + 1]
        if start == 0 or stop == len(data):
            at_end, own, size = start == 0, nb.uint64(0), min(stop - start, nb.int64(_KEY))
            for i in range(size):
                own = own << nb.uint64(8) | nb.uint64(data[stop - 1 - i] if at_end else data[start + i])
            above = nb.uint64(8 * (_KEY - size))
            order = by_ending if at_end else by_rank
            low = _first_from(own << above, at_end, order, text)
            high, following = len(order), (own + nb.uint64(1)) << above
            if following != 0:
                high = _first_from(following, at_end, order, text)
            words[k], ranges[2 * k], ranges[2 * k + 1] = PART, low, high
        else:
            words[k] = PART
            order, low, high = by_rank, 0, len(by_rank)
            while low < high:
                middle = (low + high) >> 1
                first = text.word_offsets[by_rank[middle]]
                size = text.word_offsets[by_rank[middle] + nb.uint32(1)] - first
                side = _compare(text.words_at + first, size, data, start, stop)
                if side == 0:
                    words[k], low, high = by_rank[middle], middle, middle + 1
                    break
                if side < 0:
                    low = middle + 1
                else:
                    high = middle
            ranges[2 * k], ranges[2 * k + 1] = low, high
        places = nb.int64(0)
        for i in range(low, high):
            word = nb.int64(order[i])
            places += nb.int64(links.rule_offsets[word + 1] - links.rule_offsets[word])
            places += nb.int64(links.place_offsets[word + 1] - links.place_offsets[word])
            if places >= fewest:
                break
        if low == high:
            return NOWHERE
        if places < fewest:
            best, fewest = k, places
    ranges[2 * count] = fewest
    return best


@inner
def is_word(word: int, k: int, literal: Literal, text: Text) -> Any:
    """Tell whether a word fits into a place of the literal."""
    own = literal.words[k]
    if own != nb.uint32(PART):
        return own == nb.uint32(word)
    start, stop = literal.spans[2 * k], literal.spans[2 * k + 1]
    first, size = text.word_offsets[word], text.word_offsets[word + 1] - text.word_offsets[word]
    return _has_end(text.words_at + first, size, literal.data, start, stop, start == 0)


@inner
def is_gap(code: int, k: int, literal: Literal, text: Text) -> Any:
    """Tell whether a gap fits before word ``k``, or after the last."""
    count, codes = len(literal.words), len(text.gap_offsets)
    if 0 < k < count:
        return literal.gaps[k] == nb.uint32(code)
    start = nb.int64(0) if k == 0 else literal.spans[2 * count - 1]
    stop = literal.spans[0] if k == 0 else nb.int64(len(literal.data))
    if code == 0:
        return stop - start == 1 and literal.data[start] == 32
    if code >= codes:  # there is no gap
        return False
    first, size = text.gap_offsets[code - 1], text.gap_offsets[code] - text.gap_offsets[code - 1]
    return _has_end(text.gaps_at + first, size, literal.data, start, stop, k == 0)


@kernel
def find_rarest_gap(literal: Literal, text: Text, gap_counts: UInt32, wanted: UInt8) -> Any:
    """Return the number of the rarest gap of a literal, and how often it occurs; flag its codes in ``wanted``."""
    count, best, fewest = len(literal.words), 0, nb.int64(1) << 62
    begins, ends = literal.spans[0] == 0, literal.spans[2 * count - 1] == len(literal.data)
    for k in range(begins, count + 1 - ends):
        own = nb.int64(0)
        if 0 < k < count:
            own = nb.int64(gap_counts[literal.gaps[k]])
        else:
            for code in range(len(gap_counts)):
                if is_gap(code, k, literal, text):
                    own += nb.int64(gap_counts[code])
        if own < fewest:
            best, fewest = k, own
    for code in range(len(gap_counts)):
        wanted[code] = is_gap(code, best, literal, text)
    return best, fewest
