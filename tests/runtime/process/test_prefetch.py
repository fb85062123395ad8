"""Items ahead, in order, with errors in their place and no thread left behind."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import polars_tadoc as tadoc
from polars_tadoc.config import thread_count
from polars_tadoc.runtime.process.prefetch import made_ahead, read_ahead


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


def results(items: Any, **options: Any) -> list[int]:
    return [
        one.result() for one in made_ahead(items, lambda item: item * item, lambda item: item % 3 or None, 9, **options)
    ]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("is_eager", [True, False])
def test_what_is_made_comes_in_order(threads: int, is_eager: bool) -> None:
    with tadoc.Config(threads=threads):
        for count in (0, 1, 2, 3, 40):
            assert results(range(count), is_eager=is_eager) == [item * item for item in range(count)]
            assert results(range(count), goes_on=lambda _: False) == [item * item for item in range(count)]


def test_items_are_made_side_by_side_with_shares_of_the_threads() -> None:
    meeting, shares = threading.Barrier(3), []

    def make(item: int) -> int:
        if item < 3:
            meeting.wait(10)
        shares.append(thread_count())
        return item

    with tadoc.Config(threads=3):
        assert [one.result() for one in made_ahead(range(3), make, lambda _: 1, 9)] == [0, 1, 2]
        assert shares == [1, 1, 1]
        shares.clear()
        assert [one.result() for one in made_ahead([7], make, lambda _: 1, 9)] == [7]
        assert shares == [3]


def test_errors_of_items_come_where_these_would() -> None:
    def make(item: int) -> float:
        return 1 / item

    def source() -> Iterator[int]:
        yield from (1, 0, 2)
        raise OSError("the disk is gone")

    with tadoc.Config(threads=4):
        reader = made_ahead(source(), make, lambda _: 1, 9)
        assert next(reader).result() == 1
        wrong = next(reader)
        with pytest.raises(ZeroDivisionError):
            wrong.result()
        assert next(reader).result() == 0.5
        with pytest.raises(OSError, match="the disk is gone"):
            next(reader)


def test_no_more_is_made_ahead_than_there_is_room_for() -> None:
    sizes, made = [4, 4, 4, 12, 1, 1, 1, 1], list[int]()
    seen: list[int] = []

    def make(number: int) -> int:
        made.append(number)
        return number

    with tadoc.Config(threads=8):
        for one in made_ahead(range(8), make, sizes.__getitem__, 9):
            time.sleep(0.1)
            seen.append(max([-1, *made]))
            one.result()
    assert seen == [1, 2, 2, 2, 7, 7, 7, 7]


def test_those_who_may_stop_make_few_at_first() -> None:
    made, seen = list[int](), []

    def make(number: int) -> int:
        made.append(number)
        return number

    with tadoc.Config(threads=4):
        for one in made_ahead(range(20), make, lambda _: 1, 99, is_eager=False):
            one.result()
            time.sleep(0.05)
            seen.append(len(made))
    assert seen[0] == 1
    assert seen[1] <= 3
    assert seen[2] <= 7


def test_stopping_early_waits_for_all_that_is_being_made() -> None:
    begun, ended = [], []

    def make(number: int) -> None:
        begun.append(number)
        time.sleep(0.1)
        ended.append(number)

    with tadoc.Config(threads=3):
        reader = made_ahead(range(9), make, lambda _: 1, 99)
        next(reader).result()
        reader.close()
        assert sorted(begun) == sorted(ended)
        count = len(begun)
        time.sleep(0.15)
    assert len(begun) == count <= 4


@pytest.mark.parametrize("reader", ["one ahead", "many ahead"])
def test_a_thread_that_makes_an_item_may_drop_the_generator(reader: str) -> None:
    """As when Polars lets go of a source, and a decoding thread is the next one to call Polars."""
    held: list[Any] = []
    may_drop, dropped = threading.Event(), threading.Event()

    def make(item: int) -> int:
        if item == 1:
            assert may_drop.wait(20)
            held.clear()
            dropped.set()
        return item

    with tadoc.Config(threads=3):
        if reader == "one ahead":
            held.append(read_ahead(map(make, range(3))))
        else:
            held.append(made_ahead(range(3), make, lambda _: 1, 1 << 20))
        next(held[0])
        may_drop.set()
        assert dropped.wait(20)
