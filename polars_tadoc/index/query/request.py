"""Checked arguments of a search: number of results, mode, scoring, queries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, TypedDict, get_args

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.runtime.arguments import require_integer, require_text
from polars_tadoc.scoring.bm25 import Scoring
from polars_tadoc.traversal.options import MAX_COUNT

ModeName = Literal["and", "or", "and_or"]
SyntaxName = Literal["lenient", "strict", "plain"]
QueriesLike = str | pl.Series | Iterable[str | None]
"""Exclude Arrow arrays here: they are iterable, too."""
FilterLike = pl.Series | pl.Expr | npt.NDArray[np.bool_] | Iterable[bool | None] | None


class SearchOptions(TypedDict, total=False):
    """Options of a search for one query."""

    mode: str
    syntax: str
    scoring: str
    k1: float
    b: float
    delta: float
    filter: FilterLike
    engine: str | None


class PageOptions(SearchOptions, total=False):
    """Options of a search for a batch of queries."""

    offset: int
    total: bool
    sort: str | Iterable[str] | None
    descending: bool | Sequence[bool]
    group_by: str | None


@dataclass(frozen=True, eq=False)  # caches compare requests by identity
class Request:
    """Options of a search."""

    k: int
    mode: str
    scoring: Scoring
    syntax: str = "lenient"

    @classmethod
    def of(cls, k: Any, mode: Any, scoring: Any, k1: Any, b: Any, delta: Any, syntax: Any = "lenient") -> Request:
        """Check arguments; results are cached, so repeated arguments cost nothing.

        Raises
        ------
        TypeError
            An argument has the wrong type.
        ValueError
            The mode, syntax or scoring is unknown, or a number is out of range.

        """
        try:
            return _checked(k, mode, scoring, k1, b, delta, syntax)
        except TypeError:  # unhashable, or a wrong type, which raises again below
            return _checked.__wrapped__(k, mode, scoring, k1, b, delta, syntax)


@lru_cache(maxsize=64, typed=True)
def _checked(k: Any, mode: Any, scoring: Any, k1: Any, b: Any, delta: Any, syntax: Any) -> Request:
    form = Scoring(scoring, k1, b, delta)
    count = min(require_integer("k", k, 0), MAX_COUNT)
    if mode not in get_args(ModeName):
        raise ValueError(f'mode={mode!r}: use "and", "or" or "and_or"')
    return Request(count, mode, form, require_syntax(syntax))


@lru_cache(maxsize=64)
def with_mode(request: Request, mode: str) -> Request:
    """Return a request with another mode; the same one each time."""
    return replace(request, mode=mode)


def require_syntax(syntax: Any) -> str:
    """Return the name of a syntax.

    Raises
    ------
    ValueError
        There is no such syntax.

    """
    if syntax not in get_args(SyntaxName):
        raise ValueError(f'syntax={syntax!r}: use "lenient", "strict" or "plain"')
    return str(syntax)


def as_texts(queries: QueriesLike, call: str) -> str | pl.Series:
    """Return queries as a String series; a single string stays a string, as making a series takes microseconds.

    Raises
    ------
    TypeError
        Not strings; the message names the call.
    ValueError
        A query is not valid text.

    """
    if isinstance(queries, str):
        require_text(queries, f"{call}: query")
        return queries
    if isinstance(queries, (pa.Array, pa.ChunkedArray)):
        queries = pl.Series("query", queries)
    if isinstance(queries, pl.Series):
        if queries.dtype == pl.Null:
            return queries.cast(pl.String)
        if queries.dtype != pl.String:
            raise TypeError(f"{call}: queries are a series of {queries.dtype}, not String; cast it first")
        return queries
    if not isinstance(queries, Iterable) or isinstance(queries, (bytes, dict, Set, pl.DataFrame)):
        raise TypeError(f"{call}: queries are strings: one, a list, or a String series; not {type(queries).__name__}")
    texts = list(queries)
    for number, text in enumerate(texts):
        if not isinstance(text, str) and text is not None:
            raise TypeError(f"{call}: query {number} is {type(text).__name__}, not a string")
    try:
        return pl.Series("query", texts, pl.String)
    except UnicodeEncodeError:
        for number, text in enumerate(texts):
            require_text(text or "", f"{call}: query {number}")
        raise
