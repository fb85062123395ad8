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


@pytest.mark.parametrize("where", ["working", "between", "waiting", "function"])
def test_the_interpreter_ends_while_polars_is_at_a_source(where: str) -> None:
    """Polars' thread would go on with an interpreter that is gone, and end the process with a signal."""
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", ENDS, where], capture_output=True, text=True, check=True, timeout=100
        )
        assert (done.stdout, done.stderr) == ("True\n", "")
