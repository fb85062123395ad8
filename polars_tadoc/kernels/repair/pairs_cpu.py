"""Counts the pairs of one round of batch RePair exactly, in tables that fit a core's cache.

Work is split twice. First by *position*: a thread scans its share of the sequence and writes each pair to one of P
buckets, so that a bucket and a key of 32 bits identify it, unless a grammar has millions of symbols; pairs are counted
by bucket first, so that each is written to its final place. Then by *pair*: the thread that takes a bucket counts its
pairs in a table that no other thread touches, and replaces each key by its pair's count and entry. Whoever scans the
sequence again in the same order reads them: all accesses are sequential except those to one bucket's table (as in a
radix-partitioned hash join: Manegold, Boncz and Kersten, 2002).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from polars_tadoc.kernels.repair.equal_rows_cpu import weight_of
from polars_tadoc.runtime.addresses import atomic_add, prefetch
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import inner
from polars_tadoc.runtime.secret import first_secret

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


class Split(NamedTuple):
    """How a round splits pairs of symbols into a bucket and a key, its lower bits."""

    symbol_bits: np.uint64
    key_bits: np.uint64
    keys: np.uint64
    """All bits of a key."""
    shift: np.uint64
    """From the upper 63 bits of a hash to as many as a bucket has."""

    @classmethod
    def of(cls, symbols: int, bits: int) -> Split:
        """Split pairs of numbers below ``symbols`` into two to the power of ``bits`` buckets."""
        width = max(symbols.bit_length(), (bits + 1) // 2)
        key_bits = 2 * width - bits
        return cls(*(np.uint64(number) for number in (width, key_bits, (1 << key_bits) - 1, 63 - bits)))


@njit(inline="always")
def hash_pair(left: int, right: int) -> Any:
    """Hash a pair to 64 bits, bijectively."""
    h = ((nb.uint64(left) << _32) | nb.uint64(right)) * _K1
    h = (h ^ (h >> _32)) * _K2
    return h ^ (h >> _32)


@njit(inline="always")
def key_and_bucket(left: int, right: int, split: Split) -> Any:
    """Return a pair's key, its lower bits, and its bucket: the other bits, mixed with the key's hash."""
    pair = (nb.uint64(left) << split.symbol_bits) | nb.uint64(right)
    key = pair & split.keys
    # twice, as a shift by 64 bits is undefined
    return key, (pair >> split.key_bits) ^ ((key * _K1) >> _1 >> split.shift)


@njit(inline="always")
def slot_of(key: int, mask: int) -> Any:
    """Return the first slot of a key, which differs between processes: no text can have pairs that share one."""
    return ((nb.uint64(key) * first_secret()) >> _32) & mask


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
def measure(sequence: UInt32, state: UInt8, blocks: UInt64, first: int, stop: int, split: Split, sizes: Int64) -> None:
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
            sizes[key_and_bucket(sequence[i], sequence[i + _1], split)[1]] += 1


@polled
@njit
def scatter(
    sequence: UInt32,
    state: UInt8,
    blocks: UInt64,
    first: int,
    stop: int,
    split: Split,
    starts: UInt64,
    items: Any,
    classes: UInt8,
    item_classes: UInt8,
) -> None:
    """Write the keys of blocks' pairs to ``items``, those of each bucket from its start on, in order of position.

    ``item_classes`` gets the ``classes`` of their rows' weights, unless these are empty: all weights are 1.
    """
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
            key, bucket = key_and_bucket(sequence[i], sequence[i + _1], split)
            place = free[bucket]
            items[place] = key
            if len(classes) > 0:
                item_classes[place] = classes[i]
            free[bucket] = place + _1


@polled
@njit
def count(
    items: Any, classes: UInt8, edges: Int64, entry_bits: int, table: UInt64, free: UInt64, bases: UInt64
) -> None:
    """Count the pairs of buckets; replace each key by its pair's count and entry, or 0 if it occurs once.

    An item is ``count << entry_bits | entry``, its entry being counted from the bucket's first, which ``bases`` gets.
    Counts that need more bits than a 32-bit item has are all ones; then the table has them. Bucket b has the items from
    ``edges[b]`` to ``edges[b + 1]``. Repeated pairs get consecutive entries of ``table``, from ``free`` on, and one
    more entry per bucket stays unused.
    """
    began = interrupts()
    slots, tallies = np.empty(FEWEST_SLOTS, items.dtype), np.empty(FEWEST_SLOTS, np.uint32)
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
                slots, tallies = np.empty(size, items.dtype), np.empty(size, np.uint32)
            own = classes[first:stop] if len(classes) > 0 else classes
            counted = _count_bucket(items[first:stop], own, slots[:size], tallies[:size])
            size *= 2
        bases[bucket] = _enter(items[first:stop], slots[: size // 2], tallies[: size // 2], entry_bits, table, free)


@njit
def _count_bucket(items: Any, classes: Any, slots: Any, tallies: Any) -> bool:
    """Replace each key by its slot; return false, with the keys unchanged, if there are too few slots."""
    tallies[:] = 0
    mask = nb.uint64(len(slots) - 1)
    room = len(slots) - len(slots) // 4
    last = len(items) - 1
    pairs = 0
    for k in range(len(items)):
        ahead = nb.int64(slot_of(items[min(k + AHEAD, last)], mask))
        prefetch(slots, ahead)
        prefetch(tallies, ahead)
        key = items[k]
        s = slot_of(key, mask)
        while (slots[s] != key) & (tallies[s] != 0):
            s = (s + _1) & mask
        pairs += tallies[s] == 0  # without a branch, as most pairs' novelty is unpredictable
        slots[s] = key
        tallies[s] += nb.uint32(weight_of(classes[k])) if len(classes) > 0 else nb.uint32(1)
        items[k] = s
        if pairs > room:
            for j in range(k + 1):
                items[j] = slots[items[j]]
            return False
    return True


@njit
def _enter(items: Any, slots: Any, tallies: Any, entry_bits: int, table: Any, free: Any) -> Any:
    """Make entries of a bucket's repeated pairs; replace each slot by what :func:`count` says; return the first."""
    repeated = 0
    for s in range(len(slots)):
        repeated += tallies[s] >= 2
    base = nb.int64(atomic_add(free, 0, nb.uint64(repeated + 1)))
    entry = base
    most = full_count(entry_bits)
    for s in range(len(slots)):
        table[FIELDS * entry + TALLY] = tallies[s]
        table[FIELDS * entry + PLACE] = NONE
        repeats = tallies[s] >= 2
        item = (min(nb.uint64(tallies[s]), most) << nb.uint64(entry_bits)) | nb.uint64(entry - base)
        slots[s] = item * nb.uint64(repeats)
        entry += repeats
    table[FIELDS * entry + TALLY] = 0
    table[FIELDS * entry + PLACE] = NONE
    for k in range(len(items)):
        items[k] = slots[items[k]]
    return base


@njit(inline="always")
def full_count(entry_bits: int) -> Any:
    """Return the count in an item whose real count is in the table."""
    return (_1 << nb.uint64(32 - entry_bits)) - _1
