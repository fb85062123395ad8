"""Reads queries: most are words, and are left as they are; others become trees."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import polars as pl

from polars_tadoc.errors import QuerySyntaxError
from polars_tadoc.index.collection import Collection
from polars_tadoc.index.language.ideographs import ideographs_joined, joins_ideographs, run_of_ideographs
from polars_tadoc.index.language.parse import SYNTAX, may_have_syntax, parse
from polars_tadoc.index.language.tree import Node, Word
from polars_tadoc.index.query.analyzer import bytes_of
from polars_tadoc.index.query.shapes import joined
from polars_tadoc.index.query.trees import ANY, BY_MODE
from polars_tadoc.kernels.host.rows.query_shapes import MARKS

SHORT = 512
"""Trees of queries of up to this many characters are cached: a single query may be asked for twice."""

FEW = 64
"""Python finds syntax in up to this many queries sooner than Polars."""


class Read(NamedTuple):
    """A batch of queries."""

    texts: str | pl.Series
    """Queries that are words only; the others are empty here."""
    joins: dict[int, int]
    """Queries whose words are joined in another way than the mode says: ``ANY`` or ``ALL``."""
    trees: dict[int, Node]
    """The other queries, ascending."""


def read(index: Collection, texts: str | pl.Series, syntax: str, call: str) -> Read:
    """Read a batch of queries; messages name the call."""
    joins_own = index.analyzer.joins_ideographs
    asked = _asked(texts, syntax) if syntax != "plain" else []
    if joins_own:
        asked = sorted({*asked, *_with_ideographs(texts)})
    if not len(asked):
        return Read(texts, {}, {})
    fields = fields_of(index)
    own = [texts] if isinstance(texts, str) else texts.to_list()
    joins: dict[int, int] = {}
    trees: dict[int, Node] = {}
    for query in asked:
        try:
            words, join, tree = read_one(own[query] or "", fields, syntax, joins_own)
        except QuerySyntaxError as error:
            raise QuerySyntaxError(f"{call}: query {query}, {error}") from None
        own[query] = words
        if tree is not None:
            trees[query] = tree
        elif join != BY_MODE:
            joins[query] = join
    return Read(own[0] or "" if isinstance(texts, str) else pl.Series("query", own, pl.String), joins, trees)


def fields_of(index: Collection) -> tuple[str, ...]:
    """Return the names that are fields before a colon."""
    names = () if index.stored.metadata is None else tuple(index.stored.metadata.columns)
    return names if index.fields is None else (*index.fields.names, *names)


def read_one(text: str, fields: tuple[str, ...], syntax: str, joins_own: bool) -> tuple[str, int, Node | None]:
    """Return a query as words and how they are joined, or with its tree."""
    return (_read_short if len(text) <= SHORT else _read)(text, fields, syntax, joins_own)


def _read(text: str, fields: tuple[str, ...], syntax: str, joins_own: bool) -> tuple[str, int, Node | None]:
    tree: Node = Word(text) if syntax == "plain" else parse(text, fields, syntax == "strict")
    tree = ideographs_joined(tree) if joins_own else tree
    parts, join = joined(tree)
    words = [part.text for part in parts if isinstance(part, Word)]
    if len(words) == len(parts) and (join != ANY or all(map(str.isalnum, words))):
        return " ".join(words), join, None
    return "", BY_MODE, tree


_read_short = lru_cache(maxsize=256)(_read)


def _with_ideographs(texts: str | pl.Series) -> list[int]:
    """Return the queries with adjacent ideographs."""
    if isinstance(texts, str):
        return [0] if joins_ideographs(texts) else []
    return texts.str.contains(run_of_ideographs().pattern).fill_null(False).arg_true().to_list()


def _asked(texts: str | pl.Series, syntax: str) -> list[int]:
    """Return the queries that may have syntax."""
    if isinstance(texts, str):
        return [0] if syntax == "strict" or (has_marks(texts.encode()) and may_have_syntax(texts)) else []
    return [*range(len(texts))] if syntax == "strict" else with_syntax(texts)


def with_syntax(texts: pl.Series) -> list[int]:
    """Return the numbers of the queries that may have syntax."""
    data, starts = bytes_of(texts)
    if not has_marks(data.tobytes()):
        return []
    marks = _MARKED[data].nonzero()[0]
    rows = np.unique(starts.searchsorted(marks, "right") - 1)
    if len(rows) > FEW:  # Polars compiles the pattern for each call
        return texts.str.contains(SYNTAX).fill_null(False).arg_true().to_list()
    strings = texts.gather(rows).to_list()
    return [row for row, text in zip(rows.tolist(), strings, strict=True) if may_have_syntax(text)]


def has_marks(data: bytes) -> bool:
    """Tell whether a query may have syntax, fast."""
    is_marked = len(data.translate(None, MARKS)) != len(data)
    if is_marked or data.islower():
        return is_marked
    return b"AND" in data or b"OR" in data or b"NOT" in data or b"NEAR/" in data


_MARKED = np.zeros(256, np.bool_)
_MARKED[[*MARKS, *b"DRT"]] = True  # the last letters of operators
