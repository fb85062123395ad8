"""Packed rows edited field by field, as Arrow tables: also what no writer would write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import polars as pl
import pyarrow as pa

import polars_tadoc as tadoc
from polars_tadoc.packed import coded, contexts
from tests.fuzz.script import Script, edit_numbers, edit_strings

NUMBERS = {
    "rule_offsets": 32,
    "symbols": 32,
    "level_offsets": 32,
    "predicted_gaps": 32,
    "document_offsets": 64,
    "roots": 32,
    "year": 64,
}
STRINGS = ("vocabulary", "gap_vocabulary", "gaps", "name")
FIELDS = (
    *("vocabulary", "rule_offsets", "symbols", "level_offsets", "gap_vocabulary", "predicted_gaps", "tokenizer"),
    *("version", "document_offsets", "roots", "gaps", "valid"),
)
TYPES: dict[str, pa.DataType] = {
    **{name: pa.large_list(pa.uint32() if bits == 32 else pa.int64()) for name, bits in NUMBERS.items()},
    **dict.fromkeys(STRINGS, pa.large_list(pa.large_string())),
    "gaps": pa.large_list(pa.large_binary()),
    "tokenizer": pa.large_string(),
    "version": pa.uint32(),
    "valid": pa.large_list(pa.bool_()),
}
Row = dict[str, Any]


@contextmanager
def coded_rows(in_context: bool = True) -> Iterator[None]:
    """Code the symbols of packed rows however few they have."""
    before, saving, saves = coded.MIN_EVENTS, contexts.LEAST_SAVING, contexts.SAVES
    coded.MIN_EVENTS, contexts.LEAST_SAVING, contexts.SAVES = 0, 1 << 30 if in_context else 0, 1 << 30
    least, contexts.FROM_BYTES = contexts.FROM_BYTES, 0
    try:
        yield
    finally:
        coded.MIN_EVENTS, contexts.LEAST_SAVING, contexts.SAVES = before, saving, saves
        contexts.FROM_BYTES = least


@cache
def _sample() -> pa.Table:
    texts = [*["the cat sat on the mat, the cat sat"] * 3, "日本 x\ny", None, "the cat", "", "a b  a b", "é a\tb"]
    frame = pl.DataFrame({"text": texts, "year": range(len(texts)), "name": [f"n{row}" for row in range(len(texts))]})
    frame = frame.with_columns(pl.when(pl.col("year") != 2).then("year"))
    packed = frame.tadoc.compress("text", rows_per_grammar=4).tadoc.pack("text")
    for in_context in (False, True):
        with coded_rows(in_context):
            packed = pl.concat([packed, packed.head(1).with_columns(coded.coded(packed["text"].head(1)))])
    return packed.to_arrow(compat_level=pl.CompatLevel.oldest())


def sample() -> list[Row]:
    """Rows that are sound; strings as bytes."""
    rows = []
    for row in _sample().to_pylist():
        cells = {**row.pop("text"), **row}
        for name in STRINGS:
            cells[name] = [value.encode() if isinstance(value, str) else value for value in cells[name]]
        rows.append(cells)
    return rows


def edited(script: Script, are_texts: bool) -> pa.Table:
    """Make the packed rows that a script asks for.

    Parameters
    ----------
    script
        The script.
    are_texts
        Keep strings UTF-8, as they are wherever they do not come from a file.

    """
    rows: list[Row | None] = [*sample()]
    for _ in range(script.number(4)):
        at = script.number(len(rows) - 1)
        kind, row = script.number(31), rows[at]
        if kind == 0:
            rows[at] = None
        elif kind == 1:
            rows.append(row)
        elif row is not None:
            _edit(script, row)
    if are_texts:
        for row in rows:
            for name in STRINGS:
                if row is not None and name != "gaps" and row[name] is not None:
                    row[name] = [None if value is None else _as_text(value) for value in row[name]]
    return _table(rows)


def _edit(script: Script, row: Row) -> None:
    name = script.pick([*FIELDS, "year", "name"])
    kind, cell = script.number(31), row[name]
    if kind == 0 or cell is None:
        row[name] = None
    elif kind == 1 and isinstance(cell, list):
        cell.insert(script.number(len(cell)), None)
    elif name in NUMBERS and None not in cell:
        edit_numbers(script, cell, NUMBERS[name])
    elif name in STRINGS and None not in cell:
        edit_strings(script, cell)
    elif name == "valid":
        numbers = [int(bool(value)) for value in cell]
        edit_numbers(script, numbers, 8)
        row[name] = [number % 2 == 1 for number in numbers]
    elif name == "version":
        row[name] = script.any_number([cell], 32)
    elif name == "tokenizer":
        row[name] = script.pick(["words", "xml", "whitespace", "", "regex:(", "regex:[a-z]+", "x" * 99])


def _as_text(value: bytes) -> bytes:
    return value.decode(errors="replace").encode()


def _table(rows: list[Row | None]) -> pa.Table:
    def array(name: str) -> pa.Array:
        cells = [None if row is None else row[name] for row in rows]
        if name in NUMBERS and NUMBERS[name] == 64:
            cells = [cell and [_signed(number) for number in cell] for cell in cells]
        if name not in STRINGS:
            return pa.array(cells, TYPES[name])
        # taken for strings as they are
        return pa.array(cells, pa.large_list(pa.large_binary())).view(TYPES[name])

    missing = pa.array([row is None for row in rows])
    text = pa.StructArray.from_arrays([array(name) for name in FIELDS], FIELDS, mask=missing)
    return pa.table({"year": array("year"), "text": text, "name": array("name")})


def _signed(number: int | None) -> int | None:
    return number if number is None or number < 1 << 63 else number - (1 << 64)


def frame(table: pa.Table) -> pl.DataFrame:
    """The same as Polars holds it."""
    made = pl.from_arrow(table)
    assert isinstance(made, pl.DataFrame)
    return made.with_columns(pl.col("text").cast(tadoc.PACKED_DTYPE))
