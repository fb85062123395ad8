"""Conditions of queries on metadata: ``year:2023``, ``year:[2020 TO 2023]``, ``author:"Jane Doe"``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import polars as pl

from polars_tadoc.index.language.tree import And, Boost, Field, Node, Not, Or, Pattern, Phrase, Range, Sequence, Word
from polars_tadoc.runtime.array_types import Bools


class Conditions:
    """The conditions of a batch of queries, each evaluated once.

    Parameters
    ----------
    metadata
        Metadata by document, of deleted ones, too; None if the index has none.

    """

    def __init__(self, metadata: pl.DataFrame | None) -> None:
        self._metadata = metadata
        self._numbers: dict[tuple[str, Node], int | None] = {}
        self.masks: list[Bools] = []
        """By condition: whether each document meets it."""

    def number(self, name: str, node: Node) -> int | None:
        """Return the number of a condition; None if its value is none of the field's type."""
        key = name, node
        if key not in self._numbers:
            mask = self._mask(name, node)
            self._numbers[key] = None if mask is None else len(self.masks)
            self.masks += [] if mask is None else [mask]
        return self._numbers[key]

    def _mask(self, name: str, node: Node) -> Bools | None:
        assert self._metadata is not None
        column = self._metadata[name]
        column = column.cast(pl.String) if _is_text(column.dtype) else column
        if isinstance(node, Range):
            low, high = _value(node.low, column.dtype), _value(node.high, column.dtype)
            if (node.low and low is None) or (node.high and high is None) or column.dtype == pl.Boolean:
                return None
            found = column.is_not_null()
            if low is not None:
                found &= column >= low if node.takes_low else column > low
            if high is not None:
                found &= column <= high if node.takes_high else column < high
        elif isinstance(node, Pattern) and _is_text(column.dtype):
            pattern = "".join(
                {"*": ".*", "?": "."}.get(part, re.escape(part)) for part in re.split(r"([*?])", node.text)
            )
            found = column.str.contains(f"(?s)^{pattern}$")
        elif isinstance(node, Word | Phrase) and (value := _value(node.text, column.dtype)) is not None:
            found = column == value
        else:
            return None
        return found.fill_null(False).to_numpy()


def _is_text(dtype: pl.DataType) -> bool:
    return dtype in (pl.String, pl.Categorical, pl.Enum)


def _value(text: str, dtype: pl.DataType) -> pl.Series | None:
    """Return a value of a column's type as a series of one; None if the text is none."""
    if _is_text(dtype):
        return pl.Series([text], dtype=pl.String)
    if dtype == pl.Boolean:
        return pl.Series([text.lower() == "true"]) if text.lower() in ("true", "false") else None
    values = pl.Series([text], dtype=pl.String)
    try:
        if dtype.is_numeric():
            found = values.cast(pl.Int64, strict=False) if dtype.is_integer() else values
            found = values.cast(pl.Float64, strict=False) if found.dtype == pl.String or found.null_count() else found
        elif dtype == pl.Date or dtype == pl.Datetime:
            found = values.str.to_datetime(strict=False, time_unit="us").cast(dtype)
        else:
            return None
    except pl.exceptions.PolarsError:
        return None
    return None if found.null_count() else found


def fields_at_leaves(node: Node) -> Node:
    """Move fields to the leaves of their groups: ``year:(2020 OR 2021)`` is ``year:2020 OR year:2021``."""
    if isinstance(node, Field):
        return _push(node.name, fields_at_leaves(node.node))
    return _mapped(node, fields_at_leaves)


def _push(name: str, node: Node) -> Node:
    if isinstance(node, Boost | Not | And | Or | Sequence):
        return _mapped(node, lambda part: _push(name, part))
    return node if isinstance(node, Field) else Field(name, node)


def _mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    """Change the parts of a node."""
    if isinstance(node, Boost | Not):
        return replace(node, node=change(node.node))
    if isinstance(node, And | Or):
        return replace(node, nodes=tuple(map(change, node.nodes)))
    if isinstance(node, Sequence):
        return Sequence(tuple((modifier, change(part)) for modifier, part in node.clauses))
    return node
