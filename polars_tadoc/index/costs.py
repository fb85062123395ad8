"""What a query is predicted to take on each engine, on machines that it was measured on.

``python -m benchmarks.serving --measure small.json --engine gpu --documents 500000`` and the same with 25.2 million
documents measured queries alone and in batches, ``--fit small.json table.json`` fitted these costs: one thread of an
Intel Xeon with 16 cores, and an H100. In the median, times are off by 1.05 to 1.43 times.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from polars_tadoc.kernels.postings import BLOCK

Costs = Mapping[str, Mapping[str, float]]

COSTS: dict[str, Costs] = {
    "cpu": {
        "and": {"queries": 10200.0, "candidates": 15.1, "blocks": 10.1},
        "or": {"queries": 72400.0, "lists": 11400.0, "shorter": 0.395, "spread": 0.0266},
        "all": {},
    },
    "gpu": {
        "and": {"queries": 16100.0, "candidates": 0.0229, "blocks": 0.539},
        "or": {"postings": 0.00863, "shorter": 0.002, "spread": 0.000945},
        "all": {"moved": 0.194},
    },
}
"""Nanoseconds by engine, mode and feature; ``moved`` is for a byte that is copied to a GPU."""

OVERHEADS = {"cpu": 0.00019, "gpu": 0.0007}
"""Seconds of a batch, whatever its size."""

BATCH_SECONDS = {"cpu": 0.02, "gpu": 0.02}
"""How long a batch of several queries is predicted to last at most, beside the overhead."""

_LEAST = 1000.0  # what a query without words may be predicted to take


def features_of(frequencies: Sequence[float], documents: int) -> dict[str, dict[str, float]]:
    """Return what the time of a query depends on.

    Parameters
    ----------
    frequencies
        How many documents each of its lists has, the shortest first.
    documents
        How many there are.

    Returns
    -------
    dict
        By mode, "and" and "or": ``queries``, which is 1; ``lists``; ``candidates``, the postings of the shortest;
        ``blocks``, how many of the other lists can hold one of them; ``postings`` of all lists, and ``shorter`` of all
        but the longest; ``spread``, documents for each list.

    """
    if not frequencies:
        return {"and": {"queries": 1.0}, "or": {"queries": 1.0}}
    shortest, postings = frequencies[0], sum(frequencies)
    common = {"queries": 1.0, "lists": float(len(frequencies))}
    blocks = float(sum(min(-(-size // BLOCK), shortest) for size in frequencies[1:]))
    return {
        "and": {**common, "candidates": float(shortest), "blocks": blocks},
        "or": {
            **common,
            "postings": float(postings),
            "shorter": float(postings - max(frequencies)),
            "spread": float(len(frequencies) * documents),
        },
    }


def predict(engine: str, mode: str, frequencies: Sequence[float], documents: int, k: int, moved: float = 0.0) -> float:
    """Predict the seconds of a query beside what an engine takes for a batch, whatever its size.

    Parameters
    ----------
    engine, mode
        "cpu" (one thread) or "gpu"; "and", "or" or "and_or".
    frequencies
        How many documents each of its lists has, the shortest first.
    documents
        How many there are.
    k
        How many results are wanted: "and_or" is predicted to need the "or", too, where words that are independent of
        one another would stand together in fewer documents.
    moved
        Bytes that must be copied to a GPU first.

    """
    features = features_of(frequencies, documents)
    ways = [mode]
    if mode == "and_or":
        together = documents * math.prod(size / max(documents, 1) for size in frequencies)
        ways = ["and"] if together >= k else ["and", "or"]
    costs = COSTS[engine]
    nanoseconds = costs["all"].get("moved", 0.0) * moved
    for way in ways:
        nanoseconds += sum(cost * features[way].get(feature, 0.0) for feature, cost in costs[way].items())
    return 1e-9 * max(nanoseconds, _LEAST)
