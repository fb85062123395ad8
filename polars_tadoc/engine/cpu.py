"""Numba kernels over NumPy arrays, and the interface that both kernel families share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.keys.merge_cpu import join_postings as join_postings
from polars_tadoc.kernels.keys.merge_cpu import sum_sequences as sum_sequences
from polars_tadoc.kernels.postings.decode_cpu import decode_lists as decode_lists
from polars_tadoc.kernels.postings.decode_cpu import load_postings as load_postings
from polars_tadoc.kernels.primitives.to_arrow_cpu import to_arrow as to_arrow
from polars_tadoc.kernels.search.search_cpu import block_bounds as block_bounds
from polars_tadoc.kernels.search.search_cpu import search as search
from polars_tadoc.kernels.sequences.sequences_cpu import derive_pairs as derive_pairs
from polars_tadoc.kernels.sequences.sequences_cpu import derive_sequences as derive_sequences
from polars_tadoc.kernels.sequences.sequences_cpu import pair_counts as pair_counts
from polars_tadoc.kernels.sequences.sequences_cpu import sequence_counts as sequence_counts
from polars_tadoc.kernels.sequences.sequences_cpu import sequence_postings as sequence_postings
from polars_tadoc.kernels.traverse import counts_cpu as _counts
from polars_tadoc.kernels.traverse.results_cpu import count_by_document as count_by_document
from polars_tadoc.kernels.traverse.results_cpu import count_by_terminal as count_by_terminal
from polars_tadoc.kernels.traverse.results_cpu import load_rules as load_rules
from polars_tadoc.kernels.traverse.results_cpu import terminal_counts as terminal_counts
from polars_tadoc.kernels.traverse.results_cpu import terms_by_document as terms_by_document
from polars_tadoc.kernels.trie.look_up_rows_cpu import look_up_rows as look_up_rows
from polars_tadoc.kernels.trie.trie_cpu import build_trie as build_trie
from polars_tadoc.kernels.trie.trie_cpu import common_prefixes as common_prefixes
from polars_tadoc.kernels.trie.trie_cpu import load_trie as load_trie
from polars_tadoc.kernels.trie.trie_cpu import look_up as look_up
from polars_tadoc.kernels.trie.trie_cpu import spell as spell
from polars_tadoc.kernels.trie.trie_cpu import with_prefix as with_prefix
from polars_tadoc.kernels.twigs.twig_rules_cpu import load_word_events as load_word_events
from polars_tadoc.kernels.twigs.twigs_cpu import TwigMatcher as TwigMatcher
from polars_tadoc.kernels.twigs.twigs_cpu import load_events as load_events
from polars_tadoc.kernels.weights.weights_cpu import document_frequencies as document_frequencies
from polars_tadoc.kernels.weights.weights_cpu import document_lengths as document_lengths
from polars_tadoc.kernels.weights.weights_cpu import merge_terms as merge_terms
from polars_tadoc.kernels.weights.weights_cpu import top_weights as top_weights
from polars_tadoc.kernels.weights.weights_cpu import weigh_bm25 as weigh_bm25
from polars_tadoc.kernels.weights.weights_cpu import weigh_tfidf as weigh_tfidf
from polars_tadoc.runtime.parallel import even_chunks, map_parallel

if TYPE_CHECKING:
    from polars_tadoc.model.grammar import Grammar
    from polars_tadoc.model.vocabulary import Vocabulary

UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]

name = "cpu"


def load_grammar(grammar: Grammar) -> Grammar:
    """Make a grammar resident where the kernels run; here it is already."""
    return grammar


def load_symbols(symbols: UInt32) -> UInt32:
    """Make symbols resident where the kernels run; here they are already."""
    return symbols


def load_array(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Make an array resident where the kernels run; here it is already."""
    return array


def to_host(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Return the array in host memory."""
    return array


def top_down_weights(grammar: Grammar, roots: UInt32) -> UInt64:
    """Count the words that the roots stand for (G-TADOC, Zhang et al., ICDE 2021, algorithm 1).

    Weights go from the roots to the rules and from each rule to its body, so each body is read once
    however often it occurs.

    Parameters
    ----------
    grammar
        The rules.
    roots
        uint32: top-level symbols of the rows that are there.

    Returns
    -------
    uint64 array
        Count by word id, length vocabulary.

    """
    size = grammar.vocabulary_size + grammar.rule_count

    def count(chunk: tuple[int, int]) -> UInt64:
        weights = np.zeros(size, np.uint64)
        _counts.histogram(roots[chunk[0] : chunk[1]], weights)
        return weights

    # a private histogram costs a pass over the symbols: not worth it below four roots a symbol
    parts = map_parallel(count, even_chunks(len(roots), max(1 << 18, 4 * size)))
    weights = parts[0]
    for part in parts[1:]:
        weights += part
    _counts.push_down(grammar.vocabulary_size, grammar.rule_offsets, grammar.symbols, weights)
    return weights[: grammar.vocabulary_size]


def map_counts(counts: UInt64, image: UInt32, size: int) -> UInt64:
    """Sum counts by image.

    Parameters
    ----------
    counts
        uint64 by word id.
    image
        uint32 by word id: the new id, ``DELETED`` for none.
    size
        Number of new ids.

    Returns
    -------
    uint64 array
        Count by new id, length ``size``.

    """
    sums = np.zeros(size, np.uint64)
    _counts.scatter_add(counts, image, sums)
    return sums


def select(counts: UInt64, words: Vocabulary, min_count: int, top: int | None) -> tuple[UInt32, UInt64]:
    """Pick the words of a result, in its order.

    Parameters
    ----------
    counts
        uint64 by word id.
    words
        The vocabulary, for its code point order.
    min_count
        Words counted less often, or never, are left out.
    top
        At most so many.

    Returns
    -------
    (uint32 array, uint64 array)
        Word ids and their counts, by count falling, equal ones in code point order.

    """
    least = np.uint64(max(min_count, 1))
    if _counts.is_ordered(counts, words.ascending):  # all rows present: ids are numbered in this order
        stop = len(counts) - int(np.searchsorted(counts[::-1], least))
        stop = stop if top is None else min(stop, top)
        return np.arange(stop, dtype=np.uint32), counts[:stop]
    ids = np.flatnonzero(counts >= least).astype(np.uint32)
    if top is not None and top < len(ids):
        if top <= 0:
            return ids[:0], counts[:0]
        chosen = counts[ids]
        ids = ids[chosen >= np.partition(chosen, len(ids) - top)[len(ids) - top]]  # with all of the last one's ties
    chosen, rank = counts[ids], words.rank_of(ids)
    if len(ids) and chosen.max() < 1 << 32:
        order = np.argsort(((np.uint64(0xFFFFFFFF) - chosen) << np.uint64(32)) | rank)
    else:
        order = np.lexsort((rank, ~chosen))
    order = order[:top]
    return ids[order], chosen[order]
