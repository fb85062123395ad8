"""What traversals cost, nanoseconds by feature: fitted on real corpora by ``python -m benchmarks.strategies --fit``."""

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

GPU: Costs = CPU

COSTS = {"cpu": CPU, "gpu": GPU}
