"""Matches of twigs and rows: partial results, their merge, and the forms of the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.execute.row_order import in_row_order
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.primitives.to_arrow_cpu import spread, to_arrow
from polars_tadoc.model.arrow_results import from_arrow
from polars_tadoc.records.labelled_results import INDEX, Labels
from polars_tadoc.runtime.array_types import Bools, Int64, UInt32, array_dataclass
from polars_tadoc.runtime.arrow_memory import owned, view
from polars_tadoc.traversal.options import WordForm

CELLS = 1 << 24
"""Rows times queries per block: a block holds one byte per cell before it is packed to bits."""


@array_dataclass
class Matches:
    """Matches of twigs and some rows, in host memory."""

    rows: Int64
    """int64, ascending: rows with a valid document; null rows and invalid XML are left out."""
    offsets: Int64
    twigs: UInt32
    """``offsets``, ``twigs``: int64, rows + 1, and uint32: positions in the set of each row's matching twigs,
    ascending."""

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return int(self.rows.nbytes + self.offsets.nbytes + self.twigs.nbytes)

    @classmethod
    def none(cls) -> Self:
        """Return the result for no rows."""
        return cls(np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.uint32))

    @classmethod
    def merged(cls, parts: Sequence[Self]) -> Self:
        """Merge the results of disjoint sets of rows, in row order."""
        if len(parts) == 1:
            return parts[0]
        rows, offsets, twigs = ([getattr(part, name) for part in parts] for name in ("rows", "offsets", "twigs"))
        return cls(*in_row_order(rows, offsets, (np.uint32, twigs)))


@array_dataclass
class MatchedRows:
    """The result; labels and names are only made by the methods below."""

    labels: Labels
    names: Sequence[str]
    matches: Matches

    def to_arrow(self) -> pa.Table:
        """Return a table with dictionary-encoded names."""
        rows = self._rows()
        labels = rows if self.labels.values is None else self.labels.arrow(view(rows))
        twigs = to_arrow([self.matches.twigs])[0]
        names = pa.DictionaryArray.from_arrays(twigs, pa.array(self.names, pa.large_string()), safe=False)
        return pa.table({"id": labels, "query": names})

    def to_frame(self, form: WordForm = "string") -> pl.DataFrame:
        """Return a frame with the columns of :func:`schema`."""
        rows = self._rows()
        labels = from_arrow("id", rows) if self.labels.values is None else self.labels.series(view(rows))
        return pl.DataFrame([labels, _named(self.names, self.matches.twigs)])

    def _rows(self) -> pa.Array:
        """Return the row of each match, with Polars' type of row numbers."""
        numbers: npt.NDArray[np.integer] = self.matches.rows.astype(np.uint32 if pl.UInt32 == INDEX else np.uint64)
        return spread(numbers, self.matches.offsets)


def schema(id_type: pl.DataType | None = None) -> pl.Schema:
    """Return the columns of the result, given the type of the ``id`` column if there is one."""
    return pl.Schema({"id": Labels.dtype(id_type), "query": pl.String()})


def name_lists(matches: Matches, names: Sequence[str], column: str, rows: int) -> pl.Series:
    """Return the names of each row's twigs as ``List(String)``; null without a valid document."""
    counts = np.zeros(rows, np.int64)
    counts[matches.rows] = np.diff(matches.offsets)
    values: Any = _named(names, matches.twigs).to_arrow(compat_level=pl.CompatLevel.newest())
    buffers = [_valid(matches, rows), owned(running_sum(counts))]
    return from_arrow(
        column, pa.LargeListArray.from_buffers(pa.large_list(values.type), rows, buffers, children=[values])
    )


def _named(names: Sequence[str], twigs: UInt32) -> pl.Series:
    """Return the name of each twig; Polars' views share the bytes of the names."""
    return pl.Series("query", names, pl.String).gather(from_arrow("query", to_arrow([twigs])[0]))


def flags(matches: Matches, names: Sequence[str], column: str, rows: int) -> pl.Series:
    """Return a ``Struct`` with a ``Boolean`` per twig; null without a valid document."""
    documents = np.repeat(matches.rows, np.diff(matches.offsets))
    step = max(1, CELLS // max(rows, 1))
    fields: list[pa.Array] = []
    for first in range(0, len(names), step):
        stop = min(first + step, len(names))
        cells = np.zeros((stop - first, rows), np.bool_)
        own = (matches.twigs >= first) & (matches.twigs < stop) if step < len(names) else slice(None)
        cells[matches.twigs[own] - np.uint32(first), documents[own]] = True
        fields += _bits(cells)
    made = pa.StructArray.from_buffers(
        pa.struct([pa.field(str(k), pa.bool_()) for k in range(len(names))]),
        rows,
        [_valid(matches, rows)],
        children=fields,
    )
    # Polars reads some names as patterns, and Arrow ends names at a NUL
    return from_arrow("twigs", made).struct.rename_fields(names).alias(column)


def _bits(cells: Bools) -> list[pa.Array]:
    """Return an Arrow array of Booleans for each row of a matrix."""
    packed = np.packbits(cells, axis=1, bitorder="little")
    width = packed.shape[1]
    buffer = owned(packed.reshape(-1))
    return [
        pa.Array.from_buffers(pa.bool_(), cells.shape[1], [None, buffer.slice(width * k, width)])
        for k in range(len(cells))
    ]


def _valid(matches: Matches, rows: int) -> Any:
    """Return Arrow's validity bits of rows with a valid document; None if all rows have one."""
    if len(matches.rows) == rows:
        return None
    valid = np.zeros(rows, np.bool_)
    valid[matches.rows] = True
    return owned(np.packbits(valid, bitorder="little"))
