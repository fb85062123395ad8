"""Records with row labels: on a cluster rows have no numbers, and documents are identified by labels.

Labels are to rows what words are to ids: each part numbers its rows in the order of their labels. So a mapping from one
part's rows to those of all parts is ascending, and sorted records stay sorted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.records.packed_records import merge_records
from polars_tadoc.records.records import Layout, Records, split
from polars_tadoc.runtime.array_types import UInt32, array_dataclass


@array_dataclass
class Labelled:
    """Records, and the labels of their rows."""

    records: Records
    """The records."""
    labels: pl.Series | None
    """By row, ascending, nulls first; equal labels are different documents. None if records have no rows."""

    @property
    def nbytes(self) -> int:
        """Bytes of records and labels."""
        return self.records.nbytes + (0 if self.labels is None else int(self.labels.estimated_size()))


def label_order(labels: pl.Series) -> UInt32:
    """Return the positions of labels in ascending order, nulls first, equal ones in their order."""
    numbered = labels.alias("label").to_frame().with_row_index("place")
    return numbered.select(pl.arg_sort_by("label", "place").cast(pl.UInt32)).to_series().to_numpy()


def merge_labelled(layout: Layout, parts: Sequence[Labelled]) -> Labelled:
    """Merge parts with disjoint documents.

    Parameters
    ----------
    layout
        The fields of the records.
    parts
        At least one.

    """
    if len(parts) == 1:
        return parts[0]
    labels = [part.labels for part in parts if part.labels is not None]
    if not labels:
        return Labelled(merge_records(layout, [part.records for part in parts]), None)
    together = pl.concat(labels)
    order = label_order(together)
    places = np.empty(len(order), np.uint32)
    places[order] = np.arange(len(order), dtype=np.uint32)
    owned = np.split(places, np.cumsum([len(own) for own in labels]))
    renumbered = [_with_rows(layout, part.records, own) for part, own in zip(parts, owned, strict=False)]
    return Labelled(merge_records(layout, renumbered), together.gather(order))


def _with_rows(layout: Layout, records: Records, numbers: UInt32) -> Records:
    """Renumber rows, in the same order."""
    keys, column = records.keys.copy(), layout.columns.index("row")
    keys[:, column] = numbers[keys[:, column]]
    return replace(records, keys=keys, rows=None if records.rows is None else numbers[records.rows])


def split_labelled(layout: Layout, part: Labelled, shards: int) -> list[Labelled]:
    """Split records as :func:`split` does, each shard with the labels of its own rows."""
    return [_with_own_labels(layout, shard, part.labels) for shard in split(layout, part.records, shards)]


def _with_own_labels(layout: Layout, records: Records, labels: pl.Series | None) -> Labelled:
    if labels is None:
        return Labelled(records, None)
    used, numbers = np.zeros(len(labels), np.bool_), np.zeros(len(labels), np.uint32)
    used[records.keys[:, layout.columns.index("row")]] = True
    numbers[used] = np.arange(np.count_nonzero(used), dtype=np.uint32)
    return Labelled(_with_rows(layout, records, numbers), labels.filter(pl.Series(used)))


def encode_labels(labels: pl.Series | None) -> bytes | None:
    """Write labels as an Arrow IPC stream."""
    if labels is None:
        return None
    table = labels.alias("label").to_frame().to_arrow(compat_level=pl.CompatLevel.oldest())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return cast(bytes, sink.getvalue().to_pybytes())


def decode_labels(data: pa.Buffer | None) -> pl.Series | None:
    """Read labels written by :func:`encode_labels`."""
    if data is None:
        return None
    with pa.ipc.open_stream(data) as reader:
        table: Any = pl.from_arrow(reader.read_all())
    return cast(pl.Series, table["label"])
