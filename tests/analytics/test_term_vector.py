"""Words of each document, against ``collections.Counter`` by row."""

from __future__ import annotations

import polars as pl
from hypothesis import given

import polars_tadoc as tadoc
from tests import handmade, oracle
from tests.analytic_cases import STRATEGIES, Case, cases, labels, least, strategies, tops, with_labels

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
