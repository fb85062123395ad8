"""Packed rows in binary columns: each cell is a complete file of packed rows, so that any engine can transport it.

Spark has neither unsigned numbers nor large lists, and re-encodes each row whenever it moves one. It passes cells of
bytes on unchanged.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import polars as pl
import polars.selectors as cs
import pyarrow as pa

from polars_tadoc.errors import ColumnMissingError, InvalidGrammarError, NotPackedError
from polars_tadoc.packed.files import PackedFile
from polars_tadoc.packed.pack import pack_stream
from polars_tadoc.packed.partition import PACKED_DTYPE, Partition, partition_at
from polars_tadoc.packed.write import write_rows
from polars_tadoc.runtime.io_source import at_work
from polars_tadoc.runtime.option_signature import names_unknown_options

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)

NAME = "text"
"""Name of the column within a cell."""


def cells(column: pl.Series) -> Iterator[tuple[bytes, int]]:
    """Pack a compressed column; yield the bytes of each cell and its number of documents."""
    for packed in pack_stream([pl.DataFrame([column.alias(NAME)])], NAME, passing=True):
        file = io.BytesIO()
        write_rows([packed], packed.schema, NAME, file)
        yield file.getvalue(), packed[NAME].struct.field("valid").list.len().item()


def packed_of(cell: pa.Buffer, name: str) -> pl.Series:
    """Read a cell as a packed column of any number of rows.

    Parameters
    ----------
    cell
        Its bytes.
    name
        Name of the cell in messages.

    Raises
    ------
    NotPackedError, InvalidGrammarError
        The cell is not packed, or damaged.

    """
    with PackedFile(Path(name), cell) as file:
        groups = [file.read(group, [file.column])[file.column] for group in range(file.group_count)]
    return pl.concat([pl.Series(NAME, [], PACKED_DTYPE), *(group.alias(NAME) for group in groups)])


def partitions_of(cell: pa.Buffer, name: str) -> Iterator[Partition]:
    """Read a cell's partitions one by one, without caching their grammars; as for :func:`packed_of`."""
    packed = packed_of(cell, name)
    for row in range(len(packed)):
        partition = partition_at(packed, row, cached=False)
        if partition is not None:
            yield partition


@names_unknown_options
def unpack(frame: Frame, column: str) -> Frame:
    """Make one row per document of a frame whose column holds cells, as made by :func:`compress` on Spark.

    Parameters
    ----------
    frame
        Polars frame, such as ``pl.scan_parquet`` of a file written by Spark.
    column
        The Binary column; all others are lists with one value per document.

    Returns
    -------
    DataFrame or LazyFrame, as the one given
        The original rows, with the column as a compressed one (``tadoc.DTYPE``).

    Raises
    ------
    ColumnMissingError
        The frame lacks the column.
    NotPackedError
        The column is not Binary, or another one is not a list; or a cell is not packed.
    InvalidGrammarError
        A cell is damaged.

    Examples
    --------
    >>> import polars as pl
    >>> from polars_tadoc.distributed.binary_cells import cells, unpack
    >>> [(cell, documents)] = cells(pl.Series(["to be", "to do"]).tadoc.compress())
    >>> unpack(pl.DataFrame({"id": [[1, 2]], "text": [cell]}), "text").tadoc.decompress().rows()
    [(1, 'to be'), (2, 'to do')]

    """
    schema = frame.lazy().collect_schema()
    if column not in schema:
        raise ColumnMissingError.for_name(column, schema, "unpack")
    if schema[column] != pl.Binary:
        raise NotPackedError(
            f'unpack: column "{column}" is {schema[column]}, not Binary; spark.compress makes such columns'
        )
    made = cs.by_name(column).as_expr().map_batches(_packed, return_dtype=PACKED_DTYPE, is_elementwise=True)
    packed: Any = frame.with_columns(made)
    return cast(Frame, packed.tadoc.unpack(column))


@at_work()
def _packed(cells: pl.Series) -> pl.Series:
    """Make a packed column of cells with one packed row each."""
    rows = [_only_row(cell, f'column "{cells.name}", row {row}') for row, cell in enumerate(cells)]
    return pl.concat([pl.Series(NAME, [], PACKED_DTYPE), *rows]).alias(cells.name)


def _only_row(cell: bytes | None, name: str) -> pl.Series:
    if cell is None:
        return pl.Series(NAME, [None], PACKED_DTYPE)
    packed = packed_of(pa.py_buffer(cell), name)
    if len(packed) != 1:
        raise InvalidGrammarError(f"{name}: {len(packed)} packed rows in one cell")
    return packed
