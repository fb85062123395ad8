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
from polars_tadoc.runtime.documented import with_imports
from polars_tadoc.runtime.io_source import register
from polars_tadoc.storage.files import File
from polars_tadoc.storage.find import Source, find
from polars_tadoc.storage.object_store import Access


@with_imports
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

    Reads only the columns that a plan needs, filters rows before it reads their compressed column, skips partitions
    whose statistics rule out a match, and stops at a row limit.

    Parameters
    ----------
    source
        A file, a folder (all ``*.parquet`` in it and below), a glob pattern, the address of one in an object store
        (``s3://bucket/folder/``, ``gs://``, ``az://``, ``https://``) or ``file://``, an open binary file, or a list of
        these. Files are read in the order of their names, or of the list. From object stores, a plan reads only the
        byte ranges that it needs.
    on_error
        What to do if a file is missing, a partition is damaged, or a partition claims to decode to more than the limits
        allow: ``"raise"`` raises an error that names file and row group; ``"skip"`` skips it with a
        :class:`~polars_tadoc.errors.SkippedPartitionWarning` that names them. Row numbers leave out skipped rows. A
        plan checks only what it reads: if only the text of a partition is damaged, its other columns can be read.
    hive_partitioning
        Whether folders named ``key=value`` become columns; a predicate on these columns then skips whole files without
        opening them. By default true if the source is one folder.
    hive_schema
        Types of these columns; by default inferred from the values: integers, floats, Booleans, dates, times. A column
        that the files have, too, gets the files' type and the folders' values.
    try_parse_hive_dates
        Whether dates and times are inferred.
    storage_options
        Access to the object store, with the keys of Polars' ``scan_parquet``: ``aws_access_key_id``,
        ``aws_endpoint_url``, ``aws_region``, ``aws_allow_http`` and so on. Missing keys come from the environment.
    credential_provider
        As in Polars: a function that returns keys and their time of expiry. ``"auto"`` and None use
        ``storage_options`` and the environment.

    Returns
    -------
    LazyFrame
        One row per document, with the columns and types from before packing; the compressed column has type
        ``tadoc.DTYPE``.

    Raises
    ------
    FileNotFoundError
        There is no file, or a file was deleted before it was read.
    TypeError, ValueError
        The source has another type, the address has an unknown scheme, or a folder name's value does not fit
        ``hive_schema``.
    ModuleNotFoundError
        An object store needs the package ``obstore``: ``pip install "polars-tadoc[cloud]"``.
    NotPackedError
        A file has no packed column, several, or another column that is not a list.
    InvalidGrammarError
        A file is damaged; raised when it is read. With ``on_error="skip"``, raised if no file can be read.
    LimitExceededError
        A partition claims to decode to more than ``Config(payload_limit_bytes=)``; raised before it is read.
    SchemaError
        A file's columns differ from the first file's in more than their order; raised when it is read.

    Examples
    --------
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
    """Files of packed rows with equal columns; errors as for :func:`scan_packed`.

    Polars calls it as the source of documents.
    """

    def __init__(self, files: Sequence[File], faults: Faults, hive: HiveColumns) -> None:
        self.files, self._faults = list(files), faults
        self._first, self._packed, self.column = self._first_file()
        unpacked = unpacked_schema(self._packed, self.column, "scan_packed")
        if self.column in hive.names:
            raise ValueError(
                f'scan_packed: folder names have the key "{self.column}", the packed column; rename the folders'
            )
        self._hive = hive.typed(unpacked)
        self.schema = pl.Schema({**unpacked, **self._hive.schema})
        scans.add(self)

    def _first_file(self) -> tuple[File, pl.Schema, str]:
        """Return the first readable file, its columns and the packed one."""
        *others, last = self.files
        for file in others:
            try:
                return _columns(file)
            except FAULTS as error:
                self._faults.of_file(file, error)
        return _columns(last)

    @property
    def skips(self) -> bool:
        """Whether unreadable partitions are skipped: results may then vary between runs."""
        return self._faults.skips

    @property
    def shown(self) -> str:
        """The files, for printed plans."""
        return str(self.files[0]) if len(self.files) == 1 else f"{self.files[0]} and {len(self.files) - 1} more"

    @property
    def shared(self) -> frozenset[str]:
        """Columns with one value per file: the hive columns."""
        return self._hive.names

    @property
    def folders(self) -> list[list[str | None]]:
        """The folder-name values of each file, as text."""
        return self._hive.texts

    def __call__(
        self, names: list[str] | None, predicate: pl.Expr | None, limit: int | None, _batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        """Yield columns of the documents that pass, among the first ``limit``."""
        if asking.noted is not None:
            asking.noted.append((self, predicate, limit))
            return iter(())
        return self.frames(Documents(self.schema, self.column, names, predicate, limit, self.shared))

    def frames(self, asked: Documents) -> Iterator[pl.DataFrame]:
        """Yield the selected documents: a frame for each packed row with a document that may pass."""
        return asked.frames(self._reads(asked), self._fault)

    def row_groups(self, asked: Documents) -> Iterator[RowGroup]:
        """Yield the row groups that may have a passing document; all if there is a limit, which counts all rows."""
        for read in self._reads(asked):
            if isinstance(read, RowGroup):
                yield read
            else:
                self._faults.of_file(read.file, read.error)

    def _fault(self, read: Any, error: Exception) -> None:
        if isinstance(read, _Unreadable):
            self._faults.of_file(read.file, error)
        else:
            self._faults.of_row_group(read, error)

    def _reads(self, asked: Documents) -> Iterator[RowGroup | _Unreadable]:
        """Yield row groups, and unreadable files, whose errors come in their turn as row groups are read ahead."""
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
                file = PackedFile(place)  # closed after the last of its row groups was read
                self._require_schema(file)
                groups = _groups(file, skipping, self.schema, shared)
            except FAULTS as error:
                yield _Unreadable(place, error)
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
            raise SchemaError(f"scan_packed: {file.place}: replaced by a file with other columns; scan again")
        raise SchemaError(
            f"scan_packed: {file.place}: columns differ from those of {self._first}: {'; '.join(differing)}; "
            "scan them separately"
        )


class _Unreadable:
    """A file that cannot be opened; reading it raises its error."""

    def __init__(self, file: File, error: Exception) -> None:
        self.file, self.error = file, error

    def __call__(self, _names: list[str]) -> pl.DataFrame:
        raise self.error


def _columns(place: File) -> tuple[File, pl.Schema, str]:
    with PackedFile(place) as file:
        return place, file.schema, file.column


class _Asking(threading.local):
    """If set, scans record the pushdown of this thread and yield nothing."""

    noted: list[tuple[PackedScan, pl.Expr | None, int | None]] | None = None


asking = _Asking()
scans: WeakSet[PackedScan] = WeakSet()
"""The scans of plans in use."""


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
