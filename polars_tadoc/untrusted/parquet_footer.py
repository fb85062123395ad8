"""Opens Parquet files after checking every field of the footer that PyArrow reads.

PyArrow parses a column's metadata only on access, and a fault there is an uncaught C++ exception that ends the process.
So this module parses all of it first.

Format: Apache Parquet, ``parquet.thrift``.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from polars_tadoc.untrusted.parquet_seal import require_whole
from polars_tadoc.untrusted.thrift import List, MalformedError, Thrift

KINDS = {"BOOLEAN": 0, "INT32": 1, "INT64": 2, "INT96": 3, "FLOAT": 4, "DOUBLE": 5, "BYTE_ARRAY": 6}
"""Numbers of physical types; the type without a name is 7."""

LEAST = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8, 6: 0}
"""Bytes of a minimum or maximum in statistics, by type."""

NUMBERS, INTEGERS, BYTES, STRUCTURES = 5, 6, 8, 12
"""Thrift types of list elements: i32, i64, binary, struct."""


def open_parquet(source: pa.NativeFile) -> pq.ParquetFile:
    """Open a file and check the footer's metadata of its columns; pages are checked when they are read.

    Raises
    ------
    MalformedError
        The footer is damaged.
    pyarrow.ArrowException, OSError, UnicodeDecodeError
        It is not a Parquet file.

    """
    file = pq.ParquetFile(source, page_checksum_verification=True)
    size = source.size()
    length = int.from_bytes(source.read_at(4, size - 8), "little")
    try:
        data = source.read_at(length, size - 8 - length)
        require_whole(data)
        footer, _ = Thrift(data).structure(0, 0)
    except IndexError:
        raise MalformedError("the footer is truncated") from None
    _require_lists(footer, {2: STRUCTURES, 4: STRUCTURES, 5: STRUCTURES, 7: STRUCTURES})
    columns = [file.schema.column(place) for place in range(len(file.schema))]
    for group in footer.get(4, []):
        _require_lists(group, {1: STRUCTURES, 4: STRUCTURES})
        chunks = group.get(1, [])
        if len(chunks) != len(columns):
            raise MalformedError(f"a row group has {len(chunks)} columns, the file has {len(columns)}")
        for chunk, column in zip(chunks, columns, strict=True):
            _require_sound(chunk, column)
    return file


def another_reader(source: pa.NativeFile, file: pq.ParquetFile) -> pq.ParquetFile:
    """Open a file again after :func:`open_parquet`, without reading its footer, for another thread."""
    return pq.ParquetFile(source, metadata=file.metadata, page_checksum_verification=True)


def without_arrow_types(source: pa.NativeFile) -> pq.ParquetFile:
    """Open a file again after :func:`open_parquet`, with its columns in Parquet's own types."""
    size = source.size()
    length = int.from_bytes(source.read_at(4, size - 8), "little")
    data = source.read_at(length + 8, size - 8 - length)
    other = data.replace(b"ARROW:schema", b"ARROW-schema")  # a key of the same length that no reader knows
    metadata = pq.read_metadata(pa.BufferReader(b"PAR1" + other))
    return pq.ParquetFile(source, metadata=metadata, page_checksum_verification=True)


def _require_sound(chunk: dict[int, Any], column: Any) -> None:
    """Check the metadata of a column chunk; it must not be encrypted."""
    about = chunk.get(3)
    if not isinstance(about, dict) or 8 in chunk or 9 in chunk:
        raise MalformedError(f"column {column.path}: metadata is missing or encrypted")
    _require_lists(about, {2: NUMBERS, 3: BYTES, 8: STRUCTURES, 13: STRUCTURES})
    kind = KINDS.get(column.physical_type, 7)
    if about.get(1) != kind:
        raise MalformedError(f"column {column.path}: a row group has another type")
    statistics, sizes = about.get(12, {}), about.get(16, {})
    for bound in (1, 2, 5, 6):
        value = statistics.get(bound, b"") if isinstance(statistics, dict) else b""
        if isinstance(value, bytes) and 0 < len(value) < LEAST.get(kind, column.length):
            raise MalformedError(f"column {column.path}: statistics do not have the column's type")
    if isinstance(sizes, dict):
        _require_sizes(sizes, kind, column)
    if isinstance(about.get(17), dict):
        _require_lists(about[17], {2: NUMBERS})


def _require_sizes(sizes: dict[int, Any], kind: int, column: Any) -> None:
    _require_lists(sizes, {2: INTEGERS, 3: INTEGERS})
    levels = {2: column.max_repetition_level, 3: column.max_definition_level}
    if (1 in sizes and kind != 6) or any(len(sizes.get(at, [])) not in (0, most + 1) for at, most in levels.items()):
        raise MalformedError(f"column {column.path}: size statistics do not fit the column")


def _require_lists(fields: dict[int, Any], kinds: dict[int, int]) -> None:
    """Check the element types of lists: readers do not."""
    for number, kind in kinds.items():
        found = fields.get(number)
        if found is not None and not (isinstance(found, List) and (not found or found.kind == kind)):
            raise MalformedError("a list in the footer has elements of another type")
