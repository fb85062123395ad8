"""What traversals cost, nanoseconds by feature, on machines that they were measured on.

``python -m benchmarks.strategies --fit`` measures both strategies on corpora as they are, as lines and as five
documents, and fits such costs. GPU: so fitted on an H100, on docs_peps and logs_dmesg (``terminal_counts``, top-down:
from ``benchmarks.gpu_analytics``). CPU (two cores of an AMD EPYC): what both strategies have in common was fitted to
the times of 16 cases; their difference is set so that the smaller of ``found``, what documents hold, and ``tables``,
what tables of all rules hold, decides, which loses at most 1.21 times in these cases.
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
        "top_down": {"calls": 15800.0, "roots": 0.0083, "symbols": 0.0083},
        "bottom_up": {"calls": 161000.0, "roots": 0.0042},
    },
    "inverted_index": {
        "top_down": {"calls": 708000.0, "documents": 9.82, "roots": 0.274, "found": 0.192},
        "bottom_up": {"calls": 789000.0, "documents": 5.02, "roots": 0.144, "found": 0.102},
    },
    "term_vector": {
        "top_down": {"calls": 572000.0, "documents": 6.88, "roots": 0.342, "symbols": 1.94, "found": 0.254},
        "bottom_up": {"calls": 911000.0, "documents": 9.82, "roots": 0.187, "found": 0.179},
    },
    "sequence_count": {
        "top_down": {"windows": 1.88, "levels": 33600.0},
        "bottom_up": {"calls": 464000.0, "documents": 4.58, "windows": 2.09, "tables": 0.493},
    },
    "ranked_inverted_index": {
        "top_down": {"calls": 4350000.0, "windows": 5.74},
        "bottom_up": {"calls": 4690000.0, "windows": 5.74},
    },
    "cooccurrence": {
        "top_down": {"windows": 1.51, "pushed": 13.9},
        "bottom_up": {"windows": 1.86, "tables": 1.33},
    },
}

COSTS = {"cpu": CPU, "gpu": GPU}
