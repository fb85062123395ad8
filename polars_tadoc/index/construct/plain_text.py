"""Plain text as documents of an index, which keeps it compressed."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from polars_tadoc.compress.compress import Compression
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.text_type import storage


def stored_form(column: pl.Series, tokenizer: Tokenizer, engine: str | None, store: bool) -> pl.Series:
    """Return the rows in the form in which an index keeps them: compresses text, unless nothing is kept."""
    if not store or column.dtype != pl.String:
        return column
    return storage(replace(Compression.from_arguments(engine=engine), tokenizer=tokenizer).run(column))
