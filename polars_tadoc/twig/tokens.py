"""The tokens of an XPath expression."""

from __future__ import annotations

import re
from collections.abc import Sequence

SPACE = r"[ \t\r\n]*"
"""White space between tokens."""

_NAME_START = (
    "A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)

NAME = f"[{_NAME_START}][{_NAME_START}\\-.0-9\u00b7\u0300-\u036f\u203f\u2040]*"
"""An NCName (Namespaces in XML 1.0, third edition; XML 1.0, fifth edition)."""

Token = tuple[str, str]
"""A name with its prefix, or any other token. The unused group is empty; both are empty at the end."""

_TOKEN = re.compile(
    f"{SPACE}(?:"
    f"({NAME}(?::{NAME})?)"
    r"|(//?|\.\.|::|[!<>]=|\"[^\"]*\"|'[^']*'|[0-9]+(?:\.[0-9]*)?|\.[0-9]+|\$" + SPACE + NAME + f"(?::{NAME})?"
    r"|[^ \t\r\n])|\Z)"
)


def tokens_of(xpath: str) -> list[Token]:
    """Split an expression into tokens; an invalid character is a token of its own.

    Examples
    --------
    >>> tokens_of("//p:a[@b = 'c d']")[:5]
    [('', '//'), ('p:a', ''), ('', '['), ('', '@'), ('b', '')]
    >>> tokens_of("//p:a[@b = 'c d']")[5:]
    [('', '='), ('', "'c d'"), ('', ']'), ('', '')]

    """
    return _TOKEN.findall(xpath)


def positions_of(xpath: str) -> Sequence[int]:
    """Return the offset of each token in characters, from 0."""
    return [match.start(match.lastindex) if match.lastindex else match.end() for match in _TOKEN.finditer(xpath)]
