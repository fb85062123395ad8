"""Files of packed rows as a lazy frame of documents."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from weakref import WeakSet

import polars as pl
from polars.exceptions import SchemaError

from polars_tadoc.packed.faults import Faults, OnError
from polars_tadoc.packed.files import PackedFile, RowGroup
from polars_tadoc.packed.hive_columns import HiveColumns
from polars_tadoc.packed.partition import short_dtype
from polars_tadoc.packed.row_group_pruning import Bounds, RowGroupPruning
from polars_tadoc.packed.unpack import FAULTS, Documents, unpacked_schema
from polars_tadoc.runtime.arguments import require_bool
from polars_tadoc.runtime.io_source import register
from polars_tadoc.storage.files import File
from polars_tadoc.storage.find import Source, find
from polars_tadoc.storage.object_store import Access


def scan_packed(
    source: Source,
    *,
    on_error: OnError = "raise",
    hive_partitioning: bool | None = None,
    hive_schema: Mapping[str, Any] | None = None,
    try_parse_hive_dates: bool = True,
    storage_options: Mapping[str, Any] | None = None,
    credential_provider: Any = "auto",
) -> pl.LazyFrame:
    """Scan Parquet files of packed rows as documents, one partition at a time.

    Only the columns that a plan needs are read; rows are filtered before their compressed column is read; partitions
    whose statistics rule out a match are not read at all, nor any beyond the last row asked for.

    Parameters
    ----------
    source
        A file, a folder (all ``*.parquet`` in it and below), a glob pattern, the address of one in an object store
        (``s3://bucket/folder/``, ``gs://``, ``az://``, ``https://``) or ``file://``, an open file that gives bytes, or
        several of them. Files are read in the order of their names, or in that of the list. Of objects, only the ranges
        of bytes are read that a plan needs.
    on_error
        What becomes of a partition that is damaged, of a file that is gone, or of one that claims to unfold into more
        than the limits allow: ``"raise"`` an error that names file and row group, or ``"skip"`` it with a
        :class:`~polars_tadoc.errors.SkippedPartitionWarning` that does. Rows are numbered without those that were
        skipped. What is skipped follows from what a plan reads: where only the text of a partition is damaged, its
        other columns can be read.
    hive_partitioning
        Whether folders named ``key=value`` make columns of their keys; a predicate on these leaves whole files unread,
        and unopened. By default they do where one folder is named.
    hive_schema
        Types of these columns; by default they are told from the values: integers, floats, Booleans, dates, times.
        Columns that the files have, too, are of the files' type, and have the folders' values.
    try_parse_hive_dates
        Whether dates and times are told.
    storage_options
        How an object store is reached, as Polars' ``scan_parquet`` has it: ``aws_access_key_id``, ``aws_endpoint_url``,
        ``aws_region``, ``aws_allow_http`` and so on. What is not said comes from the environment.
    credential_provider
        As Polars' has it: a function that returns keys and the time at which they expire. ``"auto"`` and None leave it
        to ``storage_options`` and the environment.

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
        The source is something else, an address of an unknown kind, or a folder's name is no value of
        ``hive_schema``.
    ModuleNotFoundError
        An object store needs the package ``obstore``: ``pip install "polars-tadoc[cloud]"``.
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
    if hive_partitioning is not None:
        require_bool("hive_partitioning", hive_partitioning, "scan_packed")
    require_bool("try_parse_hive_dates", try_parse_hive_dates, "scan_packed")
    found = find(source, "scan_packed", Access(storage_options, credential_provider))
    if hive_partitioning is None:
        hive_partitioning = isinstance(source, str | os.PathLike) and all(one.below for one in found)
    folders = [one.folders if hive_partitioning else () for one in found]
    hive = HiveColumns.of(folders, hive_schema or {}, try_parse_hive_dates)
    scan = PackedScan([one.file for one in found], Faults(on_error), hive)
    return register(scan, scan.schema, "packed", scan.shown)


class PackedScan:
    """Files of packed rows, all with the same columns; errors as for :func:`scan_packed`.

    It is the source that Polars calls for documents.
    """

    def __init__(self, files: Sequence[File], faults: Faults, hive: HiveColumns) -> None:
        self.files, self._faults = list(files), faults
        self._first, self._packed, self.column = self._first_file()
        unpacked = unpacked_schema(self._packed, self.column, "scan_packed")
        if self.column in hive.names:
            raise ValueError(f'scan_packed: folders name "{self.column}", which is the packed column; rename them')
        self._hive = hive.typed(unpacked)
        self.schema = pl.Schema({**unpacked, **self._hive.schema})
        scans.add(self)

    def _first_file(self) -> tuple[File, pl.Schema, str]:
        """Give the first file that can be read, its columns and the packed one."""
        *others, last = self.files
        for file in others:
            try:
                return _columns(file)
            except FAULTS as error:
                self._faults.of_file(file, error)
        return _columns(last)

    @property
    def skips(self) -> bool:
        """Whether partitions that cannot be read are passed over: which ones may differ from one time to the next."""
        return self._faults.skips

    @property
    def shown(self) -> str:
        """The files, for plans that are shown."""
        return str(self.files[0]) if len(self.files) == 1 else f"{self.files[0]} and {len(self.files) - 1} more"

    @property
    def shared(self) -> frozenset[str]:
        """Columns that are one value in each file: what its folders say."""
        return self._hive.names

    @property
    def folders(self) -> list[list[str | None]]:
        """What the folders of each file say, as text."""
        return self._hive.texts

    def __call__(
        self, names: list[str] | None, predicate: pl.Expr | None, limit: int | None, _batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        """Give columns of the documents that pass, of the first ``limit``."""
        if asking.noted is not None:
            asking.noted.append((self, predicate, limit))
            return iter(())
        return self.frames(Documents(self.schema, self.column, names, predicate, limit, self.shared))

    def frames(self, asked: Documents) -> Iterator[pl.DataFrame]:
        """Give the documents asked for: a frame for each packed row of which one may have passed."""
        return asked.frames(self.row_groups(asked), self._faults.of_row_group)

    def row_groups(self, asked: Documents) -> Iterator[RowGroup]:
        """Give the row groups that may hold a document that passes; all where a limit counts those that do not."""
        condition = asked.early_condition if asked.left is None else None
        skipping = None if condition is None else RowGroupPruning(condition, self.schema)
        passing = self._hive.passing(asked.file_condition, len(self.files))
        for number, place in enumerate(self.files):
            if asked.done:
                return
            if not passing[number]:
                continue
            shared = self._hive.values(number)
            try:
                file = PackedFile(place)  # it is closed when the last of its row groups was read, and goes out of use
                self._require_schema(file)
                groups = _groups(file, skipping, self.schema, shared)
            except FAULTS as error:
                self._faults.of_file(place, error)
                continue
            for group in groups:
                yield RowGroup(file, group, shared)

    def _require_schema(self, file: PackedFile) -> None:
        first, other = dict(self._packed), dict(file.schema)
        differing = [
            f'"{name}" is {short_dtype(other.get(name))}, in the first file {short_dtype(first.get(name))}'
            for name in {**first, **other}
            if first.get(name) != other.get(name)
        ]
        if not differing:
            return
        if file.place == self._first:
            raise SchemaError(f"scan_packed: {file.place} was replaced by one with other columns; scan it again")
        raise SchemaError(
            f"scan_packed: the columns of {file.place} differ from those of {self._first}: {'; '.join(differing)}; "
            "scan them apart"
        )


def _columns(place: File) -> tuple[File, pl.Schema, str]:
    with PackedFile(place) as file:
        return place, file.schema, file.column


class _Asking(threading.local):
    """Where it is set, scans note what this thread asks of them, and give nothing."""

    noted: list[tuple[PackedScan, pl.Expr | None, int | None]] | None = None


asking = _Asking()
scans: WeakSet[PackedScan] = WeakSet()
"""The scans that plans in use read."""


def _groups(
    file: PackedFile, skipping: RowGroupPruning | None, schema: pl.Schema, shared: Mapping[str, pl.Series]
) -> list[int]:
    groups = list(range(file.group_count))
    if skipping is None:
        return groups
    known = dict(file.statistics(schema, [name for name in skipping.columns if name not in shared]))
    for name in skipping.columns:
        if name in shared:
            values = shared[name].new_from_index(0, len(groups))
            known[name] = Bounds(
                values, values, values.is_null().cast(pl.Int64), pl.Series([1]).new_from_index(0, len(groups))
            )
    skipped = skipping.skippable(known)
    return groups if skipped is None else [group for group in groups if not skipped[group]]
