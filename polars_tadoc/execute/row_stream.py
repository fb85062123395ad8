"""Answers row by row what is asked of rows, window by window: nothing is held of those that went before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import polars as pl

from polars_tadoc.execute.analytic import Analytic
from polars_tadoc.execute.weight_stream import stream_weights
from polars_tadoc.execute.weights import WeightsRequest
from polars_tadoc.execute.window_counting import WindowCounting, labels_of
from polars_tadoc.execute.windows import Window, in_parts


def stream_rows(
    windows: Iterable[Window], analytic: Analytic[Any, Any], labels: str | None, limit: int
) -> Iterator[pl.DataFrame]:
    """Answer an analytic whose result has rows for each row of the column, in their order.

    Parameters
    ----------
    windows
        The rows; one window at least, which may be empty.
    analytic
        What is asked; its records begin with a row.
    labels
        Name of the column that labels rows, if any.
    limit
        Bytes.

    Returns
    -------
    iterator of DataFrame
        The result, so many rows at a time; one frame at least.

    Raises
    ------
    LimitExceededError
        One grammar with its rows does not fit.
    DiskFullError
        Counts that wait for those of all rows do not fit on the disk.

    """
    if isinstance(analytic, WeightsRequest):  # it takes all rows to weigh the words of one
        yield from stream_weights(windows, analytic, labels, limit)
        return
    counting = WindowCounting(analytic)
    for window in chain.from_iterable(in_parts(window, limit) for window in windows):
        yield analytic.finish(counting.part(window), labels_of(window, labels), counting.batches).to_frame()
