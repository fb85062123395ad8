"""The choice of a strategy."""

from __future__ import annotations

import polars as pl
import pytest

from polars_tadoc.traversal import selector
from polars_tadoc.traversal.costs import COSTS
from polars_tadoc.traversal.options import Options
from polars_tadoc.traversal.selector import FAMILIES, STRATEGIES, choose_strategy, features_of, weigh
from polars_tadoc.traversal.source import Source, sources

TEXT = pl.Series("text", ["to be or not to be", None, "", "that is the question, to be or not"] * 4)


def source_of(column: pl.Series, engine: str) -> Source:
    options = Options.from_arguments(normalize=None, lowercase=False, stopwords=None, strategy="auto", engine=engine)
    return sources(column, "test", options)[0]


@pytest.mark.parametrize("analytic", FAMILIES)
def test_the_smaller_estimate_is_chosen(engine: str, analytic: str) -> None:
    source = source_of(TEXT.tadoc.compress(), engine)
    choice = weigh(source, analytic, 3)
    other = next(strategy for strategy in STRATEGIES if strategy != choice.strategy)
    assert 0 < choice.milliseconds[choice.strategy] <= choice.milliseconds[other]
    for costs in COSTS[engine][FAMILIES[analytic]].values():
        assert set(costs) <= set(features_of(source))


def test_the_cheaper_one_is_chosen(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = source_of(TEXT.tadoc.compress(), engine)
    for cheap, dear in (STRATEGIES, STRATEGIES[::-1]):
        costs = {cheap: {"calls": 1.0}, dear: {"calls": 2.0}}
        monkeypatch.setattr(selector, "COSTS", {engine: {"term_vector": costs}})
        assert choose_strategy("auto", source, "term_vector") == cheap
        assert choose_strategy(dear, source, "term_vector") == dear
