"""Row-aligned calls as expressions, with arguments that may be expressions themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from polars_tadoc.column import DTYPE

_NO_ROWS = pl.Series("text", [], DTYPE)


def by_row(
    call: Callable[..., pl.Series], column: pl.Expr, dtype: type[pl.DataType], **arguments: int | str | pl.Expr
) -> pl.Expr:
    """Make an elementwise expression of a call on a column and integers.

    Parameters
    ----------
    call
        Takes the column and the arguments by name, each an integer or a series of integers.
    column
        The compressed column.
    dtype
        Type of the result.
    **arguments
        Integers, names of columns or expressions. Errors of the call about integers are raised here already.

    """
    beside = {
        name: pl.col(given) if isinstance(given, str) else given
        for name, given in arguments.items()
        if isinstance(given, str | pl.Expr)
    }
    fixed = {name: given for name, given in arguments.items() if name not in beside}
    call(_NO_ROWS, **fixed, **dict.fromkeys(beside, 0))
    if not beside:
        return column.map_batches(lambda series: call(series, **fixed), return_dtype=dtype, is_elementwise=True)

    def run(inputs: Sequence[pl.Series]) -> pl.Series:
        return call(inputs[0], **fixed, **dict(zip(beside, inputs[1:], strict=True)))

    return pl.map_batches([column, *beside.values()], run, return_dtype=dtype, is_elementwise=True)
