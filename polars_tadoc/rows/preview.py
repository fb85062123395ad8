"""Frames and series with the first words of each row instead of compressed columns, for printing."""

from __future__ import annotations

from typing import TypeVar

import polars as pl

from polars_tadoc.errors import NotCompressedError
from polars_tadoc.model.text_type import is_tadoc
from polars_tadoc.rows.extract import head
from polars_tadoc.runtime.arguments import require_integer

WORDS = 8
"""Words shown per row."""

ROWS = 10
"""Rows shown, unless ``pl.Config.set_tbl_rows`` sets another number."""

Eager = TypeVar("Eager", pl.Series, pl.DataFrame)


def first_words(column: pl.Series, words: int = WORDS) -> pl.Series:
    """Return the first words of each row of a compressed column as strings; null for null rows."""
    return head(column, words).alias(column.name)


def preview(data: Eager, rows: int = ROWS, words: int = WORDS) -> Eager:
    """Return the first rows, with their first words instead of compressed columns.

    Raises
    ------
    NotCompressedError
        A series is not a compressed column.
    TypeError, ValueError
        ``rows`` or ``words`` is not an integer, or negative.

    """
    rows, words = require_integer("rows", rows, 0), require_integer("words", words, 0)
    first = data.head(min(rows, len(data)))
    if isinstance(first, pl.Series):
        if not is_tadoc(first.dtype):
            raise NotCompressedError.for_column(first.name, first.dtype, "preview")
        return first_words(first, words)
    return first.with_columns(first_words(series, words) for series in first if is_tadoc(series.dtype))
