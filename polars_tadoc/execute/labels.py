"""Collects the values that label rows while the rows are read; many labels are moved to disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_tadoc.records import SpillFolder
from polars_tadoc.records.labelled_results import Labels
from polars_tadoc.runtime.array_types import array_dataclass

HELD_SHARE = 8
"""Labels that take more than this share of the limit are written to disk."""

PIECE_SHARE = 32
"""Labels of one file, which are read together, take this share of the limit."""


@array_dataclass
class StoredLabels(Labels):
    """Labels in files; ``values`` is an empty series of their type."""

    paths: tuple[Path, ...] = ()
    """Files of labels, in the order of rows."""
    firsts: tuple[int, ...] = ()
    """First row of each file."""

    def series(self, rows: npt.NDArray[np.integer]) -> pl.Series:
        """Return the labels of the documents in some rows; reads each file that has some of them once."""
        distinct, places = np.unique(rows, return_inverse=True)
        edges = np.append(np.searchsorted(distinct, self.firsts), len(distinct))
        found = [] if self.values is None else [self.values]
        for k, path in enumerate(self.paths):
            own = distinct[edges[k] : edges[k + 1]].astype(np.int64) - self.firsts[k]
            if len(own):
                found.append(_apart(pl.read_ipc(path).to_series().gather(own)))
        return pl.concat(found).alias("id").gather(places)


def _apart(labels: pl.Series) -> pl.Series:
    """Copy strings, so that they do not keep the file's buffer in memory."""
    if labels.dtype not in (pl.String, pl.Binary):
        return labels
    copied = labels.to_arrow(compat_level=pl.CompatLevel.oldest())
    return pl.Series(labels.name, copied)


class KeptLabels:
    """Collects the labels of rows that arrive in batches; closing it deletes its files.

    Parameters
    ----------
    name
        Column that labels rows; None: row numbers.
    call
        Prefix of messages.
    limit
        Memory limit in bytes; labels take a share of it.

    """

    def __init__(self, name: str | None, call: str, limit: int) -> None:
        self.name, self.limit = name, limit
        self.nbytes = self.rows = 0
        self._parts: list[pl.Series] = []
        self._waiting = 0
        self._paths: list[Path] = []
        self._firsts: list[int] = []
        self._folder = SpillFolder(call)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._folder.close()

    def keep(self, batch: pl.DataFrame) -> pl.DataFrame:
        """Keep a batch's labels; return the batch."""
        if self.name is None:
            return batch
        labels = batch[self.name]
        self._parts.append(labels)
        size = int(labels.estimated_size())
        self.nbytes += size
        self.rows += len(labels)
        self._waiting += size
        if self.nbytes > self.limit // HELD_SHARE and self._waiting > self.limit // PIECE_SHARE:
            self._write()
        return batch

    def _write(self) -> None:
        """Write the buffered labels to a file."""
        path = self._folder.path / f"labels-{len(self._paths)}.arrow"
        labels = pl.concat(self._parts).alias("labels")
        with self._folder.writing():
            labels.to_frame().write_ipc(path, compression="lz4")
        self._paths.append(path)
        self._firsts.append(self.rows - len(labels))
        self._parts, self._waiting = [labels.clear()], 0

    @property
    def row_bytes(self) -> int:
        """Average bytes of a label."""
        return self.nbytes // max(self.rows, 1)

    def all(self) -> Labels:
        """Return the labels of all rows."""
        if self._paths:
            if sum(len(part) for part in self._parts):
                self._write()
            return StoredLabels(self._parts[0], 0, tuple(self._paths), tuple(self._firsts))
        if len(self._parts) > 1:
            self._parts = [pl.concat(self._parts)]
        return Labels(self._parts[0] if self._parts else None)
