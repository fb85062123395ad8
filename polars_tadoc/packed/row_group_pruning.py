"""Row-group pruning: tells from statistics which row groups have no row that passes a predicate."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Literal

import polars as pl
from polars.exceptions import PolarsError

from polars_tadoc.runtime.array_types import array_dataclass

Comparison = Callable[[pl.Expr, pl.Expr], pl.Expr]

MIRRORED: dict[Comparison, Comparison] = {
    operator.gt: operator.lt,
    operator.ge: operator.le,
    operator.lt: operator.gt,
    operator.le: operator.ge,
    operator.eq: operator.eq,
    operator.ne: operator.ne,
}
"""Each comparison, and the equivalent one with its sides exchanged."""

INTERVALS: dict[Literal["both", "left", "right", "none"], tuple[Comparison, Comparison]] = {
    "both": (operator.ge, operator.le),
    "left": (operator.ge, operator.lt),
    "right": (operator.gt, operator.le),
    "none": (operator.gt, operator.lt),
}

DEEPEST = 50
"""Maximum depth of nested conditions that pruning reads."""


@array_dataclass
class Bounds:
    """The known bounds of a column's values, by row group."""

    low: pl.Series
    high: pl.Series
    """``low``, ``high``: Smallest and largest value; null if unknown."""
    nulls: pl.Series
    """Number of nulls; null if unknown."""
    rows: pl.Series
    """Number of rows."""


class RowGroupPruning:
    """Finds row groups in which no row passes; prepared once for any number of files.

    Pruning uses comparisons of a column with a literal, ``is_between``, ``is_in``, ``is_null``, ``is_not_null`` and
    Boolean columns, combined by ``&`` and ``|``; it ignores any other condition. Polars' own translation also follows
    arithmetic, which is wrong where it overflows: ``a + 1 > 3`` over Int8 values up to 127.

    Parameters
    ----------
    predicate
        Condition on the columns of documents.
    schema
        Columns of the documents.

    """

    def __init__(self, predicate: pl.Expr, schema: pl.Schema) -> None:
        names = [name for name in predicate.meta.root_names() if not schema[name].is_nested()]
        self.columns = {name: _Column(place, schema[name]) for place, name in enumerate(dict.fromkeys(names))}
        """The columns whose statistics are read."""
        try:
            self._test = _none_passes(predicate, self.columns)
        except PolarsError:  # Polars reports the fault when rows are filtered
            self._test = None

    def skippable(self, statistics: Mapping[str, Bounds]) -> pl.Series | None:
        """Tell for each row group whether no row in it passes; null or None: unknown.

        Parameters
        ----------
        statistics
            Of each column in ``columns``.

        """
        if self._test is None:
            return None
        bounds = {
            f"{field} {column.place}": getattr(statistics[name], field)
            for name, column in self.columns.items()
            for field in ("low", "high", "nulls", "rows")
        }
        try:
            return pl.DataFrame(bounds).select(self._test.alias("none")).to_series()
        except PolarsError:
            return None


class _Column:
    """The bounds of a column as expressions, and conditions on them."""

    def __init__(self, place: int, dtype: pl.DataType) -> None:
        self.place, self.dtype = place, dtype
        self.low, self.high, self.nulls = (pl.col(f"{field} {place}") for field in ("low", "high", "nulls"))
        self.only_nulls = self.nulls == pl.col(f"rows {place}")
        """Whether all rows are null; no comparison passes null."""

    def none(self, comparison: Comparison, literal: pl.Expr) -> pl.Expr:
        """Tell where no value satisfies the comparison with the literal, a single value."""
        if comparison in (operator.gt, operator.ge):
            return self.only_nulls | (self.high <= literal if comparison is operator.gt else self.high < literal)
        if comparison in (operator.lt, operator.le):
            return self.only_nulls | (self.low >= literal if comparison is operator.lt else self.low > literal)
        if comparison is operator.eq:
            return self.only_nulls | (self.low > literal) | (self.high < literal)
        return self.only_nulls | ((self.low == literal) & (self.high == literal))

    def none_in(self, literal: pl.Expr) -> pl.Expr | None:
        """Tell where no value is in a literal list; None if the order of values cannot decide it.

        That is so if the list has nulls or values of another type, and for floats (NaN).
        """
        values = pl.select(literal).to_series()
        while isinstance(values.dtype, pl.List):
            values = values.explode()
        if values.null_count() or self.dtype.is_float():
            return None
        if self.dtype.is_integer() and values.dtype.is_integer():
            values = values.cast(self.dtype, strict=False).drop_nulls()  # the column has no values outside its range
        if values.dtype != self.dtype or len(values) == 0:
            return None
        values = values.unique().sort()
        place = pl.lit(values).search_sorted(self.low.fill_null(values[0]), side="left")
        next_value = pl.lit(values).gather(
            place.clip(0, len(values) - 1)
        )  # the smallest value that is not below the bound
        return self.only_nulls | (place == len(values)) | (next_value > self.high)


def parts(predicate: pl.Expr, joined: Callable[[pl.Expr, pl.Expr], pl.Expr]) -> list[pl.Expr]:
    """Return the conditions that ``&`` or ``|`` join in a predicate, however many."""
    found, waiting = [], [predicate]
    while waiting:
        one = waiting.pop()
        inputs = _inputs(one)
        if len(inputs) == 2 and one.meta == joined(inputs[0], inputs[1]):
            waiting += inputs[::-1]
        else:
            found.append(one)
    return found


def _none_passes(predicate: pl.Expr, columns: Mapping[str, _Column], depth: int = 0) -> pl.Expr | None:
    """Turn a condition on rows into one on the bounds of row groups; None if nothing can be concluded."""
    if depth > DEEPEST:
        return None
    for joined, some_suffice in ((operator.and_, True), (operator.or_, False)):
        if len(conditions := parts(predicate, joined)) > 1:
            tests = [_none_passes(condition, columns, depth + 1) for condition in conditions]
            known = [test for test in tests if test is not None]
            if some_suffice:
                return pl.any_horizontal(known) if known else None
            return pl.all_horizontal(known) if len(known) == len(tests) else None
    inputs = _inputs(predicate)
    if not inputs:
        column = _column(predicate, columns)
        return column.only_nulls | ~column.high if column is not None and column.dtype == pl.Boolean else None
    if len(inputs) == 1:
        return _of_one(predicate, inputs[0], columns)
    if len(inputs) == 2:
        return _of_two(predicate, inputs[0], inputs[1], columns)
    column = _column(inputs[0], columns)
    if len(inputs) == 3 and column is not None and _is_value(inputs[1]) and _is_value(inputs[2]):
        value, low, high = inputs
        for closed, (above, below) in INTERVALS.items():
            if predicate.meta == value.is_between(low, high, closed=closed):
                return column.none(above, low) | column.none(below, high)
    return None


def _of_one(predicate: pl.Expr, value: pl.Expr, columns: Mapping[str, _Column]) -> pl.Expr | None:
    column = _column(value, columns)
    if column is None:
        return None
    if predicate.meta == value.is_null():
        return column.nulls == 0
    if predicate.meta == value.is_not_null():
        return column.only_nulls
    if predicate.meta == value.not_() and column.dtype == pl.Boolean:
        return column.only_nulls | column.low
    return None


def _of_two(predicate: pl.Expr, left: pl.Expr, right: pl.Expr, columns: Mapping[str, _Column]) -> pl.Expr | None:
    for comparison, mirrored in MIRRORED.items():
        if predicate.meta == comparison(left, right):
            if (column := _column(left, columns)) is not None and _is_value(right):
                return column.none(comparison, right)
            if (column := _column(right, columns)) is not None and _is_value(left):
                return column.none(mirrored, left)
            return None
    column = _column(left, columns)
    if column is not None and right.meta.is_literal() and predicate.meta == left.is_in(right):
        return column.none_in(right)
    return None


def _inputs(expression: pl.Expr) -> list[pl.Expr]:
    return expression.meta.pop()[::-1]


def _is_value(expression: pl.Expr) -> bool:
    """Tell whether it is a single literal value: a Series of any length is a literal, too."""
    return expression.meta.is_literal() and pl.select(expression).height == 1


def _column(expression: pl.Expr, columns: Mapping[str, _Column]) -> _Column | None:
    return columns.get(expression.meta.output_name()) if expression.meta.is_column() else None
