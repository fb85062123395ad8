"""Chooses the memory of device arrays: the device's own, or the host's where the device shares it.

A device on the host's chip, or one that uses the host's page tables, reads the same memory as the host. There, managed
memory is no slower than the device's own, and arrays may be as large as both together.
"""

from __future__ import annotations

import gc
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from polars_tadoc.config import settings

_OWN: AbstractContextManager[None] = nullcontext()


def allocating() -> AbstractContextManager[None]:
    """Allocate this thread's arrays as set by ``Config(device_memory=)``, within a ``with`` block.

    CuPy's allocator is kept for the device's own memory, and with "auto" if another one than CuPy's own was set.
    """
    asked = settings().device_memory
    if asked == "device":
        return _OWN
    import cupy

    if asked == "auto" and not (
        shares_host_memory(cupy.cuda.runtime.getDevice())
        and cupy.cuda.get_allocator() == cupy.get_default_memory_pool().malloc
    ):
        return _OWN
    block: AbstractContextManager[None] = cupy.cuda.using_allocator(_managed().malloc)
    return block


@cache
def shares_host_memory(device: int) -> bool:
    """Tell whether a device has no memory of its own, or reads the host's through the same page tables."""
    import cupy

    attributes = cupy.cuda.Device(device).attributes
    return bool(attributes["Integrated"] or attributes["PageableMemoryAccessUsesHostPageTables"])


def release_memory() -> None:
    """Return unused memory of the pools to the device, so that larger blocks can be allocated."""
    import cupy

    gc.collect()  # reference cycles with an error's traceback may hold arrays
    cupy.get_default_memory_pool().free_all_blocks()
    _managed().free_all_blocks()


@cache
def _managed() -> Any:
    """Return the pool of managed memory; it separates the memory of several devices."""
    import cupy

    return cupy.cuda.MemoryPool(cupy.cuda.malloc_managed)
