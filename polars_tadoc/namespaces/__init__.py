"""The ``tadoc`` accessors of Polars' classes: thin, one line per call to the functions."""

from typing import TYPE_CHECKING

from polars_tadoc.namespaces.accessors import CLASSES, accessor

if TYPE_CHECKING:
    from polars_tadoc.namespaces.dataframe import TadocFrame
    from polars_tadoc.namespaces.expr import TadocExpr
    from polars_tadoc.namespaces.lazyframe import TadocLazyFrame
    from polars_tadoc.namespaces.series import TadocSeries
else:

    def __getattr__(name: str) -> type:
        """Import an accessor's class on first use."""
        if name not in CLASSES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return accessor(name)

    def __dir__() -> list[str]:
        """List the accessors' classes too, for the reference pages."""
        return [*globals(), *CLASSES]


__all__ = ["TadocExpr", "TadocFrame", "TadocLazyFrame", "TadocSeries"]
