"""Looks at what stands before the root element: at documents that a parser shall not be given.

Entities that a document declares can stand for any amount of text; attributes with default values come with every
element. What a document's DOCTYPE declares is seen here before anything is expanded.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.cpu.jit import inner, kernel
from polars_tadoc.kernels.cpu.memory import load_u8

FINE = 0
INVALID_TOKEN = 4
"""Expat's own number."""
ENTITIES, DEFAULTS = 240, 241
"""Codes of documents that declare entities, or so many default values for so many elements; Expat's are lower."""

MOST_DEFAULTS = 1 << 23
"""Default values that elements may come with, times :data:`MOST_GROWTH` of the document's bytes: Expat's own limits
for what entities add."""
MOST_GROWTH = 100

_1, _2, _3, _4, _9, _MOST_DEFAULTS, _MOST_GROWTH = (
    np.uint64(number) for number in (1, 2, 3, 4, 9, MOST_DEFAULTS, MOST_GROWTH)
)


@kernel
def check_prologs(addresses: Any, lengths: Any, codes: Any, lines: Any, columns: Any) -> None:
    """Give documents that shall not be parsed a code and the place (from 1) of what is wrong; others stay as they are.

    Documents with a code are not looked at.
    """
    for row in range(len(addresses)):
        if codes[row] == FINE:
            start = addresses[row]
            code, place = _check(start, start + np.uint64(lengths[row]))
            if code != FINE:
                codes[row] = code
                lines[row], columns[row] = _line_and_column(start, place)


@inner
def _check(start: Any, end: Any) -> Any:
    place = start
    if _begins(place, end, 0xEF, 0xBB, 0xBF):
        place += _3
    for first in range(2):
        if start + np.uint64(first) < end and load_u8(start + np.uint64(first)) == 0:
            return INVALID_TOKEN, start + np.uint64(first)  # Expat would take it for UTF-16
    while place < end:
        byte = load_u8(place)
        if byte == 0x20 or byte == 0x09 or byte == 0x0A or byte == 0x0D:
            place += _1
        elif _begins(place, end, 0x3C, 0x3F, -1):  # <?
            place = _behind(place + _2, end, 0x3F, 0x3E, -1)
        elif _begins(place, end, 0x3C, 0x21, 0x2D):  # <!-
            place = _behind(place + _4, end, 0x2D, 0x2D, 0x3E)
        elif _begins(place, end, 0x3C, 0x21, 0x44):  # <!D, which only DOCTYPE begins with
            return _check_doctype(place, end)
        else:
            break
    return FINE, place


@inner
def _check_doctype(place: Any, end: Any) -> Any:
    """Read on to the end of the declarations; a literal, a comment or an instruction is skipped as a whole."""
    inside = False
    literals = _1 - _1
    beginning = place
    place += _3
    while place < end:
        byte = load_u8(place)
        if byte == 0x22 or byte == 0x27:
            place = _behind(place + _1, end, np.int64(byte), -1, -1)
            literals += _1
        elif byte == 0x5B and not inside:  # [
            inside = True
            literals = _1 - _1
            place += _1
        elif byte == (0x5D if inside else 0x3E):  # ] or >
            break
        elif inside and _begins(place, end, 0x3C, 0x3F, -1):  # <?
            place = _behind(place + _2, end, 0x3F, 0x3E, -1)
        elif inside and _begins(place, end, 0x3C, 0x21, 0x2D):  # <!-
            place = _behind(place + _4, end, 0x2D, 0x2D, 0x3E)
        elif inside and _begins(place, end, 0x3C, 0x21, 0x45) and _begins(place + _3, end, 0x4E, -1, -1):  # <!EN
            return ENTITIES, place
        else:
            place += _1
    elements = _1 - _1
    if inside and literals > elements:
        while place < end:
            elements += np.uint64(load_u8(place) == 0x3C)
            place += _1
    if literals * elements > _MOST_DEFAULTS + _MOST_GROWTH * (end - beginning):
        return DEFAULTS, beginning
    return FINE, place


@inner
def _begins(place: Any, end: Any, first: Any, second: Any, third: Any) -> Any:
    """Tell whether up to three bytes stand at a place; -1 is any."""
    if place >= end or load_u8(place) != first:
        return False
    if second >= 0 and (place + _1 >= end or load_u8(place + _1) != second):
        return False
    return not (third >= 0 and (place + _2 >= end or load_u8(place + _2) != third))


@inner
def _behind(place: Any, end: Any, first: Any, second: Any, third: Any) -> Any:
    """Return the place behind the next such bytes, or the end."""
    while place < end:
        if _begins(place, end, first, second, third):
            return place + _1 + np.uint64(second >= 0) + np.uint64(third >= 0)
        place += _1
    return end


@inner
def _line_and_column(start: Any, place: Any) -> Any:
    line, column, before = np.int64(1), np.int64(1), np.int64(0)
    while start < place:
        byte = np.int64(load_u8(start))
        if byte == 0x0D or (byte == 0x0A and before != 0x0D):
            line += 1
        if byte == 0x0D or byte == 0x0A:
            column = np.int64(1)
        elif byte & 0xC0 != 0x80:  # characters, not bytes
            column += 1
        before = byte
        start += _1
    return line, column
