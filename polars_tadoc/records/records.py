"""Results of analytics as sorted tables of numbers over sorted words: the form that is spilled, sent and merged.

Every partial result of every analytic has this form, so there is one way to write, split, send and merge all of them
when they exceed one memory, one GPU or one machine. Words are numbered in code point order. Therefore the map from one
part's words to those of all parts is monotonic, and sorted records stay sorted when words are renumbered.
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
from polars_tadoc.model.arrow_results import lists, to_arrow
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64, array_dataclass
from polars_tadoc.runtime.arrow_memory import view
from polars_tadoc.runtime.parallel import even_chunks, map_parallel

Kind = Literal["word", "row", "query"]

VERSION = b"1"
"""Version of the format that :func:`encode` writes."""

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
    """Meaning of the columns of an analytic's records."""

    columns: tuple[Kind, ...]
    """Content of each column of ``Records.keys``: number of a word, a row, or a query (of a set that all parts
    share)."""
    group: int
    """Number of leading columns that identify one row, or one document, of the result. Records that agree in them must
    stay together: 1 if a word has a list of rows, n if a sequence has one."""
    counted: bool = True
    """Whether records have counts; the counts of equal records are added."""
    by_count: bool = False
    """Whether results are sorted by descending count, then by key; otherwise by key."""
    documents: bool = False
    """Whether rows without records exist in the result, and whether each row has its number of words."""

    @property
    def are_words(self) -> list[bool]:
        """Whether each column has numbers of words."""
        return [kind == "word" for kind in self.columns]


def word_columns(count: int) -> tuple[Kind, ...]:
    """Return ``count`` columns of words, for layouts."""
    column: Kind = "word"
    return (column,) * count


@array_dataclass
class Records:
    """Sorted records of an analytic."""

    words: pa.LargeStringArray
    """Distinct words in code point order, numbered by position; some may be unused."""
    keys: UInt32
    """uint32[records, columns]: distinct, in lexicographic order; columns as in ``Layout.columns``."""
    counts: UInt64 | None = None
    """uint64 by record; None unless ``Layout.counted``."""
    rows: UInt32 | None = None
    """uint32, ascending: existing rows; None unless ``Layout.documents``."""
    lengths: UInt64 | None = None
    """uint64 by entry of ``rows``: its number of words, including words without records."""
    shared: Vocabulary | None = None
    """The words as a vocabulary that all batches of a merge share; None: each use makes its own."""

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def vocabulary(self) -> Vocabulary:
        """The words as a vocabulary."""
        return self.shared or Vocabulary(self.words)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays and the words."""
        arrays = (self.keys, self.counts, self.rows, self.lengths)
        return int(self.words.nbytes) + sum(array.nbytes for array in arrays if array is not None)

    def some(self, layout: Layout, chosen: npt.NDArray[Any]) -> Records:
        """Select records by positions or a mask, with only their own words; without rows."""
        words, keys = own_words(layout.are_words, self.words, self.keys[chosen])
        return Records(words, keys, None if self.counts is None else self.counts[chosen])


def own_words(are_words: list[bool], words: pa.LargeStringArray, keys: UInt32) -> tuple[pa.LargeStringArray, UInt32]:
    """Drop unused words.

    Parameters
    ----------
    are_words
        By column of keys: whether it has numbers of words.
    words
        The words, in code point order.
    keys
        uint32[keys, columns], changed in place: words are renumbered in the same order.

    Returns
    -------
    (pyarrow.LargeStringArray, uint32[keys, columns])
        The used words, and the keys.

    """
    used = np.zeros(len(words), np.bool_)
    mark(keys, are_words, used)
    numbers = np.cumsum(used, dtype=np.uint32) - np.uint32(1)
    for column in np.flatnonzero(are_words):
        keys[:, column] = numbers[keys[:, column]]
    return words.take(to_arrow(np.flatnonzero(used))), keys


def _firsts(keys: UInt32) -> Int64:
    """Return the start of each distinct key in sorted keys."""
    if len(keys) == 0:
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.append(True, (keys[1:] != keys[:-1]).any(axis=1)))


def runs_of_equal(keys: UInt32) -> tuple[UInt32, Int64]:
    """Return the distinct keys of sorted keys, uint32[m] or [m, columns], and the offsets of their runs."""
    firsts = _firsts(keys[:, None] if keys.ndim == 1 else keys)
    return keys[firsts], np.append(firsts, len(keys))


def split(layout: Layout, records: Records, shards: int) -> list[Records]:
    """Split records into shards; a group is always in the same shard, for every part and in every process.

    Parameters
    ----------
    layout
        Layout of the records; groups that begin with a row are assigned by its number, others by their words.
    records
        The records.
    shards
        Number of shards, at least 1.

    Returns
    -------
    list of Records
        One part per shard, with only its own words.

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
    """Serialise records as an Arrow IPC stream, for files and other processes.

    The stream has one row with a list per field; ``keys`` is flattened record by record.
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
    """Deserialise the output of :func:`encode`; everything is validated.

    Parameters
    ----------
    layout
        Expected layout of the records.
    data
        The serialised bytes.

    Returns
    -------
    Records
        Arrays share the memory of ``data`` where possible.

    Raises
    ------
    InvalidRecordsError
        The bytes are damaged or have another layout.

    """
    try:
        with pa.ipc.open_stream(data) as reader:
            schema, batch = reader.schema, reader.read_next_batch()
            batch.validate(full=True)
    except (pa.ArrowException, OSError, StopIteration, ValueError) as error:
        raise InvalidRecordsError(f"invalid records: {error}") from error
    metadata = schema.metadata or {}
    if not schema.equals(_SCHEMA, check_metadata=False) or metadata.get(b"tadoc.records") != VERSION:
        raise InvalidRecordsError("invalid records: another format version")
    columns = len(layout.columns)
    if metadata.get(b"columns") != str(columns).encode() or batch.num_rows != 1:
        raise InvalidRecordsError(f"the records do not have {columns} columns")
    words, keys, counts, rows, lengths = (_values(batch.column(k)) for k in range(batch.num_columns))
    if words is None or keys is None or len(keys) % columns:
        raise InvalidRecordsError("the records lack words or have incomplete keys")
    others = [None if array is None else _numbers(array) for array in (counts, rows, lengths)]
    records = Records(words, _numbers(keys).reshape(-1, columns), others[0], others[1], others[2])
    _require_sound(layout, records)
    return records


def _values(column: pa.LargeListArray) -> pa.Array | None:
    """Return the values of a single list without nulls."""
    if column.null_count:
        return None
    values = column.flatten()
    if values.null_count:
        raise InvalidRecordsError("the records have nulls")
    return values


def _numbers(array: pa.Array) -> npt.NDArray[Any]:
    return view(array) if len(array) else np.zeros(0, str(array.type))


def _require_sound(layout: Layout, records: Records) -> None:
    """Raise ``InvalidRecordsError`` unless records satisfy their class's definition."""
    words, keys = records.vocabulary, records.keys
    if (records.counts is not None) != layout.counted or (records.rows is not None) != layout.documents:
        raise InvalidRecordsError("the records have other counts or rows than their layout")
    if (records.lengths is None) != (records.rows is None):
        raise InvalidRecordsError("the records have rows without lengths, or lengths without rows")
    if not words.ascending.all():
        raise InvalidRecordsError("the words of the records are not distinct and in code point order")
    if records.counts is not None and len(records.counts) != len(keys):
        raise InvalidRecordsError(f"{len(keys):,} records have {len(records.counts):,} counts")
    for column, kind in enumerate(layout.columns):
        if kind == "word" and len(keys) and keys[:, column].max() >= len(words):
            raise InvalidRecordsError(f"column {column} has word numbers above {len(words) - 1:,}")
    if len(_firsts(keys)) != len(keys) or not _ascending(keys):
        raise InvalidRecordsError("the keys of the records are not distinct and sorted")
    if records.rows is not None and records.lengths is not None:
        rows = records.rows
        if len(rows) != len(records.lengths) or (rows[1:] <= rows[:-1]).any():
            raise InvalidRecordsError("the rows of the records are not ascending, or do not have one length each")
        column = layout.columns.index("row")
        if not np.isin(keys[:, column], rows).all():
            raise InvalidRecordsError("the records refer to rows that do not exist")


def _ascending(keys: UInt32) -> bool:
    """Tell whether keys are in lexicographic order."""
    undecided = np.ones(max(0, len(keys) - 1), np.bool_)
    for column in keys.T:
        if (undecided & (column[1:] < column[:-1])).any():
            return False
        undecided &= column[1:] == column[:-1]
    return True
