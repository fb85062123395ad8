"""What a query is predicted to take on each engine, in nanoseconds by feature (rough guesses, to be measured)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.postings import BLOCK

Costs = Mapping[str, Mapping[str, float]]

COSTS: dict[str, Costs] = {
    "cpu": {
        "and": {"queries": 20000.0, "candidates": 6.0, "blocks": 60.0},
        "or": {"queries": 20000.0, "shorter": 3.0, "postings": 0.5},
        "all": {},
    },
    "gpu": {
        "and": {"queries": 5000.0, "candidates": 0.05, "blocks": 1.0},
        "or": {"queries": 5000.0, "postings": 0.03, "documents": 0.001},
        "all": {"moved": 0.1},
    },
}

OVERHEADS = {"cpu": 200e-6, "gpu": 500e-6}
"""Seconds of a batch, whatever its size."""

BATCH_SECONDS = {"cpu": 0.001, "gpu": 0.02}
"""How long a batch of several queries is predicted to last at most, beside the overhead."""

_LEAST = 1000.0  # what a query without words may be predicted to take


def features_of(frequencies: npt.NDArray[np.integer[Any]], documents: int) -> dict[str, dict[str, float]]:
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
        By mode, "and" and "or": ``queries``, which is 1; ``lists``; ``postings`` of all lists, and ``shorter`` of all
        but the longest; ``candidates``, those of the shortest; ``blocks``, how many of the other lists can hold one
        of them; ``documents``.

    """
    sizes = np.asarray(frequencies, np.float64)
    if not len(sizes):
        return {"and": {"queries": 1.0}, "or": {"queries": 1.0}}
    blocks = np.minimum(np.ceil(sizes[1:] / BLOCK), sizes[0]).sum()
    common = {"queries": 1.0, "lists": float(len(sizes)), "documents": float(documents)}
    return {
        "and": {**common, "candidates": float(sizes[0]), "blocks": float(blocks)},
        "or": {**common, "postings": float(sizes.sum()), "shorter": float(sizes.sum() - sizes.max())},
    }


def predict(
    engine: str, mode: str, frequencies: npt.NDArray[np.integer[Any]], documents: int, k: int, moved: float = 0.0
) -> float:
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
        together = documents * float(np.prod(np.asarray(frequencies, np.float64) / max(documents, 1)))
        ways = ["and"] if together >= k else ["and", "or"]
    costs = COSTS[engine]
    nanoseconds = (
        sum(cost * features[way].get(feature, 0.0) for way in ways for feature, cost in costs[way].items())
        + costs["all"].get("moved", 0.0) * moved
    )
    return 1e-9 * max(nanoseconds, _LEAST)
