"""Chooses the direction of a traversal, top-down from rows or bottom-up from words, by a cost model."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from polars_tadoc.config import settings
from polars_tadoc.engine.machine_costs import factor, observe
from polars_tadoc.traversal.costs import COSTS, EXPANDED_COSTS
from polars_tadoc.traversal.source import Source

FAMILIES = {
    "word_count": "terminal_counts",
    "sort": "terminal_counts",
    "inverted_index": "inverted_index",
    "term_vector": "term_vector",
    "sequence_count": "sequence_count",
    "ranked_inverted_index": "ranked_inverted_index",
    "cooccurrence": "cooccurrence",
    "bm25_weights": "term_vector",
    "tfidf": "term_vector",
}
"""Cost model of each analytic."""

MAX_EXPANDED = 1 << 30
"""Maximum words that are expanded on a device: they are sorted at once."""

EXPANDED_SHARE = 4
"""Of the device's cache the words of one column take at most so small a share."""

EXPANDED_SPAN = 8
"""Words that a sequence or a window spans at most, for its keys to be written for expanded words."""

STRATEGIES = ("top_down", "bottom_up")


@dataclass(frozen=True)
class Choice:
    """The chosen strategy of one corpus, with the estimates."""

    strategy: str
    milliseconds: dict[str, float]
    """Estimated cost by strategy."""
    features: dict[str, float]
    """Inputs of the estimates."""
    costs: dict[str, dict[str, float]]
    """Coefficients by strategy, in nanoseconds per feature."""


def choose_strategy(asked: str, source: Source, analytic: str, n: int = 1) -> str:
    """Return the requested strategy; for "auto" the one with the lower estimate."""
    if asked != "auto":
        return asked
    if is_settled(analytic):
        return "top_down"
    return weigh(source, analytic, n).strategy


def settle(asked: str, source: Source, analytic: str, n: int = 1) -> tuple[Source, str]:
    """Return what a call reads, and its strategy.

    With "auto", a device reads the words themselves, expanded once and kept with the rows, where rules are estimated to
    save less than they cost.
    """
    if asked != "auto":
        return source, asked
    choice, plain = weigh(source, analytic, n), expanded_milliseconds(source, analytic, n)
    if plain is not None and plain < choice.milliseconds[choice.strategy]:
        return source.expanded(), "top_down"
    return source, choice.strategy


def expanded_milliseconds(source: Source, analytic: str, n: int) -> float | None:
    """Estimate a call on expanded words; None if they are not kept, or would be too many to keep."""
    costs, words = EXPANDED_COSTS.get(FAMILIES[analytic]), source.word_total
    if costs is None or words is None or n > EXPANDED_SPAN:
        return None
    if words >= MAX_EXPANDED or EXPANDED_SHARE * 4 * words > settings().device_cache_bytes:
        return None
    each = costs["words"] * (n if analytic == "cooccurrence" else 1)
    return factor(f"{source.engine.name} {FAMILIES[analytic]} expanded") * (costs["calls"] + each * words) / 1e6


@contextmanager
def timed_source(asked: str, source: Source, analytic: str, n: int = 1) -> Iterator[tuple[Source, str]]:
    """Yield :func:`settle`'s; the time of the block corrects further estimates."""
    read, strategy = settle(asked, source, analytic, n)
    start = time.perf_counter()
    yield read, strategy
    if asked == "auto":
        _correct(source, analytic, n, strategy if read is source else "expanded", time.perf_counter() - start)


@contextmanager
def timed_strategy(asked: str, source: Source, analytic: str, n: int = 1) -> Iterator[str]:
    """Yield :func:`choose_strategy`'s; the time of the block corrects further estimates."""
    strategy = choose_strategy(asked, source, analytic, n)
    start = time.perf_counter()
    yield strategy
    if asked == "auto" and not is_settled(analytic):
        _correct(source, analytic, n, strategy, time.perf_counter() - start)


def _correct(source: Source, analytic: str, n: int, strategy: str, taken: float) -> None:
    if strategy == "expanded":
        predicted = expanded_milliseconds(source, analytic, n) or 0.0
    else:
        predicted = weigh(source, analytic, n).milliseconds[strategy]
    observe(f"{source.engine.name} {FAMILIES[analytic]} {strategy}", predicted / 1e3, taken)


def is_settled(analytic: str) -> bool:
    """Tell whether "auto" is always top-down: it reads each rule's body once, which no table per rule can beat."""
    return FAMILIES[analytic] == "terminal_counts"


def weigh(source: Source, analytic: str, n: int = 1) -> Choice:
    """Estimate the costs of both strategies for one corpus.

    Parameters
    ----------
    source
        The corpus.
    analytic
        Name of the call.
    n
        Argument ``n`` or ``window`` of the call.

    """
    features, engine, family = features_of(source, n), source.engine.name, FAMILIES[analytic]
    milliseconds = {
        strategy: factor(f"{engine} {family} {strategy}") * shipped
        for strategy, shipped in shipped_milliseconds(engine, analytic, features).items()
    }
    return Choice(
        min(STRATEGIES, key=lambda strategy: milliseconds[strategy]), milliseconds, features, COSTS[engine][family]
    )


def shipped_milliseconds(engine: str, analytic: str, features: dict[str, float]) -> dict[str, float]:
    """Estimate the costs of both strategies by the shipped coefficients."""
    costs = COSTS[engine][FAMILIES[analytic]]
    return {
        strategy: sum(cost * features[name] for name, cost in costs[strategy].items()) / 1e6 for strategy in STRATEGIES
    }


def features_of(source: Source, n: int = 1) -> dict[str, float]:
    """Return the features of the cost model by name.

    The fields of :class:`polars_tadoc.kernels.host.grammars.statistics.Statistics`, and: ``calls``, 1; ``levels`` of
    the rules; ``weights``, documents x rules; ``windows``, an upper bound of the runs of ``n`` words, or pairs, that
    span symbols, for documents of average length.
    """
    measured = source.statistics
    symbols = float(measured.symbols + measured.roots)
    reach = min(max(n - 1, 1), 1 + measured.merged // max(measured.documents, 1))
    return {
        "calls": 1.0,
        "documents": float(measured.documents),
        "roots": float(measured.roots),
        "symbols": float(measured.symbols),
        "tables": float(measured.tables),
        "pushed": float(measured.pushed),
        "merged": float(measured.merged),
        "found": float(measured.found),
        "levels": float(len(source.rules.level_offsets) - 1),
        "weights": float(measured.documents) * measured.rules,
        "windows": reach * symbols,
    }
