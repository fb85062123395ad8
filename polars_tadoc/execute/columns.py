"""Finds the column that a frame call refers to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import polars as pl

from polars_tadoc.errors import ColumnMissingError, NotCompressedError, NotPackedError, TadocError
from polars_tadoc.model.column import call_of, require_string
from polars_tadoc.model.text_type import is_tadoc
from polars_tadoc.packed.partition import is_packed
from polars_tadoc.records.labelled_results import require_label_type
from polars_tadoc.traversal.text_corpus import is_text


def compressed_column(schema: pl.Schema, name: str | None, call: str) -> str:
    """Return the name of the compressed column: the given one, or the only one.

    Raises
    ------
    ColumnMissingError
        The column does not exist; the message suggests similar names.
    NotCompressedError
        The column has another type, or no name was given and there is not exactly one.

    """
    if name is None and not any(map(is_tadoc, schema.values())):
        name = next((column for column, dtype in schema.items() if is_packed(dtype)), None)  # the error says "packed"
    error = NotCompressedError(
        f'{call}: the frame has no TADOC column; compress one first: df.with_columns(pl.col("text").tadoc.compress())'
    )
    return _one_column(schema, name, call, is_tadoc, error, NotCompressedError, "compressed")


def packed_column(schema: pl.Schema, name: str | None, call: str) -> str:
    """Return the name of the packed column; raises as :func:`compressed_column`, with ``NotPackedError``."""
    error = NotPackedError(f"{call}: the frame has no packed TADOC column; df.tadoc.pack makes one")
    return _one_column(schema, name, call, is_packed, error, NotPackedError, "packed")


def string_column(schema: pl.Schema, name: str, call: str) -> str:
    """Return the name of the String column; raises as :func:`compressed_column`."""
    _require_column(schema, name, call)
    require_string(name, schema[name], call)
    return name


def each_column(names: str | Sequence[str] | None, find: Callable[[Any], str]) -> list[str]:
    """Return the column of a name, or of each name of a list, once; ``find`` checks one and returns it."""
    if isinstance(names, (list, tuple)):
        return list(dict.fromkeys(map(find, names)))
    return [find(names)]


def text_column(schema: pl.Schema, name: str | None, call: str) -> str:
    """Return the name of a String or compressed column; raises as :func:`compressed_column`."""
    if isinstance(name, str) and is_text(schema.get(name)):
        return name
    if name is None and not any(map(is_tadoc, schema.values())):
        text = next((column for column, dtype in schema.items() if is_text(dtype)), None)
        if text is not None:
            raise NotCompressedError(
                f"{call}: the frame has no TADOC column; "
                f"name the column: {call_of(call, text)}; it may be String or compressed"
            )
    return compressed_column(schema, name, call)


def label_column(schema: pl.Schema, name: str, call: str) -> str:
    """Return the name of the column whose values label rows.

    Raises
    ------
    ColumnMissingError
        As :func:`compressed_column`.
    TypeError
        ``id`` is not a string, or its column has a type that results cannot hold.

    """
    if not isinstance(name, str):
        raise TypeError(f'{call}: id names a column of the frame, id="name"; it is {type(name).__name__}')
    _require_column(schema, name, call)
    require_label_type(name, schema[name], call)
    return name


def metadata_columns(columns: Sequence[str], names: object, call: str, what: str = "metadata") -> list[str]:
    """Return the names of the columns that ``metadata=`` lists.

    Raises
    ------
    ColumnMissingError
        A column does not exist; the message suggests similar names.
    TypeError
        It is not a list of strings.

    """
    listed = None if isinstance(names, str) or not isinstance(names, Iterable) else list(names)
    if listed is None or not all(isinstance(name, str) for name in listed):
        given = repr(names) if isinstance(names, (str, list)) else type(names).__name__
        raise TypeError(f'{call}: metadata={given} is not a list of column names; write metadata=["year"]')
    for name in listed:
        if name not in columns:
            raise ColumnMissingError.for_name(name, columns, f"{call}: {what}")
    return listed


def _one_column(
    schema: pl.Schema,
    name: str | None,
    call: str,
    fits: Callable[[pl.DataType], bool],
    none: TadocError,
    kind: type[NotCompressedError | NotPackedError],
    what: str,
) -> str:
    """Return the given column or the only one of its kind; raises ``none`` if there is none."""
    if name is None:
        found = [column for column, dtype in schema.items() if fits(dtype)]
        if not found:
            raise none
        if len(found) > 1:
            raise kind(f"{call}: name one of the {what} columns {', '.join(map(repr, found))}")
        return found[0]
    _require_column(schema, name, call)
    if not fits(schema[name]):
        raise kind.for_column(name, schema[name], call)
    return name


def _require_column(schema: pl.Schema, name: object, call: str) -> None:
    if not isinstance(name, str):
        named = call_of(call.partition(":")[0], "text")
        raise TypeError(f"{call}: name the column by a string, {named}, not by {type(name).__name__}")
    if name not in schema:
        raise ColumnMissingError.for_name(name, schema, call)
