"""Reports the memory limit of a plan, and yields its result in pieces and row groups that respect the limit."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import polars as pl

from polars_tadoc.runtime.array_types import array_dataclass
from polars_tadoc.runtime.io_source import Source, sources_of

WORD_BYTES = 768
"""Share of the limit per word or row number of each row of a row group, for each of Polars' threads: a sink encodes one
row group per thread (237 MB for rows of three words with 16 threads, 98 MB in groups of 16,000 rows)."""

MIN_ROWS, MAX_ROWS = 1 << 12, 1 << 16
"""Minimum and maximum rows of a row group; above the maximum, Polars chooses."""


@array_dataclass
class Limited:
    """A source of a plan with a memory limit."""

    source: Source
    """Yields the frames."""
    limit: int | None
    """Bytes; None: no limit."""
    width: int = 2
    """Words and row numbers of a row of the result."""

    def __call__(
        self, names: list[str] | None, predicate: pl.Expr | None, rows: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        """Yield the frames; under a limit in pieces, as Polars may hold some per thread."""
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
                del frame  # release this frame before the next one is made
        finally:
            if isinstance(frames, Generator):
                frames.close()


def row_groups(plan: pl.LazyFrame) -> dict[str, int]:
    """Return options of Polars' ``sink_parquet`` for the lowest ``memory_limit=`` of the calls in a plan."""
    limited = [one for one in sources_of(plan) if isinstance(one, Limited)]
    shares = [one.limit // (WORD_BYTES * one.width) for one in limited if one.limit is not None]
    if not shares:
        return {}
    rows = max(MIN_ROWS, min(shares) // pl.thread_pool_size())
    return {"row_group_size": rows} if rows <= MAX_ROWS else {}
