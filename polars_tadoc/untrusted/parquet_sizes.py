"""How many bytes columns of a Parquet file unfold into, told from their pages before any is decoded.

A file of some kilobytes can stand for terabytes: pages are compressed, runs of equal values stored once, strings by
reference to a dictionary or by what they share with the one before. What a file says of itself as a whole may be
wrong. So pages are looked at one by one: each says how many values it has and how many bytes it is decompressed into,
and readers take no more than that of it. Lengths of strings are added up where there may be too many bytes.

A column that Arrow reads as a dictionary keeps one copy of each value in a row group, and 4 bytes for each row: a
grammar that 60,000 rows share is counted once. Which columns these are is told by the schema that PyArrow reads the
file with, and not by its pages: a String column whose pages refer to a dictionary is read as a string for each row.

Formats: Apache Parquet, ``parquet.thrift`` and ``Encodings.md``; page headers are in Thrift's compact protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from polars_tadoc.kernels.host.grammars import parquet_pages as kernels
from polars_tadoc.runtime.arrow_memory import ARROW_ERRORS
from polars_tadoc.untrusted.parquet_footer import open_parquet
from polars_tadoc.untrusted.thrift import MalformedError, Thrift

WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "INT96": 12, "FLOAT": 4, "DOUBLE": 8, "BYTE_ARRAY": 4}
"""Bytes of a value once it is read; of strings, of where one begins."""

PLAIN, PLAIN_DICTIONARY, DELTA_BYTE_ARRAY, RLE_DICTIONARY = 0, 2, 7, 8
"""Encodings that are told apart."""

DATA, DICTIONARY, DATA_2 = 0, 2, 3
"""Kinds of pages."""

HEADER_BYTES, LONGEST_HEADER = 1 << 10, 1 << 24
"""Bytes that are read for a page's header at first, and at most: values of statistics may stand in it."""

MAX_VALUES = (1 << 31) - 1
"""Largest number that a page's header can say."""

MAX_PAGES = 1 << 20
"""Pages of a chunk that are looked at."""


def decompressed_bytes(source: Any, file: pq.ParquetFile, group: int, leaves: Iterable[int], limit: int) -> int:
    """Tell how many bytes columns of a row group unfold into: no fewer, about as many, or more than the limit.

    Parameters
    ----------
    source
        What the file is read from, a ``pyarrow.NativeFile``.
    file
        The same, opened.
    group
        The row group.
    leaves
        The leaf columns that are to be read.
    limit
        Where it is passed, the rest is not looked at.

    Raises
    ------
    MalformedError
        A page is malformed.

    """
    return _bounded_bytes(lambda: _chunks(source, file, group, leaves), limit)


def decompressed_bytes_of_all(data: bytes, limit: int) -> int:
    """Tell the same of all columns of a file that is held in memory; errors of Arrow where it is none, too."""
    source = pa.BufferReader(data)
    file = open_parquet(source)
    groups, leaves = range(file.num_row_groups), range(file.metadata.num_columns)
    return _bounded_bytes(lambda: (chunk for group in groups for chunk in _chunks(source, file, group, leaves)), limit)


def _chunks(source: Any, file: pq.ParquetFile, group: int, leaves: Iterable[int]) -> Iterator[_Chunk]:
    shared = _read_as_dictionary(file)
    for leaf in leaves:
        yield _Chunk(source, file.metadata.row_group(group).column(leaf), file.schema.column(leaf), shared[leaf])


def _read_as_dictionary(file: pq.ParquetFile) -> list[bool]:
    """Tell of each leaf column whether PyArrow makes a dictionary array of it, wherever it is nested."""
    found = [pa.types.is_dictionary(kind) for field in file.schema_arrow for kind in leaf_types(field.type)]
    count = int(file.metadata.num_columns)
    return found if len(found) == count else [False] * count


def leaf_types(kind: pa.DataType) -> Iterator[pa.DataType]:
    """Give the types of the columns that Parquet stores a type in."""
    if isinstance(kind, pa.BaseExtensionType):
        yield from leaf_types(kind.storage_type)
    elif pa.types.is_nested(kind):
        for place in range(kind.num_fields):
            yield from leaf_types(kind.field(place).type)
    else:
        yield kind


def _bounded_bytes(chunks: Callable[[], Iterator[_Chunk]], limit: int) -> int:
    """Add up bounds that are easy to tell, and where they are too high together, what there is."""
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
    """Bytes once it is decompressed."""
    start: int
    stop: int
    """Its bytes in the file, without the header."""
    values: int
    encoding: int
    levels: int
    """Bytes that stand before what is compressed."""
    is_compressed: bool


class _Chunk:
    """One column of a row group."""

    def __init__(self, source: Any, chunk: Any, column: Any, as_dictionary: bool) -> None:
        self._source, self._chunk, self._column, self._as_dictionary = source, chunk, column, as_dictionary
        self._start = chunk.data_page_offset
        if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
            self._start = min(self._start, chunk.dictionary_page_offset)
        self._lengths: npt.NDArray[np.int64] = np.zeros(0, np.int64)

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
        """Give a bound that is easy to tell, or the sum; no more of it than passes the limit."""
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
        """Tell whether a page may stand for more strings than it has bytes for."""
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

    def _levels_end(self, page: _Page, data: npt.NDArray[np.uint8]) -> int:
        """Find where values begin behind what says which of them are null, and where lists begin."""
        at = 0
        for most in (self._column.max_repetition_level, self._column.max_definition_level):
            if most:
                at += 4 + int.from_bytes(data[at : at + 4].tobytes(), "little")
        if at > len(data):
            raise MalformedError("levels are damaged")
        return at

    def _decompressed(self, page: _Page) -> npt.NDArray[np.uint8]:
        data = self._source.read_at(page.stop - page.start, page.start)[page.levels :]
        if not page.is_compressed or self._chunk.compression == "UNCOMPRESSED":
            return np.frombuffer(data, np.uint8)
        name = self._chunk.compression.lower()
        try:
            codec = pa.Codec("lz4_raw" if name == "lz4" else name)
            return np.frombuffer(codec.decompress(data, decompressed_size=page.size - page.levels), np.uint8)
        except (*ARROW_ERRORS, ValueError) as error:  # the last of a codec that is none
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
        raise MalformedError(f"there are more than {MAX_PAGES:,} pages")

    def _header(self, at: int) -> tuple[dict[int, Any], int]:
        """Read a page's header; returns it and where it ends."""
        size = HEADER_BYTES
        while True:
            data = self._source.read_at(size, at)
            try:
                fields, end = Thrift(data).structure(0, 0)
            except IndexError:
                if len(data) < size or size >= LONGEST_HEADER:
                    raise MalformedError("a page's header is damaged") from None
                size *= 16  # not at once: a file of many such headers would be read many times
                continue
            return fields, at + end


def _page(fields: dict[int, Any], start: int) -> _Page:
    kind, size, compressed = (_count(fields, number) for number in (1, 2, 3))
    about = fields.get({DATA: 5, DICTIONARY: 7, DATA_2: 8}.get(kind, 0), {})
    own = about if isinstance(about, dict) else {}
    levels, is_compressed = 0, True
    if kind == DATA_2:
        encoding, levels, is_compressed = (
            _count(own, 4),
            _count(own, 5) + _count(own, 6),
            own.get(7) is not False,
        )
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
