"""Words in order against sorted counts in plain Python."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given

import polars_tadoc as tadoc
from tests import handmade, oracle
from tests.analytic_cases import STRATEGIES, Case, cases, least, strategies

SCHEMA = {"word": pl.String, "count": pl.UInt64}


@given(case=cases(), min_count=least, strategy=strategies)
def test_sort(engine: str, case: Case, min_count: int, strategy: str) -> None:
    got = case.column.tadoc.sort(min_count=min_count, strategy=strategy, engine=engine)
    assert got.schema == SCHEMA
    assert got.rows() == oracle.sort(case.documents, min_count)


def test_code_point_order(engine: str) -> None:
    """The order of UTF-8 bytes, across grammars too: no locale, no UTF-16."""
    words = ["é", "z", "a", "Z", "日", "𝒳", "\uffdc", "aa", "ab", "_", "1"]
    column = tadoc.compress(pl.Series([" ".join(words), " ".join(reversed(words))]), rows_per_grammar=1)
    assert column.tadoc.sort(engine=engine)["word"].to_list() == sorted(words)


def test_counts_beyond_32_bits(engine: str) -> None:
    grammar = handmade.grammar(["b", "a"], [[0, 0], *([k + 2, k + 2] for k in range(32))])
    with tadoc.Config(expansion_limit=1 << 40):
        column = handmade.column(grammar, [[34, 34, 1], [34]])
        for strategy in STRATEGIES:
            assert column.tadoc.sort(strategy=strategy, engine=engine).rows() == [("a", 1), ("b", 3 << 33)]


def test_not_compressed() -> None:
    with pytest.raises(tadoc.errors.NotCompressedError, match='sort: column "text" is Int64'):
        tadoc.sort(pl.Series("text", [1]))
