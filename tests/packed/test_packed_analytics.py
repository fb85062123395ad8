"""Analytics over packed files: partitions go to the kernels as they are where a plan chooses rows and columns only."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import polars_tadoc as tadoc
from polars_tadoc.analytics.explain import REQUESTS
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.model import payload
from polars_tadoc.model.grammar_cache import grammars
from polars_tadoc.packed import scan as packed_scan
from polars_tadoc.packed import unpack
from polars_tadoc.packed.files import PackedFile
from polars_tadoc.packed.pushdown import packed_question
from tests.packed_cases import every_column, frames

FRAME = every_column(60, 8).select("number", "text", "day", "name", "flag")  # all types: test_scan_packed
LABELLED = ("inverted_index", "term_vector", "ranked_inverted_index", "bm25_weights", "tfidf")
Plan = Callable[[pl.LazyFrame], pl.LazyFrame]
number = pl.col("number")

ROWS_AND_COLUMNS: dict[str, Plan] = {
    "all": lambda lf: lf,
    "columns": lambda lf: lf.select("text", "number"),
    "other columns changed": lambda lf: lf.with_columns(day=pl.col("day").dt.year()),
    "filter": lambda lf: lf.filter(number % 3 == 1),
    "two filters": lambda lf: lf.filter(number > 10).filter(number < 30),
    "filter by statistics": lambda lf: lf.filter(number.is_between(24, 39)),
    "filter on other columns": lambda lf: lf.filter(pl.col("name").is_not_null(), pl.col("flag")),
    "filter to nothing": lambda lf: lf.filter(number < 0),
    "head": lambda lf: lf.head(21),
    "no rows": lambda lf: lf.head(0),
    "head, then filter": lambda lf: lf.head(33).filter(number % 2 == 0),
}
"""Plans that a scan answers alone."""

OTHERS: dict[str, Plan] = {
    "filter, then head": lambda lf: lf.filter(number % 2 == 0).head(7),
    "slice": lambda lf: lf.slice(13, 30),
    "tail": lambda lf: lf.tail(9),
    "sort": lambda lf: lf.sort("number", descending=True),
    "twice": lambda lf: pl.concat([lf, lf]),
    "join": lambda lf: lf.join(lf.select("number").tail(20), on="number", maintain_order="left"),
    "filter on the text": lambda lf: lf.filter(pl.col("text").tadoc.contains_phrase("row 12")),
    "the text changed": lambda lf: lf.with_columns(text=pl.col("text").reverse()),
    "renamed": lambda lf: lf.rename({"text": "words"}).rename({"words": "text"}),
    "row index": lambda lf: lf.with_row_index().filter(pl.col("index") > 40),
    "random rows": lambda lf: lf.filter(number.shuffle(seed=1) > 20),
}
"""Plans of which more than rows and columns is asked."""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rows in three files, none of which ends where a grammar does."""
    folder = tmp_path_factory.mktemp("packed")
    for place, start in enumerate((0, 20, 40)):
        FRAME.slice(start, 20).tadoc.write_packed(folder / f"{place}.parquet")
    return folder


@cache
def scanned(folder: Path) -> pl.LazyFrame:
    return tadoc.scan_packed(folder)


def asked(lf: Any, call: str, **arguments: Any) -> Any:
    labelled = {"id": "number"} if call in LABELLED else {}
    return getattr(lf.tadoc, call)("text", **labelled, **arguments)


def no_payloads() -> Any:
    """Let nobody make a payload of a packed grammar."""
    unpack.payloads.clear()
    return patch.object(payload, "encode", side_effect=AssertionError("a payload was made"))


@cache
def in_memory(plan: str, call: str) -> Any:
    """The result of a call on the rows of a plan, in memory."""
    return asked(ROWS_AND_COLUMNS[plan](FRAME.lazy()).collect(), call)


@pytest.mark.parametrize("plan", ROWS_AND_COLUMNS)
@pytest.mark.parametrize("call", REQUESTS)
def test_partitions_go_straight_to_the_kernels(call: str, plan: str, folder: Path, engine: str) -> None:
    expected = in_memory(plan, call)
    lf = ROWS_AND_COLUMNS[plan](scanned(folder))
    # every pair of call, plan, limit and Polars' engine, not all combinations
    is_even = (list(REQUESTS).index(call) + list(ROWS_AND_COLUMNS).index(plan)) % 2 == 0
    with no_payloads():
        for memory_limit, of_polars in (
            ((None, "in-memory"), ("1GB", "streaming")) if is_even else (("1GB", "in-memory"), (None, "streaming"))
        ):
            lazy = asked(lf, call, engine=engine, memory_limit=memory_limit)
            assert lazy.collect_schema() == expected.schema
            assert_frame_equal(lazy.collect(engine=of_polars), expected)


def test_which_plans_are_questions_to_a_scan(folder: Path) -> None:
    """What Polars' optimizer makes of plans is not promised: a release that changes it is noticed here."""
    lf = tadoc.scan_packed(folder)
    for name, plan in ROWS_AND_COLUMNS.items():
        if name == "no rows":  # Polars leaves the scan out
            continue
        question = packed_question(plan(lf).select("text", "number"))
        assert question is not None, name
        assert (question.limit is not None) == name.startswith("head"), name
        assert (question.predicate is not None) == ("filter" in name), name
    for name, plan in OTHERS.items():
        assert packed_question(plan(lf).select("text")) is None, name


def test_questions_with_long_lists_have_short_keys(folder: Path) -> None:
    lf = tadoc.scan_packed(folder)
    keys = set()
    for values in (range(5000), range(5000), range(5001)):
        question = packed_question(lf.filter(number.is_in(list(values))).select("text"))
        assert question is not None
        assert len(question.key[1]) == 64
        keys.add(question.key)
    assert len(keys) == 2


@pytest.mark.parametrize("memory_limit", [None, "1GB"])
@pytest.mark.parametrize("plan", OTHERS)
def test_other_plans_run_as_they_are(plan: str, memory_limit: str | None, folder: Path) -> None:
    rows, expected = OTHERS[plan](tadoc.scan_packed(folder)), OTHERS[plan](FRAME.lazy()).collect()
    for call in ("word_count", "inverted_index"):
        lazy = asked(rows, call, memory_limit=memory_limit)
        assert_frame_equal(lazy.collect(), asked(expected, call))


@pytest.mark.parametrize("memory_limit", [None, "1GB"])
@given(frame=frames(), limit=st.none() | st.integers(0, 12), kept=st.lists(st.booleans(), min_size=16, max_size=16))
def test_any_rows(
    tmp_path: Path, memory_limit: str | None, frame: pl.DataFrame, limit: int | None, kept: list[bool]
) -> None:
    flags = pl.Series("kept", [kept[row % 16] for row in range(frame.height)], pl.Boolean)
    frame = frame.with_columns(flags)
    frame.tadoc.write_packed(tmp_path / "a.parquet")
    lf = tadoc.scan_packed(tmp_path / "a.parquet")
    if limit is not None:
        lf, frame = lf.head(limit), frame.head(limit)
    lf, frame = lf.filter("kept"), frame.filter("kept")
    with no_payloads():
        got = [
            lf.tadoc.term_vector("text", memory_limit=memory_limit).collect(),
            lf.tadoc.sequence_count("text", n=2, memory_limit=memory_limit).collect(),
        ]
    assert_frame_equal(got[0], frame.tadoc.term_vector("text"))
    assert_frame_equal(got[1], frame.tadoc.sequence_count("text", n=2))


def test_packed_rows_that_are_null(tmp_path: Path) -> None:
    packed = FRAME.select("number", "text").tadoc.pack()
    empty = packed.select(
        pl.lit([], pl.List(pl.Int32)).alias("number"), pl.lit(None, packed["text"].dtype).alias("text")
    )
    pl.concat([empty, packed.head(2), empty, packed.slice(2), empty]).write_parquet(
        tmp_path / "a.parquet", row_group_size=2
    )
    for memory_limit in (None, "1GB"):
        lazy = tadoc.scan_packed(tmp_path).tadoc.inverted_index("text", memory_limit=memory_limit)
        assert_frame_equal(lazy.collect(), FRAME.tadoc.inverted_index("text"))


def test_rows_of_another_column_are_their_labels(folder: Path) -> None:
    texts = pl.col("number") % 2 == 0
    lazy = tadoc.scan_packed(folder).filter(texts).tadoc.inverted_index("text", id="name", memory_limit="1GB")
    assert_frame_equal(lazy.collect(), FRAME.filter(texts).tadoc.inverted_index("text", id="name"))


@pytest.fixture
def reads() -> Iterator[list[int]]:
    """The row groups of which the text is read."""
    seen: list[int] = []
    table = PackedFile.table

    def counted(self: PackedFile, group: int, names: list[str]) -> Any:
        if "text" in names:
            seen.append(group)
        return table(self, group, names)

    with patch.object(PackedFile, "table", counted):
        yield seen


@pytest.mark.parametrize("memory_limit", [None, "1GB"])
def test_a_plan_that_asks_twice_reads_once(folder: Path, reads: list[int], memory_limit: str | None) -> None:
    lf = tadoc.scan_packed(folder / "0.parquet")

    def counts() -> Any:
        return lf.filter(number < 16).tadoc.word_count(memory_limit=memory_limit)

    assert reads == []
    joined = counts().join(counts(), on="word").collect()
    assert joined["count"].equals(joined["count_right"], check_names=False)
    assert reads == [0, 1]
    lf.filter(number < 8).tadoc.word_count(memory_limit=memory_limit).collect()
    assert reads == [0, 1, 0]


def test_under_a_limit_no_grammar_is_kept(folder: Path) -> None:
    grammars.clear()
    tadoc.scan_packed(folder).tadoc.word_count(memory_limit="1GB").collect()
    assert len(grammars) == 0
    tadoc.scan_packed(folder).tadoc.word_count().collect()
    assert len(grammars) > 0


def test_a_grammar_that_does_not_fit(folder: Path) -> None:
    with pytest.raises(LimitExceededError, match=r"take about .* bytes, more than memory_limit=100; raise it"):
        tadoc.scan_packed(folder).tadoc.word_count(memory_limit=100).collect()


def test_errors_of_a_plan_are_raised_when_it_runs(tmp_path: Path) -> None:
    FRAME.select("number", "text").tadoc.write_packed(tmp_path / "a.parquet")
    lazy = tadoc.scan_packed(tmp_path / "a.parquet").tadoc.word_count()
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"a\.parquet"):
        lazy.collect()


def test_the_plan_says_what_is_read(folder: Path) -> None:
    text = tadoc.scan_packed(folder / "0.parquet").filter(number > 3).tadoc.word_count().explain()
    assert "PYTHON[word_count] SCAN" in text
    assert "0.parquet, where" in text
    assert "number" in text


def test_other_threads_read_while_one_asks(folder: Path) -> None:
    lf = tadoc.scan_packed(folder)
    packed_scan.asking.noted = []
    try:
        with ThreadPoolExecutor(1) as pool:
            frame = pool.submit(lf.collect).result()
    finally:
        packed_scan.asking.noted = None
    assert_frame_equal(frame, FRAME)


def test_nothing_stays_alive(folder: Path) -> None:
    gc.collect()
    gc.disable()
    try:
        before = {*map(id, packed_scan.scans)}  # shared by other tests
        lf = tadoc.scan_packed(folder)
        (scan,) = [weakref.ref(scan) for scan in packed_scan.scans if id(scan) not in before]
        counts = lf.filter(number > 3).tadoc.word_count(memory_limit="1GB")
        assert counts.collect().height > 0
        assert lf.tadoc.word_count().collect().height > 0
        del lf
        assert scan() is not None  # the counts may be asked for again
        del counts
        assert scan() is None
    finally:
        gc.enable()
