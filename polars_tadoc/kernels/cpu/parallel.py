"""Runs one kernel over several chunks at once.

The kernels release the GIL, so plain threads do: Numba's own parallel loops would cost seconds of
compilation each and its default threading layer may not be entered from Polars' worker threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ALL_COMPLETED, FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from polars_tadoc.config import one_thread, thread_count
from polars_tadoc.kernels.cpu.interrupts import arm, began, cancel, check, interruptible

Item = TypeVar("Item")
Result = TypeVar("Result")


@lru_cache(maxsize=4)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="tadoc")


if hasattr(os, "register_at_fork"):
    # a forked child has the pool but not its threads: it would wait for them forever
    os.register_at_fork(after_in_child=_pool.cache_clear)


WAITED = 0.1
"""Seconds after which a wait looks for interrupts: some systems wake no waiting thread for them."""


def map_parallel(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Apply ``function`` to each item on the thread pool; results in the items' order.

    Returns or raises only when no item is being worked on any more: kernels read at addresses whose owners
    the caller holds. An interrupt ends the items that run and those that wait, those of the other threads included.
    """
    if len(items) <= 1 or thread_count() == 1:
        return [_checked(function, item) for item in items]
    arm()
    since = began()

    def apply(item: Item) -> Result:
        with interruptible(since):
            return _checked(function, item)

    futures: list[Future[Result]] = []
    try:
        with suppress(RuntimeError):  # when the interpreter ends, pools take nothing more
            futures.extend(_pool(thread_count()).submit(apply, item) for item in items)
        _wait(futures, since, FIRST_EXCEPTION)
        return [future.result() for future in futures] + [_checked(function, item) for item in items[len(futures) :]]
    except (KeyboardInterrupt, SystemExit):
        cancel(since)
        raise
    finally:
        for future in futures:
            future.cancel()
        _wait(futures, since)


def _checked(function: Callable[[Item], Result], item: Item) -> Result:
    check()
    return function(item)


def _wait(futures: list[Future[Result]], since: int, until: str = ALL_COMPLETED) -> None:
    """Wait for futures; an error meanwhile, which is an interrupt's, cancels what they run, and comes after that."""
    interrupt: BaseException | None = None
    while True:
        try:
            done, waiting = wait(futures, WAITED, until)
        except BaseException as error:
            if interrupt is None:
                interrupt = error
                cancel(since)
                for future in futures:
                    future.cancel()
            continue
        if not waiting or (interrupt is None and until == FIRST_EXCEPTION and any(f.exception() for f in done)):
            break
    if interrupt is not None:
        raise interrupt


def map_apart(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Apply ``function`` to items that each keep all threads busy: threads that never wait for another do more.

    As many items at once as there are threads, each on one thread; what is left over one by one, on all of them.
    """

    def apply(item: Item) -> Result:
        with one_thread():
            return function(item)

    threads = thread_count()
    apart = len(items) - len(items) % threads if threads > 1 else 0
    return map_parallel(apply, items[:apart]) + [function(item) for item in items[apart:]]


def even_chunks(size: int, smallest: int = 1 << 15, each: int = 1) -> list[tuple[int, int]]:
    """Cut ``range(size)`` into ``each`` chunks per thread, none smaller than ``smallest`` unless it is the only one.

    More chunks than one level out work that lies unevenly.
    """
    count = max(1, min(each * thread_count(), size // smallest))
    edges = [size * i // count for i in range(count + 1)]
    return list(pairwise(edges))


def weighted_chunks(weights_before: npt.NDArray[np.int64], smallest: int = 1 << 15) -> list[tuple[int, int]]:
    """Cut rows into chunks of about equal weight; ``weights_before`` is the exclusive running sum, length rows + 1."""
    rows, total = len(weights_before) - 1, int(weights_before[-1] - weights_before[0])
    count = max(1, min(thread_count(), total // smallest))
    targets = weights_before[0] + np.arange(1, count) * (total // count)
    inner = np.searchsorted(weights_before, targets).clip(0, rows)
    edges = [0, *(int(e) for e in inner), rows]
    return list(pairwise(edges))
