"""Which memory device arrays take: the device's own, or, where the device shares the host's, that.

A device that is part of the host's chip, or that walks the host's page tables, reads the same memory as the host. There
managed memory is no slower than the device's own, and arrays may be as large as both together.
"""

from __future__ import annotations

import gc
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from polars_tadoc.config import settings

_OWN: AbstractContextManager[None] = nullcontext()


def allocating() -> AbstractContextManager[None]:
    """Allocate arrays that this thread makes where ``Config(device_memory=)`` says; within a ``with`` block.

    CuPy's allocator stays as it is for the device's own memory, and with "auto" where another than CuPy's own was set.
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
    """Tell whether a device has no memory apart from the host's, or reads the host's by the same page tables."""
    import cupy

    attributes = cupy.cuda.Device(device).attributes
    return bool(attributes["Integrated"] or attributes["PageableMemoryAccessUsesHostPageTables"])


def release_memory() -> None:
    """Give memory that no array takes any more back to the device, so that larger pieces can be had."""
    import cupy

    gc.collect()  # an error's traceback may hold arrays in a circle
    cupy.get_default_memory_pool().free_all_blocks()
    _managed().free_all_blocks()


@cache
def _managed() -> Any:
    """Return the pool of managed memory; it keeps the memory of several devices apart."""
    import cupy

    return cupy.cuda.MemoryPool(cupy.cuda.malloc_managed)
