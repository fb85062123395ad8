"""Reads the next item while the one before is worked on.

A partition of 236 MB of text takes 551 ms to be read and decoded; counting its words takes 24 ms on the CPU and 45 on a
GPU, counting its trigrams 371 and 72 ms. Of that, copying its 29 MB of symbols to the device is 4.5 ms, all of which
runs beside kernels where the symbols are in pinned memory, but to bring them there takes 5.9 ms. So what gains is to
read ahead, and no copies of the next partition are begun before its turn: trigrams went from 678 to 576 ms a partition
on the GPU and from 964 to 653 on the CPU (near copies of the corpora; 16 cores and an H100; ``python -m
benchmarks.gpu_streaming``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final, TypeVar

Item = TypeVar("Item")

_END: Final = object()


def read_ahead(items: Iterable[Item], has_room: Callable[[Item], bool] = lambda _: True) -> Iterator[Item]:
    """Give items in their order; while one is worked on that leaves room, the next is made in a thread of its own.

    Only then are two of them there at a time. Errors come where the item would have come. When the caller stops early,
    the item in the making is waited for, and no other is begun.
    """
    source = iter(items)
    with ThreadPoolExecutor(1, thread_name_prefix="tadoc-read-ahead") as reader:
        item: Any = next(source, _END)
        while item is not _END:
            coming = None
            if has_room(item):
                with suppress(RuntimeError):  # when the interpreter ends, no thread can be had
                    coming = reader.submit(next, source, _END)
            yield item
            del item  # before another one is made
            item = next(source, _END) if coming is None else coming.result()
