"""What the lazy plan does, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pyarrow.parquet as pq
import pytest

import polars_tadoc as tadoc
from polars_tadoc.analytics import info as info_analytic
from polars_tadoc.analytics.explain import REQUESTS
from polars_tadoc.execute import plan
from polars_tadoc.execute.analytic import Analytic

ROWS = ["the cat", "the dog", None, "a cat"]
DF = pl.DataFrame({"year": [1, 2, 3, 4], "text": ROWS, "other": ["x"] * 4}).tadoc.compress("text")
CALLS: dict[str, Callable[[Any], Any]] = {
    "word_count": lambda f: f.tadoc.word_count("text"),
    "word_count of the only column": lambda f: f.tadoc.word_count(),
    "sort": lambda f: f.tadoc.sort("text"),
    "inverted_index": lambda f: f.tadoc.inverted_index("text"),
    "inverted_index with labels": lambda f: f.tadoc.inverted_index("text", id="year"),
    "term_vector": lambda f: f.tadoc.term_vector("text"),
    "term_vector with labels": lambda f: f.tadoc.term_vector("text", id="other", top=1),
    "sequence_count": lambda f: f.tadoc.sequence_count("text", n=2),
    "ranked_inverted_index": lambda f: f.tadoc.ranked_inverted_index("text", n=1),
    "ranked_inverted_index with labels": lambda f: f.tadoc.ranked_inverted_index("text", id="year", n=2),
    "cooccurrence": lambda f: f.tadoc.cooccurrence("text"),
    "rows numbered after a filter": lambda f: f.filter(pl.col("year") > 1).tadoc.inverted_index(),
    "labelled by the text itself": lambda f: f.tadoc.term_vector("text", id="text").select("word", "count"),
    "info": lambda f: f.tadoc.info("text"),
    "decompress": lambda f: f.tadoc.decompress("text"),
    "compress": lambda f: f.tadoc.compress("other"),
    "filtered": lambda f: f.filter(pl.col("year") < 3).tadoc.word_count("text"),
    "filtered after": lambda f: f.tadoc.word_count("text").filter(pl.col("count") > 1),
    "sliced after": lambda f: f.tadoc.word_count("text").head(1),
    "selected after": lambda f: f.tadoc.word_count("text").select("count"),
    "column order after": lambda f: f.tadoc.word_count("text").select("count", "word"),
    "joined": lambda f: f.tadoc.word_count("text").join(f.tadoc.word_count("text"), on="word", maintain_order="left"),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_equals_the_eager_call(name: str, engine: Any) -> None:
    lazy = CALLS[name](DF.lazy())
    got, eager = lazy.collect(engine=engine), CALLS[name](DF)
    assert lazy.collect_schema() == got.schema == eager.schema
    if "text" in got.columns and tadoc.is_tadoc(got.schema["text"]):
        got, eager = got.tadoc.decompress("text"), eager.tadoc.decompress("text")
    if "other" in got.columns and tadoc.is_tadoc(got.schema["other"]):
        got, eager = got.tadoc.decompress("other"), eager.tadoc.decompress("other")
    assert got.equals(eager)


def test_schema_runs_nothing() -> None:
    def fail(df: pl.DataFrame) -> pl.DataFrame:
        raise AssertionError("the plan ran")

    text = pl.LazyFrame({"text": ["a"]}).map_batches(fail, schema={"text": pl.String})
    assert text.tadoc.compress("text").collect_schema() == {"text": tadoc.DTYPE}
    compressed = pl.LazyFrame({"t": ["a"]}).map_batches(fail, schema={"text": tadoc.DTYPE})
    assert compressed.tadoc.word_count().collect_schema() == {"word": pl.String, "count": pl.UInt64}
    assert compressed.tadoc.info().collect_schema() == info_analytic.SCHEMA
    counted = {"word": pl.String, "count": pl.UInt64}
    row, strings = pl.get_index_type(), pl.List(pl.String)
    assert compressed.tadoc.sort().collect_schema() == counted
    assert compressed.tadoc.inverted_index().collect_schema() == {"word": pl.String, "documents": pl.List(row)}
    assert compressed.tadoc.term_vector().collect_schema() == {"id": row, **counted}
    assert compressed.tadoc.sequence_count().collect_schema() == {"sequence": strings, "count": pl.UInt64}
    document = pl.Struct({"id": row, "count": pl.UInt64})
    ranked = {"sequence": strings, "documents": pl.List(document)}
    assert compressed.tadoc.ranked_inverted_index().collect_schema() == ranked
    assert compressed.tadoc.cooccurrence().collect_schema() == {
        "word": pl.String,
        "other": pl.String,
        "count": pl.UInt64,
    }
    assert compressed.tadoc.decompress().collect_schema() == {"text": pl.String}
    assert text.tadoc.compress("text").filter(pl.lit(True)).tadoc.word_count().collect_schema().names() == [
        "word",
        "count",
    ]
    with pytest.raises(AssertionError, match="the plan ran"):
        compressed.tadoc.word_count().collect()


def test_only_the_column_is_read(tmp_path: Path) -> None:
    path = tmp_path / "frame.parquet"
    DF.write_parquet(path)
    lazy = pl.scan_parquet(path).tadoc.word_count("text")
    assert "PROJECT 1/3 COLUMNS" in lazy.explain()
    filtered = pl.scan_parquet(path).filter(pl.col("year") == 1).tadoc.word_count("text")
    assert "PROJECT 2/3 COLUMNS" in filtered.explain()
    assert filtered.collect().rows() == [("cat", 1), ("the", 1)]


@pytest.mark.parametrize("call", ["inverted_index", "term_vector", "ranked_inverted_index"])
def test_only_the_column_and_its_labels_are_read(tmp_path: Path, call: str) -> None:
    path = tmp_path / "frame.parquet"
    DF.with_columns(unread=1).write_parquet(path)
    scan = pl.scan_parquet(path)
    assert "PROJECT 1/4 COLUMNS" in getattr(scan.tadoc, call)("text").explain()
    lazy = getattr(scan.filter(pl.col("other") == "x").tadoc, call)("text", id="year")
    assert "PROJECT 3/4 COLUMNS" in lazy.explain()
    assert lazy.collect().equals(getattr(DF.tadoc, call)("text", id="year"))


def test_a_filter_before_is_pushed_into_the_scan(tmp_path: Path) -> None:
    path = tmp_path / "frame.parquet"
    DF.write_parquet(path)
    shown = pl.scan_parquet(path).filter(pl.col("year") == 1).tadoc.word_count("text").explain()
    assert "SELECTION" in shown
    assert "FILTER" not in shown


def spoil(path: Path, spoiled: Callable[[int, str], bool]) -> None:
    """Overwrite the pages of columns, given a row group's number and a column's path."""
    metadata = pq.read_metadata(path)
    content = bytearray(path.read_bytes())
    for group in range(metadata.num_row_groups):
        for place in range(metadata.num_columns):
            column = metadata.row_group(group).column(place)
            if spoiled(group, column.path_in_schema):
                start = min(column.data_page_offset, column.dictionary_page_offset or column.data_page_offset)
                content[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(content)


@pytest.mark.parametrize("arguments", [{}, {"memory_limit": "1GB"}])
@pytest.mark.parametrize("call", REQUESTS)
def test_other_columns_are_not_read(tmp_path: Path, call: str, arguments: dict[str, Any]) -> None:
    """Their bytes are garbage."""
    path = tmp_path / "frame.parquet"
    DF.with_columns(label=pl.col("year").cast(pl.String)).write_parquet(path)
    spoil(path, lambda _, column: column in ("other", "year"))
    scan = pl.scan_parquet(path)
    with pytest.raises(pl.exceptions.PolarsError):
        scan.select("other").collect()
    assert getattr(scan.tadoc, call)("text", **arguments).collect().equals(getattr(DF.tadoc, call)("text"))
    if call in ("inverted_index", "term_vector", "ranked_inverted_index"):
        labelled = getattr(scan.tadoc, call)("text", id="label", **arguments).collect()
        assert labelled.height == getattr(DF.tadoc, call)("text").height


@pytest.mark.parametrize("arguments", [{}, {"memory_limit": "1GB"}])
@pytest.mark.parametrize("call", REQUESTS)
def test_rows_that_a_filter_leaves_out_are_not_read(tmp_path: Path, call: str, arguments: dict[str, Any]) -> None:
    """The text of row groups whose statistics rule out a match is garbage; so are columns that nothing names."""
    path = tmp_path / "frame.parquet"
    df = pl.DataFrame({"year": range(40), "text": [f"w{k % 7} the cat" for k in range(40)], "other": "x"})
    df.tadoc.compress("text").write_parquet(path, row_group_size=10)
    spoil(path, lambda group, column: column == "other" or (column.startswith("text") and group != 2))
    scan = pl.scan_parquet(path)
    with pytest.raises(pl.exceptions.PolarsError):
        scan.select("text").collect()
    kept = pl.col("year").is_between(22, 27)
    lazy = getattr(scan.filter(kept).tadoc, call)("text", **arguments)
    expected = getattr(df.filter(kept).tadoc.compress("text").tadoc, call)("text")
    assert lazy.collect().equals(expected)


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("call", REQUESTS)
def test_equal_analytics_run_once(call: str, engine: Any) -> None:
    """Built apart, joined, concatenated, or collected together."""
    lf = DF.lazy()

    def made() -> pl.LazyFrame:
        lazy: pl.LazyFrame = getattr(lf.tadoc, call)("text", stopwords=["a"])
        return lazy

    once = getattr(DF.tadoc, call)("text", stopwords=["a"])
    with patch.object(Analytic, "frame", autospec=True, side_effect=Analytic.frame) as runs:
        both = pl.concat([made(), made().head(1), made().filter(pl.lit(True))])
        assert both.collect(engine=engine).equals(pl.concat([once, once.head(1), once]))
        assert runs.call_count == 1
        name = once.columns[0]
        joined = made().select(name).join(made(), on=name, maintain_order="left")
        joined.collect(engine=engine)
        assert runs.call_count == 2
        for found in pl.collect_all([made().head(1), made().tail(1), made()], engine=engine):
            assert found.equals(once) or found.height == 1
        assert runs.call_count == 3
        other = getattr(lf.filter(pl.col("year") > 1).tadoc, call)("text", stopwords=["a"])
        pl.collect_all([made(), other, getattr(lf.tadoc, call)("text", lowercase=True)], engine=engine)
        assert runs.call_count == 6


def test_nothing_is_kept_of_a_plan() -> None:
    """Neither the plan nor its result is held by what finds equal ones."""
    df = DF.clone()
    lf = df.lazy()
    before = len(plan._readings)
    counts = lf.tadoc.word_count("text", top=17)
    again = lf.tadoc.word_count("text", top=17)
    assert len(plan._readings) == before + 1
    counts.join(again, on="word").collect()
    del counts, again, lf
    assert len(plan._readings) == before


def test_what_follows_stays_above() -> None:
    counts = DF.lazy().tadoc.word_count("text")
    shown = counts.filter(pl.col("count") > 1).explain()
    assert shown.index("FILTER") < shown.index("PYTHON")
    shown = counts.head(1).explain()
    assert shown.index("SLICE") < shown.index("PYTHON")
    assert counts.filter(pl.col("word") == "cat").collect().rows() == [("cat", 2)]
    assert counts.tail(1).collect().rows() == [("dog", 1)]


def test_expressions_in_a_plan() -> None:
    lf = pl.LazyFrame({"text": ROWS})
    compressed = lf.select(pl.col("text").tadoc.compress())
    assert compressed.collect_schema() == {"text": tadoc.DTYPE}
    back = compressed.select(pl.col("text").tadoc.decompress())
    assert back.collect_schema() == {"text": pl.String}
    assert back.collect()["text"].to_list() == back.collect(engine="streaming")["text"].to_list() == ROWS
    both = lf.with_columns(pl.col("text").tadoc.compress().alias("small"), pl.col("text").str.len_chars().alias("n"))
    assert both.filter(pl.col("n") == 5).collect().tadoc.word_count().rows() == [("a", 1), ("cat", 1)]


def test_compress_within_groups() -> None:
    df = pl.DataFrame({"g": [1, 2, 1, 2], "text": ROWS})
    grouped = df.group_by("g", maintain_order=True).agg(pl.col("text").tadoc.compress())
    flat = grouped.explode("text")
    assert flat.tadoc.decompress("text").rows() == [(1, "the cat"), (1, None), (2, "the dog"), (2, "a cat")]
    over = df.with_columns(pl.col("text").tadoc.compress().over("g"))
    assert over.tadoc.decompress("text").equals(df)


def test_sink_and_scan(tmp_path: Path) -> None:
    path = tmp_path / "sunk.parquet"
    pl.LazyFrame({"text": ROWS}).tadoc.compress("text").sink_parquet(path)
    assert pl.scan_parquet(path).tadoc.word_count().collect().rows() == [("cat", 2), ("the", 2), ("a", 1), ("dog", 1)]
    assert pl.scan_parquet(path).tadoc.decompress().collect()["text"].to_list() == ROWS


def test_a_name_is_no_pattern() -> None:
    eager = pl.DataFrame({"^t.*$": ["to be"]}).tadoc.compress("^t.*$").tadoc.decompress()
    assert eager.rows() == [("to be",)]
    assert eager.lazy().tadoc.compress("^t.*$").tadoc.decompress().collect().equals(eager)
    labelled = pl.LazyFrame({"^.*$": [7], "*": ["be"]}).tadoc.compress("*").tadoc.term_vector("*", id="^.*$")
    assert labelled.collect().rows() == [(7, "be", 1)]
    lf = pl.LazyFrame({"a": [1], "*": ["to be"], "b": ["x"]}).tadoc.compress("*")
    assert lf.tadoc.decompress().collect().row(0) == (1, "to be", "x")
    assert lf.tadoc.recompress("*").tadoc.word_count().collect().rows() == [("be", 1), ("to", 1)]
    assert lf.select("a").collect().row(0) == (1,)
