"""Numbers the words of several vocabularies: hashes them in parallel, and compares bytes on equal hashes."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from polars_tadoc.kernels.host.records.merge_words import compare_words, word_bounds
from polars_tadoc.kernels.host.records.sort_keys import sort_with
from polars_tadoc.kernels.primitives.keyed_hash import keyed_more
from polars_tadoc.runtime.addresses import copy_bytes, load_u8, load_u32, load_u64, prefetch, prefetch_address
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.arrow_memory import allocate
from polars_tadoc.runtime.jit import inner, kernel
from polars_tadoc.runtime.parallel import even_chunks, map_parallel

HASH_BITS = 43
"""Bits of the hashes, which are sorted in five passes. For 3 million words, a collision has a probability of one
half."""

AHEAD = 16
"""Distance of prefetching words' bytes."""

SEED = np.uint64(secrets.randbits(64))
"""Random, so that words cannot be crafted to collide. Numbers do not depend on it."""

_K1 = np.uint64(0x9E3779B97F4A7C15)
_1, _2, _4, _8, _16, _32 = (np.uint64(number) for number in (1, 2, 4, 8, 16, 32))


def number_words(
    parts: Sequence[pa.LargeStringArray], bits: int = HASH_BITS
) -> tuple[pa.LargeStringArray, list[UInt32]]:
    """Number distinct words by first appearance.

    Parameters
    ----------
    parts
        Vocabularies; words may repeat across and within them.
    bits
        Bits of the hashes.

    Returns
    -------
    (pyarrow.LargeStringArray, list of uint32 arrays)
        All distinct words, and by part the number of each of its words.

    """
    sizes = [len(part) for part in parts]
    # addresses of arrays that the caller keeps alive
    bounds = np.concatenate([np.zeros(0, np.uint64), *map(word_bounds, parts)])
    firsts = np.cumsum([0, *(size + 1 for size in sizes)])[:-1]  # each part has one bound more than words
    places = np.concatenate(
        [np.zeros(0, np.uint64), *(np.arange(a, a + n, dtype=np.uint64) for a, n in zip(firsts, sizes, strict=True))]
    )
    hashes, shift = np.empty(len(places), np.uint64), np.uint64(64 - bits)
    chunks = even_chunks(len(places))
    map_parallel(lambda chunk: _hash_words(bounds, places, SEED, shift, hashes, *chunk), chunks)
    hashes, order = sort_with(hashes, places)
    equals = np.empty(len(bounds), np.uint64)
    map_parallel(lambda chunk: _find_equal(bounds, hashes, order, equals, *chunk), chunks)
    is_new = np.zeros(len(bounds), np.bool_)
    is_new[places] = equals[places] == places
    numbers = np.cumsum(is_new, dtype=np.uint32) - np.uint32(1)
    made = np.empty(len(bounds), np.uint32)
    map_parallel(lambda chunk: _number(numbers, equals, places, made, *chunk), chunks)
    maps = [made[first : first + size] for first, size in zip(firsts.tolist(), sizes, strict=True)]
    return _gather(bounds, np.flatnonzero(is_new)), maps


@kernel
def _hash_words(bounds: UInt64, places: UInt64, seed: Any, shift: Any, hashes: UInt64, first: int, stop: int) -> None:
    for i in range(first, stop):
        at, end = bounds[places[i]], bounds[places[i] + _1]
        h = seed ^ ((end - at) * _K1)
        while at + _8 <= end:
            h = keyed_more(h, load_u64(at))
            at += _8
        left = end - at
        tail = np.uint64(0)
        if left >= _4:
            tail = np.uint64(load_u32(at)) | np.uint64(load_u32(end - _4)) << _32
        elif left > np.uint64(0):
            middle = np.uint64(load_u8(at + left // _2))
            tail = np.uint64(load_u8(at)) | middle << _8 | np.uint64(load_u8(end - _1)) << _16
        hashes[i] = keyed_more(keyed_more(h, tail), seed) >> shift


@kernel
def _find_equal(bounds: UInt64, hashes: UInt64, order: UInt64, equals: UInt64, first: int, stop: int) -> None:
    """Find the first equal word of each; words with one hash are adjacent, in order of position."""
    many = len(hashes)
    while 0 < first < stop and hashes[first] == hashes[first - 1]:  # of the previous chunk
        first += 1
    start = first
    while start < stop:
        end = start + 1
        while end < many and hashes[end] == hashes[start]:
            end += 1
        prefetch(bounds, np.int64(order[min(start + AHEAD, many - 1)]))
        prefetch_address(bounds[order[min(start + AHEAD // 2, many - 1)]])
        for k in range(start, end):
            word = order[k]
            found = word
            for other in range(start, k):
                seen = order[other]
                if equals[seen] == seen and _same(bounds, seen, word):
                    found = seen
                    break
            equals[word] = found
        start = end


@inner
def _same(bounds: UInt64, a: Any, b: Any) -> Any:
    size = bounds[a + _1] - bounds[a]
    if size != bounds[b + _1] - bounds[b]:
        return False
    return compare_words(bounds[a], bounds[a + _1], bounds[b], bounds[b + _1]) == 0


@kernel
def _number(numbers: UInt32, equals: UInt64, places: UInt64, made: UInt32, first: int, stop: int) -> None:
    for i in range(first, stop):
        made[places[i]] = numbers[equals[places[i]]]


def _gather(bounds: UInt64, places: Int64) -> pa.LargeStringArray:
    """Copy the words at some positions."""
    offsets_buffer, offsets = allocate(len(places) + 1, np.int64)
    offsets[0] = 0
    np.cumsum(bounds[places + 1] - bounds[places], out=offsets[1:].view(np.uint64))
    data_buffer, data = allocate(int(offsets[-1]), np.uint8)
    target = np.uint64(data.ctypes.data)
    map_parallel(lambda chunk: _copy_words(bounds, places, offsets, target, *chunk), even_chunks(len(places)))
    return pa.Array.from_buffers(pa.large_string(), len(places), [None, offsets_buffer, data_buffer])


@kernel
def _copy_words(bounds: UInt64, places: Int64, offsets: Int64, target: Any, first: int, stop: int) -> None:
    for i in range(first, stop):
        copy_bytes(target + np.uint64(offsets[i]), bounds[places[i]], np.uint64(offsets[i + 1] - offsets[i]))
