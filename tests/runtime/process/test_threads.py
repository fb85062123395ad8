"""An interrupt at any place of a call leaves nothing waiting: not the call, not its threads, not the next call."""

from __future__ import annotations

import subprocess
import sys
from _thread import start_new_thread
from collections.abc import Callable

import pytest

from polars_tadoc.config import Config
from polars_tadoc.runtime import parallel
from polars_tadoc.runtime.process import threads

PROGRAM = """
import faulthandler, sys
import polars as pl
from polars_tadoc.config import Config
from polars_tadoc.runtime import parallel
from polars_tadoc.runtime.process.interpreter_exit import at_work
from polars_tadoc.runtime.io_source import batches
from polars_tadoc.runtime.parallel import map_parallel
from polars_tadoc.runtime.process.prefetch import read_ahead
from polars_tadoc.runtime.process.writer_thread import apart

frame = pl.LazyFrame({"a": range(3)})
calls = {
    "map_parallel": (lambda: map_parallel(abs, range(-3, 3)), [3, 2, 1, 0, 1, 2]),
    "nested": (lambda: map_parallel(lambda i: map_parallel(abs, [i, i]), range(-2, 0)), [[2, 2], [1, 1]]),
    "apart": (apart(lambda: "done"), "done"),
    "read_ahead": (lambda: list(read_ahead(range(3))), [0, 1, 2]),
    "at_work": (lambda: at_work()(lambda: "done")(), "done"),
    "batches": (lambda: [row for part in batches(frame) for row in part["a"]], [0, 1, 2]),
}

def interrupted(work, place):
    # at the events at which Python itself looks for interrupts: calls begun, and calls of C returned from
    seen = 0
    def look(_, event, __):
        nonlocal seen
        seen += event in ("call", "c_return")
        if seen == place and event in ("call", "c_return"):
            raise KeyboardInterrupt
    sys.setprofile(look)
    try:
        assert work() == expected  # Python drops what is raised in a callback of a weak reference
    except KeyboardInterrupt as error:
        kept.append(error)  # as Python keeps one that nothing caught
    finally:
        sys.setprofile(None)
    return seen >= place

faulthandler.dump_traceback_later(25, exit=True)
Config.set(threads=3)
work, expected = calls[sys.argv[1]]
assert work() == expected
place, kept = 1, []
while interrupted(work, place):
    place += 1
    assert work() == expected
    parallel._pool.cache_clear()  # so that threads are started
print(len(kept))
"""


def start_and_end(function: Callable[..., object], arguments: tuple[object, ...]) -> None:
    """Start a thread that ends before its first line, as the system does where there is no memory for it."""
    held = [function, arguments]
    start_new_thread(held.clear, ())


def test_a_thread_without_memory_is_not_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    with Config(threads=2):
        parallel.map_parallel(abs, range(3))  # compiles what notices interrupts
    monkeypatch.setattr(threads, "start_new_thread", start_and_end)
    task = threads.Task(lambda: 1)
    task.start()
    with pytest.raises(MemoryError, match="no memory for a thread"):
        task.result()
    with pytest.raises(MemoryError, match="no memory for a thread"):
        threads.undivided(lambda: 1)
    monkeypatch.setattr(parallel, "start_new_thread", start_and_end)
    parallel._pool.cache_clear()
    try:
        with Config(threads=2):
            assert parallel.map_parallel(abs, range(-3, 0)) == [3, 2, 1]
            monkeypatch.undo()
            assert parallel.map_parallel(abs, range(-3, 0)) == [3, 2, 1]
    finally:
        parallel._pool.cache_clear()


@pytest.mark.parametrize("call", ["map_parallel", "nested", "apart", "read_ahead", "at_work", "batches"])
def test_an_interrupt_at_any_place_leaves_nothing_waiting(call: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, call], capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 10
