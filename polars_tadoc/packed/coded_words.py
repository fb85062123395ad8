"""Words of coded rows: joined by shape for files, and split and ordered when these are read."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.errors import InvalidGrammarError
from polars_tadoc.kernels.host.grammars import coded_words as kernels
from polars_tadoc.kernels.host.grammars.coded_symbols import SHAPES
from polars_tadoc.kernels.host.records.merge_words import word_bounds
from polars_tadoc.kernels.host.records.sort_keys import sort_with
from polars_tadoc.kernels.host.records.sort_words import sort_places
from polars_tadoc.runtime.array_types import UInt32, UInt64
from polars_tadoc.runtime.arrow_memory import allocate

LINES = (0, 16, 32)
"""Shapes that do not give the length of their words."""

_WIDTHS = np.array([shape % 16 for shape in range(SHAPES)])


def joined(words: pl.Series, shape_sizes: UInt32) -> pl.Series:
    """Join the words of each shape."""
    ends = np.cumsum(shape_sizes).tolist()
    groups = [words.slice(start, stop - start) for start, stop in pairwise([0, *ends])]
    made = [(group + "\n" if shape in LINES else group).str.join("").item() for shape, group in enumerate(groups)]
    return pl.Series("words", made, pl.String)


class StoredWords:
    """Words in the order of a file, and in code point order.

    Parameters
    ----------
    words
        The words, or a string of those of each shape.
    shape_sizes
        Number of words of each shape; None if words are not joined.
    turned
        A bit for each shape, 1 if it is stored by column.

    Raises
    ------
    InvalidGrammarError
        The strings do not match the sizes, a word is not UTF-8, or occurs twice.

    """

    def __init__(self, words: pl.Series, shape_sizes: UInt32 | None, turned: int) -> None:
        self._strings: Any = words.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
        self._columns: list[Any] = []  # keeps the memory that the addresses are of
        if shape_sizes is None:
            self.bounds = np.repeat(word_bounds(self._strings), 2)[1:-1]
        else:
            self.bounds = self._split(shape_sizes, turned)
        self._in_order = np.arange(0, len(self.bounds), 2, dtype=np.uint64)
        if not sort_places(self.bounds, self._in_order):
            raise InvalidGrammarError("grammar: the vocabulary holds a word twice")

    def __len__(self) -> int:
        return len(self.bounds) // 2

    def _split(self, shape_sizes: UInt32, turned: int) -> UInt64:
        if len(self._strings) != SHAPES:
            raise InvalidGrammarError("grammar: the words of a shape do not match their number")
        edges = word_bounds(self._strings)
        starts, stops = edges[:-1].copy(), edges[1:].copy()
        for shape in range(SHAPES):
            size = int(stops[shape] - starts[shape])
            if not turned >> shape & 1 or shape in LINES or size != int(_WIDTHS[shape]) * int(shape_sizes[shape]):
                continue  # a size that is wrong is refused below
            text = np.frombuffer(self._strings[shape].as_buffer(), np.uint8)
            columns = np.ascontiguousarray(text.reshape(int(_WIDTHS[shape]), -1).T)
            if columns.max(initial=0) > 0x7F:
                raise InvalidGrammarError("grammar: a word is not UTF-8")
            self._columns.append(columns)
            starts[shape] = columns.ctypes.data
            stops[shape] = columns.ctypes.data + size
        bounds = np.empty(2 * int(shape_sizes.sum(dtype=np.uint64)), np.uint64)
        wrong = kernels.split(starts, stops, shape_sizes, _WIDTHS, bounds)
        if wrong == kernels.WRONG_SIZE:
            raise InvalidGrammarError("grammar: the words of a shape do not match their number")
        if wrong != kernels.OK:  # a shape's length cuts a character
            raise InvalidGrammarError("grammar: a word is not UTF-8")
        return bounds

    def ordered(self, weights: UInt64) -> UInt64:
        """Return the words' numbers by descending weight, then in code point order."""
        order = np.empty(len(self), np.uint64)
        often = kernels.order_by_weight(weights, self._in_order, np.zeros(kernels.OFTEN + 1, np.int64), order)
        if often:
            own = weights[order[:often]]
            order[:often] = sort_with(own.max() - own, order[:often].copy())[1]
        return order

    def taken(self, order: UInt64) -> pa.LargeStringArray:
        """Return the words in an order."""
        ends, offsets = allocate(len(self) + 1, np.int64)
        data, _ = allocate(int((self.bounds[1::2] - self.bounds[::2]).sum()), np.uint8)
        kernels.gather(self.bounds, order, offsets, np.uint64(data.address))
        return pa.LargeStringArray.from_buffers(len(self), ends, data)


def count_gaps(joined: pl.Series) -> int:
    """Count the gaps of a string, each with a NUL after it; 0 if there are several strings or none."""
    return int(np.count_nonzero(_bytes_of(joined) == 0)) if len(joined) == 1 else 0


def split_gaps(joined: pl.Series) -> pa.LargeStringArray:
    """Invert joining the gaps, each with a NUL after it.

    Raises
    ------
    InvalidGrammarError
        There is another number of strings than one, or the last NUL is missing.

    """
    if len(joined) != 1:
        raise InvalidGrammarError("grammar: the gaps are not one string")
    text, count = _bytes_of(joined), count_gaps(joined)
    ends, offsets = allocate(count + 1, np.int64)
    data, made = allocate(len(text) - count, np.uint8)
    if not kernels.split_gaps(text, offsets, made):
        raise InvalidGrammarError("grammar: the gaps do not end with a NUL")
    return pa.LargeStringArray.from_buffers(count, ends, data)


def _bytes_of(strings: pl.Series) -> Any:
    """Return the bytes of a series of one string."""
    array: Any = strings.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    buffer = array[0].as_buffer()
    return np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.zeros(0, np.uint8)
