"""Files of packed rows as a lazy frame of documents."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from weakref import WeakSet

import polars as pl
from polars.exceptions import SchemaError
from polars.io.plugins import register_io_source

from polars_tadoc.packed.files import PackedFile, Source, find_files
from polars_tadoc.packed.skip import Skipping
from polars_tadoc.packed.unpack import Documents, Read, unpacked_schema


def scan_packed(source: Source) -> pl.LazyFrame:
    """Scan Parquet files of packed rows as documents, one partition at a time.

    Only the columns that a plan needs are read; rows are filtered before their compressed column is read; partitions
    whose statistics rule out a match are not read at all, nor any beyond the last row asked for.

    Parameters
    ----------
    source
        A file, a folder (all ``*.parquet`` in it and below), a glob pattern, or several of them. Files are read in the
        order of their names, or in that of the list.

    Returns
    -------
    LazyFrame
        One row for each document, with the columns as they were before packing: the compressed column is of type
        ``tadoc.DTYPE``.

    Raises
    ------
    FileNotFoundError
        Nothing is there.
    TypeError, ValueError
        The source is something else than paths, or an address (``s3://…``).
    NotPackedError
        A file has no packed column, several, or a column beside it that is no list.
    InvalidGrammarError
        A file is damaged; found when it is read.
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
    scan = PackedScan(find_files(source))
    return register_io_source(scan, schema=scan.schema, is_pure=True, explain_name="packed", explain_detail=scan.shown)


class PackedScan:
    """Files of packed rows, all with the same columns; errors as for :func:`scan_packed`.

    It is the source that Polars calls for documents.
    """

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths
        with PackedFile(paths[0]) as file:
            self._packed, self.column = file.schema, file.column
        self.schema = unpacked_schema(self._packed, self.column, "scan_packed")
        scans.add(self)

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
        return asked.frames(self._reads(asked))

    def _reads(self, asked: Documents) -> Iterator[Read]:
        """Give the row groups that may hold a document that passes; all where a limit counts those that do not."""
        condition = asked.early_condition if asked.left is None else None
        skipping = None if condition is None else Skipping(condition, self.schema)
        for path in self.paths:
            if asked.done:
                return
            file = PackedFile(path)  # it is closed when the last of its row groups was read, and goes out of use
            self._require_schema(file)
            for group in _groups(file, skipping, self.schema):
                yield partial(file.read, group)

    def _require_schema(self, file: PackedFile) -> None:
        first, other = dict(self._packed), dict(file.schema)
        differing = [
            f'"{name}" is {other.get(name, "not there")}, in the first file {first.get(name, "not there")}'
            for name in {**first, **other}
            if first.get(name) != other.get(name)
        ]
        if differing:
            raise SchemaError(
                f"scan_packed: the columns of {file.path} differ from those of {self.paths[0]}: {'; '.join(differing)}"
            )


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
