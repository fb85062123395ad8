"""Substrings and regular expressions in compressed columns, against Polars on the text."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.exceptions import ComputeError
from polars.testing import assert_series_equal

import polars_tadoc as tadoc
from polars_tadoc.errors import NotCompressedError
from polars_tadoc.rows import patterns
from polars_tadoc.rows.pattern_automaton import regex_automaton

PIECES = st.sampled_from(["a", "b", "ab", "ba", "a b a", " ", "  ", ", ", "\n", "é", "日", "🙂", "-", "9", "A"])
TEXTS = st.lists(PIECES, max_size=20).map("".join)
ROWS = st.lists(st.none() | TEXTS, min_size=1, max_size=8).flatmap(
    lambda own: st.lists(st.sampled_from(own), max_size=16).map(lambda more: own + more)
)
TOKENIZERS = st.sampled_from(["words", "whitespace", "xml"])
CALLS = ("contains", "count_matches", "find")


def compressed(rows: list[str | None], tokenizer: str) -> tuple[pl.Series, pl.Series]:
    """Text, and the same compressed, in one or two grammars."""
    text = pl.Series("text", rows, pl.String)
    if tokenizer == "xml":  # which takes documents
        text = "<a>" + text + "</a>"
    return text, tadoc.compress(text, tokenizer=tokenizer, rows_per_grammar=max(1, len(rows) // 2))


def check(text: pl.Series, column: pl.Series, call: str, pattern: str, **options: Any) -> None:
    """Hold a call to Polars' call."""
    expected = getattr(text.str, call)(pattern, **options)
    assert_series_equal(getattr(tadoc, call)(column, pattern, **options), expected)
    assert_series_equal(getattr(tadoc, call)(text, pattern, **options), expected)


@given(rows=ROWS, tokenizer=TOKENIZERS, data=st.data())
def test_literals(rows: list[str | None], tokenizer: str, data: Any) -> None:
    text, column = compressed(rows, tokenizer)
    own = "".join(row for row in text.to_list() if row)
    literals = [data.draw(TEXTS)]
    for _ in range(4):
        start = data.draw(st.integers(0, max(0, len(own) - 1)))
        literals.append(own[start : start + data.draw(st.integers(0, 12))])
    rare, frequent = data.draw(st.sampled_from([(0, 0), (0, 1 << 40), (1 << 40, 1 << 40)]))
    with patch.multiple(patterns, RARE=rare, FREQUENT=frequent):  # all ways of looking for words
        for literal in literals:
            for call in CALLS:
                check(text, column, call, literal, literal=True)


SETS = [
    "a",
    "b",
    "é",
    " ",
    "日",
    r"\w",
    r"\s",
    r"\W",
    r"\pL",
    ".",
    "[ab]",
    "[^a]",
    "[^\\w\\s]",
    ", ",
    r"\n",
    r"\-",
    "(?i:a)",
]
REGEXES = st.recursive(
    st.sampled_from([*SETS, r"\b", r"\B", "^", "$", "(?m:^)", "(?m:$)"]),
    lambda inside: st.one_of(
        st.lists(inside, min_size=2, max_size=4).map("".join),
        st.tuples(inside, inside).map("(?:{0[0]}|{0[1]})".format),
        st.tuples(inside, st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{2,}"])).map(
            "({0[0]}){0[1]}".format
        ),
    ),
    max_leaves=8,
)


@given(rows=ROWS, tokenizer=TOKENIZERS, pattern=REGEXES, drops=st.booleans())
def test_regexes(rows: list[str | None], tokenizer: str, pattern: str, drops: bool) -> None:
    text, column = compressed(rows, tokenizer)
    with patch.object(patterns, "DROPPED", 0 if drops else 1 << 62):
        for call in (*CALLS, "extract_all"):
            check(text, column, call, pattern)


@pytest.mark.parametrize(
    ("pattern", "is_held"),
    [
        (r"\d+\.\d+", True),
        (r"(?i)time-?out|\berr(or)?\b", True),
        (r"^\[[^\]]*\] [A-Z][a-z]+:$", True),
        (r"[[:alpha:]]+@\w+\.(com|org)", True),
        ("a|ab", True),
        ("a*", False),  # for counts: empty matches
        ("(?x)a b", False),
        ("[a[b]]", False),
        (r"(a|b)*a(a|b){20}", False),  # too many states
        (r"\x{e9}|[\]a-]|\u00e9", False),
    ],
)
def test_what_the_automaton_holds(pattern: str, is_held: bool) -> None:
    rows = [
        "1.5 at 22.75",
        "Time-out: err, error, terror",
        "[x y] Done:",
        "me@b.com you@c.org",
        "ab a] é[a",
        "ab" * 30,
    ]
    text, column = compressed([*rows, None], "words")
    assert pl.Series(rows).str.contains(pattern).any()
    alphabet = np.array(sorted({ord(own) for own in " ".join(rows)}), np.uint32)
    assert (regex_automaton(pattern, alphabet, True) is not None) == is_held
    for call in (*CALLS, "extract_all"):
        check(text, column, call, pattern)


def test_what_costs_too_much_is_left_to_polars(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = ["to be, or not to be. " * k + f"x{k}" for k in range(40)]
    text, column = compressed([*rows, None], "words")
    monkeypatch.setattr(patterns, "TRIED", 0)
    for call in CALLS:
        check(text, column, call, r"not to be\. t.*\bx[13]")
    monkeypatch.setattr(patterns, "MAX_TABLE", 0)
    for call in CALLS:
        check(text, column, call, r"not to be\. t.*\bx[13]")
        check(text, column, call, "not to be. to", literal=True)


def test_explain(monkeypatch: pytest.MonkeyPatch) -> None:
    text, column = compressed(["error 17 in a", "error 4 in b", None, "fine"], "words")
    column = tadoc.compress(text)
    for call, pattern, decompressed in (
        ("contains", r"error \d+", 0),
        ("extract_all", r"error \d+", 2),
        ("count_matches", "x*", 3),
    ):
        lines = tadoc.explain(column, call, pattern=pattern)
        assert lines.endswith(f"documents: 3, decompressed for Polars: {decompressed}")
    assert tadoc.explain(text, "contains", pattern="a") == "contains: plain text is left to Polars"
    with pytest.raises(TypeError, match="count_matches has no argument 'strict'"):
        tadoc.explain(column, "count_matches", pattern="a", strict=True)
    monkeypatch.setattr(patterns, "MAX_TABLE", 0)
    assert tadoc.explain(column, "contains", pattern=r"error \d+").endswith("for Polars: 2")


def test_arguments() -> None:
    text, column = compressed(["to be", None, "or (not)"], "words")
    for call in (*CALLS, "extract_all"):
        with pytest.raises(ComputeError, match="unclosed group"):
            getattr(tadoc, call)(column, "(")
        with pytest.raises(TypeError, match=f"^{call}: pattern must be a string, not int$"):
            getattr(tadoc, call)(column, 3)
        with pytest.raises(ValueError, match=f"^{call}: pattern is not text"):
            getattr(tadoc, call)(column, "\ud800")
        with pytest.raises(NotCompressedError):
            getattr(tadoc, call)(pl.Series([1]), "a")
        assert_series_equal(getattr(tadoc, call)(column.head(0), "a"), getattr(text.head(0).str, call)("a"))
        assert_series_equal(getattr(tadoc, call)(column[1:2], "a"), getattr(text[1:2].str, call)("a"))
    for call in ("contains", "find"):
        check(text, column, call, "(", strict=False)
    with pytest.raises(TypeError, match="literal=1 must be True or False"):
        tadoc.contains(column, "a", literal=1)  # type: ignore[arg-type]
