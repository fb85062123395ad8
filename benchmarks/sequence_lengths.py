r"""Sequences of several lengths: ``python -m benchmarks.sequence_lengths``.

``sequence_count(n=range(2, 6))`` beside one call for each length, with all sequences and with ``top=100``: on a column
of one grammar, on one of several, and on plain text. Each time is the smallest of the rounds, in which both take turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora

CORPORA = ["docs_peps", "versioned_cockroach"]
LENGTHS = range(2, 6)
GRAMMARS = 4


def fastest(calls: list[Callable[[], object]], rounds: int) -> list[float]:
    """Return the smallest time of each call, in seconds."""
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for own, call in zip(times, calls, strict=True):
            start = time.perf_counter()
            call()
            own.append(time.perf_counter() - start)
    return [min(own) for own in times]


def measure(column: pl.Series, rounds: int, options: dict[str, Any]) -> str:
    """Compare both; return a line."""
    accessor = tadoc.of(column)

    def apart() -> pl.DataFrame:
        return pl.concat([accessor.sequence_count(n=n, **options) for n in LENGTHS])

    def together() -> pl.DataFrame:
        return accessor.sequence_count(n=LENGTHS, **options)

    assert together().drop("n").equals(apart())
    one, other = fastest([together, apart], rounds)
    return f"{1e3 * one:7.0f} ms, call by call {1e3 * other:7.0f} ms: {other / one:5.2f} x"


def main() -> None:
    args = corpora.arguments(__doc__ or "").parse_args()
    print(f"machine: {corpora.machine()}")
    for given in args.corpora or CORPORA:
        name, text = corpora.load(given)
        print(f"{name}: {len(text):,} rows, {text.str.len_bytes().sum() / 1e6:.1f} MB")
        columns = {
            "one grammar": tadoc.compress(text),
            f"{GRAMMARS} grammars": tadoc.compress(text, rows_per_grammar=-(-len(text) // GRAMMARS)),
            "plain text": text,
        }
        for label, column in columns.items():
            for options in ({}, {"min_count": 2}, {"top": 100}):
                print(f"  {label:12} {options!s:18} {measure(column, args.repeat, options)}", flush=True)


if __name__ == "__main__":
    main()
