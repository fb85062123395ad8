"""The choice of a strategy, and what is said about it."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.analytics.explain import REQUESTS
from polars_tadoc.errors import NotCompressedError
from polars_tadoc.traversal import selector
from polars_tadoc.traversal.costs import COSTS
from polars_tadoc.traversal.options import Options
from polars_tadoc.traversal.selector import FAMILIES, STRATEGIES, choose_strategy, features_of, weigh
from polars_tadoc.traversal.source import Source, sources

TEXT = pl.Series("text", ["to be or not to be", None, "", "that is the question, to be or not"] * 4)


def source_of(column: pl.Series, engine: str) -> Source:
    options = Options.from_arguments(normalize=None, lowercase=False, stopwords=None, strategy="auto", engine=engine)
    return sources(column, "test", options)[0]


@pytest.mark.parametrize("analytic", list(REQUESTS))
def test_estimates_are_of_known_features(engine: str, analytic: str) -> None:
    source = source_of(TEXT.tadoc.compress(), engine)
    choice = weigh(source, analytic, 3)
    assert choice.strategy in STRATEGIES
    assert all(estimate >= 0 for estimate in choice.milliseconds.values())
    for costs in COSTS[engine][FAMILIES[analytic]].values():
        assert set(costs) <= set(features_of(source))


def test_the_cheaper_one_is_chosen(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = source_of(TEXT.tadoc.compress(), engine)
    for cheap, dear in (STRATEGIES, STRATEGIES[::-1]):
        costs = {cheap: {"calls": 1.0}, dear: {"calls": 2.0}}
        monkeypatch.setattr(selector, "COSTS", {engine: {"term_vector": costs}})
        assert choose_strategy("auto", source, "term_vector") == cheap
        assert choose_strategy(dear, source, "term_vector") == dear


@pytest.mark.parametrize(("analytic", "arguments"), [(name, {}) for name in REQUESTS] + [("sequence_count", {"n": 5})])
def test_explain_says_what_auto_takes(engine: str, analytic: str, arguments: dict[str, Any]) -> None:
    column = TEXT.tadoc.compress()
    said = tadoc.explain(column, analytic, engine=engine, **arguments)
    taken = choose_strategy("auto", source_of(column, engine), analytic, arguments.get("n", 1))
    assert said.startswith(f"{analytic} on {engine}: {taken} (estimated to be faster), grammar ")
    assert "documents: 12 of " in said


def test_explain_of_a_strategy_asked_for() -> None:
    said = tadoc.explain(TEXT.tadoc.compress(), "term_vector", strategy="bottom_up", lowercase=True, engine="cpu")
    assert said.startswith("term_vector on cpu: bottom_up (asked for), a normalised vocabulary")


def test_explain_tells_of_each_grammar() -> None:
    said = tadoc.explain(tadoc.compress(TEXT, rows_per_grammar=15), "inverted_index", engine="cpu")
    assert said.count("inverted_index on cpu") == 2


def test_explain_of_no_rows() -> None:
    assert "no rows" in tadoc.explain(TEXT.tadoc.compress().head(0), "sort")


def test_explain_of_wrong_arguments() -> None:
    column = TEXT.tadoc.compress()
    with pytest.raises(ValueError, match="there are word_count, sort"):
        tadoc.explain(column, "wordcount")
    with pytest.raises(TypeError, match="unexpected keyword"):
        tadoc.explain(column, "word_count", n=3)
    with pytest.raises(NotCompressedError):
        tadoc.explain(TEXT, "word_count")
