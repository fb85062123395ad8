"""``df.tadoc``: what all its calls share."""

from __future__ import annotations

from typing import Any

import polars as pl

from polars_tadoc.analytics.sequence_count import LengthsRequest
from polars_tadoc.execute.analytic import Analytic
from polars_tadoc.execute.columns import compressed_column, label_column, text_column
from polars_tadoc.namespaces.accessors import Calls
from polars_tadoc.runtime.interrupts import ends_on_interrupt
from polars_tadoc.runtime.process.fork import require_threads

LABELS = "Name of a column of the frame whose values label the rows; default: row numbers."

EACH_COLUMN = "Name of the column, or a list of names."


class FrameBase(Calls):
    """Holds the data; parts of the accessor, by topic, build on it."""

    def __init__(self, df: pl.DataFrame) -> None:
        require_threads()
        self._df = df

    @ends_on_interrupt  # Polars panics where an interrupt arrives while it makes a schema
    def _column(self, call: str, column: str | None) -> pl.Series:
        df = self._df
        return df[compressed_column(df.schema, column, call)]

    @ends_on_interrupt
    def _text(self, call: str, column: str | None) -> pl.Series:
        df = self._df
        return df[text_column(df.schema, column, call)]

    @ends_on_interrupt
    def _labels(self, call: str, id: str | None) -> pl.Series | None:
        df = self._df
        return None if id is None else df[label_column(df.schema, id, call)]

    def _answer(
        self, request: Analytic[Any, Any] | LengthsRequest, column: str | None, id: str | None = None
    ) -> pl.DataFrame:
        return request.frame(self._text(request.name, column), self._labels(request.name, id), self._df)
