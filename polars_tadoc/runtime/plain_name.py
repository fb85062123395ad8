"""Names of columns that Polars reads as patterns: ``^a$``, ``^.*$``, ``*``.

Many calls of a series run ``select(pl.col(name))``: our code makes them on :func:`plain` series. In plans, columns are
selected by ``polars.selectors.by_name``, never by ``pl.col``.
"""

from __future__ import annotations

import polars as pl


def plain(series: pl.Series) -> pl.Series:
    """Return the series under a name that Polars reads as a name; it shares memory."""
    return series.alias("values")
