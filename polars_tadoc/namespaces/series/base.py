"""``series.tadoc``: what all its calls share."""

from __future__ import annotations

from functools import partial

import polars as pl

from polars_tadoc.namespaces.accessors import Calls
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.process.fork import require_threads

documented = partial(documented_by, id="Labels of the rows, one for each; default: row numbers.")


class SeriesBase(Calls):
    """Holds the data; parts of the accessor, by topic, build on it."""

    def __init__(self, series: pl.Series) -> None:
        require_threads()
        self._series = series
