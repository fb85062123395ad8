"""Runs of n words against ``collections.Counter`` over the words of each row."""

from __future__ import annotations

import random
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
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

SCHEMA = {"sequence": pl.List(pl.String), "count": pl.UInt64}


@given(case=cases(), n=st.integers(1, 8), top=tops, min_count=least, strategy=strategies)
def test_sequence_count(engine: str, case: Case, n: int, top: int | None, min_count: int, strategy: str) -> None:
    got = case.column.tadoc.sequence_count(n=n, top=top, min_count=min_count, strategy=strategy, engine=engine)
    assert got.schema == SCHEMA
    assert got.rows() == oracle.sequence_count(case.documents, n, top, min_count)


@given(case=cases(normalised=True), n=st.integers(1, 4), strategy=strategies)
def test_normalised(engine: str, case: Case, n: int, strategy: str) -> None:
    got = case.column.tadoc.sequence_count(n=n, strategy=strategy, engine=engine, **case.arguments)
    assert got.schema == SCHEMA
    assert got.rows() == oracle.sequence_count(case.documents, n)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_all_calls_agree(engine: str, strategy: str) -> None:
    for arguments in ({}, {"n": 2, "top": 3}, {"n": 1, "min_count": 2}, {"n": 4, "lowercase": True}):
        same_by_every_call("sequence_count", COLUMN.to_frame(), {**arguments, "strategy": strategy, "engine": engine})


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_deleted_words_make_their_neighbours_adjacent(engine: str, strategy: str) -> None:
    column = tadoc.compress(pl.Series(["cat and dog", "cat of the dog", "cat", "dog"] * 3))
    got = column.tadoc.sequence_count(n=2, stopwords=["and", "of", "the"], strategy=strategy, engine=engine)
    assert got.rows() == [(["cat", "dog"], 6)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_sequence_spans_two_rows(engine: str, strategy: str) -> None:
    column = tadoc.compress(pl.Series(["a b", "c d", "a b"]))
    assert column.tadoc.sequence_count(n=2, strategy=strategy, engine=engine).rows() == [
        (["a", "b"], 2),
        (["c", "d"], 1),
    ]
    assert column.tadoc.sequence_count(n=3, strategy=strategy, engine=engine).is_empty()


def test_one_word_at_a_time_is_the_word_count(engine: str) -> None:
    got = COLUMN.tadoc.sequence_count(n=1, engine=engine).explode("sequence").rename({"sequence": "word"})
    assert got.equals(COLUMN.tadoc.word_count(engine=engine))


def test_ties_are_in_the_order_of_the_words(engine: str) -> None:
    """Word by word, not as one string: "a" is less than "a!" and "ab", however it goes on."""
    column = tadoc.compress(pl.Series(["ab a", "a z", "a a", "𝒳 a", "\uffdc a", "é a"]), rows_per_grammar=4)
    got = column.tadoc.sequence_count(n=2, engine=engine)["sequence"].to_list()
    assert got == [["a", "a"], ["a", "z"], ["ab", "a"], ["é", "a"], ["\uffdc", "a"], ["𝒳", "a"]]


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 40, 1000])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_runs_of_one_word(engine: str, n: int, strategy: str) -> None:
    column = tadoc.compress(pl.Series(["a " * 8, "a " * 1000, "a"]))
    got = column.tadoc.sequence_count(n=n, strategy=strategy, engine=engine).rows()
    expected = sum(max(0, length - n + 1) for length in (8, 1000, 1))
    assert got == [(["a"] * n, expected)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_counts_beyond_32_bits(engine: str, strategy: str) -> None:
    """2^40 words: no window is expanded, each is counted where two children meet."""
    grammar = handmade.grammar(["a", "b"], [[0, 1], *([k + 2, k + 2] for k in range(40))])
    with tadoc.Config(expansion_limit=1 << 42):
        column = handmade.column(grammar, [[42, 42], [0]])
        got = column.tadoc.sequence_count(n=3, strategy=strategy, engine=engine).rows()
    assert got == [(["a", "b", "a"], (1 << 41) - 1), (["b", "a", "b"], (1 << 41) - 1)]


@pytest.mark.parametrize("n", [3, 5, 8])
def test_many_words_do_not_share_a_key(engine: str, n: int) -> None:
    """So many words that no 64 bits hold a sequence of them."""
    words = [f"w{k * 7919 % 5000}" for k in range(5000)]
    column = tadoc.compress(pl.Series([" ".join(words)] * 2))
    got = column.tadoc.sequence_count(n=n, engine=engine)
    assert got.rows() == oracle.sequence_count([words] * 2, n)


@pytest.mark.parametrize("n", [9, 20, 1000])
@pytest.mark.parametrize("words", [3, 400])
def test_long_sequences_of_two_grammars(engine: str, n: int, words: int) -> None:
    """Too long to be packed into one number when the grammars' sequences are joined; some are in both."""
    generator = random.Random(n)
    rows = [[f"w{generator.randrange(words)}" for _ in range(n + 30)] for _ in range(2)]
    rows += [[*rows[0][5:], "a"], rows[1][:-3]]
    column = tadoc.compress(pl.Series([" ".join(row) for row in rows]), rows_per_grammar=2)
    got = column.tadoc.sequence_count(n=n, engine=engine)
    assert got.rows() == oracle.sequence_count(rows, n)
    chosen = column.tadoc.sequence_count(n=n, top=7, min_count=2, engine=engine)
    assert chosen.rows() == oracle.sequence_count(rows, n, 7, 2)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_limits_beyond_64_bits(engine: str, strategy: str) -> None:
    got = COLUMN.tadoc.sequence_count(top=10**30, strategy=strategy, engine=engine)
    assert got.equals(COLUMN.tadoc.sequence_count(min_count=-(10**30), strategy=strategy, engine=engine))
    assert COLUMN.tadoc.sequence_count(min_count=10**30, strategy=strategy, engine=engine).is_empty()


@pytest.mark.parametrize("rows", [*NOTHING, ["a b", "c d"]], ids=repr)
def test_nothing_to_count(engine: str, rows: list[str | None]) -> None:
    frame = tadoc.compress(pl.Series("text", rows, pl.String)).to_frame()
    for arguments in ({}, {"top": 2}, {"lowercase": True}):
        lazy = frame.lazy().tadoc.sequence_count(engine=engine, **arguments)
        for got in (frame.tadoc.sequence_count(engine=engine, **arguments), lazy.collect()):
            assert got.schema == SCHEMA
            assert got.is_empty()


@pytest.mark.parametrize("arguments", [{}, {"n": 1}, {"top": 1}, {"min_count": 99}])
def test_arrow_types(engine: str, arguments: dict[str, Any]) -> None:
    for column in (COLUMN, COLUMN.clear()):
        table = tadoc.sequence_count(column, engine=engine, **arguments)
        table.validate(full=True)
        assert table.column_names == ["sequence", "count"]
        sequence, count = table.schema.types
        assert pa.types.is_large_list(sequence)
        assert pa.types.is_dictionary(sequence.value_type)
        assert sequence.value_type.value_type == pa.large_string()
        assert count == pa.uint64()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n": 0}, ValueError, "n=0 must be at least 1"),
        ({"n": -3}, ValueError, "n=-3 must be at least 1"),
        ({"n": 10**30}, ValueError, "must be at most 4294967295"),
        ({"n": 2.5}, TypeError, "n=2.5 must be an integer"),
        ({"n": True}, TypeError, "n=True must be an integer"),
        ({"n": None}, TypeError, "n=None must be an integer"),
        ({"top": -1}, ValueError, "top=-1 must be at least 0"),
        ({"min_count": "2"}, TypeError, "min_count='2' must be an integer"),
        ({"strategy": "sideways"}, ValueError, "sideways"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("call", ["sequence_count", "ranked_inverted_index"])
def test_wrong_arguments(call: str, arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    for run in (
        lambda: getattr(tadoc, call)(COLUMN, **arguments),
        lambda: getattr(COLUMN.to_frame().lazy().tadoc, call)("text", **arguments),
    ):
        with pytest.raises(error, match=message):
            run()
