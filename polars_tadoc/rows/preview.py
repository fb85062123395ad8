"""Frames and series with the first words of rows in place of compressed columns: what can be printed."""

from __future__ import annotations

from typing import TypeVar

import polars as pl

from polars_tadoc.errors import NotCompressedError
from polars_tadoc.model.text_type import is_tadoc
from polars_tadoc.rows.extract import head
from polars_tadoc.runtime.arguments import require_integer

WORDS = 8
"""Words that are shown of a row."""

ROWS = 10
"""Rows that Polars shows, unless ``pl.Config.set_tbl_rows`` says otherwise."""

Eager = TypeVar("Eager", pl.Series, pl.DataFrame)


def first_words(column: pl.Series, words: int = WORDS) -> pl.Series:
    """Return the first words of each row of a compressed column as strings, and null for null."""
    return head(column, words).alias(column.name)


def preview(data: Eager, rows: int = ROWS, words: int = WORDS) -> Eager:
    """Take the first rows, with the first words of each in place of compressed columns.

    Raises
    ------
    NotCompressedError
        A series is not a compressed column.
    TypeError, ValueError
        ``rows`` or ``words`` is no integer, or negative.

    """
    rows, words = require_integer("rows", rows, 0), require_integer("words", words, 0)
    first = data.head(rows)
    if isinstance(first, pl.Series):
        if not is_tadoc(first.dtype):
            raise NotCompressedError.for_column(first.name, first.dtype, "preview")
        return first_words(first, words)
    return first.with_columns(first_words(series, words) for series in first if is_tadoc(series.dtype))
