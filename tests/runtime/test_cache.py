"""Caches, lifetimes and threads."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.model.grammar_cache import grammars
from polars_tadoc.runtime.cache import ByteLRU


@given(
    budget=st.integers(0, 20),
    steps=st.lists(st.tuples(st.sampled_from("gp"), st.sampled_from("abcd"), st.integers(0, 12)), max_size=40),
)
def test_lru_against_a_list(budget: int, steps: list[tuple[str, str, int]]) -> None:
    store: ByteLRU[bytes] = ByteLRU(lambda: budget, len)
    kept: list[tuple[str, bytes]] = []  # least recently used first
    for step, key, size in steps:
        old = next((value for name, value in kept if name == key), None)
        if step == "g":
            assert store.get(key) == old
            if old is not None:
                kept = [*(item for item in kept if item[0] != key), (key, old)]
        else:
            value = bytes(size)
            assert store.put(key, value) is value
            kept = [item for item in kept if item[0] != key]
            if size <= budget:
                kept.append((key, value))
            while sum(len(value) for _, value in kept) > budget:
                kept.pop(0)
        assert len(store) == len(kept)
        assert store.nbytes == sum(len(value) for _, value in kept) <= budget


def test_lru_budget_may_shrink() -> None:
    budget = 10
    store: ByteLRU[bytes] = ByteLRU(lambda: budget, len)
    store.put("a", b"12345")
    store.put("b", b"12345")
    budget = 6
    store.put("c", b"1")
    assert (store.get("a"), store.get("b"), store.nbytes) == (None, b"12345", 6)
    store.clear()
    assert (len(store), store.nbytes) == (0, 0)


def test_grammar_cache_keeps_to_its_budget() -> None:
    columns = [tadoc.compress(pl.Series([" ".join(f"w{i}x{j}" for j in range(300))] * 3)) for i in range(20)]
    grammars.clear()
    size = tadoc.column.split(columns[0])[0].grammar.nbytes
    with tadoc.Config(host_cache_bytes=3 * size + size // 2):
        for column in columns:
            assert column.tadoc.word_count(top=1)["count"].to_list() == [3]
            assert grammars.nbytes <= 3 * size + size // 2
        assert 1 <= len(grammars) <= 4
    with tadoc.Config(host_cache_bytes=0):
        assert columns[0].tadoc.word_count(top=1)["count"].to_list() == [3]
        grammars.put("any", tadoc.column.split(columns[0])[0].grammar)
        assert len(grammars) == 0


RECYCLE = """
import polars as pl
import polars_tadoc as tadoc
codes = set()
for i in range(200):
    rows = [f"word{i} word{i} other{i % 7}", None, f"word{i}"]
    column = tadoc.compress(pl.Series("text", rows))
    codes.add(column.ext.storage().struct.field("grammar").to_physical()[0])
    assert column.tadoc.word_count(top=1).rows() == [(f"word{i}", 3)], i
    assert column.tadoc.decompress().to_list() == rows, i
    del column
assert len(codes) < 200, "no code was recycled: this shows nothing"
"""


@pytest.mark.slow
def test_recycled_category_codes_show_nothing_old() -> None:
    """Polars gives the codes of dropped categories to new ones: nothing may be keyed by code."""
    # in a process of its own: here columns of other tests keep the categories alive
    done = subprocess.run([sys.executable, "-c", RECYCLE], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize(
    "use",
    [
        lambda df: df.tadoc.word_count("text"),
        lambda df: df.tadoc.info("text"),
        lambda df: df.tadoc.decompress("text"),
        lambda df: df.tadoc.compress("plain"),
        lambda df: df.lazy().tadoc.word_count("text").collect(),
        lambda df: df["text"].tadoc.word_count(),
        lambda df: df.select(pl.col("text").tadoc.decompress()),
    ],
)
def test_a_dropped_frame_is_freed_at_once(use: Any) -> None:
    df = pl.DataFrame({"text": ["a b"], "plain": ["x"]}).tadoc.compress("text")
    gc.collect()
    gc.disable()
    try:
        use(df)
        gone = weakref.ref(df)
        del df
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("kind", ["series", "lazy"])
def test_a_dropped_series_or_plan_is_freed_at_once(kind: str) -> None:
    series = tadoc.compress(pl.Series("text", ["a b"]))
    held: Any = series if kind == "series" else series.to_frame().lazy()
    del series
    gc.collect()
    gc.disable()
    try:
        held.tadoc.word_count()
        held.tadoc.info()
        held.tadoc.decompress()
        gone = weakref.ref(held)
        del held
        assert gone() is None
    finally:
        gc.enable()


def test_an_accessor_serves_many_calls() -> None:
    df = pl.DataFrame({"text": ["a b"]}).tadoc.compress("text")
    accessor = df.tadoc
    assert accessor.word_count().rows() == accessor.word_count("text").rows() == [("a", 1), ("b", 1)]


def test_eight_threads_at_once(engine: str) -> None:
    texts = [[f"thread {i}th row: {j % 5}, the end, the end" for j in range(400)] for i in range(4)]
    shared = tadoc.compress(pl.Series(["the shared text, shared by all"] * 100))
    expected_shared = shared.tadoc.word_count().rows()
    barrier = threading.Barrier(8)

    def work(i: int) -> None:
        barrier.wait()
        for round_ in range(5):
            rows = texts[(i + round_) % 4]
            column = tadoc.compress(pl.Series(rows), rows_per_grammar=150)
            assert column.tadoc.decompress().to_list() == rows
            assert column.tadoc.word_count(top=1, engine=engine).rows() == [("end", 800)]
            assert shared.tadoc.word_count(engine=engine).rows() == expected_shared
            if round_ == 2 and i == 0:
                grammars.clear()

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work, i) for i in range(8)]:
            done.result(timeout=120)


def test_polars_threads_at_once() -> None:
    df = pl.DataFrame({f"c{i}": [f"column c{i} row r{j}, the end" for j in range(3000)] for i in range(6)})
    compressed = df.with_columns(pl.all().tadoc.compress(rows_per_grammar=1000))
    assert compressed.with_columns(pl.all().tadoc.decompress()).equals(df)
    counts = pl.collect_all([compressed.lazy().tadoc.word_count(f"c{i}", top=1) for i in range(6)])
    assert [frame["count"].item() for frame in counts] == [3000] * 6


class _Waits:
    """A value that, when it goes, waits for another thread that is at the same store: as device memory does."""

    def __init__(self, store: ByteLRU[_Waits]) -> None:
        self.store = store

    def __del__(self) -> None:
        other = threading.Thread(target=self.store.get, args=("a",), daemon=True)
        other.start()
        other.join(10)
        assert not other.is_alive()


@pytest.mark.parametrize("how", ["too many", "discarded", "replaced", "cleared"])
@pytest.mark.filterwarnings("error")
def test_what_goes_may_wait_for_other_threads(how: str) -> None:
    store: ByteLRU[_Waits] = ByteLRU(lambda: 1, lambda _: 1)
    value = _Waits(store)
    gone = weakref.ref(value)
    store.put("b", value)
    del value
    match how:
        case "too many":
            store.put("c", _Waits(store))
        case "discarded":
            store.discard("b")
        case "replaced":
            store.put("b", _Waits(store))
        case _:
            store.clear()
    assert gone() is None
    store.clear()
    assert (len(store), store.nbytes) == (0, 0)


def test_a_finalizer_does_not_wait() -> None:
    """It may run in a thread that holds what another one waits for, which is at the store."""
    store: ByteLRU[str] = ByteLRU(lambda: 10, len)
    store.put("a", "text")
    with store._lock:
        store.discard("a")
        assert len(store) == 1
    assert store.get("b") is None
    assert (len(store), store.nbytes) == (0, 0)


def test_what_is_stored_after_a_discard_stays() -> None:
    store: ByteLRU[str] = ByteLRU(lambda: 10, len)
    store.put("a", "old")
    with store._lock:
        store.discard("a")
    assert store.get("a") is None
    with store._lock:
        store.discard("a")
    store.put("a", "new")
    assert store.get("a") == "new"
