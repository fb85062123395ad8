"""Cuts rows of XML into words: markup as whole words, and the words of its text.

Any string can be cut. Malformed parts become words, too, never gaps: a row whose words are those of a well-formed
document has only characters that are valid in text between them, and white space outside of the root.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.tokenize.tokenize_cpu import GAP, MARK, SINGLE, Classes, classify
from polars_tadoc.runtime.addresses import load_u8
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.jit import inner, kernel

_TAB, _NEWLINE, _RETURN, _SPACE = 0x09, 0x0A, 0x0D, 0x20
_EXCLAMATION, _QUOTE, _HASH, _AMPERSAND, _APOSTROPHE, _DASH = 0x21, 0x22, 0x23, 0x26, 0x27, 0x2D
_SLASH, _SEMICOLON, _LESS, _GREATER, _QUESTION, _OPEN, _CLOSE = 0x2F, 0x3B, 0x3C, 0x3E, 0x3F, 0x5B, 0x5D

_PLAIN, _NAME, _NAME_START = 0, 1, 3  # bits: valid in a name; valid as its first character
_NAMES = np.array(
    [
        _NAME_START
        if byte >= 0x80 or chr(byte).isalpha() or chr(byte) in "_:"
        else _NAME
        if chr(byte).isdigit() or chr(byte) in ".-"
        else _PLAIN
        for byte in range(256)
    ],
    np.uint8,
)

_COMMENT = np.frombuffer(b"<!--", np.uint8)
_CDATA = np.frombuffer(b"<![CDATA[", np.uint8)
_DOCTYPE = np.frombuffer(b"<!DOCTYPE", np.uint8)
_BYTE_ORDER_MARK = np.frombuffer(b"\xef\xbb\xbf", np.uint8)

# ends that the rest of a row does not have: a failed search is not repeated, otherwise the time would be quadratic
_NO_COMMENTS, _NO_CDATA, _NO_INSTRUCTIONS, _NO_DOCTYPE = 1, 2, 4, 8


@inner
def _byte(base: int, at: int) -> Any:
    return nb.int64(load_u8(nb.uint64(base) + nb.uint64(at)))


@inner
def _is_white(byte: int) -> bool:
    return byte in (_SPACE, _TAB, _NEWLINE, _RETURN)


@inner
def _begins(base: int, at: int, stop: int, string: UInt8) -> bool:
    i = 0
    while i < len(string) and at + i < stop and _byte(base, at + i) == string[i]:
        i += 1
    return i == len(string)


@inner
def _end_after(base: int, at: int, stop: int, mark: int, twice: bool) -> int:
    """Return the end of the first ``>`` after one mark, or two, from ``at`` on; -1 if there is none."""
    behind, before = 0, 0
    while at < stop:
        byte = _byte(base, at)
        at += 1
        if byte == _GREATER and before == mark and (behind == mark or not twice):
            return at
        behind, before = before, byte
    return -1


@inner
def _tag_end(base: int, at: int, stop: int) -> int:
    """Return the end of a start tag: ``>`` outside of quotes; -1 if ``<``, which no tag contains, comes first."""
    quote = 0
    while at < stop:
        byte = _byte(base, at)
        at += 1
        if byte == _LESS:
            return -1
        if quote != 0:
            if byte == quote:
                quote = 0
        elif byte == _GREATER:
            return at
        elif byte in (_QUOTE, _APOSTROPHE):
            quote = byte
    return -1


@inner
def _end_tag_end(base: int, at: int, stop: int) -> int:
    while at < stop:
        byte = _byte(base, at)
        at += 1
        if byte == _GREATER:
            return at
        if byte == _LESS:
            return -1
    return -1


@inner
def _doctype_end(base: int, at: int, stop: int) -> int:
    """Return the end of a document type declaration that continues at ``at``; -1 if it has none."""
    inside = False
    while at < stop:
        byte = _byte(base, at)
        at += 1
        if byte in (_QUOTE, _APOSTROPHE):
            while at < stop and _byte(base, at) != byte:
                at += 1
            at += 1
        elif byte == _GREATER and not inside:
            return at
        elif byte == _OPEN:
            inside = True
        elif byte == _CLOSE:
            inside = False
        elif byte == _LESS and _begins(base, at - 1, stop, _COMMENT):
            at = _end_after(base, at + 3, stop, _DASH, True)
        elif byte == _LESS and at < stop and _byte(base, at) == _QUESTION:
            at = _end_after(base, at + 1, stop, _QUESTION, False)
        if at < 0:
            return -1
    return -1


@inner
def _is_declaration(base: int, at: int, stop: int) -> bool:
    """Tell whether the target at ``at`` is ``xml`` in any case."""
    return (
        stop - at > 3
        and _byte(base, at) | 0x20 == 0x78
        and _byte(base, at + 1) | 0x20 == 0x6D
        and _byte(base, at + 2) | 0x20 == 0x6C
        and _NAMES[_byte(base, at + 3)] == _PLAIN
    )


@inner
def _markup_end(base: int, first: int, start: int, stop: int, depth: int, gone: int) -> Any:
    """Return the end of the markup at ``<``, -1 if it is not XML; the depth after it; the ends now missing."""
    at = start + 1
    byte = _byte(base, at) if at < stop else 0
    end = -1
    if byte == _SLASH:
        end = _end_tag_end(base, at + 1, stop)
        depth -= end >= 0
    elif _NAMES[byte] == _NAME_START:
        end = _tag_end(base, at + 1, stop)
        depth += end >= 0 and _byte(base, end - 2) != _SLASH
        gone |= _NO_DOCTYPE
    elif byte == _QUESTION:
        # an XML declaration is only valid at the start of the row: elsewhere it must not be a word
        if not gone & _NO_INSTRUCTIONS and (start == first or not _is_declaration(base, at + 1, stop)):
            end = _end_after(base, at + 1, stop, _QUESTION, False)
            gone |= 0 if end >= 0 else _NO_INSTRUCTIONS
    elif _begins(base, start, stop, _COMMENT):
        if not gone & _NO_COMMENTS:
            end = _end_after(base, start + 4, stop, _DASH, True)
            gone |= 0 if end >= 0 else _NO_COMMENTS
    elif _begins(base, start, stop, _CDATA):
        if not gone & _NO_CDATA:
            end = _end_after(base, start + 9, stop, _CLOSE, True)
            gone |= 0 if end >= 0 else _NO_CDATA
    elif not gone & _NO_DOCTYPE and _begins(base, start, stop, _DOCTYPE):
        end = _doctype_end(base, start + 9, stop)
        gone |= _NO_DOCTYPE
    return end, depth, gone


@inner
def _reference_end(base: int, start: int, stop: int) -> int:
    """Return the end of the reference at ``&``, -1 if it is not a reference."""
    at = start + 1
    if at < stop and _byte(base, at) == _HASH:
        at += 1
    elif at == stop or _NAMES[_byte(base, at)] != _NAME_START:
        return -1
    first = at
    while at < stop and _NAMES[_byte(base, at)] != _PLAIN:
        at += 1
    return at + 1 if first < at < stop and _byte(base, at) == _SEMICOLON else -1


@inner
def _word_end(base: int, at: int, stop: int, kind: int, page_of: int, pages: int) -> int:
    """Return the end of the word whose first character, of class ``kind``, ends at ``at``."""
    single = kind == SINGLE
    while at < stop:
        byte = _byte(base, at)
        if byte < 0x80:
            if single or _byte(pages, byte) == GAP:
                return at
            at += 1
            continue
        kind, width = classify(nb.uint64(base) + nb.uint64(at), stop - at, page_of, pages)
        if kind == GAP or (kind == SINGLE or (single and kind != MARK)):
            return at
        at += width
    return at


@inner
def _text_word_end(base: int, at: int, stop: int, page_of: int, pages: int) -> Any:
    """Return the end of the word of text at ``at`` and True; or the end of a part that is not a word, and False."""
    byte = _byte(base, at)
    if byte < 0x80:
        kind, width = _byte(pages, byte), 1
    else:
        kind, width = classify(nb.uint64(base) + nb.uint64(at), stop - at, page_of, pages)
    end = at + width
    if kind != GAP:
        return _word_end(base, end, stop, kind, page_of, pages), True
    if byte == _AMPERSAND:
        return max(end, _reference_end(base, at, stop)), True
    if byte == _CLOSE and at + 2 < stop and _byte(base, at + 1) == _CLOSE and _byte(base, at + 2) == _GREATER:
        return at + 3, True
    if byte == 0xEF:
        return end, _byte(base, at + 1) == 0xBF and _byte(base, at + 2) >= 0xBE  # U+FFFE and U+FFFF
    return end, byte < _SPACE and not _is_white(byte)


@inner
def _cut_row(
    base: int, stop: int, is_content: bool, page_of: int, pages: int, written: int, starts: UInt32, lengths: UInt32
) -> int:
    """Cut one row; return the number of words up to its end, -1 if there was no room."""
    first = 3 if not is_content and _begins(base, nb.int64(0), stop, _BYTE_ORDER_MARK) else 0
    top = nb.int64(is_content)
    at, depth, gone = first, top, _NO_DOCTYPE if is_content else 0
    while at < stop:
        byte = _byte(base, at)
        end, is_word = at + 1, True
        if byte == _LESS:
            found, depth, gone = _markup_end(base, first, at, stop, depth, gone)
            end, depth = max(end, found), max(depth, top)
        elif depth > 0:
            end, is_word = _text_word_end(base, at, stop, page_of, pages)
        elif _is_white(byte):
            is_word = False
        else:
            while end < stop and _byte(base, end) != _LESS and not _is_white(_byte(base, end)):
                end += 1
        if is_word:
            if written == len(starts):
                return -1
            starts[written], lengths[written] = at, end - at
            written += 1
        at = end
    return written


@kernel
def cut_rows(
    addresses: UInt64,
    lengths: UInt32,
    first_row: int,
    last_row: int,
    is_content: bool,
    classes: Classes,
    starts: UInt32,
    sizes: UInt32,
    ends: Int64,
) -> int:
    """Cut rows into words.

    Parameters
    ----------
    addresses, lengths
        All rows.
    first_row, last_row
        The rows to cut.
    is_content
        Whether rows are element content, as queries are, instead of documents.
    classes
        Character classes of text.
    starts, sizes
        Output: start and bytes of each word in its row.
    ends
        Output by row: the number of words up to the row's end, from ``first_row`` on.

    Returns
    -------
    int
        The first row that was not cut for lack of room in ``starts``; otherwise ``last_row``.

    """
    page_of, pages = nb.uint64(classes.page_of.ctypes.data), nb.uint64(classes.pages.ctypes.data)
    written = 0
    for row in range(first_row, last_row):
        written = _cut_row(addresses[row], nb.int64(lengths[row]), is_content, page_of, pages, written, starts, sizes)
        if written < 0:
            return row
        ends[row] = written
    return last_row
