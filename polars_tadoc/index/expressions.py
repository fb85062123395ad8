"""Which expressions an index saves: those that hold no code, so that loading a folder from outside runs none.

A serialized Polars expression may hold Python functions, pickled, in more than one place (``map_batches``,
``rolling_map``, ``fold``, ``name.map``), and names of libraries to load. Here stands what may be in one instead.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from polars_tadoc.arrow import ARROW_ERRORS

_FUNCTIONS = ("StringExpr", "Boolean", "ReplaceStrict")
"""Families of functions none of which takes code; without parameters any function may be used."""

_DEEPEST = 200
"""Expressions within expressions."""


def is_plain(node: Any, depth: int = 0) -> bool:
    """Tell whether a serialized expression consists of literals, casts, conditions, operators and plain functions.

    Examples
    --------
    >>> is_plain({"Function": {"input": ["Element"], "function": {"StringExpr": "Lowercase"}}})
    True
    >>> is_plain({"AnonymousFunction": {"input": ["Element"], "function": [80, 76]}})
    False

    """
    if node == "Element":
        return True
    if not isinstance(node, dict) or len(node) != 1 or depth > _DEEPEST:
        return False
    ((kind, parts),) = node.items()
    return kind in _KINDS and _KINDS[kind](parts, depth + 1)


def read(serialized: Any) -> pl.Expr:
    """Make an expression of a plain one.

    Raises
    ------
    ValueError
        It is not plain, or this Polars cannot read it, or has no such function of strings.

    """
    if not is_plain(serialized):
        raise ValueError("it may call code")
    try:
        expression = pl.Expr.deserialize(io.StringIO(json.dumps(serialized)), format="json")
        _NO_WORDS.list.eval(expression)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, RecursionError) as error:
        raise ValueError(str(error)) from None
    return expression


_NO_WORDS = pl.Series([[]], dtype=pl.List(pl.String))


def _are_plain(*names: str) -> Callable[[Any, int], bool]:
    """Make a check that the parts of these names are plain."""

    def check(parts: Any, depth: int) -> bool:
        return isinstance(parts, dict) and all(is_plain(parts.get(name), depth) for name in names)

    return check


def _is_function(parts: Any, depth: int) -> bool:
    if not isinstance(parts, dict) or set(parts) != {"input", "function"} or not isinstance(parts["input"], list):
        return False
    function = parts["function"]
    is_known = isinstance(function, str) or (
        isinstance(function, dict) and len(function) == 1 and next(iter(function)) in _FUNCTIONS
    )
    return is_known and all(is_plain(one, depth) for one in parts["input"])


def _is_alias(parts: Any, depth: int) -> bool:
    return isinstance(parts, list) and len(parts) == 2 and is_plain(parts[0], depth) and isinstance(parts[1], str)


def _is_literal(parts: Any, depth: int) -> bool:
    """Tell whether a literal's lists of numbers, Arrow's IPC streams, are sound: Polars takes them as they are."""
    if isinstance(parts, dict):
        return depth < _DEEPEST and all(_is_literal(value, depth + 1) for value in parts.values())
    if not isinstance(parts, Sequence) or isinstance(parts, str):
        return True
    try:
        pa.ipc.open_stream(bytes(parts)).read_all().validate(full=True)
    except (*ARROW_ERRORS, TypeError, ValueError):
        return False
    return True


_KINDS: dict[str, Callable[[Any, int], bool]] = {
    "Alias": _is_alias,
    "BinaryExpr": _are_plain("left", "right"),
    "Cast": _are_plain("expr"),
    "Function": _is_function,
    "Literal": _is_literal,
    "Ternary": _are_plain("predicate", "truthy", "falsy"),
}
