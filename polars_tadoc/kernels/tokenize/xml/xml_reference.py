"""Plain-Python definition of the words of XML, the reference of the kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator

_NAME_START = r"[A-Za-z_:\x80-\U0010ffff]"
_NAME_CHARACTER = r"[A-Za-z0-9_:.\-\x80-\U0010ffff]"
_START_TAG = re.compile(rf"""<{_NAME_START}(?:[^<>"']|"[^<"]*"|'[^<']*')*>""")
_END_TAG = re.compile(r"</[^<>]*>")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CDATA = re.compile(r"<!\[CDATA\[.*?\]\]>", re.DOTALL)
_INSTRUCTION = re.compile(r"<\?.*?\?>", re.DOTALL)
_DECLARATION = re.compile(rf"<\?[Xx][Mm][Ll](?!{_NAME_CHARACTER})(?s:.)")
_SKIPPED = r""""[^"]*"|'[^']*'|<!--(?:(?!-->).)*-->|<\?(?:(?!\?>).)*\?>|<(?!!--|\?)"""
_DOCTYPE = re.compile(rf"""<!DOCTYPE(?:[^>"'\[<]|{_SKIPPED}|\[(?:[^\]"'<]|{_SKIPPED})*\])*>""", re.DOTALL)
_BEFORE_TAGS = re.compile(rf"<(?:{_NAME_START}|!DOCTYPE)")
_REFERENCE = re.compile(rf"&(?:#|(?={_NAME_START})){_NAME_CHARACTER}+;")
_NO_TEXT = re.compile(r"[<&]|\]\]>|[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_WHITE = re.compile(r"[ \t\r\n]+")
_RUN = re.compile(r"[^ \t\r\n<]+")


def xml_spans(text: str, is_content: bool) -> Iterator[tuple[int, int, bool]]:
    """Yield the segments of a row: start, stop, and whether it is text to be tokenized as text.

    Parameters
    ----------
    text
        One row.
    is_content
        Whether the row is element content instead of a document.

    Examples
    --------
    >>> [text[a:b] for text in ["a <b c='>'>d, e &amp; f</b> <"] for a, b, _ in xml_spans(text, False)]
    ['a', "<b c='>'>", 'd, e ', '&amp;', ' f', '</b>', '<']

    """
    first = at = int(text.startswith("\ufeff") and not is_content)
    depth, may_declare = int(is_content), not is_content
    while at < len(text):
        stop, is_text = at + 1, False
        if text[at] == "<":
            found = _markup(text, at, at == first, may_declare)
            may_declare = may_declare and not _BEFORE_TAGS.match(text, at)
            if found:
                stop = found.end()
                depth += found.re is _START_TAG and not found[0].endswith("/>")
                depth = max(depth - (found.re is _END_TAG), int(is_content))
        elif depth == 0:
            white = _WHITE.match(text, at)
            if white:
                at = white.end()
                continue
            run = _RUN.match(text, at)
            assert run
            stop = run.end()
        else:
            other = _NO_TEXT.search(text, at)
            if other is None or other.start() > at:
                stop, is_text = other.start() if other else len(text), True
            else:
                found = _REFERENCE.match(text, at)
                stop = found.end() if found else other.end()
        yield at, stop, is_text
        at = stop


def _markup(text: str, at: int, is_first: bool, may_declare: bool) -> re.Match[str] | None:
    """Match the markup that a ``<`` begins."""
    if not is_first and _DECLARATION.match(text, at):
        return None
    for kind in (_START_TAG, _END_TAG, _COMMENT, _CDATA, _INSTRUCTION):
        found = kind.match(text, at)
        if found:
            return found
    return _DOCTYPE.match(text, at) if may_declare else None
