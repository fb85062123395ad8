"""Registers the ``tadoc`` accessors: imported on first use, never cached."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, NoReturn

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
WRITTEN = {
    "TadocFrame": {"TadocExpr": 'pl.col("text")', "TadocLazyFrame": "df.lazy()", "TadocSeries": 'df["text"]'},
    "TadocLazyFrame": {
        "TadocExpr": 'pl.col("text")',
        "TadocFrame": "lf.collect()",
        "TadocSeries": 'lf.collect()["text"]',
    },
    "TadocSeries": {"TadocFrame": "series.to_frame()", "TadocLazyFrame": "series.to_frame().lazy()"},
    "TadocExpr": {"TadocFrame": "df", "TadocSeries": 'df["text"]', "TadocLazyFrame": "df.lazy()"},
}
"""How to write the calls that an accessor lacks, by the accessors that have them."""


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


class Calls:
    """Base of all accessors: its error names the right place of a call, or the nearest name."""

    if not TYPE_CHECKING:  # checkers shall report unknown names

        def __getattr__(self, name: str) -> NoReturn:
            """Raise ``AttributeError``."""
            own = type(self).__name__
            if name.startswith("_") or own not in WRITTEN:
                raise AttributeError(f"{own!r} object has no attribute {name!r}")
            held = CLASSES[own][0].__name__
            for other, written in WRITTEN[own].items():
                if hasattr(accessor(other), name):
                    raise AttributeError(f"{held}.tadoc has no {name}; write {written}.tadoc.{name}(…)")
            near = difflib.get_close_matches(name, [one for one in dir(self) if not one.startswith("_")], n=2)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise AttributeError(f"{held}.tadoc has no {name}{hint}")


def require_phrase(phrase: str | None, call: str) -> str:
    """Return the phrase of a frame's call; raise ``TypeError`` if only one argument, the column, was given."""
    if phrase is None:
        raise TypeError(
            f'{call}: the phrase is missing after the column; write {call}("text", phrase), or, if one column is '
            f"compressed, {call}(phrase=phrase)"
        )
    return phrase


def register() -> None:
    """Register the accessors on Polars' classes."""
    for name, (owner, kind) in CLASSES.items():
        getattr(pl.api, f"register_{kind}_namespace")(NAME)(Accessor)  # Polars then lists the name; its own descriptor
        setattr(owner, NAME, Accessor(name))  # would cache the accessor
