"""Gives freed memory back to the system, which allocators keep for what comes next."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

GROWN_SHARE = 16
"""Callers that work under a memory limit give memory back where the process grew by such a share of it."""


def give_back_memory(grown: int = 0) -> None:
    """Have Arrow's allocator and the C library return what is free: of what a call took and let go of, mostly all.

    It takes some milliseconds where much is free, and what is returned must be had again: a sixth of the time of calls
    that do so after each frame. It waits for nothing.

    Parameters
    ----------
    grown
        Only where the process takes so many bytes more than after the last time; where that cannot be told, always.

    """
    global _left
    if grown:
        size = _resident()
        _left = min(_left, size)
        if size and size < _left + grown:
            return
    pool = pa.default_memory_pool()
    if pool.backend_name != "system" or _TRIM is None:
        pool.release_unused()
    if _TRIM is not None:
        _TRIM(0)
    _left = _resident()


@contextmanager
def small_arrow_memory() -> Iterator[None]:
    """Have Arrow take memory from the C library for a while: its own allocators keep some for each thread.

    What 16 threads read and freed was a fifth of what a call took under a limit of 300 MB. What is taken meanwhile goes
    back to where it came from, whenever it is freed. Other threads' Arrow does the same until the last one ends.
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
            if _inside == 0 and pa.default_memory_pool().backend_name == "system":  # else somebody chose another since
                pa.set_memory_pool(_before)


def _resident() -> int:
    """Bytes of memory that the process takes; 0 where the system has no such file."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def _trim() -> ctypes._NamedFuncPointer | None:
    if not sys.platform.startswith("linux"):
        return None
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
    if trim is not None:
        trim.argtypes, trim.restype = (ctypes.c_size_t,), ctypes.c_int
    return trim


_TRIM = _trim()
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 0
_lock = threading.Lock()
_inside = 0
_before = pa.default_memory_pool()
_left = 0
"""What the process took after memory was given back last."""
