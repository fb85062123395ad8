"""Computes the decoded size of columns of a Parquet file from their pages, before any is decoded.

A file of some kilobytes can decode to terabytes: pages are compressed, runs of equal values are stored once, strings
are stored as references to a dictionary or as suffixes of the previous one. The file's own totals may be wrong. So each
page is checked: its header gives the number of values and the decompressed bytes, and readers allocate no more than
that. Lengths of strings are summed if their bound is too high.

A column that Arrow reads as a dictionary keeps one copy of each value per row group, and 4 bytes per row: a grammar
that 60,000 rows share is counted once. The schema that PyArrow reads the file with decides which columns these are, not
the pages: a String column whose pages refer to a dictionary is read as one string per row.

Formats: Apache Parquet, ``parquet.thrift`` and ``Encodings.md``; page headers are in Thrift's compact protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from polars_tadoc.kernels.host.grammars import parquet_pages as kernels
from polars_tadoc.runtime.array_types import Int64, UInt8
from polars_tadoc.runtime.arrow_memory import ARROW_ERRORS
from polars_tadoc.untrusted.parquet_footer import open_parquet
from polars_tadoc.untrusted.thrift import MalformedError, Thrift

WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 4}
"""Bytes of a decoded value; for strings, of their offset."""

PLAIN, PLAIN_DICTIONARY, DELTA_BYTE_ARRAY, RLE_DICTIONARY = 0, 2, 7, 8
"""Encodings that need different sums."""

DATA, DICTIONARY, DATA_2 = 0, 2, 3
"""Page types."""

HEADER_BYTES, LONGEST_HEADER = 1 << 10, 1 << 24
"""Initial and maximum bytes read for a page header, which may hold values of statistics."""

MAX_VALUES = (1 << 31) - 1
"""Largest number in a page header."""

MAX_PAGES = 1 << 20
"""Maximum pages read per column chunk."""


def decompressed_bytes(source: Any, file: pq.ParquetFile, group: int, leaves: Iterable[int], limit: int) -> int:
    """Return the decoded bytes of columns of a row group: never too few, and near the truth or above the limit.

    Parameters
    ----------
    source
        The file's bytes, a ``pyarrow.NativeFile``.
    file
        The same, opened.
    group
        The row group.
    leaves
        The leaf columns to read.
    limit
        The sum stops when it exceeds this.

    Raises
    ------
    MalformedError
        A page is malformed.

    """
    return _bounded_bytes(lambda: _chunks(source, file, group, leaves), limit)


def decompressed_bytes_of_all(data: bytes, limit: int) -> int:
    """Return the same for all columns of a file in memory; also raises Arrow's errors if it is not a Parquet file."""
    source = pa.BufferReader(data)
    file = open_parquet(source)
    groups, leaves = range(file.num_row_groups), range(file.metadata.num_columns)
    return _bounded_bytes(lambda: (chunk for group in groups for chunk in _chunks(source, file, group, leaves)), limit)


def _chunks(source: Any, file: pq.ParquetFile, group: int, leaves: Iterable[int]) -> Iterator[_Chunk]:
    shared = _read_as_dictionary(file)
    for leaf in leaves:
        yield _Chunk(source, file.metadata.row_group(group).column(leaf), file.schema.column(leaf), shared[leaf])


def _read_as_dictionary(file: pq.ParquetFile) -> list[bool]:
    """Tell for each leaf column whether PyArrow reads it as a dictionary array, at any nesting."""
    found = [pa.types.is_dictionary(kind) for field in file.schema_arrow for kind in leaf_types(field.type)]
    count = int(file.metadata.num_columns)
    return found if len(found) == count else [False] * count


def leaf_types(kind: pa.DataType) -> Iterator[pa.DataType]:
    """Yield the types of the leaf columns that Parquet stores a type in."""
    if isinstance(kind, pa.BaseExtensionType):
        yield from leaf_types(kind.storage_type)
    elif pa.types.is_nested(kind):
        for place in range(kind.num_fields):
            yield from leaf_types(kind.field(place).type)
    else:
        yield kind


def _bounded_bytes(chunks: Callable[[], Iterator[_Chunk]], limit: int) -> int:
    """Add up bounds that are cheap to compute; if they exceed the limit, compute exact sizes."""
    total = 0
    for exactly in (False, True):
        total = 0
        for chunk in chunks():
            total += chunk.decompressed_bytes(limit - total, exactly)
            if total > limit:
                break
        else:
            break
    return total


@dataclass(frozen=True)
class _Page:
    kind: int
    size: int
    """Decompressed bytes."""
    start: int
    stop: int
    """Position of its bytes in the file, without the header."""
    values: int
    encoding: int
    levels: int
    """Bytes of uncompressed levels before the compressed part."""
    is_compressed: bool


class _Chunk:
    """One column chunk."""

    def __init__(self, source: Any, chunk: Any, column: Any, as_dictionary: bool) -> None:
        self._source, self._chunk, self._column, self._as_dictionary = source, chunk, column, as_dictionary
        self._start = chunk.data_page_offset
        if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
            self._start = min(self._start, chunk.dictionary_page_offset)
        self._lengths: Int64 = np.zeros(0, np.int64)

    def decompressed_bytes(self, limit: int, exactly: bool) -> int:
        width = WIDTHS.get(self._chunk.physical_type, self._column.length)
        fixed = decompressed = 0
        pages = []
        for page in self._pages():
            decompressed += page.size
            fixed += width * page.values if page.kind != DICTIONARY else 0
            if max(fixed, decompressed) > limit:
                return max(fixed, decompressed)
            pages.append(page)
        if self._chunk.physical_type != "BYTE_ARRAY":
            return max(fixed, decompressed)
        return max(fixed + self._string_bytes(pages, limit, exactly), decompressed)

    def _string_bytes(self, pages: list[_Page], limit: int, exactly: bool) -> int:
        """Return a cheap bound, or the exact sum, which stops at the limit."""
        longest = sum(page.size for page in pages)
        repeating = [page for page in pages if page.kind != DICTIONARY and self._repeats(page)]
        others = sum(page.size for page in pages if page not in repeating)
        if not exactly:
            return others + sum(page.values * longest for page in repeating)
        for page in pages:
            if page.kind == DICTIONARY:
                self._lengths = np.zeros(min(page.values, page.size // 4), np.int64)
                if not kernels.plain_lengths(self._decompressed(page), self._lengths):
                    raise MalformedError("a dictionary is damaged")
        total = others
        for page in repeating:
            total += self._sum(page)
            if total > limit:
                break
        return total

    def _repeats(self, page: _Page) -> bool:
        """Tell whether a page may have more strings than its bytes can hold."""
        refers = page.encoding in (PLAIN_DICTIONARY, RLE_DICTIONARY) and not self._as_dictionary
        return refers or page.encoding == DELTA_BYTE_ARRAY

    def _sum(self, page: _Page) -> int:
        data = self._decompressed(page)
        if page.kind == DATA:
            data = data[self._levels_end(page, data) :]
        if page.encoding == DELTA_BYTE_ARRAY:
            shared = int(kernels.delta_total(data, page.values))
            total = -1 if shared < 0 else shared + page.size
        else:
            total = int(kernels.dictionary_total(data, self._lengths, page.values))
        if total < 0:
            raise MalformedError("lengths of strings are damaged")
        return total

    def _levels_end(self, page: _Page, data: UInt8) -> int:
        """Return the start of values, after the definition and repetition levels."""
        at = 0
        for most in (self._column.max_repetition_level, self._column.max_definition_level):
            if most:
                at += 4 + int.from_bytes(data[at : at + 4].tobytes(), "little")
        if at > len(data):
            raise MalformedError("levels are damaged")
        return at

    def _decompressed(self, page: _Page) -> UInt8:
        data = self._source.read_at(page.stop - page.start, page.start)[page.levels :]
        if not page.is_compressed or self._chunk.compression == "UNCOMPRESSED":
            return np.frombuffer(data, np.uint8)
        name = self._chunk.compression.lower()
        try:
            codec = pa.Codec("lz4_raw" if name == "lz4" else name)
            return np.frombuffer(codec.decompress(data, decompressed_size=page.size - page.levels), np.uint8)
        except (*ARROW_ERRORS, ValueError) as error:  # the last for an unknown codec
            raise MalformedError(str(error)) from error

    def _pages(self) -> Iterator[_Page]:
        at, stop = self._start, self._start + self._chunk.total_compressed_size
        left = self._chunk.num_values
        for _ in range(MAX_PAGES):
            if at >= stop or left <= 0:
                return
            fields, start = self._header(at)
            page = _page(fields, start)
            at = page.stop
            if page.kind in (DATA, DATA_2):
                left -= page.values
            if page.kind in (DATA, DICTIONARY, DATA_2):
                yield page
        raise MalformedError(f"a column chunk has more than {MAX_PAGES:,} pages")

    def _header(self, at: int) -> tuple[dict[int, Any], int]:
        """Read a page header; return it and its end."""
        size = HEADER_BYTES
        while True:
            data = self._source.read_at(size, at)
            try:
                fields, end = Thrift(data).structure(0, 0)
            except IndexError:
                if len(data) < size or size >= LONGEST_HEADER:
                    raise MalformedError("a page's header is damaged") from None
                size *= 16  # growing: a file with many such headers would otherwise be read many times
                continue
            return fields, at + end


def _page(fields: dict[int, Any], start: int) -> _Page:
    kind, size, compressed = (_count(fields, number) for number in (1, 2, 3))
    about = fields.get({DATA: 5, DICTIONARY: 7, DATA_2: 8}.get(kind, 0), {})
    own = about if isinstance(about, dict) else {}
    levels, is_compressed = 0, True
    if kind == DATA_2:
        encoding, levels, is_compressed = (_count(own, 4), _count(own, 5) + _count(own, 6), own.get(7) is not False)
    else:
        encoding = _count(own, 2)
    if levels > min(size, compressed):
        raise MalformedError("levels are damaged")
    return _Page(kind, size, start, start + compressed, _count(own, 1), encoding, levels, is_compressed)


def _count(fields: dict[int, Any], number: int) -> int:
    found = fields.get(number, 0)
    if type(found) is not int or not 0 <= found <= MAX_VALUES:
        raise MalformedError("a page's header is damaged")
    return found
