"""Sorts keys of one or more 64-bit limbs: distributes them by the highest digit, then sorts each bucket in cache.

Indices are unsigned: indices that may be negative cost a comparison and a select at each use.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.keys.key_buckets_cpu import NOTHING, spread_by
from polars_tadoc.runtime.array_types import Int64, UInt64
from polars_tadoc.runtime.jit import inner, kernel
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks

BUCKET_BITS = 11
"""Bits of the first digit: as many write streams as the processor can track."""

FEW = 24
"""Buckets of at most this many keys use insertion sort."""

_0, _1, _8, _255, _FEW = (np.uint64(number) for number in (0, 1, 8, 255, FEW))


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
    new = (keys[:, 1:] != keys[:, :-1]).any(axis=0) if len(keys) > 1 else keys[0, 1:] != keys[0, :-1]
    if new.all():
        return keys, counts
    firsts = np.flatnonzero(np.append(True, new))
    added = None if counts is None else np.add.reduceat(counts, firsts)
    return np.ascontiguousarray(keys[:, firsts]), added


def sort_with(keys: UInt64, payload: UInt64 | None) -> tuple[UInt64, UInt64]:
    """Sort keys with a payload; stable."""
    many = len(keys)
    bits = int(keys.max()).bit_length() if many else 0
    shift = max(0, bits - BUCKET_BITS)
    buckets = (1 << (bits - shift)) if many else 1
    spread = spread_by(keys, NOTHING if payload is None else payload, buckets, shift)
    made, made_payload, offsets = spread.keys, spread.weights, spread.offsets
    largest = int(np.diff(offsets).max(initial=0))

    def sort(chunk: tuple[int, int]) -> None:
        spare = np.empty(largest, np.uint64)
        spare_payload = np.empty(largest if payload is not None else 0, np.uint64)
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
