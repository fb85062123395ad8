r"""Substrings and regular expressions: ``python -m benchmarks.patterns``.

``contains`` on the compressed column beside Polars' ``str.contains`` on the plain strings in memory; results are equal.
200 literals (half of them cut from random places of the text, 4 to 40 characters; the other half altered by one
character) and the 50 regular expressions below, listed before anything was measured. Ratios above 1: the compressed
column is faster. Both take turns; each pattern's time is the smallest of its rounds, after a call that isn't timed: the
column is split, its rows are spelled out and the automata of regular expressions are built before. What that takes is
printed first: the time of a column's first, second and third call with a pattern, the median time of calls with new
regular expressions then (and the ratio to Polars' calls with them, which are new to it, too), and the time to spell out
rows and their size beside that of the split column in memory. ``--regexes`` leaves out the literals.
``--calls`` prints only that. ``--threads`` prints instead how many times faster calls are with 2, 4 and 16 threads
than with one, on columns of one grammar and of four, with equal results. ``--classes`` also prints literals by length
and by the share of rows that match; ``--rows-per-grammar`` cuts the column into several grammars.

The default corpora are the versions of a manual (the largest corpus here), all logs, and prose.
"""

from __future__ import annotations

import math
import random
import statistics
import time
import tracemalloc
from collections.abc import Callable

import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from polars_tadoc.model.text_type import storage

CORPORA = ["versioned_cockroach", "logs_dmesg+logs_elastic+logs_loghub2k", "prose_books"]
LITERALS = 200
REGEXES = [
    r"\d+\.\d+\.\d+\.\d+",
    r"\d{4}-\d{2}-\d{2}",
    r"\d{2}:\d{2}:\d{2}",
    r"0x[0-9a-f]+",
    r"[0-9a-f]{8}-[0-9a-f]{4}",
    r"(?i)error",
    r"(?i)timed? ?out",
    r"[Ee]rror|[Ff]ail(ed|ure)",
    r"\bfail\w*",
    r"\berror\b",
    r"\b[A-Z]{3,}\b",
    r"[A-Z]\w+Exception",
    r"[A-Z][a-z]+ [A-Z][a-z]+",
    r"user .* from",
    r"from \S+ port \d+",
    r"port \d+",
    r"/[a-z]+/[a-z]+\.html",
    r"https?://\S+",
    r"https?://[\w.]+/\w+",
    r"\w+@\w+\.\w+",
    r"\.(png|jpe?g|gif)",
    r"\b(GET|POST|PUT) /",
    r"HTTP/1\.[01]",
    r" [45]\d\d ",
    r"^\[",
    r"\.$",
    r"^\s*$",
    r"(?m)^#+ ",
    r"(?m)^- ",
    r"(?m):$",
    r"\(\w+\)",
    r"\[[^\]]*\]",
    r"\"[^\"]+\"",
    r"=\d+",
    r"\w+=\w+",
    r"usb \d-\d",
    r"eth\d|wlan\d",
    r"v\d+\.\d+",
    r"version \d+",
    r"\d+ (ms|seconds|minutes)",
    r"\d+%",
    r"(\w+) \w+ \w+ing\b",
    r"the (first|last|next) \w+",
    r"\bnot\b.*\bnull\b",
    r"CREATE (TABLE|INDEX)",
    r"SELECT .* FROM",
    r"[^\x00-\x7f]",
    r"\p{Lu}\p{Ll}+, ",
    r"colou?r",
    r"qu[^aeiou ]",
]


def literals(text: pl.Series) -> list[str]:
    """Cut literals from random places; alter every second one."""
    draw = random.Random(27)
    rows = text.filter(text.str.len_chars() >= 40)
    sizes = rows.str.len_chars().to_list()
    places = draw.choices(range(len(rows)), sizes, k=LITERALS)
    made = []
    for number, row in enumerate(places):
        start = draw.randrange(sizes[row] - 39)
        own = rows[row][start : start + draw.randint(4, 40)]
        if number % 2:
            at = draw.randrange(len(own))
            own = own[:at] + draw.choice("aeiostnr0 ") + own[at + 1 :]
        made.append(own)
    return made


def fastest(calls: list[Callable[[], object]], rounds: int) -> list[float]:
    """Return the smallest time of each call, in milliseconds; the calls take turns."""
    times = [math.inf] * len(calls)
    for _ in range(rounds):
        for place, call in enumerate(calls):
            start = time.perf_counter()
            call()
            times[place] = min(times[place], 1e3 * (time.perf_counter() - start))
    return times


def measure(text: pl.Series, column: pl.Series, patterns: list[str], literal: bool, rounds: int, shown: bool) -> str:
    """Compare both on some patterns; return a line."""
    logs, ours, theirs, won = [], 0.0, 0.0, 0
    for pattern in patterns:
        assert tadoc.contains(column, pattern, literal=literal).equals(text.str.contains(pattern, literal=literal))
        own, other = fastest(
            [
                lambda pattern=pattern: tadoc.contains(column, pattern, literal=literal),
                lambda pattern=pattern: text.str.contains(pattern, literal=literal),
            ],
            rounds,
        )
        logs.append(math.log(other / own))
        ours, theirs, won = ours + own, theirs + other, won + (own <= other)
        if shown:
            print(f"    {pattern!r:40.40} {own:8.2f} ms, Polars {other:8.2f} ms: {other / own:7.2f} x")
    logs.sort()
    mean, (low, median, high) = sum(logs) / len(logs), (logs[0], logs[len(logs) // 2], logs[-1])
    return (
        f"{math.exp(mean):6.2f} x by the geometric mean (median {math.exp(median):.2f}, lowest {math.exp(low):.3f}, "
        f"highest {math.exp(high):.1f}; {won} of {len(logs)} faster); {ours / len(logs):.2f} ms, Polars "
        f"{theirs / len(logs):.2f} ms"
    )


def by_class(text: pl.Series, column: pl.Series, patterns: list[str], rounds: int) -> None:
    """Print literals by length, and by the share of rows that match."""
    shares = {own: float(text.str.contains(own, literal=True).mean() or 0) for own in patterns}
    classes: dict[str, Callable[[str], bool]] = {
        "to 8 characters": lambda own: len(own) <= 8,
        "9 to 20": lambda own: 8 < len(own) <= 20,
        "21 and more": lambda own: len(own) > 20,
        "in no row": lambda own: shares[own] == 0,
        "to 1 % of rows": lambda own: 0 < shares[own] <= 0.01,
        "more rows": lambda own: shares[own] > 0.01,
    }
    for name, belongs in classes.items():
        some = [own for own in patterns if belongs(own)]
        if some:
            print(f"    {name:15} {len(some):3} {measure(text, column, some, True, rounds, False)}")


def first_calls(text: pl.Series, column: pl.Series) -> str:
    """Time the first calls on a column, and with new patterns; return a line."""

    def call(pattern: str, literal: bool = False) -> float:
        return fastest([lambda: tadoc.contains(column, pattern, literal=literal)], 1)[0]

    some = column.head(50).tadoc.decompress().tadoc.compress()
    for _ in range(3):  # kernels are loaded
        for own in REGEXES[:10]:
            tadoc.contains(some, own)
        tadoc.contains(some, "o be", literal=True)
    tracemalloc.start()
    first = call(REGEXES[0])
    split = tracemalloc.get_traced_memory()[0]
    second = call(REGEXES[0])
    size = tracemalloc.get_traced_memory()[0] - split
    tracemalloc.stop()
    third = call(REGEXES[0])
    new, theirs = zip(
        *((call(own), fastest([lambda own=own: text.str.contains(own)], 1)[0]) for own in REGEXES[1:]), strict=True
    )
    slower = math.exp(statistics.fmean(math.log(other / own) for own, other in zip(new, theirs, strict=True)))
    again = [call(own) for own in REGEXES[1:]]
    linked, literal = call("o be", True), call("o be", True)
    return (
        f"first call {first:.1f} ms, second {second:.1f}, third {third:.1f}; new regex {statistics.median(new):.1f} "
        f"({slower:.2f} x by the geometric mean), again {statistics.median(again):.1f} (medians); "
        f"first literal {linked:.1f}, again {literal:.2f}; "
        f"rows spelled out: {second - third:.0f} ms, {size / 1e6:.1f} MB; "
        f"column {storage(column).estimated_size() / 1e6:.1f} MB"
    )


def by_threads(text: pl.Series, patterns: dict[str, tuple[list[str], bool]], rounds: int) -> None:
    """Print ratios of one thread's times to those of several."""
    for grammars in (1, 4):
        column = tadoc.compress(text, rows_per_grammar=-(-len(text) // grammars))
        for call in ("contains", "count_matches"):
            for kind, (listed, literal) in patterns.items():
                totals: dict[int, float] = dict.fromkeys((1, 2, 4, 16), 0.0)
                for pattern in listed:
                    best, made = dict.fromkeys(totals, math.inf), {}
                    for _ in range(rounds + 2):  # the first calls split the column and spell out its rows
                        for threads in totals:
                            with tadoc.Config(threads=threads):
                                start = time.perf_counter()
                                made[threads] = getattr(tadoc, call)(column, pattern, literal=literal)
                                best[threads] = min(best[threads], 1e3 * (time.perf_counter() - start))
                    assert all(made[1].equals(own) for own in made.values())
                    totals = {threads: taken + best[threads] for threads, taken in totals.items()}
                ratios = ", ".join(f"{totals[1] / own:.2f} x with {threads}" for threads, own in totals.items())
                print(
                    f"  {grammars} grammars, {call:13} {len(listed)} {kind}: {totals[1]:7.1f} ms, {ratios}", flush=True
                )


def main() -> None:
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--calls", action="store_true", help="print the time of first calls only")
    parser.add_argument("--regexes", action="store_true", help="no literals")
    parser.add_argument("--threads", action="store_true", help="compare numbers of threads only")
    parser.add_argument("--classes", action="store_true", help="print literals by class, too")
    parser.add_argument("--rows-per-grammar", type=int, help="rows that share a grammar")
    parser.add_argument("--each", action="store_true", help="print each pattern")
    args = parser.parse_args()
    print(f"machine: {corpora.machine()}")
    for given in args.corpora or CORPORA:
        name, text = corpora.load(given)
        column = tadoc.compress(text, rows_per_grammar=args.rows_per_grammar)
        text = text.fill_null("")
        print(f"{name}: {len(text):,} rows, {text.str.len_bytes().sum() / 1e6:.1f} MB")
        if args.threads:
            some = {"literals": (literals(text)[::8], True), "regexes": (REGEXES[::2], False)}
            by_threads(text, some, args.repeat)
            continue
        print(f"  {first_calls(text, column)}")
        if args.calls:
            continue
        if not args.regexes:
            print(f"  {LITERALS} literals {measure(text, column, literals(text), True, args.repeat, args.each)}")
        if args.classes:
            by_class(text, column, literals(text), args.repeat)
        print(f"  {len(REGEXES)} regexes  {measure(text, column, REGEXES, False, args.repeat, args.each)}")
        told = [tadoc.explain(column, "contains", pattern=own) for own in REGEXES]
        apart = [own for own, line in zip(REGEXES, told, strict=True) if not line.endswith("for Polars: 0")]
        print(f"  regexes for which rows are decompressed: {len(apart)} {apart}")


if __name__ == "__main__":
    main()
