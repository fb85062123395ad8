"""Registers the ``tadoc`` accessors: imported on first use, never cached."""

from __future__ import annotations

from typing import Any

import polars as pl

from polars_tadoc.runtime.process.whole_import import import_whole

NAME = "tadoc"
CLASSES = {
    "TadocFrame": (pl.DataFrame, "dataframe"),
    "TadocLazyFrame": (pl.LazyFrame, "lazyframe"),
    "TadocSeries": (pl.Series, "series"),
    "TadocExpr": (pl.Expr, "expr"),
}
"""Polars' classes with an accessor, and the accessors' modules."""


def accessor(name: str) -> Any:
    """Import an accessor's class.

    Raises
    ------
    ImportError
        Its module can't be imported.

    """
    try:
        return getattr(import_whole(f"polars_tadoc.namespaces.{CLASSES[name][1]}"), name)
    except AttributeError as error:  # Polars would say that there is no accessor
        raise ImportError(f"polars_tadoc cannot be imported: {error}") from error


class Accessor:
    """Makes a new accessor at each use.

    Polars' own descriptor caches it on the frame, a reference cycle that keeps the frame alive.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc
    >>> df = pl.DataFrame()
    >>> df.tadoc is df.tadoc, "tadoc" in vars(df)
    (False, False)

    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._class: Any = None

    def __get__(self, held: object | None, owner: type) -> Any:
        """Return the accessor of an object; of a class, the accessor's class."""
        if self._class is None:
            self._class = accessor(self._name)
        return self._class if held is None else self._class(held)


def register() -> None:
    """Register the accessors on Polars' classes."""
    for name, (owner, kind) in CLASSES.items():
        getattr(pl.api, f"register_{kind}_namespace")(NAME)(Accessor)  # Polars then lists the name; its own descriptor
        setattr(owner, NAME, Accessor(name))  # would cache the accessor
