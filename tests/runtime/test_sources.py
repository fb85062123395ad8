"""Sources of plans while the interpreter ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from polars_tadoc.runtime.machine_code.cache import COMPILING

pytestmark = pytest.mark.slow

ENDS = """
import sys, threading, time
import polars as pl
from polars_tadoc.runtime import io_source as sources

reached = threading.Event()
frame = pl.DataFrame({"a": [1]})

def busy(*_):
    yield frame
    while True:
        reached.set()
        if sys.argv[1] == "between":
            yield frame
        elif sys.argv[1] == "waiting":
            for got in sources.batches(sources.register(endless, {"a": pl.Int64}, "inner")):
                yield got
        else:
            for _ in range(100):
                sum(range(1000))
            sources.go_on()

def calls(*_):
    reached.set()
    for _ in range(300):
        sum(range(100_000))
    return [frame]

def endless(*_):
    while True:
        time.sleep(0.001)
        yield frame
        sources.go_on()

lf = sources.register(calls if sys.argv[1] == "called" else busy, {"a": pl.Int64}, "busy")

@sources.at_work()
def same(df):
    return df

if sys.argv[1] == "function":
    lf = lf.map_batches(same, streamable=True)

def run():
    for batch in lf.collect_batches(maintain_order=True, chunk_size=1):
        pass

threading.Thread(target=run, daemon=True).start()
reached.wait(60)
print(reached.is_set())
"""


AFTERWARDS = """
import atexit, os, sys, time

@atexit.register  # runs after what is registered later
def last():
    print(lf.collect(engine="streaming").height, lf.map_batches(sources.at_work()(len_of), schema={}).collect().height)
    print(time.monotonic() - start < 30)

import polars as pl
from polars_tadoc.runtime import io_source as sources

start = time.monotonic()
len_of = lambda df: df.drop("a")
frame = pl.DataFrame({"a": [1, 2, 3]})
lf = sources.register(lambda *_: [frame, frame], {"a": pl.Int64}, "frames")

def forks(df):
    if sys.argv[1] == "fork" and (child := os.fork()):
        os.waitpid(child, 0)
    return df

sources.at_work()(forks)(frame)

if sys.argv[1] == "old function":
    import threading
    reached = threading.Event()

    @sources.at_work()
    def long(df):
        reached.set()
        for _ in range(300):
            sum(range(10_000))
            sources.go_on()
        return df

    plans = [frame.lazy().map_batches(long) for _ in range(4)]
    threading.Thread(target=lambda: pl.concat(plans).collect(), daemon=True).start()
    reached.wait(60)
"""


LATE = """
import sys, threading, time
import polars as pl
import polars_tadoc as tadoc

column = pl.Series("text", [f"w{k % 900} w{k % 70} and" for k in range(60_000)])

def late():
    threading.main_thread().join()
    time.sleep(0.2)
    with tadoc.Config(threads=2):
        df = column.to_frame().tadoc.compress("text", rows_per_grammar=15_000)
        df.tadoc.write_packed(sys.argv[1])
        print(tadoc.scan_packed(sys.argv[1]).tadoc.word_count("text", memory_limit="1GB").collect().row(0))

threading.Thread(target=late).start()
"""


def test_threads_that_outlive_the_main_one_can_still_ask(tmp_path: Path) -> None:
    """Python has shut its pools down then."""
    command = [sys.executable, "-c", LATE, str(tmp_path / "late.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert (done.stdout, done.stderr.replace(COMPILING, "")) == ("('and', 60000)\n", "")


@pytest.mark.parametrize("how", ["alone", "fork", "old function"])
def test_functions_at_exit_can_run_plans(how: str) -> None:
    """They may run after ours, and need Polars' threads; a child that was forked at work waits for nobody."""
    done = subprocess.run(
        [sys.executable, "-c", AFTERWARDS, how], capture_output=True, text=True, check=True, timeout=100
    )
    assert done.stdout == "6 6\nTrue\n" * (2 if how == "fork" else 1)
    assert done.stderr.replace(COMPILING, "") == ""


@pytest.mark.parametrize("where", ["working", "between", "waiting", "function", "called"])
def test_the_interpreter_ends_while_polars_is_at_a_source(where: str) -> None:
    """Polars' thread would go on with an interpreter that is gone, and end the process with a signal."""
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", ENDS, where], capture_output=True, text=True, check=True, timeout=100
        )
        assert (done.stdout, done.stderr.replace(COMPILING, "")) == ("True\n", "")
