"""Labels of documents in results: the values of a column, or row numbers."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.model.arrow_results import from_arrow, to_arrow
from polars_tadoc.model.text_type import STORAGE, Text
from polars_tadoc.runtime.array_types import array_dataclass
from polars_tadoc.runtime.plain_name import plain

INDEX = pl.UInt32() if pl.get_index_type() == pl.UInt32 else pl.UInt64()


def require_label_type(name: str, dtype: pl.DataType, call: str) -> None:
    """Raise ``TypeError`` if Arrow's lists, and so results, cannot hold values of a type."""
    if dtype == pl.Object:
        raise TypeError(
            f'{call}: id is column "{name}" of type {dtype}, which results cannot hold; make strings of it first: '
            f'pl.Series("{name}", [str(value) for value in df["{name}"]])'
        )
    nearest = _nearest_in_arrow(dtype)
    if nearest != dtype:
        raise TypeError(
            f'{call}: id is column "{name}" of type {dtype}, which results cannot hold; cast it to {nearest} first'
        )


def _nearest_in_arrow(dtype: pl.DataType) -> pl.DataType:
    """Return a type that Arrow supports: the type itself or the closest one."""
    if dtype in (pl.Int128, pl.UInt128):
        return pl.String()
    if isinstance(dtype, pl.List):
        return pl.List(_nearest_in_arrow(_instance(dtype.inner)))
    if isinstance(dtype, pl.Array):
        inner = _nearest_in_arrow(_instance(dtype.inner))
        return pl.Array(inner, dtype.size) if dtype.size else pl.List(inner)
    if isinstance(dtype, pl.Struct):
        return pl.Struct({field.name: _nearest_in_arrow(_instance(field.dtype)) for field in dtype.fields})
    return dtype


def _instance(dtype: Any) -> pl.DataType:
    return cast(pl.DataType, dtype() if isinstance(dtype, type) else dtype)


@array_dataclass
class Labels:
    """Labels of documents: the values of a series, or row numbers."""

    values: pl.Series | None
    """A label for each row."""
    first: int = 0
    """Row number of the first label."""

    @classmethod
    def of(cls, column: pl.Series, values: pl.Series | None, call: str) -> Labels:
        """Check that there is one label per row.

        Raises
        ------
        TypeError
            ``id`` is not a series, or has a type that results cannot hold.
        ValueError
            Its length differs from the column's.

        """
        if values is None:
            return cls(None)
        if not isinstance(values, pl.Series):
            raise TypeError(f"{call}: id is {type(values).__name__}, not a Series with one label for each row")
        require_label_type(values.name, values.dtype, call)
        if len(values) != len(column):
            raise ValueError(f"{call}: id has {_counted(len(values), 'label')} for {_counted(len(column), 'row')}")
        return cls(values)

    @staticmethod
    def dtype(values: pl.DataType | None) -> pl.DataType:
        """Return the type of the labels, given the type of the ``id`` column if there is one."""
        return INDEX if values is None else values

    def series(self, rows: npt.NDArray[np.integer]) -> pl.Series:
        """Return the labels of the documents in some rows."""
        if self.values is None:
            return from_arrow("id", to_arrow(rows.astype(np.uint32, copy=False))).cast(INDEX)
        return plain(self.values).gather(rows - self.first).alias("id")

    def arrow(self, rows: npt.NDArray[np.integer]) -> pa.Array:
        """Return the labels as an Arrow array."""
        if self.values is None:
            return to_arrow(rows.astype(np.uint32 if pl.UInt32 == INDEX else np.uint64, copy=False))
        array: Any = self.series(rows).rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
        return array

    def typed(self, documents: pl.Series) -> pl.Series:
        """Restore the type of lists of labels that came through Arrow: categories lose their namespace there."""
        if isinstance(self._dtype(), Text):  # Polars cannot cast a storage type to an extension type
            return _typed(documents, STORAGE).list.eval(pl.element().ext.to(Text()))
        return _typed(documents, self._dtype())

    def typed_counts(self, documents: pl.Series) -> pl.Series:
        """Restore the type of lists of labels with counts."""
        if isinstance(self._dtype(), Text):
            fields = pl.element().struct
            made = pl.struct(fields.field("id").ext.to(Text()), fields.field("count"))
            return _typed(documents, _counts_of(STORAGE)).list.eval(made)
        return _typed(documents, _counts_of(self._dtype()))

    def _dtype(self) -> pl.DataType:
        return self.dtype(None if self.values is None else self.values.dtype)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _counts_of(labels: pl.DataType) -> pl.DataType:
    return pl.Struct({"id": labels, "count": pl.UInt64()})


def _typed(documents: pl.Series, inner: pl.DataType) -> pl.Series:
    return documents if documents.dtype == pl.List(inner) else documents.cast(pl.List(inner))
