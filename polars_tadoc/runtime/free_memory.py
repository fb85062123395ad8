"""Gives freed memory back to the system, which allocators keep for what comes next."""

from __future__ import annotations

import ctypes
import sys

import pyarrow as pa


def give_back_memory() -> None:
    """Have Arrow's allocator and the C library return what is free: of what a call took and let go of, mostly all.

    It takes some milliseconds where much is free, and waits for nothing.
    """
    pa.default_memory_pool().release_unused()
    if _TRIM is not None:
        _TRIM(0)


def _trim() -> ctypes._NamedFuncPointer | None:
    if not sys.platform.startswith("linux"):
        return None
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
    if trim is not None:
        trim.argtypes, trim.restype = (ctypes.c_size_t,), ctypes.c_int
    return trim


_TRIM = _trim()
