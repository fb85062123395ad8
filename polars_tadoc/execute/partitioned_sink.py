"""Writes a plan's rows as a folder of partitions; the grammars of each file are made from its own rows only.

Rows cut out of a compressed column keep the whole grammars that they use, including everything for other rows.
Therefore rows are first grouped by partition, then the grammars of each partition are merged into one, as in
``recompress``. The result is the same as compressing the partition's text alone, without the text.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs

from polars_tadoc.compress.compress import ROWS_PER_GRAMMAR
from polars_tadoc.compress.recompress import recompress
from polars_tadoc.errors import ColumnMissingError
from polars_tadoc.model.text_type import is_tadoc, storage
from polars_tadoc.packed.hive_names import folder_name, require_key
from polars_tadoc.runtime.io_source import batches, register
from polars_tadoc.runtime.plain_name import plain
from polars_tadoc.storage.atomic_write import atomic_folder

FILE = "00000000.parquet"
"""The only file of each partition, named as Polars names it."""

HELD_BYTES = 1 << 30
"""Default bytes of rows in memory."""

MAX_PARTITIONS = 1024
"""As in PyArrow's ``write_dataset``."""

MARK = "\0key "
"""Prefix of temporary columns with the texts of keys."""

MARKS = cs.starts_with(MARK)

Key = tuple[str | None, ...]
"""Texts of a partition's keys."""


def partition_keys(schema: pl.Schema, partition_by: str | Sequence[str], call: str) -> list[str]:
    """Check key columns and return their names.

    Raises
    ------
    TypeError
        Not names, or a type without a folder name.
    ValueError
        No key, a duplicate key, or no column besides the keys.
    ColumnMissingError
        A column does not exist.

    """
    keys = [partition_by] if isinstance(partition_by, str) else partition_by
    if not isinstance(keys, Sequence) or not all(isinstance(key, str) for key in keys):
        raise TypeError(f"{call}: partition_by={partition_by!r} must be a column's name, or a list of such")
    if not keys or len(set(keys)) < len(keys):
        raise ValueError(f"{call}: partition_by={partition_by!r} must name one column or more, each once")
    for key in keys:
        if key not in schema:
            raise ColumnMissingError.for_name(key, schema.names(), call)
        require_key(key, schema[key], call)
    if len(keys) == len(schema):
        raise ValueError(f"{call}: partition_by= names all columns; leave at least one column to write")
    return list(keys)


def partition_target(path: Path, keys: Sequence[str], call: str) -> Path:
    """Return the output folder: a new one, or an existing one of partitions by the same keys, which is replaced.

    Raises
    ------
    FileExistsError
        The path is something else.
    FileNotFoundError
        The parent folder does not exist.

    """
    path = Path(os.path.realpath(path))
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{call}: {path.parent} does not exist")
    _partitions(path, keys, call)
    return path


def _partitions(path: Path, keys: Sequence[str], call: str) -> list[Path]:
    """List the contents of a folder of partitions, files before their folders.

    Raises
    ------
    FileExistsError
        It contains something that :func:`sink_partitions` does not write for the same keys.

    """
    if not path.exists():
        return []
    if not path.is_dir():
        raise FileExistsError(f"{call}: {path} is a file; partition_by= writes a folder")
    found = list(_below(path, [folder_name(key, "", call) for key in keys]))
    foreign = next((one for one, is_own in found if not is_own), None)
    if foreign:
        shown = "/".join([*(f"{key}=…" for key in keys), FILE])
        raise FileExistsError(
            f"{call}: {path} contains {foreign.relative_to(path).as_posix()}; an existing folder is replaced only if "
            f"it contains nothing but {shown}; choose another folder"
        )
    return [one for one, _ in found]


def _below(folder: Path, starts: Sequence[str]) -> Iterator[tuple[Path, bool]]:
    """Tell for each file and folder whether this module writes it: nested folders with these prefixes, and the file."""
    with os.scandir(folder) as found:
        for one in sorted(found, key=lambda one: one.name):
            if starts:
                is_own = one.name.startswith(starts[0]) and one.is_dir(follow_symlinks=False)
            else:
                is_own = one.name == FILE and one.is_file(follow_symlinks=False)
            if is_own and starts:
                yield from _below(Path(one.path), starts[1:])
            yield Path(one.path), is_own


def sink_partitions(
    lf: pl.LazyFrame,
    schema: pl.Schema,
    keys: Sequence[str],
    place: Path,
    call: str,
    *,
    most: int = MAX_PARTITIONS,
    limit: int = HELD_BYTES,
    options: dict[str, Any] | None = None,
) -> None:
    """Write a plan's rows to a folder of partitions; atomic: the folder is complete or unchanged.

    Parameters
    ----------
    lf, schema
        The plan and its columns.
    keys
        Key columns, outermost first.
    place
        What :func:`partition_target` returned.
    call
        Prefix of messages.
    most
        Maximum number of partitions.
    limit
        Bytes of rows in memory; more are spilled to disk and read back in parts of this size.
    options
        Options of Polars' ``write_parquet``.

    Raises
    ------
    ValueError
        There are more than ``most`` partitions.
    DiskFullError
        The disk is full.
    FileExistsError
        The path was created by another process meanwhile.

    """
    with atomic_folder(place, call, lambda old: _partitions(old, keys, call)) as temporary:
        rows = _Rows(schema, keys, temporary / ".rows", call, most, limit)
        for batch in batches(lf):
            if batch.height:
                rows.add(batch)
        for names, frames in rows.partitions():
            folder = temporary.joinpath(*names)
            folder.mkdir(parents=True)
            _write(frames, schema, folder / FILE, options or {})
        shutil.rmtree(rows.spilled, ignore_errors=True)


class _Rows:
    """Rows of all partitions, in memory or spilled."""

    def __init__(self, schema: pl.Schema, keys: Sequence[str], spilled: Path, call: str, most: int, limit: int) -> None:
        self._schema, self._keys, self.spilled = schema, list(keys), spilled
        self._call, self._most, self._limit = call, most, limit
        self._held: list[pl.DataFrame] = []
        self._held_bytes = 0
        self._sizes: dict[Key, float] = {}
        self._files: list[Path] = []

    def add(self, batch: pl.DataFrame) -> None:
        """Add some rows."""
        size = _held_bytes(batch)
        texts = pl.DataFrame(self._texts(batch))
        for *key, rows in texts.group_by(texts.columns, maintain_order=True).len().rows():
            self._sizes[tuple(key)] = self._sizes.get(tuple(key), 0.0) + size * rows / batch.height
        if len(self._sizes) > self._most:
            named = " and ".join(f'"{key}"' for key in self._keys)
            raise ValueError(
                f"{self._call}: partition_by={named} gives more than {self._most:,} partitions; partition by something "
                "coarser (a day, a month), or allow more: max_partitions=…"
            )
        self._held.append(batch)
        self._held_bytes += size
        if self._held_bytes > self._limit:
            self._spill()

    def _spill(self) -> None:
        self.spilled.mkdir(exist_ok=True)
        rows = pl.concat(self._held)
        self._files.append(self.spilled / f"{len(self._files)}.parquet")
        rows.write_parquet(self._files[-1], compression="lz4", row_group_size=rows.height)
        self._held, self._held_bytes = [], 0

    def partitions(self) -> Iterator[tuple[list[str], Iterator[pl.DataFrame]]]:
        """Yield each partition's folders, and its rows in order."""
        if self._files and self._held:
            self._spill()
        for some in self._at_once():
            if len(some) == 1:
                yield self._folders(some[0]), (self._marked(frame, some).drop(MARKS) for frame in self._frames())
                continue
            rows = pl.concat([self._marked(frame, some) for frame in self._frames()])
            marks = [f"{MARK}{place}" for place in range(len(self._keys))]
            parts = rows.partition_by(marks, maintain_order=True, include_key=False, as_dict=True)
            del rows
            while parts:
                key = next(iter(parts))
                yield self._folders(key), iter([parts.pop(key)])

    def _at_once(self) -> Iterator[list[Key]]:
        """Split the partitions into lists that fit in memory."""
        some: list[Key] = []
        size = 0.0
        for key, own in self._sizes.items():
            if some and size + own > self._limit:
                yield some
                some, size = [], 0.0
            some.append(key)
            size += own
        if some:
            yield some

    def _frames(self) -> Iterator[pl.DataFrame]:
        """Yield all rows, in memory or from disk."""
        return (pl.read_parquet(file, glob=False) for file in self._files) if self._files else iter(self._held)

    def _marked(self, frame: pl.DataFrame, some: Sequence[Key]) -> pl.DataFrame:
        """Keep the rows of some partitions, and add columns with the texts of their keys."""
        texts = self._texts(frame)
        marked = frame.hstack(texts)
        if len(some) == len(self._sizes):
            return marked
        names = [text.name for text in texts]
        wanted = pl.DataFrame(some, schema=dict.fromkeys(names, pl.String), orient="row")
        return marked.join(wanted, on=names, how="semi", nulls_equal=True, maintain_order="left")

    def _texts(self, frame: pl.DataFrame) -> list[pl.Series]:
        return [frame[key].cast(pl.String).alias(f"{MARK}{place}") for place, key in enumerate(self._keys)]

    def _folders(self, key: Key) -> list[str]:
        return [folder_name(name, text, self._call) for name, text in zip(self._keys, key, strict=True)]


def _held_bytes(batch: pl.DataFrame) -> int:
    """Return the bytes of rows including the grammars that they use."""
    size = int(batch.estimated_size())
    for column in batch.get_columns():
        if is_tadoc(column.dtype):
            grammars = plain(storage(column)).struct.field("grammar").unique().cast(pl.String)
            size += int(grammars.str.len_bytes().sum())
    return size


def _write(frames: Iterable[pl.DataFrame], schema: pl.Schema, file: Path, options: dict[str, Any]) -> None:
    """Write a partition's rows block by block; the grammars of each block are made from its rows only."""
    blocks = _merged(_blocks(frames))
    first = next(blocks)
    second = next(blocks, None)
    options = {"row_group_size": ROWS_PER_GRAMMAR, **options}
    if second is None:
        first.write_parquet(file, **options)
        return

    def source(
        names: list[str] | None, predicate: pl.Expr | None, limit: int | None, _batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        return chain([first, second], blocks)

    register(source, schema, "partition").sink_parquet(file, engine="streaming", **options)


def _blocks(frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Collect frames into blocks of one row group."""
    held: list[pl.DataFrame] = []
    rows = 0
    for frame in frames:
        held.append(frame)
        rows += frame.height
        while rows >= ROWS_PER_GRAMMAR:
            gathered = pl.concat(held)
            yield gathered.head(ROWS_PER_GRAMMAR)
            held = [gathered.slice(ROWS_PER_GRAMMAR)]
            rows -= ROWS_PER_GRAMMAR
    if rows:
        yield pl.concat(held)


def _merged(blocks: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    for block in blocks:
        compressed = [column for column in block.get_columns() if is_tadoc(column.dtype)]
        yield block.with_columns([recompress(column) for column in compressed])
