"""Splits the files of a call into pieces that any worker can read: row groups of packed files, or intervals of text."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import polars as pl
import polars.selectors as cs
import pyarrow as pa
import pyarrow.parquet as pq
from polars.exceptions import ComputeError, PolarsError, SchemaError

from polars_tadoc.errors import InvalidGrammarError, LimitExceededError, NotCompressedError
from polars_tadoc.execute.columns import label_column, string_column
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.text_type import is_tadoc
from polars_tadoc.packed.files import PackedFile
from polars_tadoc.packed.partition import is_packed, partition_at, short_dtype
from polars_tadoc.packed.unpack import unpack, unpacked_schema
from polars_tadoc.runtime.plain_name import plain
from polars_tadoc.runtime.regular_file import arrow_file, open_regular
from polars_tadoc.storage.find import Source, find_files
from polars_tadoc.untrusted.parquet_footer import open_parquet
from polars_tadoc.untrusted.thrift import MalformedError

PIECE_BYTES = 1 << 27
"""Approximate text bytes of one split: many splits in a large corpus, yet long enough to compress well."""

MAX_ROWS = 1 << 32
"""Maximum rows: results number them in 32 bits."""


class Interval(NamedTuple):
    """Consecutive rows of a file."""

    path: Path
    """The file."""
    first: int
    rows: int
    """``first``, ``rows``: First row and number of rows; in a packed file, number of the row group, and its
    documents."""


@dataclass(frozen=True)
class Piece:
    """One split: the input of one task."""

    intervals: tuple[Interval, ...]
    """Intervals of files, in order."""
    first_row: int
    """Row number of its first row, over all splits."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(one.rows for one in self.intervals)

    def __str__(self) -> str:
        one, *more = self.intervals
        return f"{one.path} from row {one.first:,}" + (f" and {len(more)} more files" if more else "")


@dataclass(frozen=True)
class PackedPiece(Piece):
    """A split of packed rows: one row group."""

    def __str__(self) -> str:
        return f"{self.intervals[0].path}, row group {self.intervals[0].first}"


@dataclass(frozen=True)
class Files:
    """All files of a call."""

    schema: pl.Schema
    """Columns of the rows, the packed one of type ``tadoc.DTYPE``."""
    column: str
    """The column to analyse."""
    packed: bool
    """Whether the files are packed; if not, they have text."""
    first: Path
    """The first file."""
    pieces: tuple[Piece, ...]
    """The splits, in row order."""

    @classmethod
    def find(cls, source: Source, column: str | None, call: str) -> Files:
        """List the files and cut them into splits.

        Parameters
        ----------
        source
            As for ``scan_packed``.
        column
            The column to analyse; optional for packed files.
        call
            Name of the call, for messages.

        Raises
        ------
        FileNotFoundError, TypeError, ValueError, OSError
            The source matches no Parquet files, or they cannot be read.
        ColumnMissingError, NotCompressedError, NotPackedError
            The files lack the column, or it is neither packed nor text.
        SchemaError
            The files' columns differ in more than their order.
        LimitExceededError
            The files have more rows than results can number.

        """
        paths = _paths(source, call)
        first = _schema_of(paths[0], call)
        packed = any(is_packed(dtype) for dtype in first.values()) and first.get(column or "") != pl.String
        if packed:
            with PackedFile(paths[0]) as file:
                own = file.schema
                schema = unpacked_schema(own, file.column, call)
                column = file.column if column is None else column
            if not is_tadoc(schema.get(column)):
                raise NotCompressedError(f'{call}: the packed column of {paths[0]} is "{file.column}", not "{column}"')
            cut: Iterator[tuple[Interval, ...]] = ((one,) for path in paths for one in _row_groups(path, own, call))
        else:
            if column is None:
                raise NotCompressedError(
                    f'{call}: {paths[0]} has no packed column; name the text column: workers.{call}(source, "text")'
                )
            schema = first
            for path in paths:
                own = _schema_of(path, call)
                if any(map(is_packed, own.values())):
                    raise NotCompressedError(
                        f"{call}: {paths[0]} holds text, {path} packed rows; use files of one kind"
                    )
                string_column(own, column, f"{call}: {path}")
                _require_same(own, first, path, call)
            cut = _cut([one for path in paths for one in _text_intervals(path, column)])
        pieces: list[Piece] = []
        row = 0
        for intervals in cut:
            piece = (PackedPiece if packed else Piece)(intervals, row)
            pieces.append(piece)
            row += piece.rows
        if row > MAX_ROWS:
            raise LimitExceededError(f"{call}: the files have {row:,} rows; results can number {MAX_ROWS:,}")
        return cls(schema, column, packed, paths[0], tuple(pieces))

    def of(self, piece: Piece) -> Files:
        """Return a copy with one split only, to send with a task."""
        return replace(self, pieces=(piece,))

    def require_labels(self, name: str | None, call: str) -> pl.DataType | None:
        """Return the type of the column that labels rows, if there is one; errors as for ``label_column``."""
        if name is None:
            return None
        if self.packed and name == self.column:
            raise ValueError(f'{call}: id="{name}" is the packed column itself; name another one, or omit id=')
        return self.schema[label_column(self.schema, name, call)]

    def read(self, piece: Piece, names: Sequence[str] | None = None) -> pl.DataFrame:
        """Read rows of text files; all columns by default."""
        frames = []
        for one in piece.intervals:
            rows = pl.scan_parquet(one.path, glob=False).slice(one.first, one.rows)
            wanted = cs.by_name(list(self.schema) if names is None else names, require_all=True)
            with _naming(one.path):
                frames.append(rows.select(wanted).collect())
            if frames[-1].width and frames[-1].height != one.rows:
                raise InvalidGrammarError(f"{one.path}: it was replaced while it was read; call again")
        return pl.concat(frames)

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return sum(piece.rows for piece in self.pieces)

    def rows(self, piece: Piece) -> pl.DataFrame:
        """Read rows with all columns; packed ones as compressed."""
        if not self.packed:
            return self.read(piece)
        frames = []
        for one in piece.intervals:
            with PackedFile(one.path) as file:
                frames.append(unpack(file.read(one.first, list(self.schema)), self.column))
        return pl.concat(frames)

    @property
    def nothing(self) -> Piece:
        """Return a split of text without rows."""
        return Piece((Interval(self.first, 0, 0),), 0)

    def labels(self, piece: Piece, name: str) -> pl.Series:
        """Read the labels of rows."""
        if not self.packed:
            return self.read(piece, [name])[name]
        values = []
        for one in piece.intervals:
            with PackedFile(one.path) as file:
                lists = file.read(one.first, [name])[name]
                values.append(plain(lists).explode(empty_as_null=False, keep_nulls=False))
        return pl.concat(values).alias(name)

    def corpora(self, piece: Piece) -> Iterator[Corpus]:
        """Yield the packed documents of a split; ``Corpus.rows`` are row numbers over all splits.

        Raises
        ------
        InvalidGrammarError
            The file is damaged, or has another number of documents than its statistics say.

        """
        row = piece.first_row
        for one in piece.intervals:
            with PackedFile(one.path) as file:
                packed = file.read(one.first, [self.column])[self.column]
            for place in range(len(packed)):
                partition = partition_at(packed, place, cached=False)
                if partition is not None:
                    yield partition.corpus(row)
                    row += partition.document_count
        if row != piece.first_row + piece.rows:
            raise InvalidGrammarError(
                f"{piece}: its statistics give {piece.rows:,} documents, but it has {row - piece.first_row:,}"
            )


def _paths(source: Source, call: str) -> list[Path]:
    if isinstance(source, pl.DataFrame | pl.LazyFrame):
        raise TypeError(f"{call}: workers read Parquet files; give their paths, not a {type(source).__name__}")
    # workers keep the working directory in which they started
    return [Path(os.path.abspath(path)) for path in find_files(source, call)]


def _schema_of(path: Path, call: str) -> pl.Schema:
    with _naming(f"{call}: {path}"), open_regular(path) as file:
        return pl.Schema(pl.read_parquet_schema(file))


@contextmanager
def _naming(place: object) -> Iterator[None]:
    """Name the file in errors."""
    try:
        yield
    except (MalformedError, pa.ArrowException, UnicodeDecodeError, ComputeError) as error:
        raise InvalidGrammarError(f"{place}: not a Parquet file, or damaged: {error}") from error
    except PolarsError as error:
        raise type(error)(f"{place}: {error}") from error


def _require_same(own: pl.Schema, first: pl.Schema, path: Path, call: str) -> None:
    """Raise ``SchemaError`` if a file's columns differ from the first one's in more than their order."""
    differing = [name for name in {**first, **own} if first.get(name) != own.get(name)]
    if differing:
        shown = "; ".join(
            f'"{name}" is {short_dtype(own.get(name))}, in the first file {short_dtype(first.get(name))}'
            for name in differing
        )
        raise SchemaError(
            f"{call}: {path}: columns differ from those of the first file: {shown}; use files of one kind"
        )


def _row_groups(path: Path, first: pl.Schema, call: str) -> Iterator[Interval]:
    """List the row groups of a packed file with their numbers of documents, which are checked on reading."""
    with PackedFile(path) as file, arrow_file(path) as content, open_parquet(content) as parquet:
        _require_same(file.schema, first, path, call)
        leaf = _leaf(parquet, f"{file.column}.valid.")
        for group in range(file.group_count):
            known = parquet.metadata.row_group(group)
            documents = known.column(leaf).num_values
            if known.num_rows != 1 or documents < 2:  # an empty or null list counts as one value
                packed = file.read(group, [file.column])[file.column]
                documents = int(packed.struct.field("valid").list.len().sum())
            yield Interval(path, group, documents)


def _leaf(file: pq.ParquetFile, start: str) -> int:
    """Return the first leaf column whose path has a prefix."""
    return next(place for place in range(len(file.schema)) if file.schema.column(place).path.startswith(start))


def _text_intervals(path: Path, column: str) -> Iterator[tuple[Interval, int]]:
    """List the row groups of a file with the bytes of their text."""
    with _naming(path), arrow_file(path) as content, open_parquet(content) as file:
        leaf = next(place for place in range(len(file.schema)) if file.schema.column(place).path == column)
        first = 0
        for group in range(file.num_row_groups):
            known = file.metadata.row_group(group)
            yield Interval(path, first, known.num_rows), known.column(leaf).total_uncompressed_size
            first += known.num_rows


def _cut(found: list[tuple[Interval, int]]) -> Iterator[tuple[Interval, ...]]:
    """Gather adjacent row groups into splits of about ``PIECE_BYTES`` of text."""
    held: list[Interval] = []
    size = 0
    for one, nbytes in found:
        if held and size + nbytes > PIECE_BYTES:
            yield tuple(held)
            held, size = [], 0
        if held and (held[-1].path, held[-1].first + held[-1].rows) == (one.path, one.first):
            held[-1] = Interval(one.path, held[-1].first, held[-1].rows + one.rows)
        else:
            held.append(one)
        size += nbytes
    if held:
        yield tuple(held)
