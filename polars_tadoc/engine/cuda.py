"""The CUDA kernels over CuPy arrays, by the names of :class:`polars_tadoc.engine.kernels.Kernels`.

Importing this module imports neither CuPy nor a driver. Each ``.cu`` file is one module, compiled by NVRTC
for the device at hand when its first kernel is launched and kept in CuPy's cache on disk. Every function raises
``EngineUnavailableError`` if the device is out of memory or failed.
"""

from __future__ import annotations

from polars_tadoc.kernels.documents.documents_cuda import count_by_document as count_by_document
from polars_tadoc.kernels.documents.documents_cuda import count_by_terminal as count_by_terminal
from polars_tadoc.kernels.documents.documents_cuda import terms_by_document as terms_by_document
from polars_tadoc.kernels.postings.coded_postings_cuda import block_bounds as block_bounds
from polars_tadoc.kernels.postings.coded_postings_cuda import decode_lists as decode_lists
from polars_tadoc.kernels.postings.coded_postings_cuda import load_postings as load_postings
from polars_tadoc.kernels.postings.posting_cache_cuda import resident_postings as resident_postings
from polars_tadoc.kernels.primitives.load_cuda import current_device as current_device
from polars_tadoc.kernels.primitives.load_cuda import load_array as load_array
from polars_tadoc.kernels.primitives.load_cuda import load_symbols as load_symbols
from polars_tadoc.kernels.primitives.load_cuda import to_host as to_host
from polars_tadoc.kernels.primitives.to_arrow_cuda import to_arrow as to_arrow
from polars_tadoc.kernels.repair.compress_cuda import RULE_METHODS as RULE_METHODS
from polars_tadoc.kernels.repair.compress_cuda import build_rules as build_rules
from polars_tadoc.kernels.repair.compress_cuda import compress_rows as compress_rows
from polars_tadoc.kernels.search.ranked_queries_cuda import READS_BOUNDS as READS_BOUNDS
from polars_tadoc.kernels.search.ranked_queries_cuda import search as search
from polars_tadoc.kernels.sequences.sequences_cuda import derive_pairs as derive_pairs
from polars_tadoc.kernels.sequences.sequences_cuda import derive_sequences as derive_sequences
from polars_tadoc.kernels.sequences.sequences_cuda import pair_counts as pair_counts
from polars_tadoc.kernels.sequences.sequences_cuda import sequence_counts as sequence_counts
from polars_tadoc.kernels.sequences.sequences_cuda import (
    sequence_counts_of_lengths as sequence_counts_of_lengths,
)
from polars_tadoc.kernels.sequences.sequences_cuda import sequence_postings as sequence_postings
from polars_tadoc.kernels.tokenize.number_words_cuda import count_text_words as count_text_words
from polars_tadoc.kernels.tokenize.number_words_cuda import number_words as number_words
from polars_tadoc.kernels.tokenize.tokenize_cuda import loading as loading
from polars_tadoc.kernels.traverse.counts_cuda import load_grammar as load_grammar
from polars_tadoc.kernels.traverse.counts_cuda import map_counts as map_counts
from polars_tadoc.kernels.traverse.counts_cuda import select as select
from polars_tadoc.kernels.traverse.counts_cuda import top_down_weights as top_down_weights
from polars_tadoc.kernels.traverse.expand_words_cuda import expand_words as expand_words
from polars_tadoc.kernels.traverse.load_rules_cuda import load_rules as load_rules
from polars_tadoc.kernels.traverse.tables_cuda import terminal_counts as terminal_counts
from polars_tadoc.kernels.trie.trie_cuda import GATHERS_SPELLED as GATHERS_SPELLED
from polars_tadoc.kernels.trie.trie_cuda import load_trie as load_trie
from polars_tadoc.kernels.trie.trie_cuda import look_up as look_up
from polars_tadoc.kernels.trie.trie_cuda import look_up_rows as look_up_rows
from polars_tadoc.kernels.trie.trie_cuda import spell as spell
from polars_tadoc.kernels.twigs.twig_rules_cuda import load_word_events as load_word_events
from polars_tadoc.kernels.twigs.twigs_cuda import TwigMatcher as TwigMatcher
from polars_tadoc.kernels.twigs.twigs_cuda import load_events as load_events
from polars_tadoc.kernels.weights.merged_terms_cuda import merge_terms as merge_terms
from polars_tadoc.kernels.weights.weights_cuda import document_frequencies as document_frequencies
from polars_tadoc.kernels.weights.weights_cuda import document_lengths as document_lengths
from polars_tadoc.kernels.weights.weights_cuda import top_weights as top_weights
from polars_tadoc.kernels.weights.weights_cuda import weigh_bm25 as weigh_bm25
from polars_tadoc.kernels.weights.weights_cuda import weigh_tfidf as weigh_tfidf
from polars_tadoc.kernels.windows.windows_cuda import count_covered as count_covered
from polars_tadoc.kernels.windows.windows_cuda import describe_runs as describe_runs
from polars_tadoc.kernels.windows.windows_cuda import find_known as find_known
from polars_tadoc.kernels.windows.windows_cuda import find_runs as find_runs
from polars_tadoc.kernels.windows.windows_cuda import find_windows as find_windows
from polars_tadoc.kernels.windows.windows_cuda import lay_words as lay_words
from polars_tadoc.kernels.windows.windows_cuda import map_words as map_words
from polars_tadoc.runtime.device import can_run as can_run
from polars_tadoc.runtime.device import device_errors as device_errors
from polars_tadoc.runtime.device import device_problem as device_problem
from polars_tadoc.runtime.device_memory import release_memory as release_memory

name = "gpu"
