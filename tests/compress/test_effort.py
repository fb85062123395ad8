"""``effort="fast"``: rows of word ids without rules give the same texts and the same results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from tests.strategies import columns

TEXTS = pl.Series("text", ["to be, or not to be", None, "", "not\tto be  or", "to be, or not to be"] * 7)
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("word_count", {}),
    ("word_count", {"lowercase": True, "top": 2}),
    ("sort", {}),
    ("sequence_count", {"n": 2}),
    ("sequence_count", {"n": 4}),
    ("inverted_index", {}),
    ("term_vector", {}),
    ("ranked_inverted_index", {"n": 2}),
    ("cooccurrence", {"window": 2}),
    ("tfidf", {}),
    ("bm25_weights", {}),
]


def symbols_of(column: pl.Series) -> int:
    return int(tadoc.info(column)["symbols"][0])


@given(texts=columns, tokenizer=st.sampled_from(["words", "whitespace", "xml"]), lossless=st.booleans())
def test_texts_are_the_same(texts: list[str | None], tokenizer: str, lossless: bool) -> None:
    text = pl.Series("text", texts, pl.String)
    fast = tadoc.compress(text, effort="fast", tokenizer=tokenizer, lossless=lossless)
    default = tadoc.compress(text, tokenizer=tokenizer, lossless=lossless)
    assert tadoc.decompress(fast).equals(tadoc.decompress(default))
    assert all(len(corpus.grammar.rule_offsets) == 1 for corpus in tadoc.column.split(fast))


@pytest.mark.parametrize(("call", "options"), CALLS)
@given(texts=columns)
def test_results_are_the_same(call: str, options: dict[str, Any], engine: str, texts: list[str | None]) -> None:
    text = pl.Series("text", texts, pl.String)
    analytic = getattr(tadoc, call)
    fast, default = (
        analytic(tadoc.compress(text, effort=effort), engine=engine, **options) for effort in ("fast", "default")
    )
    assert fast.equals(default)


def test_any_number_of_threads_gives_the_same_column() -> None:
    made = []
    for threads in (1, 2, 16):
        with tadoc.Config(threads=threads):
            made.append(tadoc.compress(TEXTS, effort="fast").ext.storage())
    for other in made[1:]:
        assert other.equals(made[0])


def test_default_is_what_it_was() -> None:
    expected = tadoc.compress(TEXTS).ext.storage()
    assert tadoc.compress(TEXTS, effort="default").ext.storage().equals(expected)
    assert symbols_of(tadoc.compress(TEXTS, effort="fast")) == 6 * 14 + 4 * 7


def test_every_call_has_it(tmp_path: Path) -> None:
    expected = tadoc.compress(TEXTS, effort="fast").ext.storage()
    frame = TEXTS.to_frame()
    made = [
        TEXTS.tadoc.compress(effort="fast"),
        frame.tadoc.compress("text", effort="fast")["text"],
        frame.select(pl.col("text").tadoc.compress(effort="fast"))["text"],
        frame.lazy().tadoc.compress("text", effort="fast").collect()["text"],
    ]
    for column in made:
        assert column.ext.storage().equals(expected)
    path = tmp_path / "packed.parquet"
    frame.tadoc.compress("text", effort="fast").tadoc.write_packed(path)
    assert tadoc.decompress(tadoc.scan_packed(path).collect()["text"]).equals(TEXTS)


def test_it_is_appended_and_merged() -> None:
    fast = tadoc.compress(TEXTS, effort="fast")
    more = tadoc.compress(TEXTS, like=fast, effort="fast")
    both = pl.concat([fast, more])
    assert tadoc.decompress(both).equals(pl.concat([TEXTS, TEXTS]))
    merged = tadoc.recompress(both)
    assert tadoc.decompress(merged).equals(pl.concat([TEXTS, TEXTS]))
    assert symbols_of(merged) < symbols_of(more)


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match='effort=\'small\': use "default" or "fast"'):
        tadoc.compress(TEXTS, effort="small")
    with pytest.raises(ValueError, match="method='sequitur': effort=\"fast\" makes no rules"):
        tadoc.compress(TEXTS, effort="fast", method="sequitur")
    with pytest.raises(tadoc.errors.EngineUnavailableError, match='engine="gpu"'):
        tadoc.compress(TEXTS, effort="fast", engine="gpu")
