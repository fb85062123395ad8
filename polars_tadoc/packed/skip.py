"""Tells from the statistics of row groups which of them hold no row that a predicate lets through."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import polars as pl

Comparison = Callable[[pl.Expr, pl.Expr], pl.Expr]

MIRRORED: dict[Comparison, Comparison] = {
    operator.gt: operator.lt,
    operator.ge: operator.le,
    operator.lt: operator.gt,
    operator.le: operator.ge,
    operator.eq: operator.eq,
    operator.ne: operator.ne,
}
"""Each comparison, and the one that says the same with its sides exchanged."""

INTERVALS: dict[Literal["both", "left", "right", "none"], tuple[Comparison, Comparison]] = {
    "both": (operator.ge, operator.le),
    "left": (operator.ge, operator.lt),
    "right": (operator.gt, operator.le),
    "none": (operator.gt, operator.lt),
}


@dataclass(frozen=True, eq=False)
class Bounds:
    """What is known of a column's values, by row group.

    Parameters
    ----------
    low, high
        No value is below or above; null where that is not known.
    nulls
        Number of nulls; null where that is not known.
    rows
        Number of rows.

    """

    low: pl.Series
    high: pl.Series
    nulls: pl.Series
    rows: pl.Series

    @property
    def only_nulls(self) -> pl.Series:
        """Whether all rows are null, which no comparison lets through."""
        return self.nulls == self.rows

    def none(self, comparison: Comparison, literal: pl.Expr) -> pl.Series:
        """Tell where no value compares so with the literal, a single value."""

        def holds(bound: pl.Series, test: Comparison) -> pl.Series:
            return bound.alias("bound").to_frame().select(test(pl.col("bound"), literal)).to_series()

        if comparison in (operator.gt, operator.ge):
            return self.only_nulls | holds(self.high, operator.le if comparison is operator.gt else operator.lt)
        if comparison in (operator.lt, operator.le):
            return self.only_nulls | holds(self.low, operator.ge if comparison is operator.lt else operator.gt)
        if comparison is operator.eq:
            return self.only_nulls | holds(self.low, operator.gt) | holds(self.high, operator.lt)
        return self.only_nulls | (holds(self.low, operator.eq) & holds(self.high, operator.eq))

    def none_in(self, literal: pl.Expr) -> pl.Series | None:
        """Tell where no value is in a literal list; None where that takes more than the order of values.

        It does where the list holds nulls or values of another type, and for floats (NaN).
        """
        values, dtype = pl.select(literal).to_series(), self.low.dtype
        while isinstance(values.dtype, pl.List):
            values = values.explode()
        if values.null_count() or dtype.is_float():
            return None
        if dtype.is_integer() and values.dtype.is_integer():
            values = values.cast(dtype, strict=False).drop_nulls()  # the column holds none beyond its range
        if values.dtype != dtype or len(values) == 0:
            return None
        values = values.unique().sort()
        place = pl.Series(values.search_sorted(self.low.fill_null(values[0]), side="left"))
        next_value = values.gather(place.clip(0, len(values) - 1))  # the least one that is not below the bound
        return self.only_nulls | (place == len(values)) | (next_value > self.high)


def conjuncts(predicate: pl.Expr) -> Iterator[pl.Expr]:
    """Give the conditions that all have to hold."""
    inputs = _inputs(predicate)
    if len(inputs) == 2 and predicate.meta == (inputs[0] & inputs[1]):
        for part in inputs:
            yield from conjuncts(part)
    else:
        yield predicate


def skippable(predicate: pl.Expr, statistics: Mapping[str, Bounds]) -> pl.Series | None:
    """Tell by row group whether no row in it passes; null or None: it is not known.

    Read are comparisons of a column with a literal, ``is_between``, ``is_in``, ``is_null``, ``is_not_null``, Boolean
    columns, and what ``&`` and ``|`` make of them; from anything else nothing is concluded. Polars' own translation
    follows arithmetic too, which is wrong where it overflows: ``a + 1 > 3`` over Int8 values up to 127.

    Parameters
    ----------
    predicate
        Condition on the columns of documents.
    statistics
        By column; columns without are left out.

    """
    inputs = _inputs(predicate)
    if not inputs:
        bounds = _bounds(predicate, statistics)
        return bounds.only_nulls | ~bounds.high if bounds is not None and bounds.high.dtype == pl.Boolean else None
    if len(inputs) == 1:
        return _of_one(predicate, inputs[0], statistics)
    if len(inputs) == 2:
        return _of_two(predicate, inputs[0], inputs[1], statistics)
    bounds = _bounds(inputs[0], statistics)
    if len(inputs) == 3 and bounds is not None and _is_value(inputs[1]) and _is_value(inputs[2]):
        value, low, high = inputs
        for closed, (above, below) in INTERVALS.items():
            if predicate.meta == value.is_between(low, high, closed=closed):
                return bounds.none(above, low) | bounds.none(below, high)
    return None


def _of_one(predicate: pl.Expr, value: pl.Expr, statistics: Mapping[str, Bounds]) -> pl.Series | None:
    bounds = _bounds(value, statistics)
    if bounds is None:
        return None
    if predicate.meta == value.is_null():
        return bounds.nulls == 0
    if predicate.meta == value.is_not_null():
        return bounds.only_nulls
    if predicate.meta == value.not_() and bounds.low.dtype == pl.Boolean:
        return bounds.only_nulls | bounds.low
    return None


def _of_two(predicate: pl.Expr, left: pl.Expr, right: pl.Expr, statistics: Mapping[str, Bounds]) -> pl.Series | None:
    if predicate.meta == (left & right):
        known = [part for side in (left, right) if (part := skippable(side, statistics)) is not None]
        return known[0] | known[-1] if known else None
    if predicate.meta == (left | right):
        first, second = skippable(left, statistics), skippable(right, statistics)
        return None if first is None or second is None else first & second
    for comparison, mirrored in MIRRORED.items():
        if predicate.meta == comparison(left, right):
            if (bounds := _bounds(left, statistics)) is not None and _is_value(right):
                return bounds.none(comparison, right)
            if (bounds := _bounds(right, statistics)) is not None and _is_value(left):
                return bounds.none(mirrored, left)
            return None
    bounds = _bounds(left, statistics)
    if bounds is not None and right.meta.is_literal() and predicate.meta == left.is_in(right):
        return bounds.none_in(right)
    return None


def _inputs(expression: pl.Expr) -> list[pl.Expr]:
    return expression.meta.pop()[::-1]


def _is_value(expression: pl.Expr) -> bool:
    """Tell whether it is one literal value: a Series of any length is a literal, too."""
    return expression.meta.is_literal() and pl.select(expression).height == 1


def _bounds(expression: pl.Expr, statistics: Mapping[str, Bounds]) -> Bounds | None:
    return statistics.get(expression.meta.output_name()) if expression.meta.is_column() else None
