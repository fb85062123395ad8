"""What traversals cost, nanoseconds by feature: fitted on real corpora by ``python -m benchmarks.strategies --fit``."""

from __future__ import annotations

Costs = dict[str, dict[str, dict[str, float]]]

CPU: Costs = {
    "terminal_counts": {"top_down": {"symbols": 2.0, "roots": 1.0}, "bottom_up": {"tables": 3.0, "roots": 1.0}},
    "inverted_index": {"top_down": {"pushed": 6.0}, "bottom_up": {"tables": 1.7, "merged": 0.2}},
    "term_vector": {"top_down": {"pushed": 6.0}, "bottom_up": {"tables": 1.7, "merged": 0.2}},
    "sequence_count": {"top_down": {"windows": 25.0}, "bottom_up": {"windows": 60.0}},
    "ranked_inverted_index": {"top_down": {"windows": 60.0}, "bottom_up": {"windows": 60.0}},
    "cooccurrence": {"top_down": {"windows": 25.0}, "bottom_up": {"windows": 60.0}},
}

GPU: Costs = CPU

COSTS = {"cpu": CPU, "gpu": GPU}
