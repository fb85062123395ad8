"""Eight threads make all calls on shared frames while caches are emptied under them: equal results, and none waits."""

from __future__ import annotations

import subprocess
import sys
import threading

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.runtime.cached_property import cached_property
from tests import ROOT
from tests.eight_threads import CALLS, THREADS

PATIENCE = 240
"""Seconds in which a round is done on any machine, what is compiled first included."""


@pytest.mark.slow
def test_all_calls_from_eight_threads() -> None:
    # in a process of its own: threads that wait for each other are shown, and do not hold up other tests
    command = [sys.executable, "-m", "tests.eight_threads", "--patience", str(PATIENCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=PATIENCE + 60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(f"{THREADS * len(CALLS)} calls in ") == 1


def test_one_object_does_not_wait_for_another() -> None:
    """Polars' threads may be among those that wait, and the one that computes may wait for them."""
    inside, free = threading.Event(), threading.Event()

    class Slow:
        def __init__(self, waits: bool) -> None:
            self.waits = waits

        @cached_property
        def value(self) -> int:
            """A number."""
            if self.waits:
                inside.set()
                assert free.wait(60)
            return id(self)

    slow = Slow(True)
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    assert inside.wait(60)
    quick = Slow(False)
    assert quick.value == id(quick)
    free.set()
    thread.join(60)
    assert slow.value == id(slow)
    slow.waits = False
    assert slow.value is slow.value
    assert isinstance(Slow.value, cached_property)
    assert Slow.value.__doc__ == "A number."


def test_config_of_many_threads() -> None:
    """Whatever other threads change meanwhile, results are equal."""
    start = threading.Barrier(THREADS)
    df = pl.DataFrame({"text": ["a b", "b"]}).tadoc.compress("text")
    found = []

    def change(number: int) -> None:
        start.wait()
        for _ in range(50):
            with tadoc.Config(host_cache_bytes=number << 10):
                found.append(df.tadoc.word_count("text").rows())

    threads = [threading.Thread(target=change, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert found == [[("b", 2), ("a", 1)]] * (50 * THREADS)
