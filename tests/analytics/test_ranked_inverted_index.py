"""Which documents hold each run of n words, the ones with most first, against dicts in plain Python."""

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
    LABELS,
    NOTHING,
    STRATEGIES,
    Case,
    cases,
    labels,
    least,
    same_by_every_call,
    strategies,
    tops,
    with_labels,
)

ROW = pl.get_index_type()


def schema(label: Any = ROW) -> dict[str, Any]:
    return {"sequence": pl.List(pl.String), "documents": pl.List(pl.Struct({"id": label, "count": pl.UInt64}))}


@given(case=cases(), id_=labels, n=st.integers(1, 8), top=tops, min_count=least, strategy=strategies)
def test_ranked_inverted_index(
    engine: str, case: Case, id_: pl.Series | None, n: int, top: int | None, min_count: int, strategy: str
) -> None:
    frame, named, values = with_labels(case, id_)
    got = frame.tadoc.ranked_inverted_index(
        "text", **named, n=n, top=top, min_count=min_count, strategy=strategy, engine=engine
    )
    assert got.schema == schema(ROW if id_ is None else id_.dtype)
    assert got.rows() == oracle.ranked_inverted_index(case.documents, values, n, top, min_count)


@given(case=cases(normalised=True), n=st.integers(1, 4), strategy=strategies)
def test_normalised(engine: str, case: Case, n: int, strategy: str) -> None:
    got = case.column.tadoc.ranked_inverted_index(n=n, strategy=strategy, engine=engine, **case.arguments)
    assert got.rows() == oracle.ranked_inverted_index(case.documents, n=n)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_all_calls_agree(engine: str, strategy: str) -> None:
    frame = COLUMN.to_frame().with_columns(LABELS["some null"].head(len(COLUMN)).alias("name"))
    for arguments in ({}, {"n": 2, "top": 1}, {"id": "name", "min_count": 2}, {"id": "name", "lowercase": True}):
        same_by_every_call("ranked_inverted_index", frame, {**arguments, "strategy": strategy, "engine": engine})


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_limits(engine: str, strategy: str) -> None:
    """``top`` is by sequence; ``min_count`` is over all rows."""
    column = tadoc.compress(pl.Series(["a b", "a b a b", "c d", "a b a b", None, "c d"]), rows_per_grammar=2)
    arguments = {"n": 2, "strategy": strategy, "engine": engine}
    got = column.tadoc.ranked_inverted_index(top=2, min_count=2, **arguments).rows()
    assert got == [
        (["a", "b"], [{"id": 1, "count": 2}, {"id": 3, "count": 2}]),
        (["b", "a"], [{"id": 1, "count": 1}, {"id": 3, "count": 1}]),
        (["c", "d"], [{"id": 2, "count": 1}, {"id": 5, "count": 1}]),
    ]
    assert column.tadoc.ranked_inverted_index(top=1, min_count=3, **arguments).rows() == [
        (["a", "b"], [{"id": 1, "count": 2}])
    ]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_counts_beyond_32_bits(engine: str, strategy: str) -> None:
    grammar = handmade.grammar(["a", "b"], [[0, 1], *([k + 2, k + 2] for k in range(40))])
    with tadoc.Config(expansion_limit=1 << 42):
        column = handmade.column(grammar, [[2, 2], [42, 42], [0]])
        got = column.tadoc.ranked_inverted_index(n=4, strategy=strategy, engine=engine).rows()
    assert got == [
        (["a", "b", "a", "b"], [{"id": 1, "count": (1 << 41) - 1}, {"id": 0, "count": 1}]),
        (["b", "a", "b", "a"], [{"id": 1, "count": (1 << 41) - 2}]),
    ]


@pytest.mark.parametrize("n", [9, 20, 1000])
@pytest.mark.parametrize("words", [3, 400])
def test_long_sequences_of_two_grammars(engine: str, n: int, words: int) -> None:
    """Too long to be packed into one number when the grammars' sequences are joined; some are in both."""
    generator = random.Random(n)
    rows = [[f"w{generator.randrange(words)}" for _ in range(n + 30)] for _ in range(2)]
    rows += [[*rows[0][5:], "a"], rows[1][:-3]]
    column = tadoc.compress(pl.Series([" ".join(row) for row in rows]), rows_per_grammar=2)
    got = column.tadoc.ranked_inverted_index(n=n, engine=engine)
    assert got.rows() == oracle.ranked_inverted_index(rows, n=n)
    chosen = column.tadoc.ranked_inverted_index(n=n, top=1, min_count=2, engine=engine)
    assert chosen.rows() == oracle.ranked_inverted_index(rows, n=n, top=1, min_count=2)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_limits_beyond_64_bits(engine: str, strategy: str) -> None:
    got = COLUMN.tadoc.ranked_inverted_index(top=10**30, strategy=strategy, engine=engine)
    assert got.equals(COLUMN.tadoc.ranked_inverted_index(min_count=-(10**30), strategy=strategy, engine=engine))
    assert COLUMN.tadoc.ranked_inverted_index(min_count=10**30, strategy=strategy, engine=engine).is_empty()


@pytest.mark.parametrize("rows", [*NOTHING, ["a b", "c d"]], ids=repr)
@pytest.mark.parametrize("id_", [None, "strings", "some null", "lists"])
def test_nothing_to_index(engine: str, rows: list[str | None], id_: str | None) -> None:
    frame = tadoc.compress(pl.Series("text", rows, pl.String)).to_frame()
    dtype, arguments = ROW, {}
    if id_:
        frame = frame.with_columns(LABELS[id_].head(len(frame)).alias("label"))
        dtype, arguments = LABELS[id_].dtype, {"id": "label"}
    for got in (
        frame.tadoc.ranked_inverted_index("text", **arguments, engine=engine),
        frame.lazy().tadoc.ranked_inverted_index("text", **arguments, engine=engine).collect(),
    ):
        assert got.schema == schema(dtype)
        assert got.is_empty()


@pytest.mark.parametrize("arguments", [{}, {"n": 1}, {"top": 1}, {"top": 0}, {"min_count": 99}])
def test_arrow_types(engine: str, arguments: dict[str, Any]) -> None:
    for column in (COLUMN, COLUMN.clear()):
        table = tadoc.ranked_inverted_index(column, engine=engine, **arguments)
        table.validate(full=True)
        assert table.column_names == ["sequence", "documents"]
        sequence, documents = table.schema.types
        assert pa.types.is_large_list(sequence)
        assert pa.types.is_dictionary(sequence.value_type)
        assert sequence.value_type.value_type == pa.large_string()
        assert documents == pa.large_list(pa.struct({"id": pa.uint32(), "count": pa.uint64()}))


@pytest.mark.parametrize(
    ("id_", "error", "message"),
    [(pl.Series([1, 2]), ValueError, r"2.*5|5.*2"), ("name", TypeError, "id"), ([1] * 5, TypeError, "id")],
    ids=["short", "name", "list"],
)
def test_wrong_labels(id_: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tadoc.ranked_inverted_index(COLUMN, id=id_)
