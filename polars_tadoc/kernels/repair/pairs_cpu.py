"""Counts the pairs of one round of batch RePair exactly, in tables that fit a core's cache.

Work is split twice. First by *position*: a thread scans its share of the sequence and writes the hash of each pair to
one of P buckets, selected by the hash's upper bits. Then by *pair*: the thread that takes a bucket counts its pairs in
a table that no other thread touches, and replaces each hash by its pair's entry. Last, each thread scans its share
again in the same order and reads the entries. All accesses are sequential except those to one bucket's table (as in a
radix-partitioned hash join: Manegold, Boncz and Kersten, 2002).
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.runtime.addresses import atomic_add, prefetch
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.jit import inner

DEAD, ALIVE, SELECTED = 0, 1, 2
"""State of a position: whether the pair that starts there may still occur twice, or is to be replaced."""

NONE = 0xFFFFFFFF
"""Slot of a position whose pair has no entry (yet); rule of an entry without one."""

FIELDS = 2
HASH, TALLY = range(FIELDS)
"""An entry: the pair's hash, which identifies the pair, and its occurrences (lower half) and selections (upper)."""

RUN = 1 << 10
"""Entries that a bucket reserves in the common table at a time."""

ALL, REPEATED, KNOWN = 0, 1, 2
"""Pairs that get an entry: all; those seen before; only those that already have one."""

PROGRESS = 5
NEXT, LAST, ENTRIES, SHARE, PLACE = range(PROGRESS)
"""State of a bucket: its next free entry, the end of its reserved range, its number of entries, and its progress."""

BUCKETS = 128
"""Maximum number of buckets; one bucket's table fits in a core's cache."""

AHEAD = 16
"""Prefetch distance in items of a stream."""

_K1, _K2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_I1, _I2 = (np.uint64(pow(int(k), -1, 1 << 64)) for k in (_K1, _K2))
_32 = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@njit(inline="always")
def hash_pair(left: int, right: int) -> Any:
    """Hash a pair to 64 bits, bijectively."""
    h = ((nb.uint64(left) << _32) | nb.uint64(right)) * _K1
    h = (h ^ (h >> _32)) * _K2
    return h ^ (h >> _32)


@njit(inline="always")
def pair_of(h: int) -> Any:
    """Invert :func:`hash_pair`."""
    x = (nb.uint64(h) ^ (nb.uint64(h) >> _32)) * _I2
    x = (x ^ (x >> _32)) * _I1
    return nb.uint32(x >> _32), nb.uint32(x & _LOW)


@inner
def _list_places(state: UInt8, slots: UInt32, waiting: bool, block: int, places: Any) -> Any:
    """List the alive positions of a block, or those that wait for an entry; return their number."""
    many = 0
    for i in range(8 * block, 8 * block + 8):
        places[many] = i
        # a branch would be unpredictable
        many += nb.int64((state[i] != DEAD) & ((not waiting) | (slots[i] == NONE)))
    return many


@njit
def scatter(
    sequence: UInt32,
    state: UInt8,
    blocks: UInt64,
    slots: UInt32,
    waiting: bool,
    first: int,
    stop: int,
    hashes: UInt64,
    filled: Int64,
    bucket_of: UInt8,
) -> int:
    """Write pairs of blocks from ``first`` to buckets until one is full; return the next block.

    ``hashes`` has the buckets one after another, ``filled`` the number of entries in each, ``bucket_of`` the bucket of
    each position in scan order.
    """
    buckets = len(filled)
    capacity = len(hashes) // buckets
    mask = buckets - 1
    places = np.empty(8, np.int64)
    filled[:] = 0
    out = 0
    for block in range(first, stop):
        if blocks[block] == 0:
            continue
        many = _list_places(state, slots, waiting, block, places)
        full = False
        for k in range(many):
            i = places[k]
            h = hash_pair(sequence[i], sequence[i + 1])
            bucket = nb.int64(h >> nb.uint64(56)) & mask
            at = filled[bucket]
            hashes[capacity * bucket + at] = h
            prefetch(hashes, capacity * bucket + at + AHEAD)  # more streams than the hardware prefetches
            filled[bucket] = at + 1
            bucket_of[out] = bucket
            out += 1
            full |= at + 9 > capacity  # the next block may add eight
        if full:
            return block + 1
    return stop


@njit
def count(
    hashes: Any,
    filled: Any,
    first_bucket: int,
    which: int,
    seen: Any,
    index: Any,
    progress: Any,
    table: UInt64,
    first_place: UInt32,
    free: UInt64,
) -> bool:
    """Count the pairs of buckets from ``first_bucket``; each hash is replaced by its pair's entry, or ``NONE``.

    Pairs that get an entry: ``ALL``; ``REPEATED``: those whose bit in ``seen`` is already set (most pairs of natural
    text occur once); ``KNOWN``: no new ones. Each bucket has a row of ``seen``, ``index`` and ``progress``. Returns
    whether ``index`` is too small: then another call continues with a larger one (:func:`fill_index`).
    """
    shares, capacity = len(filled), hashes.shape[1] // filled.shape[1]
    mask = index.shape[1] - 1
    room = index.shape[1] - index.shape[1] // 4
    seen_mask = nb.uint64(64 * seen.shape[1] - 1)
    most = hashes.shape[1] - 1
    for own in range(len(index)):
        own_index, own_seen, at = index[own], seen[own], progress[own]
        bucket = first_bucket + own
        base = capacity * bucket
        while at[SHARE] < shares:
            share = at[SHARE]
            for k in range(at[PLACE], filled[share, bucket]):
                h = hashes[share, base + k]
                prefetch(own_index, nb.int64(hashes[share, min(base + k + AHEAD, most)] & nb.uint64(mask)))
                soon = own_index[nb.int64(hashes[share, min(base + k + AHEAD // 2, most)] & nb.uint64(mask))]
                prefetch(table, FIELDS * (nb.int64(soon) - 1))
                s = nb.int64(h & nb.uint64(mask))
                while True:
                    entry = nb.int64(own_index[s]) - 1
                    if entry < 0 or table[FIELDS * entry + HASH] == h:
                        break
                    s = (s + 1) & mask
                if entry < 0:
                    if which == REPEATED:
                        bit = (h >> nb.uint64(12)) & seen_mask
                        word = nb.int64(bit >> nb.uint64(6))
                        flag = nb.uint64(1) << (bit & nb.uint64(63))
                        known = own_seen[word] & flag
                        if known == 0:
                            own_seen[word] |= flag
                            hashes[share, base + k] = NONE
                            continue
                    elif which == KNOWN:
                        hashes[share, base + k] = NONE
                        continue
                    if at[ENTRIES] == room:
                        at[PLACE] = k
                        return True
                    if at[NEXT] == at[LAST]:
                        start = nb.int64(atomic_add(free, 0, nb.uint64(RUN)))
                        at[NEXT], at[LAST] = start, start + RUN
                        for e in range(start, start + RUN):
                            table[FIELDS * e + TALLY] = 0
                    entry = at[NEXT]
                    at[NEXT] += 1
                    at[ENTRIES] += 1
                    table[FIELDS * entry + HASH] = h
                    first_place[entry] = NONE
                    own_index[s] = entry + 1
                table[FIELDS * entry + TALLY] += nb.uint64(1)
                hashes[share, base + k] = entry
            at[SHARE] += 1
            at[PLACE] = 0
    return False


@njit
def fill_index(old: Any, table: UInt64, index: Any) -> None:
    """Insert an index's entries into an empty, larger one."""
    mask = index.shape[1] - 1
    for bucket in range(len(old)):
        for place in range(old.shape[1]):
            if old[bucket, place] != 0:
                s = nb.int64(table[FIELDS * (nb.int64(old[bucket, place]) - 1) + HASH] & nb.uint64(mask))
                while index[bucket, s] != 0:
                    s = (s + 1) & mask
                index[bucket, s] = old[bucket, place]


@njit
def gather(
    state: UInt8,
    blocks: UInt64,
    slots: UInt32,
    waiting: bool,
    first: int,
    stop: int,
    entries: UInt64,
    buckets: int,
    bucket_of: UInt8,
) -> None:
    """Read each position's entry, in the order in which :func:`scatter` wrote them.

    Positions that still have none after waiting become dead.
    """
    capacity = len(entries) // buckets
    taken = np.zeros(buckets, np.int64)
    places = np.empty(8, np.int64)
    out = 0
    for block in range(first, stop):
        if blocks[block] == 0:
            continue
        many = _list_places(state, slots, waiting, block, places)
        for k in range(many):
            i = places[k]
            bucket = nb.int64(bucket_of[out])
            out += 1
            at = capacity * bucket + taken[bucket]
            prefetch(entries, at + AHEAD)
            entry = entries[at]
            taken[bucket] += 1
            slots[i] = entry
            if waiting and entry == NONE:
                state[i] = DEAD
