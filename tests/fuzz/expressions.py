"""Every expression that Polars can serialise, and the forms in which code fits into one."""

from __future__ import annotations

import inspect
import json
import os
import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any

import polars as pl

MARK = "POLARS_TADOC_CODE_WAS_RUN"
"""A variable of the process's environment that planted code sets to the place that it stood at."""

LONGEST_LIST = 4
"""Entries of a list that something is planted in the place of: most are the bytes of literals."""


def was_run() -> bool:
    """Tell whether planted code was run; forgets it."""
    return os.environ.pop(MARK, None) is not None


class Planted:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Set the mark."""
        return exec, (f"import os; os.environ[{MARK!r}] = '1'",)


def _with_planted(tree: Any) -> Any:
    """Return a serialized expression with each pickle in it replaced."""
    if isinstance(tree, dict):
        return {key: _with_planted(value) for key, value in tree.items()}
    if isinstance(tree, list):
        start = next((at for at in range(len(tree) - 1) if tree[at : at + 2] in ([128, 4], [128, 5])), None)
        if start is not None and all(isinstance(value, int) for value in tree):
            return [*tree[:start], *pickle.dumps(Planted(), protocol=4)]
        return [_with_planted(value) for value in tree]
    return tree


def serialized(expression: pl.Expr) -> Any:
    """Return an expression as Polars writes it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return json.loads(expression.meta.serialize(format="json"))


def apply(expression: pl.Expr) -> None:
    """Normalise words, whatever comes of it."""
    with suppress(pl.exceptions.PolarsError, pl.exceptions.PanicException):
        pl.Series([["ab", "a-b", None]]).list.eval(expression)


@cache
def plants() -> dict[str, Any]:
    """What stands for code in Polars' JSON: nodes, types that an expression tells, functions, libraries, bytes."""
    element = pl.element()
    batches = _with_planted(serialized(element.map_batches(len, return_dtype=pl.String)))
    elements = _with_planted(serialized(element.map_elements(len, return_dtype=pl.String)))
    renamed = _with_planted(serialized(element.name.map(str)))
    rolling = _with_planted(serialized(element.rolling_map(len, 1)))
    fold = _with_planted(serialized(pl.fold(pl.lit(""), lambda one, _: one, [element])))
    flags = {"check_lengths": True, "flags": "LENGTH_PRESERVING"}
    library = {"FfiPlugin": {"flags": flags, "is_deterministic": True, "lib": "/x.so", "symbol": "a", "kwargs": []}}
    return {
        "node": batches,
        "elements": elements,
        "type": {"OfExpr": batches},
        "renaming": renamed,
        "function": rolling["Function"]["function"],
        "fold": fold,
        "bytes": batches["AnonymousFunction"]["function"],
        "library": {"Function": {"input": ["Element"], "function": library}},
    }


def places(tree: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Give the way to each value within JSON, the whole first; of long lists the first entries'."""
    yield way
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from places(value, (*way, key))
    elif isinstance(tree, list):
        for at, value in enumerate(tree[:LONGEST_LIST]):
            yield from places(value, (*way, at))


def planted(tree: Any, way: tuple[Any, ...], value: Any, *, beside: str | None = None) -> Any:
    """Return JSON with a value at a place; ``beside`` adds it to the object there, under that name."""
    if not way:
        return {**tree, beside: value} if beside is not None and isinstance(tree, dict) else value
    changed = dict(tree) if isinstance(tree, dict) else list(tree)
    changed[way[0]] = planted(tree[way[0]], way[1:], value, beside=beside)
    return changed


_ANY = ("a", 1, ["a"], [1], True, "1d", pl.String, 1.5)
_BY_NAME: dict[str, Any] = {
    "dtype": pl.dtype_of(pl.element()),
    "return_dtype": pl.dtype_of(pl.element()),
    "format": "%Y",
    "form": "NFC",
    "encoding": "hex",
    "transfer_encoding": "base64",
    "closed": "both",
    "mapping": {"a": "b"},
    "old": ["a"],
    "new": ["b"],
    "patterns": ["a"],
    "replace_with": ["b"],
    "expr": pl.element().first(),
    "function": len,
    "time_zone": "UTC",
    "time_unit": "us",
}


@cache
def every() -> dict[str, Any]:
    """By name, what Polars writes of a call of each public method of an expression and its namespaces."""
    element = pl.element()
    owners = {"": element, **{f"{name}.": getattr(element, name) for name in sorted(pl.Expr._accessors)}}
    found = {"element": serialized(element)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for prefix, owner in owners.items():
            for name in sorted(dir(owner)):
                if name.startswith("_") or prefix + name in _LEFT_OUT or prefix in ("meta.", "tadoc."):
                    continue
                method = getattr(owner, name)
                if callable(method) and (tree := _called(method)) is not None:
                    found[prefix + name] = tree
    return found | {name: serialized(expression) for name, expression in _others().items()}


_LEFT_OUT = {"deserialize", "from_json", "inspect", "pipe", "register_plugin", "show_graph"}


def _called(method: Callable[..., Any]) -> Any:
    """Call a method with what its parameters may take; None where it makes no expression of it."""
    try:
        parameters = [one for one in inspect.signature(method).parameters.values() if one.kind not in (2, 4)]
    except (TypeError, ValueError):
        return None
    needed = [one for one in parameters if one.default is one.empty or one.name in _BY_NAME]
    for number in range(len(_ANY)):
        given = {one.name: _BY_NAME.get(one.name, _ANY[(number + at) % len(_ANY)]) for at, one in enumerate(needed)}
        for least in (given, {one.name: given[one.name] for one in needed if one.default is one.empty}):
            try:
                positional = [least.pop(one.name) for one in needed if one.kind <= 1 and one.name in least]
                made = method(*positional, **least)
                if isinstance(made, pl.Expr):
                    return serialized(made)
            except (Exception, pl.exceptions.PanicException):
                continue
    return None


def _others() -> dict[str, pl.Expr]:
    """Expressions that are no call of one method."""
    word = pl.element()
    short = word.str.len_chars() < 3
    return {
        "cast to a type that is told": word.cast(pl.dtype_of(word)),
        "cast to an enumeration": word.cast(pl.Enum(["a"])),
        "cast to lists": word.cast(pl.List(pl.String)),
        "json": word.str.json_decode(pl.dtype_of(word)),
        "replaced": word.replace_strict({"a": "b"}, default=None, return_dtype=pl.dtype_of(word)),
        "date": word.str.strptime(pl.Date, "%Y"),
        "time": word.str.strptime(pl.Datetime("us", "UTC"), "%Y"),
        "integer": word.str.to_integer(dtype=pl.Int32),
        "conditions": pl.when(short).then(word).when(word == "a").then(pl.lit("b")).otherwise(word.str.head(1)),
        "operators": (word + "s" == "as") & ~word.is_in(["a"]) | (word > "c") ^ short,
        "numbers": (word.str.len_chars() * 2 + 1 - 3) // 2 % 3 / 1.5,
        "joined": pl.concat_str(word, pl.lit("a"), separator="-"),
        "formatted": pl.format("a{}b", word),
        "coalesced": pl.coalesce(word, pl.lit("a")),
        "horizontal": pl.max_horizontal(word, pl.min_horizontal(word, pl.lit("a"))),
        "all": pl.all_horizontal(short, pl.any_horizontal(short, word == "a")),
        "structure": pl.struct(word.alias("a")).struct.field("a"),
        "fields": pl.struct(word.alias("a")).struct.with_fields(pl.field("a").str.head(1)),
        "lists": word.str.split("-").list.eval(pl.element().str.to_lowercase()).list.filter(pl.element() != "a"),
        "aggregated": word.str.split("-").list.agg(pl.element().max()),
        "over": word.first().over(word, order_by=word),
        "ordered": word.sort_by(word, descending=True),
        "ranges": pl.int_range(0, 3) + pl.lit(1, pl.Int8),
        "literals": pl.concat_list(pl.lit("a"), pl.lit(pl.Series(["a", None])), pl.lit(None, pl.String)),
        "dates": pl.lit(1.5) + pl.date(2020, 1, 1).dt.year() + pl.lit(b"a").bin.size(),
        "selected": pl.col("a", "b") + pl.col("^c.*$") + pl.all().exclude("a") + pl.nth(0) + pl.len(),
        "clipped": word.str.len_chars().clip(1, 3).clip(2),
        "encoded": word.str.encode("base64"),
        "folded": pl.fold(pl.lit(""), lambda one, _: one, [word]),
        "reduced": pl.reduce(lambda one, _: one, [word, word]),
    }
