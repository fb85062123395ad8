"""Threads: chunks cover everything once, errors come through, a forked child has threads of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.config import thread_count
from polars_tadoc.runtime import parallel
from polars_tadoc.runtime.parallel import even_chunks, map_apart, map_beside, map_parallel, weighted_chunks
from polars_tadoc.runtime.process.threads import Task


@given(size=st.integers(0, 300), smallest=st.integers(1, 50), threads=st.integers(1, 9))
def test_even_chunks(size: int, smallest: int, threads: int) -> None:
    with tadoc.Config(threads=threads):
        chunks = even_chunks(size, smallest)
    assert [i for first, stop in chunks for i in range(first, stop)] == list(range(size))
    assert 1 <= len(chunks) <= threads
    assert len(chunks) == 1 or min(stop - first for first, stop in chunks) >= smallest


@given(weights=st.lists(st.sampled_from([0, 0, 1, 5, 100]), max_size=40), threads=st.integers(1, 9))
def test_weighted_chunks(weights: list[int], threads: int) -> None:
    before = np.cumsum([7, *weights]).astype(np.int64)  # a slice's running sum does not start at 0
    with tadoc.Config(threads=threads):
        chunks = weighted_chunks(before, 1)
    assert [i for first, stop in chunks for i in range(first, stop)] == list(range(len(weights)))
    assert all(sum(weights[a:b]) <= sum(weights) / len(chunks) + 100 + threads for a, b in chunks)


def test_results_are_in_order_and_errors_come_through() -> None:
    with tadoc.Config(threads=4):
        assert map_parallel(lambda i: i * i, range(100)) == [i * i for i in range(100)]
        with pytest.raises(ZeroDivisionError):
            map_parallel(lambda i: 1 // i, [1, 0, 2])


@pytest.mark.parametrize("items", range(9))
def test_items_apart_are_on_one_thread_each(items: int) -> None:
    with tadoc.Config(threads=3):
        results = map_apart(lambda i: (i, thread_count()), range(items))
        assert thread_count() == 3
    assert [i for i, _ in results] == list(range(items))
    assert [threads for _, threads in results] == [1] * (items // 3 * 3) + [3] * (items % 3)


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [([3, 1], [3, 1]), ([1, 1, 1, 1, 1], [1] * 5), ([97, 1, 0], [4, 1, 1]), ([5], [4]), ([0, 0], [1, 1]), ([], [])],
)
def test_items_beside_share_the_threads_by_their_sizes(sizes: list[int], expected: list[int]) -> None:
    with tadoc.Config(threads=4):
        results = map_beside(lambda i: (i, thread_count()), range(len(sizes)), sizes)
        assert thread_count() == 4
    assert results == list(enumerate(expected))
    with tadoc.Config(threads=1):
        assert map_beside(lambda i: i, range(len(sizes)), sizes) == list(range(len(sizes)))


def test_threads_of_shares_run_at_once() -> None:
    """Threads of a share come from the pool of all: as many as there are in all run at once."""
    together = threading.Barrier(4, timeout=60)
    with tadoc.Config(threads=4):
        map_beside(lambda _: map_parallel(lambda _: together.wait(), range(2)), range(2), [1, 1])


@pytest.mark.parametrize("items", [2, 3, 5])
def test_fewer_items_than_threads_run_side_by_side(items: int) -> None:
    together = threading.Barrier(items % 4 or 4, timeout=60)  # broken, unless all wait at once

    def work(item: int) -> list[int]:
        if item >= items - items % 4:
            together.wait()
        return map_parallel(lambda chunk: item * chunk, range(20))

    with tadoc.Config(threads=4):
        assert map_apart(work, range(items)) == [[item * chunk for chunk in range(20)] for item in range(items)]


FORK = """
import os, sys
from polars_tadoc.config import Config
from polars_tadoc.runtime.parallel import map_parallel
Config.set(threads=2)
assert map_parallel(abs, [-1, -2]) == [1, 2]
child = os.fork()
if child == 0:
    os._exit(0 if map_parallel(abs, [-3, -4]) == [3, 4] else 1)
sys.exit(os.waitpid(child, 0)[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_threads_of_its_own() -> None:
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=60)


def test_nothing_runs_on_after_an_error() -> None:
    """Kernels read at addresses whose owners go when the caller's frame does."""
    finished, begun = [], threading.Event()

    def work(item: int) -> None:
        if item == 0:
            begun.wait()  # what has not begun is not begun any more
            raise MemoryError
        begun.set()
        time.sleep(0.2)
        finished.append(item)

    with tadoc.Config(threads=2):
        with pytest.raises(MemoryError):
            map_parallel(work, [0, 1])
        assert finished == [1]


def test_items_that_wait_for_items_of_their_own_are_never_stuck() -> None:
    """All threads of a pool may wait at once: none is left for what they wait for."""
    all_wait = threading.Barrier(2)

    def work(item: int) -> list[int]:
        all_wait.wait(timeout=60)
        return map_parallel(lambda inner: 10 * item + inner, range(5))

    done: list[list[list[int]]] = []
    with tadoc.Config(threads=2):
        thread = threading.Thread(target=lambda: done.append(map_parallel(work, [1, 2])), daemon=True)
        thread.start()
        thread.join(60)
    assert done == [[[10, 11, 12, 13, 14], [20, 21, 22, 23, 24]]]


def test_threads_of_the_package_do_not_wait_for_items_of_other_calls() -> None:
    """A copy beside a device's work does not wait until all pieces of a payload are compressed."""
    are_busy, free = threading.Barrier(3, timeout=60), threading.Event()

    def hold(item: int) -> bool:
        are_busy.wait()
        return free.wait(60)

    two = np.array(2)
    is_held = weakref.ref(two)
    copying = Task(lambda two=two: map_parallel(lambda item: int(two) * item, range(100)))  # type: ignore[misc]
    del two
    with tadoc.Config(threads=2):
        holding = threading.Thread(target=lambda: map_parallel(hold, range(2)), daemon=True)
        holding.start()
        are_busy.wait()  # both threads of the pool are
        copying.start()
        has_ended = copying.wait(60)
        memory = is_held()
        free.set()
        holding.join(60)
    assert has_ended
    assert memory is None
    assert copying.result() == [2 * item for item in range(100)]


def test_an_error_of_an_inner_item_is_raised_by_the_outer_call() -> None:
    def fail(inner: int) -> int:
        raise ValueError(f"item {inner}")

    with tadoc.Config(threads=2), pytest.raises(ValueError, match="item 0"):
        map_parallel(lambda _: map_parallel(fail, range(4)), range(4))


CHUNKS = """
import sys
import polars as pl
import polars_tadoc as tadoc

tadoc.Config.set(threads=4)
words = [f"equal_beginnings_of_words_{number}" for number in range(40_000)]
rows = pl.DataFrame({"text": [" ".join(words[first::400] * 10) for first in range(400)]})
chunks = pl.concat([rows, rows], rechunk=False)
how = {"rows_per_grammar": 400}
if sys.argv[1] == "like":
    how = {"rows_per_grammar": 100, "like": tadoc.compress(rows["text"])}
for _ in range(3):
    column = chunks.with_columns(pl.col("text").tadoc.compress(**how))
assert column.tadoc.decompress("text").equals(chunks)
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["anew", "like"])
def test_what_runs_in_threads_does_not_wait_for_polars(how: str) -> None:
    """Polars compresses chunks in its threads; if ours waited for a free one of those, none would ever be free."""
    environment = {**os.environ, "POLARS_MAX_THREADS": "2"}
    subprocess.run([sys.executable, "-c", CHUNKS, how], env=environment, check=True, timeout=120)


def test_what_cannot_be_submitted_is_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pools take nothing more when the interpreter ends."""
    submit, calls = parallel._Pool.submit, []

    def refuses(pool: Any, call: Any) -> None:
        calls.append(call)
        if len(calls) > 2:
            raise RuntimeError("the interpreter ends")
        submit(pool, call)

    monkeypatch.setattr(parallel._Pool, "submit", refuses)
    with tadoc.Config(threads=4):
        assert map_parallel(lambda item: 2 * item, range(5)) == [0, 2, 4, 6, 8]
    assert len(calls) == 3


def test_an_interrupt_waits_for_what_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    submit, finished, submitted = parallel._Pool.submit, [], []

    def interrupted(pool: Any, call: Any) -> None:
        if submitted:
            raise KeyboardInterrupt
        submitted.append(call)
        submit(pool, call)

    monkeypatch.setattr(parallel._Pool, "submit", interrupted)

    def slow(item: int) -> None:
        time.sleep(0.2)
        finished.append(item)

    with tadoc.Config(threads=2), pytest.raises(KeyboardInterrupt):
        map_parallel(slow, range(3))
    assert finished in ([0], [])  # what has not begun is not begun any more
    time.sleep(0.3)
    assert len(finished) <= 1


def test_an_error_of_a_signals_handler_is_not_an_interrupt_elsewhere() -> None:
    """A time limit (``SIGALRM`` whose handler raises) ends its own call with its own error, and no other call."""
    program = """
import signal, threading, time
from polars_tadoc.runtime.interrupts import check
from polars_tadoc.runtime.parallel import map_parallel
import polars_tadoc as tadoc

def ring(*_):
    raise TimeoutError("too long")

def work(_):
    for _ in range(10):
        time.sleep(0.01)
        check()

others = []
def other():
    try:
        map_parallel(work, range(8))
        others.append("done")
    except BaseException as error:
        others.append(repr(error))

tadoc.Config.set(threads=2)
signal.signal(signal.SIGALRM, ring)
thread = threading.Thread(target=other)
thread.start()
signal.setitimer(signal.ITIMER_REAL, 0.15)
try:
    map_parallel(work, range(8))
except TimeoutError as error:
    print(error)
thread.join()
print(others)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.splitlines() == ["too long", "['done']"]
