"""Which way an analytic goes, and why."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.errors import NotCompressedError
from polars_tadoc.traversal.options import Options
from polars_tadoc.traversal.selector import choose_strategy
from polars_tadoc.traversal.source import sources
from tests.analytic_cases import COLUMN, NOTHING

ARGUMENTS: dict[str, dict[str, Any]] = {
    "word_count": {"top": 3},
    "sort": {"min_count": 2},
    "inverted_index": {"min_count": 2},
    "term_vector": {"top": 1, "lowercase": True},
    "sequence_count": {"n": 2, "stopwords": ["the"]},
    "ranked_inverted_index": {"n": 4},
    "cooccurrence": {"window": 2},
    "bm25_weights": {"scoring": "wakatsuki", "top": 3},
    "tfidf": {"norm": "l1"},
}


@pytest.mark.parametrize("analytic", ARGUMENTS)
def test_names_the_choice_and_both_ways(engine: str, analytic: str) -> None:
    for arguments in ({}, ARGUMENTS[analytic]):
        text = tadoc.explain(COLUMN, analytic, engine=engine, **arguments)
        assert analytic in text
        assert engine in text
        assert "top_down" in text
        assert "bottom_up" in text


@pytest.mark.parametrize(("analytic", "arguments"), [(name, {}) for name in ARGUMENTS] + [("sequence_count", {"n": 5})])
def test_says_what_auto_takes(engine: str, analytic: str, arguments: dict[str, Any]) -> None:
    column = tadoc.compress(pl.Series("text", ["to be or not to be", None, "", "that is the question"] * 4))
    options = Options.from_arguments(normalize=None, lowercase=False, stopwords=None, strategy="auto", engine=engine)
    taken = choose_strategy("auto", sources(column, analytic, options)[0], analytic, arguments.get("n", 1))
    why = "always" if analytic in ("word_count", "sort") else "estimated to be faster"
    text = tadoc.explain(column, analytic, engine=engine, **arguments)
    assert text.startswith(f"{analytic} on {engine}: {taken} ({why}), grammar ")
    assert "documents: 12 of " in text


def test_a_normalised_vocabulary_is_named(engine: str) -> None:
    text = tadoc.explain(COLUMN, "term_vector", lowercase=True, engine=engine)
    assert text.count("a normalised vocabulary") == 3


@pytest.mark.parametrize("analytic", ["bm25_weights", "tfidf"])
def test_weights_read_the_grammar_as_it_is(engine: str, analytic: str) -> None:
    text = tadoc.explain(COLUMN, analytic, lowercase=True, stopwords=["the"], engine=engine)
    assert text == tadoc.explain(COLUMN, analytic, engine=engine)
    assert text.count("grammar ") == 3


@pytest.mark.parametrize("analytic", ARGUMENTS)
@pytest.mark.parametrize("strategy", ["top_down", "bottom_up"])
def test_a_strategy_asked_for_is_the_choice(engine: str, analytic: str, strategy: str) -> None:
    text = tadoc.explain(COLUMN, analytic, strategy=strategy, engine=engine)
    assert f"{analytic} on {engine}: {strategy} (asked for)" in text


def test_each_grammar_has_its_own_choice(engine: str) -> None:
    text = tadoc.explain(COLUMN, "term_vector", engine=engine)
    assert text.count("(estimated to be faster)") == COLUMN.tadoc.info()["grammars"].item() == 3


def test_labels_change_nothing(engine: str) -> None:
    labels = pl.Series(range(len(COLUMN)))
    assert tadoc.explain(COLUMN, "term_vector", id=labels) == tadoc.explain(COLUMN, "term_vector")


@pytest.mark.parametrize("analytic", ARGUMENTS)
@pytest.mark.parametrize("rows", NOTHING, ids=repr)
def test_nothing_to_do(analytic: str, rows: list[str | None]) -> None:
    text = tadoc.explain(tadoc.compress(pl.Series(rows, dtype=pl.String)), analytic)
    assert text.startswith(analytic)
    assert ("no rows, nothing to do" in text) == (set(rows) <= {None})


@pytest.mark.parametrize("analytic", ["bm25_weights", "tfidf"])
def test_text_has_no_strategy(analytic: str) -> None:
    text = tadoc.explain(pl.Series("body", ["a"]), analytic, tokenizer="whitespace")
    assert text.split("\n")[0] == f"{analytic} on cpu: counted as text, without rules and so without a strategy"
    assert tadoc.explain(COLUMN, analytic, tokenizer="words") == tadoc.explain(COLUMN, analytic)
    with pytest.raises(TypeError, match=rf'{analytic}: tokenizer= is for String columns; grammar .* not "whitespace"'):
        tadoc.explain(COLUMN, analytic, tokenizer="whitespace")
    with pytest.raises(NotCompressedError, match=f'{analytic}: column "body" is Int64'):
        tadoc.explain(pl.Series("body", [1]), analytic)


def test_wrong_calls() -> None:
    with pytest.raises(ValueError, match=r"word_cuont.*use one of word_count, sort"):
        tadoc.explain(COLUMN, "word_cuont")
    with pytest.raises(ValueError, match="n=0 must be at least 1"):
        tadoc.explain(COLUMN, "sequence_count", n=0)
    with pytest.raises(TypeError, match="sequence_count has no argument 'window'; its arguments are n, top"):
        tadoc.explain(COLUMN, "sequence_count", window=3)
    with pytest.raises(NotCompressedError, match='column "n" is Int64'):
        tadoc.explain(pl.Series("n", [1]), "word_count")
