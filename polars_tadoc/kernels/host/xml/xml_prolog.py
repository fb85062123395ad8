"""Scans the part of documents before the root element for declarations that must not reach the parser.

Declared entities can expand to any amount of text, and default values of attributes are added to every element. The
scan finds both in the DOCTYPE before anything is expanded.
"""

from __future__ import annotations

from typing import Any
from xml.parsers.expat import errors

import numpy as np

from polars_tadoc.runtime.addresses import load_u8
from polars_tadoc.runtime.jit import inner, kernel

FINE = 0
INVALID_TOKEN = errors.codes[errors.XML_ERROR_INVALID_TOKEN]
ENTITIES, DEFAULTS = 240, 241
"""Codes of documents that declare entities, or too many default values for their elements; Expat's are lower."""

MAX_DEFAULTS = 1 << 23
"""Maximum default values, plus :data:`MAX_GROWTH` for each of the document's bytes; Expat's own limits for entities."""
MAX_GROWTH = 100
MAX_DEFAULT_BYTES = 1 << 30
"""Maximum bytes of these values, plus :data:`MAX_BYTE_GROWTH` for each of the document's bytes."""
MAX_BYTE_GROWTH = 1000

_0, _1, _2, _3, _4 = (np.uint64(number) for number in range(5))
_MAX_DEFAULTS, _MAX_GROWTH = np.uint64(MAX_DEFAULTS), np.uint64(MAX_GROWTH)
_MAX_DEFAULT_BYTES, _MAX_BYTE_GROWTH = np.uint64(MAX_DEFAULT_BYTES), np.uint64(MAX_BYTE_GROWTH)
_BYTE, _TWO, _THREE = (np.uint64((1 << 8 * count) - 1) for count in (1, 2, 3))
_MARK, _INSTRUCTION, _INSTRUCTION_END, _COMMENT, _COMMENT_END, _DOCTYPE, _ENTITY = (
    np.uint64(int.from_bytes(written, "little"))
    for written in (b"\xef\xbb\xbf", b"<?", b"?>", b"<!--", b"-->", b"<!D", b"<!EN")
)
"""Bytes as little-endian numbers; they cannot be confused with other constructs here."""


@kernel
def check_prologs(addresses: Any, lengths: Any, codes: Any, lines: Any, columns: Any) -> None:
    """Give documents that must not be parsed a code and the error's position (from 1); others are unchanged.

    Documents with a code are skipped.
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
    for _ in range(2):
        if place < end and load_u8(place) == 0:
            return INVALID_TOKEN, place  # Expat would decode it as UTF-16
        place += _1
    place = start + (_3 if _next_bytes(start, end) & _THREE == _MARK else _0)
    while place < end:
        behind = _behind_aside(place, end)
        byte = load_u8(place)
        if behind != place:
            place = behind
        elif byte == 0x20 or byte == 0x09 or byte == 0x0A or byte == 0x0D:
            place += _1
        elif _next_bytes(place, end) & _THREE == _DOCTYPE:
            return _check_doctype(place, end)
        else:
            break
    return FINE, place


@inner
def _check_doctype(place: Any, end: Any) -> Any:
    """Scan to the end of the declarations; literals, comments and instructions are skipped."""
    inside = False
    literals = literal_bytes = elements = _0
    beginning = place
    place += _3
    while place < end:
        byte = load_u8(place)
        behind = _behind_aside(place, end)
        if byte == 0x22 or byte == 0x27:
            literal = place + _1
            place = _behind(literal, end, np.uint64(byte), _1)
            if inside:
                literals += _1
                literal_bytes += place - literal
        elif byte == (0x5D if inside else 0x3E):  # ] or >
            break
        elif inside and behind != place:
            place = behind
        elif inside and _next_bytes(place, end) == _ENTITY:
            return ENTITIES, place
        else:
            inside = inside or byte == 0x5B  # [
            place += _1
    if literals != _0:
        while place < end:
            elements += np.uint64(load_u8(place) == 0x3C)
            place += _1
    size = end - beginning
    if (
        literals * elements > _MAX_DEFAULTS + _MAX_GROWTH * size
        or literal_bytes * elements > _MAX_DEFAULT_BYTES + _MAX_BYTE_GROWTH * size
    ):
        return DEFAULTS, beginning
    return FINE, place


@inner
def _behind_aside(place: Any, end: Any) -> Any:
    """Return the position after the comment or instruction that begins here; the same position if none does."""
    begins = _next_bytes(place, end)
    if begins & _TWO == _INSTRUCTION:
        return _behind(place + _2, end, _INSTRUCTION_END, _2)
    if begins == _COMMENT:
        return _behind(place + _4, end, _COMMENT_END, _3)
    return place


@inner
def _behind(place: Any, end: Any, wanted: Any, count: Any) -> Any:
    """Return the position after the next given bytes, or the end."""
    mask = (_1 << (count << _3)) - _1
    while place < end:
        if load_u8(place) == wanted & _BYTE and _next_bytes(place, end) & mask == wanted:
            return place + count
        place += _1
    return end


@inner
def _next_bytes(place: Any, end: Any) -> Any:
    """Return the next four bytes as a little-endian number, with zeros beyond the end."""
    found = _0
    for k in range(4):
        at = place + np.uint64(k)
        if at < end:
            found |= np.uint64(load_u8(at)) << np.uint64(8 * k)
    return found


@inner
def _line_and_column(start: Any, place: Any) -> Any:
    line, column, before = np.int64(1), np.int64(1), np.int64(0)
    while start < place:
        byte = np.int64(load_u8(start))
        if byte == 0x0D or (byte == 0x0A and before != 0x0D):
            line += 1
        if byte == 0x0D or byte == 0x0A:
            column = np.int64(1)
        elif byte & 0xC0 != 0x80:  # count characters, not bytes
            column += 1
        before = byte
        start += _1
    return line, column
