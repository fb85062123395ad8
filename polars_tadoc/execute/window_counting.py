"""Answers an analytic for windows of rows, each by itself."""

from __future__ import annotations

from typing import Any, Generic

import polars as pl

from polars_tadoc.engine.device_batches import DeviceBatches
from polars_tadoc.execute.analytic import Analytic, Part
from polars_tadoc.execute.windows import Window
from polars_tadoc.model.corpus import require_countable
from polars_tadoc.records.labelled_results import Labels


class WindowCounting(Generic[Part]):
    """Answers an analytic for windows, none of them limited."""

    def __init__(self, analytic: Analytic[Part, Any]) -> None:
        self._every = analytic.without_limits()
        self.batches = DeviceBatches(analytic.name, analytic.options.engine)

    def part(self, window: Window) -> Part:
        """Answer for a window, in the order of its rows; all of it in host memory."""
        every = self._every
        if window.column is not None and window.column.dtype == pl.String:
            return every.merge([every.on_host(part) for part in every.text_partials(window.column, window.first)])
        require_countable(window.corpora, every.pairs_per_word)
        parts = []
        for corpus in window.corpora:
            engine = every.choose_engine(corpus.symbol_count)
            parts.append(every.on_host(every.partial_in(self.batches, corpus, engine)))
        return every.merge(parts)


def labels_of(window: Window, name: str | None) -> Labels:
    """Return the labels of a window's rows."""
    return Labels(None) if name is None else Labels(window.frame[name], window.first)
