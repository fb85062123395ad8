"""Frames of compressed rows beside columns of many types."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import polars as pl
from hypothesis import strategies as st

import polars_tadoc as tadoc
from tests.strategies import columns

VALUES: dict[str, tuple[pl.DataType, list[Any]]] = {
    "small": (pl.Int8(), [None, -128, 0, 126, 127]),
    "large": (pl.UInt64(), [None, 0, 2**63, 2**64 - 1]),
    "float": (pl.Float64(), [None, float("nan"), float("inf"), -0.0, 0.0, 1.5]),
    "flag": (pl.Boolean(), [None, True, False]),
    "name": (pl.String(), [None, "", "a", "é", "日本", "z" * 100, "z" * 5000]),
    "day": (pl.Date(), [None, dt.date(1960, 2, 29), dt.date(2024, 1, 1)]),
    "time": (pl.Datetime("ns", "Europe/Berlin"), [None, dt.datetime(1960, 1, 1), dt.datetime(2024, 1, 1, 1)]),
    "span": (pl.Duration("ms"), [None, dt.timedelta(-1), dt.timedelta(seconds=1)]),
    "price": (pl.Decimal(12, 2), [None, Decimal("-1.25"), Decimal("100.00")]),
    "kind": (pl.Categorical(), [None, "x", "y"]),
    "level": (pl.Enum(["high", "low"]), [None, "low", "high"]),
    "bytes": (pl.Binary(), [None, b"", b"\x00\xff"]),
    "tags": (pl.List(pl.List(pl.Categorical())), [None, [], [None, []], [["x"], ["y", None]]]),
    "pair": (pl.Array(pl.Int16, 2), [None, [1, None], [3, 4]]),
    "record": (
        pl.Struct({"a": pl.Int64, "b": pl.List(pl.String)}),
        [None, {"a": 1, "b": ["x"]}, {"a": None, "b": None}],
    ),
    "nothing": (pl.Null(), [None]),
    "^od*d$": (pl.Int32(), [None, 1, 2]),
    "a.b": (pl.Int32(), [None, 1, 2]),
    "a": (pl.Int32(), [None, 3, 4]),
}
"""Types of other columns, each with values that it is tried with."""


def values(name: str, picks: list[int]) -> pl.Series:
    dtype, known = VALUES[name]
    series = pl.Series(name, [known[pick % len(known)] for pick in picks], strict=False)
    if name == "time":
        return series.cast(pl.Datetime("ns")).dt.replace_time_zone("Europe/Berlin")
    return series.cast(dtype)


@st.composite
def frames(draw: st.DrawFn) -> pl.DataFrame:
    """Compressed rows with nulls, under several grammars, some of which come again, and a few other columns."""
    parts = draw(st.lists(columns, max_size=4))
    compressed = [
        tadoc.compress(
            pl.Series("text", part, pl.String),
            rows_per_grammar=draw(st.sampled_from([1, 2, 100])),
            lossless=draw(st.booleans()),
        )
        for part in parts
    ]
    text = pl.concat([pl.Series("text", [], tadoc.DTYPE), *compressed])
    if draw(st.booleans()):
        text = pl.concat([text, text.head(2)])
    picks = draw(st.lists(st.integers(0, 100), min_size=len(text), max_size=len(text)))
    names = draw(st.lists(st.sampled_from(sorted(VALUES)), unique=True, max_size=4))
    others = [values(name, [pick + place for pick in picks]) for place, name in enumerate(names)]
    at = draw(st.integers(0, len(others)))
    return pl.DataFrame([*others[:at], text, *others[at:]])


def every_column(rows: int, rows_per_grammar: int) -> pl.DataFrame:
    """A frame with all of these columns, in steps, so that partitions differ in what they hold."""
    text = pl.Series("text", [None if i % 7 == 3 else f"row {i} of {rows}" for i in range(rows)])
    others = [values(name, [i // rows_per_grammar + i % 2 for i in range(rows)]) for name in VALUES]
    number = pl.Series("number", range(rows), pl.Int32)
    return pl.DataFrame([number, tadoc.compress(text, rows_per_grammar=rows_per_grammar), *others])
