"""Distributes 64-bit keys over buckets by their highest bits, so that each bucket fits a core's cache.

Replaces the thread-safe tables of G-TADOC (Zhang et al., ICDE 2021, section V): each bucket has one owner.

Indices are unsigned: indices that may be negative cost a comparison and a select at each use.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.runtime.addresses import prefetch
from polars_tadoc.runtime.array_types import Int64, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import kernel, polled_kernel
from polars_tadoc.runtime.parallel import even_chunks, map_parallel
from polars_tadoc.runtime.scratch import scratch

Shares = list[tuple[int, int]]
"""Ranges of an array of keys, one per thread."""


class Room:
    """Memory that the batches of one call are sorted into, in turn."""

    def __init__(self) -> None:
        self._held: dict[str, UInt64] = {}

    def take(self, name: str, size: int) -> UInt64:
        """Return uint64[size], uninitialised: the array taken by this name before is overwritten."""
        if size > len(self._held.get(name, NOTHING)):
            self._held.pop(name, None)  # first: else both are held
            self._held[name] = scratch(size, np.uint64)
        return self._held.get(name, NOTHING)[:size]


AHEAD = 16
"""Prefetch distance in items of a stream."""

_1 = np.uint64(1)
_AHEAD = np.uint64(AHEAD)

NOTHING = np.zeros(0, np.uint64)
"""No keys, or no weights: each key counts once."""


@kernel
def _tally_buckets(keys: UInt64, first: int, stop: int, shift: int, sizes: Int64) -> None:
    for i in range(nb.uint64(first), nb.uint64(stop)):
        sizes[keys[i] >> nb.uint64(shift)] += 1


@polled_kernel
def _scatter(
    keys: UInt64,
    weights: UInt64,
    first: int,
    stop: int,
    shift: int,
    places: Int64,
    bucketed: UInt64,
    bucketed_weights: UInt64,
) -> None:
    """Copy keys (and their weights, if any) to their buckets, from ``places`` on."""
    began = interrupts()
    weighted = len(weights) > 0
    for i in range(nb.uint64(first), nb.uint64(stop)):
        if i & nb.uint64(0xFFFF) == 0 and interrupts() != began:
            return
        bucket = keys[i] >> nb.uint64(shift)
        at = nb.uint64(places[bucket])
        places[bucket] = at + _1
        bucketed[at] = keys[i]
        prefetch(bucketed, nb.int64(at + _AHEAD))  # more streams than the hardware prefetches
        if weighted:
            bucketed_weights[at] = weights[i]
            prefetch(bucketed_weights, nb.int64(at + _AHEAD))


def spread_by(
    keys: UInt64,
    weights: UInt64,
    buckets: int,
    shift: int,
    shares: Shares | None = None,
    room: Room | None = None,
) -> tuple[UInt64, UInt64, Int64]:
    """Copy keys, and their weights if there are any, to buckets by their bits above ``shift``.

    Parameters
    ----------
    keys, weights
        uint64.
    buckets
        Number of buckets, above the highest bits of any key.
    shift
        Number of lower bits.
    shares
        Ranges of keys; None: all.
    room
        Memory for the result; None: fresh memory.

    Returns
    -------
    (uint64 array, uint64 array, int64 array)
        Keys and weights by bucket, in order, and the offset of each bucket.

    """
    shares = even_chunks(len(keys)) if shares is None else shares
    sizes = np.zeros((len(shares), buckets), np.int64)
    map_parallel(lambda k: _tally_buckets(keys, *shares[k], shift, sizes[k]), range(len(shares)))
    before = running_sum(sizes.T.ravel())
    places = before[:-1].reshape(buckets, len(shares)).T.copy()
    offsets = np.ascontiguousarray(before[:: len(shares)])
    room = room or Room()
    bucketed, bucketed_weights = room.take("keys", int(before[-1])), room.take("weights", len(weights))
    map_parallel(
        lambda k: _scatter(keys, weights, *shares[k], shift, places[k], bucketed, bucketed_weights),
        range(len(shares)),
    )
    return bucketed, bucketed_weights, offsets
