"""Reads the next item while the one before is worked on.

A partition of 236 MB of text takes 0.4 s to be read and decoded; a GPU takes milliseconds for it, a CPU's kernels about
as long again: so one thread reads, and the other works.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

Item = TypeVar("Item")

_END: Final = object()


def read_ahead(items: Iterable[Item]) -> Iterator[Item]:
    """Give items in their order; while one is worked on, the next is made in a thread of its own.

    So two of them are there at a time. Errors come where the item would have come. When the caller stops early, the
    item in the making is waited for, and no other is begun.
    """
    source = iter(items)
    with ThreadPoolExecutor(1, thread_name_prefix="tadoc-read-ahead") as reader:
        coming = reader.submit(next, source, _END)
        while (item := coming.result()) is not _END:
            coming = reader.submit(next, source, _END)
            yield item  # type: ignore[misc]  # the end is told by a sentinel
