"""Packs and unpacks within a lazy plan, one run or one packed row at a time."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import polars.selectors as cs

from polars_tadoc.packed.pack import pack_stream, packed_schema
from polars_tadoc.packed.unpack import Documents, chosen, unpacked_schema
from polars_tadoc.runtime.io_source import batches, register


def pack_plan(lf: pl.LazyFrame, schema: pl.Schema, column: str) -> pl.LazyFrame:
    """Pack each run of a plan's rows that share a grammar into one row."""
    packed = packed_schema(schema, column)

    def rows(
        names: list[str] | None, predicate: pl.Expr | None, limit: int | None, _batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        needed = {
            column,
            *(packed if names is None else names),
            *([] if predicate is None else predicate.meta.root_names()),
        }
        read = _only(lf, [name for name in packed if name in needed])
        for count, row in enumerate(pack_stream(batches(read), column, passing=True)):
            if limit is not None and count >= limit:
                return
            kept = row if predicate is None else row.filter(predicate)
            yield kept if names is None else chosen(kept, names)

    return register(rows, packed, "pack")


def unpack_plan(lf: pl.LazyFrame, schema: pl.Schema, column: str) -> pl.LazyFrame:
    """Unpack a plan's packed rows into one row per document."""
    unpacked = unpacked_schema(schema, column, "unpack")

    def documents(
        names: list[str] | None, predicate: pl.Expr | None, limit: int | None, _batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        asked = Documents(unpacked, column, names, predicate, limit)
        for batch in batches(_only(lf, asked.columns)):
            if asked.done:
                return
            yield from asked.frames([lambda names, batch=batch: _only(batch.lazy(), names).collect()])  # type: ignore[misc]

    return register(documents, unpacked, "unpack")


def _only(lf: pl.LazyFrame, names: list[str]) -> pl.LazyFrame:
    return lf.select(cs.by_name(name) for name in names)
