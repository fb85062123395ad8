"""Steps whose tasks threads share in machine code."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import polars_tadoc as tadoc
from polars_tadoc.runtime.addresses import atomic_exchange_if
from polars_tadoc.runtime.array_types import Int64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import kernel
from polars_tadoc.runtime.process import shared_tasks
from polars_tadoc.runtime.process.shared_tasks import all_done, done, share_tasks, take


@polled
@njit
def _mix(progress: Int64, numbers: Int64, steps: int) -> None:
    """Each step adds to each number its neighbour's of the step before: an early start would show."""
    began, size = interrupts(), numbers.shape[1]
    for step in range(steps):
        k = take(progress, step)
        while k < size:
            numbers[step + 1, k] = numbers[step, k] + numbers[step, (k + 1) % size]
            k = done(progress, step)
        if not all_done(progress, step, size, began):
            return


@pytest.mark.parametrize("threads", [1, 2, 16])
@pytest.mark.parametrize("size", [1, 3, 40])
def test_a_step_begins_when_the_one_before_has_ended(threads: int, size: int) -> None:
    steps = 200
    expected = np.zeros((steps + 1, size), np.int64)
    expected[0] = np.arange(size)
    got = expected.copy()
    with np.errstate(over="ignore"):
        for step in range(steps):
            expected[step + 1] = expected[step] + np.roll(expected[step], -1)
    with tadoc.Config(threads=threads):
        share_tasks(lambda progress: _mix(progress, got, steps), steps, size)
    assert np.array_equal(got, expected)


def test_threads_that_come_late_or_never(monkeypatch: pytest.MonkeyPatch) -> None:
    """One thread does all tasks; others find nothing left."""
    calls: list[int] = []

    def in_turn(work: Callable[[int], None], items: range) -> None:
        for item in items:
            work(item)
            calls.append(item)

    monkeypatch.setattr(shared_tasks, "map_parallel", in_turn)
    numbers = np.ones((5, 8), np.int64)
    with tadoc.Config(threads=4):
        share_tasks(lambda progress: _mix(progress, numbers, 4), 4, 8)
    assert calls == [0, 1, 2, 3]
    assert (numbers[4] == 16).all()


def test_a_failing_thread_leaves_none_waiting() -> None:
    numbers, called = np.ones((3, 4), np.int64), iter(range(100))

    def work(progress: Int64) -> None:
        if next(called) == 0:
            take_one(progress)
            raise ZeroDivisionError
        _mix(progress, numbers, 2)

    @kernel
    def take_one(progress: Int64) -> None:
        take(progress, 0)

    with tadoc.Config(threads=4), pytest.raises(ZeroDivisionError):
        share_tasks(work, 2, 4)


@kernel
def _exchange(values: Int64, expected: int, value: int) -> int:
    return atomic_exchange_if(values, 0, expected, value)


def test_exchange_only_what_is_expected() -> None:
    values = np.array([5])
    assert _exchange(values, 4, 9) == 5
    assert values[0] == 5
    assert _exchange(values, 5, 9) == 5
    assert values[0] == 9
