"""Puts rows that stand in several buffers one after another."""

from __future__ import annotations

import numba as nb
import numpy as np

from polars_tadoc.runtime.addresses import copy_bytes
from polars_tadoc.runtime.array_types import Int64, UInt64
from polars_tadoc.runtime.compiled import njit


@njit(nogil=True)
def gather_bytes(addresses: UInt64, before: Int64, first: int, stop: int, to: int) -> None:
    """Copy bytes ``first`` to ``stop`` of the rows, as they stand one after another, to an address.

    ``before`` holds the bytes before each row, and all; length rows + 1.
    """
    row = np.searchsorted(before, first, side="right") - 1
    target = nb.uint64(to)
    at = first
    while at < stop:
        source = addresses[row] + nb.uint64(at - before[row])
        count = nb.uint64(min(stop, before[row + 1]) - at)
        copy_bytes(target, source, count)
        target += count
        at += nb.int64(count)
        row += 1
