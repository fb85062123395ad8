"""The ``tadoc`` accessors of Polars' classes: thin, each call one line away from the functions.

Importing this package registers them.
"""

from polars_tadoc.namespaces.dataframe import TadocFrame
from polars_tadoc.namespaces.expr import TadocExpr
from polars_tadoc.namespaces.lazyframe import TadocLazyFrame
from polars_tadoc.namespaces.series import TadocSeries

__all__ = ["TadocExpr", "TadocFrame", "TadocLazyFrame", "TadocSeries"]
