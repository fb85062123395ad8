"""Lists ordered pairs of near words as numbers that sort by them."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import kernel

_32 = np.uint64(32)


@polled
@kernel
def count_firsts(starts: Int64, words: UInt32, first: int, stop: int, window: int, counts: Int64) -> None:
    """Count how often each word is the first of a pair.

    Parameters
    ----------
    starts, words
        int64, rows + 1, and uint32: the rows, a separator after each.
    first, stop
        The rows to read.
    window
        Most words from the first of a pair to the second.
    counts
        int64 by word: increased.

    """
    began = interrupts()
    for row in range(first, stop):
        if interrupts() != began:
            return
        end = starts[row + 1] - 1
        for i in range(starts[row], end):
            if i & 0xFFFF == 0 and interrupts() != began:
                return
            counts[words[i]] += min(window, end - 1 - i)


@polled
@kernel
def list_pairs(
    starts: Int64, words: UInt32, first: int, stop: int, window: int, low: int, high: int, pairs: UInt64
) -> Any:
    """List the pairs whose first word is in an interval.

    Parameters
    ----------
    starts, words, first, stop, window
        As for :func:`count_firsts`.
    low, high
        The first word of the interval and the one after the last.
    pairs
        uint64: the first word of each pair in the upper half, the second in the lower; only counted if there is no
        room.

    Returns
    -------
    int
        Number of pairs.

    """
    count, began = np.int64(0), interrupts()
    for row in range(first, stop):
        if interrupts() != began:
            return count
        end = starts[row + 1] - 1
        for i in range(starts[row], end):
            if i & 0xFFF == 0 and interrupts() != began:
                return count
            word = np.int64(words[i])
            if not low <= word < high:
                continue
            last = min(window, end - 1 - i)
            if len(pairs):
                for k in range(last):
                    pairs[count + k] = np.uint64(word) << _32 | np.uint64(words[i + 1 + k])
            count += last
    return count
