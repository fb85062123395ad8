"""Times both ways of each traversal on many small and few large documents, and what the selector picks.

Each corpus is taken as it is, cut into its lines (many small documents) and joined into five (few large ones).

    python -m benchmarks.strategies [corpora] [--engine gpu]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.side_by_side import median_ms, times
from polars_tadoc.analytics import (
    cooccurrence,
    inverted_index,
    ranked_inverted_index,
    sequence_count,
    term_vector,
    word_count,
)
from polars_tadoc.traversal.options import Options
from polars_tadoc.traversal.selector import choose_strategy
from polars_tadoc.traversal.source import Source, sources

ANALYTICS: dict[str, tuple[Any, dict[str, Any]]] = {
    "word_count": (word_count, {}),
    "inverted_index": (inverted_index, {}),
    "term_vector": (term_vector, {}),
    "sequence_count": (sequence_count, {"n": 3}),
    "ranked_inverted_index": (ranked_inverted_index, {"n": 3}),
    "cooccurrence": (cooccurrence, {"window": 5}),
}


def shapes(text: pl.Series) -> dict[str, pl.Series]:
    """The same text as other documents."""
    lines = text.str.split("\n").explode()
    size = -(-len(text) // 5)
    large = [text.slice(at, size).str.join("\n") for at in range(0, len(text), size)]
    return {"as it is": text, "lines": lines.filter(lines.str.len_bytes() > 0), "five": pl.concat(large)}


def contender(analytic: str, source: Source, strategy: str, engine: str) -> Callable[[], object]:
    """A run of one analytic on the kernels, no strings made."""
    module, arguments = ANALYTICS[analytic]
    request = module.Request.from_arguments(strategy=strategy, engine=engine, **arguments)
    kernels = source.engine.kernels
    if analytic == "word_count":
        return lambda: kernels.to_host(kernels.terminal_counts(source.rules, source.roots, strategy))
    return lambda: module.partial(source, request)


def main() -> None:
    """Print milliseconds of both strategies and how far the selector's choice is from the better one."""
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--engine", default="cpu", choices=["cpu", "gpu"])
    arguments = parser.parse_args()
    print(corpora.machine(), f"engine {arguments.engine}", sep="\n")
    print(f"{'corpus':<22}{'shape':<10}{'documents':>10} {'analytic':<22}{'top-down':>10}{'bottom-up':>10}  chosen")
    losses = []
    for name in corpora.names(arguments.corpora):
        stem, text = corpora.load(name)
        for shape, documents in shapes(text).items():
            column = tadoc.compress(documents)
            options = Options.from_arguments(
                normalize=None, lowercase=False, stopwords=None, strategy="auto", engine=arguments.engine
            )
            source = sources(column, "benchmark", options)[0]
            for analytic, (_, given) in ANALYTICS.items():
                ways = ("top_down", "bottom_up")
                taken = times(
                    {way: contender(analytic, source, way, arguments.engine) for way in ways}, arguments.repeat
                )
                best = {way: 1e3 * min(taken[way]) for way in ways}
                chosen = choose_strategy("auto", source, analytic, next(iter(given.values()), 1))
                losses.append(best[chosen] / min(best.values()))
                print(
                    f"{stem:<22}{shape:<10}{len(documents):>10} {analytic:<22}"
                    + "".join(f"{median_ms(taken, way):>10.2f}" for way in ways)
                    + f"  {chosen}{'' if losses[-1] <= 1.3 else f' ({losses[-1]:.2f} times the better)'}",
                    flush=True,
                )
    mean = math.exp(sum(map(math.log, losses)) / len(losses))
    within = sum(loss <= 1.3 for loss in losses)
    print(f"chosen / better: geometric mean {mean:.3f}, worst {max(losses):.2f}, {within} of {len(losses)} within 1.3")


if __name__ == "__main__":
    main()
