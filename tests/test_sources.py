"""Sources of plans while the interpreter ends."""

from __future__ import annotations

import subprocess
import sys

import pytest

ENDS = """
import sys, threading, time
import polars as pl
from polars_tadoc import sources

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

def endless(*_):
    while True:
        time.sleep(0.001)
        yield frame
        sources.go_on()

lf = sources.register(busy, {"a": pl.Int64}, "busy")

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
from polars_tadoc import sources

start = time.monotonic()
len_of = lambda df: df.drop("a")
frame = pl.DataFrame({"a": [1, 2, 3]})
lf = sources.register(lambda *_: [frame, frame], {"a": pl.Int64}, "frames")

def forks(df):
    if sys.argv[1] == "fork" and (child := os.fork()):
        os.waitpid(child, 0)
    return df

sources.at_work()(forks)(frame)
"""


@pytest.mark.parametrize("how", ["alone", "fork"])
def test_functions_at_exit_can_run_plans(how: str) -> None:
    """They may run after ours; and a child that was forked at work waits for no thread of its parent."""
    done = subprocess.run(
        [sys.executable, "-c", AFTERWARDS, how], capture_output=True, text=True, check=True, timeout=100
    )
    assert done.stdout == "6 6\nTrue\n" * (2 if how == "fork" else 1)
    assert done.stderr == ""


@pytest.mark.parametrize("where", ["working", "between", "waiting", "function"])
def test_the_interpreter_ends_while_polars_is_at_a_source(where: str) -> None:
    """Polars' thread would go on with an interpreter that is gone, and end the process with a signal."""
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", ENDS, where], capture_output=True, text=True, check=True, timeout=100
        )
        assert (done.stdout, done.stderr) == ("True\n", "")
