"""Runs one kernel on several chunks in parallel.

Kernels release the GIL, so plain threads suffice: Numba's own parallel loops would cost seconds of compilation each,
and its default threading layer must not be entered from Polars' worker threads.
"""

from __future__ import annotations

import atexit
import os
import weakref
from _thread import start_new_thread
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar
from weakref import finalize

import numpy as np
import numpy.typing as npt

from polars_tadoc.config import all_threads, one_thread, own_threads, thread_count
from polars_tadoc.runtime.interrupts import arm, began, cancel_where_meant_for_all, check, interruptible
from polars_tadoc.runtime.process.threads import Token, is_own, mark_own

Item = TypeVar("Item")
Result = TypeVar("Result")


class _Pool:
    """Threads that run the calls of a queue (see :mod:`polars_tadoc.runtime.process.threads`)."""

    is_closed = False

    def __init__(self, threads: int) -> None:
        self._threads, self._tokens = threads, list[Callable[[], object]]()
        self._given: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        finalize(self, self._given.put, None).atexit = False

    def submit(self, call: Callable[[], None]) -> None:
        """Let a thread make a call; raises ``RuntimeError`` if there can be none, as when the interpreter ends."""
        if self.is_closed:
            raise RuntimeError("the interpreter ends")
        if len(self._tokens) < self._threads:
            try:
                token = Token()
                start_new_thread(_serve, (self._given, token))
                self._tokens.append(weakref.ref(token))
            except RuntimeError:
                if not self._tokens:
                    raise
        self._given.put(call)

    def has_threads(self) -> bool:
        """Tell whether any thread is left: without memory they end, the first time before they begin."""
        self._tokens = [token for token in self._tokens if token() is not None]
        return bool(self._tokens)


def _serve(given: SimpleQueue[Callable[[], None] | None], token: Token) -> None:
    mark_own()
    while (call := given.get()) is not None:
        call()
        del call  # before the next one comes
    given.put(None)  # for the other threads


_pool = lru_cache(maxsize=4)(_Pool)


@atexit.register
def _close() -> None:
    """Let later calls use their own thread: the interpreter stops the others."""
    _Pool.is_closed = True


if hasattr(os, "register_at_fork"):
    # a forked child has the pool but not its threads, and would wait forever
    os.register_at_fork(after_in_child=_pool.cache_clear)


WAITED = 0.1
"""Seconds between checks for interrupts while waiting: some systems do not wake a waiting thread for them."""


def _nothing(done: float | None, until: float) -> None:
    """Do nothing."""


notice: list[Callable[[float | None, float], None]] = [_nothing]
"""Called in a caller's thread: by :func:`map_parallel` whenever an item is done, and by :func:`tell`."""


def tell(done: float, until: float) -> None:
    """Tell which share of the current part of this thread's call is done, and up to which share its next items go."""
    notice[0](done, until)


def map_parallel(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Apply ``function`` to each item on the thread pool; results in the items' order.

    Returns or raises only when no item is running any more: kernels read at addresses whose owners the caller holds.
    An interrupt ends running and waiting items, also those of other threads. ``function`` may call this again: a thread
    of the package does what no other has begun, for all of the pool's may wait here at once, or work for other calls: a
    copy beside a device's work must not wait for all pieces that are being compressed.
    """
    if len(items) <= 1 or thread_count() == 1:
        return [_noticed(_checked(function, item)) for item in items]
    arm()
    since = began()
    tasks = _Tasks(function, items, since)
    try:
        pool, submitted = _pool(max(all_threads(), thread_count())), 0
        others = thread_count() - is_own()  # this thread takes part
        with suppress(RuntimeError):  # pools accept nothing more when the interpreter ends
            for _ in range(min(others, len(items))):
                pool.submit(tasks.run)
                submitted += 1
        if not submitted:
            return [_checked(function, item) for item in items]
        if is_own():
            tasks.run()
        tasks.wait(pool.has_threads)
    except BaseException as error:
        cancel_where_meant_for_all(error, since)
        raise
    finally:
        tasks.stop()
    if tasks.errors:
        raise tasks.first_error()
    return [tasks.results.pop(k) for k in range(len(items))]


class _Tasks(Generic[Item, Result]):
    """Items processed by threads of a pool, for one waiting thread, which is woken at the end only.

    Each thread takes item after item: waking one for each item costs more than short items do, as threads wait for the
    GIL meanwhile. The waiting thread waits for queues in machine code: an interrupt cannot leave them locked.
    """

    def __init__(self, function: Callable[[Item], Result], items: Sequence[Item], since: int) -> None:
        self._function, self._items, self._since = function, items, since
        self.results: dict[int, Result] = {}
        self.errors: dict[int, BaseException] = {}
        self._many = len(items)
        self._waiting = iter(range(len(items)))
        """Shared by the threads: taking the next is a single operation."""
        self._stopped = False
        self._begun: list[int] = []
        self._ended: list[int] = []
        self._woken: SimpleQueue[int] = SimpleQueue()

    def run(self) -> None:
        """Process the items that no thread has begun, unless the tasks were stopped."""
        for k in self._waiting:
            self._begun.append(k)  # before the look at ``_stopped``: who stops waits for what has begun
            try:
                if not self._stopped:
                    with interruptible(self._since):
                        self.results[k] = _checked(self._function, self._items[k])
            except BaseException as error:
                self.errors[k] = error
                self._stopped = True
            finally:
                self._ended.append(k)
                if self._stopped or len(self._ended) == self._many:
                    self._woken.put(k)

    def wait(self, has_threads: Callable[[], bool]) -> None:
        """Wait until all items are done; does them itself if there are no threads."""
        while len(self._ended) < self._many:
            try:
                self._woken.get(timeout=WAITED)
                notice[0](None, 1)
            except Empty:
                if not has_threads():
                    self.run()

    def stop(self) -> None:
        """Prevent further items from starting, and wait for running ones; raises an interrupt afterwards."""
        self._stopped, interrupt = True, None
        while len(self._ended) < len(self._begun):
            try:
                with suppress(Empty):
                    self._woken.get(timeout=WAITED)
            except BaseException as error:
                interrupt = interrupt or error
                cancel_where_meant_for_all(error, self._since)
        del self._function, self._items  # a busy pool keeps these tasks until their turn, but not the memory of copies
        if interrupt is not None:
            raise interrupt

    def first_error(self) -> BaseException:
        """Return the error of the first failed item; all items before it have started."""
        error = self.errors[min(self.errors)]
        self.errors.clear()  # its traceback references this
        return error


def _checked(function: Callable[[Item], Result], item: Item) -> Result:
    check()
    return function(item)


def _noticed(result: Result) -> Result:
    notice[0](None, 1)
    return result


def map_apart(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Apply ``function`` to items that each keep all threads busy: threads that never wait for each other are faster.

    Runs as many items at once as there are threads, one thread each; then the remaining ones side by side, on all
    threads: one that waits for its own item's chunks processes them.
    """

    def apply(item: Item) -> Result:
        with one_thread():
            return function(item)

    threads = thread_count()
    apart = len(items) - len(items) % threads if threads > 1 else 0
    return map_parallel(apply, items[:apart]) + map_parallel(function, items[apart:])


def map_beside(function: Callable[[Item], Result], items: Sequence[Item], sizes: Sequence[int]) -> list[Result]:
    """Apply ``function`` to items side by side, each on a share of the threads by its size.

    Threads that never wait for each other are faster: with as many items as threads, each is on one. Large items begin
    first, so that no thread is left with one alone.
    """
    if thread_count() == 1 or len(items) == 1:
        return [function(item) for item in items]
    threads, total = thread_count(), max(sum(sizes), 1)

    def apply(k: int) -> Result:
        with own_threads(max(1, -(-threads * sizes[k] // total))):
            return function(items[k])

    order = sorted(range(len(items)), key=lambda k: -sizes[k])
    results = dict(zip(order, map_parallel(apply, order), strict=True))
    return [results[k] for k in range(len(items))]


def even_chunks(size: int, smallest: int = 1 << 15, each: int = 1) -> list[tuple[int, int]]:
    """Cut ``range(size)`` into ``each`` chunks per thread, none smaller than ``smallest`` unless it is the only one.

    More than one chunk per thread balances uneven work.
    """
    count = max(1, min(each * thread_count(), size // smallest))
    edges = [size * i // count for i in range(count + 1)]
    return list(pairwise(edges))


def weighted_chunks(
    weights_before: npt.NDArray[np.int64], smallest: int = 1 << 15, *, each: int = 1
) -> list[tuple[int, int]]:
    """Cut rows into chunks of about equal weight; ``weights_before`` is the exclusive running sum, length rows + 1.

    ``each`` as for :func:`even_chunks`.
    """
    rows, total = len(weights_before) - 1, int(weights_before[-1] - weights_before[0])
    count = max(1, min(each * thread_count(), total // smallest))
    targets = weights_before[0] + np.arange(1, count) * (total // count)
    inner = np.searchsorted(weights_before, targets).clip(0, rows)
    edges = [0, *(int(e) for e in inner), rows]
    return list(pairwise(edges))
