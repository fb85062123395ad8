"""Sorts short runs of strings that begin alike; the order of all is in :mod:`.tables_cpu`."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.runtime.addresses import byte_swapped, load_u8, load_u64
from polars_tadoc.runtime.array_types import Bools, UInt32, UInt64
from polars_tadoc.runtime.jit import inner, kernel

FEW = 16
"""Strings of a run that is sorted by insertion."""

_8, _16 = np.uint64(8), np.uint64(16)


@inner
def _is_before(one: Any, other: Any, seconds: UInt64, addresses: UInt64, lengths: UInt32) -> Any:
    """Tell whether a string precedes another one with the same first eight bytes."""
    if seconds[one] != seconds[other]:
        return seconds[one] < seconds[other]
    size = nb.uint64(min(lengths[one], lengths[other]))
    if size > _16:
        at = _16
        while at + _8 <= size:
            left, right = load_u64(addresses[one] + at), load_u64(addresses[other] + at)
            if left != right:
                return byte_swapped(left) < byte_swapped(right)
            at += _8
        while at < size:
            first, second = load_u8(addresses[one] + at), load_u8(addresses[other] + at)
            if first != second:
                return first < second
            at += np.uint64(1)
    return lengths[one] < lengths[other]


@kernel
def sort_few(
    order: UInt32,
    equal: Bools,
    first: int,
    stop: int,
    seconds: UInt64,
    addresses: UInt64,
    lengths: UInt32,
    left: Bools,
) -> None:
    """Sort the runs of at most ``FEW`` strings that begin from ``first`` to before ``stop``.

    Parameters
    ----------
    order
        Ids of strings, by their first eight bytes.
    equal
        Whether these of string i and i + 1 in this order are equal: then both are in one run.
    seconds, addresses, lengths
        As of :class:`.tables_cpu.Strings`, by id.
    left
        Initially false; becomes ``equal`` of longer runs.

    """
    i, size = nb.int64(first), len(order)
    while i < stop and i < size - 1:
        if not equal[i] or (i > 0 and equal[i - 1]):
            i += 1
            continue
        end = i + 1
        while end < size - 1 and equal[end]:
            end += 1
        if end - i >= FEW:
            left[i:end] = True
        else:
            for k in range(i + 1, end + 1):
                own, at = order[k], k
                while at > i and _is_before(own, order[at - 1], seconds, addresses, lengths):
                    order[at] = order[at - 1]
                    at -= 1
                order[at] = own
        i = end
