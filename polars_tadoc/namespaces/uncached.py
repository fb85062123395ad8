"""Hands out accessors without keeping them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Accessor = TypeVar("Accessor", bound=type)


class Uncached:
    """Makes the accessor anew at each use: Polars' own descriptor keeps it on the frame, which lives on in the cycle.

    Parameters
    ----------
    accessor
        Class of the accessor, called with the frame.

    """

    def __init__(self, accessor: Callable[[Any], Any]) -> None:
        self._accessor = accessor

    def __get__(self, held: object | None, owner: type) -> Any:
        """Return the accessor of an object, or its class where it is asked of a class."""
        return self._accessor if held is None else self._accessor(held)


def uncached(owner: type, name: str) -> Callable[[Accessor], Accessor]:
    """Replace Polars' descriptor of a namespace that is registered already.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc
    >>> df = pl.DataFrame()
    >>> df.tadoc is df.tadoc, "tadoc" in vars(df)
    (False, False)

    """

    def replace(accessor: Accessor) -> Accessor:
        setattr(owner, name, Uncached(accessor))
        return accessor

    return replace
