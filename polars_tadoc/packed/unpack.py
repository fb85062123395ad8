"""Packed rows become rows again."""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from polars_tadoc import payload
from polars_tadoc.cache import ByteLRU, grammars
from polars_tadoc.column import DTYPE
from polars_tadoc.config import settings
from polars_tadoc.errors import InvalidGrammarError, NotPackedError
from polars_tadoc.grammar import Grammar
from polars_tadoc.packed.partition import Partition, partitions

payloads: ByteLRU[str] = ByteLRU(lambda: settings().host_cache_bytes // 8, len)
"""Payloads of packed grammars by content key: making one takes several times as long as hashing its arrays."""


def unpacked_schema(schema: pl.Schema, column: str, call: str) -> pl.Schema:
    """Columns of the unpacked frame.

    Raises
    ------
    NotPackedError
        A column other than the packed one is no list.

    """
    unpacked: dict[str, pl.DataType] = {}
    for name, dtype in schema.items():
        if name == column:
            unpacked[name] = DTYPE
        elif isinstance(dtype, pl.List):
            unpacked[name] = dtype.inner  # type: ignore[assignment]
        else:
            raise NotPackedError(
                f'{call}: column "{name}" is {dtype}; beside a packed column there are lists, one value a document'
            )
    return pl.Schema(unpacked)


def unpack(packed: pl.DataFrame, column: str) -> pl.DataFrame:
    """Make a row of each document again; see ``df.tadoc.unpack``."""
    schema = unpacked_schema(packed.schema, column, "unpack")
    others = packed.drop(column)
    frames = [pl.DataFrame(schema=schema)]
    for row, partition in enumerate(partitions(packed[column])):
        count = 0 if partition is None else partition.document_count
        documents = document_columns(others, row, count)
        if partition is not None:
            by_name = {series.name: series for series in [*documents, rows_of(partition, column)]}
            frames.append(pl.DataFrame([by_name[name] for name in schema]))
    return pl.concat(frames, rechunk=True)


def document_columns(lists: pl.DataFrame, row: int, count: int) -> list[pl.Series]:
    """Give the values of each list of one row, one value for each of ``count`` documents.

    Raises
    ------
    InvalidGrammarError
        A list has more or fewer.

    """
    columns = []
    for series in lists.get_columns():
        values = series[row]
        if values is None:
            values = pl.Series([], dtype=series.dtype.inner)  # type: ignore[attr-defined]
        if len(values) != count:
            raise InvalidGrammarError(
                f'packed row {row}: column "{series.name}" has {len(values):,} values for {count:,} documents'
            )
        columns.append(values.alias(series.name))
    return columns


def rows_of(partition: Partition, name: str) -> pl.Series:
    """Give a packed row's documents as rows of a compressed column; symbols and gaps are not copied."""
    count = partition.document_count
    if not partition.valid.any():
        return pl.Series(name, [None], DTYPE).new_from_index(0, count) if count else pl.Series(name, [], DTYPE)
    grammar = pl.Series("grammar", [_payload(partition.key, partition.grammar)], DTYPE.fields[0].dtype)
    lists = pa.LargeListArray.from_arrays(partition.offsets.to_arrow(), partition.roots.to_arrow())
    symbols = pl.Series("symbols", lists)
    column = pl.DataFrame([grammar.new_from_index(0, count), symbols, partition.gaps.alias("gaps")]).to_struct("text")
    if partition.valid.all():
        return column.alias(name)
    rows = pl.DataFrame([column, partition.valid.alias("valid")])
    return rows.select(pl.when("valid").then("text")).to_series().alias(name)


def _payload(key: str, grammar: Grammar) -> str:
    known = payloads.get(key)
    if known is not None:
        return known
    encoded = payloads.put(key, payload.encode(grammar))
    grammars.put(payload.key(encoded), grammar)  # so that no call on the rows decodes it again
    return encoded
