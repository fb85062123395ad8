r"""Phrases: ``python -m benchmarks.phrases``.

``count_phrase`` beside Polars on the plain strings in memory: ``str.count_matches``, literal and as a regex with word
boundaries and any gaps between words, of which the faster one counts in each case. The literal one counts other things:
parts of words, too, and one space between words only. ``contains_any`` of 100 phrases beside ``str.contains_any``,
Polars' Aho-Corasick, and ``contains_phrase`` beside ``str.contains``. Phrases of one to five words: the most frequent
one, one of middling frequency, one that occurs once or hardly more, one whose words are there but do not follow each
other, and one with a word that is nowhere.

``--rows-per-grammar`` cuts the column into several grammars, and the geometric mean of each corpus' ratios of
``count_phrase`` is printed last.

Contenders take turns, each several calls in a row; the first of a row, for which the other's text has just filled the
caches, is printed apart (as "first").
"""

from __future__ import annotations

import math
import re
import statistics
import time
from collections.abc import Callable

import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora

IN_A_ROW = 6
CORPORA = ["logs_dmesg", "logs_elastic", "versioned_longhorn", "versioned_powershell", "docs_peps", "prose_books"]
CORPORA += ["versioned_cockroach"]
Call = Callable[[], object]


def choose(column: pl.Series) -> dict[str, str]:
    """Phrases by what they are."""
    chosen: dict[str, str] = {}
    for n in (1, 2, 3, 5):
        sequences = tadoc.sequence_count(column, n=n).column("sequence")
        for kind, place in (("frequent", 0), ("middling", len(sequences) // 50), ("rare", len(sequences) - 1)):
            chosen[f"{n} {kind}"] = " ".join(sequences[place].as_py())
    chosen["3 apart"] = f"{chosen['1 rare']} {chosen['1 frequent']} {chosen['1 rare']}"
    chosen["2 unknown"] = f"{chosen['1 frequent']} qvxzzy"
    return chosen


def pattern(phrase: str) -> str:
    """The phrase between word boundaries, whatever stands between its words."""
    return r"\b" + r"\W+".join(re.escape(word) for word in phrase.split()) + r"\b"


def measure(ours: Call, others: dict[str, Call], rounds: int, ratios: list[float] | None = None) -> str:
    """Times of both, how many times faster ours is than the fastest of the others, and so for first calls.

    ``ratios`` gets the first of these ratios.
    """
    calls = {"ours": ours, **others}
    taken: dict[str, list[list[float]]] = {name: [] for name in calls}
    for _ in range(rounds + 1):
        for name, call in calls.items():
            row = []
            for _ in range(IN_A_ROW):
                start = time.perf_counter()
                call()
                row.append(1e3 * (time.perf_counter() - start))
            taken[name].append(row)
    later = {name: statistics.median(t for row in rows[1:] for t in row[1:]) for name, rows in taken.items()}
    first = {name: statistics.median(row[0] for row in rows[1:]) for name, rows in taken.items()}
    peer, cold = min(others, key=lambda name: later[name]), min(others, key=lambda name: first[name])
    if ratios is not None:
        ratios.append(later[peer] / later["ours"])
    return (
        f"{later['ours']:7.3f} ms, {peer:7} {later[peer]:7.3f} ms: {later[peer] / later['ours']:6.1f} x;"
        f" first {first['ours']:7.3f} ms, {first[cold]:7.3f} ms: {first[cold] / first['ours']:6.1f} x"
    )


def count(text: pl.Series, column: pl.Series, phrase: str, rounds: int, ratios: list[float]) -> str:
    """Count one phrase; ``ratios`` gets how many times faster than Polars."""
    others: dict[str, Call] = {
        "literal": lambda: text.str.count_matches(phrase, literal=True),
        "regex": lambda: text.str.count_matches(pattern(phrase)),
    }
    times = measure(lambda: tadoc.count_phrase(column, phrase), others, rounds, ratios)
    return f"{phrase[:36]!r:38} {tadoc.count_phrase(column, phrase).sum():>8,} {times}"


def contain(text: pl.Series, column: pl.Series, phrase: str, rounds: int) -> str:
    """Find the rows that hold a phrase."""
    others: dict[str, Call] = {
        "literal": lambda: text.str.contains(phrase, literal=True),
        "regex": lambda: text.str.contains(pattern(phrase)),
    }
    times = measure(lambda: tadoc.contains_phrase(column, phrase), others, rounds)
    return f"{phrase[:36]!r:38} {tadoc.contains_phrase(column, phrase).sum():>8,} {times}"


def contain_any(text: pl.Series, column: pl.Series, phrases: list[str], rounds: int) -> str:
    """Find the rows that hold any of several phrases."""
    others: dict[str, Call] = {"polars": lambda: text.str.contains_any(phrases)}
    times = measure(lambda: tadoc.contains_any(column, phrases), others, rounds)
    return f"{'':38} {tadoc.contains_any(column, phrases).sum():>8,} {times}"


def main() -> None:
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--rows-per-grammar", type=int, help="rows that share a grammar")
    args = parser.parse_args()
    print(f"machine: {corpora.machine()}")
    for given in args.corpora or CORPORA:
        name, text = corpora.load(given)
        column = tadoc.compress(text, rows_per_grammar=args.rows_per_grammar)
        phrases, grammars = choose(column), tadoc.info(column)["grammars"][0]
        print(f"{name}: {len(text):,} rows, {text.str.len_bytes().sum() / 1e6:.1f} MB, grammars: {grammars}")
        ratios: list[float] = []
        for kind, phrase in phrases.items():
            print(f"  count {kind:12} {count(text, column, phrase, args.repeat, ratios)}")
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        least = sum(ratio >= 10 for ratio in ratios)
        print(f"  count: {mean:.1f} x by the geometric mean, at least 10 x for {least} of {len(ratios)} phrases")
        for kind in ("2 frequent", "2 middling", "2 rare"):
            print(f"  contains {kind:9} {contain(text, column, phrases[kind], args.repeat)}")
        pairs = tadoc.sequence_count(column, n=2, top=100_000).column("sequence").to_pylist()
        for kind, own in (("frequent", pairs[:100]), ("rare", pairs[-100:])):
            joined = [" ".join(pair) for pair in own]
            print(f"  any of 100 {kind:7} {contain_any(text, column, joined, args.repeat)}")


if __name__ == "__main__":
    main()
