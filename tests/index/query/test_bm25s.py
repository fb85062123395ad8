"""The same documents and scores as bm25s finds, for each of its five scorings, on three collections with judgements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_tadoc as tadoc
from tests.bm25_oracle import KAMPHUIS

bm25s = pytest.importorskip("bm25s")

COLLECTIONS = ["cranfield", "cisi", "vaswani"]


def words(text: pl.Series) -> list[list[str]]:
    return text.str.to_lowercase().str.extract_all(r"\w+").to_list()


@pytest.fixture(scope="module", params=COLLECTIONS)
def collection(request: pytest.FixtureRequest, corpus: Callable[[str], pl.DataFrame]) -> tuple[tadoc.Index, Any, Any]:
    """An index of a collection's texts, their words, and queries; in several grammars."""
    text = corpus(f"ir_{request.param}_docs")["text"]
    queries = corpus(f"ir_{request.param}_queries")["text"]
    column = tadoc.compress(text, rows_per_grammar=5000)
    return tadoc.build_index(column, lowercase=True), words(text), queries


@pytest.mark.parametrize("scoring", KAMPHUIS)
def test_same_as_bm25s(collection: tuple[tadoc.Index, Any, Any], scoring: str, engine: str) -> None:
    index, texts, queries = collection
    other = bm25s.BM25(method=scoring)
    other.index(texts, show_progress=False)
    found = index.search(queries, 10, syntax="plain", scoring=scoring, engine=engine)
    retrieved = other.retrieve(words(queries), k=10, show_progress=False)[0]
    for number, query in enumerate(words(queries)):
        own = found.filter(query=number)
        every = other.get_scores(query)
        falling = np.sort(every)[::-1][:11]
        best = falling[:10]
        np.testing.assert_allclose(own["score"], best, rtol=1e-5)
        np.testing.assert_allclose(own["score"], every[own["id"].to_numpy()], rtol=1e-5)  # equal ones in any order
        apart = np.flatnonzero(np.diff(falling) < -1e-4 * best)
        for stop in apart + 1:
            assert set(own["id"][: int(stop)]) == set(retrieved[number, :stop].tolist())
