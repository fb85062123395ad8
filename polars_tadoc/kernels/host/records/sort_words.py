"""Sorts words in code point order: by eight bytes at a time as numbers, small groups by comparison."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from polars_tadoc.kernels.host.records.merge_words import compare_words, prefix_of, word_bounds
from polars_tadoc.kernels.host.records.sort_keys import sort_with
from polars_tadoc.runtime.array_types import UInt32, UInt64
from polars_tadoc.runtime.jit import inner, kernel
from polars_tadoc.runtime.parallel import even_chunks, map_parallel

FEW = 16
"""Up to this many words with equal prefixes are sorted by insertion sort."""

LARGE = 1 << 10
"""More words than this with equal prefixes are sorted by the next eight bytes."""

MAX_PREFIX = 64
"""After this many bytes, words with equal prefixes are sorted by comparison."""

_1 = np.uint64(1)


def code_point_order(words: pa.LargeStringArray) -> UInt32:
    """Return the ids of distinct words in code point order, uint32."""
    bounds = word_bounds(words)
    order = np.arange(len(words), dtype=np.uint64)
    sort_places(bounds, order)
    return order.astype(np.uint32)


def sort_places(bounds: UInt64, order: UInt64, skipped: int = 0) -> bool:
    """Sort words whose first ``skipped`` bytes are equal; return whether all differ.

    ``order`` has the places in ``bounds`` of the words' starts, each before its end: addresses.
    """
    prefixes = np.empty(len(order), np.uint64)
    own = order.copy()
    map_parallel(lambda chunk: _prefixes(bounds, own, skipped, prefixes, *chunk), even_chunks(len(own)))
    prefixes, order[:] = sort_with(prefixes, own)
    most = LARGE if skipped + 8 < MAX_PREFIX else len(order)
    sort = map_parallel(lambda chunk: _sort_equal(bounds, order, prefixes, most, *chunk), even_chunks(len(order)))
    differ = all(sort)
    if (prefixes[most:] == prefixes[: max(len(prefixes) - most, 0)]).any():
        edges = np.flatnonzero(np.diff(np.concatenate([[False], prefixes[1:] == prefixes[:-1], [False]])))
        for start, end in zip(edges[::2].tolist(), (edges[1::2] + 1).tolist(), strict=True):
            if end - start > most:
                differ &= sort_places(bounds, order[start:end], skipped + 8)
    return differ


@kernel
def _prefixes(bounds: UInt64, words: UInt64, skipped: int, prefixes: UInt64, first: int, stop: int) -> None:
    for i in range(first, stop):
        start, end = bounds[words[i]] + np.uint64(skipped), bounds[words[i] + _1]
        prefixes[i] = prefix_of(start, end) if start < end else np.uint64(0)


@inner
def _less(bounds: UInt64, a: Any, b: Any) -> Any:
    return compare_words(bounds[a], bounds[a + _1], bounds[b], bounds[b + _1]) < 0


@inner
def _sift(bounds: UInt64, words: UInt64, start: Any, root: Any, size: Any) -> None:
    """Sift a word down in a heap whose root is the last word."""
    word = words[start + root]
    while 2 * root + 1 < size:
        child = 2 * root + 1
        if child + 1 < size and _less(bounds, words[start + child], words[start + child + 1]):
            child += 1
        if not _less(bounds, word, words[start + child]):
            break
        words[start + root] = words[start + child]
        root = child
    words[start + root] = word


@kernel
def _sort_equal(bounds: UInt64, words: UInt64, prefixes: UInt64, most: int, first: int, stop: int) -> bool:
    """Sort runs of up to ``most`` words with equal prefixes, by comparison; return whether their words differ.

    Runs are those that start from ``first`` on and before ``stop``.
    """
    differ, start = True, first
    while 0 < start < stop and prefixes[start] == prefixes[start - 1]:
        start += 1
    while start < stop:
        end = start + 1
        while end < len(prefixes) and prefixes[end] == prefixes[start]:
            end += 1
        size = end - start
        if size <= FEW:
            for i in range(start + 1, end):
                word, at = words[i], i
                while at > start and _less(bounds, word, words[at - 1]):
                    words[at] = words[at - 1]
                    at -= 1
                words[at] = word
        elif size <= most:
            for root in range(size // 2 - 1, -1, -1):
                _sift(bounds, words, start, root, size)
            for last in range(size - 1, 0, -1):
                words[start], words[start + last] = words[start + last], words[start]
                _sift(bounds, words, start, 0, last)
        if size <= most:
            for i in range(start + 1, end):
                differ &= _less(bounds, words[i - 1], words[i])
        start = end
    return differ
