"""Distributes 64-bit keys over buckets by hash, so that each bucket's table fits a core's cache.

Like the thread-safe tables and the memory pool of G-TADOC (Zhang et al., ICDE 2021, section V), without their locks:
each bucket has one owner.

Indices are unsigned: indices that may be negative cost a comparison and a select at each use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.runtime.addresses import prefetch
from polars_tadoc.runtime.array_types import Int64, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.parallel import even_chunks, map_parallel

Shares = list[tuple[int, int]]
"""Ranges of an array of keys, one per thread."""

BUCKET = 1 << 14
"""Keys per bucket: their table is a quarter of a core's cache."""

MAX_BUCKETS = 1 << 10
"""Maximum number of buckets: the processor cannot track more write streams."""

AHEAD = 16
"""Prefetch distance in items of a stream."""

_K1, _K2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_1, _32 = (np.uint64(number) for number in (1, 32))
_AHEAD = np.uint64(AHEAD)

NOTHING = np.zeros(0, np.uint64)
"""No keys, or no weights: each key counts once."""


@njit(inline="always")
def hash_key(key: int) -> Any:
    """Mix the bits of a key: the highest ones select its bucket, the lowest ones its slot there."""
    h = nb.uint64(key) * _K1
    h = (h ^ (h >> _32)) * _K2
    return h ^ (h >> _32)


@njit
def _tally_buckets(keys: UInt64, first: int, stop: int, shift: int, hashed: bool, sizes: Int64) -> None:
    for i in range(nb.uint64(first), nb.uint64(stop)):
        sizes[(hash_key(keys[i]) if hashed else keys[i]) >> nb.uint64(shift)] += 1


@polled
@njit
def _scatter(
    keys: UInt64,
    weights: UInt64,
    first: int,
    stop: int,
    shift: int,
    hashed: bool,
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
        bucket = (hash_key(keys[i]) if hashed else keys[i]) >> nb.uint64(shift)
        at = nb.uint64(places[bucket])
        places[bucket] = at + _1
        bucketed[at] = keys[i]
        prefetch(bucketed, nb.int64(at + _AHEAD))  # more streams than the hardware prefetches
        if weighted:
            bucketed_weights[at] = weights[i]
            prefetch(bucketed_weights, nb.int64(at + _AHEAD))


@dataclass(frozen=True)
class Buckets:
    """Keys by bucket, and the positions where each share's keys start."""

    shift: int
    keys: UInt64
    weights: UInt64
    offsets: Int64
    shares: Shares
    places: Int64


def spread_keys(keys: UInt64, weights: UInt64, buckets: int, shares: Shares | None = None) -> Buckets:
    """Copy keys, and their weights if any, to ``buckets`` buckets; ``shares`` are the ranges of keys."""
    return spread_by(keys, weights, buckets, 64 - (buckets.bit_length() - 1), shares, hashed=True)


def spread_by(
    keys: UInt64, weights: UInt64, buckets: int, shift: int, shares: Shares | None = None, *, hashed: bool = False
) -> Buckets:
    """Copy keys to buckets by their bits above ``shift``, or by their hashes; otherwise as :func:`spread_keys`."""
    shares = even_chunks(len(keys)) if shares is None else shares
    sizes = np.zeros((len(shares), buckets), np.int64)
    map_parallel(lambda k: _tally_buckets(keys, *shares[k], shift, hashed, sizes[k]), range(len(shares)))
    before = running_sum(sizes.T.ravel())
    places = np.ascontiguousarray(before[:-1].reshape(buckets, len(shares)).T)
    offsets = np.ascontiguousarray(before[:: len(shares)])
    bucketed, bucketed_weights = np.empty(before[-1], np.uint64), np.empty(len(weights), np.uint64)
    filled = places.copy()
    map_parallel(
        lambda k: _scatter(keys, weights, *shares[k], shift, hashed, filled[k], bucketed, bucketed_weights),
        range(len(shares)),
    )
    return Buckets(shift, bucketed, bucketed_weights, offsets, shares, places)


def bucket_count(keys: int) -> int:
    """Return the number of buckets for a number of keys."""
    return min(MAX_BUCKETS, max(2, 1 << (keys // BUCKET).bit_length()))
