"""A phrase of its own for each row, against the same phrase for one row (defined in test_phrases.py)."""

from __future__ import annotations

import pickle
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.rows import phrase_by_row
from tests.analytic_cases import Case, cases


@given(data=st.data(), case=cases(normalised=True))
def test_each_row_has_its_phrase(data: Any, case: Case) -> None:
    words = sorted({word for own in case.documents if own for word in own} | {"a", "The"})
    phrase = st.lists(st.sampled_from(words), min_size=1, max_size=3).map(" ".join) | st.sampled_from([None, "", " - "])
    phrases = pl.Series(
        "phrase", data.draw(st.lists(phrase, min_size=len(case.column), max_size=len(case.column))), pl.String
    )
    wanted = []
    for row, phrase in enumerate(phrases):
        one = case.column[row : row + 1]
        if phrase is None or one.null_count():
            wanted.append(None)
        else:
            has_word = len(pl.Series([phrase]).tadoc.compress().tadoc.word_count())
            wanted.append(tadoc.count_phrase(one, phrase, **case.arguments).item() if has_word else 0)
    found = tadoc.count_phrase(case.column, phrases, **case.arguments)
    assert (found.to_list(), found.dtype, found.name) == (wanted, pl.UInt64, case.column.name)
    text = case.column.tadoc.decompress()
    assert tadoc.count_phrase(text, phrases, **case.arguments).to_list() == wanted
    lf = pl.LazyFrame([case.column.alias("text"), phrases])
    expression = pl.col("text").tadoc.count_phrase(pl.col("phrase"), **case.arguments)
    assert lf.select(expression).collect().to_series().to_list() == wanted
    held = [None if count is None else count > 0 for count in wanted]
    found = tadoc.contains_phrase(case.column, phrases, **case.arguments)
    assert (found.to_list(), found.dtype, found.name) == (held, pl.Boolean, case.column.name)
    assert text.tadoc.contains_phrase(phrases, **case.arguments).to_list() == held
    expression = pl.col("text").tadoc.contains_phrase(pl.col("phrase"), **case.arguments)
    assert lf.select(expression).collect().to_series().to_list() == held


@pytest.mark.parametrize("threads", [1, 2, 16])
def test_many_phrases_side_by_side(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phrase_by_row, "PHRASES", 1)
    rows = [f"w{i} w{i % 7} w{i}" for i in range(300)]
    column = pl.Series("text", rows).tadoc.compress()
    phrases = pl.Series([f"w{i}" if i % 3 else f"w{i} w{i % 7}" for i in range(300)])
    wanted = [
        sum(row.split()[at : at + len(phrase.split())] == phrase.split() for at in range(3))
        for row, phrase in zip(rows, phrases, strict=True)
    ]
    with tadoc.Config(threads=threads):
        assert tadoc.count_phrase(column, phrases).to_list() == wanted
        assert tadoc.contains_phrase(column, phrases).to_list() == [count > 0 for count in wanted]
        assert not tadoc.contains_phrase(column, phrases.shift(1)).drop_nulls().all()


def test_lengths_and_types() -> None:
    df = pl.DataFrame({"text": ["a b a", "b a", None]}).tadoc.compress("text")
    expression = pl.col("text").tadoc.count_phrase(pl.lit("a"))
    assert df.select(pickle.loads(pickle.dumps(expression))).to_series().to_list() == [2, 1, None]
    assert tadoc.count_phrase(df["text"], pl.Series([None])).to_list() == [None] * 3
    assert tadoc.count_phrase(df["text"].clear(), pl.Series([], dtype=pl.String)).to_list() == []
    with pytest.raises(ValueError, match="there are 2 phrases for 3 rows"):
        tadoc.count_phrase(df["text"], pl.Series(["a", "b"]))
    with pytest.raises(ValueError, match="contains_phrase: there are 2 phrases for 3 rows"):
        tadoc.contains_phrase(df["text"], pl.Series(["a", "b"]))
    with pytest.raises(TypeError, match="the phrases are Int64, not String"):
        tadoc.count_phrase(df["text"], pl.Series([1, 2, 3]))
    with pytest.raises(TypeError, match="lowercase"):
        pl.col("text").tadoc.count_phrase(pl.col("phrase"), lowercase=1)
    with pytest.raises(TypeError, match="lowercase"):
        pl.col("text").tadoc.contains_phrase(pl.col("phrase"), lowercase=1)
