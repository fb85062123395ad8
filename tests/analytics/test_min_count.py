"""Which analytics take which common arguments, as the docs say, and what ``min_count`` drops, on every surface."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.namespaces import TadocExpr, TadocFrame, TadocLazyFrame, TadocSeries
from tests import ROOT, oracle
from tests.analytic_cases import COLUMN

PAGE = ROOT / "docs" / "calls.md"
SENTENCE = re.compile(
    r"The counts \((.*?)\) also take (.*?)\. They and the weights \((.*?)\) take (.*?);"
    r" in lazy plans all analytics take (.*?)\. "
)
SURFACES = {
    "function": tadoc,
    "DataFrame": TadocFrame,
    "LazyFrame": TadocLazyFrame,
    "Series": TadocSeries,
    "Expr": TadocExpr,
    "Workers": tadoc.distributed.Workers,
}
OF_WORKERS = {"engine"}
"""What ``Workers`` is told once, when it is made."""


def promised() -> tuple[list[str], list[str], list[str], list[str], list[str]]:
    """Counts, what they take, weights, what both take, what lazy plans add."""
    text = " ".join(PAGE.read_text().split())
    found = SENTENCE.search(text)
    assert found is not None
    counts, own, weights, both, lazy = (re.findall(r"`(\w+)=?`", part) for part in found.groups())
    return counts, own, weights, both, lazy


def surfaces() -> dict[str, Any]:
    try:
        from polars_tadoc.distributed import spark
    except ImportError:
        return SURFACES
    return {**SURFACES, "Spark": spark}


def test_every_analytic_is_a_count_or_a_weight() -> None:
    counts, own, weights, both, _ = promised()
    assert own == ["min_count"]
    assert both == ["normalize", "lowercase", "stopwords", "strategy", "engine"]
    others = {"info", "parquet_info", "explain", "calibrate", "twig_filter"}  # they count no words
    others |= {"collocations", "concordance"}  # pairs and places of words, with options of their own
    analytics = {
        name for name in tadoc.__all__ if getattr(getattr(tadoc, name), "__module__", "").endswith(f".analytics.{name}")
    }
    assert {*counts, *weights} == analytics - others


@pytest.mark.parametrize("surface", [*SURFACES, "Spark"])
def test_analytics_take_what_readme_says(surface: str) -> None:
    where = surfaces().get(surface)
    if where is None:
        pytest.skip("pyspark is not there")
    counts, own, weights, both, lazy = promised()
    checked = 0
    for name in (*counts, *weights):
        call = getattr(where, name, None)
        if call is None:
            continue
        wanted = {*both, *(own if name in counts else []), *(lazy if surface == "LazyFrame" else [])}
        taken = set(inspect.signature(call).parameters)
        assert wanted - (OF_WORKERS if surface == "Workers" else set()) <= taken, name
        assert name in counts or not taken & set(own), name
        checked += 1
    assert checked >= 7
    if surface == "LazyFrame":
        assert "memory_limit" in inspect.signature(where.twig_filter).parameters


DOCUMENTS = oracle.tokenize(tadoc.decompress(COLUMN).to_list())
CALLS: dict[str, tuple[dict[str, Any], Callable[[int], Any]]] = {
    "word_count": ({}, lambda least: oracle.word_count(DOCUMENTS, min_count=least)),
    "sort": ({}, lambda least: oracle.sort(DOCUMENTS, least)),
    "inverted_index": ({}, lambda least: oracle.inverted_index(DOCUMENTS, min_count=least)),
    "term_vector": ({}, lambda least: oracle.term_vector(DOCUMENTS, min_count=least)),
    "sequence_count": ({"n": 2}, lambda least: oracle.sequence_count(DOCUMENTS, 2, min_count=least)),
    "ranked_inverted_index": ({"n": 2}, lambda least: oracle.ranked_inverted_index(DOCUMENTS, n=2, min_count=least)),
    "cooccurrence": ({"window": 2}, lambda least: oracle.cooccurrence(DOCUMENTS, 2, min_count=least)),
}


@pytest.mark.parametrize("least", [1, 2, 3, 100])
@pytest.mark.parametrize("name", CALLS)
def test_what_occurs_less_often_is_left_out(name: str, least: int) -> None:
    how, defined = CALLS[name]
    arguments = {**how, "min_count": least}
    expected = defined(least)
    frame = COLUMN.to_frame()
    lazy = getattr(frame.lazy().tadoc, name)
    assert pl.DataFrame(getattr(tadoc, name)(COLUMN, **arguments)).rows() == expected
    assert getattr(frame.tadoc, name)("text", **arguments).rows() == expected
    assert getattr(COLUMN.tadoc, name)(**arguments).rows() == expected
    assert lazy("text", **arguments).collect().rows() == expected
    assert lazy("text", memory_limit="1GB", **arguments).collect(engine="streaming").rows() == expected
    lists = frame.select(getattr(pl.col("text").tadoc, name)(**arguments)).to_series()
    if name == "term_vector":  # a list for each row
        lists = frame.select(getattr(pl.col("text").tadoc, name)(**arguments)).with_row_index("id")
        lists = lists.explode("text", empty_as_null=False).drop_nulls("text").unnest("text")
        assert lists.rows() == expected
    else:
        assert lists.explode(empty_as_null=False).struct.unnest().rows() == expected


@pytest.mark.parametrize("least", [1, 2, 3, 100])
def test_columns_of_words_that_occur_less_often_are_left_out(least: int) -> None:
    words = sorted(word for word, _ in oracle.word_count(DOCUMENTS, min_count=least))
    rows = [[(row or []).count(word) for word in words] for row in DOCUMENTS]
    for call in (tadoc.to_csr(COLUMN, min_count=least), COLUMN.tadoc.to_csr(min_count=least)):
        assert call[1].to_list() == words
        assert call[0].toarray().tolist() == rows
    counts, _ = COLUMN.to_frame().tadoc.to_csr("text", min_count=least)
    assert counts.toarray().tolist() == rows


@pytest.mark.slow
def test_workers_leave_it_out(tmp_path: Path) -> None:
    COLUMN.to_frame().tadoc.write_packed(tmp_path / "packed.parquet")
    with tadoc.distributed.Workers(cpus=1, threads=1) as workers:
        for name, (how, defined) in CALLS.items():
            got = getattr(workers, name)(tmp_path / "packed.parquet", **how, min_count=2).collect()
            assert got.rows() == defined(2), name


def test_dir_lists_the_public_names() -> None:
    assert dir(tadoc) == sorted([*tadoc.__all__, "__version__"])
    assert all(hasattr(tadoc, name) for name in dir(tadoc))


@pytest.mark.parametrize(
    ("series", "mend"),
    [
        (pl.Series("t", [["a", "b"]]), '.list.join(" ")'),
        (pl.Series("t", [["a", "b"]], pl.Array(pl.String, 2)), '.arr.join(" ")'),
        (pl.Series("t", [[1]]), ".explode()"),
        (pl.Series("t", [1]), 'cast it: pl.col("t").cast(pl.String)'),
        (pl.Series("t", [{"a": 1}]), '.struct.field("…")'),
    ],
)
def test_compress_says_what_makes_strings(series: pl.Series, mend: str) -> None:
    for call in (
        lambda: tadoc.compress(series),
        lambda: series.to_frame().tadoc.compress("t"),
        lambda: series.to_frame().select(pl.col("t").tadoc.compress()),
        lambda: series.to_frame().lazy().tadoc.compress("t").collect(),
        lambda: series.tadoc.word_count(),
    ):
        with pytest.raises((TypeError, pl.exceptions.PolarsError), match=re.escape(mend)):
            call()
