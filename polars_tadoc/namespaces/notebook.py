"""Shows compressed columns in IPython and notebooks as the first words of their rows.

Polars truncates columns of printed frames, but in HTML, and for printed series, it writes structs in full: here, the
whole grammar, megabytes of it, for each row.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import polars as pl

from polars_tadoc.model.text_type import is_tadoc, storage


def load_ipython_extension(ipython: Any) -> None:
    """Show frames and series like this in an IPython shell; called by ``%load_ext polars_tadoc.namespaces.notebook``.

    Importing the package calls it if a shell is running.
    """
    html, plain = (ipython.display_formatter.formatters[kind] for kind in ("text/html", "text/plain"))
    for kind in (pl.DataFrame, pl.Series):
        html.for_type(kind, _after(_shown, html.for_type(kind) or kind._repr_html_))
    plain.for_type(pl.Series, lambda series, printer, _cycle: printer.text(str(_shown(series))))


def register() -> None:
    """Register with the running shell, if there is one."""
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module else None
    if shell is not None:
        load_ipython_extension(shell)


def _after(first: Callable[[Any], Any], then: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: then(first(value))


def _shown(data: pl.DataFrame | pl.Series) -> pl.DataFrame | pl.Series:
    """Return the data with short structs instead of compressed columns."""
    if isinstance(data, pl.Series):
        return _short(data) if is_tadoc(data.dtype) else data
    return data.with_columns(_short(series) for series in data if is_tadoc(series.dtype))


def _short(column: pl.Series) -> pl.Series:
    """Return a short struct with as many fields: the grammar's name, the number of symbols, the first words."""
    from polars_tadoc.rows.preview import ROWS

    rows = int(os.environ.get("POLARS_FMT_MAX_ROWS", ROWS))
    if rows < 0 or len(column) <= 2 * rows:
        return _fields(column)
    first = _fields(column.head(rows))
    middle = first.clear(len(column) - 2 * rows)  # nulls, which are not shown
    return pl.concat([first, middle, _fields(column.tail(rows))])


def _fields(column: pl.Series) -> pl.Series:
    from polars_tadoc.model.payload import short_name
    from polars_tadoc.rows.preview import first_words

    bare = storage(column)
    grammar, symbols = bare.struct.field("grammar"), bare.struct.field("symbols")
    codes, distinct = grammar.to_physical(), grammar.unique().drop_nulls()
    names = dict(zip(distinct.to_physical(), map(short_name, distinct.cast(pl.String)), strict=True))
    fields = [
        pl.Series("grammar", [names.get(code) for code in codes], pl.String),
        symbols.list.len().alias("symbols"),
        first_words(column).alias("text"),
    ]
    rows = pl.DataFrame([*fields, column.is_not_null().alias("valid")])
    return rows.select(pl.when("valid").then(pl.struct("grammar", "symbols", "text")).alias(column.name)).to_series()
