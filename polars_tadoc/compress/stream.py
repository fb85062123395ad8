"""Compresses a column of a lazy plan block by block, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import polars as pl
import polars.selectors as cs

from polars_tadoc.compress.compress import BYTES_PER_GRAMMAR, Compression
from polars_tadoc.engine.progress import bar_of
from polars_tadoc.runtime.io_source import batches, register
from polars_tadoc.runtime.plain_name import plain

ROWS_PER_BLOCK = 100_000
"""Rows per grammar, equal to the row groups of ``sink_parquet``: one grammar per group, and no grammar in two."""


def compress_stream(lf: pl.LazyFrame, schema: pl.Schema, column: str, how: Compression) -> pl.LazyFrame:
    """Replace a String column of a plan by its compressed form, in row order.

    Polars' streaming engine runs the plan and yields its rows in small batches, which are gathered into blocks of one
    grammar each. Later steps of the plan are pushed down below compression where possible: a choice of columns, a row
    limit, and filters that do not read the column.

    Parameters
    ----------
    lf
        The plan.
    schema
        Its columns.
    column
        The String column.
    how
        How to compress.

    """
    how = replace(how, rows_per_grammar=how.rows_per_grammar or ROWS_PER_BLOCK, cached=False)

    def source(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, _batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        plan = lf if rows is None else lf.head(rows)
        if predicate is not None and column not in predicate.meta.root_names():
            plan, predicate = plan.filter(predicate), None
        if columns == []:  # only the number of rows is wanted
            yield pl.DataFrame(height=plan.select(pl.len()).collect(engine="streaming").item())
            return
        if columns is not None:
            # by_name: the name must not be read as a pattern
            plan = plan.select([cs.by_name(name) for name in columns])
        if columns is not None and column not in columns:
            yield from batches(plan)
            return
        with bar_of(None, "compress", how.progress):  # which each block advances
            for block in _blocks(batches(plan), column, how.rows_per_grammar or ROWS_PER_BLOCK):
                compressed = block.with_columns(how.run(block[column]))
                yield compressed if predicate is None else compressed.filter(predicate)

    return register(source, {**schema, column: how.dtype}, "compress")


def _blocks(batches: Iterable[pl.DataFrame], column: str, rows: int) -> Iterator[pl.DataFrame]:
    """Gather batches into blocks of at most ``rows`` rows, or ``BYTES_PER_GRAMMAR`` text bytes plus one batch."""
    held: list[pl.DataFrame] = []
    held_rows = held_bytes = 0
    for batch in batches:
        held.append(batch)
        held_rows += batch.height
        held_bytes += _text_bytes(batch[column])
        while held_rows >= rows or held_bytes >= BYTES_PER_GRAMMAR:
            gathered = pl.concat(held)
            yield gathered.head(rows)
            rest = gathered.slice(rows)
            held, held_rows = ([rest] if rest.height else []), rest.height
            held_bytes = _text_bytes(rest[column])
    if held:
        yield pl.concat(held)


def _text_bytes(text: pl.Series) -> int:
    return int(plain(text).str.len_bytes().sum())
