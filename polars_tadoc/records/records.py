"""What analytics find, as sorted tables of numbers over sorted words: the form that is spilled, sent and merged.

Every partial result of every analytic has this form, so that beyond one memory, one GPU or one machine there is one way
to write, split, send and merge all of them. Words are numbered in code point order. A mapping from one part's words to
those of all parts therefore rises, and sorted records stay sorted when their words are numbered anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from polars_tadoc.config import one_thread
from polars_tadoc.errors import InvalidRecordsError
from polars_tadoc.kernels.host.records.records import hash_words, mark
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.records.labelled_results import lists, to_arrow
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.arrow_memory import view
from polars_tadoc.runtime.parallel import even_chunks, map_parallel

Kind = Literal["word", "row", "query"]

VERSION = b"1"
"""Of what :func:`encode` writes."""

_SCHEMA = pa.schema(
    [
        pa.field("words", pa.large_list(pa.large_string())),
        pa.field("keys", pa.large_list(pa.uint32())),
        pa.field("counts", pa.large_list(pa.uint64())),
        pa.field("rows", pa.large_list(pa.uint32())),
        pa.field("lengths", pa.large_list(pa.uint64())),
    ]
)


@dataclass(frozen=True)
class Layout:
    """What the numbers of an analytic's records mean."""

    columns: tuple[Kind, ...]
    """What each column of ``Records.keys`` holds: a word's number, a row's, or a query's (of a set all parts share)."""
    group: int
    """Records that agree in so many leading columns make one row of the result, or one document of it, and must not be
    torn apart: 1 where a word has a list of rows, n where a sequence has one."""
    counted: bool = True
    """Whether records have counts; those of equal records are added."""
    by_count: bool = False
    """Whether results are in the order of falling counts, equal ones in that of keys; else in that of keys."""
    documents: bool = False
    """Whether rows that are there count even where they have no record, and how many words each has."""

    @property
    def are_words(self) -> list[bool]:
        """Whether each column holds numbers of words."""
        return [kind == "word" for kind in self.columns]


def word_columns(count: int) -> tuple[Kind, ...]:
    """So many columns of words, for layouts."""
    column: Kind = "word"
    return (column,) * count


@dataclass(frozen=True, eq=False)
class Records:
    """Sorted records of an analytic."""

    words: pa.LargeStringArray
    """Distinct words in code point order; a word's number is its place here. Some may be in no record."""
    keys: UInt32
    """uint32[records, columns]: distinct, in lexicographic order; columns as ``Layout.columns`` says."""
    counts: UInt64 | None = None
    """uint64 by record; None where ``Layout.counted`` is false."""
    rows: UInt32 | None = None
    """uint32, ascending: rows that are there; None where ``Layout.documents`` is false."""
    lengths: UInt64 | None = None
    """uint64 by entry of ``rows``: its words, with those that are in no record."""

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays and the words."""
        arrays = (self.keys, self.counts, self.rows, self.lengths)
        return int(self.words.nbytes) + sum(array.nbytes for array in arrays if array is not None)

    def some(self, layout: Layout, chosen: npt.NDArray[Any]) -> Records:
        """Take the records at some places, or where a mask is true, with their own words only; without rows."""
        words, keys = own_words(layout.are_words, self.words, self.keys[chosen])
        return Records(words, keys, None if self.counts is None else self.counts[chosen])


def own_words(are_words: list[bool], words: pa.LargeStringArray, keys: UInt32) -> tuple[pa.LargeStringArray, UInt32]:
    """Drop the words that are in no key.

    Parameters
    ----------
    are_words
        By column of keys: whether it holds numbers of words.
    words
        The words, in code point order.
    keys
        uint32[keys, columns], changed in place: words get new numbers, in the same order.

    Returns
    -------
    (pyarrow.LargeStringArray, uint32[keys, columns])
        The words in keys, and the keys.

    """
    used = np.zeros(len(words), np.bool_)
    mark(keys, are_words, used)
    numbers = np.cumsum(used, dtype=np.uint32) - np.uint32(1)
    for column in np.flatnonzero(are_words):
        keys[:, column] = numbers[keys[:, column]]
    return words.take(to_arrow(np.flatnonzero(used))), keys


def _firsts(keys: UInt32) -> Int64:
    """Find where each distinct one of sorted keys starts."""
    if len(keys) == 0:
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.append(True, (keys[1:] != keys[:-1]).any(axis=1)))


def stretches(keys: UInt32) -> tuple[UInt32, Int64]:
    """Tell the distinct ones of sorted keys, uint32[m] or [m, columns], and where each of them starts, and the end."""
    firsts = _firsts(keys[:, None] if keys.ndim == 1 else keys)
    return keys[firsts], np.append(firsts, len(keys))


def split(layout: Layout, records: Records, shards: int) -> list[Records]:
    """Share records out: those of one group are in one shard, the same one for every part and in every process.

    Parameters
    ----------
    layout
        What the records mean; groups that begin with a row go by its number, others by what their words are.
    records
        The records.
    shards
        How many shards, at least 1.

    Returns
    -------
    list of Records
        Each with its own words only.

    """
    if shards == 1:
        return [records]
    numbers = np.arange(len(records.words), dtype=np.uint64)
    hashes = hash_words(*_bytes_of(records.words)) if "word" in layout.columns[: layout.group] else numbers
    owners = np.zeros(len(records), np.uint64)

    def find_owners(chunk: tuple[int, int]) -> None:
        found, keys = owners[slice(*chunk)], records.keys[slice(*chunk)]
        for column, kind in enumerate(layout.columns[: layout.group]):
            own = keys[:, column]
            found *= np.uint64(0x9E3779B97F4A7C15)
            found += hashes[own] if kind == "word" else own
        found %= np.uint64(shards)

    map_parallel(find_owners, even_chunks(len(records)))

    def only(shard: int) -> Records:
        with one_thread():
            made = records.some(layout, owners == shard)
            if records.rows is None or records.lengths is None:
                return made
            own = records.rows % np.uint32(shards) == shard
            return replace(made, rows=records.rows[own], lengths=records.lengths[own])

    return map_parallel(only, range(shards))


def _bytes_of(words: pa.LargeStringArray) -> tuple[Int64, UInt8]:
    own = Vocabulary(words)
    return own.offsets, own.data


def encode(records: Records) -> bytes:
    """Write records as an Arrow IPC stream, for files and other processes.

    One row, with a list for each part of them; ``keys`` record after record.
    """
    keys = records.keys.reshape(-1)
    arrays = (records.words, keys, records.counts, records.rows, records.lengths)
    columns = [_one_list(field.type, array) for field, array in zip(_SCHEMA, arrays, strict=True)]
    schema = _SCHEMA.with_metadata({b"tadoc.records": VERSION, b"columns": str(records.keys.shape[1]).encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch(columns, schema=schema))
    return bytes(sink.getvalue())


def _one_list(kind: pa.DataType, values: pa.Array | npt.NDArray[np.generic] | None) -> pa.LargeListArray:
    if values is None:
        return pa.nulls(1, kind)
    values = values if isinstance(values, pa.Array) else to_arrow(values)
    return lists(np.array([0, len(values)]), values)


def decode(layout: Layout, data: bytes | memoryview | pa.Buffer) -> Records:
    """Read what :func:`encode` wrote; nothing of it is believed.

    Parameters
    ----------
    layout
        What the records should mean.
    data
        The bytes.

    Returns
    -------
    Records
        Arrays lie in the bytes given where they can.

    Raises
    ------
    InvalidRecordsError
        The bytes are damaged, or are records of another layout.

    """
    try:
        with pa.ipc.open_stream(data) as reader:
            schema, batch = reader.schema, reader.read_next_batch()
            batch.validate(full=True)
    except (pa.ArrowException, OSError, StopIteration, ValueError) as error:
        raise InvalidRecordsError(f"these bytes are no records: {error}") from error
    metadata = schema.metadata or {}
    if not schema.equals(_SCHEMA, check_metadata=False) or metadata.get(b"tadoc.records") != VERSION:
        raise InvalidRecordsError("these bytes are no records of this version")
    columns = len(layout.columns)
    if metadata.get(b"columns") != str(columns).encode() or batch.num_rows != 1:
        raise InvalidRecordsError(f"these are no records of {columns} columns")
    words, keys, counts, rows, lengths = (_values(batch.column(k)) for k in range(batch.num_columns))
    if words is None or keys is None or len(keys) % columns:
        raise InvalidRecordsError("these records have no words or no whole keys")
    records = Records(
        words,
        _numbers(keys).reshape(-1, columns),
        *(None if array is None else _numbers(array) for array in (counts, rows, lengths)),
    )
    _require_sound(layout, records)
    return records


def _values(column: pa.LargeListArray) -> pa.Array | None:
    """Return the one list's values, which have no nulls."""
    if column.null_count:
        return None
    values = column.flatten()
    if values.null_count:
        raise InvalidRecordsError("these records have nulls")
    return values


def _numbers(array: pa.Array) -> npt.NDArray[Any]:
    return view(array) if len(array) else np.zeros(0, str(array.type))


def _require_sound(layout: Layout, records: Records) -> None:
    """Raise ``InvalidRecordsError`` unless records are as their class says."""
    words, keys = Vocabulary(records.words), records.keys
    if (records.counts is not None) != layout.counted or (records.rows is not None) != layout.documents:
        raise InvalidRecordsError("these records have counts or rows where their layout has none, or lack them")
    if (records.lengths is None) != (records.rows is None):
        raise InvalidRecordsError("these records have rows without lengths, or lengths without rows")
    if not words.ascending.all():
        raise InvalidRecordsError("the words of these records are not in code point order, each once")
    if records.counts is not None and len(records.counts) != len(keys):
        raise InvalidRecordsError(f"{len(keys):,} records have {len(records.counts):,} counts")
    for column, kind in enumerate(layout.columns):
        if kind == "word" and len(keys) and keys[:, column].max() >= len(words):
            raise InvalidRecordsError(f"column {column} names words from 0 to {len(words) - 1:,}, and others")
    if len(_firsts(keys)) != len(keys) or not _ascending(keys):
        raise InvalidRecordsError("the keys of these records are not in order, each once")
    if records.rows is not None and records.lengths is not None:
        rows = records.rows
        if len(rows) != len(records.lengths) or (rows[1:] <= rows[:-1]).any():
            raise InvalidRecordsError("the rows of these records are not ascending, or have not one length each")
        column = layout.columns.index("row")
        if not np.isin(keys[:, column], rows).all():
            raise InvalidRecordsError("these records have rows that are not there")


def _ascending(keys: UInt32) -> bool:
    """Tell whether keys are in lexicographic order."""
    undecided = np.ones(max(0, len(keys) - 1), np.bool_)
    for column in keys.T:
        if (undecided & (column[1:] < column[:-1])).any():
            return False
        undecided &= column[1:] == column[:-1]
    return True
