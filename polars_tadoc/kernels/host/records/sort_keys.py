"""Sorts keys of one or more 64-bit limbs: distributes them by the highest digit, then sorts each bucket in cache.

Indices are unsigned: indices that may be negative cost a comparison and a select at each use.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from polars_tadoc.kernels.keys.key_buckets_cpu import NOTHING, Room, Shares, spread_by
from polars_tadoc.runtime.addresses import load_u64
from polars_tadoc.runtime.array_types import Int64, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import inner, kernel, polled_kernel
from polars_tadoc.runtime.parallel import even_chunks, map_parallel, weighted_chunks
from polars_tadoc.runtime.scratch import scratch

BUCKET_BITS = 11
"""Bits of the first digit: as many write streams as the processor can track."""

FEW = 24
"""Buckets of at most this many keys use insertion sort."""

SAMPLES = 64
"""Keys per thread that are read to cut runs into parts of about equal size."""

_MAX = (1 << 64) - 1
_0, _1, _8, _255, _FEW = (np.uint64(number) for number in (0, 1, 8, 255, FEW))


Merged = tuple[UInt64, UInt64, list[tuple[int, int]]]
"""Keys, counts, and the ranges of these arrays that hold results."""


def sort_keys(limbs: UInt64, counts: UInt64 | None) -> tuple[UInt64, UInt64 | None]:
    """Sort keys; the counts of equal keys are added.

    Parameters
    ----------
    limbs
        uint64[limbs, keys], the most significant limb first.
    counts
        uint64 by key, or None.

    Returns
    -------
    (uint64[limbs, distinct], uint64 array or None)
        Ascending keys, and their counts.

    """
    if len(limbs) == 1:
        first, payload = sort_with(limbs[0], counts)
        keys, counts = first[None], None if counts is None else payload
    else:
        order = np.arange(limbs.shape[1], dtype=np.uint64)
        for limb in limbs[::-1]:
            order = sort_with(limb[order], order)[1]
        keys, counts = limbs[:, order], None if counts is None else counts[order]
    return _without_equal(keys, counts)


def _without_equal(keys: UInt64, counts: UInt64 | None) -> tuple[UInt64, UInt64 | None]:
    """Merge adjacent equal keys."""
    if keys.shape[1] == 0:
        return keys, counts
    if len(keys) == 1 and counts is not None:
        distinct, sums = sum_equal(keys[0], counts)
        return distinct[None], sums
    new = (keys[:, 1:] != keys[:, :-1]).any(axis=0) if len(keys) > 1 else keys[0, 1:] != keys[0, :-1]
    if new.all():
        return keys, counts
    firsts = np.flatnonzero(np.append(True, new))
    added = None if counts is None else np.add.reduceat(counts, firsts)
    return np.ascontiguousarray(keys[:, firsts]), added


def sum_equal(keys: UInt64, counts: UInt64 | None) -> tuple[UInt64, UInt64]:
    """Merge adjacent equal keys and add their counts; without counts, each key counts 1."""
    return joined_stretches(merge_sums(keys, counts))


def joined_stretches(merged: Merged) -> tuple[UInt64, UInt64]:
    """Concatenate the ranges."""
    made, sums, stretches = merged
    if len(stretches) == 1:
        return made[slice(*stretches[0])], sums[slice(*stretches[0])]
    own, added = ([array[slice(*stretch)] for stretch in stretches] for array in (made, sums))
    return np.concatenate(own), np.concatenate(added)


def merge_sums(keys: UInt64, counts: UInt64 | None, least: int = 0) -> Merged:
    """Add the counts of equal keys.

    Parameters
    ----------
    keys
        uint64, ascending.
    counts
        uint64 by key; None: 1 for each.
    least
        Minimum count of a key.

    Returns
    -------
    (uint64 array, uint64 array, list)
        Distinct keys, ascending, their counts, and the ranges of the arrays that hold them, one per thread.

    """
    own, bound = NOTHING if counts is None else counts, np.uint64(min(least, _MAX))
    chunks = chunks_between(keys)
    made, sums = scratch(len(keys), np.uint64), scratch(len(keys), np.uint64)

    def run(chunk: tuple[int, int]) -> tuple[int, int]:
        return chunk[0], int(_sum(keys, own, *chunk, bound, made, sums))

    return made, sums, map_parallel(run, chunks)


def chunks_between(keys: UInt64) -> list[tuple[int, int]]:
    """Split ascending keys into one chunk per thread; no two chunks share a key."""
    edges = [0, *(int(np.searchsorted(keys, keys[first])) for first, _ in even_chunks(len(keys))[1:]), len(keys)]
    return list(pairwise(edges))


@kernel
def _sum(keys: UInt64, counts: UInt64, first: int, stop: int, least: Any, made: UInt64, sums: UInt64) -> Any:
    """Write distinct keys and their sums from ``first`` on; return where they end."""
    i, end, out, counted = np.uint64(first), np.uint64(stop), np.uint64(first), len(counts) > 0
    while i < end:
        key, total = keys[i], _0
        while i < end and keys[i] == key:
            total += counts[i] if counted else _1
            i += _1
        made[out], sums[out] = key, total
        out += np.uint64(total >= least)
    return out


Run = tuple[UInt64, UInt64]
"""Distinct keys, ascending, and the count of each."""


def merge_runs(runs: list[Run], least: int = 0) -> Merged:
    """Merge any number of runs in one pass; the counts of equal keys are added.

    Parameters
    ----------
    runs
        At least one; not all are empty.
    least
        Minimum count of a key.

    Returns
    -------
    (uint64 array, uint64 array, list)
        As from :func:`merge_sums`.

    """
    first_keys = _between(runs)
    edges = np.array([[0, *np.searchsorted(keys, first_keys), len(keys)] for keys, _ in runs], np.int64)
    starts = edges.sum(axis=0)
    made, sums = scratch(starts[-1], np.uint64), scratch(starts[-1], np.uint64)
    addresses = np.array([[array.ctypes.data for array in run] for run in runs], np.uint64)
    bound = np.uint64(min(least, _MAX))

    def merge(k: int) -> tuple[int, int]:
        own = edges[:, k] < edges[:, k + 1]  # of one batch, runs are of one range each
        places, stops, heads = edges[own, k], edges[own, k + 1], np.empty(own.sum(), np.uint64)
        return int(starts[k]), int(_merge(addresses[own], places, stops, heads, bound, starts[k], made, sums))

    return made, sums, map_parallel(merge, range(len(starts) - 1))


def _between(runs: list[Run]) -> UInt64:
    """Return keys that cut all runs together into parts of about equal size, one per thread."""
    chunks = len(even_chunks(sum(len(keys) for keys, _ in runs)))
    step = max(1, sum(len(keys) for keys, _ in runs) // (SAMPLES * chunks))
    samples = np.sort(np.concatenate([keys[step // 2 :: step] for keys, _ in runs]))
    return samples[len(samples) * np.arange(1, chunks) // chunks]


@polled_kernel
def _merge(
    addresses: UInt64, places: Int64, stops: Int64, heads: UInt64, least: Any, at: int, made: UInt64, sums: UInt64
) -> Any:
    """Write distinct keys and their sums from ``at`` on; return where they end. ``heads``: the next key of each run."""
    for k in range(len(heads)):
        heads[k] = load_u64(addresses[k, 0] + _8 * np.uint64(places[k]))
    began, out, merged = interrupts(), np.uint64(at), _0
    while True:
        key, total, found = np.uint64(_MAX), _0, False
        for k in range(len(heads)):
            key = min(key, heads[k])
        for k in range(len(heads)):
            if heads[k] == key and places[k] < stops[k]:  # the largest key also marks an end
                found = True
                total += load_u64(addresses[k, 1] + _8 * np.uint64(places[k]))
                places[k] += 1
                if places[k] < stops[k]:
                    heads[k] = load_u64(addresses[k, 0] + _8 * np.uint64(places[k]))
                else:
                    heads[k] = np.uint64(_MAX)
        if not found:
            return out
        made[out], sums[out] = key, total
        out += np.uint64(total >= least)
        merged += _1
        if merged & np.uint64(0xFFFF) == 0 and interrupts() != began:
            return out


def sort_with(
    keys: UInt64,
    payload: UInt64 | None,
    bits: int | None = None,
    shares: Shares | None = None,
    room: Room | None = None,
) -> tuple[UInt64, UInt64]:
    """Sort keys with a payload; stable.

    Parameters
    ----------
    keys, payload
        uint64.
    bits
        Bits of the largest key, if known.
    shares
        Ranges of ``keys`` to sort; None: all.
    room
        Memory to sort into, which the result is part of; None: fresh memory.

    """
    many = len(keys)
    if bits is None:
        bits = int(keys.max()).bit_length() if many else 0
    shift = max(0, bits - BUCKET_BITS)
    buckets = (1 << (bits - shift)) if many else 1
    own = NOTHING if payload is None else payload
    made, made_payload, offsets = spread_by(keys, own, buckets, shift, shares, room)
    largest = int(np.diff(offsets).max(initial=0))

    def sort(chunk: tuple[int, int]) -> None:
        spare = scratch(largest, np.uint64)
        spare_payload = scratch(largest if payload is not None else 0, np.uint64)
        _sort_buckets(made, made_payload, offsets, *chunk, shift, spare, spare_payload, np.zeros(256, np.int64))

    if shift:
        map_parallel(sort, weighted_chunks(offsets))
    return made, made_payload


@inner
def _insert(keys: UInt64, payload: UInt64, start: Any, end: Any) -> None:
    """Sort a few keys by insertion sort."""
    carries = len(payload) > 0
    for i in range(start + _1, end):
        key, own = keys[i], payload[i] if carries else _0
        at = np.uint64(i)
        while at > start and keys[at - _1] > key:
            keys[at] = keys[at - _1]
            if carries:
                payload[at] = payload[at - _1]
            at -= _1
        keys[at] = key
        if carries:
            payload[at] = own


@inner
def _move(
    keys: UInt64,
    payload: UInt64,
    start: Any,
    many: Any,
    shift: Any,
    places: Int64,
    made: UInt64,
    made_payload: UInt64,
    to: Any,
) -> None:
    """Copy keys from ``start`` on to their positions after ``to``, by one digit."""
    carries = len(payload) > 0
    for k in range(start, start + many):
        digit = (keys[k] >> shift) & _255
        at = to + np.uint64(places[digit])
        places[digit] += 1
        made[at] = keys[k]
        if carries:
            made_payload[at] = payload[k]


@kernel
def _sort_buckets(
    keys: UInt64,
    payload: UInt64,
    offsets: Int64,
    first: int,
    stop: int,
    bits: int,
    spare: UInt64,
    spare_payload: UInt64,
    places: Int64,
) -> None:
    """Sort each bucket by its lowest ``bits`` bits."""
    for bucket in range(first, stop):
        start, end = np.uint64(offsets[bucket]), np.uint64(offsets[bucket + 1])
        many = end - start
        if many <= _FEW:
            _insert(keys, payload, start, end)
            continue
        shift = _0
        away = False  # whether the keys are in the spare arrays
        while shift < np.uint64(bits):
            for digit in range(256):
                places[digit] = 0
            for k in range(many):
                key = spare[k] if away else keys[start + k]
                places[(key >> shift) & _255] += 1
            key = spare[_0] if away else keys[start]
            if np.uint64(places[(key >> shift) & _255]) < many:  # otherwise all keys share this digit
                before = np.int64(0)
                for digit in range(256):
                    before, places[digit] = before + places[digit], before
                if away:
                    _move(spare, spare_payload, _0, many, shift, places, keys, payload, start)
                else:
                    _move(keys, payload, start, many, shift, places, spare, spare_payload, _0)
                away = not away
            shift += _8
        if away:
            for k in range(many):
                keys[start + k] = spare[k]
                if len(payload) > 0:
                    payload[start + k] = spare_payload[k]
