"""Spreads ordered pairs of near words over the buckets of their hashes."""

from __future__ import annotations

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.sequences.hash_counts import bucket_of, hashed
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import polled_kernel, polled_njit

_0, _1, _32 = np.uint64(0), np.uint64(1), np.uint64(32)
_SEPARATOR = np.uint32(0xFFFFFFFF)


@polled_kernel
def count_ends(starts: Int64, words: UInt32, first: int, stop: int, window: int, firsts: Int64, seconds: Int64) -> None:
    """Count how often each word is the first and the second of a pair.

    Parameters
    ----------
    starts, words, first, stop
        As for :func:`polars_tadoc.kernels.host.near.rows.hash_rows`.
    window
        Most words from the first of a pair to the second.
    firsts, seconds
        int64 by word: increased.

    """
    began = interrupts()
    for row in range(first, stop):
        if interrupts() != began:
            return
        begin, end = starts[row], starts[row + 1] - 1
        for i in range(begin, end):
            if i & 0xFFFF == 0 and interrupts() != began:
                return
            firsts[words[i]] += min(window, end - 1 - i)
            seconds[words[i]] += min(window, i - begin)


@polled_njit
def spread_pairs(words: UInt32, first: int, stop: int, window: int, sizes: Int64, keys: UInt64) -> None:
    """Write the hashes of pairs, by bucket.

    Parameters
    ----------
    words
        uint32: the rows, a separator after each.
    first, stop
        Places of the pairs' first words.
    window
        Most words from the first of a pair to the second.
    sizes
        int64 by bucket: increased; where the next hash of the bucket is written.
    keys
        uint64: the hashes; only counted if there is no room. A key is the first word in the upper half, and the second.

    """
    began, writes, most = interrupts(), len(keys) > 0, nb.uint64(window)
    for i in range(nb.uint64(first), nb.uint64(stop)):
        if i & nb.uint64(0xFFF) == _0 and interrupts() != began:
            return
        word = words[i]
        if word == _SEPARATOR:
            continue
        k = _1
        while k <= most:
            if k & nb.uint64(0xFFFF) == _0 and interrupts() != began:
                return
            other = words[i + k]
            if other == _SEPARATOR:
                break
            h = hashed(nb.uint64(word) << _32 | nb.uint64(other))
            bucket = bucket_of(h)
            at = sizes[bucket]
            sizes[bucket] = at + 1
            if writes:
                keys[nb.uint64(at)] = h
            k += _1
