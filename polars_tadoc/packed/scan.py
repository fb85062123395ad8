"""Files of packed rows as a lazy frame of documents."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from weakref import WeakSet

import polars as pl
from polars.exceptions import SchemaError

from polars_tadoc.packed.faults import Faults, OnError
from polars_tadoc.packed.files import PackedFile, RowGroup, Source, find_files
from polars_tadoc.packed.partition import short_dtype
from polars_tadoc.packed.skip import Skipping
from polars_tadoc.packed.unpack import FAULTS, Documents, unpacked_schema
from polars_tadoc.sources import register


def scan_packed(source: Source, *, on_error: OnError = "raise") -> pl.LazyFrame:
    """Scan Parquet files of packed rows as documents, one partition at a time.

    Only the columns that a plan needs are read; rows are filtered before their compressed column is read; partitions
    whose statistics rule out a match are not read at all, nor any beyond the last row asked for.

    Parameters
    ----------
    source
        A file, a folder (all ``*.parquet`` in it and below), a glob pattern, or several of them. Files are read in the
        order of their names, or in that of the list.
    on_error
        What becomes of a partition that is damaged, of a file that is gone, or of one that claims to unfold into more
        than the limits allow: ``"raise"`` an error that names file and row group, or ``"skip"`` it with a
        :class:`~polars_tadoc.errors.SkippedPartitionWarning` that does. Rows are numbered without those that were
        skipped. What is skipped follows from what a plan reads: where only the text of a partition is damaged, its
        other columns can be read.

    Returns
    -------
    LazyFrame
        One row for each document, with the columns as they were before packing: the compressed column is of type
        ``tadoc.DTYPE``.

    Raises
    ------
    FileNotFoundError
        Nothing is there, or a file went away before it was read.
    TypeError, ValueError
        The source is something else than paths, or an address (``s3://…``).
    NotPackedError
        A file has no packed column, several, or a column beside it that is no list.
    InvalidGrammarError
        A file is damaged; found when it is read. With ``on_error="skip"`` where no file can be read.
    LimitExceededError
        A partition claims to unfold into more than ``Config(payload_limit_bytes=)``; found before it is read.
    SchemaError
        A file's columns differ from the first one's in more than their order; found when it is read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> df = pl.DataFrame({"year": [1, 2], "text": ["to be", "to do"]}).tadoc.compress("text")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     df.tadoc.write_packed(Path(folder) / "texts.parquet")
    ...     lf = tadoc.scan_packed(folder)
    ...     lf.filter(pl.col("year") == 2).tadoc.decompress("text").collect().rows()
    [(2, 'to do')]

    """
    scan = PackedScan(find_files(source), Faults(on_error))
    return register(scan, scan.schema, "packed", scan.shown)


class PackedScan:
    """Files of packed rows, all with the same columns; errors as for :func:`scan_packed`.

    It is the source that Polars calls for documents.
    """

    def __init__(self, paths: list[Path], faults: Faults) -> None:
        self.paths, self._faults = paths, faults
        self._first, self._packed, self.column = self._first_file()
        self.schema = unpacked_schema(self._packed, self.column, "scan_packed")
        scans.add(self)

    def _first_file(self) -> tuple[Path, pl.Schema, str]:
        """Give the first file that can be read, its columns and the packed one."""
        *others, last = self.paths
        for path in others:
            try:
                return _columns(path)
            except FAULTS as error:
                self._faults.of_file(path, error)
        return _columns(last)

    @property
    def skips(self) -> bool:
        """Whether partitions that cannot be read are passed over: which ones may differ from one time to the next."""
        return self._faults.skips

    @property
    def shown(self) -> str:
        """The files, for plans that are shown."""
        return str(self.paths[0]) if len(self.paths) == 1 else f"{self.paths[0]} and {len(self.paths) - 1} more"

    def __call__(
        self, names: list[str] | None, predicate: pl.Expr | None, limit: int | None, _batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        """Give columns of the documents that pass, of the first ``limit``."""
        if asking.noted is not None:
            asking.noted.append((self, predicate, limit))
            return iter(())
        return self.frames(Documents(self.schema, self.column, names, predicate, limit))

    def frames(self, asked: Documents) -> Iterator[pl.DataFrame]:
        """Give the documents asked for: a frame for each packed row of which one may have passed."""
        return asked.frames(self._reads(asked), self._faults.of_row_group)

    def _reads(self, asked: Documents) -> Iterator[RowGroup]:
        """Give the row groups that may hold a document that passes; all where a limit counts those that do not."""
        condition = asked.early_condition if asked.left is None else None
        skipping = None if condition is None else Skipping(condition, self.schema)
        for path in self.paths:
            if asked.done:
                return
            try:
                file = PackedFile(path)  # it is closed when the last of its row groups was read, and goes out of use
                self._require_schema(file)
                groups = _groups(file, skipping, self.schema)
            except FAULTS as error:
                self._faults.of_file(path, error)
                continue
            for group in groups:
                yield RowGroup(file, group)

    def _require_schema(self, file: PackedFile) -> None:
        first, other = dict(self._packed), dict(file.schema)
        differing = [
            f'"{name}" is {short_dtype(other.get(name))}, in the first file {short_dtype(first.get(name))}'
            for name in {**first, **other}
            if first.get(name) != other.get(name)
        ]
        if not differing:
            return
        if file.path == self._first:
            raise SchemaError(f"scan_packed: {file.path} was replaced by one with other columns; scan it again")
        raise SchemaError(
            f"scan_packed: the columns of {file.path} differ from those of {self._first}: {'; '.join(differing)}; "
            "scan them apart"
        )


def _columns(path: Path) -> tuple[Path, pl.Schema, str]:
    with PackedFile(path) as file:
        return path, file.schema, file.column


class _Asking(threading.local):
    """Where it is set, scans note what this thread asks of them, and give nothing."""

    noted: list[tuple[PackedScan, pl.Expr | None, int | None]] | None = None


asking = _Asking()
scans: WeakSet[PackedScan] = WeakSet()
"""The scans that plans in use read."""


def _groups(file: PackedFile, skipping: Skipping | None, schema: pl.Schema) -> list[int]:
    groups = list(range(file.group_count))
    skipped = skipping.skippable(file.statistics(schema, skipping.columns)) if skipping is not None else None
    return groups if skipped is None else [group for group in groups if not skipped[group]]
