"""Words in order against sorted counts in plain Python."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given

import polars_tadoc as tadoc
from tests import handmade, oracle
from tests.analytic_cases import COLUMN, NOTHING, STRATEGIES, Case, cases, least, same_by_every_call, strategies

SCHEMA = {"word": pl.String, "count": pl.UInt64}


@given(case=cases(), min_count=least, strategy=strategies)
def test_sort(engine: str, case: Case, min_count: int, strategy: str) -> None:
    got = case.column.tadoc.sort(min_count=min_count, strategy=strategy, engine=engine)
    assert got.schema == SCHEMA
    assert got.rows() == oracle.sort(case.documents, min_count)


@given(case=cases(normalised=True), strategy=strategies)
def test_normalised(engine: str, case: Case, strategy: str) -> None:
    got = case.column.tadoc.sort(strategy=strategy, engine=engine, **case.arguments)
    assert got.rows() == oracle.sort(case.documents)


def test_code_point_order(engine: str) -> None:
    """The order of UTF-8 bytes, across grammars too: no locale, no UTF-16."""
    words = ["é", "z", "a", "Z", "日", "𝒳", "\uffdc", "aa", "ab", "_", "1"]
    column = tadoc.compress(pl.Series([" ".join(words), " ".join(reversed(words))]), rows_per_grammar=1)
    assert column.tadoc.sort(engine=engine)["word"].to_list() == sorted(words)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_all_calls_agree(engine: str, strategy: str) -> None:
    for arguments in ({}, {"min_count": 2, "lowercase": True, "stopwords": ["the"]}):
        same_by_every_call("sort", COLUMN.to_frame(), {**arguments, "strategy": strategy, "engine": engine})


@pytest.mark.parametrize("rows", NOTHING, ids=repr)
def test_nothing_to_sort(engine: str, rows: list[str | None]) -> None:
    column = tadoc.compress(pl.Series(rows, dtype=pl.String))
    for arguments in ({}, {"lowercase": True}, {"stopwords": ["a"]}):
        got = column.tadoc.sort(engine=engine, **arguments)
        assert got.schema == SCHEMA
        assert got.is_empty()


@pytest.mark.parametrize("arguments", [{}, {"min_count": 3}, {"min_count": 99}])
def test_arrow_types(engine: str, arguments: dict[str, Any]) -> None:
    for column in (COLUMN, COLUMN.clear()):
        table = tadoc.sort(column, engine=engine, **arguments)
        table.validate(full=True)
        assert table.column_names == ["word", "count"]
        word, count = table.schema.types
        assert pa.types.is_dictionary(word)
        assert word.value_type == pa.large_string()
        assert count == pa.uint64()


def test_counts_beyond_32_bits(engine: str) -> None:
    grammar = handmade.grammar(["b", "a"], [[0, 0], *([k + 2, k + 2] for k in range(32))])
    with tadoc.Config(expansion_limit=1 << 40):
        column = handmade.column(grammar, [[34, 34, 1], [34]])
        for strategy in STRATEGIES:
            assert column.tadoc.sort(strategy=strategy, engine=engine).rows() == [("a", 1), ("b", 3 << 33)]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"min_count": 1.5}, TypeError, "min_count=1.5 must be an integer"),
        ({"min_count": True}, TypeError, "min_count=True must be an integer"),
        ({"strategy": "sideways"}, ValueError, "sideways"),
        ({"strategy": None}, ValueError, "strategy"),
        ({"engine": "tpu"}, ValueError, "tpu"),
        ({"stopwords": "the"}, TypeError, r'\["the"\]'),
    ],
    ids=repr,
)
def test_wrong_arguments(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    for call in (
        lambda: tadoc.sort(COLUMN, **arguments),
        lambda: COLUMN.to_frame().lazy().tadoc.sort("text", **arguments),
    ):
        with pytest.raises(error, match=message):
            call()


def test_not_compressed() -> None:
    with pytest.raises(tadoc.errors.NotCompressedError, match='sort: column "text" is Int64'):
        tadoc.sort(pl.Series("text", [1]))
