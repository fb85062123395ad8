"""Bounds what Polars reads ahead while a plan's rows stream through a call."""

from __future__ import annotations

import os
from _thread import allocate_lock
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import polars as pl

NARROW: Final = {"POLARS_MAX_CONCURRENT_SCANS": "1", "POLARS_ROW_GROUP_PREFETCH_SIZE": "2"}
"""Polars' settings within :func:`narrow_reading`: files read at once, and row groups read ahead."""

_lock = allocate_lock()
_set: dict[str, str] = {}
_queries = 0


@contextmanager
def narrow_reading(plan: pl.LazyFrame) -> Iterator[None]:
    """Let Polars read one file of a plan at a time, and few row groups ahead.

    Otherwise Polars decodes about as many row groups at once as it has threads: with 16 threads and row groups of 168
    MB, 3.3 GB instead of 0.5 to 1 GB, and no faster. Plans over object stores still read ahead, since each request
    waits. Settings that the program made stay. They are the process's: queries of other threads read ahead less, too.
    """
    global _queries
    if _is_remote(plan):
        yield
        return
    with _lock:
        if _queries == 0:
            _set.update({name: value for name, value in NARROW.items() if name not in os.environ})
            os.environ.update(_set)
        _queries += 1
    try:
        yield
    finally:
        with _lock:
            _queries = max(_queries - 1, 0)  # a forked child has none
            if _queries == 0:
                _put_back()


def is_narrow() -> bool:
    """Tell whether some query of this process reads as in :func:`narrow_reading`."""
    return _queries > 0


def _put_back() -> None:
    for name, value in _set.items():
        if os.environ.get(name) == value:  # otherwise the program has set it meanwhile
            del os.environ[name]
    _set.clear()


def _forget() -> None:
    """Begin anew in a forked child, which has none of the threads whose queries ran or held the lock."""
    global _lock, _queries
    _lock, _queries = allocate_lock(), 0
    _put_back()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _is_remote(plan: pl.LazyFrame) -> bool:
    try:
        return "://" in plan.explain(optimized=False)
    except Exception:  # the query itself raises it
        return True
