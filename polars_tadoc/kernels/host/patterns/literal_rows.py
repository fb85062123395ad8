"""Finds the rows that contain a literal, from the places of its rarest word upwards through the rules around them.

A rule that contains the whole literal makes all rows match that contain the rule. A rule at whose edges it is cut is
looked up where it occurs, in rules and rows, with the rest of the literal on either side (Claude and Navarro, 2012:
each occurrence crosses a boundary in one body only). No other rule or row is read.
"""

from __future__ import annotations

from typing import Any

import numba as nb

from polars_tadoc.kernels.host.patterns.exact_rows import Exact, span_of
from polars_tadoc.kernels.host.patterns.literals import ROW_PLACES, Links, Literal, is_gap, is_word
from polars_tadoc.kernels.host.patterns.match import Text
from polars_tadoc.kernels.host.rows.expand import OK
from polars_tadoc.runtime.addresses import trailing_zeros
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import inner, polled_kernel

COSTLY = -2
"""Too many rules cut the literal."""


@inner
def _left(
    i: int, first: int, own: int, lowest: int, exact: Exact, text: Text, literal: Literal, at: Int64, edges: Int64
) -> Any:
    """Match the elements before ``own`` to the left of a place of a body; return the first that fits.

    Parameters
    ----------
    i
        The place of the symbol that begins with ``own``, if it is a word, or is behind it, if it is a gap.
    first
        First place of the body; -1: it is a row.
    own, lowest
        Elements.
    exact, text, literal
        Bodies, words, and the literal.
    at, edges
        Work space by level.

    Returns
    -------
    int
        -1: the literal is not here.

    """
    size, behind = exact.vocabulary_size, exact.vocabulary_size + exact.rule_count
    begin, depth = exact.offsets[exact.rule_count], 0
    while own > lowest:
        if own & 1:
            while depth > 0 and i == edges[depth]:
                depth -= 1
                i = at[depth]
            if i == first and depth == 0:
                return own
            if not is_gap(nb.int64(exact.gaps[i]), (own - 1) >> 1, literal, text):
                return -1
            own -= 1
            if own == lowest:
                return own
        if depth == 0 and first < 0 and (i == begin or exact.symbols[i - 1] == behind):
            return -1
        i -= 1
        symbol = nb.int64(exact.symbols[i])
        while symbol >= size:
            at[depth] = i
            depth += 1
            edges[depth] = exact.offsets[symbol - size]
            i = exact.offsets[symbol - size + 1] - 1
            symbol = nb.int64(exact.symbols[i])
        own -= 1
        if not is_word(symbol, own >> 1, literal, text):
            return -1
    return own


@inner
def _right(
    i: int, last: int, own: int, highest: int, exact: Exact, text: Text, literal: Literal, at: Int64, edges: Int64
) -> Any:
    """Match the elements after ``own`` to the right, as :func:`_left`.

    Parameters
    ----------
    i
        The place of the symbol that ends with ``own``, if it is a word, or is before it, if it is a gap.
    last
        Last place of the body; -1: it is a row.
    own, highest, exact, text, literal, at, edges
        As for :func:`_left`.

    """
    size, behind = exact.vocabulary_size, exact.vocabulary_size + exact.rule_count
    depth = 0
    while own < highest:
        if own & 1:
            while depth > 0 and i == edges[depth]:
                depth -= 1
                i = at[depth]
            if i == last and depth == 0:
                return own
            if not is_gap(nb.int64(exact.gaps[i + 1]), (own + 1) >> 1, literal, text):
                return -1
            own += 1
            if own == highest:
                return own
        i += 1
        symbol = nb.int64(exact.symbols[i])
        if symbol == behind:
            return -1
        while symbol >= size:
            at[depth] = i
            depth += 1
            edges[depth] = exact.offsets[symbol - size + 1] - 1
            i = exact.offsets[symbol - size]
            symbol = nb.int64(exact.symbols[i])
        own += 1
        if not is_word(symbol, own >> 1, literal, text):
            return -1
    return own


@inner
def _row(place: int, exact: Exact, links: Links) -> Any:
    """Return the row of a place."""
    row = nb.int64(links.row_of[place // ROW_PLACES])
    at = exact.offsets[exact.rule_count] + place
    while exact.offsets[exact.rule_count + row + 1] <= at:
        row += 1
    return row


@inner
def _mark(symbol: int, exact: Exact, links: Links, pending: UInt64, rows: UInt64) -> None:
    """Mark the rules and rows that contain a symbol."""
    one = nb.uint64(1)
    for i in range(links.rule_offsets[symbol], links.rule_offsets[symbol + 1]):
        pending[links.rules[i] >> nb.uint32(6)] |= one << nb.uint64(links.rules[i] & nb.uint32(63))
    for i in range(links.place_offsets[symbol], links.place_offsets[symbol + 1]):
        row = _row(nb.int64(links.places[i]), exact, links)
        rows[row >> 6] |= one << nb.uint64(row & 63)


@inner
def _mark_owners(exact: Exact, links: Links, pending: UInt64, rows: UInt64) -> None:
    """Mark the rows that contain marked rules; clears their marks."""
    began = interrupts()
    for block in range(len(pending)):
        if interrupts() != began:
            return
        while pending[block] != 0:  # only higher rules contain a rule: their marks come later
            rule = (block << 6) + trailing_zeros(pending[block])
            pending[block] &= pending[block] - nb.uint64(1)
            _mark(exact.vocabulary_size + rule, exact, links, pending, rows)


@polled_kernel
def mark_words(exact: Exact, links: Links, words: UInt32, pending: UInt64, rows: UInt64) -> None:
    """Mark the rows that contain any of some words; ``pending``, a bitmap of rules, is initially zero."""
    for k in range(len(words)):
        _mark(nb.int64(words[k]), exact, links, pending, rows)
    _mark_owners(exact, links, pending, rows)


@inner
def _next_wanted(i: int, gaps: UInt32, wanted: UInt8) -> Any:
    """Return the first place from ``i`` on whose gap is flagged, or the number of places."""
    while i + 8 <= len(gaps):
        some = wanted[gaps[i]] | wanted[gaps[i + 1]] | wanted[gaps[i + 2]] | wanted[gaps[i + 3]]
        some |= wanted[gaps[i + 4]] | wanted[gaps[i + 5]] | wanted[gaps[i + 6]] | wanted[gaps[i + 7]]
        if some:  # one branch for eight places
            break
        i += 8
    while i < len(gaps) and wanted[gaps[i]] == 0:
        i += 1
    return i


@polled_kernel
def mark_gaps(exact: Exact, links: Links, wanted: UInt8, pending: UInt64, rows: UInt64) -> None:
    """Mark the rows that contain any of some gaps; ``wanted``: by gap code."""
    began, one, body = interrupts(), nb.uint64(1), nb.int64(0)
    i = _next_wanted(nb.int64(0), exact.gaps, wanted)
    while i < len(exact.gaps):
        if interrupts() != began:
            return
        body = span_of(i, body, exact.offsets)
        row = body - exact.rule_count
        if row >= 0:
            rows[row >> 6] |= one << nb.uint64(row & 63)
        elif i > exact.offsets[body]:
            pending[body >> 6] |= one << nb.uint64(body & 63)
        else:  # the gap before a rule is its owner's
            i = _next_wanted(i + 1, exact.gaps, wanted)
            continue
        i = _next_wanted(exact.offsets[body + 1], exact.gaps, wanted)
    _mark_owners(exact, links, pending, rows)


@inner
def _has_any(first: int, stop: int, is_row: bool, exact: Exact, symbols: UInt8, wanted: UInt8) -> Any:
    """Tell whether a body contains a flagged symbol or gap."""
    for i in range(first, stop):
        if wanted[exact.gaps[i]] and (is_row or i > first):
            return True
        if symbols[exact.symbols[i]]:
            return True
    return False


@polled_kernel
def read_all(exact: Exact, symbols: UInt8, wanted: UInt8, rows: UInt64) -> None:
    """Mark the rows that contain any of some words or gaps, reading each up to the first: for frequent ones.

    Parameters
    ----------
    exact
        Rules and rows.
    symbols
        Flags by symbol, set for these words, and room for one more.
    wanted
        Flags by gap code.
    rows
        Output: bitmap of rows, initially zero.

    """
    began, one = interrupts(), nb.uint64(1)
    for body in range(len(exact.offsets) - 1):
        if body & 0xFFF == 0 and interrupts() != began:
            return
        row = body - exact.rule_count
        if _has_any(exact.offsets[body], exact.offsets[body + 1], row >= 0, exact, symbols, wanted):
            if row < 0:
                symbols[exact.vocabulary_size + body] = 1
            else:
                rows[row >> 6] |= one << nb.uint64(row & 63)


@polled_kernel
def mark_literal(
    exact: Exact,
    text: Text,
    links: Links,
    literal: Literal,
    anchor: int,
    words: UInt32,
    wanted: UInt8,
    most: int,
    at: Int64,
    edges: Int64,
    cut: Int64,
    pending: UInt64,
    rows: UInt64,
) -> int:
    """Mark the rows that contain a literal.

    Parameters
    ----------
    exact, text, links
        Rules and rows, words and gaps, and where symbols occur.
    literal
        The literal, after :func:`read_literal`.
    anchor
        One of its elements, a word or a gap.
    words
        If it is a word: those that may be there.
    wanted
        If it is a gap: flags by gap code; all places are compared with it. Otherwise empty.
    most
        Maximum places to compare, by words of the literal, and to look through.
    at, edges
        Work space by level.
    cut
        Work space: rules that cut the literal, in threes.
    pending
        Bitmap of rules, initially zero.
    rows
        Output: bitmap of rows, initially zero.

    Returns
    -------
    int
        ``COSTLY`` if there is not enough work space, or too much to read.

    """
    began, one, size = interrupts(), nb.uint64(1), exact.vocabulary_size
    begin, count = exact.offsets[exact.rule_count], len(literal.words)
    lowest = nb.int64(literal.spans[0] == 0)
    highest = 2 * count - nb.int64(literal.spans[2 * count - 1] == len(literal.data))
    places = nb.int64(len(exact.gaps)) if len(wanted) else nb.int64(0)
    left_rows = nb.int64(len(exact.offsets) - 1 - exact.rule_count)
    few = left_rows * 256 < len(links.places)  # then most rows are found soon
    reads, top, k, body, i = nb.int64(0), 0, 0, nb.int64(0), nb.int64(0)
    while left_rows > 0:
        if interrupts() != began:
            return OK
        if reads > most:
            return COSTLY
        if top > 0:
            top -= 1
            symbol, low, high = cut[3 * top], cut[3 * top + 1], cut[3 * top + 2]
            if pending[(symbol - size) >> 6] >> nb.uint64((symbol - size) & 63) & one:
                continue
        elif k < len(words):
            symbol, low, high = nb.int64(words[k]), nb.int64(anchor), nb.int64(anchor)
            k += 1
            if not is_word(symbol, anchor >> 1, literal, text):
                continue
        elif i < places:
            i = _next_wanted(i, exact.gaps, wanted)
            if i == places:
                break
            body = span_of(i, body, exact.offsets)
            first, stop, row = exact.offsets[body], exact.offsets[body + 1], body - exact.rule_count
            i += 1
            if row < 0 and i == first + 1:  # the gap before a rule is its owner's
                continue
            reads += count
            left = _left(i - 1, first if row < 0 else -1, anchor, lowest, exact, text, literal, at, edges)
            if left < 0:
                continue
            last = stop - 1 if row < 0 else -1
            right = _right(i - 2, last, anchor, highest, exact, text, literal, at, edges)
            if right < 0:
                continue
            if left != lowest or right != highest:
                if 3 * top + 3 > len(cut):
                    return COSTLY
                cut[3 * top], cut[3 * top + 1], cut[3 * top + 2] = size + body, left, right
                top += 1
                continue
            if row < 0:
                pending[body >> 6] |= one << nb.uint64(body & 63)
            else:
                rows[row >> 6] |= one << nb.uint64(row & 63)
            i = stop
            continue
        else:
            break
        before = nb.int64(-1)
        for j in range(links.rule_offsets[symbol], links.rule_offsets[symbol + 1]):
            rule = nb.int64(links.rules[j])
            if rule == before or pending[rule >> 6] >> nb.uint64(rule & 63) & one:
                continue
            before = rule
            first, stop = exact.offsets[rule], exact.offsets[rule + 1]
            reads += stop - first
            for place in range(first, stop):
                if exact.symbols[place] != nb.uint32(symbol):
                    continue
                reads += count
                left = _left(place, first, low, lowest, exact, text, literal, at, edges)
                if left < 0:
                    continue
                right = _right(place, stop - 1, high, highest, exact, text, literal, at, edges)
                if right < 0:
                    continue
                if left == lowest and right == highest:
                    pending[rule >> 6] |= one << nb.uint64(rule & 63)
                    break
                if 3 * top + 3 > len(cut):
                    return COSTLY
                cut[3 * top], cut[3 * top + 1], cut[3 * top + 2] = size + rule, left, right
                top += 1
        for j in range(links.place_offsets[symbol], links.place_offsets[symbol + 1]):
            place = nb.int64(links.places[j])
            if few:
                row = _row(place, exact, links)
                if rows[row >> 6] >> nb.uint64(row & 63) & one:
                    continue
            reads += count
            if reads > most:
                break
            left = _left(begin + place, -1, low, lowest, exact, text, literal, at, edges)
            if left >= 0 and _right(begin + place, -1, high, highest, exact, text, literal, at, edges) >= 0:
                row = _row(place, exact, links)
                left_rows -= nb.int64(rows[row >> 6] >> nb.uint64(row & 63) & one == 0)
                rows[row >> 6] |= one << nb.uint64(row & 63)
    if left_rows > 0:
        _mark_owners(exact, links, pending, rows)
    return OK
