"""Numbers distinct 64-bit keys, in their order.

Indices are unsigned: indices that may be negative cost a comparison and a select at each use.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from polars_tadoc.kernels.keys.key_buckets_cpu import AHEAD, NOTHING, bucket_count, hash_key, spread_keys
from polars_tadoc.kernels.keys.key_counts_cpu import count_buckets
from polars_tadoc.kernels.keys.key_order_cpu import ascending
from polars_tadoc.runtime.addresses import prefetch
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks

_1, _2 = (np.uint64(number) for number in (1, 2))
_AHEAD = np.uint64(AHEAD)


@polled
@njit
def _number(
    distinct: UInt64, numbers: UInt64, distinct_offsets: Int64, keys: UInt64, offsets: Int64, first: int, stop: int
) -> None:
    """Replace each bucket's keys by the numbers of the distinct ones."""
    began = interrupts()
    for bucket in range(first, stop):
        if interrupts() != began:
            return
        many = distinct_offsets[bucket + 1] - distinct_offsets[bucket]
        slots = 4
        while slots < 2 * many:
            slots *= 2
        table = np.zeros(2 * slots, np.uint64)  # key, number + 1
        mask, last = nb.uint64(slots - 1), nb.uint64(2 * slots - 1)
        for i in range(nb.uint64(distinct_offsets[bucket]), nb.uint64(distinct_offsets[bucket + 1])):
            at = (hash_key(distinct[i]) & mask) << _1
            while table[at + _1] != 0:
                at = (at + _2) & last
            table[at], table[at + _1] = distinct[i], numbers[i] + _1
        for i in range(nb.uint64(offsets[bucket]), nb.uint64(offsets[bucket + 1])):
            at = (hash_key(keys[i]) & mask) << _1
            while table[at] != keys[i] or table[at + _1] == 0:
                at = (at + _2) & last
            keys[i] = table[at + _1] - _1


@polled
@njit
def _gather(keys: UInt64, first: int, stop: int, shift: int, places: Int64, numbers: UInt64, ids: UInt32) -> None:
    """Write each key's number in the original order, by repeating the traversal of :func:`spread_keys`."""
    began = interrupts()
    for i in range(nb.uint64(first), nb.uint64(stop)):
        if i & nb.uint64(0xFFFF) == 0 and interrupts() != began:
            return
        bucket = hash_key(keys[i]) >> nb.uint64(shift)
        at = nb.uint64(places[bucket])
        places[bucket] = at + _1
        prefetch(numbers, nb.int64(at + _AHEAD))
        ids[i] = numbers[at]


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
    buckets = bucket_count(len(keys))
    spread = spread_keys(keys, NOTHING, buckets)
    found = ascending(count_buckets(spread, spread_keys(NOTHING, NOTHING, buckets)))
    numbered = spread_keys(found, np.arange(len(found), dtype=np.uint64), buckets)
    map_parallel(
        lambda chunk: _number(numbered.keys, numbered.weights, numbered.offsets, spread.keys, spread.offsets, *chunk),
        weighted_chunks(spread.offsets),
    )
    ids = np.empty(len(keys), np.uint32)
    map_parallel(
        lambda k: _gather(keys, *spread.shares[k], spread.shift, spread.places[k], spread.keys, ids),
        range(len(spread.shares)),
    )
    return ids, found
