"""Random patterns over real lines, in all ways, against Polars: ``python -m tests.rows.pattern_draws --seconds 600``.

Lines are of ``examples/data``, or of the shared corpora whose names are given. Each draw compresses some of them, in
one of many shapes (several grammars, chunks, nulls, slices, repeated rows, odd characters), sets limits that decide
how a pattern is searched, and compares calls with Polars' calls on the text. A difference is printed and written to
``--findings``; ``--replay FILE`` runs it again.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
from polars.exceptions import ComputeError

import polars_tadoc as tadoc
from benchmarks.corpora import SAMPLES, SHARED
from polars_tadoc.rows import pattern_exact, pattern_kept, pattern_search, pattern_triples, pattern_words
from tests import ROOT

CALLS = ("contains", "count_matches", "find", "extract_all")
NEVER = 1 << 40
WAYS: dict[str, tuple[Any, str, list[int]]] = {
    "spelled_from": (pattern_kept, "SPELLED_FROM", [1, 1, 2, NEVER]),
    "sparse": (pattern_exact, "SPARSE", [0, 8, 8, NEVER]),
    "chunk": (pattern_exact, "CHUNK", [1, 1 << 17]),
    "marked": (pattern_exact, "MARKED", [1, 1 << 15]),
    "long": (pattern_triples, "LONG", [0, NEVER, NEVER]),
    "dense": (pattern_triples, "DENSE", [0, 4, NEVER]),
    "dense_chunk": (pattern_triples, "CHUNK", [1, 1 << 16]),
    "open": (pattern_triples, "MARKED", [1, 1 << 14]),
    "flags": (pattern_search, "SPARSE", [0, 16, NEVER]),
    "dropped": (pattern_search, "DROPPED", [0, 200_000, NEVER]),
    "tried": (pattern_search, "TRIED", [0, 200_000]),
    "table": (pattern_search, "TABLE", [16, 1 << 15]),
    "rare": (pattern_search, "RARE", [0, 64, NEVER]),
    "frequent": (pattern_search, "FREQUENT", [0, 2000, NEVER]),
    "after_gap": (pattern_search, "MAX_AFTER_GAP", [1, 8]),
    "before": (pattern_words, "MAX_BEFORE", [2, 48, 48]),
    "after": (pattern_words, "MAX_AFTER", [2, 200, 200]),
    "classes": (pattern_words, "MAX_CLASSES", [3, 254, 254]),
}
"""Limits by name: the module, its attribute, and values to draw from."""

TOKENIZERS = ["words", "words", "words", "whitespace", "code", "xml", "regex:[a-z]+|[0-9]"]
ODD = [
    "",
    " ",
    "\n",
    "\r\n",
    "a\x00b",
    "\x00",
    "明月 b月a",
    "ねこ。猫",
    "é\u0301",
    "🙂🙂 ok",
    "x" * 300,
    " " * 300,
    "-",
]
ODD += [
    "a " * 300,
    "to be, " * 90 + "or",
    "\ta",
    "a\r\nb\r\n",
    "\ufeffGET",
    "I\u0307ß",
    "_a_ __ 1_0",
    "C++ a.b.c#",
    "<a>b</a>",
]
PARTS = [
    r"\w+",
    r"\d+",
    ".*",
    r"\s",
    "[a-f]+",
    r"\W",
    r"\b",
    "(?i:e)",
    ".*?",
    "[^ ]*",
    r"\n",
    "$",
    "^",
    "(?m:^)",
    "(?m:$)",
]
PARTS += [
    " ",
    "a|b",
    r"\B",
    r"\S+ \S+",
    r"(\w+) ",
    r"\D{2,4}",
    "[A-Z][a-z]*",
    r"\p{L}+",
    "[^a-z]",
    r"(?s:.)",
    r"\r?\n",
    "  +",
]


@dataclass(frozen=True)
class Draw:
    """Rows, how they are kept, how they are searched, and what for."""

    rows: list[str | None]
    tokenizer: str
    rows_per_grammar: int
    shape: str
    ways: dict[str, int]
    searches: list[tuple[str, bool]]
    """Patterns, and whether each is a literal."""

    def run(self) -> Iterator[tuple[str, str, bool, object, object]]:
        """Yield each comparison: call, pattern, whether it is a literal, what is due, and what was returned."""
        text = pl.Series("text", self.rows, pl.String)
        if self.tokenizer == "xml":
            text = "<a>" + text.str.replace_all("[<>&]", "") + "</a>"
        name = self.tokenizer
        cut: Any = re.compile(name.removeprefix("regex:")) if name.startswith("regex:") else name
        column = SHAPES[self.shape](tadoc.compress(text, tokenizer=cut, rows_per_grammar=self.rows_per_grammar))
        text = SHAPES[self.shape](text)
        assert tadoc.decompress(column).equals(text)
        with ExitStack() as stack:
            for way, value in self.ways.items():
                module, attribute, _ = WAYS[way]
                stack.enter_context(patch.object(module, attribute, value))
            for pattern, literal in self.searches:
                for call in CALLS[: 3 if literal else 4]:
                    options = {"literal": True} if literal else {}
                    try:
                        due = getattr(text.str, call)(pattern, **options).to_list()
                    except ComputeError:
                        continue
                    yield call, pattern, literal, due, getattr(tadoc, call)(column, pattern, **options).to_list()


SHAPES: dict[str, Callable[[pl.Series], pl.Series]] = {
    "whole": lambda own: own,
    "slice": lambda own: own[len(own) // 3 : len(own) - len(own) // 4],
    "chunks": lambda own: pl.concat([own[: len(own) // 2], own[len(own) // 2 :]], rechunk=False),
    "backwards": lambda own: own.gather(list(range(len(own) - 1, -1, -1))),
    "some": lambda own: own.filter(pl.Series([place % 3 != 1 for place in range(len(own))], dtype=pl.Boolean)),
    "nulls": lambda own: own.to_frame("t").select(pl.when(pl.int_range(pl.len()) % 4 != 2).then("t")).to_series(),
}


def lines_of(names: list[str]) -> list[str]:
    """Return the lines of some corpora, at most 40,000 of each."""
    paths = [SHARED / f"{name}.parquet" for name in names] or sorted(SAMPLES.glob("*.parquet"))
    texts = [pl.read_parquet(path, columns=["text"])["text"].drop_nulls() for path in paths]
    if not names:
        texts += [pl.Series([path.read_text(errors="replace")]) for path in sorted((SAMPLES / "logs").glob("*"))]
    found: list[str] = []
    for text in texts:
        lines = text.str.split("\n").explode()
        start = random.Random(len(found)).randrange(max(1, len(lines) - 40_000))
        found += lines[start : start + 40_000].to_list()
    return found


def draw(lines: list[str], seed: int) -> Draw:
    """Draw rows and searches."""
    own = random.Random(seed)
    count = own.choice([1, 2, 5, 30, 120, 300])
    at = own.randrange(max(1, len(lines) - count))
    rows: list[Any] = [line[:2000] for line in lines[at : at + count]]
    rows += [own.choice(rows) for _ in range(own.choice([0, count // 2, 3 * count]))]
    if own.random() < 0.3:
        rows = [own.choice(["\n", "\r\n"]).join(rows[place : place + 3]) for place in range(0, len(rows), 3)]
    if own.random() < 0.4:
        rows += own.sample(ODD, own.randrange(1, len(ODD)))
        rows += [f"{own.choice(rows)}{own.choice(ODD)}{own.choice(rows)}" for _ in range(own.randrange(6))]
    if own.random() < 0.3:
        rows += [None] * own.randrange(1, 4)
    if own.random() < 0.3:
        own.shuffle(rows)
    text = "\n".join(row for row in rows if row) or "a"
    searches = [_literal(own, text) if own.random() < 0.35 else _regex(own, text) for _ in range(6)]
    ways = {way: own.choice(values) for way, (_, _, values) in WAYS.items() if own.random() < 0.7}
    per_grammar = -(-len(rows) // own.choice([1, 1, 2, 5]))
    return Draw(rows, own.choice(TOKENIZERS), per_grammar, own.choice(list(SHAPES)), ways, searches)


def _piece(own: random.Random, text: str, longest: int) -> str:
    at = own.randrange(len(text))
    piece = text[at : at + own.randrange(1, longest)]
    if own.random() < 0.3:
        place = own.randrange(len(piece))
        piece = piece[:place] + own.choice(["e", " ", "", "\n", "明", "0", "-", own.choice(text)]) + piece[place + 1 :]
    return piece


def _literal(own: random.Random, text: str) -> tuple[str, bool]:
    return _piece(own, text, own.choice([3, 10, 40, 2000])), True


def _regex(own: random.Random, text: str) -> tuple[str, bool]:
    def part() -> str:
        if own.random() < 0.45:
            piece = "".join("\\" + c if c in r"\.+*?()|[]{}^$#&-~" else c for c in _piece(own, text, 9))
            return own.choice(
                [piece, piece, piece, f"(?:{piece})?", f"(?i:{piece})", f"(?:{piece}|{own.choice(PARTS)})"]
            )
        return own.choice(PARTS)

    made = "".join(part() for _ in range(own.randrange(1, 6)))
    if own.random() < 0.3:
        made = f"(?:{made}|{part()})"
    if own.random() < 0.15:
        made = f"(?:{made}){own.choice(['+', '*', '{2}', '{1,3}', '+?', '?'])}"
    start, end = own.choice(["", "", "", "^", r"\A", "(?m)^", r"\b"]), own.choice(["", "", "", "", "$", r"\z", r"\b"])
    return f"{start}{made}{end}", False


def compare(lines: list[str], seeds: Iterator[int]) -> tuple[int, dict[str, Any] | None]:
    """Run draws; return how many calls were compared, and the first finding, if any."""
    compared = 0
    for seed in seeds:
        one = draw(lines, seed)
        for call, pattern, literal, due, found in one.run():
            compared += 1
            if due != found:
                return compared, {"call": call, "pattern": pattern, "literal": literal, "draw": asdict(one)}
    return compared, None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", help="names in the shared corpora folder (default: examples/data)")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0, help="first seed")
    parser.add_argument("--findings", type=Path, default=ROOT / "build" / "pattern-finding.json")
    parser.add_argument("--replay", type=Path, help="run a finding again")
    args = parser.parse_args()
    if args.replay:
        told = json.loads(args.replay.read_text())["draw"]
        for call, pattern, _, due, found in Draw(**told).run():
            if due != found:
                raise SystemExit(f"{call} {pattern!r}: {due} in Polars, {found} here")
        print("no difference")
        return
    end, done = time.monotonic() + args.seconds, 0

    def seeds() -> Iterator[int]:
        nonlocal done
        while time.monotonic() < end:
            yield args.seed + done
            done += 1

    compared, finding = compare(lines_of(args.corpora), seeds())
    print(f"{done:,} draws, {compared:,} calls compared")
    if finding:
        args.findings.parent.mkdir(parents=True, exist_ok=True)
        args.findings.write_text(json.dumps(finding))
        raise SystemExit(f"{finding['call']} {finding['pattern']!r} differs: --replay {args.findings}")


if __name__ == "__main__":
    main()
