"""Analytics under ``memory_limit=``: the same results as in memory, however rows are cut into batches."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.io.plugins import register_io_source
from polars.testing import assert_frame_equal

import polars_tadoc as tadoc
from polars_tadoc.analytics.explain import REQUESTS
from polars_tadoc.engine.choose import CPU
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.execute import plan, splits, stream, windows
from polars_tadoc.execute.limited import MIN_ROWS, Limited, row_groups
from polars_tadoc.execute.splits import words_before
from polars_tadoc.model.column import split
from polars_tadoc.records.labelled_results import Labels
from polars_tadoc.runtime import free_memory
from polars_tadoc.traversal.options import require_memory_limit
from tests.analytic_cases import Case, cases, labels, least, strategies, tops, with_labels

LIMIT = "1GB"
WEIGHING = ("bm25_weights", "tfidf")
LABELLED = ("inverted_index", "term_vector", "ranked_inverted_index", *WEIGHING)
CALLS = tuple(REQUESTS)
ROWS = [f"w{k % 5} the w{k % 3} cat" if k % 7 else None for k in range(60)]
COLUMN = tadoc.compress(pl.Series("text", ROWS), rows_per_grammar=9)


def arguments_of(call: str, n: int, top: int | None, min_count: int) -> dict[str, Any]:
    if call in WEIGHING:
        return {"top": top}
    named: dict[str, Any] = {"min_count": min_count}
    if call not in ("sort", "inverted_index"):
        named["top"] = top
    if call in ("sequence_count", "ranked_inverted_index"):
        named["n"] = n
    return {**named, "window": n} if call == "cooccurrence" else named


def in_batches(df: pl.DataFrame, cuts: list[int]) -> pl.LazyFrame:
    """A plan that gives the frame's rows in pieces."""

    def source(
        columns: list[str] | None, _predicate: pl.Expr | None, _rows: int | None, _size: int | None
    ) -> Iterator[pl.DataFrame]:
        ends = [0, *sorted(min(cut, df.height) for cut in cuts), df.height]
        for start, stop in pairwise(ends):
            piece = df.slice(start, stop - start)
            yield piece if columns is None else piece.select(columns)

    return register_io_source(source, schema=df.schema)


@contextmanager
def often() -> Iterator[None]:
    """Let every batch go through the kernels by itself, and merge as soon as there is as much as before."""
    with patch.multiple(windows, ROWS_SHARE=1 << 62), patch.multiple(stream, FRESH_SHARE=1 << 62):
        yield


class Asked(NamedTuple):
    """A question, how the rows come, and which of Polars' engines collects."""

    case: Case
    n: int
    top: int | None
    min_count: int
    strategy: str
    labels: pl.Series | None
    cuts: list[int]
    streaming: bool


asked = st.builds(
    Asked,
    case=cases(),
    n=st.integers(1, 3),
    top=tops,
    min_count=least,
    strategy=strategies,
    labels=labels,
    cuts=st.lists(st.integers(0, 12), max_size=6),
    streaming=st.booleans(),
)


def hold_to_memory(engine: str, call: str, one: Asked, room: AbstractContextManager[Any]) -> None:
    """Compare a call under a memory limit, and in so much room, with the one in memory."""
    frame, labelled, _ = with_labels(one.case, one.labels if call in LABELLED else None)
    arguments = {**arguments_of(call, one.n, one.top, one.min_count), **labelled}
    arguments |= {"strategy": one.strategy, "engine": engine}
    expected = getattr(frame.tadoc, call)("text", **arguments)
    lazy = getattr(in_batches(frame, one.cuts).tadoc, call)("text", **arguments, memory_limit=LIMIT)
    assert lazy.collect_schema() == expected.schema
    with room:
        got = lazy.collect(engine="streaming" if one.streaming else "in-memory")
    assert got.schema == expected.schema
    assert got.equals(expected)


@pytest.mark.parametrize("call", CALLS)
@given(asked=asked)
def test_equals_the_call_in_memory(engine: str, call: str, asked: Asked) -> None:
    hold_to_memory(engine, call, asked, often())


@pytest.mark.parametrize("call", CALLS)
@given(case=cases(normalised=True))
def test_normalised(engine: str, call: str, case: Case) -> None:
    frame = case.column.to_frame()
    expected = getattr(frame.tadoc, call)(engine=engine, **case.arguments)
    lazy = getattr(frame.lazy().tadoc, call)(engine=engine, **case.arguments, memory_limit=LIMIT)
    assert lazy.collect().equals(expected)


@pytest.mark.parametrize("call", CALLS)
@given(case=cases(), n=st.integers(1, 3), top=tops, min_count=least, cut=st.integers(0, 12))
def test_merging_is_associative(call: str, case: Case, n: int, top: int | None, min_count: int, cut: int) -> None:
    asked = REQUESTS[call].from_arguments(**arguments_of(call, n, top, min_count), engine="cpu")
    every = asked.without_limits()
    parts = [every.partial(corpus, CPU) for corpus in split(case.column)]
    left, right = parts[:cut], parts[cut:]
    grouped = asked.merge([every.merge(left), every.merge(right)])
    each = asked.merge([every.merge([every.merge([part])]) for part in parts])
    expected = asked.run(case.column).to_frame()
    for total in (asked.merge(parts), grouped, each):
        assert asked.result(total, Labels(None)).to_frame().equals(expected)


@pytest.mark.parametrize("call", CALLS)
def test_rows_of_many_grammars_in_turn(call: str) -> None:
    """Rows of each grammar come in many batches, and rows of others between them."""
    df = pl.DataFrame([COLUMN, pl.Series("key", [k * 37 % 60 for k in range(60)])]).sort("key")
    expected = getattr(df.tadoc, call)("text")
    plan = in_batches(df, list(range(0, 60, 7)))
    for limit in (LIMIT, 10_000_000):
        with often():
            assert getattr(plan.tadoc, call)("text", memory_limit=limit).collect().equals(expected)


def test_gathers_whole_grammars() -> None:
    """Batches smaller than a grammar's rows do not multiply the work."""
    plan = in_batches(COLUMN.to_frame(), list(range(2, 60, 2)))
    with patch.multiple(windows, ROWS_SHARE=1_000_000_000 // 1000):  # room for some 20 rows
        found = list(windows.plan_windows(plan, COLUMN.name, [], 1_000_000_000))
    assert len(found) > 1
    corpora = [corpus for window in found for corpus in window.corpora]
    assert len(corpora) == len(split(COLUMN))
    assert [row for corpus in corpora for row in corpus.rows.tolist()] == [k for k in range(60) if k % 7]


def test_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    df = pl.DataFrame([COLUMN, pl.Series("year", [2000 + k // 20 for k in range(60)])])
    df.write_parquet(path, row_group_size=9)
    scan = pl.scan_parquet(path).filter(pl.col("year") > 2000)
    expected = df.filter(pl.col("year") > 2000).tadoc.ranked_inverted_index(id="year", n=2)
    assert scan.tadoc.ranked_inverted_index(id="year", n=2, memory_limit=LIMIT).collect().equals(expected)


def test_keeps_no_grammar(tmp_path: Path) -> None:
    from polars_tadoc.model.grammar_cache import grammars

    path = tmp_path / "rows.parquet"
    COLUMN.to_frame().write_parquet(path)
    grammars.clear()
    pl.scan_parquet(path).tadoc.word_count(memory_limit=LIMIT).collect()
    assert len(grammars) == 0


def test_used_twice_runs_once() -> None:
    runs = []

    def watched(df: pl.DataFrame) -> pl.DataFrame:
        runs.append(df.height)
        return df

    lf = pl.LazyFrame([COLUMN]).map_batches(watched, schema={"text": tadoc.DTYPE})
    counts = lf.tadoc.word_count("text", memory_limit=LIMIT)
    again = lf.tadoc.word_count("text", memory_limit="1 GB")
    for engine in ("in-memory", "streaming"):
        runs.clear()
        counts.join(again, on="word").collect(engine=engine)  # type: ignore[call-overload]
        assert len(runs) == 1
        runs.clear()
        pl.collect_all([counts.head(1), again.filter(pl.col("count") > 1), counts], engine=engine)  # type: ignore[call-overload]
        assert len(runs) == 1
    other = lf.tadoc.word_count("text", top=1, memory_limit=LIMIT)
    assert counts.join(other, on="word").collect().height == 1
    assert len(runs) == 1 + 2


def test_a_plan_that_is_gone_leaves_nothing() -> None:
    gc.disable()
    try:
        before = len(plan._streams)
        lf = COLUMN.to_frame().lazy()
        gone = weakref.ref(lf)
        counts = lf.tadoc.word_count("text", memory_limit=LIMIT)
        counts.collect()
        assert len(plan._streams) == before + 1
        del lf, counts
        assert gone() is None
        assert len(plan._streams) == before
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (5, 5),
        ("7", 7),
        ("2GB", 2 * 10**9),
        ("2 gb", 2 * 10**9),
        ("2G", 2 * 10**9),
        ("3k", 3000),
        ("9007199254740993", 2**53 + 1),
        ("9007199254740993.5B", 2**53 + 1),
        ("1.5 kB", 1500),
        ("512MiB", 512 << 20),
        (" 3 TiB ", 3 << 40),
        ("1KB", 1000),
    ],
)
def test_limits(text: int | str, size: int) -> None:
    assert require_memory_limit(text) == size


@pytest.mark.parametrize(
    ("limit", "error"),
    [(limit, ValueError) for limit in (0, -1, "", "2 gigs", "GB", "-1GB", "0.1B", "1e9", "9" * 400 + "GB", 1 << 63)]
    + [(limit, TypeError) for limit in (1.5, True, [])],
)
def test_wrong_limits(limit: Any, error: type[Exception]) -> None:
    """Reported when the call is made."""
    with pytest.raises(error, match="memory_limit="):
        COLUMN.to_frame().lazy().tadoc.word_count("text", memory_limit=limit)


@pytest.mark.parametrize("call", CALLS)
def test_one_grammar_does_not_fit(call: str) -> None:
    lazy = getattr(COLUMN.to_frame().lazy().tadoc, call)(memory_limit=100)
    with pytest.raises((LimitExceededError, pl.exceptions.ComputeError), match="memory_limit=100; raise it, or make"):
        lazy.collect()


@pytest.mark.parametrize(
    ("limit", "threads", "rows"),
    [("300MB", 16, 24_414), ("300MB", 64, 6_103), ("100MB", 64, 1 << 12), ("1GB", 2, None)],
)
def test_row_groups_of_a_result_keep_to_the_least_limit_of_a_plan(limit: str, threads: int, rows: int | None) -> None:
    lf = pl.LazyFrame({"text": COLUMN})
    limited = lf.tadoc.word_count("text", memory_limit=limit).filter(pl.col("count") > 1)
    both = pl.concat([limited, lf.tadoc.word_count("text", memory_limit="2GB")]).sort("count")
    with patch.object(pl, "thread_pool_size", lambda: threads):
        expected = {} if rows is None else {"row_group_size": rows}
        assert row_groups(limited) == row_groups(both) == expected
        assert row_groups(lf.tadoc.word_count("text")) == row_groups(lf) == {}


def test_row_groups_of_wide_results_are_smaller() -> None:
    lf = pl.LazyFrame({"text": COLUMN})
    wide = pl.concat([lf.tadoc.sequence_count("text", n=5, memory_limit="300MB"), lf.tadoc.sequence_count("text", n=2)])
    with patch.object(pl, "thread_pool_size", lambda: 16):
        assert row_groups(wide) == {"row_group_size": 4_882}


def test_sink_writes_small_row_groups_under_a_small_limit(tmp_path: Path) -> None:
    words = pl.LazyFrame({"text": tadoc.compress(pl.Series([" ".join(f"w{k}" for k in range(20_000))]))})
    limited = words.tadoc.word_count("text", memory_limit="100MB")
    with patch.object(pl, "thread_pool_size", lambda: 64):
        limited.tadoc.sink_parquet(tmp_path / "few.parquet")
        limited.tadoc.sink_parquet(tmp_path / "chosen.parquet", row_group_size=20_000)
    assert pq.ParquetFile(tmp_path / "few.parquet").metadata.num_row_groups == 5
    assert pq.ParquetFile(tmp_path / "chosen.parquet").metadata.num_row_groups == 1
    assert_frame_equal(pl.read_parquet(tmp_path / "few.parquet"), limited.collect())


@pytest.mark.parametrize("roots", [1, 7, 1 << 18])
def test_words_before_documents_are_added_up_stretch_by_stretch(roots: int) -> None:
    with patch.object(splits, "ROOTS", roots):
        for corpus in split(COLUMN):
            counts = [len((ROWS[row] or "").split()) for row in corpus.rows]
            assert words_before(corpus).tolist() == [0, *accumulate(counts)]


def test_memory_is_given_back_where_the_process_grew() -> None:
    trims: list[int] = []
    sizes = iter([100, 150, 170, 110, 90, 200, 95])
    with (
        patch.object(free_memory, "_TRIM", trims.append),
        patch.object(free_memory, "_resident", lambda: next(sizes)),
        patch.object(free_memory, "_left", 0),
    ):
        free_memory.give_back_memory()  # leaves 100
        free_memory.give_back_memory(60)  # 150
        assert len(trims) == 1
        free_memory.give_back_memory(60)  # 170, leaves 110
        assert len(trims) == 2
        free_memory.give_back_memory(60)  # 90
        assert len(trims) == 2
        free_memory.give_back_memory(60)  # 200, leaves 95
    assert len(trims) == 3


def test_arrow_takes_memory_from_the_c_library_until_the_last_limited_call_ends() -> None:
    before = pa.default_memory_pool().backend_name
    with free_memory.small_arrow_memory():
        with free_memory.small_arrow_memory():
            kept = pa.array(range(1000))
        assert pa.default_memory_pool().backend_name == "system"
    assert pa.default_memory_pool().backend_name == before
    assert kept.to_pylist() == list(range(1000))
    lf = pl.LazyFrame({"text": COLUMN})
    lf.tadoc.sequence_count("text", memory_limit="1GB").collect()
    with pytest.raises(LimitExceededError):
        lf.tadoc.sequence_count("text", memory_limit=1).collect()
    assert pa.default_memory_pool().backend_name == before


@pytest.mark.parametrize("limit", [None, 1 << 20])
def test_frames_under_a_limit_are_handed_over_in_pieces(limit: int | None) -> None:
    closed: list[bool] = []

    def source(*_: object) -> Iterator[pl.DataFrame]:
        try:
            yield pl.DataFrame({"row": range(1_000_000)})
            yield pl.DataFrame({"row": pl.Series([], dtype=pl.Int64)})
        finally:
            closed.append(True)

    frames = list(Limited(source, limit)(None, None, None, None))
    assert pl.concat(frames)["row"].to_list() == list(range(1_000_000))
    most = 1_000_000 if limit is None else max(MIN_ROWS, 1_000_000 // (2 * pl.thread_pool_size()))
    assert max(frame.height for frame in frames) == most
    assert frames[-1].height == 0
    begun = iter(Limited(source, limit)(None, None, None, None))
    next(begun)
    begun.close()  # type: ignore[attr-defined]
    assert closed == [True, True]
