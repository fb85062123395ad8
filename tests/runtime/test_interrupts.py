"""Ctrl-C: seen by kernels while they run, told once, and nothing computes on."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

import polars as pl
import pytest

from benchmarks.corpora import SAMPLES
from polars_tadoc.runtime import io_source
from polars_tadoc.runtime.interrupts import cancel, count

pytestmark = pytest.mark.slow

START = """
import os, signal, threading, time
import numba as nb
import numpy as np
import polars as pl
import polars_tadoc as tadoc
from polars_tadoc.runtime.interrupts import count, interrupts, interruptible, polled
from polars_tadoc.runtime.parallel import map_parallel

@polled
@nb.njit(nogil=True)
def spin(numbers, first):
    before, x = interrupts(), nb.uint64(1)
    for i in range(numbers):
        if i & 0xFFFF == 0 and interrupts() != before:
            break
        x = x * nb.uint64(6364136223846793005) + nb.uint64(i)
    return x

spin(1, 0)

def interrupt(after=0.2):
    threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()
    return time.monotonic() + after

def times_told(work, after=0.2):
    told, sent = 0, time.monotonic() + (after or 60)
    try:
        try:
            if after is not None:  # otherwise ``work`` sends it
                interrupt(after)  # a short wait may be over before the thread that waits has started
            work()
        except KeyboardInterrupt:
            told += 1
            assert time.monotonic() - sent < 10  # other tests run beside this one
        for _ in range(100):
            time.sleep(0.001)
    except KeyboardInterrupt:
        told += 1
    until, used = time.monotonic() + 10, 1.0
    while used > 0.1 and time.monotonic() < until:  # what computes on never rests
        before = time.process_time()
        time.sleep(0.2)
        used = time.process_time() - before
    assert used <= 0.1, used
    return told

LONG = 10**12
"""


def run(code: str) -> None:
    """Run a script that begins with ``START``."""
    subprocess.run([sys.executable, "-c", START + dedent(code)], check=True, timeout=300)


def test_kernels_end_wherever_they_run() -> None:
    run("""
    works = [
        lambda: spin(LONG, 0),
        lambda: map_parallel(lambda k: spin(LONG, k), range(5)),
        lambda: pl.select(pl.lit(LONG).map_batches(lambda s: spin(s[0], 0), return_dtype=pl.UInt64)),
    ]

    def swallowed():
        with interruptible():
            try:
                spin(LONG, 0)
            except KeyboardInterrupt:
                pass

    def other():
        with interruptible():
            try:
                spin(LONG, 0)
            except KeyboardInterrupt:
                raise ValueError("cut short") from None

    with tadoc.Config(threads=2):
        for work in [*works, swallowed, other]:
            assert times_told(work) == 1
            signal.signal(signal.SIGINT, signal.default_int_handler)  # as notebooks do before each cell
            time.sleep(0.1)
        assert len(map_parallel(lambda k: spin(10, k), range(5))) == 5

    if hasattr(os, "fork"):
        before = count()
        child = os.fork()
        if child == 0:
            os._exit(times_told(works[0]))
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
        assert count() == before
    """)


def test_a_handler_of_the_program_decides() -> None:
    run("""
    seen = []
    spin(1, 0)
    signal.signal(signal.SIGINT, lambda *_: seen.append(1))
    sent, whole = interrupt(), spin(3 * 10**8, 0)
    while not seen:
        time.sleep(0.01)
    assert seen == [1] and count() == 0
    assert whole == spin(3 * 10**8, 0)

    def stop(*_):
        raise SystemExit(7)

    signal.signal(signal.SIGINT, stop)
    sent = interrupt()
    try:
        map_parallel(lambda k: spin(LONG, k), range(5))  # the main thread waits: the handler runs, and cancels
    except SystemExit as error:
        assert error.code == 7 and time.monotonic() - sent < 10
    else:
        raise AssertionError
    """)


def test_calls_end_once_leave_nothing_and_work_again() -> None:
    """At moments drawn at random; then the same call gives what it gave before, so that no cache kept half a table."""
    run(f"""
    import random
    from pathlib import Path

    files = sorted(Path({str(SAMPLES)!r}).glob("*.parquet"))
    texts = [pl.read_parquet(file)["text"] for file in files if "text" in pl.read_parquet_schema(file)]
    text = pl.concat(texts).alias("text").rechunk()
    df = tadoc.compress(text).to_frame("text")
    expected, draw = {{"words": df.tadoc.word_count("text")["word"]}}, random.Random(1)
    calls = {{
        "compress": lambda: tadoc.decompress(tadoc.compress(text)).to_frame(),
        "lazy": lambda: text.to_frame().lazy().tadoc.compress("text").tadoc.word_count("text").collect(),
        "decompress": lambda: tadoc.decompress(df["text"]).to_frame(),
        "sequence_count": lambda: df.tadoc.sequence_count("text", n=3),
        "ranked": lambda: df.tadoc.ranked_inverted_index("text", n=2),
        "cooccurrence": lambda: df.tadoc.cooccurrence("text", window=3),
        "bm25_weights": lambda: df.tadoc.bm25_weights("text", top=3),
        "search": lambda: df.tadoc.build_index("text").search(["the of", "error"]),
        "to_csr": lambda: tadoc.to_csr(df["text"])[1].to_frame(),
        "tail": lambda: tadoc.tail(df["text"], 5).to_frame(),
        "contains_any": lambda: tadoc.contains_any(df["text"], ["of the", "error"]).to_frame(),
        "append": lambda: df.tadoc.append_to(df.tadoc.build_index("text"), "text").search(["the of"]),
        "dictionary": lambda: tadoc.Dictionary.from_words(expected["words"]).ids(expected["words"]).to_frame(),
    }}
    with tadoc.Config(threads=2):
        for name, call in calls.items():
            expected[name] = call()
            started = time.monotonic()
            call()
            took = time.monotonic() - started

            def loop():
                while True:  # one interrupt ends the loop of calls
                    call()

            told = times_told(loop, draw.uniform(0, took))
            # both Polars and Python tell of an interrupt of ``collect``, at times apart
            assert told == 1 or (told == 2 and name == "lazy"), (name, told)
            assert call().equals(expected[name]), name
    """)


def test_regions_of_threads_in_machine_code_end_within_a_second() -> None:
    """Counts of words, trigrams and pairs, at moments drawn over the whole call: told once, and no thread goes on.

    Processor time is measured: two threads that went on for half a second would take all of it.
    """
    run("""
    import random

    numbers, draw = np.random.default_rng(1).zipf(1.2, 1_000_000) % 50_000, random.Random(2)
    words = [f"w{number}" for number in numbers]
    text = pl.Series("text", [" ".join(words[first : first + 500]) for first in range(0, len(words), 500)])
    few, many = (pl.concat([text] * times).to_frame() for times in (8, 80))  # they share the text's memory
    calls = {
        "word_count": lambda: many.tadoc.word_count("text"),
        "trigrams": lambda: few.tadoc.sequence_count("text", n=3),
        "pairs": lambda: few.tadoc.cooccurrence("text", window=2),
        "collocations": lambda: few.tadoc.collocations("text", window=5, min_count=1),
        "compressed trigrams": lambda: packed.tadoc.sequence_count("text", n=3),
    }
    tadoc.Config.set(threads=2)
    packed = few.tadoc.compress("text")
    for name, call in calls.items():
        call()
        began = time.monotonic()
        call()
        took = time.monotonic() - began
        for _ in range(4):
            at = {}

            def sent():
                at["worked"] = time.process_time()
                os.kill(os.getpid(), signal.SIGINT)

            def work():
                threading.Timer(draw.uniform(0, 0.9 * took), sent).start()
                try:
                    while True:  # it may be faster this time
                        call()
                finally:
                    at["told"] = time.process_time()

            assert times_told(work, None) == 1, name
            assert at["told"] - at["worked"] < 1, (name, at)
    """)


def test_an_interrupt_while_polars_reads_a_schema_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polars panics when an interrupt comes in the code in Python that it calls for a schema."""

    def panics(*_: object, **__: object) -> None:
        cancel(count())
        raise pl.exceptions.PanicException("called `Result::unwrap()` on an `Err` value")

    monkeypatch.setattr(io_source, "register_io_source", panics)
    with pytest.raises(KeyboardInterrupt):
        io_source.register(lambda *_: [], {"a": pl.Int64}, "source")
