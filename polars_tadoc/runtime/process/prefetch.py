"""Prefetches the next item while the current one is processed.

A partition of 236 MB of text takes 551 ms to read and decode; counting its words takes 24 ms on the CPU and 45 ms on a
GPU, counting its trigrams 371 and 72 ms. Copying its 29 MB of symbols to the device takes 4.5 ms, all of which
overlaps with kernels if the symbols are in pinned memory, but moving them there takes 5.9 ms. So prefetching from disk
pays off, and early copies of the next partition do not: trigrams went from 678 to 576 ms per partition on the GPU and
from 964 to 653 ms on the CPU (near copies of the corpora; 16 cores and an H100; ``python -m
benchmarks.gpu_streaming``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Final, Generic, TypeVar

from polars_tadoc.config import own_count, own_threads, thread_count
from polars_tadoc.runtime.interrupts import began, interruptible
from polars_tadoc.runtime.process.interpreter_exit import running
from polars_tadoc.runtime.process.threads import Task, is_own

Item = TypeVar("Item")
Made = TypeVar("Made")

_END: Final = object()


def read_ahead(items: Iterable[Item], has_room: Callable[[Item], bool] = lambda _: True) -> Iterator[Item]:
    """Yield items in order; make the next one in a thread of its own while the current one leaves room.

    At most two items exist at a time. Errors are raised instead of their item. If the caller stops early, the function
    waits for the item that is being made, and starts no other; a thread of the package does not wait, see
    :func:`made_ahead`.
    """
    source = iter(items)
    coming: Task[Any] | None = None
    try:
        item: Any = next(source, _END)
        while item is not _END:
            coming = None
            if has_room(item):
                ahead = Task(partial(next, source, _END))
                with suppress(RuntimeError):  # no thread can be started when the interpreter ends
                    running.start(ahead)
                    coming = ahead
            yield item
            del item  # before another one is made
            item = next(source, _END) if coming is None else coming.result()
    finally:
        if coming is not None:
            coming.stop(waits=not is_own())


class Making(Generic[Item, Made]):
    """An item and its result, made in a thread that has begun or in the caller's."""

    def __init__(self, item: Item, make: Callable[[Item], Made], size: int | None) -> None:
        self.item, self.size, self._make = item, size, make
        self._task: Task[Made] | None = None
        self.threads = 0
        """Maximum threads of the caller if it makes this; 0: all."""

    @property
    def is_running(self) -> bool:
        """Whether a thread is making it."""
        return self._task is not None and not self._task.has_ended

    @property
    def has_begun(self) -> bool:
        """Whether a thread was given it."""
        return self._task is not None

    def begin(self, threads: int) -> None:
        """Make it in a thread of its own, which works for this thread's call on a share of its threads."""

        def run(since: int = began()) -> Made:
            with own_threads(threads), interruptible(since):
                return self._make(self.item)

        task = Task(run)
        with suppress(RuntimeError):  # no thread can be started when the interpreter ends
            running.start(task)  # it calls Polars: the interpreter's end waits for it
            self._task = task

    def result(self) -> Made:
        """Return the result, or raise its error."""
        if self._task is not None:
            return self._task.result()
        with own_threads(self.threads or own_count()):
            return self._make(self.item)

    def stop(self) -> None:
        """Wait for its thread; not in a thread of the package, which it may wait for itself."""
        if self._task is not None:
            self._task.stop(waits=not is_own())


def made_ahead(
    items: Iterable[Item],
    make: Callable[[Item], Made],
    size: Callable[[Item], int | None],
    room: int,
    *,
    is_eager: bool = True,
    goes_on: Callable[[list[Item]], bool] = lambda _: True,
) -> Generator[Making[Item, Made], None, None]:
    """Yield items in order; the next ones are made side by side meanwhile, one for each thread of this call.

    Errors of ``items`` are raised after the items before them. If the caller stops early, the function waits for those
    that are being made. With one thread, nothing is made ahead.

    Polars drops a source without Python's lock; then the next thread that calls Polars drops the generator. It may be
    one that makes an item: such threads do not wait.

    Parameters
    ----------
    items
        The items; their iterator runs in the caller's thread.
    make
        Makes an item's result; must not call functions of Polars that wait for its threads: they may all wait for it.
    size
        Bytes of an item's result; None if it is not made ahead.
    room
        Maximum bytes of those that are made ahead and the one that the caller has.
    is_eager
        Whether all threads begin at once. Otherwise their number doubles with each item, for callers that may stop.
    goes_on
        Whether another item is needed beside those that wait.

    """
    source, threads = iter(items), thread_count()
    waiting: deque[Making[Item, Made]] = deque()
    width, has_ended = threads if is_eager else 1, False
    failed: Exception | None = None
    made: Making[Item, Made] | None = None
    try:
        while True:
            while not has_ended and (not waiting or _has_place(waiting, width, room)):
                if waiting and not goes_on([one.item for one in waiting]):
                    break
                try:
                    item: Any = next(source, _END)
                except Exception as error:
                    has_ended, failed = True, error
                    break
                if item is _END:
                    has_ended = True
                    break
                waiting.append(Making(item, make, size(item)))
            if not waiting:
                if failed is not None:
                    raise failed
                return
            _begin(waiting, threads, room)
            made = waiting.popleft()
            yield made
            made = None  # before the next one comes
            width = min(2 * width, threads)
    finally:
        for one in waiting if made is None else (made, *waiting):
            one.stop()


def _has_place(waiting: deque[Making[Item, Made]], width: int, room: int) -> bool:
    """Tell whether another item may wait: as many are made at once as the width, the caller's own among them."""
    many = width + (waiting[0].has_begun and not waiting[0].is_running)
    return len(waiting) < many and sum(one.size or 0 for one in waiting) <= room


def _begin(waiting: deque[Making[Item, Made]], threads: int, room: int) -> None:
    """Begin items behind the first one, in order, as far as there is room."""
    total, begun = waiting[0].size or 0, []
    for one in list(waiting)[1:]:
        total += one.size or 0
        if total > room:
            break
        if not one.has_begun and one.size is not None:
            begun.append(one)
    if begun and threads > 1:
        at_work = len(begun) + (not waiting[0].has_begun) + sum(one.is_running for one in waiting)
        share = -(-threads // min(at_work, threads))
        waiting[0].threads = share
        for one in begun:
            one.begin(share)
