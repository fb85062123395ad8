"""Chooses the way of a traversal, from the rows down or from the words up, by a cost model."""

from __future__ import annotations

from dataclasses import dataclass

from polars_tadoc.traversal.costs import COSTS
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
"""Which cost model each analytic goes by."""

STRATEGIES = ("top_down", "bottom_up")


@dataclass(frozen=True)
class Choice:
    """What was chosen for one corpus, and why."""

    strategy: str
    milliseconds: dict[str, float]
    """Estimated by strategy."""
    features: dict[str, float]
    """What the estimates are made of."""
    costs: dict[str, dict[str, float]]
    """By strategy, nanoseconds by feature."""


def choose_strategy(asked: str, source: Source, analytic: str, n: int = 1) -> str:
    """Return the strategy asked for; for "auto" the one estimated to be faster."""
    if asked != "auto":
        return asked
    if is_settled(analytic):
        return "top_down"
    return weigh(source, analytic, n).strategy


def is_settled(analytic: str) -> bool:
    """Tell whether "auto" is always top-down: where each rule's body is read once, no table per rule is cheaper."""
    return FAMILIES[analytic] == "terminal_counts"


def weigh(source: Source, analytic: str, n: int = 1) -> Choice:
    """Estimate both strategies for one corpus.

    Parameters
    ----------
    source
        The corpus.
    analytic
        Name of the call.
    n
        Its ``n`` or ``window``.

    """
    features = features_of(source, n)
    costs = COSTS[source.engine.name][FAMILIES[analytic]]
    milliseconds = {
        strategy: sum(cost * features[name] for name, cost in costs[strategy].items()) / 1e6 for strategy in STRATEGIES
    }
    return Choice(min(STRATEGIES, key=lambda strategy: milliseconds[strategy]), milliseconds, features, costs)


def features_of(source: Source, n: int = 1) -> dict[str, float]:
    """Return the statistics that costs are fitted to, by name.

    Those of :class:`polars_tadoc.kernels.host.grammars.statistics.Statistics`, and ``calls``: 1; ``levels`` of the
    rules; ``weights``: documents x rules; ``windows``: runs of ``n`` words or pairs that span symbols, from above, as
    long as documents are on average.
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
