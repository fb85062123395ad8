"""Subscriptions that change: what adding and removing a twig costs, and the first filter call afterwards.

    python -m benchmarks.twig_changes [--counts 1000 10000 100000]

Each subscription asks for an author of an article in a year, by a text and an attribute of its own, so names and
values grow with the set. A batch is a few documents as DBLP's. Times are medians over rounds: of one change, of a call
that follows no change, one removed twig, one added twig, and one added while the set as it was is still in use, as in a
plan or another thread.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median
from time import perf_counter

import polars as pl

import polars_tadoc as tadoc
from benchmarks.dblp import documents

COUNTS = [1_000, 10_000, 100_000]
BATCH, DOCUMENT_BYTES = 4, 25_000
ROUNDS = 9


def subscription(number: int) -> str:
    """Return the query of a number; no two are equal."""
    return f'//article[@key="journals/{number % 97}/{number}"][author/text()="Author {number}"]//year'


def seconds(call: Callable[[], object]) -> float:
    """Time a call."""
    start = perf_counter()
    call()
    return perf_counter() - start


def measure(count: int, batch: pl.Series) -> dict[str, float]:
    """Return seconds by what was done to a set of so many twigs."""
    queries = {f"s{number}": subscription(number) for number in range(count)}
    times: dict[str, list[float]] = {}
    kept: list[object] = []
    number = count

    def note(what: str, call: Callable[[], object]) -> None:
        times.setdefault(what, []).append(seconds(call))

    def call() -> None:
        batch.tadoc.twig_filter(subscriptions)

    def add() -> None:
        nonlocal number
        subscriptions.add(f"s{number}", subscription(number))
        number += 1

    subscriptions = tadoc.TwigSet()
    note("make the set", lambda: subscriptions.update(queries))
    note("first call", call)
    for round in range(ROUNDS):
        call()
        note("call, no change", call)
        note("add", add)
        note("call after add", call)
        note("remove", lambda: subscriptions.remove(f"s{round}"))  # noqa: B023
        note("call after remove", call)
        kept[:] = [pl.col("xml").tadoc.twig_filter(subscriptions)]
        note("add, as it was in use", add)
        note("call after that", call)
        kept.clear()
    return {what: median(own) for what, own in times.items()}


def main() -> None:
    """Print a table: milliseconds by number of twigs."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--counts", type=int, nargs="+", default=COUNTS)
    counts = arguments.parse_args().counts
    batch = pl.Series("xml", documents(BATCH, DOCUMENT_BYTES))
    measure(100, batch)  # compiles
    results = [measure(count, batch) for count in counts]
    print(f"{'milliseconds':24}" + "".join(f"{count:>12,}" for count in counts))
    for what in results[0]:
        print(f"{what:24}" + "".join(f"{1000 * result[what]:12.3f}" for result in results))


if __name__ == "__main__":
    main()
