"""Prefetches the next item while the current one is processed.

A partition of 236 MB of text takes 551 ms to read and decode; counting its words takes 24 ms on the CPU and 45 ms on a
GPU, counting its trigrams 371 and 72 ms. Copying its 29 MB of symbols to the device takes 4.5 ms, all of which
overlaps with kernels if the symbols are in pinned memory, but moving them there takes 5.9 ms. So prefetching from disk
pays off, and early copies of the next partition do not: trigrams went from 678 to 576 ms per partition on the GPU and
from 964 to 653 ms on the CPU (near copies of the corpora; 16 cores and an H100; ``python -m
benchmarks.gpu_streaming``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

from polars_tadoc.runtime.process.threads import Task

Item = TypeVar("Item")

_END: Final = object()


def read_ahead(items: Iterable[Item], has_room: Callable[[Item], bool] = lambda _: True) -> Iterator[Item]:
    """Yield items in order; make the next one in a thread of its own while the current one leaves room.

    At most two items exist at a time. Errors are raised instead of their item. If the caller stops early, the function
    waits for the item that is being made, and starts no other.
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
                    ahead.start()
                    coming = ahead
            yield item
            del item  # before another one is made
            item = next(source, _END) if coming is None else coming.result()
    finally:
        if coming is not None:
            coming.stop()
