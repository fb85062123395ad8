"""Character classes of the built-in tokenizers, as two-stage tables for the kernels."""

from __future__ import annotations

from functools import cache

import numpy as np

from polars_tadoc.kernels.tokenize import unicode_ranges
from polars_tadoc.kernels.tokenize.tokenize_cpu import GAP, MARK, SINGLE, WORD, Classes
from polars_tadoc.runtime.array_types import UInt8, UInt16

Table = tuple[UInt16, UInt8]

WHITESPACE = "9-d 1c-20 85 a0 1680 2000-200a 2028-2029 202f 205f 3000"
"""White space of Python's ``str.split()``."""


@cache
def classes(tokenizer: str) -> Classes:
    """Return the classes of a built-in tokenizer, ``words`` or ``whitespace``, in the form for kernels."""
    page_of, pages = words_table() if tokenizer == "words" else whitespace_table()
    edges = np.flatnonzero(np.diff(pages[:128] != GAP, prepend=False, append=False)).reshape(-1, 2)
    firsts, widths = np.zeros((2, 4), np.uint8)  # no tokenizer has more than four ranges
    firsts[: len(edges)], widths[: len(edges)] = edges[:, 0], edges[:, 1] - edges[:, 0]
    return Classes(page_of, pages, firsts.view(np.uint32)[0], widths.view(np.uint32)[0])


@cache
def words_table() -> Table:
    """Return the classes of ``words``: Unicode word characters (UTS #18); Han and kana are words of one character."""
    classes = np.full(0x110000, GAP, np.uint8)
    for ranges, value in ((unicode_ranges.WORD, WORD), (unicode_ranges.MARK, MARK), (unicode_ranges.SINGLE, SINGLE)):
        _fill(classes, ranges, value)
    return _two_stage(classes)


@cache
def whitespace_table() -> Table:
    """Return the classes of ``whitespace``: all characters at which ``str.split()`` does not split."""
    classes = np.full(0x110000, WORD, np.uint8)
    _fill(classes, WHITESPACE, GAP)
    return _two_stage(classes)


def _fill(classes: UInt8, ranges: str, value: int) -> None:
    for item in ranges.split():
        first, _, last = item.partition("-")
        classes[int(first, 16) : int(last or first, 16) + 1] = value


def _two_stage(classes: UInt8) -> Table:
    numbers: dict[bytes, int] = {}  # in order: ASCII is page 0, so kernels need no page look-up for it
    page_of = [numbers.setdefault(page.tobytes(), len(numbers)) for page in classes.reshape(-1, 256)]
    return np.array(page_of, np.uint16), np.frombuffer(b"".join(numbers), np.uint8).copy()
