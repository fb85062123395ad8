"""One item ahead, in order, with errors in their place and no thread left behind."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator

import pytest

from polars_tadoc.runtime.process.prefetch import read_ahead


class Event:
    """An item that can be watched."""


def test_items_come_in_order() -> None:
    assert list(read_ahead(range(100))) == list(range(100))
    assert list(read_ahead([])) == []
    assert list(read_ahead([None, 0, ()])) == [None, 0, ()]


def test_the_next_is_made_while_one_is_worked_on() -> None:
    made = [threading.Event() for _ in range(4)]

    def source() -> Iterator[int]:
        for number, event in enumerate(made):
            event.set()
            yield number

    for number in read_ahead(source()):
        if number + 1 < len(made):
            assert made[number + 1].wait(10)
        if number + 2 < len(made):
            assert not made[number + 2].is_set()  # no more than one ahead


def test_the_next_waits_for_one_that_leaves_no_room() -> None:
    made: list[int] = []
    alive: weakref.WeakSet[Event] = weakref.WeakSet()
    together: list[int] = []

    def source() -> Iterator[Event]:
        for number in range(6):
            together.append(len(alive))
            made.append(number)
            event = Event()
            alive.add(event)
            yield event
            del event

    large = {1, 2, 4}
    reader = read_ahead(source(), lambda _: made[-1] not in large)
    for number in range(6):
        event = next(reader)
        if number not in large and number < 5:
            eventually = time.monotonic() + 10
            while len(made) < number + 2 and time.monotonic() < eventually:
                time.sleep(0.001)
            assert len(made) == number + 2
        else:
            assert len(made) == number + 1
        del event
    assert next(reader, None) is None
    assert [together[number + 1] for number in sorted(large)] == [0, 0, 0]


def test_an_error_comes_where_its_item_would() -> None:
    def source() -> Iterator[int]:
        yield 1
        yield 2
        raise OSError("the disk is gone")

    found: list[int] = []
    with pytest.raises(OSError, match="the disk is gone"):
        found.extend(read_ahead(source()))
    assert found == [1, 2]


def test_stopping_early_waits_for_what_is_being_made() -> None:
    begun, made = threading.Event(), [0]

    def source() -> Iterator[int]:
        yield 0
        for number in range(1, 10**9):
            begun.set()
            time.sleep(0.1)
            made.append(number)
            yield number

    reader = read_ahead(source())
    assert next(reader) == 0
    assert begun.wait(10)
    reader.close()  # type: ignore[attr-defined]  # a generator
    assert made == [0, 1]
    time.sleep(0.15)
    assert made == [0, 1]
