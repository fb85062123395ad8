"""Numbers the distinct byte strings on the device: by descending count, or in code point order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from polars_tadoc.kernels.primitives.primitives_cuda import radix_sort
from polars_tadoc.runtime.array_types import array_dataclass
from polars_tadoc.runtime.arrow_memory import allocate
from polars_tadoc.runtime.device import device_attribute, launch, launch_each

_THREADS = 512  # of intern.cu
_MIN_SLOTS = 1 << 10
_MAX_SLOTS = 1 << 31
_STRINGS_PER_SLOT = 4  # initial estimate for natural text: one string in eight may be new
_GROWTH = 8
_DEVICE_ROUNDS = 16  # rounds that compare seven bytes each; remaining ties are sorted on the host

hash_defines: tuple[str, ...] = ()
"""Macros for compiling intern.cu; tests make hashes collide."""


@array_dataclass
class Interned:
    """Distinct strings and the number of each string."""

    distinct: pa.LargeStringArray
    """In the order of their numbers."""
    ids: Any
    """cupy uint32 by string; 0xFFFFFFFF for skipped strings."""


@array_dataclass
class _Table:
    """Strings in a hash table of 64-bit slots."""

    slots: Any
    slot_counts: Any
    """None if not requested."""
    string_slots: Any
    entries: Any
    """Used slots, unsorted."""


def intern(text: Any, starts: Any, stops: Any, *, leave_empty_out: bool, by_count: bool = True) -> Interned:
    """Number the strings ``text[starts[i]:stops[i]]``: by descending count, then code point order.

    Equal hashes are resolved by comparing bytes, so the result never depends on hashes.

    Parameters
    ----------
    text
        cupy uint8 with :data:`~.upload.PADDING` bytes after the last string.
    starts, stops
        cupy uint32, less than 2^30 strings.
    leave_empty_out
        Empty strings get no number.
    by_count
        False: number them in code point order.

    """
    import cupy

    if len(starts) == 0:
        return Interned(pa.nulls(0, pa.large_string()), cupy.empty(0, np.uint32))
    table = _fill_table(text, starts, stops, leave_empty_out, by_count)
    count = len(table.entries)
    falling = cupy.empty(len(table.entries), np.uint32) if by_count else None
    entry_starts, entry_stops = (cupy.empty(len(table.entries), np.uint32) for _ in range(2))
    launch_each(
        *("intern", "describe_entries", len(table.entries), table.entries, count, table.slots, table.slot_counts),
        *(starts, stops, falling, entry_starts, entry_stops),
    )
    slot_ids, distinct = number_strings(text, table.entries, entry_starts, entry_stops, len(table.slots), falling)
    ids = cupy.empty(len(starts), np.uint32)
    launch_each("intern", "map_slots", len(starts), table.string_slots, len(starts), slot_ids, ids)
    return Interned(distinct, ids)


def number_strings(
    text: Any, slots: Any, starts: Any, stops: Any, slot_count: int, falling: Any = None
) -> tuple[Any, pa.LargeStringArray]:
    """Number distinct strings in sorted order (see :func:`order_strings`).

    Parameters
    ----------
    text, starts, stops
        As for :func:`intern`.
    slots
        cupy uint32: a slot for each string, below ``slot_count``.
    slot_count
        Number of slots.
    falling
        Primary sort key, if any.

    Returns
    -------
    (cupy uint32, pyarrow.LargeStringArray)
        Number by slot, undefined for unused slots; the strings by number.

    """
    import cupy

    order, count = order_strings(text, starts, stops, falling), len(slots)
    slot_ids, lengths = cupy.empty(slot_count, np.uint32), cupy.empty(len(slots), np.uint64)
    launch_each("intern", "number_entries", len(slots), order, count, slots, starts, stops, slot_ids, lengths)
    return slot_ids, copy_strings(text, starts, order, lengths)


def _fill_table(text: Any, starts: Any, stops: Any, leave_empty_out: bool, by_count: bool) -> _Table:
    import cupy

    strings = len(starts)
    capacity = max(_MIN_SLOTS, 1 << (strings // _STRINGS_PER_SLOT).bit_length())
    blocks = min(-(-strings // _THREADS), 4 * device_attribute("MultiProcessorCount"))
    while True:
        limit = capacity // 2
        slots = cupy.zeros(capacity, np.uint64)
        slot_counts = cupy.zeros(capacity, np.uint32) if by_count else None
        string_slots, entries = cupy.empty(strings, np.uint32), cupy.empty(min(limit, strings), np.uint32)
        taken = cupy.zeros(1, np.uint32)
        launch(
            *("intern", "intern", blocks, _THREADS, text, starts, stops, strings, leave_empty_out, slots, capacity - 1),
            *(limit, string_slots, slot_counts, entries, taken),
            defines=hash_defines,
        )
        distinct = int(taken[0])  # synchronize!
        if distinct <= limit:
            return _Table(slots, slot_counts, string_slots, entries[:distinct])
        capacity = min(_GROWTH * capacity, _MAX_SLOTS)


def order_strings(text: Any, starts: Any, stops: Any, falling: Any = None) -> Any:
    """Sort strings by ``falling``, if given, then by bytes; returns cupy uint32, with equal strings adjacent.

    Each round sorts by seven more bytes. The remaining ties are usually few and sorted by comparison; only if there are
    too many, another round follows for them.
    """
    import cupy

    order = cupy.empty(len(starts), np.uint32)
    members = places = cupy.arange(len(starts), dtype=np.uint32)
    group = cupy.zeros(len(starts), np.uint32) if falling is None else falling
    for round_ in range(_DEVICE_ROUNDS):
        keys, count, depth = cupy.empty(len(members), np.uint64), len(members), 7 * round_
        launch_each("intern", "order_keys", len(members), text, starts, stops, members, count, depth, keys)
        keys, sorted_ = radix_sort(keys, cupy.arange(len(members), dtype=np.uint32), overwrite=True)
        if falling is not None or round_ > 0:  # groups stay in the order of the keys
            group, by_group = radix_sort(group[sorted_], cupy.arange(len(members), dtype=np.uint32), overwrite=True)
            keys, sorted_ = keys[by_group], sorted_[by_group]
        members = members[sorted_]
        unfinished = cupy.zeros(1, np.uint32)
        launch_each(
            *("intern", "place_ties", 32 * len(members), text, starts, stops, members, group, keys, count, depth + 7),
            *(places, order, unfinished),
        )
        if not int(unfinished[0]):  # synchronize!
            return order
        tied = cupy.zeros(len(members) + 1, np.bool_)
        tied[1:-1] = (keys[1:] == keys[:-1]) & (group[1:] == group[:-1]) & (keys[1:] & np.uint64(0xFF) == np.uint64(8))
        kept = cupy.flatnonzero(tied[1:] | tied[:-1])  # synchronize!
        group = cupy.cumsum(~tied[:-1], dtype=np.uint32)[kept]
        members, places = members[kept], places[kept]
    lengths = (stops[members] - starts[members]).astype(np.uint64)
    strings = copy_strings(text, starts, members, lengths).cast(pa.large_binary()).to_pylist()
    groups = group.get().tolist()  # synchronize!
    by_bytes = np.array(sorted(range(len(members)), key=lambda i: (groups[i], strings[i])), np.int64)
    order[places] = members[cupy.asarray(by_bytes)]
    return order


def copy_strings(text: Any, starts: Any, order: Any, lengths: Any) -> pa.LargeStringArray:
    """Copy strings, in an order with these lengths, to host memory owned by Arrow."""
    import cupy

    stops = cupy.cumsum(lengths)
    offset_buffer, offsets = allocate(len(order) + 1, np.int64)
    offsets[0] = 0
    stops.view(np.int64).get(out=offsets[1:])  # synchronize!
    copy = cupy.empty(int(offsets[-1]), np.uint8)
    launch_each("intern", "copy_entries", 32 * len(order), text, order, len(order), starts, stops, copy)
    data_buffer, data = allocate(len(copy), np.uint8)
    if len(copy):
        copy.get(out=data)  # synchronize!
    return pa.LargeStringArray.from_buffers(len(order), offset_buffer, data_buffer)
