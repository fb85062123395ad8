"""Scores explained, against what searches give."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc

SCORINGS = ["robertson", "lucene", "atire", "bm25+", "bm25l", "wakatsuki"]
SCHEMA = {
    "word": pl.String,
    "count": pl.UInt32,
    "document_frequency": pl.UInt32,
    "idf": pl.Float64,
    "weight": pl.Float32,
    "score": pl.Float32,
}
TEXTS = [f"w{i % 3} w{i % 5} w{i % 7} the {'w1 ' * (i % 4)}" for i in range(40)]
COLUMN = tadoc.compress(pl.Series("text", TEXTS), rows_per_grammar=15)
NAMES = pl.Series("name", [f"doc {i}" for i in range(40)])
INDEX = tadoc.build_index(COLUMN, id=NAMES, stopwords=["the"])


def total(explained: pl.DataFrame) -> Any:
    """Sum in Float32, in order."""
    score = np.float32(0)
    for own in explained["score"].to_numpy():
        score = np.float32(score + own)
    return score


words = st.sampled_from(["w0", "w1", "w2", "w3", "w6", "the", "zz"])
units = st.one_of(words, st.lists(words, min_size=2, max_size=3).map(lambda own: f'"{" ".join(own)}"'))


@given(query=st.lists(units, max_size=6).map(" ".join), scoring=st.sampled_from(SCORINGS), changed=st.booleans())
def test_rows_add_up_to_the_score(query: str, scoring: str, changed: bool) -> None:
    index = INDEX
    if changed:
        index = INDEX.delete(["doc 3", "doc 8"]).append(COLUMN.head(3), id=pl.Series(["x", "y", "z"]))
    found = dict(index.search(query, k=100, scoring=scoring).select("id", "score").rows())
    for name in index.ids.to_list()[::7]:
        explained = index.explain(query, name, scoring=scoring)
        assert dict(explained.schema) == SCHEMA
        assert total(explained) == np.float32(found.get(name, 0))
        assert (explained["count"].drop_nulls() > 0).any() == (name in found)


def test_counts_and_frequencies() -> None:
    explained = INDEX.explain('w1 "w1 w1" the zz w1 w0', "doc 3")
    assert TEXTS[3].split() == ["w0", "w3", "w3", "the", "w1", "w1", "w1"]
    rows = {word: (count, df) for word, count, df in explained.select("word", "count", "document_frequency").rows()}
    holds = [text.replace("the ", "").split() for text in TEXTS]
    assert rows == {
        "zz": (0, 0),
        "w0": (1, sum("w0" in own for own in holds)),
        "w1": (3, sum("w1" in own for own in holds)),
        '"w1 w1"': (2, sum(any(own[i : i + 2] == ["w1", "w1"] for i in range(len(own))) for own in holds)),
    }
    assert explained["document_frequency"].is_sorted()
    by_word = {row["word"]: row for row in explained.iter_rows(named=True)}
    assert by_word["zz"]["idf"] is None
    assert by_word["zz"]["weight"] == by_word["zz"]["score"] == 0
    assert by_word["w1"]["weight"] == pytest.approx(2 * by_word["w1"]["idf"], rel=1e-6)  # it stands twice


@pytest.mark.parametrize("scoring", ["bm25+", "bm25l"])
def test_what_all_documents_get_has_a_row_without_a_word(scoring: str) -> None:
    assert INDEX.explain("w1 w0", "doc 3", scoring=scoring)["word"].to_list()[-1] is None
    assert INDEX.explain("w1 w0", "doc 3", scoring=scoring, delta=0)["score"][-1] == 0
    assert None not in INDEX.explain("zz", "doc 3", scoring=scoring)["word"].to_list()


def test_queries_without_words() -> None:
    for query in ("", "the", '""'):
        explained = INDEX.explain(query, "doc 1")
        assert (explained.height, dict(explained.schema)) == (0, SCHEMA)


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(ValueError, match=r"explain: the index has no document with id 'dok 12'; did you mean 'doc 12'"):
        INDEX.explain("w1", "dok 12")
    with pytest.raises(ValueError, match=r"no document with id None$"):
        INDEX.explain("w1", None)
    with pytest.raises(TypeError, match="the index's ids are String; 3 is not one"):
        INDEX.explain("w1", 3)
    with pytest.raises(TypeError, match="the index's ids are UInt32; True is not one"):
        tadoc.build_index(COLUMN).explain("w1", True)
    with pytest.raises(ValueError, match="explain: query is not text"):
        INDEX.explain("\ud800", "doc 1")
    with pytest.raises(TypeError, match="query must be a string, not list"):
        INDEX.explain(["w1"], "doc 1")
    with pytest.raises(ValueError, match="scoring='x': use one of"):
        INDEX.explain("w1", "doc 1", scoring="x")
    with pytest.raises(ValueError, match="explain: query 0, character 4: this quote is not closed"):
        INDEX.explain('w1 "w2', "doc 1", syntax="strict")
    numbered = tadoc.build_index(COLUMN)
    with pytest.raises(ValueError, match="no document with id 40; did you mean 39"):
        numbered.explain("w1", 40)
    with pytest.raises(ValueError, match="no document with id 3; did you mean 2 or 4"):
        numbered.delete([3]).explain("w1", 3)
    twice = tadoc.build_index(COLUMN, id=pl.Series(["same"] * 40))
    with pytest.raises(ValueError, match="40 documents have id 'same'"):
        twice.explain("w1", "same")
    empty = tadoc.build_index(COLUMN.head(0))
    with pytest.raises(ValueError, match=r"no document with id 0$"):
        empty.explain("w1", 0)
