"""Streams partitions to one Parquet file, one row group each."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Any, BinaryIO, TypedDict

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from polars_tadoc.packed.coded import VERSION, coded
from polars_tadoc.runtime.option_signature import Default, ProgressOption
from polars_tadoc.runtime.plain_name import plain
from polars_tadoc.runtime.process.interpreter_exit import left_on_interrupt
from polars_tadoc.storage.object_store import Access
from polars_tadoc.storage.polled_file import PolledFile
from polars_tadoc.storage.writing import Place, writing
from polars_tadoc.untrusted.parquet_seal import announce, seal

ENCODINGS = {
    "vocabulary": "DELTA_BYTE_ARRAY",
    "rule_offsets": "DELTA_BINARY_PACKED",
    "symbols": "BYTE_STREAM_SPLIT",
    "level_offsets": "DELTA_BINARY_PACKED",
    "gap_vocabulary": "DELTA_BYTE_ARRAY",
    "predicted_gaps": "BYTE_STREAM_SPLIT",
    "document_offsets": "DELTA_BINARY_PACKED",
    "roots": "BYTE_STREAM_SPLIT",
    "gaps": "PLAIN",
}
"""Encoding of lists before zstd; it saves a tenth to a fifth of the file compared with plain encoding."""

LEVELS = {"vocabulary": 9, "gaps": 9, "predicted_gaps": 9}
"""Levels of zstd above 3: these fields gain 1 to 5 % of the file, and are read as fast."""

EFFORTS = ("default", "small")
SMALL_ENCODINGS = {**ENCODINGS, "vocabulary": "DELTA_LENGTH_BYTE_ARRAY", "level_offsets": "BYTE_STREAM_SPLIT"}
CODED_ENCODINGS = {"roots": "PLAIN"}
"""Encodings of streams of coded rows that differ from those of numbers."""
SMALL_STRINGS = ("vocabulary", "gap_vocabulary")
"""For ``effort="small"``, these are compressed by zstd, or by Brotli if that is clearly smaller."""
SMALL_CODECS = {"brotli": 11, "zstd": 19}
BROTLI_SAVES = 0.06
"""Share of the bytes from which Brotli is used: it takes three times as long to decompress."""
SMALL_SAMPLE = 1 << 20
"""Bytes of the first row by which the codec is chosen."""


class Effort(TypedDict, total=False):
    """How small packed files are."""

    effort: Annotated[str, Default("default")]


class ObjectStoreOptions(TypedDict, total=False):
    """Access to an object store."""

    storage_options: Annotated[Mapping[str, Any] | None, Default(None)]
    credential_provider: Annotated[Any, Default("auto")]


class PackedFileOptions(Effort, ProgressOption, ObjectStoreOptions, total=False):
    """Options of calls that write a packed file."""


def write_packed(
    rows: Iterable[pl.DataFrame],
    schema: pl.Schema,
    column: str,
    place: Place,
    call: str = "write_packed",
    access: Access | None = None,
    effort: str = "default",
) -> None:
    """Write packed rows, one row group each, as an atomic write: the file appears only when it is complete.

    ``schema`` has the columns of ``rows``, ``column`` is the packed one. An existing file is replaced and keeps its
    mode, a link is followed. Messages start with ``call``. With ``effort="small"``, symbols are coded.

    Raises
    ------
    OSError
        The path is a folder or device, or its folder does not exist; raised before any row is read.
    TypeError
        A column has a type that Parquet lacks.
    ValueError
        A column's name has a NUL, which Arrow cannot store, or ``effort`` is unknown.

    """
    if effort not in EFFORTS:
        raise ValueError(f'{call}: effort={effort!r}: use "default" or "small"')
    for name, dtype in schema.items():
        if "\0" in name:
            raise ValueError(f"{call}: column name {name!r} has a NUL, which no Arrow schema can; rename the column")
        if _holds_wide_integers(dtype):
            raise TypeError(f'{call}: column "{name}" is {dtype}; Parquet has no 128-bit integers; cast it')
    with writing(place, call, access or Access()) as temporary:
        write_rows(rows, schema, column, temporary, effort)


def write_rows(
    rows: Iterable[pl.DataFrame], schema: pl.Schema, column: str, file: Path | BinaryIO, effort: str = "default"
) -> None:
    """Write packed rows to an existing file, or in memory; parameters as for :func:`write_packed`."""
    empty = pl.DataFrame(schema=schema).to_arrow(compat_level=pl.CompatLevel.oldest())
    leaves = Counter(_leaves(empty))
    others = [leaf for leaf in leaves if not leaf.startswith(f"{column}.")]
    rows = iter(rows)
    first = list(islice(rows, 1))
    is_small = effort == "small"
    if is_small:
        first = [_coded(row, column) for row in first]
    own = ENCODINGS
    if is_small:
        is_coded = any((plain(row[column]).struct.field("version") == VERSION).any() for row in first)
        own = {**SMALL_ENCODINGS, **(CODED_ENCODINGS if is_coded else {})}
    encodings = {f"{column}.{name}.list.element": encoding for name, encoding in own.items()}
    encodings.update({f"{name}.list.element": "DELTA_BINARY_PACKED" for row in first for name in _distinct(row)})
    # "text.gaps" may be a column beside "text": where two leaves share a path, no encoding suits both
    encodings = {leaf: encoding for leaf, encoding in encodings.items() if leaves[leaf] == 1}
    chosen = _small_codecs(first, column) if is_small else {name: ("zstd", level) for name, level in LEVELS.items()}
    codecs = {f"{column}.{name}.list.element": codec for name, codec in chosen.items()}
    counts = [f"{column}.document_offsets.list.element"] if is_small else []  # coded rows have their symbols there
    with (
        PolledFile(file) if isinstance(file, Path) else nullcontext(file) as opened,
        pq.ParquetWriter(
            opened,
            empty.schema,
            compression={leaf: codecs.get(leaf, ("zstd", 3))[0] for leaf in leaves},
            compression_level={leaf: codecs.get(leaf, ("zstd", 3))[1] for leaf in leaves},
            use_dictionary=[leaf for leaf in others if leaf not in encodings],
            write_statistics=[*others, *counts],
            column_encoding=encodings,
            write_page_checksum=True,
        ) as writer,
    ):
        announce(writer)
        for frame in chain(first, (_coded(row, column) if is_small else row for row in rows)):
            _write(writer, frame.to_arrow(compat_level=pl.CompatLevel.oldest()))
    seal(file)


def _write(writer: pq.ParquetWriter, rows: pa.Table) -> None:
    """Write rows: PyArrow compresses a list of a row in one piece.

    A thread that was left behind ends with its next write, because the file is closed then.
    """
    try:
        left_on_interrupt(partial(writer.write_table, rows, row_group_size=1))
    except BaseException:
        writer.is_open = False  # a thread that was left behind may use it: closing it would crash
        raise


def _coded(row: pl.DataFrame, column: str) -> pl.DataFrame:
    return row.with_columns(coded(row[column]))


def _small_codecs(rows: list[pl.DataFrame], column: str) -> dict[str, tuple[str, int]]:
    """Choose codecs and levels of fields by the first row."""
    chosen = dict.fromkeys(("gaps", "predicted_gaps"), ("zstd", SMALL_CODECS["zstd"]))
    for name in SMALL_STRINGS:
        cells = [row[column].alias("packed").struct.field(name).explode() for row in rows]
        sample = "".join(text for cell in cells for text in cell.drop_nulls()).encode()[:SMALL_SAMPLE]
        sizes = {item: left_on_interrupt(partial(_size, *item, sample)) for item in SMALL_CODECS.items()}
        brotli, zstd = sizes.items()
        chosen[name] = brotli[0] if brotli[1] < (1 - BROTLI_SAVES) * zstd[1] else zstd[0]
    return chosen


def _size(codec: str, level: int, sample: bytes) -> int:
    return len(pa.Codec(codec, level).compress(sample, asbytes=True))


def _distinct(row: pl.DataFrame) -> Iterator[str]:
    """Name the columns of numbers or times that seldom repeat: a dictionary would be longer than the values."""
    for series in row.get_columns():
        dtype = series.dtype.inner if isinstance(series.dtype, pl.List) else None
        if isinstance(dtype, pl.DataType) and (dtype.is_integer() or dtype.is_temporal()):
            values = plain(series).explode()
            if 2 * values.n_unique() > len(values):
                yield series.name


def _holds_wide_integers(dtype: Any) -> bool:
    if isinstance(dtype, pl.Struct):
        return any(_holds_wide_integers(field.dtype) for field in dtype.fields)
    return dtype in (pl.Int128, pl.UInt128) or (dtype.is_nested() and _holds_wide_integers(dtype.inner))


def _leaves(empty: pa.Table) -> list[str]:
    """Return paths of the Parquet columns that a table is written as."""
    file = io.BytesIO()
    pq.write_table(empty, file)
    leaves = pq.ParquetFile(file).schema
    return [leaves.column(place).path for place in range(len(leaves))]
