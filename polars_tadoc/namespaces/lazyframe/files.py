"""``lf.tadoc``: packed rows and files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, Unpack

import polars as pl

from polars_tadoc.engine.progress import bar_of, counted
from polars_tadoc.execute.columns import compressed_column, packed_column
from polars_tadoc.execute.limited import row_groups
from polars_tadoc.execute.partitioned_sink import (
    HELD_BYTES,
    MAX_PARTITIONS,
    partition_keys,
    partition_target,
    sink_partitions,
)
from polars_tadoc.namespaces.dataframe import TadocFrame
from polars_tadoc.namespaces.lazyframe.base import PlanBase
from polars_tadoc.packed.pack import document_count, pack_stream, packed_schema
from polars_tadoc.packed.plan import pack_plan, unpack_plan
from polars_tadoc.packed.write import PackedFileOptions, write_packed
from polars_tadoc.runtime.arguments import require_integer
from polars_tadoc.runtime.documented import documented_by, with_imports
from polars_tadoc.runtime.io_source import batches
from polars_tadoc.runtime.option_signature import takes_progress
from polars_tadoc.runtime.process.writer_thread import apart
from polars_tadoc.storage.addresses import Address, require_utf8
from polars_tadoc.storage.find import one_file
from polars_tadoc.storage.object_store import Access
from polars_tadoc.storage.writing import writable_place, writing
from polars_tadoc.traversal.options import require_memory_limit


@with_imports
class PlanFiles(PlanBase):
    """Packed rows and files."""

    @documented_by(TadocFrame.pack)
    def pack(self, column: str | None = None) -> pl.LazyFrame:
        """Pack each run of consecutive rows that share a grammar into one row; see ``df.tadoc.pack``.

        The plan's rows are streamed: memory holds one run at a time.

        Examples
        --------
        >>> lf = pl.LazyFrame({"year": [1, 2], "text": ["to be", "to do"]}).tadoc.compress("text")
        >>> lf.tadoc.pack().collect().shape
        (1, 2)

        """
        lf = self._lf
        schema = lf.collect_schema()
        return pack_plan(lf, schema, compressed_column(schema, column, "pack"))

    @documented_by(TadocFrame.unpack)
    def unpack(self, column: str | None = None) -> pl.LazyFrame:
        """Return the original rows of packed rows, in order; see ``df.tadoc.unpack``.

        Examples
        --------
        >>> lf = pl.LazyFrame({"year": [1, 2], "text": ["to be", "to do"]}).tadoc.compress("text").tadoc.pack()
        >>> lf.tadoc.unpack().filter(pl.col("year") == 2).tadoc.decompress().collect().rows()
        [(2, 'to do')]

        """
        lf = self._lf
        schema = lf.collect_schema()
        return unpack_plan(lf, schema, packed_column(schema, column, "unpack"))

    @documented_by(TadocFrame.write_packed)
    @apart
    def sink_packed(
        self, path: str | os.PathLike[str] | BinaryIO, column: str | None = None, **options: Unpack[PackedFileOptions]
    ) -> None:
        """Run the plan and write its rows to a packed Parquet file, for :func:`polars_tadoc.scan_packed`.

        Memory holds one run of rows that share a grammar at a time, which becomes one row group. So
        ``pl.scan_parquet("big.parquet").tadoc.compress("text").tadoc.sink_packed("big.tadoc.parquet")`` needs memory
        for a few blocks only.

        Examples
        --------
        >>> lf = pl.LazyFrame({"text": ["to be", "to do"]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     lf.tadoc.compress("text").tadoc.sink_packed(Path(folder) / "texts.parquet")
        ...     tadoc.scan_packed(folder).tadoc.word_count(top=1).collect().rows()
        [('to', 2)]

        """
        lf = self._lf
        schema = lf.collect_schema()
        name = compressed_column(schema, column, "sink_packed")
        access = Access(options["storage_options"], options["credential_provider"])
        place = writable_place(path, "sink_packed", access)
        packed = pack_stream(batches(lf), name, passing=True)
        rows = counted(packed, "sink_packed", lambda row: document_count(row[name]))
        write_packed(rows, packed_schema(schema, name), name, place, "sink_packed", access, options["effort"])

    @takes_progress
    @apart
    def sink_parquet(
        self,
        path: str | os.PathLike[str] | BinaryIO,
        *,
        partition_by: str | Sequence[str] | None = None,
        max_partitions: int = MAX_PARTITIONS,
        memory_limit: int | str = HELD_BYTES,
        progress: bool | None = None,
        storage_options: Mapping[str, Any] | None = None,
        credential_provider: Any = "auto",
        **options: Any,
    ) -> None:
        """Run the plan and write its result to a Parquet file, atomically.

        Like Polars' ``sink_parquet`` in its streaming engine, but the file appears only when it is complete, and
        replaces an existing one then. So a result larger than memory can be written by a call that may be interrupted,
        and the plan may read the file that it replaces.

        Parameters
        ----------
        path
            The file. Until it is complete it is ``.NAME.….tmp`` beside it, which is removed on an error; the next write
            of the same file removes leftovers of killed processes. With ``partition_by``, a folder. Without it, also
            the address of an object, which appears when it is uploaded completely, or an open binary file.
        partition_by
            Key columns, outermost first: each combination of their values gets a file of its own in folders named after
            them, ``system=sshd/``, as read by Hive, Polars and DuckDB. The grammars of each file are made of its rows
            only, as if each partition had been compressed separately; Polars' own ``partition_by`` repeats all grammars
            in each file. The whole folder is replaced atomically; an existing folder is replaced only if it contains
            nothing but files that this call writes for the same keys.
        max_partitions
            Maximum number of partitions.
        memory_limit
            Maximum bytes of compressed rows in memory while they are grouped by partition, or a number with a unit
            ("2GB"); more rows are spilled to disk, beside the folder. Compressing one row group is extra.
        progress
            Whether to show a progress bar (tqdm) on standard error, of rows that calls of this package in the plan have
            read; by default as ``tadoc.Config`` says.
        **options
            Those of Polars' ``sink_parquet``, except ``lazy``, ``mkdir`` and ``optimizations``. If a call in the plan
            has a small ``memory_limit=`` and Polars has many threads, ``row_group_size`` is derived from both, because
            Polars encodes row groups in all threads at once.

        Raises
        ------
        DiskFullError
            The disk is full; the message names the folder.
        OSError
            The path is a folder or a device, or its folder does not exist; raised before any row is read.
        TypeError
            An option is unknown, the path is not a path, or a key column's type cannot be a folder name.
        ValueError
            The path is an address with an unknown scheme, or with ``partition_by`` any address; or there are more than
            ``max_partitions``.
        FileExistsError
            With ``partition_by``: the folder exists and contains other files.

        Examples
        --------
        >>> df = pl.DataFrame({"text": ["to be", "to do"]}).tadoc.compress("text")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     df.tadoc.write_packed(Path(folder) / "texts.parquet")
        ...     words = tadoc.scan_packed(Path(folder) / "texts.parquet").tadoc.word_count(memory_limit="1GB")
        ...     words.tadoc.sink_parquet(Path(folder) / "words.parquet")
        ...     pl.read_parquet(Path(folder) / "words.parquet").row(0)
        ('to', 2)

        """
        call = "sink_parquet"
        for option in ("lazy", "mkdir", "optimizations"):
            if option in options:
                raise TypeError(f"{call}: {option}= is for Polars' sink_parquet; remove it")
        access = Access(storage_options, credential_provider)
        if partition_by is not None:
            schema = self._lf.collect_schema()
            keys = partition_keys(schema, partition_by, call)
            folder = one_file(path, call, access)
            if isinstance(folder, Address):
                raise ValueError(
                    f"{call}: {folder}: object stores cannot replace a folder atomically; write the partitions to a "
                    "local folder, and copy that"
                )
            require_utf8(folder, call)
            place = partition_target(folder, keys, call)
            most = require_integer("max_partitions", max_partitions, 1)
            limit = require_memory_limit(memory_limit) or HELD_BYTES
            with bar_of(None, call):
                sink_partitions(self._lf, schema, keys, place, call, most=most, limit=limit, options=options)
            return
        elsewhere = "; partition_by= takes key columns, and Polars' own lf.sink_parquet has more kinds of targets"
        place_of_file = writable_place(path, call, access, elsewhere)
        with bar_of(None, call), writing(place_of_file, call, access, late=True) as temporary:
            self._lf.sink_parquet(temporary, **{"engine": "streaming", **row_groups(self._lf), **options})
