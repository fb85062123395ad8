"""Packed rows in binary columns: each cell is a file of packed rows, whole, so that any engine can carry it.

Spark has neither unsigned numbers nor large lists, and lays each row out anew wherever it goes. A cell of bytes it
passes on as it is.
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

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)

NAME = "text"
"""The column within a cell."""


def cells(column: pl.Series) -> Iterator[tuple[bytes, int]]:
    """Pack a compressed column: the bytes of each cell, and how many documents it has."""
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
        What messages call it.

    Raises
    ------
    NotPackedError, InvalidGrammarError
        It holds something else, or is damaged.

    """
    with PackedFile(Path(name), cell) as file:
        groups = [file.read(group, [file.column])[file.column] for group in range(file.group_count)]
    return pl.concat([pl.Series(NAME, [], PACKED_DTYPE), *(group.alias(NAME) for group in groups)])


def partitions_of(cell: pa.Buffer, name: str) -> Iterator[Partition]:
    """Read a cell's partitions one by one, without keeping their grammars; as for :func:`packed_of`."""
    packed = packed_of(cell, name)
    for row in range(len(packed)):
        partition = partition_at(packed, row, cached=False)
        if partition is not None:
            yield partition


def unpack(frame: Frame, column: str) -> Frame:
    """Make a row of each document of a frame whose column holds cells, as :func:`compress` makes them on Spark.

    Parameters
    ----------
    frame
        Frame of Polars, such as ``pl.scan_parquet`` of what Spark has written.
    column
        The Binary column; all others are lists, one value for each document.

    Returns
    -------
    DataFrame or LazyFrame, as the one given
        The rows as they were, the column as a compressed one (``tadoc.DTYPE``).

    Raises
    ------
    ColumnMissingError
        There is no such column.
    NotPackedError
        It is not Binary, or another one is no list; or a cell is something else.
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
        raise NotPackedError(f'unpack: column "{column}" is {schema[column]}, not Binary, as spark.compress makes it')
    made = cs.by_name(column).as_expr().map_batches(_packed, return_dtype=PACKED_DTYPE, is_elementwise=True)
    packed: Any = frame.with_columns(made)
    return cast(Frame, packed.tadoc.unpack(column))


@at_work()
def _packed(cells: pl.Series) -> pl.Series:
    """Make a packed column of cells, which hold one packed row each."""
    rows = [_only_row(cell, f'column "{cells.name}", row {row}') for row, cell in enumerate(cells)]
    return pl.concat([pl.Series(NAME, [], PACKED_DTYPE), *rows]).alias(cells.name)


def _only_row(cell: bytes | None, name: str) -> pl.Series:
    if cell is None:
        return pl.Series(NAME, [None], PACKED_DTYPE)
    packed = packed_of(pa.py_buffer(cell), name)
    if len(packed) != 1:
        raise InvalidGrammarError(f"{name}: {len(packed)} packed rows in one cell")
    return packed
