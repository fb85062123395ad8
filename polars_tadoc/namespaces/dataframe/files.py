"""``df.tadoc``: packed rows and files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, BinaryIO, Unpack

import polars as pl

from polars_tadoc.engine.progress import bar_of, counted
from polars_tadoc.execute.columns import compressed_column, packed_column
from polars_tadoc.namespaces.dataframe.base import FrameBase
from polars_tadoc.packed.pack import document_count, pack, pack_stream, packed_schema
from polars_tadoc.packed.unpack import unpack
from polars_tadoc.packed.write import PackedFileOptions, write_packed
from polars_tadoc.runtime.documented import with_imports
from polars_tadoc.runtime.option_signature import takes_options
from polars_tadoc.runtime.process.writer_thread import apart
from polars_tadoc.storage.object_store import Access
from polars_tadoc.storage.writing import writable_place


@with_imports
class FrameFiles(FrameBase):
    """Packed rows and files."""

    def pack(self, column: str | None = None) -> pl.DataFrame:
        """Pack each run of consecutive rows that share a grammar into one row, as ``implode`` makes lists of rows.

        A packed row is self-contained: it holds the grammar as plain lists beside the rows' own symbols, and needs no
        decoding. Rows keep their order, so a grammar that occurs again after another one is packed again. Null rows are
        packed with the rows before them. A run too large for one cell (2^29 values, or 2^31 bytes of strings) becomes
        several rows.

        Parameters
        ----------
        column
            The compressed column; optional if there is only one.

        Returns
        -------
        DataFrame
            The column with type ``tadoc.PACKED_DTYPE``, every other one as lists with one value per document.

        Raises
        ------
        ColumnMissingError, NotCompressedError
            The frame lacks the column, or it is not compressed.
        LimitExceededError
            A single row has more values than a cell holds; or grammars alternate from row to row, so that their
            copies would exceed ``Config(payload_limit_bytes=)``: merge them with ``recompress``.
        InvalidGrammarError
            A payload or a row is damaged.
        TypeError
            A column has Python objects, which lists cannot hold.

        Examples
        --------
        >>> df = pl.DataFrame({"year": [1, 2], "text": ["to be", "to do"]}).tadoc.compress("text")
        >>> packed = df.tadoc.pack("text")
        >>> packed.height, packed["year"].to_list(), packed["text"].struct.field("vocabulary").to_list()
        (1, [[1, 2]], [['to', 'be', 'do']])

        """
        df = self._df
        return pack(df, compressed_column(df.schema, column, "pack"))

    def unpack(self, column: str | None = None) -> pl.DataFrame:
        """Return the original rows of packed rows, in order, as ``explode`` does with lists.

        Parameters
        ----------
        column
            The packed column; optional if there is only one.

        Returns
        -------
        DataFrame
            The original frame, before :meth:`pack`.

        Raises
        ------
        ColumnMissingError, NotPackedError
            The frame lacks the column, it is not packed, or another column is not a list.
        InvalidGrammarError
            A packed row is damaged: an invalid grammar, descending offsets, lists of unequal lengths.
        LimitExceededError
            A rule expands to more words than ``Config(expansion_limit=)``.

        Examples
        --------
        >>> df = pl.DataFrame({"year": [1, 2], "text": ["to be", "to do"]}).tadoc.compress("text")
        >>> df.tadoc.pack().tadoc.unpack().equals(df)
        True

        """
        df = self._df
        return unpack(df, packed_column(df.schema, column, "unpack"))

    @takes_options
    @apart
    def write_packed(
        self, path: str | os.PathLike[str] | BinaryIO, column: str | None = None, **options: Unpack[PackedFileOptions]
    ) -> None:
        """Write a Parquet file of packed rows, one row group each, for :func:`polars_tadoc.scan_packed`.

        Parameters
        ----------
        path
            The file, written atomically: it replaces an existing one when it is complete. Until then it is
            ``.NAME.….tmp`` beside it, which a killed process leaves behind and which you may delete. Or the address of
            an object (``s3://bucket/texts.parquet``), which appears when it is uploaded completely, or an open binary
            file.
        column
            The compressed column; optional if there is only one.
        effort
            ``"default"``, or ``"small"``: entropy-coded, for files that are rarely read. These are 9 to 41 % smaller,
            are written at 3 to 120 MB of text a second, and read at a quarter to half of the speed.

        Raises
        ------
        ColumnMissingError, NotCompressedError, LimitExceededError, InvalidGrammarError
            As for :meth:`pack`.
        TypeError
            A column has a type that Parquet lacks (Python objects, 128-bit integers), or ``path`` is not a path.
        ValueError
            ``path`` is an address with an unknown scheme, or ``effort`` is unknown.
        ModuleNotFoundError
            An object store needs the package ``obstore``: ``pip install "polars-tadoc[cloud]"``.
        OSError
            The path is a folder or a device, or its folder does not exist, raised before any row is read; an object
            store cannot be reached.

        Examples
        --------
        >>> df = pl.DataFrame({"year": [1, 2], "text": ["to be", "to do"]}).tadoc.compress("text")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     df.tadoc.write_packed(Path(folder) / "texts.parquet")
        ...     tadoc.scan_packed(folder).collect().equals(df)
        True

        """
        df = self._df
        name = compressed_column(df.schema, column, "write_packed")
        access = Access(options["storage_options"], options["credential_provider"])
        place = writable_place(path, "write_packed", access)
        with bar_of(df.height, "write_packed"):
            rows = counted(pack_stream([df], name), "write_packed", lambda row: document_count(row[name]))
            write_packed(rows, packed_schema(df.schema, name), name, place, "write_packed", access, options["effort"])

    def write_parquet(
        self,
        path: str | os.PathLike[str] | BinaryIO,
        *,
        partition_by: str | Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        """Write a Parquet file, or a folder of partitions, atomically.

        Parameters
        ----------
        path
            The file; with ``partition_by``, the folder.
        partition_by
            Key columns: each combination of their values gets a file of its own, ``system=sshd/00000000.parquet``,
            with grammars made of its rows only.
        **options
            As for ``lf.tadoc.sink_parquet``.

        Raises
        ------
        DiskFullError, OSError, TypeError, ValueError, FileExistsError
            As for ``lf.tadoc.sink_parquet``.

        Examples
        --------
        >>> df = pl.DataFrame({"system": ["sshd", "cron"], "text": ["to be", "to do"]}).tadoc.compress("text")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     df.tadoc.write_parquet(Path(folder) / "logs", partition_by="system")
        ...     print(sorted(file.parent.name for file in Path(folder).rglob("*.parquet")))
        ['system=cron', 'system=sshd']

        """
        self._df.lazy().tadoc.sink_parquet(path, partition_by=partition_by, **options)  # type: ignore[attr-defined]
