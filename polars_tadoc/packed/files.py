"""Packed rows in Parquet files: one row group per packed row, so that statistics and reads are per partition."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import field
from itertools import accumulate
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs
import pyarrow as pa

from polars_tadoc.config import settings
from polars_tadoc.errors import InvalidGrammarError, LimitExceededError, NotPackedError
from polars_tadoc.packed.partition import fields_of, is_packed
from polars_tadoc.packed.row_group_pruning import Bounds
from polars_tadoc.runtime.array_types import array_dataclass
from polars_tadoc.runtime.arrow_memory import ARROW_ERRORS, frame_of, not_of_the_file
from polars_tadoc.runtime.cached_property import cached_property
from polars_tadoc.storage.files import File, LocalFile, Ranges, chunk_range
from polars_tadoc.untrusted.parquet_footer import another_reader, open_parquet, without_arrow_types
from polars_tadoc.untrusted.parquet_sizes import decompressed_bytes, leaf_types
from polars_tadoc.untrusted.thrift import MalformedError

SYMBOL_BYTES = 40
"""Approximate bytes that decoding takes per symbol of a grammar and its rows."""


class PackedFile:
    """One Parquet file of packed rows.

    Parameters
    ----------
    file
        The file, or its path.
    content
        Its bytes if it is held in memory; messages then use the path as its name.

    Raises
    ------
    NotPackedError
        The file has no packed column, or several.
    InvalidGrammarError
        The file is no Parquet file, or damaged.
    OSError
        The file is missing or cannot be opened.

    """

    def __init__(self, file: Path | File, content: pa.Buffer | None = None) -> None:
        place = LocalFile(file) if isinstance(file, Path) else file
        self.place = place
        path = place.name
        try:
            opened: tuple[Any, Ranges | None] = (
                (pa.BufferReader(content), None) if content is not None else place.open()
            )
            self._source, self._ranges = opened
            self._file = open_parquet(self._source)
            self.schema = frame_of(pa.Table.from_batches([], self._file.schema_arrow)).schema
        except (*ARROW_ERRORS, MalformedError) as error:
            if not_of_the_file(error):
                raise
            raise InvalidGrammarError(f"{path}: not a Parquet file, or damaged: {_one_line(error)}") from error
        packed = [name for name, dtype in self.schema.items() if is_packed(dtype)]
        if len(packed) != 1:
            raise NotPackedError(
                f"{path}: {len(packed)} packed columns, expected one; pack a file of text with "
                f'pl.scan_parquet("{path.rsplit("/", 1)[-1]}").tadoc.compress(column).tadoc.sink_packed(other), '
                "read a file of compressed rows with pl.scan_parquet"
            )
        self.column = packed[0]
        self._apart = allocate_lock()
        """Held while ranges of an object are read, because prefetching some drops others."""
        self._idle = [self._file]
        """Readers that no thread uses."""

    def __enter__(self) -> PackedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._source.close()

    @property
    def group_count(self) -> int:
        """Number of row groups."""
        return int(self._file.num_row_groups)

    @property
    def row_count(self) -> int:
        """Number of packed rows."""
        return int(self._file.metadata.num_rows)

    def read(self, group: int, names: list[str]) -> pl.DataFrame:
        """Read some columns of a row group, and no byte of any other column.

        Raises
        ------
        InvalidGrammarError
            The row group is damaged.
        LimitExceededError
            It claims to decode to more than ``Config(payload_limit_bytes=)``.

        """
        return self.frame(group, self.table(group, names), names)

    def table(self, group: int, names: list[str]) -> pa.Table:
        """Do the part of :meth:`read` that does not call Polars; several threads may call it."""
        fixed = self._fixed(names)
        with self._damage_named(group), self._apart if fixed or self._ranges is not None else nullcontext():
            self._fetch(group, [leaf for name in names for leaf in self._leaves_of(name)])
            self._require_within_limit(group, names)
            if fixed:
                return self._whole(self._as_stored, group, names)
            with self._reader() as reader:
                return self._whole(reader, group, names)

    def frame(self, group: int, table: pa.Table, names: list[str]) -> pl.DataFrame:
        """Convert columns of :meth:`table` to Polars."""
        with self._damage_named(group):
            frame = frame_of(table)
            if self._fixed(names):
                frame = frame.cast({name: self.schema[name] for name in frame.columns})
        return frame.select(cs.by_name(names, require_all=True))

    def fields(self, group: int, table: pa.Table) -> list[dict[str, Any] | None]:
        """Return the fields of each packed row of :meth:`table`, None for null ones; calls no threads of Polars."""
        with self._damage_named(group):
            return fields_of(table[self.column])

    def _fixed(self, names: list[str]) -> bool:
        return _NO_FIXED_LISTS and any(_holds_fixed_lists(self.schema[name]) for name in names)

    def document_counts(self, group: int) -> list[int]:
        """Count the documents of each packed row of a row group; errors as for :meth:`read`."""
        with self._damage_named(group):
            leaves = [at for at in self._leaves_of(self.column) if self._path(at).startswith(f"{self.column}.valid.")]
            self._fetch(group, leaves)
            path = self._path(leaves[0])
            with self._reader() as reader:
                table = self._whole(reader, group, [path])
            column = table[self.column].combine_chunks()
            lists = column.field(0) if isinstance(column, pa.StructArray) else column.chunk(0).field(0)
            return [len(value or []) for value in lists.to_pylist()]

    def _whole(self, file: Any, group: int, names: list[str]) -> pa.Table:
        """Read some columns of a row group, and check them: Arrow skips pages of unknown types, with their rows."""
        table, rows = file.read_row_group(group, columns=names), self._file.metadata.row_group(group).num_rows
        table.validate(full=True)
        if table.num_rows != rows:
            raise pa.ArrowInvalid(f"columns {names} have {table.num_rows:,} rows, the footer has {rows:,}")
        return table

    @contextmanager
    def _damage_named(self, group: int) -> Iterator[None]:
        """Turn errors of Arrow and Polars into ``InvalidGrammarError`` with the file and the row group."""
        try:
            yield
        except (*ARROW_ERRORS, MalformedError, pl.exceptions.PolarsError) as error:
            if not_of_the_file(error):
                raise
            raise InvalidGrammarError(
                f"{self.place}, row group {group}: the data is damaged: {_one_line(error)}"
            ) from error

    @cached_property
    def _as_stored(self) -> Any:
        """The file without Arrow's types, in Parquet's: lists of a fixed length are plain lists."""
        return without_arrow_types(self._source)

    @contextmanager
    def _reader(self) -> Iterator[Any]:
        """Lend a reader of the open file: PyArrow's readers buffer pages, so no two threads may use the same."""
        try:
            reader = self._idle.pop()
        except IndexError:
            reader = another_reader(self._source, self._file)
        yield reader
        self._idle.append(reader)

    def _path(self, leaf: int) -> str:
        return str(self._file.schema.column(leaf).path)

    def _leaves_of(self, name: str) -> range:
        return range(self._leaves[name], self._leaves[name] + self._counts[name])

    def _fetch(self, group: int, leaves: Sequence[int]) -> None:
        """Prefetch columns of a row group from an object store, in as few requests as possible."""
        if self._ranges is None:
            return
        about = self._file.metadata.row_group(group)
        self._ranges.fetch(chunk_range(about.column(leaf)) for leaf in leaves)

    def grammar_sizes(self, group: int) -> tuple[int, int]:
        """Read from the footer the number of symbols in rows and rules of a row group, and the bytes of its words."""
        start = self._leaves[self.column]
        fields = {field.name: place for place, field in enumerate(self.schema[self.column].fields)}  # type: ignore[attr-defined]
        chunks = self._file.metadata.row_group(group)
        ends = chunks.column(start + fields["document_offsets"])
        if ends.num_values == chunks.num_rows and ends.statistics is not None and ends.statistics.has_min_max:
            symbols = chunks.num_rows * ends.statistics.max  # coded rows have one number there, their symbols
            return symbols, chunks.column(start + fields["vocabulary"]).total_uncompressed_size
        symbols = sum(chunks.column(start + fields[name]).num_values for name in ("symbols", "roots"))
        return symbols, chunks.column(start + fields["vocabulary"]).total_uncompressed_size

    def _require_within_limit(self, group: int, names: list[str]) -> None:
        limit = settings().payload_limit_bytes
        leaves = [leaf for name in names for leaf in self._leaves_of(name)]
        size = decompressed_bytes(self._source, self._file, group, leaves, limit)
        if size > limit:
            raise LimitExceededError(
                f"{self.place}, row group {group}: claims to decode to at least {size:,} bytes, the limit is "
                f"{limit:,}; if the data is trusted, raise it: tadoc.Config(payload_limit_bytes=…)"
            )

    def most_documents(self, group: int) -> int:
        """Read from the footer a bound of a row group's documents: lists count at least one value each."""
        at = next(at for at in self._leaves_of(self.column) if self._path(at).startswith(f"{self.column}.valid."))
        return int(self._file.metadata.row_group(group).column(at).num_values)

    def statistics(self, schema: pl.Schema, names: Iterable[str]) -> Mapping[str, Bounds]:
        """Return the row groups' statistics of document columns.

        Parameters
        ----------
        schema
            Columns of the documents.
        names
            The wanted columns, none of them nested.

        """
        groups = [self._file.metadata.row_group(group) for group in range(self.group_count)]
        known = {}
        for name in names:
            leaf, dtype = self._leaves[name], schema[name]
            known[name] = _bounds([group.column(leaf) for group in groups], dtype, self._understood(name, dtype))
        return known

    def _understood(self, name: str, dtype: pl.DataType) -> bool:
        """Tell whether numbers in the statistics have Polars' units: other writers' units may differ."""
        if not dtype.is_temporal():
            return True
        place = list(self.schema).index(name)
        written = pl.Series([], dtype=dtype).to_arrow(compat_level=pl.CompatLevel.oldest()).type
        return bool(self._file.schema_arrow.field(place).type.value_type == written)

    @cached_property
    def _counts(self) -> dict[str, int]:
        """The number of leaf columns of each column."""
        return {
            name: sum(1 for _ in leaf_types(field.type))
            for name, field in zip(self.schema, self._file.schema_arrow, strict=True)
        }

    @cached_property
    def _leaves(self) -> dict[str, int]:
        """The first leaf column of each column."""
        return dict(zip(self._counts, accumulate(self._counts.values(), initial=0), strict=False))


_NO_FIXED_LISTS = int(pa.__version__.split(".")[0]) < 26
"""PyArrow 25 cannot read lists of a fixed length if one is null."""


def _holds_fixed_lists(dtype: Any) -> bool:
    if isinstance(dtype, pl.Struct):
        return any(_holds_fixed_lists(field.dtype) for field in dtype.fields)
    return isinstance(dtype, pl.Array) or (isinstance(dtype, pl.List) and _holds_fixed_lists(dtype.inner))


@array_dataclass
class RowGroup:
    """One row group of a packed file; calling it reads some columns. Errors as for :meth:`PackedFile.read`."""

    file: PackedFile
    group: int
    shared: Mapping[str, pl.Series] = field(default_factory=dict)
    """Columns with one value in the whole file, taken from its folder names."""

    def __call__(self, names: list[str]) -> pl.DataFrame:
        """Read some columns."""
        own = [name for name in names if name not in self.shared]
        frame = self.file.read(self.group, own) if own else pl.DataFrame()
        if len(own) == len(names):
            return frame
        lists = next((column for column in frame.get_columns() if column.name != self.file.column), None)
        counts = self.file.document_counts(self.group) if lists is None else lists.list.len().to_list()
        return self._with_shared(frame, names, counts)

    def table(self, names: list[str]) -> pa.Table:
        """Read some columns, among them the packed one, without calling Polars; several threads may call it."""
        return self.file.table(self.group, [name for name in names if name not in self.shared])

    def fields(self, table: pa.Table) -> list[dict[str, Any] | None]:
        """Return the fields of each packed row of :meth:`table`, None for null ones; calls no threads of Polars."""
        return self.file.fields(self.group, table)

    def lists(self, table: pa.Table, names: list[str], counts: Sequence[int]) -> pl.DataFrame:
        """Return some columns other than the packed one, given the number of documents of each packed row."""
        own = [name for name in names if name not in self.shared]
        frame = self.file.frame(self.group, table.select(own), own) if own else pl.DataFrame()
        return self._with_shared(frame, names, counts)

    def _with_shared(self, frame: pl.DataFrame, names: list[str], counts: Sequence[int]) -> pl.DataFrame:
        """Put the shared ones of some columns beside those of the file."""
        own = frame.columns
        # names are given again: a list of columns would name one without a name "column_0"
        return pl.DataFrame({name: frame[name] if name in own else _lists(self.shared[name], counts) for name in names})

    @property
    def most_documents(self) -> int:
        """A bound of its documents, from the footer."""
        return self.file.most_documents(self.group)

    @property
    def decoding_bytes(self) -> int:
        """About the bytes that decoding it takes, from the footer."""
        symbols, words = self.file.grammar_sizes(self.group)
        return SYMBOL_BYTES * symbols + words

    @property
    def place(self) -> str:
        """Its name in messages."""
        return f"{self.file.place}, row group {self.group}"


def _lists(value: pl.Series, counts: Sequence[int | None]) -> pl.Series:
    """Repeat one value into lists of the given lengths."""
    lists = [value.new_from_index(0, count or 0).alias("values").implode() for count in counts]
    return pl.concat([pl.Series("values", [], pl.List(value.dtype)), *lists]).alias(value.name)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())  # some of Arrow's messages have several lines


def _bounds(chunks: list[Any], dtype: pl.DataType, understood: bool) -> Bounds:
    """Read the statistics of one leaf by row group; bounds only if their units are known.

    Both the count of a leaf's values and its count of nulls count an empty list as one.
    """
    known = [chunk.statistics for chunk in chunks]
    bounded = [one if understood and one is not None and one.has_min_max else None for one in known]
    nulls = [one.null_count if one is not None and one.has_null_count else None for one in known]
    low, high = _values(bounded, "min", dtype), _values(bounded, "max", dtype)
    if dtype.is_float():  # a value may be NaN, which Polars sorts above all others but statistics leave out
        high = high.clear(len(high))
    return Bounds(low, high, pl.Series(nulls, dtype=pl.Int64), pl.Series([chunk.num_values for chunk in chunks]))


def _values(statistics: list[Any], bound: str, dtype: pl.DataType) -> pl.Series:
    """Turn bounds of statistics into the column's type; null if their units are unknown or there are none."""
    if dtype.is_integer() or dtype in (pl.Boolean, pl.Float32, pl.Float64):
        return pl.Series(_parts(statistics, bound), dtype=dtype, strict=False)
    raw = _parts(statistics, f"{bound}_raw")  # read as text or time they may raise
    if dtype.is_temporal():
        ticks = pl.Series(raw, dtype=pl.Int64, strict=False)
        return (ticks.cast(pl.Int32, strict=False) if dtype == pl.Date else ticks).cast(dtype)
    if dtype == pl.String:
        return pl.Series(map(_text, raw), dtype=pl.String)
    return pl.Series([None] * len(raw), dtype=dtype)


def _text(raw: Any) -> str | None:
    """Decode bytes as text; None where a writer cut a character."""
    try:
        return raw.decode() if isinstance(raw, bytes) else None
    except UnicodeDecodeError:
        return None


def _parts(statistics: list[Any], name: str) -> list[Any]:
    return [None if one is None else getattr(one, name) for one in statistics]
