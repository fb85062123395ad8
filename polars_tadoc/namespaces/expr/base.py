"""``pl.col(…).tadoc``: what all its calls share."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import polars.selectors as cs

from polars_tadoc.analytics import index_by_group
from polars_tadoc.analytics.by_group import GroupLengths, GroupRequest
from polars_tadoc.analytics.cleaning.shares import ShareRequest
from polars_tadoc.namespaces.accessors import Calls
from polars_tadoc.runtime.process.fork import require_threads

Integers = int | str | pl.Expr | pl.Series

"""An integer, or integers by row: a column's name, an expression or a series."""

COUNT = """Number of words; a negative number drops that many at the {}. An integer, the name of a column of
    integers, an expression or a series."""

LABEL = "Column, or expression, whose values label the rows; default: row numbers within the group."


class ExprBase(Calls):
    """Holds the data; parts of the accessor, by topic, build on it."""

    def __init__(self, expr: pl.Expr) -> None:
        require_threads()
        self._expr = expr

    def _over_groups(self, request: ShareRequest) -> pl.Expr:
        # rows become one value per group, and all groups are passed at once
        shares = self._expr.implode().map_batches(
            request.run_lists, return_dtype=pl.List(pl.Float64), is_elementwise=True
        )
        return shares.explode(empty_as_null=False, keep_nulls=False)

    def _index(
        self,
        how: index_by_group.InvertedIndex | index_by_group.RankedInvertedIndex,
        id: str | pl.Expr | None,
        dtype: Callable[[pl.Expr | None], pl.DataTypeExpr],
    ) -> pl.Expr:
        if id is None:
            return self._expr.implode().map_batches(how.run_lists, return_dtype=dtype(None), is_elementwise=True)
        if not isinstance(id, (str, pl.Expr)):
            raise TypeError(f"{how.analytic.name}: id is {type(id).__name__}, not an expression or a column's name")
        labels = cs.by_name(id).as_expr() if isinstance(id, str) else id
        rows = pl.struct(self._expr, labels.alias(index_by_group.LABEL))  # has the name of its first field
        return rows.implode().map_batches(how.run_labelled, return_dtype=dtype(labels), is_elementwise=True)

    def _by_group(self, how: GroupRequest | GroupLengths) -> pl.Expr:
        # a group's rows become one value, and all groups are passed at once
        return self._expr.implode().map_batches(how.run_lists, return_dtype=how.dtype, is_elementwise=True)
