"""Keeps the work space of calls for later ones: the system clears each page of new memory.

The budget is a part of ``host_cache_bytes``. Calls under a memory limit keep nothing.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from polars_tadoc.config import settings
from polars_tadoc.runtime.array_types import UInt8

SMALLEST = 1 << 20
"""Arrays of fewer bytes are left to NumPy."""

SHARE = 8
"""The budget is one part in 8 of ``host_cache_bytes``."""

_free: dict[int, deque[UInt8]] = {}
"""Unused memory by its size. Only single operations of deques change it, which no thread or finalizer interrupts."""


class _Block:
    """Memory that is kept once no array uses it."""

    def __init__(self, memory: UInt8) -> None:
        self._memory = memory

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Memory for NumPy, whose arrays then own this object."""
        return self._memory.__array_interface__

    def __del__(self) -> None:
        with suppress(Exception):  # the interpreter may be ending
            _keep(self._memory)


def scratch(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an uninitialised array, in memory of an earlier one if there is any of its size."""
    shape = shape if isinstance(shape, tuple) else (int(shape),)
    kind = np.dtype(dtype)
    needed = kind.itemsize * int(np.prod(shape, dtype=np.int64))
    if needed < SMALLEST:
        return np.empty(shape, kind)
    step = 1 << (needed.bit_length() - 3)
    size = -(-needed // step) * step  # four sizes from a power of two to the next
    memory = None
    with suppress(KeyError, IndexError):
        memory = _free[size].pop()
    whole: UInt8 = np.asarray(_Block(np.empty(size, np.uint8) if memory is None else memory))
    return whole[:needed].view(kind).reshape(shape)


def scratch_zeros(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return an array of zeros, as :func:`scratch`."""
    made = scratch(shape, dtype)
    made.fill(0)
    return made


def kept_bytes() -> int:
    """Return the bytes that are kept."""
    return sum(size * len(blocks) for size, blocks in tuple(_free.items()))


def drop_scratch() -> None:
    """Free all kept memory."""
    _free.clear()


def _keep(memory: UInt8) -> None:
    budget = settings().host_cache_bytes // SHARE
    if len(memory) > budget:
        return
    if kept_bytes() + len(memory) > budget:  # memory of sizes that are no longer used must not stay
        drop_scratch()
    _free.setdefault(len(memory), deque()).append(memory)
