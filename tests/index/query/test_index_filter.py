"""Filters of searches: masks and expressions over metadata, against results filtered afterwards."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.errors import ColumnMissingError
from polars_tadoc.index.query.filter import bitmap, filter_mask

TEXTS = [f"a{' b' * (i % 4)} c{i % 3} {'x ' * (i % 5)}" for i in range(70)]
FRAME = pl.DataFrame(
    {"name": [f"n{i}" for i in range(70)], "year": [None if i % 9 == 0 else 1990 + i for i in range(70)], "text": TEXTS}
).tadoc.compress("text", rows_per_grammar=20)
INDEX = FRAME.tadoc.build_index("text", id="name", metadata=["year", "name"])
QUERIES = ["a b", "c1 x", "zz", "b"]


def filtered(index: tadoc.Index, kept: set[str], **arguments: Any) -> list[tuple[Any, ...]]:
    """All results, those of documents not kept left out, ranked anew."""
    every = index.search(QUERIES, k=1_000, **arguments).filter(pl.col("id").is_in(list(kept)))
    ranks = pl.int_range(1, pl.len() + 1).over("query").cast(pl.UInt32)
    return every.with_columns(rank=ranks).filter(pl.col("rank") <= 5).rows()


@given(kept=st.sets(st.integers(0, 69)))
@pytest.mark.parametrize("mode", ["or", "and"])
def test_masks(kept: set[int], mode: str, engine: str) -> None:
    mask = [i in kept for i in range(70)]
    wanted = filtered(INDEX, {f"n{i}" for i in kept}, mode=mode)
    for given_mask in (mask, np.array(mask), pl.Series(mask), pl.Series([own or None for own in mask])):
        found = INDEX.search(QUERIES, k=5, mode=mode, filter=given_mask, engine=engine)
        assert found.rows() == wanted


EXPRESSIONS = [
    (pl.col("year") > 2020, lambda year: year is not None and year > 2020),
    (pl.col("year").is_null(), lambda year: year is None),
    (pl.col("year") == pl.col("year").max(), lambda year: year == 2059),
    (pl.lit(True), lambda year: True),
    (pl.lit(False), lambda year: False),
    (pl.lit(None), lambda year: False),
    (pl.col("year").is_between(2000, 2010) & pl.col("name").str.ends_with("1"), lambda year: year == 2001),
]


@pytest.mark.parametrize(("expression", "keeps"), EXPRESSIONS)
@pytest.mark.parametrize("mode", ["or", "and", "and_or"])
def test_expressions(expression: pl.Expr, keeps: Any, mode: str) -> None:
    kept = {name for name, year in FRAME.select("name", "year").rows() if keeps(year)}
    if mode == "and_or":
        found = INDEX.search(QUERIES, k=100, mode=mode, filter=expression)
        assert set(found["id"]) <= kept
    else:
        assert INDEX.search(QUERIES, k=5, mode=mode, filter=expression).rows() == filtered(INDEX, kept, mode=mode)


def test_after_deletion_a_mask_is_of_the_documents_left() -> None:
    gone = [f"n{i}" for i in range(0, 70, 7)]
    left = INDEX.delete(gone)
    kept = [name for name in FRAME["name"] if name not in gone and int(name[1:]) % 2]
    mask = left.ids.is_in(kept)
    assert left.search(QUERIES, k=5, filter=mask).rows() == filtered(left, set(kept))
    by_year = left.search("a", k=100, filter=pl.col("year") == pl.col("year").max())
    assert by_year["id"].to_list() == ["n69"]
    with pytest.raises(ValueError, match="one value for each of the index's 60 documents; it has 70"):
        left.search("a", filter=[True] * 70)


@pytest.mark.parametrize("size", [0, 1, 7, 8, 31, 32, 33, 64, 100])
def test_bits(size: int) -> None:
    mask = np.arange(size) % 3 == 0
    bits = bitmap(mask)
    assert bits.dtype == np.uint32
    assert len(bits) == -(-size // 32)
    assert [bool(int(bits[d >> 5]) >> (d & 31) & 1) for d in range(size)] == mask.tolist()


WRONG: list[tuple[Any, type[Exception], str]] = [
    (pl.col("yeer") > 1, ColumnMissingError, 'search: filter: there is no column "yeer"; did you mean "year"?'),
    (pl.col("year"), TypeError, "such as pl.col(…) == value; the expression gives Int64"),
    (pl.col("year").max() == 1, ValueError, "each of the index's 70 documents; the expression gives 1"),
    (pl.col("year") > "x", ValueError, 'search: filter=[(col("year")) > ("x")] cannot be computed: '),
    ([True] * 71, ValueError, "it has 71; null rows and deleted documents have none"),
    ((pl.col("year") > 1, pl.col("year") < 5), TypeError, "several expressions; join them into one with &"),
    (pl.all().is_null(), ValueError, "filter gives 2 columns; join them into one"),
    ([True] * 69, ValueError, "each of the index's 70 documents; it has 69"),
    ([1] * 70, TypeError, "must be Boolean, one value for each document; it has Int64"),
    ("year > 2000", TypeError, "or Boolean values, one for each document; it is str"),
    (True, TypeError, "it is bool; omit it to search all documents"),
    (np.ones((70, 1), bool), ValueError, "one dimension; the array has 2"),
    ([True, "x"] * 35, TypeError, "filter must hold Boolean values"),
]


@pytest.mark.parametrize(("wrong", "error", "message"), WRONG)
def test_wrong_filters(wrong: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        INDEX.search("a", filter=wrong)


def test_an_expression_without_metadata() -> None:
    plain = FRAME.tadoc.build_index("text")
    with pytest.raises(ValueError, match=r'over metadata \("year"\), but the index has none; pass columns'):
        plain.search("a", filter=pl.col("year") > 1)
    assert filter_mask(iter([True, None]), None, 2).tolist() == [True, False]
