"""Analytics on few of a column's rows against all of them, warm: ``python -m benchmarks.filtered``.

A random 1 % of the rows and a contiguous 1 % (one row at least). Filter and analytic together may take 5 % of the
analytic's time on all rows plus 5 ms: *allowed*. Each line says how the time taken compares with it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

import numpy as np
import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.side_by_side import Contenders, times

STANDARD = [*corpora.STANDARD, "logs_elastic"]
SHARE, ALLOWED_SHARE, ALLOWED_MS = 0.01, 0.05, 5.0
CALLS: dict[str, Callable[[pl.Series], object]] = {
    "word_count": tadoc.word_count,
    "sort": tadoc.sort,
    "inverted_index": tadoc.inverted_index,
    "term_vector": tadoc.term_vector,
    "sequence_count": tadoc.sequence_count,
    "ranked_inverted_index": tadoc.ranked_inverted_index,
    "cooccurrence": tadoc.cooccurrence,
}


def masks(rows: int) -> dict[str, pl.Series]:
    """Which rows are kept, by what they are called."""
    few = max(1, round(SHARE * rows))
    scattered, together = np.zeros(rows, bool), np.zeros(rows, bool)
    scattered[np.random.default_rng(1).choice(rows, few, replace=False)] = True
    together[rows // 2 : rows // 2 + few] = True
    return {"random": pl.Series(scattered), "contiguous": pl.Series(together)}


def measure(column: pl.Series, call: Callable[[pl.Series], object], repeat: int) -> dict[str, float]:
    """Median milliseconds on all rows and on the kept ones, filter included."""
    contenders: Contenders = {"all": lambda: call(column)}
    for name, mask in masks(len(column)).items():
        contenders[name] = lambda mask=mask: call(column.filter(mask))  # type: ignore[misc]
    taken = times(contenders, repeat)
    return {name: 1e3 * statistics.median(rounds) for name, rounds in taken.items()}


def main() -> None:
    """Print a line for each corpus, analytic and choice of rows."""
    parser = corpora.arguments("analytics on 1 % of the rows")
    parser.add_argument("--calls", nargs="+", choices=list(CALLS), default=list(CALLS))
    given = parser.parse_args()
    print(corpora.machine())
    print("corpus | rows | analytic | all ms | rows kept | ms | allowed ms | of allowed")
    with tadoc.Config(engine="cpu"):
        for name in given.corpora or (STANDARD if corpora.SHARED.is_dir() else corpora.names([])):
            short, text = corpora.load(name)
            column = tadoc.compress(text) if text.dtype == pl.String else text
            for call in given.calls:
                found = measure(column, CALLS[call], given.repeat)
                allowed = ALLOWED_SHARE * found["all"] + ALLOWED_MS
                for kept in ("random", "contiguous"):
                    cells = [short, f"{len(column):,}", call, f"{found['all']:.1f}", kept, f"{found[kept]:.1f}"]
                    print(" | ".join([*cells, f"{allowed:.1f}", f"{found[kept] / allowed:.2f}"]), flush=True)


if __name__ == "__main__":
    main()
