"""Queries as trees: the rules of the language, and what is text."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_tadoc.errors import QuerySyntaxError
from polars_tadoc.index.language.parse import MAX_DEPTH, may_have_syntax, parse
from polars_tadoc.index.language.tree import (
    And,
    Boost,
    Field,
    Fuzzy,
    Modifier,
    Near,
    Node,
    Not,
    Or,
    Pattern,
    Phrase,
    Range,
    Sequence,
    Word,
)
from polars_tadoc.index.query.read import has_marks
from tests.query_strategies import Typed, mistakes, queries

A, B, C = Word("a"), Word("b"), Word("c")


def row(*nodes: Node | str) -> Sequence:
    clauses: list[tuple[Modifier, Node]] = [("", Word(one) if isinstance(one, str) else one) for one in nodes]
    return Sequence(tuple(clauses))


def one(modifier: Modifier, node: Node) -> Sequence:
    return Sequence(((modifier, node),))


READ = {
    "": Sequence(()),
    "a": A,
    "a b": row("a", "b"),
    "a b AND c": row(A, And((B, C))),
    "a AND b OR c": Or((And((A, B)), C)),
    "a AND (b OR c)": And((A, Or((B, C)))),
    "a NOT b": Sequence((("", A), ("-", B))),
    "+a -b c": Sequence((("+", A), ("-", B), ("", C))),
    "a AND -b": And((A, Not(B))),
    "a OR +b": Or((A, B)),
    "-(a b)^2": one("-", Boost(row("a", "b"), 2.0)),
    '-"a b"~2^0.5': one("-", Boost(Phrase("a b", 2), 0.5)),
    'a"b c"d': row(A, Phrase("b c"), "d"),
    "NOT NOT a": A,
    "a NEAR/5 b NEAR/3 c": Near(("a", "b", "c"), 5),
    "disk* w?d* *ab": row(Pattern("disk*"), Pattern("w?d*"), Pattern("*ab")),
    "a~ b~1 c~9 d~0.7": row(Fuzzy("a", None), Fuzzy("b", 1), Fuzzy("c", 2), Fuzzy("d", None)),
    "year:2020 year:[1 TO *} year:>=3": row(
        Field("year", Word("2020")),
        Field("year", Range("1", "", True, False, "[1 TO *}")),
        Field("year", Range("3", "", True, False, ">=3")),
    ),
    'year:(1 OR "2 3")': Field("year", Or((Word("1"), Phrase("2 3")))),
}
"""Syntax."""

TEXT = {
    'a "b': row("a", '"b'),
    "(a b": row("(a", "b"),
    "a) b": row("a)", "b"),
    "f(x) AND y": And((Word("f(x)"), Word("y"))),
    "AND": Word("AND"),
    "a AND": row("a", "AND"),
    "OR a": row("OR", "a"),
    "a AND OR b": row(A, Or((Word("AND"), B))),
    "TO BE OR NOT TO BE": row("TO", "BE", "OR", "NOT", "TO", "BE"),
    "and or not": row("and", "or", "not"),
    "what is C?": row("what", "is", "C?"),
    "why * b": row("why", "*", "b"),
    "??? a?? *": row("???", "a??", "*"),
    "well-known C++ - --all": row("well-known", "C++", "-", "--all"),
    "http://a.b no:field": row("http://a.b", "no:field"),
    "year: 2020": row("year:", "2020"),
    "a^ b~~ c^x": row("a^", "b~~", "c^x"),
    "a NEAR b NEAR/ c": row("a", "NEAR", "b", "NEAR/", "c"),
    "()": Sequence(()),
    "?" * 100 + "a": Word("?" * 100 + "a"),
    "a" * 100 + "~": Word("a" * 100 + "~"),
    "\x00 \ufeff\x1f": row("\x00", "\ufeff"),
}
"""What looks like syntax and is text."""


@pytest.mark.parametrize("text", [*READ, *TEXT])
def test_rules(text: str) -> None:
    assert parse(text, ["year"]) == (READ | TEXT)[text]
    if text in READ and text:
        assert parse(text, ["year"], strict=True) == READ[text]


@given(query=queries)
def test_text_of_trees(query: Typed) -> None:
    text, tree = query
    for strict in (False, True):
        assert parse(text, ["year"], strict) == tree


def words_of(tree: Node) -> list[str] | None:
    """The words of a tree without syntax."""
    if isinstance(tree, Word):
        return [tree.text]
    if not isinstance(tree, Sequence) or any(modifier for modifier, _ in tree.clauses):
        return None
    own = [words_of(part) for _, part in tree.clauses]
    return None if None in own else [word for part in own if part for word in part]


@given(text=mistakes | st.text(max_size=20) | st.binary(max_size=20).map(lambda own: own.decode("utf-8", "replace")))
def test_any_text_is_read_and_no_syntax_is_overlooked(text: str) -> None:
    words = words_of(parse(text, ["year"]))
    assert words is not None or (may_have_syntax(text) and has_marks(text.encode()))
    if words is not None:
        assert (
            " ".join(words).replace("(", "").replace(")", "").split() == text.replace("(", "").replace(")", "").split()
        )
    with contextlib.suppress(QuerySyntaxError):
        parse(text, ["year"], strict=True)


def test_many_quotes_are_one_empty_phrase() -> None:
    assert parse('"' * 1_000_000) == parse('"" ' * 300_000) == Phrase("")
    assert parse('a "" """b" c') == parse('a "" "b" c')
    assert parse('""  ""~2 a') == parse('""~2 a')


def test_deep_queries_are_read() -> None:
    parse("(" * 5000 + "a" + ")" * 5000)
    parse("NOT " * 5000 + "a", strict=True)
    parse("+-" * 5000 + "a")
    parse("year:" * 5000 + "a", ["year"])
    parse("(a OR " * MAX_DEPTH + "b" + ")" * MAX_DEPTH)
    parse('"' * 5001 + " AND" * 5000 + "^2~1" * 1000)


@pytest.mark.parametrize(
    ("text", "at", "why"),
    [
        ('a "b', 2, "quote is not closed"),
        ("a (b", 2, "parenthesis is not closed"),
        ("a) b", 1, "closes nothing"),
        ("a AND", 2, "AND needs something on both sides"),
        ("a OR OR b", 2, "OR needs something"),
        ("NOT", 0, "NOT needs a part"),
        ("no:a", 0, 'no field "no"'),
        ("a * b", 2, "a wildcard has no word"),
        ("a^x", 0, "number is missing"),
        ("() a", 1, "nothing to search for"),
        ("a NEAR/2 b*", 2, "NEAR joins words only"),
    ],
)
def test_strict_syntax_says_what_is_wrong(text: str, at: int, why: str) -> None:
    with pytest.raises(QuerySyntaxError, match=why) as raised:
        parse(text, ["year"], strict=True)
    assert str(raised.value).splitlines()[-1] == " " * (at + 2) + "^"
