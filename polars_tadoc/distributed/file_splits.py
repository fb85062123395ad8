"""The files of a call as pieces that any worker can read: row groups of packed files, or stretches of text."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

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
from polars_tadoc.packed.unpack import unpacked_schema
from polars_tadoc.runtime.regular_file import arrow_file, open_regular
from polars_tadoc.storage.find import Source, find_files
from polars_tadoc.untrusted.parquet_footer import open_parquet
from polars_tadoc.untrusted.thrift import MalformedError

PIECE_BYTES = 1 << 27
"""Text of one piece, about: many pieces of a large corpus, and yet long enough to compress well."""

MAX_ROWS = 1 << 32
"""Results number rows in 32 bits."""


@dataclass(frozen=True)
class Stretch:
    """Rows of a file.

    Parameters
    ----------
    path
        The file.
    first, rows
        The first of them, and how many they are; of a packed file the number of its row group, and the documents.

    """

    path: Path
    first: int
    rows: int


@dataclass(frozen=True)
class Piece:
    """What one task reads.

    Parameters
    ----------
    stretches
        One after another.
    first_row
        Number of the first row among those of all pieces.

    """

    stretches: tuple[Stretch, ...]
    first_row: int

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(one.rows for one in self.stretches)

    def __str__(self) -> str:
        one, *more = self.stretches
        return f"{one.path} from row {one.first:,}" + (f" and {len(more)} more files" if more else "")


@dataclass(frozen=True)
class PackedPiece(Piece):
    """A row group of packed rows."""

    def __str__(self) -> str:
        return f"{self.stretches[0].path}, row group {self.stretches[0].first}"


@dataclass(frozen=True)
class Files:
    """All that a call reads.

    Parameters
    ----------
    schema
        Columns of the rows, the packed one of type ``tadoc.DTYPE``.
    column
        The column asked about.
    packed
        Whether the files hold packed rows, else text.
    first
        The first of them.
    pieces
        The rows, in order.

    """

    schema: pl.Schema
    column: str
    packed: bool
    first: Path
    pieces: tuple[Piece, ...]

    @classmethod
    def find(cls, source: Source, column: str | None, call: str) -> Files:
        """List the rows of files.

        Parameters
        ----------
        source
            As for ``scan_packed``.
        column
            The column asked about; may be left out for packed files.
        call
            For messages.

        Raises
        ------
        FileNotFoundError, TypeError, ValueError, OSError
            The source names no Parquet files, or they cannot be read.
        ColumnMissingError, NotCompressedError, NotPackedError
            The files have no such column, or it is neither packed nor text.
        SchemaError
            Their columns differ in more than their order.
        LimitExceededError
            They have more rows than results can number.

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
            cut: Iterator[tuple[Stretch, ...]] = ((one,) for path in paths for one in _row_groups(path, own, call))
        else:
            if column is None:
                raise NotCompressedError(
                    f'{call}: {paths[0]} has no packed column; name the column of text: workers.{call}(source, "text")'
                )
            schema = first
            for path in paths:
                own = _schema_of(path, call)
                if any(map(is_packed, own.values())):
                    raise NotCompressedError(f"{call}: {paths[0]} holds text, {path} packed rows; ask about one kind")
                string_column(own, column, f"{call}: {path}")
                _require_same(own, first, path, call)
            cut = _cut([one for path in paths for one in _text_stretches(path, column)])
        pieces: list[Piece] = []
        row = 0
        for stretches in cut:
            piece = (PackedPiece if packed else Piece)(stretches, row)
            pieces.append(piece)
            row += piece.rows
        if row > MAX_ROWS:
            raise LimitExceededError(f"{call}: the files have {row:,} rows; results number {MAX_ROWS:,} at most")
        return cls(schema, column, packed, paths[0], tuple(pieces))

    def of(self, piece: Piece) -> Files:
        """Leave out the other pieces: what a task is sent with."""
        return replace(self, pieces=(piece,))

    def require_labels(self, name: str | None, call: str) -> pl.DataType | None:
        """Return the type of the column that labels rows, if there is one; errors as ``label_column``'s."""
        if name is None:
            return None
        if self.packed and name == self.column:
            raise ValueError(f'{call}: id="{name}" is the packed column itself; name another one, or leave id= out')
        return self.schema[label_column(self.schema, name, call)]

    def read(self, piece: Piece, names: Sequence[str] | None = None) -> pl.DataFrame:
        """Read rows of text files; all columns by default."""
        frames = []
        for one in piece.stretches:
            rows = pl.scan_parquet(one.path, glob=False).slice(one.first, one.rows)
            wanted = cs.by_name(list(self.schema) if names is None else names, require_all=True)
            with _naming(one.path):
                frames.append(rows.select(wanted).collect())
            if frames[-1].width and frames[-1].height != one.rows:
                raise InvalidGrammarError(f"{one.path}: it was replaced while it was read; ask again")
        return pl.concat(frames)

    @property
    def nothing(self) -> Piece:
        """A piece of text without rows."""
        return Piece((Stretch(self.first, 0, 0),), 0)

    def labels(self, piece: Piece, name: str) -> pl.Series:
        """Read what rows are called."""
        if not self.packed:
            return self.read(piece, [name])[name]
        values = []
        for one in piece.stretches:
            with PackedFile(one.path) as file:
                lists = file.read(one.first, [name])[name]
                values.append(lists.alias("values").explode(empty_as_null=False, keep_nulls=False))
        return pl.concat(values).alias(name)

    def corpora(self, piece: Piece) -> Iterator[Corpus]:
        """Read packed documents; ``Corpus.rows`` are the numbers among those of all pieces.

        Raises
        ------
        InvalidGrammarError
            The file is damaged, or has not the documents that it was thought to have.

        """
        row = piece.first_row
        for one in piece.stretches:
            with PackedFile(one.path) as file:
                packed = file.read(one.first, [self.column])[self.column]
            for place in range(len(packed)):
                partition = partition_at(packed, place, cached=False)
                if partition is not None:
                    yield partition.corpus(row)
                    row += partition.document_count
        if row != piece.first_row + piece.rows:
            raise InvalidGrammarError(
                f"{piece}: it says that it holds {piece.rows:,} documents, but has {row - piece.first_row:,}"
            )


def _paths(source: Source, call: str) -> list[Path]:
    if isinstance(source, pl.DataFrame | pl.LazyFrame):
        raise TypeError(f"{call}: workers read Parquet files: give their paths, not a {type(source).__name__}")
    return [Path(os.path.abspath(path)) for path in find_files(source, call)]  # workers are where they were started


def _schema_of(path: Path, call: str) -> pl.Schema:
    with _naming(f"{call}: {path}"), open_regular(path) as file:
        return pl.Schema(pl.read_parquet_schema(file))


@contextmanager
def _naming(place: object) -> Iterator[None]:
    """Say which file it is that cannot be read."""
    try:
        yield
    except (MalformedError, pa.ArrowException, UnicodeDecodeError, ComputeError) as error:
        raise InvalidGrammarError(f"{place}: not a Parquet file, or damaged: {error}") from error
    except PolarsError as error:
        raise type(error)(f"{place}: {error}") from error


def _require_same(own: pl.Schema, first: pl.Schema, path: Path, call: str) -> None:
    """Raise ``SchemaError`` where a file's columns differ from the first one's in more than their order."""
    differing = [name for name in {**first, **own} if first.get(name) != own.get(name)]
    if differing:
        shown = "; ".join(
            f'"{name}" is {short_dtype(own.get(name))}, in the first file {short_dtype(first.get(name))}'
            for name in differing
        )
        raise SchemaError(
            f"{call}: the columns of {path} differ from those of the first file: {shown}; ask about files of one kind"
        )


def _row_groups(path: Path, first: pl.Schema, call: str) -> Iterator[Stretch]:
    """List the row groups of a packed file, with their documents; whether that is so is seen when they are read."""
    with PackedFile(path) as file, arrow_file(path) as content, open_parquet(content) as parquet:
        _require_same(file.schema, first, path, call)
        leaf = _leaf(parquet, f"{file.column}.valid.")
        for group in range(file.group_count):
            known = parquet.metadata.row_group(group)
            documents = known.column(leaf).num_values
            if known.num_rows != 1 or documents < 2:  # an empty or null list counts as one value
                packed = file.read(group, [file.column])[file.column]
                documents = int(packed.struct.field("valid").list.len().sum())
            yield Stretch(path, group, documents)


def _leaf(file: pq.ParquetFile, start: str) -> int:
    """Find the first leaf column whose path begins so."""
    return next(place for place in range(len(file.schema)) if file.schema.column(place).path.startswith(start))


def _text_stretches(path: Path, column: str) -> Iterator[tuple[Stretch, int]]:
    """List the row groups of a file with the bytes of their text."""
    with _naming(path), arrow_file(path) as content, open_parquet(content) as file:
        leaf = next(place for place in range(len(file.schema)) if file.schema.column(place).path == column)
        first = 0
        for group in range(file.num_row_groups):
            known = file.metadata.row_group(group)
            yield Stretch(path, first, known.num_rows), known.column(leaf).total_uncompressed_size
            first += known.num_rows


def _cut(found: list[tuple[Stretch, int]]) -> Iterator[tuple[Stretch, ...]]:
    """Gather row groups that stand together to about ``PIECE_BYTES`` of text."""
    held: list[Stretch] = []
    size = 0
    for one, nbytes in found:
        if held and size + nbytes > PIECE_BYTES:
            yield tuple(held)
            held, size = [], 0
        if held and (held[-1].path, held[-1].first + held[-1].rows) == (one.path, one.first):
            held[-1] = Stretch(one.path, held[-1].first, held[-1].rows + one.rows)
        else:
            held.append(one)
        size += nbytes
    if held:
        yield tuple(held)
