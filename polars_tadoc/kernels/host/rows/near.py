"""Counts words near each other in documents, by the shifts of their positions."""

from __future__ import annotations

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.rows.phrases import LEFT_OUT
from polars_tadoc.kernels.host.rows.row_words import next_word
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import polled_njit


@polled_njit
def count_near_in_rows(
    terminals: int,
    rule_offsets: Int64,
    symbols: UInt32,
    levels: int,
    terms: Int64,
    root_offsets: Int64,
    roots: UInt32,
    documents: Int64,
    words: Int64,
    places: Int64,
    slop: int,
    counts: UInt64,
) -> None:
    """Count in a few documents as :func:`.phrases_reference.count_near` defines, word by word.

    The shifts of words at positions up to p are complete up to p minus the last place: so a ring of as many steps
    holds those that may still grow.

    Parameters
    ----------
    terminals, rule_offsets, symbols, levels, terms, root_offsets, roots, documents
        As for :func:`.phrases.count_in_rows`.
    words
        The terms.
    places
        Their places in the phrase, ascending from 0; all 0 for words in any order.
    slop
        Maximum difference between shifts.
    counts
        Output by document that is read.

    """
    began = interrupts()
    position, end = np.empty(levels + 1, np.int64), np.empty(levels + 1, np.int64)
    size, steps = len(words), places[-1] + 1
    ring, last = np.zeros((steps, size), np.bool_), np.empty(size, np.int64)
    for row in range(len(documents)):
        if interrupts() != began:
            return
        position[0], end[0] = root_offsets[documents[row]], root_offsets[documents[row] + 1]
        depth, at, count, after = nb.int64(0), nb.int64(0), nb.int64(0), nb.int64(0)
        last[:] = -(nb.int64(1) << nb.int64(60))
        ring[:] = False
        while depth >= 0 or after < steps - 1:
            term = nb.int64(LEFT_OUT)
            if depth < 0:
                after += 1  # the last shifts become complete
            else:
                symbol, depth = next_word(terminals, rule_offsets, symbols, roots, position, end, depth)
                if symbol < 0:
                    continue
                term = terms[symbol]
                if term == LEFT_OUT:
                    continue
                for i in range(size):
                    if words[i] == term:
                        ring[(at - places[i]) % steps, i] = True
            shift = at - steps + 1
            has_new, least = False, shift
            for i in range(size):
                if ring[shift % steps, i]:
                    ring[shift % steps, i] = False
                    last[i] = shift
                    has_new = True
                least = min(least, last[i])
            count += nb.int64(has_new and least >= shift - slop)
            at += 1
        counts[row] = count
