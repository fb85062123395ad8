"""Pytest plugin: the processor time of each test, with its threads and the processes that it waited for.

`PYTHONPATH=.ci python -m pytest -p processor_time` prints the seconds by folder, by file, and the slowest tests; with
TIMES=FILE, it also appends a line of seconds, clock and test for each phase to the file. Unlike the clock, processor
time hardly depends on what else the machine runs, so two runs can be compared.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

SHOWN = 40
_seconds: Counter[str] = Counter()
_clock: Counter[str] = Counter()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    """Measure the fixtures."""
    yield from _timed(item, "setup")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Measure the test."""
    yield from _timed(item, "call")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Measure the end of the fixtures."""
    yield from _timed(item, "teardown")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the sums."""
    show = terminalreporter.write_line
    show(f"processor time: {_seconds.total():.1f} s, clock: {_clock.total():.1f} s, setup and teardown included")
    for title, key in (("folder", _folder), ("file", _file), ("function", _function), ("test", str)):
        sums: Counter[str] = Counter()
        for test, seconds in _seconds.items():
            sums[key(test)] += seconds
        show(f"by {title}, the {SHOWN} largest:")
        for name, seconds in sums.most_common(SHOWN):
            show(f"{seconds:9.2f} s  {name}")


def _timed(item: pytest.Item, phase: str) -> Iterator[None]:
    used, started = _used(), time.perf_counter()
    try:
        yield
    finally:
        used, clock = _used() - used, time.perf_counter() - started
        _seconds[item.nodeid] += used
        _clock[item.nodeid] += clock
        if path := os.environ.get("TIMES"):
            with Path(path).open("a") as file:
                file.write(f"{used:.3f} {clock:.3f} {phase} {item.nodeid}\n")


def _used() -> float:
    return sum(os.times()[:4])


def _function(test: str) -> str:
    return test.partition("[")[0]


def _file(test: str) -> str:
    return test.partition("::")[0]


def _folder(test: str) -> str:
    return _file(test).rpartition("/")[0]
