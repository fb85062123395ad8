"""``series.tadoc``: the same calls on one column."""

from __future__ import annotations

from polars_tadoc.namespaces.series.cleaning import SeriesCleaning
from polars_tadoc.namespaces.series.columns import SeriesColumns
from polars_tadoc.namespaces.series.counting import SeriesCounting
from polars_tadoc.namespaces.series.search import SeriesSearch


class TadocSeries(SeriesColumns, SeriesCounting, SeriesSearch, SeriesCleaning):
    """Grammar compression and analytics on a series.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> pl.Series("text", ["to be or not to be"]).tadoc.compress().tadoc.word_count(top=2).rows()
    [('be', 2), ('to', 2)]

    """
