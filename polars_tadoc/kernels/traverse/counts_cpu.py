"""Word counts on the CPU: top-down weights, morphed counts, selection in result order."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.primitives.codes import DELETED
from polars_tadoc.runtime.compiled import njit

UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]


@njit(nogil=True)
def histogram(symbols: UInt32, counts: UInt64) -> None:
    """Add 1 to ``counts[s]`` for each symbol s."""
    for i in range(len(symbols)):
        counts[symbols[i]] += nb.uint64(1)


@njit(nogil=True)
def push_down(vocabulary_size: int, rule_offsets: UInt32, symbols: UInt32, weights: UInt64) -> None:
    """Push each rule's weight to the symbols of its body, highest rule first."""
    for r in range(len(rule_offsets) - 2, -1, -1):
        weight = weights[vocabulary_size + r]
        if weight != 0:
            for i in range(rule_offsets[r], rule_offsets[r + 1]):
                weights[symbols[i]] += weight


@njit(nogil=True)
def sum_words(vocabulary_size: int, expansion_lengths: UInt64, roots: UInt32) -> Any:
    """Sum the words that symbols stand for."""
    total = nb.uint64(0)
    for i in range(len(roots)):
        symbol = roots[i]
        total += nb.uint64(1) if symbol < vocabulary_size else expansion_lengths[symbol - vocabulary_size]
    return total


@njit(nogil=True)
def scatter_add(counts: UInt64, image: UInt32, sums: UInt64) -> None:
    """Add each word's count to its image's, deleted words' to none."""
    for w in range(len(counts)):
        if image[w] != DELETED:
            sums[image[w]] += counts[w]


@njit(nogil=True)
def is_ordered(counts: UInt64, ascending: npt.NDArray[np.bool_]) -> Any:
    """Tell whether counts fall, equal ones in word order."""
    for w in range(len(counts) - 1):
        if counts[w] < counts[w + 1] or (counts[w] == counts[w + 1] and counts[w] != 0 and not ascending[w]):
            return False
    return True
