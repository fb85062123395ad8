"""Returns freed memory, which allocators keep for reuse, to the system."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from polars_tadoc.runtime.scratch import drop_scratch

GROWN_SHARE = 16
"""Callers under a memory limit return memory when the process has grown by one part in 16 of the limit."""


def give_back_memory(grown: int = 0) -> None:
    """Make Arrow's allocator and the C library return free memory: almost all that a call has freed.

    It takes some milliseconds if much is free, and returned memory must be allocated again: a sixth of the time of
    calls that do so after each frame. It never waits.

    Parameters
    ----------
    grown
        Return memory only if the process has grown by this many bytes since the last time, or if that is unknown.

    """
    global _left
    if grown:
        size = _resident()
        _left = min(_left, size)
        if size and size < _left + grown:
            return
    drop_scratch()
    pool = pa.default_memory_pool()
    if pool.backend_name != "system" or _TRIM is None:
        pool.release_unused()
    trim_heap()
    _left = _resident()


def trim_heap() -> None:
    """Make the C library return free memory, in one or two milliseconds."""
    if _TRIM is not None:
        _TRIM(0)


@contextmanager
def small_arrow_memory() -> Iterator[None]:
    """Make Arrow allocate from the C library for a while: its own allocators keep some memory for each thread.

    With 16 threads, memory that had been read and freed was a fifth of a call's total under a limit of 300 MB. Memory
    allocated meanwhile is later freed by the same allocator. All threads are affected until the last caller leaves.
    """
    global _inside, _before
    with _lock:
        if _inside == 0:
            _before = pa.default_memory_pool()
            pa.set_memory_pool(pa.system_memory_pool())
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            # otherwise another pool was chosen meanwhile
            if _inside == 0 and pa.default_memory_pool().backend_name == "system":
                pa.set_memory_pool(_before)


def _resident() -> int:
    """Return the resident memory of the process in bytes; 0 if the system does not say."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def _trim() -> ctypes._NamedFuncPointer | None:
    if not sys.platform.startswith("linux"):
        return None
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it
    if trim is not None:
        trim.argtypes, trim.restype = (ctypes.c_size_t,), ctypes.c_int
    return trim


_TRIM = _trim()
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0
_lock = threading.Lock()
_inside = 0
_before = pa.default_memory_pool()
_left = 0
"""Resident memory after the last return of memory."""
