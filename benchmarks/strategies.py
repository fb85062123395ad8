"""Times both ways of each traversal on many small and few large documents, and what the selector picks.

Each corpus is taken as it is, cut into its lines (many small documents) and joined into five (few large ones).

    python -m benchmarks.strategies [corpora] [--engine gpu] [--fit]

With ``--fit`` the cost model is fitted to the times (non-negative least squares of the relative error) and printed as
``polars_tadoc/traversal/costs.py`` holds it, and what each choice loses is shown under that fit, too.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.side_by_side import median_ms, times
from polars_tadoc.analytics.explain import REQUESTS
from polars_tadoc.model.column import split
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.traversal.options import Options
from polars_tadoc.traversal.selector import FAMILIES, STRATEGIES, choose_strategy, features_of
from polars_tadoc.traversal.source import Source, sources

ANALYTICS: dict[str, dict[str, Any]] = {
    "word_count": {},
    "inverted_index": {},
    "term_vector": {},
    "sequence_count": {"n": 3},
    "ranked_inverted_index": {"n": 3},
    "cooccurrence": {"window": 5},
}


def shapes(text: pl.Series) -> dict[str, pl.Series]:
    """The same text as other documents."""
    lines = text.str.split("\n").explode()
    size = -(-len(text) // 5)
    large = [text.slice(at, size).str.join("\n") for at in range(0, len(text), size)]
    return {"as it is": text, "lines": lines.filter(lines.str.len_bytes() > 0), "five": pl.concat(large)}


def contender(analytic: str, corpus: Corpus, source: Source, strategy: str, engine: str) -> Callable[[], object]:
    """A run of one analytic on the kernels, no strings made."""
    request = REQUESTS[analytic].from_arguments(strategy=strategy, engine=engine, **ANALYTICS[analytic])
    if analytic == "word_count":
        return lambda: source.engine.kernels.to_host(request.partial(corpus, source.engine).counts)
    return lambda: request.partial(corpus, source.engine)


TERMS = {
    "terminal_counts": {"top_down": ["calls", "roots", "symbols"], "bottom_up": ["calls", "roots", "tables", "levels"]},
    **{
        family: {
            "top_down": ["calls", "documents", "roots", "symbols", "pushed", "found", "levels", "weights"],
            "bottom_up": ["calls", "documents", "roots", "tables", "merged", "found", "levels"],
        }
        for family in ("inverted_index", "term_vector")
    },
    **{
        family: {
            "top_down": ["calls", "documents", "windows", "pushed", "levels", "weights"],
            "bottom_up": ["calls", "documents", "windows", "tables", "merged", "levels"],
        }
        for family in ("sequence_count", "ranked_inverted_index", "cooccurrence")
    },
}
"""Features that each family's costs are fitted to."""

Measured = list[tuple[dict[str, float], dict[str, float]]]
"""Features of each case, and milliseconds by strategy."""


def fit(measured: Measured, strategy: str, terms: list[str]) -> dict[str, float]:
    """Fit nanoseconds by feature, none negative, by coordinate descent on the squared relative error."""
    times_ = np.array([1e6 * taken[strategy] for _, taken in measured])
    matrix = np.array([[features[term] for term in terms] for features, _ in measured]) / times_[:, None]
    scale = np.sqrt((matrix**2).sum(axis=0))
    scale[scale == 0] = 1.0
    matrix = matrix / scale
    costs = np.zeros(len(terms))
    for _ in range(20_000):
        for k in range(len(terms)):
            rest = 1.0 - matrix @ costs + matrix[:, k] * costs[k]
            costs[k] = max(0.0, float(matrix[:, k] @ rest))
    return {term: float(f"{cost:.3g}") for term, cost in zip(terms, costs / scale, strict=True) if cost > 0}


def show_fit(by_family: dict[str, Measured]) -> None:
    """Print the fitted costs, how far off they are, and what choices by them lose."""
    print("{")
    for family, measured in by_family.items():
        costs = {strategy: fit(measured, strategy, TERMS[family][strategy]) for strategy in STRATEGIES}
        errors, losses = [], []
        for features, taken in measured:
            estimated = {
                strategy: sum(cost * features[term] for term, cost in costs[strategy].items()) / 1e6
                for strategy in STRATEGIES
            }
            errors.extend(max(estimated[s] / taken[s], taken[s] / max(estimated[s], 1e-9)) for s in STRATEGIES)
            losses.append(taken[min(estimated, key=lambda s: estimated[s])] / min(taken.values()))
        print(f'    "{family}": {{')
        for strategy in STRATEGIES:
            print(f'        "{strategy}": {json.dumps(costs[strategy])},')
        print(f"    }},  # chosen / better at most {max(losses):.2f}; estimates off by {np.median(errors):.2f} times")
    print("}")


def main() -> None:
    """Print milliseconds of both strategies and how far the selector's choice is from the better one."""
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--engine", default="cpu", choices=["cpu", "gpu"])
    parser.add_argument("--fit", action="store_true", help="fit the cost model to these times")
    arguments = parser.parse_args()
    print(corpora.machine(), f"engine {arguments.engine}", sep="\n")
    print(f"{'corpus':<22}{'shape':<10}{'documents':>10} {'analytic':<22}{'top-down':>10}{'bottom-up':>10}  chosen")
    losses = []
    by_family: dict[str, Measured] = {}
    for name in corpora.names(arguments.corpora):
        stem, text = corpora.load(name)
        for shape, documents in shapes(text).items():
            column = tadoc.compress(documents)
            options = Options.from_arguments(
                normalize=None, lowercase=False, stopwords=None, strategy="auto", engine=arguments.engine
            )
            source, corpus = sources(column, "benchmark", options)[0], split(column)[0]
            for analytic, given in ANALYTICS.items():
                ways = ("top_down", "bottom_up")
                taken = times(
                    {way: contender(analytic, corpus, source, way, arguments.engine) for way in ways},
                    arguments.repeat,
                )
                best = {way: 1e3 * min(taken[way]) for way in ways}
                chosen = choose_strategy("auto", source, analytic, next(iter(given.values()), 1))
                features = features_of(source, next(iter(given.values()), 1))
                by_family.setdefault(FAMILIES[analytic], []).append((features, best))
                losses.append(best[chosen] / min(best.values()))
                print(
                    f"{stem:<22}{shape:<10}{len(documents):>10} {analytic:<22}"
                    + "".join(f"{median_ms(taken, way):>10.2f}" for way in ways)
                    + f"  {chosen}{'' if losses[-1] <= 1.3 else f' ({losses[-1]:.2f} times the better)'}",
                    flush=True,
                )
    mean = math.exp(sum(map(math.log, losses)) / len(losses))
    within = sum(loss <= 1.3 for loss in losses)
    if arguments.fit:
        show_fit(by_family)
    print(f"chosen / better: geometric mean {mean:.3f}, worst {max(losses):.2f}, {within} of {len(losses)} within 1.3")


if __name__ == "__main__":
    main()
