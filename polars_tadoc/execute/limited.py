"""Tells which memory limit a plan was given, and writes its result in row groups that keep to it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from polars_tadoc.runtime.io_source import Source, sources_of

ROW_BYTES = 1 << 10
"""A share of the limit that a row of a row group takes, so many of these for each of Polars' threads: a sink encodes a
row group in each (237 MB for rows of three words with 16 threads, 98 MB in groups of 16,000 rows)."""

LEAST_ROWS, MOST_ROWS = 1 << 13, 1 << 16
"""Rows of a row group at least, and at most: where more fit, Polars chooses."""


@dataclass(frozen=True, eq=False)
class Limited:
    """A source of a plan that keeps to a memory limit.

    Parameters
    ----------
    source
        Gives the frames.
    limit
        Bytes; None for as many as it takes.

    """

    source: Source
    limit: int | None

    def __call__(
        self, names: list[str] | None, predicate: pl.Expr | None, rows: int | None, size: int | None
    ) -> Iterable[pl.DataFrame]:
        """Give the frames."""
        return self.source(names, predicate, rows, size)


def row_groups(plan: pl.LazyFrame) -> dict[str, int]:
    """Return options of Polars' ``sink_parquet`` that keep it to the least ``memory_limit=`` of calls in a plan."""
    limits = [one.limit for one in sources_of(plan) if isinstance(one, Limited) and one.limit is not None]
    if not limits:
        return {}
    rows = max(LEAST_ROWS, min(limits) // (ROW_BYTES * pl.thread_pool_size()))
    return {"row_group_size": rows} if rows <= MOST_ROWS else {}
