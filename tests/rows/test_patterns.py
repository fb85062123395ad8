"""Substrings and regular expressions in compressed columns, against Polars on the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
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
from polars_tadoc.errors import InvalidGrammarError, LimitExceededError, NotCompressedError
from polars_tadoc.model.column import split
from polars_tadoc.model.kept_columns import place
from polars_tadoc.model.text_type import storage
from polars_tadoc.rows import pattern_anchor, pattern_exact, pattern_kept, pattern_search, pattern_triples
from polars_tadoc.rows.pattern_automaton import regex_automaton
from polars_tadoc.rows.pattern_exact import ExactRows
from polars_tadoc.rows.pattern_kept import KeptRows, kept_rows, seen_rows
from polars_tadoc.rows.pattern_syntax import Unsupported, is_plain, read_pattern
from polars_tadoc.runtime.cache import ByteLRU
from tests import handmade
from tests.rows import pattern_draws

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


@contextmanager
def kept_in_ways(data: Any) -> Iterator[None]:
    """Spell out gaps from the first call on, or never; look for the words of patterns in each way."""
    first, sparse = data.draw(st.sampled_from([(1, 0), (1, 1 << 40), (1 << 40, 8)]))
    threads, smallest = data.draw(st.sampled_from([(1, 1), (2, 1), (16, 1), (2, 1 << 40)]))
    limits = patch.multiple(pattern_exact, SPARSE=sparse, CHUNK=smallest, MARKED=smallest)
    longest, dense = data.draw(st.sampled_from([(0, 0), (1 << 40, 0), (1 << 40, 4), (1 << 40, 1 << 40)]))
    listed = data.draw(st.sampled_from([0, 1 << 40]))
    triples = patch.multiple(
        pattern_triples, LONG=longest, DENSE=dense, CHUNK=smallest, MARKED=smallest, JUDGED=smallest, SPARSE=listed
    )
    with patch.object(pattern_kept, "SPELLED_FROM", first), limits, triples, tadoc.Config(threads=threads):
        yield


@given(rows=ROWS, tokenizer=TOKENIZERS, data=st.data())
def test_literals(rows: list[str | None], tokenizer: str, data: Any) -> None:
    text, column = compressed(rows, tokenizer)
    own = "".join(row for row in text.to_list() if row)
    literals = [data.draw(TEXTS)]
    for _ in range(4):
        start = data.draw(st.integers(0, max(0, len(own) - 1)))
        literals.append(own[start : start + data.draw(st.integers(0, 12))])
    rare, frequent = data.draw(st.sampled_from([(0, 0), (0, 1 << 40), (1 << 40, 1 << 40)]))
    with (
        patch.multiple(pattern_search, RARE=rare, FREQUENT=frequent),
        kept_in_ways(data),
    ):  # all ways of looking for words
        for literal in literals:
            for call in CALLS:
                check(text, column, call, literal, literal=True)


APART = st.sampled_from(["a", "b", "ab", "ba", "a b a", "abababababab", " ", "  ", ", ", "\n", "é", "-", "A, b-a\n"])
TOUCHING = APART | st.sampled_from(["明", "月", "か\u3099", "\u0301", "a\u0301", "明\u0301b"])
REPEATED = st.sampled_from([APART, TOUCHING]).flatmap(
    lambda piece: st.lists(st.lists(piece, max_size=12).map("".join), min_size=1, max_size=5).flatmap(
        lambda own: st.lists(st.lists(st.sampled_from(own), max_size=6).map("".join) | st.none(), max_size=24)
    )
)
"""Rows with parts that repeat, so that rules are inside rules; in some, words touch."""


@given(rows=REPEATED, tokenizer=st.sampled_from(["words", "whitespace"]), data=st.data())
def test_literals_from_their_rarest_word_upwards(rows: list[str | None], tokenizer: str, data: Any) -> None:
    text, column = compressed(rows, tokenizer)
    own = "".join(row for row in rows if row)
    literals = [data.draw(st.lists(TOUCHING, min_size=1, max_size=6).map("".join))]
    for _ in range(6):
        start = data.draw(st.integers(0, max(0, len(own) - 1)))
        literals.append(own[start : start + data.draw(st.integers(1, 40))] or " ")
    limits = {
        "SPARSE": [0, 8, 1 << 40],
        "SOUGHT": [0, 128, 1 << 40],
        "MAX_CUT": [1, 1 << 12],
        "READS": [-(1 << 20), 16],
    }
    drawn = {name: data.draw(st.sampled_from(values)) for name, values in limits.items()}
    with patch.object(pattern_kept, "SPELLED_FROM", 1), patch.multiple(pattern_anchor, **drawn):
        for literal in literals:
            for call in CALLS:
                check(text, column, call, literal, literal=True)
        assert all(linked is not None for linked in kept_rows(storage(column)).literals)


@pytest.mark.parametrize("literal", ["\u0301b, a", "\u0301b", "\u0301", "\u0301 x", "明\u0301b", "b, a"])
def test_a_literal_that_begins_with_a_mark(literal: str) -> None:
    text, column = compressed(["明\u0301b, a", "c\u0301b, a", "明\u0301 x", None, "b, a"], "words")
    for _ in range(3):
        for call in CALLS:
            check(text, column, call, literal, literal=True)


def test_a_series_that_changes_in_place_is_read_again() -> None:
    text, column = compressed(["to be", "or not", "to be"], "words")
    more_text, more = compressed(["not to be", None], "words")
    for _ in range(3):
        check(text, column, "contains", "not", literal=True)
    assert seen_rows(column) is not None
    text.append(more_text)
    column.append(more)
    assert seen_rows(column) is None
    for _ in range(3):
        check(text, column, "contains", "not", literal=True)
        check(text, column, "contains", r"^not")
    with pytest.raises(ComputeError):
        tadoc.contains(column, "(")
    number = id(column)
    del column
    assert number not in pattern_kept._seen


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
ANCHORED = st.tuples(st.sampled_from(["", "^", r"\A"]), REGEXES, st.sampled_from(["", "$", r"\z"])).map(
    lambda parts: parts[1] if parts[0] == parts[2] else "{}(?:{}){}".format(*parts)
)


@given(rows=ROWS, tokenizer=TOKENIZERS, pattern=ANCHORED, drops=st.booleans(), data=st.data())
def test_regexes(rows: list[str | None], tokenizer: str, pattern: str, drops: bool, data: Any) -> None:
    text, column = compressed(rows, tokenizer)
    with patch.object(pattern_search, "DROPPED", 0 if drops else 1 << 62), kept_in_ways(data):
        for call in (*CALLS, "extract_all"):
            check(text, column, call, pattern)


@pytest.mark.parametrize("pattern", ["^P", "^P.*a$", "^POST", "^(?:POST|G)", "a$", "^$", r"\AG.*x\z", "^.", "(?m:^)x"])
@pytest.mark.parametrize("spelled_from", [1, 1 << 40])
def test_anchors_at_the_first_word_of_a_row(pattern: str, spelled_from: int) -> None:
    text, column = compressed(["GET /index", "POST /a", "GET /a", None, "", "POST", "x", "GET\nx"], "words")
    with patch.object(pattern_kept, "SPELLED_FROM", spelled_from):
        for call in (*CALLS, "extract_all"):
            check(text, column, call, pattern)


@given(st.lists(st.sampled_from([*r"a -()[]*+?|^$.é&~#", r"\w", r"\B", r"\-", r"\"", "{9}", "(?i)", "[^0-9 ]"])))
def test_plain_patterns_are_valid(parts: list[str]) -> None:
    pattern = "".join(parts)
    with suppress(Unsupported):
        read_pattern(pattern)
        if is_plain(pattern):
            assert pl.Series(["a"]).str.contains(pattern).null_count() == 0


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
    monkeypatch.setattr(pattern_kept, "SPELLED_FROM", 1 << 40)
    monkeypatch.setattr(pattern_search, "TRIED", 0)
    for call in CALLS:
        check(text, column, call, r"not to be\. t.*\bx[13]")
    monkeypatch.setattr(pattern_search, "MAX_TABLE", 0)
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
    monkeypatch.setattr(pattern_search, "MAX_TABLE", 0)
    monkeypatch.setattr(pattern_kept, "_columns", ByteLRU(lambda: 0, lambda kept: 1))
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


@given(gaps=st.binary(max_size=30), symbols=st.lists(st.integers(0, 3), max_size=4), literal=st.booleans())
def test_damaged_gaps(gaps: bytes, symbols: list[int], literal: bool) -> None:
    grammar = handmade.grammar(["a", "b"], [[0, 1], [2, 2]], gaps=[", ", "-"], predicted_gaps=[0, 1, 0, 2, 0, 1])
    column = handmade.column(grammar, [[3], symbols], [b"", gaps])
    try:
        text = tadoc.decompress(column)
    except InvalidGrammarError:
        text = None
    for first in (1, 1 << 40):  # rows whose words match nothing are only read to spell them out
        with patch.object(pattern_kept, "SPELLED_FROM", first):
            try:
                found = tadoc.count_matches(column, "b-a", literal=literal).to_list()
            except InvalidGrammarError as error:
                assert text is None
                assert re.search("row 1: its gaps (end inside|have a code|continue after)", str(error))  # noqa: PT017
                continue
        assert text is None or found == text.str.count_matches("b-a").to_list()
        assert text is not None or first > 1


def test_rows_too_large_to_spell_out(monkeypatch: pytest.MonkeyPatch) -> None:
    text, column = compressed([f"to be, {k} or-not {k}" for k in range(400)], "words")
    kept = KeptRows(split(column), [])
    assert [ExactRows.of(corpus, 0) for corpus in kept.corpora] == [None, None]
    monkeypatch.setattr(pattern_kept, "_columns", ByteLRU(lambda: 1 << 40, lambda own: own.nbytes))
    for most in (kept.nbytes, kept.nbytes + 20_000):  # none; some, but not all together
        monkeypatch.setattr(pattern_kept, "_budget", lambda most=most: most)
        pattern_kept._columns.clear()
        for calls in (1, 2, 3):
            check(text, column, "count_matches", r"\d or")
            own = kept_rows(storage(column))
            assert own.calls == 2 * calls
            assert own.exact == [None, None]


def test_a_literal_of_many_words() -> None:
    row = " ".join(f"w{place % 7}" if place % 290 else f"rare{place}" for place in range(900))
    text, column = compressed([row, row.replace("rare290", "w3"), f"{row} {row}", row.replace("w", "v")], "words")
    words = row.split(" ")
    for first, stop in ((1, 291), (290, 580), (2, 580), (5, 290), (291, 581)):
        for call in CALLS:
            for literal in (" ".join(words[first:stop]), " ".join(words[first:stop])[1:-1]):
                check(text, column, call, literal, literal=True)


def test_threads_search_one_column() -> None:
    text, column = compressed([f"GET /{k % 7}/{k}.html {k % 3}" for k in range(500)], "words")
    patterns_of = [r"^GET /3", r"\d+\.html 1$", "/4/", "html", r"[05]\.", "GET"] * 4
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda own: tadoc.count_matches(column, own), patterns_of))
    assert all(own.equals(text.str.count_matches(one)) for own, one in zip(found, patterns_of, strict=True))


def test_memory_of_freed_columns_is_not_used_again_while_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_kept, "_columns", ByteLRU(lambda: 3, lambda own: 1))
    held: list[KeptRows] = []
    for number in range(6):  # equal in all sizes
        text, column = compressed([f"row {number:02} of {k}" if k % 5 else None for k in range(50)], "words")
        column = pl.concat([column[:20], column[20:]], rechunk=False)
        keys = []
        for calls in (1, 2, 3):
            check(text, column, "contains", f"{number:02} of")
            keys = list(pattern_kept._columns._values)
            assert len(keys) == min(3, 1 + number)  # nulls and chunks have the same addresses in each call
            assert kept_rows(storage(column)).calls == 2 * calls
        assert len(set(keys)) == len(keys)
        held.append(kept_rows(storage(column)))
        del text, column
    places = [one for kept in held for array in kept.held for one in map(place, [array]) if len(array)]
    assert len(set(places)) == len(places)


def test_a_column_that_grows_in_place() -> None:
    text, column = compressed([f"row {k} of" for k in range(30)], "words")
    more_text, more = compressed([f"line {k} of" for k in range(30)], "words")
    for _ in range(3):
        for _ in range(3):
            check(text, column, "contains", r"(row|line) \d of")
        text.append(more_text)
        column.append(more)


@pytest.mark.slow
def test_random_patterns_over_real_lines() -> None:
    """More of the same: ``python -m tests.rows.pattern_draws``."""
    compared, finding = pattern_draws.compare(pattern_draws.lines_of([]), iter(range(15)))
    assert finding is None
    assert compared > 200


DOUBLED = [[0, 1], *([2 + level, 2 + level] for level in range(29))]
"""Rules over two words: the last one expands to 2^30 words."""


def test_a_literal_in_rules_that_expand_to_much(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: Any) -> None:
        raise AssertionError("reads the words around each match")

    monkeypatch.setattr(pattern_search, "match_windows", read)
    column = handmade.column(handmade.grammar(["w0", "w1"], DOUBLED), [[31], [5], None, [31]])
    text = "w0 w1 " * 8
    assert tadoc.decompress(column[1:2]).to_list() == [text.strip()]
    assert tadoc.contains(column, "w1 w1").to_list() == [False, False, None, False]
    assert tadoc.contains(column, "w1 w0").to_list() == [True, True, None, True]
    assert tadoc.count_matches(column, "w1 w0").to_list() == [2**29 - 1, text.count("w1 w0"), None, 2**29 - 1]
    with pytest.raises(LimitExceededError, match="extract_all: the rows expand to more than"):
        tadoc.extract_all(column, "w1 w0")
