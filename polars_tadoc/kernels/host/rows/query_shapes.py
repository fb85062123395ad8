"""Cuts a query into words and phrases, and the text between them, its shape (:mod:`polars_tadoc.index.query.shapes`).

Only queries of ASCII are cut; those without syntax may have any characters, where they need not be cut.
"""

from __future__ import annotations

from string import ascii_letters, digits
from typing import Any, Final

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.rows.query_words import compare_words, first_slot
from polars_tadoc.runtime.array_types import Int64, UInt8
from polars_tadoc.runtime.jit import inner, kernel

WHOLE: Final = 1
"""Text without syntax is one word, with the empty shape."""
PLAIN: Final = 2
"""No text has syntax."""
COLONS: Final = 4
"""A colon may be syntax."""

MARKS: Final = b'"*?~^:+-'
"""A query without these bytes and without capital operators has no syntax."""

A_WORD: Final = 1
A_PHRASE: Final = 2
"""Instead of a word, and of a phrase, in a shape."""

_SPACE, _QUOTE, _LINE_FEED, _SLASH, _PLUS, _MINUS, _COLON, _ASCII = 32, 34, 10, 47, 43, 45, 58, 128


def _set_of(characters: bytes) -> tuple[np.uint64, np.uint64]:
    """Return a bit for each ASCII character."""
    bits = sum(1 << byte for byte in characters)
    return np.uint64(bits & (1 << 64) - 1), np.uint64(bits >> 64)


_ENDS, _HIGH_ENDS = _set_of(b' "()*?~^')
_BEFORE, _ = _set_of(b' "()+-')
_DIGITS, _LETTERS = _set_of(f"{digits}{ascii_letters}_".encode())
_AFTER, _ = _set_of(b' "()')
_MARKS, _HIGH_MARKS = _set_of(MARKS)


@inner
def _is_in(low: int, high: int, byte: int) -> Any:
    """Tell whether a byte is in a set of ASCII characters."""
    bits = low if byte < 64 else high
    return byte < _ASCII and bits >> nb.uint64(byte & 63) & nb.uint64(1) != nb.uint64(0)


@inner
def _operator(text: UInt8, at: int, size: int) -> Any:
    """Return the length of the capitals ``AND``, ``OR`` or ``NOT`` at a place, or 0."""
    if at + 2 <= size and text[at] == 79 and text[at + 1] == 82:
        return 2
    if at + 3 <= size:
        a, b, c = text[at], text[at + 1], text[at + 2]
        if (a == 65 and b == 78 and c == 68) or (a == 78 and b == 79 and c == 84):
            return 3
    return 0


@inner
def _marks(text: UInt8, size: int) -> Any:
    """Tell whether a text may have syntax, and has other characters than ASCII, control characters, and a colon."""
    has_marks, is_wide, has_controls, has_colon = False, False, False, False
    for i in range(size):
        byte = text[i]
        is_wide |= byte >= _ASCII
        has_controls |= byte < _SPACE
        has_colon |= byte == _COLON
        has_marks |= _is_in(_MARKS, _HIGH_MARKS, byte) or (_operator(text, i, size) != 0)
    return has_marks, is_wide, has_controls, has_colon


@inner
def _has_near(text: UInt8, size: int) -> Any:
    """Tell whether a text may have ``NEAR/``."""
    is_near = False
    for i in range(2, size):
        is_near |= text[i] == _SLASH and text[i - 1] == 82 and text[i - 2] == 65
    return is_near


@kernel
def cut_query(text: UInt8, size: int, reads: int, texts: UInt8, shape: UInt8) -> tuple[int, int]:
    """Write the words and phrases of a query, a line feed between them, and its shape.

    Parameters
    ----------
    text, size
        The query in UTF-8, and its bytes.
    reads
        ``WHOLE``, ``PLAIN`` and ``COLONS``, added.
    texts, shape
        Output: as many bytes as the query has, each.

    Returns
    -------
    (int, int)
        Bytes of both; the first is negative for a query that must be read otherwise.

    """
    has_marks, is_wide, has_controls, has_colon = _marks(text, size)
    is_near = _has_near(text, size)
    if has_controls:
        return -1, 0
    if reads & PLAIN != 0 or (reads & WHOLE != 0 and not (has_marks or is_near)):
        for i in range(size):
            texts[i] = text[i]
        return size, 0
    if is_wide or is_near or (has_colon and reads & COLONS != 0):
        return -1, 0
    at, made, spelled, words = 0, 0, 0, 0
    has_operators, has_small = False, False
    while at < size:
        byte, stop = text[at], at
        if byte == _QUOTE:
            stop = at + 1
            while stop < size and text[stop] != _QUOTE:
                stop += 1
            stop = stop + 1 if stop < size else at
        elif (at == 0 or _is_in(_BEFORE, _BEFORE, text[at - 1])) and not (
            _is_in(_ENDS, _HIGH_ENDS, byte) or byte in (_PLUS, _MINUS)
        ):
            length = _operator(text, at, size)
            is_operator = length != 0 and (at + length == size or _is_in(_AFTER, _AFTER, text[at + length]))
            has_operators |= is_operator
            if not is_operator:
                stop = at + 1
                while stop < size and not _is_in(_ENDS, _HIGH_ENDS, text[stop]):
                    stop += 1
        if stop == at:
            shape[spelled] = byte
            at, spelled = at + 1, spelled + 1
            continue
        if words != 0:
            texts[made] = _LINE_FEED
            made += 1
        for i in range(at, stop):
            texts[made] = text[i]
            has_small |= 97 <= text[i] <= 122
            made += nb.int64(text[i] != _QUOTE)
        shape[spelled] = A_PHRASE if byte == _QUOTE else A_WORD
        at, spelled, words = stop, spelled + 1, words + 1
    if words == 0 or (has_operators and not has_small):
        return -1, 0
    return made, spelled


@inner
def has_letters(text: UInt8, start: int, stop: int) -> Any:
    """Tell whether a part of a text is letters, digits and ``_`` of ASCII only."""
    is_word = True
    for i in range(start, stop):
        is_word &= _is_in(_DIGITS, _LETTERS, text[i])
    return is_word


@inner
def find_shape(shape: UInt8, slots: Int64, spans: Int64, shapes: UInt8) -> Any:
    """Return the number of a shape in a table of :func:`.query_words.number_words`, negative if it isn't there."""
    slot, mask = first_slot(shape, 0, len(shape), len(slots)), len(slots) - 1
    while slots[slot] >= 0:
        own = slots[slot]
        if compare_words(shapes, spans[2 * own], spans[2 * own + 1], shape, 0, len(shape)) == 0:
            return own
        slot = (slot + 1) & mask
    return nb.int64(-1)
