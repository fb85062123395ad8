"""Counts the pairs of one round of batch RePair exactly, in tables that fit a core's cache.

Work is split twice. First by *position*: a thread scans its share of the sequence and writes the hash of each pair to
one of P buckets, selected by the hash's upper bits; the hashes are counted first, so that each is written to its final
place. Then by *pair*: the thread that takes a bucket counts its pairs in a table that no other thread touches, and
replaces each hash by its pair's count and entry. Whoever scans the sequence again in the same order reads them: all
accesses are sequential except those to one bucket's table (as in a radix-partitioned hash join: Manegold, Boncz and
Kersten, 2002).
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.runtime.addresses import atomic_add, prefetch
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import inner

DEAD, ALIVE, SELECTED = 0, 1, 2
"""State of a position: whether the pair that starts there may still occur twice, or is to be replaced."""

NONE = 0xFFFFFFFF
"""Rule of an entry without one."""

FIELDS = 2
TALLY, PLACE = range(FIELDS)
"""An entry of a pair: its occurrences (lower half) and selections (upper), and the first selected position."""

BUCKETS = 1 << 10
"""Maximum number of buckets; one bucket's table fits in a core's cache."""

FEWEST_SLOTS, MOST_SLOTS = 1 << 8, 1 << 16
"""Slots of a bucket's table before it grows."""

AHEAD = 16
"""Prefetch distance in items of a stream."""

_K1, _K2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_1, _32 = np.uint64(1), np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
_UNUSED = np.uint64(0x1F9B169DEF102DCA)
"""Hash of a pair of two separators, which is never counted; XORed with it, no hash is 0."""


@njit(inline="always")
def hash_pair(left: int, right: int) -> Any:
    """Hash a pair to 64 bits, bijectively."""
    h = ((nb.uint64(left) << _32) | nb.uint64(right)) * _K1
    h = (h ^ (h >> _32)) * _K2
    return h ^ (h >> _32)


@njit(inline="always")
def bucket_of(h: int, bits: int) -> Any:
    """Return the bucket of a hash, its upper ``bits`` bits, at most 32."""
    return (h >> _32) >> nb.uint64(32 - bits)


@inner
def list_alive(state: UInt8, block: int, places: Any) -> Any:
    """List the alive positions of a block; return their number."""
    many = 0
    for i in range(8 * block, 8 * block + 8):
        places[many] = i
        many += nb.int64(state[i] != DEAD)  # a branch would be unpredictable
    return many


@polled
@njit
def measure(sequence: UInt32, state: UInt8, blocks: UInt64, first: int, stop: int, bits: int, sizes: Int64) -> None:
    """Count the alive positions of blocks by bucket of their pair; ``sizes``, by bucket, is initially zero."""
    began = interrupts()
    places = np.empty(8, np.uint64)
    for block in range(first, stop):
        if block & 0x3FFF == 0 and interrupts() != began:
            return
        if blocks[block] == 0:
            continue
        for k in range(list_alive(state, block, places)):
            i = places[k]
            sizes[bucket_of(hash_pair(sequence[i], sequence[i + _1]), bits)] += 1


@polled
@njit
def scatter(
    sequence: UInt32,
    state: UInt8,
    blocks: UInt64,
    first: int,
    stop: int,
    bits: int,
    starts: UInt64,
    items: UInt64,
) -> None:
    """Write the hashes of blocks' pairs to ``items``, those of each bucket from its start on, in order of position."""
    began = interrupts()
    places = np.empty(8, np.uint64)
    free = starts.copy()
    for block in range(first, stop):
        if block & 0x3FFF == 0 and interrupts() != began:
            return
        if blocks[block] == 0:
            continue
        for k in range(list_alive(state, block, places)):
            i = places[k]
            h = hash_pair(sequence[i], sequence[i + _1])
            bucket = bucket_of(h, bits)
            items[free[bucket]] = h
            free[bucket] += _1


@polled
@njit
def count(items: UInt64, edges: Int64, table: UInt64, free: UInt64) -> None:
    """Count the pairs of buckets; replace each hash by ``count << 32 | entry``, or 0 if its pair occurs once.

    Bucket b has the items from ``edges[b]`` to ``edges[b + 1]``. Repeated pairs get consecutive entries of ``table``,
    from ``free`` on, and one more entry per bucket stays unused.
    """
    began = interrupts()
    slots, tallies = np.empty(FEWEST_SLOTS, np.uint64), np.empty(FEWEST_SLOTS, np.uint32)
    for bucket in range(len(edges) - 1):
        first, stop = edges[bucket], edges[bucket + 1]
        if first == stop:
            continue
        size = FEWEST_SLOTS
        while size < min(stop - first, MOST_SLOTS):
            size *= 2
        counted = False
        while not counted:
            if interrupts() != began:
                return
            if size > len(slots):
                slots, tallies = np.empty(size, np.uint64), np.empty(size, np.uint32)
            counted = _count_bucket(items[first:stop], slots[:size], tallies[:size])
            size *= 2
        _enter(items[first:stop], slots[: size // 2], tallies[: size // 2], table, free)


@njit
def _count_bucket(items: Any, slots: Any, tallies: Any) -> bool:
    """Replace each hash by its slot; return false, with the hashes unchanged, if there are too few slots."""
    slots[:] = 0
    tallies[:] = 0
    mask = nb.uint64(len(slots) - 1)
    room = len(slots) - len(slots) // 4
    last = len(items) - 1
    pairs = 0
    for k in range(len(items)):
        prefetch(slots, nb.int64(items[min(k + AHEAD, last)] & mask))
        key = items[k] ^ _UNUSED
        s = items[k] & mask
        while (slots[s] != key) & (slots[s] != 0):
            s = (s + nb.uint64(1)) & mask
        pairs += slots[s] == 0  # without a branch, as most hashes' novelty is unpredictable
        slots[s] = key
        tallies[s] += nb.uint32(1)
        items[k] = s
        if pairs > room:
            for j in range(k + 1):
                items[j] = slots[items[j]] ^ _UNUSED
            return False
    return True


@njit
def _enter(items: Any, slots: Any, tallies: Any, table: Any, free: Any) -> None:
    """Make entries of a bucket's repeated pairs; replace each slot by ``count << 32 | entry``, or 0."""
    repeated = 0
    for s in range(len(slots)):
        repeated += tallies[s] >= 2
    entry = nb.int64(atomic_add(free, 0, nb.uint64(repeated + 1)))
    for s in range(len(slots)):
        table[FIELDS * entry + TALLY] = tallies[s]
        table[FIELDS * entry + PLACE] = NONE
        repeats = tallies[s] >= 2
        slots[s] = ((nb.uint64(tallies[s]) << _32) | nb.uint64(entry)) * nb.uint64(repeats)
        entry += repeats
    table[FIELDS * entry + TALLY] = 0
    table[FIELDS * entry + PLACE] = NONE
    for k in range(len(items)):
        items[k] = slots[items[k]]
