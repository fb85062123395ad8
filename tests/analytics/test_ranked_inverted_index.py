"""Which documents hold each run of n words, the ones with most first, against dicts in plain Python."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from tests import handmade, oracle
from tests.analytic_cases import STRATEGIES, Case, cases, labels, least, strategies, tops, with_labels

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
