"""Merges sorted vocabularies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from polars_tadoc.runtime.addresses import byte_swapped, load_u8, load_u64
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.arrow_memory import lent
from polars_tadoc.runtime.jit import inner, kernel

MAX_WORDS = 1 << 32
"""Word numbers have 32 bits."""


def merge_words(parts: Sequence[pa.LargeStringArray]) -> tuple[pa.LargeStringArray, list[UInt32 | None]]:
    """Merge words in code point order, two vocabularies at a time.

    Parameters
    ----------
    parts
        Distinct words in code point order.

    Returns
    -------
    (pyarrow.LargeStringArray, list of uint32 arrays)
        All distinct words in code point order, and by part the new number of each of its words, ascending; None if the
        numbers stay the same.

    """
    if len(parts) == 1:
        return parts[0], [None]
    if len(parts) == 2:
        return _merge_two(*parts)
    half = len(parts) // 2
    left, left_maps = merge_words(parts[:half])
    right, right_maps = merge_words(parts[half:])
    words, (of_left, of_right) = _merge_two(left, right)
    maps = [_then(own, of_left) for own in left_maps] + [_then(own, of_right) for own in right_maps]
    return words, maps


def _then(first: UInt32 | None, second: UInt32 | None) -> UInt32 | None:
    if first is None or second is None:
        return second if first is None else first
    return second[first]


def _merge_two(one: pa.LargeStringArray, other: pa.LargeStringArray) -> tuple[pa.LargeStringArray, list[UInt32 | None]]:
    if one is other or one.equals(other):
        return one, [None, None]
    of_one, of_other = np.empty(len(one), np.uint32), np.empty(len(other), np.uint32)
    sources = np.empty(len(one) + len(other), np.int64)
    bounds = np.concatenate([word_bounds(one), word_bounds(other)])  # addresses of arrays that the caller keeps alive
    size = int(_merge(bounds[: len(one) + 1], bounds[len(one) + 1 :], of_one, of_other, sources))
    if size == len(one):
        return one, [None, of_other]
    if size == len(other):
        return other, [of_one, None]
    return pa.concat_arrays([one, other]).take(lent(sources[:size])), [of_one, of_other]


def word_bounds(words: pa.LargeStringArray) -> UInt64:
    """Return the address of each word's start, and of the last one's end."""
    _, offsets, data = words.buffers()
    if len(words) == 0:
        return np.zeros(1, np.uint64)
    own = np.frombuffer(offsets, np.int64, len(words) + 1, 8 * words.offset)
    return own.astype(np.uint64) + np.uint64(data.address if data else 0)


@inner
def prefix_of(start: Any, end: Any) -> Any:
    """Return the first eight bytes of a word as a number in the same order, padded with zeros."""
    if end - start >= np.uint64(8):
        return byte_swapped(load_u64(start))
    prefix, shift = np.uint64(0), np.uint64(56)
    while start < end:
        prefix |= np.uint64(load_u8(start)) << shift
        start += np.uint64(1)
        shift -= np.uint64(8)
    return prefix


@inner
def compare_words(a: Any, a_end: Any, b: Any, b_end: Any) -> Any:
    """Compare two words; returns a negative number, 0 or a positive number."""
    while a + np.uint64(8) <= a_end and b + np.uint64(8) <= b_end:
        x, y = byte_swapped(load_u64(a)), byte_swapped(load_u64(b))
        if x != y:
            return -1 if x < y else 1
        a += np.uint64(8)
        b += np.uint64(8)
    while a < a_end and b < b_end:
        if load_u8(a) != load_u8(b):
            return -1 if load_u8(a) < load_u8(b) else 1
        a += np.uint64(1)
        b += np.uint64(1)
    return np.int64(a < a_end) - np.int64(b < b_end)


@kernel
def _merge(ones: UInt64, others: UInt64, of_one: UInt32, of_other: UInt32, sources: Int64) -> int:
    i, j, at = 0, 0, 0
    i_end, j_end = len(ones) - 1, len(others) - 1
    x = prefix_of(ones[0], ones[1]) if i_end else np.uint64(0)
    y = prefix_of(others[0], others[1]) if j_end else np.uint64(0)
    while i < i_end or j < j_end:
        if i == i_end or j == j_end:
            order = -1 if j == j_end else 1
        elif x != y:
            order = -1 if x < y else 1
        else:
            order = compare_words(ones[i], ones[i + 1], others[j], others[j + 1])
        sources[at] = i if order <= 0 else i_end + j
        if order <= 0:
            of_one[i] = at
            i += 1
            if i < i_end:
                x = prefix_of(ones[i], ones[i + 1])
        if order >= 0:
            of_other[j] = at
            j += 1
            if j < j_end:
                y = prefix_of(others[j], others[j + 1])
        at += 1
    return at
