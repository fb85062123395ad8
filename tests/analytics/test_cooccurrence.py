"""Pairs of near words against ``collections.Counter`` over pairs of places."""

from __future__ import annotations

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.errors import LimitExceededError
from tests import handmade, oracle
from tests.analytic_cases import STRATEGIES


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_pairs_are_unordered_and_by_place(engine: str, strategy: str) -> None:
    column = tadoc.compress(pl.Series(["b a b", "b b", "a", None]))
    arguments = {"strategy": strategy, "engine": engine}
    assert column.tadoc.cooccurrence(window=1, **arguments).rows() == [("a", "b", 2), ("b", "b", 1)]
    assert column.tadoc.cooccurrence(window=2, **arguments).rows() == [("a", "b", 2), ("b", "b", 2)]


def test_words_of_a_pair_are_in_code_point_order(engine: str) -> None:
    """By the words, not by their ids, in one grammar and over several."""
    rows = ["𝒳 a", "a 𝒳", "z 𝒳 z", "\uffdc 𝒳", "Z a"]
    for rows_per_grammar in (1, 10):
        column = tadoc.compress(pl.Series(rows), rows_per_grammar=rows_per_grammar)
        got = column.tadoc.cooccurrence(window=3, engine=engine).rows()
        assert got == oracle.cooccurrence(oracle.tokenize(rows), 3)


@pytest.mark.parametrize("window", [1, 2, 9, 63, 64, 65, 5000, 10**30])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_runs_of_one_word(engine: str, window: int, strategy: str) -> None:
    column = tadoc.compress(pl.Series(["a " * 64, "a " * 3, "a"]))
    got = column.tadoc.cooccurrence(window=window, strategy=strategy, engine=engine).rows()
    pairs = sum(max(0, length - distance) for length in (64, 3, 1) for distance in range(1, min(window, length) + 1))
    assert got == [("a", "a", pairs)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_counts_beyond_32_bits(engine: str, strategy: str) -> None:
    grammar = handmade.grammar(["a", "b"], [[0, 1], *([k + 2, k + 2] for k in range(40))])
    with tadoc.Config(expansion_limit=1 << 42):
        column = handmade.column(grammar, [[42, 42], [0]])
        got = column.tadoc.cooccurrence(window=2, strategy=strategy, engine=engine).rows()
    words = 1 << 42  # a b a b …: neighbours differ, words two apart are equal
    assert got == [("a", "b", words - 1), ("a", "a", words // 2 - 1), ("b", "b", words // 2 - 1)]


def test_counts_that_would_wrap_are_refused(engine: str) -> None:
    with tadoc.Config(expansion_limit=1 << 56):
        column = handmade.column(handmade.grammar(["a"], [[k, k] for k in range(56)]), [[56]] * 127)
        assert column.tadoc.cooccurrence(window=1, engine=engine)["count"].item() == (127 << 56) - 127
        by_group = pl.col("text").tadoc.cooccurrence(window=5, engine=engine)
        for call in (
            lambda: column.tadoc.cooccurrence(window=5, engine=engine),
            lambda: column.to_frame("text").select(by_group),
        ):
            with pytest.raises(LimitExceededError, match="more pairs of words in a window of 5 than 64 bits can count"):
                call()
