"""Word counts on the CPU: top-down weights, counts under a morphism, selection in result order."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.records.by_count import by_falling_count, least_of_largest
from polars_tadoc.kernels.primitives.codes import DELETED
from polars_tadoc.kernels.traverse.rules import GrammarArrays, RankedWords
from polars_tadoc.runtime.array_types import Bools, UInt32, UInt64
from polars_tadoc.runtime.jit import kernel
from polars_tadoc.runtime.parallel import even_chunks, map_parallel
from polars_tadoc.runtime.scratch import scratch

_ROOTS = 1 << 17
"""Minimum symbols that a thread counts."""


@kernel
def histogram(symbols: UInt32, counts: UInt32 | UInt64) -> None:
    """Add 1 to ``counts[s]`` for each symbol s."""
    for i in range(len(symbols)):
        counts[symbols[i]] += 1


@kernel
def _add_up(parts: UInt32, first: int, stop: int, sums: UInt64) -> None:
    """Add up the rows of ``parts``, which has a column for each sum."""
    for i in range(first, stop):
        sums[i] = parts[0, i]
    for k in range(1, len(parts)):
        for i in range(first, stop):
            sums[i] += parts[k, i]


@kernel
def push_down(vocabulary_size: int, rule_offsets: UInt32, symbols: UInt32, weights: UInt64) -> None:
    """Add each rule's weight to the symbols of its body, highest rule first."""
    for r in range(len(rule_offsets) - 2, -1, -1):
        weight = weights[vocabulary_size + r]
        if weight != 0:
            for i in range(rule_offsets[r], rule_offsets[r + 1]):
                weights[symbols[i]] += weight


@kernel
def sum_words(vocabulary_size: int, expansion_lengths: UInt64, roots: UInt32) -> Any:
    """Sum the words of symbols' expansions."""
    total = nb.uint64(0)
    for i in range(len(roots)):
        symbol = roots[i]
        total += nb.uint64(1) if symbol < vocabulary_size else expansion_lengths[symbol - vocabulary_size]
    return total


@kernel
def scatter_add(counts: UInt64, image: UInt32, sums: UInt64) -> None:
    """Add each word's count to its image's; deleted words have no image."""
    for w in range(len(counts)):
        if image[w] != DELETED:
            sums[image[w]] += counts[w]


@kernel
def is_ordered(counts: UInt64, ascending: Bools) -> Any:
    """Tell whether counts descend, with ties in word order."""
    for w in range(len(counts) - 1):
        if counts[w] < counts[w + 1] or (counts[w] == counts[w + 1] and counts[w] != 0 and not ascending[w]):
            return False
    return True


def load_grammar(grammar: GrammarArrays) -> GrammarArrays:
    """Make a grammar resident for the kernels; on the CPU it already is."""
    return grammar


def top_down_weights(grammar: GrammarArrays, roots: UInt32) -> UInt64:
    """Count the words in the expansion of the roots (G-TADOC, Zhang et al., ICDE 2021, algorithm 1).

    Weights are propagated from the roots to the rules and from each rule to its body, so each body is read once.

    Parameters
    ----------
    grammar
        The rules.
    roots
        uint32: top-level symbols of the rows.

    Returns
    -------
    uint64 array
        Count by word id, length vocabulary.

    """
    weights = count_symbols(roots, grammar.vocabulary_size + grammar.rule_count)
    push_down(grammar.vocabulary_size, grammar.rule_offsets, grammar.symbols, weights)
    return weights[: grammar.vocabulary_size]


def count_symbols(roots: UInt32, size: int) -> UInt64:
    """Count the occurrences of each symbol in the roots: uint64, length ``size``."""
    # a private histogram is cleared and added up: it pays from one root per symbol on
    chunks = even_chunks(len(roots), max(_ROOTS, size))
    if len(chunks) == 1 or chunks[-1][1] - chunks[-1][0] >= 1 << 32:
        weights = np.zeros(size, np.uint64)
        histogram(roots, weights)
        return weights
    parts = scratch((len(chunks), size), np.uint32)

    def count(k: int) -> None:
        parts[k] = 0
        histogram(roots[slice(*chunks[k])], parts[k])

    map_parallel(count, range(len(chunks)))
    weights = np.empty(size, np.uint64)
    map_parallel(lambda own: _add_up(parts, *own, weights), even_chunks(size, _ROOTS // len(chunks)))
    return weights


def map_counts(counts: UInt64, image: UInt32, size: int) -> UInt64:
    """Sum counts, uint64 by word id, by image: uint64 by new id, ``size`` in all.

    ``image`` is uint32 by word id: the new id, ``DELETED`` for none.
    """
    sums = np.zeros(size, np.uint64)
    scatter_add(counts, image, sums)
    return sums


def select(counts: UInt64, words: RankedWords, min_count: int, top: int | None) -> tuple[UInt32, UInt64]:
    """Select the words of a result, in result order.

    Parameters
    ----------
    counts
        uint64 by word id.
    words
        The vocabulary, for its code point order.
    min_count
        Words with lower counts are dropped, as are words with count 0.
    top
        Maximum number of words.

    Returns
    -------
    (uint32 array, uint64 array)
        Word ids and counts, by descending count, then code point order.

    """
    least = np.uint64(max(min_count, 1))
    if is_ordered(counts, words.ascending):  # with all rows present, ids have this order
        stop = len(counts) - int(np.searchsorted(counts[::-1], least))
        stop = stop if top is None else min(stop, top)
        return np.arange(stop, dtype=np.uint32), counts[:stop]
    if top is not None and 0 < top < len(counts):  # including all ties of the last one
        least = max(least, np.uint64(least_of_largest(counts, top)))
    ids = np.flatnonzero(counts >= least).astype(np.uint32)
    if top is None and 4 * len(ids) >= len(counts):
        kept = counts >= least
        ids = words.by_rank if kept.all() else words.by_rank[kept[words.by_rank]]
        made, each, starts = by_falling_count(ids.astype(np.uint64)[None], counts[ids])
        return made[0].astype(np.uint32), np.repeat(each, np.diff(starts))
    if top is not None and top <= 0:
        return ids[:0], counts[:0]
    chosen, rank = counts[ids], words.rank_of(ids)
    if len(ids) and chosen.max() < 1 << 32:
        order = np.argsort(((np.uint64(0xFFFFFFFF) - chosen) << np.uint64(32)) | rank)
    else:
        order = np.lexsort((rank, ~chosen))
    order = order[:top]
    return ids[order], chosen[order]
