"""Weights of words in plain Python over the words of rows: what every call is held to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import polars as pl

from tests import bm25_oracle

Documents = Sequence[Sequence[str] | None]
"""Each row's words; None for a null row, which is no document."""
Weighted = list[tuple[Any, str, float]]

ROW = pl.get_index_type()
SCHEMA = {"id": ROW, "word": pl.String, "weight": pl.Float64}
"""Columns of every result, where rows have no labels."""


def bm25_weights(
    documents: Documents,
    labels: Sequence[Any] | None = None,
    top: int | None = None,
    known: Collection[str] | None = None,
    scoring: str = "lucene",
    k1: float = 1.5,
    b: float = 0.75,
    delta: float = 0.5,
) -> Weighted:
    there = [words for words in documents if words is not None]
    frequencies = Counter(word for words in there for word in set(words))
    average = sum(map(len, there)) / max(len(there), 1)

    def weigh(words: Sequence[str]) -> dict[str, float]:
        return {
            word: bm25_oracle.idf(scoring, len(there), frequencies[word])
            * bm25_oracle.part(scoring, count, len(words), average, k1, b, delta)
            for word, count in Counter(words).items()
            if known is None or word in known
        }

    return _rows([None if words is None else weigh(words) for words in documents], labels, top)


def tfidf(
    documents: Documents,
    labels: Sequence[Any] | None = None,
    top: int | None = None,
    known: Collection[str] | None = None,
    use_idf: bool = True,
    smooth_idf: bool = True,
    sublinear_tf: bool = False,
    norm: str | None = "l2",
) -> Weighted:
    documents = [words and [word for word in words if known is None or word in known] for words in documents]
    there = [words for words in documents if words is not None]
    frequencies = Counter(word for words in there for word in set(words))

    def weigh(words: Sequence[str]) -> dict[str, float]:
        weights = {
            word: 1 + math.log(count) if sublinear_tf else float(count) for word, count in Counter(words).items()
        }
        if use_idf:
            n = len(there) + smooth_idf
            weights = {word: w * (math.log(n / (frequencies[word] + smooth_idf)) + 1) for word, w in weights.items()}
        size = {"l1": math.fsum(weights.values()), "l2": math.hypot(*weights.values()), None: 1.0}[norm]
        return {word: weight / size if size else weight for word, weight in weights.items()}

    return _rows([None if words is None else weigh(words) for words in documents], labels, top)


def close(got: Weighted, expected: Weighted, top: int | None = None) -> None:
    """Hold a result to the oracle: weights to 1e-12, and its words and their order but where weights are as close."""
    assert len(got) == len(expected)
    for (label, word, weight), (wanted_label, wanted_word, wanted) in zip(got, expected, strict=True):
        assert label == wanted_label
        assert top is not None or word == wanted_word
        assert math.isclose(weight, wanted, rel_tol=1e-12, abs_tol=1e-300)


def _rows(weighted: Sequence[dict[str, float] | None], labels: Sequence[Any] | None, top: int | None) -> Weighted:
    rows: Weighted = []
    for row, weights in enumerate(weighted):
        found = sorted((weights or {}).items())
        if top is not None:
            found = sorted(found, key=lambda item: (-item[1], item[0]))[:top]
        rows += [(row if labels is None else labels[row], word, weight) for word, weight in found]
    return rows
