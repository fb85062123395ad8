"""Numbers distinct 64-bit keys, in their order.

Indices are unsigned: indices that may be negative cost a comparison and a select at each use.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.host.records.sort_keys import chunks_between, sort_with
from polars_tadoc.kernels.keys.key_buckets_cpu import AHEAD
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.runtime.addresses import prefetch
from polars_tadoc.runtime.array_types import UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import kernel, polled_kernel
from polars_tadoc.runtime.parallel import even_chunks, map_parallel
from polars_tadoc.runtime.scratch import scratch

_1 = np.uint64(1)
_AHEAD = np.uint64(AHEAD)


def dense_ids(keys: UInt64) -> tuple[UInt32, UInt64]:
    """Number distinct keys from 0 on, ascending.

    Parameters
    ----------
    keys
        uint64, any values; fewer than 2^32 distinct ones.

    Returns
    -------
    (uint32 array, uint64 array)
        The number of each key, and the distinct keys.

    Examples
    --------
    >>> ids, distinct = dense_ids(np.array([7, 3, 7], np.uint64))
    >>> ids.tolist(), distinct.tolist()
    ([1, 0, 1], [3, 7])

    """
    places = scratch(len(keys), np.uint64)
    map_parallel(lambda chunk: _count_up(places, *chunk), even_chunks(len(keys)))
    keys, places = sort_with(keys, places)
    chunks = chunks_between(keys)
    before = running_sum(np.array(map_parallel(lambda chunk: _count_distinct(keys, *chunk), chunks), np.int64))
    ids, distinct = scratch(len(keys), np.uint32), scratch(before[-1], np.uint64)
    map_parallel(lambda k: _number(keys, places, *chunks[k], before[k], ids, distinct), range(len(chunks)))
    return ids, distinct


@kernel
def _count_up(numbers: UInt64, first: int, stop: int) -> None:
    for i in range(np.uint64(first), np.uint64(stop)):
        numbers[i] = i


@kernel
def _count_distinct(keys: UInt64, first: int, stop: int) -> Any:
    many = np.int64(first < stop)
    for i in range(np.uint64(first) + _1, np.uint64(stop)):
        many += keys[i] != keys[i - _1]
    return many


@polled_kernel
def _number(keys: UInt64, places: UInt64, first: int, stop: int, number: int, ids: UInt32, distinct: UInt64) -> None:
    """Number sorted keys, and write each number to the key's original place."""
    began = interrupts()
    own, end = np.uint64(number), np.uint64(stop)
    for i in range(np.uint64(first), end):
        if i & np.uint64(0xFFFF) == 0 and interrupts() != began:
            return
        own += np.uint64(i > np.uint64(first) and keys[i] != keys[i - _1])
        distinct[own] = keys[i]
        prefetch(ids, np.int64(places[min(i + _AHEAD, end - _1)]))
        ids[places[i]] = own
