"""What a group costs: counts of many tiny groups in one ``group_by``: ``python -m benchmarks.group_overhead``.

Rows of a few words in a thousand groups; the same aggregation of one group is subtracted, so that what is left is what
groups cost: microseconds for each.
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np
import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.side_by_side import times

ALLOWED = 50.0
CALLS = ("word_count", "sort", "sequence_count", "cooccurrence", "inverted_index", "ranked_inverted_index", "info")


def frame(rows: int, groups: int) -> pl.DataFrame:
    """Rows of three to eight words out of two thousand, by group."""
    random = np.random.default_rng(1)
    text = [" ".join(f"w{word}" for word in random.zipf(1.5, size) % 2000) for size in random.integers(3, 9, rows)]
    return pl.DataFrame({"group": np.arange(rows) % groups, "one": 0, "text": text}).tadoc.compress("text")


def main() -> None:
    """Print microseconds a group for each aggregation."""
    parser = argparse.ArgumentParser(description="what groups cost")
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=3, help="of each group")
    parser.add_argument("--repeat", type=int, default=9)
    given = parser.parse_args()
    print(corpora.machine())
    df = frame(given.rows * given.groups, given.groups)
    print(f"{given.groups:,} groups of {given.rows} rows")
    print("aggregation | one group ms | groups ms | us a group | allowed")
    with tadoc.Config(engine="cpu"):
        for call in CALLS:
            counted = getattr(pl.col("text").tadoc, call)()
            taken = times(
                {
                    "one": lambda counted=counted: df.group_by("one").agg(counted),  # type: ignore[misc]
                    "groups": lambda counted=counted: df.group_by("group").agg(counted),  # type: ignore[misc]
                },
                given.repeat,
            )
            one, many = (1e3 * statistics.median(taken[name]) for name in ("one", "groups"))
            each = 1e3 * many / given.groups
            print(f"{call} | {one:.2f} | {many:.2f} | {each:.1f} | {ALLOWED:.0f}", flush=True)
        rows = times({"rows": lambda: df.select(pl.col("text").tadoc.term_vector())}, given.repeat)["rows"]
        each = 1e6 * statistics.median(rows) / df.height
        print(f"term_vector, each row | | {1e3 * statistics.median(rows):.2f} | {each:.1f} | {ALLOWED:.0f}")


if __name__ == "__main__":
    main()
