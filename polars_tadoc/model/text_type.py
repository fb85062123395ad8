"""The type of a compressed column, a Polars extension type over a struct, and conversions between the two.

Functions inside this package work on the struct, the storage. Public calls convert: :func:`storage` converts arguments,
:func:`in_form` converts results.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import unwrap
from typing import Any, TypeVar
from warnings import filterwarnings

import polars as pl
import polars.selectors as cs

from polars_tadoc.config import settings
from polars_tadoc.errors import COLUMN_FIELDS, NotCompressedError
from polars_tadoc.runtime.documented import documented_by, with_imports

NAME = "polars_tadoc.text"
"""Name of the type in Polars and Arrow, and in files."""

CATEGORIES = pl.Categories("grammar", "polars_tadoc", pl.UInt32)
"""The categories of the ``grammar`` field; their namespace distinguishes the struct from any other."""

STORAGE = pl.Struct({"grammar": pl.Categorical(CATEGORIES), "symbols": pl.List(pl.UInt32), "gaps": pl.Binary})
"""The fields of a compressed column: the grammar (shared by many rows), the row's own symbols, the separators between
its words."""

Data = TypeVar("Data", pl.Series, pl.DataFrame, pl.LazyFrame)

Call = TypeVar("Call", bound=Callable[..., Any])


@with_imports
class Text(pl.BaseExtension):
    """The type of a compressed column: ``tadoc.STORAGE`` under a name, so that Polars does not treat it as a struct.

    Polars raises if the column is used as text: ``== "text"``, ``fill_null("")``, ``cast(pl.String)``. It does not stop
    the column from being used as a key; ``docs/column.md`` lists the operations that Polars allows.

    Examples
    --------
    >>> pl.Series("text", ["to be"]).tadoc.compress().dtype
    Text()

    """

    def __init__(self) -> None:
        super().__init__(NAME, STORAGE)

    def __repr__(self) -> str:
        return "Text()" if self._storage == STORAGE else super().__repr__()

    def __eq__(self, other: Any) -> Any:
        """Compare like Polars' types, which also equal their class."""
        return other is Text or super().__eq__(other)

    __hash__ = pl.BaseExtension.__hash__

    def _string_repr(self) -> str:
        return "tadoc"


def _without_warning(call: Call) -> Call:
    """Return a Polars function without its warning that it is unstable; this package tracks the changes."""
    unwrapped: Any = unwrap(call)
    return unwrapped  # type: ignore[no-any-return]


_without_warning(pl.register_extension_type)(NAME, Text)
# Polars calls it for every type passed to Python: with pl.Config(warn_unstable=True) every schema would warn
filterwarnings("ignore", "`get_extension_type` is considered unstable", pl.exceptions.UnstableWarning)
_series_to, _series_storage = (_without_warning(getattr(type(pl.Series().ext), call)) for call in ("to", "storage"))
_expr_to, _expr_storage = (_without_warning(getattr(type(pl.col("").ext), call)) for call in ("to", "storage"))

DTYPE = Text()
"""The type of a compressed column.

Any operation keeps it, but it is not a key: equal texts have equal symbols and gaps only within one grammar."""


@with_imports
def is_tadoc(dtype: object) -> bool:
    """Tell whether a data type is that of a compressed column: ``tadoc.Text`` or the struct ``tadoc.STORAGE``.

    ``pl.Extension("polars_tadoc.text", …)`` is one too: the type of columns read before this package was imported.

    Parameters
    ----------
    dtype
        A Polars data type; anything else is not compressed.

    Returns
    -------
    bool
        Whether it is the type of a compressed column.

    Examples
    --------
    >>> tadoc.is_tadoc(tadoc.DTYPE), tadoc.is_tadoc(tadoc.STORAGE), tadoc.is_tadoc(pl.String)
    (True, True, False)

    """
    if isinstance(dtype, pl.BaseExtension):
        return dtype.ext_name() == NAME and dtype.ext_metadata() is None and dtype.ext_storage() == STORAGE
    return dtype is Text or (isinstance(dtype, pl.Struct) and dtype == STORAGE)


def is_compressed(dtype: object) -> bool:
    """Tell whether :func:`as_text` converts columns of the type; includes those whose grammars have become strings."""
    return is_tadoc(dtype) or _has_fields(dtype)


def storage(column: pl.Series) -> pl.Series:
    """Return the struct under a compressed column in any form, without a copy."""
    bare: pl.Series = _series_storage(column.ext)
    return bare


def result_type() -> pl.DataType:
    """Return the type of new compressed columns: ``Config(column_type=)``."""
    return DTYPE if settings().column_type == "text" else STORAGE


def in_form(column: pl.Series, dtype: object) -> pl.Series:
    """Return a struct in the form of the given type of a compressed column, without a copy."""
    if not isinstance(dtype, pl.BaseExtension):
        return column
    text: pl.Series = _series_to(column.ext, DTYPE)
    return text


@with_imports
def as_text(data: Data) -> Data:
    """Convert compressed columns in any form to ``tadoc.Text``, without a copy.

    Polars neither casts ``tadoc.STORAGE`` to ``tadoc.Text`` nor concatenates the two. This function also converts
    columns read before this package was imported (``pl.Extension``), and structs with the same fields whose grammars
    have become strings, as DuckDB returns them: these are cast, which copies.

    Parameters
    ----------
    data
        A compressed Series; or a frame, eager or lazy, whose compressed columns are all converted.

    Returns
    -------
    Series, DataFrame or LazyFrame
        The same kind as ``data``; other columns of a frame are unchanged.

    Raises
    ------
    NotCompressedError
        A Series is not a compressed column.
    TypeError
        ``data`` is not a Series, DataFrame or LazyFrame.

    Examples
    --------
    >>> old = tadoc.as_storage(pl.DataFrame({"text": ["to be"]}).tadoc.compress("text"))
    >>> new = pl.DataFrame({"text": ["to do"]}).tadoc.compress("text")
    >>> pl.concat([tadoc.as_text(old), new]).tadoc.decompress()["text"].to_list()
    ['to be', 'to do']

    """
    return _converted(data, "as_text", as_extension=True)


@documented_by(as_text)
def as_storage(data: Data) -> Data:
    """Convert compressed columns in any form to structs of type ``tadoc.STORAGE``, without a copy.

    All calls of this package accept the struct, too. Its fields can be read (``.struct.field``), and tools without
    extension types, and releases before ``tadoc.Text``, accept it.

    Returns
    -------
    Series, DataFrame or LazyFrame
        The same kind as ``data``; other columns of a frame are unchanged.

    Examples
    --------
    >>> column = pl.Series("text", ["to be or not to be"]).tadoc.compress()
    >>> tadoc.as_storage(column).struct.field("symbols").list.len().to_list()
    [6]

    """
    return _converted(data, "as_storage", as_extension=False)


def text_expr(column: pl.Expr, *, as_extension: bool = True) -> pl.Expr:
    """Convert a ``tadoc.Text`` or ``tadoc.STORAGE`` column of a plan, without a copy."""
    bare: pl.Expr = _expr_storage(column.ext)
    if not as_extension:
        return bare
    text: pl.Expr = _expr_to(bare.ext, DTYPE)
    return text


def _converted(data: Data, call: str, *, as_extension: bool) -> Data:
    if isinstance(data, pl.Series):
        dtype = data.dtype
        if not is_tadoc(dtype) and not _has_fields(dtype):
            if _has_names(dtype):
                raise NotCompressedError(_foreign(call, data.name, dtype))
            raise NotCompressedError.for_column(data.name, dtype, call)
        bare = storage(data)
        try:
            bare = bare if is_tadoc(dtype) else bare.cast(STORAGE)
        except pl.exceptions.PolarsError as error:
            raise NotCompressedError(f"{_foreign(call, data.name, dtype)}: {error}") from error
        return in_form(bare, DTYPE) if as_extension else bare
    if not isinstance(data, pl.DataFrame | pl.LazyFrame):
        raise TypeError(f"{call} takes a Series, a DataFrame or a LazyFrame, not {type(data).__name__}")
    schema = data.collect_schema()
    made: list[pl.Expr | pl.Series] = []
    for name, dtype in schema.items():
        column = cs.by_name(name).as_expr()
        if is_tadoc(dtype):
            made.append(text_expr(column, as_extension=as_extension))
        elif _has_fields(dtype) and isinstance(data, pl.DataFrame):
            made.append(_converted(data.get_column(name), call, as_extension=as_extension))
        elif _has_fields(dtype):
            made.append(text_expr(text_expr(column, as_extension=False).cast(STORAGE), as_extension=as_extension))
    return data.with_columns(made)


def _has_fields(dtype: object) -> bool:
    """Tell whether it is a struct with a compressed column's fields, in types that tools convert these to."""
    if isinstance(dtype, pl.BaseExtension):
        return dtype.ext_name() == NAME and _has_fields(dtype.ext_storage())
    if not (isinstance(dtype, pl.Struct) and _has_names(dtype)):
        return False
    grammar, symbols, gaps = (field.dtype for field in dtype.fields)
    return (
        isinstance(grammar, pl.String | pl.Categorical | pl.Enum | pl.Null)
        and isinstance(symbols, pl.List)
        and isinstance(symbols.inner, pl.DataType)
        and (symbols.inner.is_integer() or symbols.inner == pl.Null)
        and gaps in (pl.Binary, pl.Null)
    )


def _has_names(dtype: object) -> bool:
    if isinstance(dtype, pl.BaseExtension):
        return dtype.ext_name() == NAME and _has_names(dtype.ext_storage())
    return isinstance(dtype, pl.Struct) and tuple(field.name for field in dtype.fields) == COLUMN_FIELDS


def _foreign(call: str, name: str, dtype: object) -> str:
    return (
        f'{call}: column "{name}" is {dtype}, which has the field names of a compressed column but other contents; '
        "pass a compressed column"
    )
