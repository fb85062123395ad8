"""Selects the documents that a search may return, by a mask or an expression over the index's metadata."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl

from polars_tadoc.errors import ColumnMissingError
from polars_tadoc.index.collection import Collection
from polars_tadoc.runtime.array_types import Bools, UInt32


def filter_mask(given: object, metadata: pl.DataFrame | None, documents: int, call: str = "search") -> Bools:
    """Return for each document whether a search may return it.

    Parameters
    ----------
    given
        Argument ``filter=``: a Boolean series, list or NumPy array with one value per document, or a Polars expression
        over columns of the metadata. Null is false.
    metadata
        Metadata by document, if the index has any.
    documents
        Number of documents.
    call
        The call's name, for messages.

    Raises
    ------
    ColumnMissingError
        The expression names a column that the metadata does not have.
    TypeError
        It has another type, or its values are not Boolean.
    ValueError
        It does not have one value per document, or Polars cannot compute the expression, or the index has no metadata.

    """
    if isinstance(given, pl.Expr):
        values = _evaluate(given, metadata, documents, call)
        what = "the expression gives"
    else:
        values = _series(given, call)
        what = "it has"
    if values.dtype == pl.Null:  # all values are null
        values = values.cast(pl.Boolean)
    if values.dtype != pl.Boolean:
        mend = ", such as pl.col(…) == value" if isinstance(given, pl.Expr) else ""
        raise TypeError(f"{call}: filter must be Boolean, one value for each document{mend}; {what} {values.dtype}")
    if len(values) != documents:
        hint = "; null rows and deleted documents have none" if len(values) > documents else ""
        raise ValueError(
            f"{call}: filter must have one value for each of the index's {documents:,} documents; "
            f"{what} {len(values):,}{hint}"
        )
    return values.fill_null(False).to_numpy()


def allowed_by_segment(index: Collection, given: object, call: str) -> list[UInt32 | None]:
    """Return a bitmap per segment of the documents that may be returned; None if all may."""
    mask = None
    if given is not None:
        mask = filter_mask(given, index.metadata, index.documents, call)
        if index.live is not None:  # users do not see deleted documents
            every = index.live.copy()
            every[every] = mask
            mask = every
    elif index.live is None:
        return [None] * len(index.segments)
    allowed: list[UInt32 | None] = []
    start = 0
    for segment in index.segments:
        own = segment.live
        if mask is not None:
            part = mask[start : start + segment.size]
            own = part if own is None else own & part
        allowed.append(None if own is None else bitmap(own))
        start += segment.size
    return allowed


def bitmap(mask: Bools) -> UInt32:
    """Pack one bit per document into uint32, lowest bit first, as kernels read it.

    Examples
    --------
    >>> import numpy as np
    >>> from polars_tadoc.index.query.filter import bitmap
    >>> bitmap(np.array([True, False, True])).tolist()
    [5]

    """
    packed = np.zeros(4 * -(-len(mask) // 32), np.uint8)
    packed[: -(-len(mask) // 8)] = np.packbits(mask, bitorder="little")
    return packed.view(np.uint32)


def _evaluate(expression: pl.Expr, metadata: pl.DataFrame | None, documents: int, call: str) -> pl.Series:
    names = expression.meta.root_names()
    if metadata is None:
        read = f' ("{names[0]}")' if names else ""
        raise ValueError(
            f"{call}: filter is an expression over metadata{read}, but the index has none; pass columns when you "
            'build it: build_index("text", metadata=["year"]), or pass a Boolean series by document'
        )
    for name in names:
        if name not in metadata.columns:
            raise ColumnMissingError.for_name(name, metadata.columns, f"{call}: filter")
    try:
        found = metadata.select(expression)
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{call}: filter={expression} cannot be computed: {str(error).splitlines()[0]}") from error
    if found.width != 1:
        raise ValueError(
            f"{call}: filter gives {found.width} columns; join them into one, as with pl.all_horizontal(…)"
        )
    values = found.to_series()
    return values.new_from_index(0, documents) if expression.meta.is_literal() else values


def _series(given: object, call: str) -> pl.Series:
    if isinstance(given, pl.Series):
        return given
    if isinstance(given, str) or not isinstance(given, (Iterable, np.ndarray)):
        raise TypeError(
            f"{call}: filter must be a Polars expression over the metadata, or Boolean values, one for each document; "
            f"it is {type(given).__name__}{'; omit it to search all documents' if given is True else ''}"
        )
    values: Any = given if isinstance(given, np.ndarray) else list(given)
    if len(values) and isinstance(values[0], pl.Expr):
        raise TypeError(f"{call}: filter is several expressions; join them into one with &")
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise ValueError(f"{call}: filter must have one dimension; the array has {values.ndim}")
    try:
        return pl.Series("filter", values)
    except (TypeError, pl.exceptions.PolarsError) as error:
        raise TypeError(
            f"{call}: filter must hold Boolean values, one for each document: {str(error).splitlines()[0]}"
        ) from error
