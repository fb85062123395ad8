"""Compressed columns in the shapes that analytics meet, each with the words that its rows hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import polars as pl
from hypothesis import strategies as st

import polars_tadoc as tadoc
from tests import oracle
from tests.strategies import columns

STRATEGIES = ["auto", "top_down", "bottom_up"]
NOTHING: list[list[str | None]] = [[], [None], [None, None], ["", None], [" ", "..."]]
"""Columns without a word."""

COLUMN = tadoc.compress(
    pl.Series("text", ["the cat saw the dog", None, "the dog saw the cat saw", "", "a cat"]), rows_per_grammar=2
)
"""For tests of arguments."""

LABELS = {
    "strings": pl.Series([f"doc {9 - k}" for k in range(10)]),
    "integers": pl.Series([7 * k % 10 - 3 for k in range(10)], dtype=pl.Int16),
    "dates": pl.Series([date(2024, 1, 10 - k) for k in range(10)]),
    "some null": pl.Series(["x", None] * 5),
    "all null": pl.Series([None] * 10, dtype=pl.Int64),
    "equal": pl.Series(["same"] * 10),
    "categories": pl.Series([f"c{k % 3}" for k in range(10)], dtype=pl.Categorical),
    "enum": pl.Series(["b", "a"] * 5, dtype=pl.Enum(["b", "a"])),
    "lists": pl.Series([[k, None] for k in range(10)]),
}
"""Ten labels each, of many types."""

Image = Callable[[str], str | None]
NORMALISATIONS: dict[str, tuple[pl.Expr, Image]] = {
    "upper": (pl.element().str.to_uppercase(), str.upper),
    "first": (pl.element().str.head(1), lambda word: word[:1]),
    "short": (pl.when(pl.element().str.len_chars() < 3).then(pl.element()), lambda w: w if len(w) < 3 else None),
    "none": (pl.when(pl.element() == "no such word").then(pl.element()), lambda word: None),
}


@dataclass(frozen=True)
class Case:
    """A compressed column, the words of its rows (None for a null row), and the arguments that normalise so."""

    column: pl.Series
    documents: list[list[str] | None]
    arguments: dict[str, Any]


_repetitive = st.builds(
    lambda units, picks: " ".join(units[pick % len(units)] for pick in picks),
    st.lists(st.sampled_from(["a", "b", "a b", "the cat", "The", "b a b", "日本", "é"]), min_size=1, max_size=4),
    st.lists(st.integers(0, 3), max_size=25),
)


@st.composite
def _rows(draw: st.DrawFn) -> list[str | None]:
    pool = draw(st.lists(st.one_of(_repetitive, st.none()), min_size=1, max_size=4))
    return draw(st.lists(st.sampled_from(pool), max_size=12))


@st.composite
def cases(draw: st.DrawFn, normalised: bool = False) -> Case:
    """Rows that repeat one another in one grammar or several, some of them filtered out."""
    rows = draw(st.one_of(_rows(), columns))
    arguments: dict[str, Any] = {}
    images: list[Image] = []
    if normalised:
        # where Python and Unicode's full mapping agree about case
        rows = [row and re.sub(r"[^ -~日本かéβ\n]", " ", row) for row in rows]
        name = draw(st.sampled_from([None, *NORMALISATIONS]))
        stopwords = draw(st.none() | st.lists(st.sampled_from(["the", "a", "B", "日", "TH", "", "x"]), max_size=3))
        if name:
            arguments["normalize"] = NORMALISATIONS[name][0]
            images.append(NORMALISATIONS[name][1])
        lowercase = draw(st.booleans())
        if lowercase:
            arguments["lowercase"] = True
            images.append(str.lower)
        if stopwords is not None:
            arguments["stopwords"] = stopwords
            stop = {word.lower() for word in stopwords} if lowercase else set(stopwords)
            images.append(lambda word: None if word in stop else word)
    column = tadoc.compress(pl.Series("text", rows, pl.String), rows_per_grammar=draw(st.integers(1, 5)))
    keep = draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)) | st.none())
    if keep is not None:
        column = column.filter(pl.Series(keep, dtype=pl.Boolean))
        rows = [row for row, kept in zip(rows, keep, strict=True) if kept]
    documents = oracle.tokenize(rows)
    for image in images:
        documents = oracle.normalise(documents, image)
    return Case(column, documents, arguments)


strategies = st.sampled_from(STRATEGIES)
tops = st.none() | st.integers(0, 6)
least = st.integers(0, 3)
labels = st.sampled_from(sorted(LABELS)).map(LABELS.__getitem__) | st.none()


def with_labels(case: Case, labels: pl.Series | None) -> tuple[pl.DataFrame, dict[str, Any], list[Any] | None]:
    """The case's column in a frame with labels (repeated or cut to its length), the ``id=`` argument, their values."""
    frame = case.column.to_frame("text")
    if labels is None:
        return frame, {}, None
    fitting = labels.new_from_index(0, 0) if not len(frame) else pl.concat([labels] * 2).head(len(frame))
    return frame.with_columns(fitting.alias("label")), {"id": "label"}, fitting.to_list()


def same_by_every_call(call: str, frame: pl.DataFrame, arguments: dict[str, Any]) -> None:
    """Frame, lazy frame (both engines of Polars), series and function give the same table."""
    expected = getattr(frame.tadoc, call)("text", **arguments)
    name = arguments.get("id")
    as_series = {**arguments, "id": frame[name]} if name else arguments
    lazy = getattr(frame.lazy().tadoc, call)("text", **arguments)
    table = getattr(tadoc, call)(frame["text"], **as_series)
    others: Sequence[pl.DataFrame] = (
        getattr(frame.tadoc, call)(**arguments),
        getattr(frame["text"].tadoc, call)(**as_series),
        lazy.collect(),
        lazy.collect(engine="streaming"),
        pl.DataFrame(table).cast(dict(expected.schema)),
    )
    assert lazy.collect_schema() == expected.schema
    for other in others:
        assert other.equals(expected)
        assert other.schema == expected.schema
