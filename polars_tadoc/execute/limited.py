"""Tells which memory limit a plan was given, and hands its result over in pieces and row groups that keep to it."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass

import polars as pl

from polars_tadoc.runtime.io_source import Source, sources_of

ROW_BYTES = 1 << 10
"""A share of the limit that a row of a row group takes, so many of these for each of Polars' threads: a sink encodes a
row group in each (237 MB for rows of three words with 16 threads, 98 MB in groups of 16,000 rows)."""

MIN_ROWS, MAX_ROWS = 1 << 13, 1 << 16
"""Rows of a row group at least, and at most: where more fit, Polars chooses."""


@dataclass(frozen=True, eq=False)
class Limited:
    """A source of a plan that keeps to a memory limit."""

    source: Source
    """Gives the frames."""
    limit: int | None
    """Bytes; None for as many as it takes."""

    def __call__(
        self, names: list[str] | None, predicate: pl.Expr | None, rows: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        """Give the frames; under a limit each in pieces, as Polars may hold some for each of its threads."""
        frames = self.source(names, predicate, rows, size)
        if self.limit is None:
            yield from frames
            return
        pieces = 2 * pl.thread_pool_size()
        try:
            for frame in frames:
                if frame.height <= MIN_ROWS:
                    yield frame
                else:
                    yield from frame.iter_slices(max(MIN_ROWS, frame.height // pieces))
                del frame  # this one is gone when the next one is made
        finally:
            if isinstance(frames, Generator):
                frames.close()


def row_groups(plan: pl.LazyFrame) -> dict[str, int]:
    """Return options of Polars' ``sink_parquet`` that keep it to the least ``memory_limit=`` of calls in a plan."""
    limits = [one.limit for one in sources_of(plan) if isinstance(one, Limited) and one.limit is not None]
    if not limits:
        return {}
    rows = max(MIN_ROWS, min(limits) // (ROW_BYTES * pl.thread_pool_size()))
    return {"row_group_size": rows} if rows <= MAX_ROWS else {}
