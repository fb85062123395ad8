"""``lf.tadoc``: the same analytics as nodes of a lazy plan."""

from __future__ import annotations

from polars_tadoc.namespaces.lazyframe.cleaning import PlanCleaning
from polars_tadoc.namespaces.lazyframe.columns import PlanColumns
from polars_tadoc.namespaces.lazyframe.counting import PlanCounting
from polars_tadoc.namespaces.lazyframe.files import PlanFiles
from polars_tadoc.namespaces.lazyframe.search import PlanSearch


class TadocLazyFrame(PlanColumns, PlanFiles, PlanCounting, PlanSearch, PlanCleaning):
    """Grammar compression and analytics in a lazy plan: schemas are static, nothing runs before ``collect``.

    Each call resolves the plan's schema, so a wrong column raises immediately.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> lf = pl.LazyFrame({"year": [1, 2], "text": ["to be", "to do"]}).tadoc.compress("text")
    >>> lf.filter(pl.col("year") == 2).tadoc.word_count("text").collect().rows()
    [('do', 1), ('to', 1)]

    """
