"""Words of each document, against ``collections.Counter`` by row."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given

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
SCHEMA = {"id": ROW, "word": pl.String, "count": pl.UInt64}


@given(case=cases(), id_=labels, top=tops, min_count=least, strategy=strategies)
def test_term_vector(
    engine: str, case: Case, id_: pl.Series | None, top: int | None, min_count: int, strategy: str
) -> None:
    frame, named, values = with_labels(case, id_)
    got = frame.tadoc.term_vector("text", **named, top=top, min_count=min_count, strategy=strategy, engine=engine)
    assert got.schema == {**SCHEMA, "id": ROW if id_ is None else id_.dtype}
    assert got.rows() == oracle.term_vector(case.documents, values, top, min_count)


@given(case=cases(normalised=True), top=tops, strategy=strategies)
def test_normalised(engine: str, case: Case, top: int | None, strategy: str) -> None:
    got = case.column.tadoc.term_vector(top=top, strategy=strategy, engine=engine, **case.arguments)
    assert got.rows() == oracle.term_vector(case.documents, top=top)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_all_calls_agree(engine: str, strategy: str) -> None:
    frame = COLUMN.to_frame().with_columns(LABELS["strings"].head(len(COLUMN)).alias("name"))
    for arguments in ({}, {"top": 2, "min_count": 2}, {"id": "name", "top": 1}, {"id": "name", "lowercase": True}):
        same_by_every_call("term_vector", frame, {**arguments, "strategy": strategy, "engine": engine})


def test_ties_are_in_code_point_order(engine: str) -> None:
    words = ["é", "z", "a", "Z", "日", "𝒳", "\uffdc", "aa", "ab", "_", "1"]
    column = tadoc.compress(pl.Series([" ".join(words), " ".join(reversed(words))]), rows_per_grammar=1)
    for top in (None, 3):
        got = column.tadoc.term_vector(top=top, engine=engine)["word"].to_list()
        assert got == 2 * sorted(words)[:top]


def test_null_rows_count_as_rows(engine: str) -> None:
    column = tadoc.compress(pl.Series([None, "a", "", "a b a"]), rows_per_grammar=2)
    assert column.tadoc.term_vector(engine=engine).rows() == [(1, "a", 1), (3, "a", 2), (3, "b", 1)]


def test_rows_stay_in_order_across_grammars(engine: str) -> None:
    mixed = pl.concat([tadoc.compress(pl.Series([text])) for text in ("a b", "a", "c a")])[[2, 0, 1, 2]]
    got = mixed.tadoc.term_vector(engine=engine).rows()
    assert got == [(0, "a", 1), (0, "c", 1), (1, "a", 1), (1, "b", 1), (2, "a", 1), (3, "a", 1), (3, "c", 1)]


def test_equal_labels_are_not_merged(engine: str) -> None:
    frame = pl.DataFrame({"day": [5, 5], "text": ["a", "a"]}).tadoc.compress("text")
    assert frame.tadoc.term_vector("text", id="day", engine=engine).rows() == [(5, "a", 1), (5, "a", 1)]


def test_counts_beyond_32_bits(engine: str) -> None:
    chain = [[0, 0], *([k + 3, k + 3] for k in range(32))]
    grammar = handmade.grammar(["a", "b", "c"], [*chain, [3 + 31, 1]])
    with tadoc.Config(expansion_limit=1 << 40):
        column = handmade.column(grammar, [[35, 35, 1], [36], None, [2]])
        for strategy in STRATEGIES:
            assert column.tadoc.term_vector(strategy=strategy, engine=engine).rows() == [
                (0, "a", 2 << 33),
                (0, "b", 1),
                (1, "a", 1 << 32),
                (1, "b", 1),
                (3, "c", 1),
            ]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_limits_beyond_64_bits(engine: str, strategy: str) -> None:
    got = COLUMN.tadoc.term_vector(top=10**30, strategy=strategy, engine=engine)
    assert got.equals(COLUMN.tadoc.term_vector(min_count=-(10**30), strategy=strategy, engine=engine))
    assert COLUMN.tadoc.term_vector(min_count=10**30, strategy=strategy, engine=engine).is_empty()


@pytest.mark.parametrize("rows", NOTHING, ids=repr)
@pytest.mark.parametrize("id_", [None, *LABELS])
def test_nothing_to_count(engine: str, rows: list[str | None], id_: str | None) -> None:
    frame = tadoc.compress(pl.Series("text", rows, pl.String)).to_frame()
    dtype, arguments = ROW, {}
    if id_:
        frame = frame.with_columns(LABELS[id_].head(len(frame)).alias("label"))
        dtype, arguments = LABELS[id_].dtype, {"id": "label"}
    for got in (
        frame.tadoc.term_vector("text", **arguments, engine=engine),
        frame.lazy().tadoc.term_vector("text", **arguments, engine=engine).collect(),
    ):
        assert got.schema == {**SCHEMA, "id": dtype}
        assert got.is_empty()


@pytest.mark.parametrize("arguments", [{}, {"top": 1}, {"min_count": 99}])
def test_arrow_types(engine: str, arguments: dict[str, Any]) -> None:
    for column in (COLUMN, COLUMN.clear()):
        table = tadoc.term_vector(column, engine=engine, **arguments)
        table.validate(full=True)
        assert table.column_names == ["id", "word", "count"]
        row, word, count = table.schema.types
        assert row == pa.uint32()
        assert pa.types.is_dictionary(word)
        assert word.value_type == pa.large_string()
        assert count == pa.uint64()


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"id": pl.Series([1, 2])}, ValueError, r"2.*5|5.*2"),
        ({"id": "name"}, TypeError, "id"),
        ({"top": -1}, ValueError, "top=-1 must be at least 0"),
        ({"top": 1.5}, TypeError, "top=1.5 must be an integer"),
        ({"strategy": "sideways"}, ValueError, "sideways"),
    ],
    ids=repr,
)
def test_wrong_arguments(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    for call in (lambda: tadoc.term_vector(COLUMN, **arguments), lambda: COLUMN.tadoc.term_vector(**arguments)):
        with pytest.raises(error, match=message):
            call()
