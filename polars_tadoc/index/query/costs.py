"""Predicted time of queries on each engine, with coefficients measured on one machine.

Measured with ``python -m benchmarks.serving --measure small.json --engine gpu --documents 500000`` and the same with
25.2 million documents, alone and in batches; ``--fit small.json table.json`` fitted the coefficients, for an Intel Xeon
with 16 cores and an H100. In the median, predictions are off by a factor of 1.05 to 1.43.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from polars_tadoc.config import thread_count
from polars_tadoc.engine.choose import Engine, runnable
from polars_tadoc.engine.machine_costs import factor, observe, overhead
from polars_tadoc.index.query.plan import Plan
from polars_tadoc.index.query.request import Request
from polars_tadoc.kernels.postings.coded import BLOCK
from polars_tadoc.runtime.array_types import Float64, Int64

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
"""Nanoseconds by engine, mode and feature, on one CPU thread; ``moved`` is per byte copied to a GPU."""

FEATURES = ("queries", "lists", "candidates", "blocks", "postings", "shorter", "spread")
"""The features that determine the time of a query (:func:`features_of`)."""

OVERHEADS = {"cpu": 0.0005, "gpu": 0.0007}
"""Fixed seconds per batch."""

BATCH_SECONDS = {"cpu": 0.03, "gpu": 0.02}
"""Maximum predicted seconds of a batch of several queries, without the overhead."""

CROWDING = 1.15
"""Slowdown of a query on a CPU thread while all other threads are busy."""

_LEAST = 1000.0  # lower bound of predictions, for queries without words


def features_of(offsets: Int64, frequencies: Int64, documents: int) -> dict[str, dict[str, Float64]]:
    """Return the features of each query.

    Parameters
    ----------
    offsets
        int64, queries + 1: offsets of each query's lists.
    frequencies
        int64: documents of each list, in ascending order within a query.
    documents
        Number of documents.

    Returns
    -------
    dict
        By mode, "and" and "or", float64 by query: ``queries``, which is 1; ``lists``; ``candidates``, the postings of
        the shortest list; ``blocks``, the blocks of the other lists that may contain a candidate; ``postings`` of all
        lists, and ``shorter`` of all but the longest; ``spread``, documents per list.

    """
    sizes = np.diff(offsets)
    has = sizes > 0
    shortest, longest = np.zeros((2, len(sizes)), np.int64)
    shortest[has], longest[has] = frequencies[offsets[:-1][has]], frequencies[offsets[1:][has] - 1]
    owners = np.repeat(np.arange(len(sizes)), sizes)
    blocks = np.minimum(-(-frequencies // BLOCK), shortest[owners])
    blocks[offsets[:-1][has]] = 0
    postings = _sums(owners, frequencies, len(sizes))
    common = {"queries": np.ones(len(sizes)), "lists": sizes.astype(np.float64)}
    return {
        "and": {**common, "candidates": shortest.astype(np.float64), "blocks": _sums(owners, blocks, len(sizes))},
        "or": {**common, "postings": postings, "shorter": postings - longest, "spread": sizes * float(documents)},
    }


def predict(
    engine: str,
    mode: str,
    offsets: Int64,
    frequencies: Int64,
    documents: int,
    k: int,
    moved: Float64 | float = 0.0,
    is_shipped: bool = False,
) -> Float64:
    """Predict the seconds of each query, without an engine's overhead per batch.

    Parameters
    ----------
    engine, mode
        "cpu" (one thread) or "gpu"; "and", "or" or "and_or".
    offsets, frequencies, documents
        As for :func:`features_of`.
    k
        Number of results: "and_or" is predicted to run "or" as well if independent words would occur together in fewer
        documents.
    moved
        Bytes to copy to a GPU first, by query.
    is_shipped
        Whether the shipped costs are asked for, not those of this machine.

    Returns
    -------
    float64 array
        By query.

    """
    features = features_of(offsets, frequencies, documents)
    costs = COSTS[engine]
    nanoseconds = np.zeros(len(offsets) - 1) + costs["all"].get("moved", 0.0) * moved
    for way in ("and", "or") if mode == "and_or" else (mode,):
        own = sum((cost * features[way][name] for name, cost in costs[way].items()), np.zeros(len(offsets) - 1))
        own = own * (1.0 if is_shipped else factor(f"{engine} queries {way}"))
        if mode == "and_or" and way == "or":
            own[together(offsets, frequencies, documents) >= k] = 0.0
        nanoseconds += own
    return 1e-9 * np.maximum(nanoseconds, _LEAST)


def together(offsets: Int64, frequencies: Int64, documents: int) -> Float64:
    """Return the expected number of documents that contain all words of a query, for independent words."""
    owners = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    with np.errstate(divide="ignore"):
        shares = np.log(frequencies / max(documents, 1))
    return np.asarray(documents * np.exp(_sums(owners, shares, len(offsets) - 1)))


def choose_engine(asked: str, plan: Plan, documents: int, request: Request) -> Engine:
    """Choose the engine for a plan: "auto" takes the one predicted to be faster with the index resident."""
    engines = runnable(asked)
    if len(engines) == 1:
        return engines[0]
    return min(engines, key=lambda engine: seconds_of(engine, plan, documents, request))


def seconds_of(engine: Engine, plan: Plan, documents: int, request: Request) -> float:
    """Predict the seconds of a plan on an engine with the index resident."""
    own = predict(engine.name, request.mode, plan.offsets, plan.frequencies[plan.items], documents, request.k)
    threads = engine.threads(thread_count())
    return float(overhead_of(engine.name) + max(own.sum() / threads, own.max(initial=0.0)))


def overhead_of(engine: str) -> float:
    """Return the seconds of a batch, whatever its size."""
    return overhead(engine, OVERHEADS[engine])


def correct(engine: Engine, plan: Plan, documents: int, request: Request, taken: float) -> None:
    """Correct predictions by the seconds of a search, where there is a choice of engines."""
    if request.mode != "and_or" and len(runnable("auto")) > 1:
        own = overhead_of(engine.name)
        predicted = seconds_of(engine, plan, documents, request) - own
        observe(f"{engine.name} queries {request.mode}", predicted, taken - own)


def edge_of(mode: str) -> Float64:
    """Return what one query's features take on the CPU less on a GPU, as :func:`choose_engine` weighs these.

    Returns
    -------
    float64 array
        Nanoseconds by feature, in the order of ``FEATURES``; empty without a GPU. "and_or" is for the GPU to answer
        unless all of it is predicted apart.

    """
    if len(runnable("auto")) == 1:
        return _NO_EDGE
    if mode == "and_or":
        return np.full(len(FEATURES), np.inf)
    costs = [
        factor(f"{engine} queries {mode}") * np.array([COSTS[engine][mode].get(name, 0.0) for name in FEATURES])
        for engine in ("cpu", "gpu")
    ]
    edge: Float64 = costs[0] - costs[1]
    edge[0] += 1e9 * (overhead_of("cpu") - overhead_of("gpu"))
    return edge


_NO_EDGE = np.zeros(0)


def _sums(owners: Int64, values: npt.NDArray[np.generic], size: int) -> Float64:
    return np.bincount(owners, values, size).astype(np.float64)
