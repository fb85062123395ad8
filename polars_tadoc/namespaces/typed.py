"""Returns the ``tadoc`` accessors in a form that type checkers understand."""

from __future__ import annotations

from typing import overload

import polars as pl

from polars_tadoc.namespaces.dataframe import TadocFrame
from polars_tadoc.namespaces.expr import TadocExpr
from polars_tadoc.namespaces.lazyframe import TadocLazyFrame
from polars_tadoc.namespaces.series import TadocSeries
from polars_tadoc.runtime.documented import with_imports


@overload
def of(held: pl.DataFrame) -> TadocFrame: ...
@overload
def of(held: pl.LazyFrame) -> TadocLazyFrame: ...
@overload
def of(held: pl.Series) -> TadocSeries: ...
@overload
def of(held: pl.Expr) -> TadocExpr: ...
@with_imports
def of(
    held: pl.DataFrame | pl.LazyFrame | pl.Series | pl.Expr,
) -> TadocFrame | TadocLazyFrame | TadocSeries | TadocExpr:
    """Return the ``tadoc`` accessor: ``tadoc.of(df).word_count("text")`` is ``df.tadoc.word_count("text")``.

    Polars registers namespaces at run time, so type checkers and editors do not know ``df.tadoc``: they report
    ``"DataFrame" has no attribute "tadoc"``. They know the result of this function, with every method, argument and
    result.

    Parameters
    ----------
    held
        DataFrame, LazyFrame, Series or Expr.

    Returns
    -------
    TadocFrame, TadocLazyFrame, TadocSeries or TadocExpr
        The accessor of its class.

    Raises
    ------
    TypeError
        ``held`` is none of these.

    Examples
    --------
    >>> df = pl.DataFrame({"text": ["to be", "to do"]}).with_columns(tadoc.of(pl.col("text")).compress())
    >>> tadoc.of(df).word_count("text", top=1).rows()
    [('to', 2)]

    """
    match held:
        case pl.DataFrame():
            return TadocFrame(held)
        case pl.LazyFrame():
            return TadocLazyFrame(held)
        case pl.Series():
            return TadocSeries(held)
        case pl.Expr():
            return TadocExpr(held)
    raise TypeError(f"of takes a Polars DataFrame, LazyFrame, Series or Expr, not {type(held).__name__}")
