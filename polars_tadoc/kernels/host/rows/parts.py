"""Counts phrases in rows whose words have parts: a word is found as itself and by each of its parts."""

from __future__ import annotations

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.rows.row_words import next_word
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import polled_njit

LONGEST = 63
"""Maximum words of a phrase."""


@polled_njit
def count_parts_in_rows(
    terminals: int,
    rule_offsets: Int64,
    symbols: UInt32,
    levels: int,
    masks: UInt64,
    length: int,
    root_offsets: Int64,
    roots: UInt32,
    documents: Int64,
    counts: UInt64,
) -> None:
    """Count the occurrences of a phrase in a few documents, word by word (Baeza-Yates and Gonnet, CACM 1992).

    Parameters
    ----------
    terminals, rule_offsets, symbols, levels, root_offsets, roots, documents
        As for :func:`.phrases.count_in_rows`.
    masks
        uint64 by terminal: bit i is set if it is the phrase's word i, or has it as a part; the highest bit if the word
        is ignored.
    length
        Words of the phrase, at most ``LONGEST``.
    counts
        Output by document that is read.

    """
    began = interrupts()
    one, top = nb.uint64(1), nb.uint64(63)
    last = nb.uint64(length - 1)
    position, end = np.empty(levels + 1, np.int64), np.empty(levels + 1, np.int64)
    for row in range(len(documents)):
        if interrupts() != began:
            return
        position[0], end[0] = root_offsets[documents[row]], root_offsets[documents[row] + 1]
        depth, count = nb.int64(0), nb.int64(0)
        state = nb.uint64(0)
        while True:
            symbol, depth = next_word(terminals, rule_offsets, symbols, roots, position, end, depth)
            if symbol < 0:
                break
            mask = nb.uint64(masks[symbol])
            if mask >> top:
                continue
            state = (state << one | one) & mask
            count += nb.int64(state >> last & one)
        counts[row] = count
