"""Row-wise calls as expressions, with arguments that may be expressions, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from polars_tadoc.config import showing
from polars_tadoc.model.text_type import STORAGE
from polars_tadoc.runtime.io_source import at_work


def by_row(
    call: Callable[..., pl.Series],
    column: pl.Expr,
    dtype: type[pl.DataType],
    **arguments: int | str | pl.Expr | pl.Series,
) -> pl.Expr:
    """Make an elementwise expression of a call on a column and integer arguments.

    Parameters
    ----------
    call
        Takes the column, and by name the arguments: each an integer or a series of integers.
    column
        The compressed column.
    dtype
        Type of the result.
    **arguments
        Integers, names of columns, expressions or series. Wrong integers raise here already.

    """
    beside = {
        name: _argument(given, column)
        for name, given in arguments.items()
        if isinstance(given, str | pl.Expr | pl.Series)
    }
    fixed = {name: given for name, given in arguments.items() if name not in beside}
    # not a module-level series: while one lives, Polars keeps the grammars of all columns
    call(pl.Series("text", [], STORAGE), **fixed, **dict.fromkeys(beside, 0))
    return elementwise(_Named(call, fixed, tuple(beside)), dtype, column, *beside.values())


def _argument(given: str | pl.Expr | pl.Series, column: pl.Expr) -> pl.Expr:
    """Make an expression of an argument, with one value per row if the column has all rows.

    If an argument has one value per group, such as ``pl.col("n").first()`` or ``pl.len()``, Polars calls the function
    group by group, a millisecond each; with one value per row it makes one call for all groups. The condition below is
    always true: it only adds the column's length.
    """
    if isinstance(given, str):
        return pl.col(given)
    if isinstance(given, pl.Series):
        return pl.lit(given)
    if not column.meta.is_column_selection():  # it may have one row for many values, or be costly to compute twice
        return given
    return pl.when(column.is_null().is_not_null()).then(given)


def elementwise(call: Callable[..., pl.Series], dtype: pl.DataType | type[pl.DataType], *inputs: pl.Expr) -> pl.Expr:
    """Make an elementwise expression of a call on series.

    If the call can be pickled, so can the expression; ``Expr.map_batches`` would prevent that with a wrapper. Polars
    pickles filters that it pushes down to a source of rows (``lf.tadoc.compress``, ``tadoc.scan_packed``).
    """
    return pl.map_batches(list(inputs), _Spread(call), return_dtype=dtype, is_elementwise=True)


@dataclass(frozen=True)
class _Spread:
    call: Callable[..., pl.Series]

    @at_work()
    def __call__(self, inputs: Sequence[pl.Series]) -> pl.Series:
        with showing(False):  # a bar for each batch tells nothing
            return self.call(*inputs)


@dataclass(frozen=True)
class _Named:
    """A call with further arguments by name: constants, and series of these names."""

    call: Callable[..., pl.Series]
    fixed: dict[str, Any]
    names: tuple[str, ...]

    def __call__(self, column: pl.Series, *beside: pl.Series) -> pl.Series:
        return self.call(column, **self.fixed, **dict(zip(self.names, beside, strict=True)))
