"""The Numba kernels over NumPy arrays, under the names of :class:`polars_tadoc.engine.kernels.Kernels`."""

from __future__ import annotations

from polars_tadoc.kernels.postings.decode_cpu import decode_lists as decode_lists
from polars_tadoc.kernels.postings.decode_cpu import load_postings as load_postings
from polars_tadoc.kernels.postings.decode_cpu import resident_postings as resident_postings
from polars_tadoc.kernels.primitives.load_cpu import can_run as can_run
from polars_tadoc.kernels.primitives.load_cpu import current_device as current_device
from polars_tadoc.kernels.primitives.load_cpu import device_errors as device_errors
from polars_tadoc.kernels.primitives.load_cpu import device_problem as device_problem
from polars_tadoc.kernels.primitives.load_cpu import load_array as load_array
from polars_tadoc.kernels.primitives.load_cpu import load_symbols as load_symbols
from polars_tadoc.kernels.primitives.load_cpu import release_memory as release_memory
from polars_tadoc.kernels.primitives.load_cpu import to_host as to_host
from polars_tadoc.kernels.primitives.to_arrow_cpu import to_arrow as to_arrow
from polars_tadoc.kernels.repair.compress_cpu import RULE_METHODS as RULE_METHODS
from polars_tadoc.kernels.repair.compress_cpu import build_rules as build_rules
from polars_tadoc.kernels.repair.compress_cpu import compress_rows as compress_rows
from polars_tadoc.kernels.repair.compress_cpu import loading as loading
from polars_tadoc.kernels.search.search_cpu import READS_BOUNDS as READS_BOUNDS
from polars_tadoc.kernels.search.search_cpu import block_bounds as block_bounds
from polars_tadoc.kernels.search.search_cpu import search as search
from polars_tadoc.kernels.sequences.sequences_cpu import derive_pairs as derive_pairs
from polars_tadoc.kernels.sequences.sequences_cpu import derive_sequences as derive_sequences
from polars_tadoc.kernels.sequences.sequences_cpu import pair_counts as pair_counts
from polars_tadoc.kernels.sequences.sequences_cpu import sequence_counts as sequence_counts
from polars_tadoc.kernels.sequences.sequences_cpu import (
    sequence_counts_of_lengths as sequence_counts_of_lengths,
)
from polars_tadoc.kernels.sequences.sequences_cpu import sequence_postings as sequence_postings
from polars_tadoc.kernels.tokenize.count_words_cpu import count_text_words as count_text_words
from polars_tadoc.kernels.tokenize.number_words_cpu import number_words as number_words
from polars_tadoc.kernels.traverse.counts_cpu import load_grammar as load_grammar
from polars_tadoc.kernels.traverse.counts_cpu import map_counts as map_counts
from polars_tadoc.kernels.traverse.counts_cpu import select as select
from polars_tadoc.kernels.traverse.counts_cpu import top_down_weights as top_down_weights
from polars_tadoc.kernels.traverse.expand_words_cpu import expand_words as expand_words
from polars_tadoc.kernels.traverse.results_cpu import count_by_document as count_by_document
from polars_tadoc.kernels.traverse.results_cpu import count_by_terminal as count_by_terminal
from polars_tadoc.kernels.traverse.results_cpu import load_rules as load_rules
from polars_tadoc.kernels.traverse.results_cpu import terminal_counts as terminal_counts
from polars_tadoc.kernels.traverse.results_cpu import terms_by_document as terms_by_document
from polars_tadoc.kernels.trie.look_up_rows_cpu import look_up_rows as look_up_rows
from polars_tadoc.kernels.trie.trie_cpu import GATHERS_SPELLED as GATHERS_SPELLED
from polars_tadoc.kernels.trie.trie_cpu import load_trie as load_trie
from polars_tadoc.kernels.trie.trie_cpu import look_up as look_up
from polars_tadoc.kernels.trie.trie_cpu import spell as spell
from polars_tadoc.kernels.twigs.twig_rules_cpu import load_word_events as load_word_events
from polars_tadoc.kernels.twigs.twigs_cpu import TwigMatcher as TwigMatcher
from polars_tadoc.kernels.twigs.twigs_cpu import load_events as load_events
from polars_tadoc.kernels.weights.weights_cpu import document_frequencies as document_frequencies
from polars_tadoc.kernels.weights.weights_cpu import document_lengths as document_lengths
from polars_tadoc.kernels.weights.weights_cpu import merge_terms as merge_terms
from polars_tadoc.kernels.weights.weights_cpu import top_weights as top_weights
from polars_tadoc.kernels.weights.weights_cpu import weigh_bm25 as weigh_bm25
from polars_tadoc.kernels.weights.weights_cpu import weigh_tfidf as weigh_tfidf
from polars_tadoc.kernels.windows.passages_cpu import count_covered as count_covered
from polars_tadoc.kernels.windows.passages_cpu import describe_runs as describe_runs
from polars_tadoc.kernels.windows.passages_cpu import find_known as find_known
from polars_tadoc.kernels.windows.passages_cpu import find_runs as find_runs
from polars_tadoc.kernels.windows.passages_cpu import lay_words as lay_words
from polars_tadoc.kernels.windows.passages_cpu import map_words as map_words
from polars_tadoc.kernels.windows.windows_cpu import find_windows as find_windows

name = "cpu"
