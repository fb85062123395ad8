"""Analytics as Spark's tasks answer them, with the answer of one process to hold them to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import pyarrow as pa

import polars_tadoc as tadoc
from polars_tadoc.analytics import (
    bm25_weights,
    cooccurrence,
    inverted_index,
    ranked_inverted_index,
    sequence_count,
    sort,
    term_vector,
    tfidf,
    twig_filter,
    word_count,
)
from polars_tadoc.analytics.explain import REQUESTS

WORD, COUNT = ("word", pa.string()), ("count", pa.int64())
SEQUENCE = ("sequence", pa.list_(pa.string()))


@dataclass(frozen=True)
class Case:
    """A call, with some arguments and the types of its result on Spark."""

    module: Any
    columns: list[tuple[str, pa.DataType]]
    arguments: dict[str, Any] = field(default_factory=dict)
    labelled: bool = False
    tokenizer: str = "words"

    @property
    def name(self) -> str:
        return str(self.module.__name__.rpartition(".")[2])

    @property
    def request(self) -> Any:
        kinds = {**REQUESTS, "twig_filter": twig_filter.TwigFilterRequest}
        return kinds[self.name].from_arguments(**self.arguments)

    @property
    def schema(self) -> pa.Schema:
        return pa.schema(self.columns)

    def expected(self, frame: pl.DataFrame) -> list[dict[str, Any]]:
        """Rows of the answer over compressed text in the order of the ids, in this process."""
        ordered = frame.sort("id", maintain_order=True)
        column = ordered["text"]
        if column.dtype == pl.String:
            column = tadoc.compress(column, tokenizer=self.tokenizer)
        labels = {"id": ordered["id"]} if self.labelled else {}
        made: list[dict[str, Any]] = (
            getattr(tadoc, self.name)(column, **self.arguments, **labels).cast(self.schema).to_pylist()
        )
        return made


def _documents(kind: pa.DataType) -> tuple[str, pa.DataType]:
    return "documents", pa.list_(kind)


def cases(kind: pa.DataType) -> dict[str, Case]:
    """Each analytic, over documents called by values of a type."""
    label = ("id", kind)
    ranked = _documents(pa.struct([("id", kind), COUNT]))
    weights = [label, WORD, ("weight", pa.float64())]
    queries = {"a": "//a", "a with b": "//a[b]", "root": "/r"}
    return {
        "word_count": Case(word_count, [WORD, COUNT]),
        "word_count limited": Case(word_count, [WORD, COUNT], {"min_count": 2, "lowercase": True, "stopwords": ["a"]}),
        "sort": Case(sort, [WORD, COUNT]),
        "sequence_count": Case(sequence_count, [SEQUENCE, COUNT], {"n": 2}),
        "cooccurrence": Case(cooccurrence, [WORD, ("other", pa.string()), COUNT], {"window": 3}),
        "inverted_index": Case(inverted_index, [WORD, _documents(kind)], labelled=True),
        "ranked_inverted_index": Case(ranked_inverted_index, [SEQUENCE, ranked], {"n": 2, "top": 2}, labelled=True),
        "term_vector": Case(term_vector, [label, WORD, COUNT], {"top": 3}, labelled=True),
        "bm25_weights": Case(bm25_weights, weights, labelled=True),
        "bm25_weights, top": Case(bm25_weights, weights, {"scoring": "bm25+", "top": 2}, labelled=True),
        "tfidf": Case(tfidf, weights, {"lowercase": True}, labelled=True),
        "twig_filter": Case(
            twig_filter, [label, ("query", pa.string())], {"queries": queries, "on_error": "null"}, True, "xml"
        ),
    }


def rows(table: Iterable[Any]) -> list[str]:
    """Rows in an order that does not hang on how tasks were run."""
    return sorted(map(repr, table))
