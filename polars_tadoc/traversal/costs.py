"""Coefficients of the cost model of traversals, in nanoseconds per feature, by machine.

``python -m benchmarks.strategies --fit`` measures both strategies on whole corpora, on lines, and on five documents,
and fits coefficients. GPU: fitted on an H100 to logs_dmesg, versioned_longhorn, docs_peps and prose_books; in these 72
cases the chosen strategy takes at most 1.17 times the time of the better one. Those of sequences, ranked indexes and
pairs are set by hand to ``python -m benchmarks.gpu_sequences`` (H200; these four as one column, versioned_cockroach,
versioned_longhorn): kernels alone, as for expanded words. CPU (two cores of an AMD EPYC): the terms that both
strategies share were fitted to 16 cases; their difference is set so that the smaller of ``found`` (entries in
documents) and ``tables`` (entries in tables of rules) decides, at most 1.21 times the better one's time in these cases.
"""

from __future__ import annotations

Costs = dict[str, dict[str, dict[str, float]]]

CPU: Costs = {
    "terminal_counts": {
        "top_down": {"roots": 0.56, "symbols": 0.96},
        "bottom_up": {"roots": 0.44, "symbols": 1.62, "tables": 2.7},
    },
    "inverted_index": {
        "top_down": {"documents": 104, "roots": 0.55, "symbols": 2.7, "found": 1.55},
        "bottom_up": {"documents": 104, "roots": 0.55, "symbols": 2.7, "found": 1.05, "tables": 0.5},
    },
    "term_vector": {
        "top_down": {"documents": 155, "roots": 0.8, "symbols": 5.0, "found": 3.0},
        "bottom_up": {"documents": 155, "roots": 0.8, "symbols": 5.0, "found": 2.5, "tables": 0.5},
    },
    "sequence_count": {"top_down": {"windows": 17.0}, "bottom_up": {"windows": 33.0, "tables": 8.0}},
    "ranked_inverted_index": {
        "top_down": {"windows": 65.0, "found": 0.5},
        "bottom_up": {"windows": 65.0, "tables": 0.5},
    },
    "cooccurrence": {"top_down": {"windows": 25.0}, "bottom_up": {"windows": 40.0, "tables": 80.0}},
}

GPU: Costs = {
    "terminal_counts": {
        "top_down": {"calls": 92400.0, "roots": 0.351, "symbols": 1.15},
        "bottom_up": {"calls": 109000.0, "roots": 0.428, "tables": 0.0113, "levels": 8880.0},
    },
    "inverted_index": {
        "top_down": {"roots": 0.38, "symbols": 3.71, "levels": 39100.0, "weights": 0.000339},
        "bottom_up": {"calls": 418000.0, "documents": 4.73, "roots": 0.439, "tables": 0.231, "found": 0.0694},
    },
    "term_vector": {
        "top_down": {"calls": 1300000.0, "roots": 0.278, "found": 0.291, "weights": 0.000502},
        "bottom_up": {"calls": 479000.0, "documents": 13.7, "roots": 0.49, "tables": 0.357, "found": 0.15},
    },
    "sequence_count": {
        "top_down": {"calls": 900000.0, "windows": 0.08, "levels": 30000.0},
        "bottom_up": {"calls": 2400000.0, "windows": 0.08, "tables": 0.1},
    },
    "ranked_inverted_index": {
        "top_down": {"calls": 4300000.0, "windows": 0.03, "found": 0.2},
        "bottom_up": {"calls": 4600000.0, "windows": 0.03, "merged": 0.17, "tables": 0.1},
    },
    "cooccurrence": {
        "top_down": {"calls": 500000.0, "windows": 0.24, "levels": 30000.0},
        "bottom_up": {"calls": 2200000.0, "windows": 0.24, "tables": 0.17},
    },
}

COSTS = {"cpu": CPU, "gpu": GPU}

EXPANDED_COSTS: dict[str, dict[str, float]] = {
    "ranked_inverted_index": {"calls": 2500000.0, "words": 0.092},
    "cooccurrence": {"calls": 500000.0, "words": 0.07},
}
"""Nanoseconds of a call on a GPU that reads expanded words, and per word (pairs: per word and word of the window);
from ``python -m benchmarks.gpu_sequences`` (H200, 40 to 118 MB). Of other counts rules are hardly ever slower there."""

COMPRESS_BYTE = 60.0
"""Nanoseconds of processor time for each byte of text that is compressed."""

TEXT_BYTE: dict[str, tuple[float, float]] = {
    "word_count": (2.9, 0.1),
    "sort": (2.9, 0.1),
    "inverted_index": (6.5, 0.8),
    "term_vector": (6.0, 1.4),
    "sequence_count": (27.0, 2.0),
    "ranked_inverted_index": (23.0, 9.0),
    "cooccurrence": (30.0, 13.0),
    "bm25_weights": (10.4, 3.4),
    "tfidf": (10.4, 3.4),
}
"""Nanoseconds of processor time for each byte of text: of a call on text, and of the call on the compressed column. In
the middle of the standard corpora (``python -m benchmarks.plain_text --processor-time``; weights: ``python -m
benchmarks.weights``; two cores of an AMD EPYC). How much compressing saves depends on how much repeats."""
