"""Pairs of near words against ``collections.Counter`` over pairs of places."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.errors import LimitExceededError
from tests import handmade, oracle
from tests.analytic_cases import (
    COLUMN,
    NOTHING,
    STRATEGIES,
    Case,
    cases,
    least,
    same_by_every_call,
    strategies,
    tops,
)

SCHEMA = {"word": pl.String, "other": pl.String, "count": pl.UInt64}


@given(case=cases(), window=st.integers(1, 8), top=tops, min_count=least, strategy=strategies)
def test_cooccurrence(engine: str, case: Case, window: int, top: int | None, min_count: int, strategy: str) -> None:
    got = case.column.tadoc.cooccurrence(window=window, top=top, min_count=min_count, strategy=strategy, engine=engine)
    assert got.schema == SCHEMA
    assert got.rows() == oracle.cooccurrence(case.documents, window, top, min_count)


@given(case=cases(normalised=True), window=st.integers(1, 4), strategy=strategies)
def test_normalised(engine: str, case: Case, window: int, strategy: str) -> None:
    got = case.column.tadoc.cooccurrence(window=window, strategy=strategy, engine=engine, **case.arguments)
    assert got.rows() == oracle.cooccurrence(case.documents, window)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_all_calls_agree(engine: str, strategy: str) -> None:
    for arguments in ({}, {"window": 1, "top": 3}, {"window": 2, "min_count": 2, "lowercase": True}):
        same_by_every_call("cooccurrence", COLUMN.to_frame(), {**arguments, "strategy": strategy, "engine": engine})


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_pairs_are_unordered_and_by_place(engine: str, strategy: str) -> None:
    column = tadoc.compress(pl.Series(["b a b", "b b", "a", None]))
    arguments = {"strategy": strategy, "engine": engine}
    assert column.tadoc.cooccurrence(window=1, **arguments).rows() == [("a", "b", 2), ("b", "b", 1)]
    assert column.tadoc.cooccurrence(window=2, **arguments).rows() == [("a", "b", 2), ("b", "b", 2)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_limits_beyond_64_bits(engine: str, strategy: str) -> None:
    got = COLUMN.tadoc.cooccurrence(top=10**30, strategy=strategy, engine=engine)
    assert got.equals(COLUMN.tadoc.cooccurrence(min_count=-(10**30), strategy=strategy, engine=engine))
    assert COLUMN.tadoc.cooccurrence(min_count=10**30, strategy=strategy, engine=engine).is_empty()


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


@pytest.mark.parametrize("rows", [*NOTHING, ["a", "b"]], ids=repr)
def test_nothing_to_count(engine: str, rows: list[str | None]) -> None:
    frame = tadoc.compress(pl.Series("text", rows, pl.String)).to_frame()
    for arguments in ({}, {"top": 2}, {"lowercase": True}):
        lazy = frame.lazy().tadoc.cooccurrence(engine=engine, **arguments)
        for got in (frame.tadoc.cooccurrence(engine=engine, **arguments), lazy.collect()):
            assert got.schema == SCHEMA
            assert got.is_empty()


@pytest.mark.parametrize("arguments", [{}, {"window": 1}, {"top": 1}, {"min_count": 99}])
def test_arrow_types(engine: str, arguments: dict[str, Any]) -> None:
    for column in (COLUMN, COLUMN.clear()):
        table = tadoc.cooccurrence(column, engine=engine, **arguments)
        table.validate(full=True)
        assert table.column_names == ["word", "other", "count"]
        *words, count = table.schema.types
        for word in words:
            assert pa.types.is_dictionary(word)
            assert word.value_type == pa.large_string()
        assert count == pa.uint64()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"window": 0}, ValueError, "window=0 must be at least 1"),
        ({"window": 2.5}, TypeError, "window=2.5 must be an integer"),
        ({"window": True}, TypeError, "window=True must be an integer"),
        ({"top": -1}, ValueError, "top=-1 must be at least 0"),
        ({"strategy": "sideways"}, ValueError, "sideways"),
    ],
    ids=repr,
)
def test_wrong_arguments(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    for run in (
        lambda: tadoc.cooccurrence(COLUMN, **arguments),
        lambda: COLUMN.to_frame().lazy().tadoc.cooccurrence("text", **arguments),
    ):
        with pytest.raises(error, match=message):
            run()
