"""Keeps the work space of calls for later ones: the system clears each page of new memory.

The budget is a part of ``host_cache_bytes``. Calls under a memory limit keep nothing.
"""

from __future__ import annotations

import mmap
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from polars_tadoc.config import settings
from polars_tadoc.runtime.array_types import UInt8

SMALLEST = 1 << 16
"""Arrays of fewer bytes are left to NumPy."""

HUGE = 1 << 18
"""Bytes from which on memory is asked for in huge pages: touching small ones first takes a tenth of tokenizing."""

HUGE_PAGE = 1 << 21
"""Bytes of a huge page of most processors."""

SHARE = 8
"""The budget is one part in 8 of ``host_cache_bytes``."""

_blocks: dict[int, deque[UInt8]] = {}
"""Memory by its size; it is unused while no array refers to it. A finalizer would be Python code that runs anywhere: an
interrupt in it would be dropped. Only single operations of deques change it, which no thread divides."""


def scratch(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an uninitialised array, in memory of an earlier one if there is any of its size."""
    shape = shape if isinstance(shape, tuple) else (int(shape),)
    kind = np.dtype(dtype)
    needed = kind.itemsize * int(np.prod(shape, dtype=np.int64))
    if needed < SMALLEST:
        return np.empty(shape, kind)
    step = 1 << (needed.bit_length() - 3)
    size = -(-needed // step) * step  # four sizes from a power of two to the next
    block = _unused(size)
    if block is None:
        block = pages(size)
        if not _has_room(size):
            return block[:needed].view(kind).reshape(shape)
    made = block[:needed].view(kind).reshape(shape)
    _blocks.setdefault(size, deque()).append(block)  # other threads find it in use
    return made


def pages(size: int, touched: int | None = None) -> UInt8:
    """Return zeros in pages of their own, which the system has again as soon as nothing refers to them.

    The C library keeps some memory that threads have freed, and returns it not even when asked to.

    Parameters
    ----------
    size
        Bytes.
    touched
        Bytes from the first on that are going to be written; by default all of them. The others get small pages.

    """
    if size < SMALLEST or not hasattr(mmap, "MAP_PRIVATE"):
        return np.zeros(size, np.uint8)
    try:
        # Linux puts whole huge pages only where one may begin
        room = size if size < HUGE_PAGE else -(-size // HUGE_PAGE) * HUGE_PAGE
        block = mmap.mmap(-1, room, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        most = size if touched is None else touched
        huge = room if size < HUGE_PAGE else (most + HUGE_PAGE // 2) // HUGE_PAGE * HUGE_PAGE
        if size >= HUGE and huge > 0 and hasattr(mmap, "MADV_HUGEPAGE"):
            block.madvise(mmap.MADV_HUGEPAGE, 0, huge)
    except OSError:  # too little memory, which NumPy says as others do; or no huge pages
        return np.zeros(size, np.uint8)
    return np.frombuffer(block, np.uint8, size)


def scratch_zeros(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an array of zeros, as :func:`scratch`."""
    made = scratch(shape, dtype)
    made.fill(0)
    return made


def kept_bytes() -> int:
    """Return the bytes that are kept and unused."""
    return sum(len(block) for blocks in tuple(_blocks.values()) for block, is_unused in _each(blocks) if is_unused)


def drop_scratch() -> None:
    """Free all kept memory."""
    _blocks.clear()


def _next(blocks: deque[UInt8]) -> tuple[UInt8, int]:
    """Take a block, which no other thread sees then; returns it and the number of its references."""
    block = blocks.popleft()
    return block, sys.getrefcount(block)


_UNUSED = _next(deque([np.empty(0, np.uint8)]))[1]
"""References to a block that no array refers to: those of :func:`_next`, which depend on Python's version."""


def _each(blocks: deque[UInt8]) -> Iterator[tuple[UInt8, bool]]:
    """Yield the blocks of a size, and whether each is unused."""
    with suppress(IndexError):  # another thread took some
        for _ in range(len(blocks)):
            block, references = _next(blocks)
            blocks.append(block)
            yield block, references == _UNUSED


def _unused(size: int) -> UInt8 | None:
    """Take an unused block of a size."""
    with suppress(KeyError, IndexError):
        blocks = _blocks[size]
        for _ in range(len(blocks)):
            block, references = _next(blocks)
            if references == _UNUSED:
                return block
            blocks.append(block)
    return None


def _has_room(size: int) -> bool:
    """Tell whether a block fits in the budget; unused ones make room: memory of sizes that no call needs is freed."""
    budget = settings().host_cache_bytes // SHARE
    if size > budget:
        return False
    if size + _all_bytes() > budget:
        for own in tuple(_blocks):
            while _unused(own) is not None:
                pass
    return size + _all_bytes() <= budget


def _all_bytes() -> int:
    return sum(size * len(blocks) for size, blocks in tuple(_blocks.items()))
