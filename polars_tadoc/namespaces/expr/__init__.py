"""``pl.col("text").tadoc``: row-wise expressions, and counts by group."""

from __future__ import annotations

from polars_tadoc.namespaces.expr.cleaning import ExprCleaning
from polars_tadoc.namespaces.expr.columns import ExprColumns
from polars_tadoc.namespaces.expr.counting import ExprCounting
from polars_tadoc.namespaces.expr.search import ExprSearch


class TadocExpr(ExprColumns, ExprCounting, ExprSearch, ExprCleaning):
    """Grammar compression and analytics as expressions.

    Counts are aggregations: in ``group_by(...).agg``, ``over`` and so on, each group of rows gives one list of
    structs, and all groups are counted in one pass; in ``select`` all rows are one group. ``top`` and ``min_count``
    apply per group. ``explode`` and ``unnest`` convert the lists to a table. Indexes list rows by their number within
    the group, or by the label in another column (``id=``).

    Row-wise calls (``head``, ``count_phrase``, …) process all groups at once if the column is given by name, or as one
    row of each group: ``pl.col("text").first().tadoc.head(3)``. To select some rows of each group, call first, then
    filter: a call on ``pl.col("text").filter(...)`` or ``.head(2)`` runs once per group, which takes a millisecond or
    more (Polars moves ``first``, ``head`` and ``slice`` before the call, but not ``filter``).

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> df = pl.DataFrame({"text": ["to be", "or not"]}).with_columns(pl.col("text").tadoc.compress())
    >>> df.select(pl.col("text").tadoc.decompress()).to_series().to_list()
    ['to be', 'or not']

    """
