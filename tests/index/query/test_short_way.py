"""Queries with syntax that one kernel answers: bit for bit what the stages for many segments find."""

from __future__ import annotations

import random
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.index.language.parse import OPERATORS, may_have_syntax
from polars_tadoc.index.query import direct, programs, search
from polars_tadoc.index.query.shapes import _SPLIT, outline_of, shape_of
from polars_tadoc.kernels.host.rows.programs import answer_programs
from polars_tadoc.kernels.host.rows.query_shapes import COLONS, PLAIN, WHOLE, cut_query
from polars_tadoc.kernels.search.count_cpu import bitmaps_of
from polars_tadoc.scoring.bm25 import Scoring
from tests.index.query.test_query_language import cut
from tests.query_oracle import Oracle
from tests.query_strategies import WORDS, Typed, short_queries

ANY_SCORING = Scoring("lucene", 1.5, 0.75, 0.5)


@contextmanager
def by_stages() -> Iterator[None]:
    """Let no query take the short way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programs, "takes", lambda *_: False)
        patch.setattr(search, "answer", lambda *_: None)
        yield


@cache
def corpus(seed: int) -> tuple[list[list[str]], tadoc.Index, tadoc.Index]:
    """Documents, their index, and the same with two deleted documents more."""
    drawn = random.Random(seed)
    words = [drawn.choices(WORDS[:-1], k=drawn.randint(0, 9)) for _ in range(6 * seed + 1)]
    texts = [" ".join(own) for own in words]
    made = [
        tadoc.build_index(pl.Series("text", own, dtype=pl.String).tadoc.compress())  # type: ignore[attr-defined]
        for own in (texts, ["abba b a", *texts, "a ab"])
    ]
    return words, made[0], made[1].delete([0, len(texts) + 1])


@given(
    seed=st.integers(0, 4),
    asked=st.lists(short_queries, min_size=1, max_size=4),
    mode=st.sampled_from(["or", "and"]),
    k=st.sampled_from([1, 3, 100]),
)
def test_short_queries(seed: int, asked: list[Typed], mode: str, k: int) -> None:
    words, index, changed = corpus(seed)
    meaning, texts = Oracle(words, mode, cut), [text for text, _ in asked]
    kept = np.arange(len(words)) % 3 > 0
    with by_stages():
        wanted = index.search([*texts, "a b", None], k, mode=mode)
        filtered = index.search(texts, k, mode=mode, filter=kept)
        wider = index.search(texts, k, mode="and_or")
    assert index.search([*texts, "a b", None], k, mode=mode).equals(wanted)
    assert index.search(texts, k, mode=mode, filter=kept).equals(filtered)
    assert index.search(texts, k, mode="and_or").equals(wider)
    for number, text in enumerate(texts):
        assert index.search(text, k, mode="and_or")["score"].equals(wider.filter(query=number)["score"])
    assert changed.search([*texts, "a b"], k, mode=mode).with_columns(pl.col("id") - 1).equals(wanted)
    for number, (text, tree) in enumerate(asked):
        shaped = shape_of(text, (), mode == "and")
        assert shaped is not None, text
        found, scores = index.top(text, k, mode=mode)
        own = wanted.filter(query=number)
        assert (found.tolist(), scores.tolist()) == (own["id"].to_list(), own["score"].to_list()), text
        assert own.drop("query").equals(index.search(text, k, mode=mode).drop("query"))
        size = len(meaning.scores(tree))
        assert index.count(text, mode=mode) == changed.count(text, mode=mode) == size, text
        assert len(found) == min(size, k)
        again, same, total = index.top(text, k, mode=mode, total=True)
        assert (again.tolist(), same.tolist(), total) == (found.tolist(), scores.tolist(), size), text


messy = st.lists(
    st.sampled_from(["a", "b", "ab", "abba", "a-b", "a+b", "A", "ANDROID", "é", "AND", "OR", "NOT", " AND ", " NOT ",
                     "ORB", *'"""++--(()) *?~^:', "  ", "~1", "*", "NEAR/2", "\n", "\t", " +", " -", ' "', '" ', "zz"]),
    max_size=12,
).map("".join)  # fmt: skip


@given(text=messy)
def test_texts_are_cut_as_by_the_pattern(text: str) -> None:
    data = np.frombuffer(text.encode() + b" ", np.uint8)
    texts, shape = np.empty((2, len(data) + 1), np.uint8)
    parts = _SPLIT(text)
    has_operators = any(word in part.split() for part in parts[::2] for word in OPERATORS)
    for reads in (0, WHOLE, PLAIN, COLONS):
        size, spelled = cut_query(data, len(data) - 1, reads, texts, shape)
        found = bytes(texts[:size]), bytes(shape[:spelled])
        if size < 0:
            reasons = "é" in text, "NEAR/" in text, ":" in text and reads == COLONS, len(parts) == 1, has_operators
            assert not text.isprintable() or (any(reasons) and reads != PLAIN)
        elif reads == PLAIN or not spelled:
            assert found == (text.encode(), b"")
            assert reads == PLAIN or not may_have_syntax(text)
        else:
            words = "\n".join(parts[1::2]).replace('"', "").encode()
            assert found == (words, outline_of(text, False)[0])


@given(text=messy, mode=st.sampled_from(["or", "and"]), syntax=st.sampled_from(["lenient", "plain"]))
def test_messy_queries(text: str, mode: str, syntax: str) -> None:
    _, index, _ = corpus(4)
    with by_stages():
        best, scores = index.top(text, 3, mode=mode, syntax=syntax)
        total = index.count(text, mode=mode, syntax=syntax)
    for _ in range(2):
        found, same = index.top(text, 3, mode=mode, syntax=syntax)
        assert (found.tolist(), same.tolist()) == (best.tolist(), scores.tolist())
    assert index.count(text, mode=mode, syntax=syntax) == total
    assert index.top(text, 3, mode=mode, syntax=syntax, total=True)[2] == total


def test_many_scorings_and_shapes() -> None:
    """What an index keeps for single queries is bounded, and a full table of shapes begins anew."""
    _, index, _ = corpus(4)
    wanted = [index.search("a -b", 3, k1=k1)["score"].to_list() for k1 in range(80)]
    for k1 in (*range(80), *range(80)):
        assert index.top("a -b", 3, k1=k1)[1].tolist() == wanted[k1]
    assert len(index.short_ways) <= programs.KEPT
    for size in range(direct.MAX_SHAPES + 40):
        spaces = " " * size
        assert index.count(f"+a {spaces}-b") == index.count("+a -b")


def test_a_search_while_another_one_runs() -> None:
    """A signal's handler may search in the thread that it interrupts."""
    _, index, _ = corpus(4)
    wanted = [own.tolist() for own in index.top("a -b", 3)]
    rooms = programs.this_thread.rooms
    rooms.is_taken = True
    try:
        assert [own.tolist() for own in index.top("a -b", 3)] == wanted
    finally:
        rooms.is_taken = False


@pytest.mark.parametrize("alone", [True, False])
def test_a_search_just_before_another_ones_kernel(alone: bool) -> None:
    """A signal's handler may search a larger index there; the first search's work space is not freed then."""
    (_, small, _), (_, large, _) = corpus(1), corpus(4)
    with by_stages():
        wanted, other = small.search(["a -b", '"a b"'], 3), large.search(["b -a"], 3)
    inside: list[Any] = []

    def interrupted(*given: Any) -> Any:
        rooms = programs.this_thread.rooms
        if rooms.is_taken and not inside:
            inside.append(weakref.ref(rooms.extra))
            assert large.search(["b -a"], 3).equals(other)
            assert large.top("b -a", 3)[0].tolist() == other["id"].to_list()
            assert inside[0]() is rooms.extra
        return answer_programs(*given)

    def search() -> bool:
        if alone:
            return small.top("a -b", 3)[0].tolist() == wanted.filter(query=0)["id"].to_list()
        return small.search(["a -b", '"a b"'], 3).equals(wanted)

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(1) as thread:  # whose work space is new
        patch.setattr(programs, "answer_programs", interrupted)
        patch.setattr(direct, "answer_programs", interrupted)
        assert thread.submit(search).result()
    assert inside


def test_several_windows() -> None:
    """Documents in more than one window, frequent and rare words, with and without deleted documents."""
    drawn = np.random.default_rng(2)
    words = np.minimum(drawn.geometric(0.06, (70_000, 3)), 60)
    text = pl.Series("text", [f"w{a} w{b} w{c}" for a, b, c in words.tolist()])
    index = tadoc.build_index(text.tadoc.compress())  # type: ignore[attr-defined]
    asked = ["w1 -w2", "+w60 w1", "(w1 OR w50) AND w55", '"w1 w2"', '"w60 w1" OR w59', "w5* -w1", "w59~1 AND w1",
             "(w1 AND w2) OR (w3 w60)", "NOT w1", '+"w1 w1" -w3', "+w55 +w56 +w57", "w58 OR w59", '"w1 w2"~1 -w3',
             "w1 w2", "w1 w59 w60", "w1 w2 w3 w4 w60", "w57 w58 w59 w60", "+w1 +w2 +w3", "+w1 +w60", "+w2 +w2",
             "+w50 w1", "+w50 -w1 -w2", "+w51 +w60 w1 w2", '+w52 "w1 w2" -w3', "+w52 (+w1 w2) -zzz", "+w53 (w1 AND w2)",
             "+zzz -w1", "+w60 w55 -w50", '+"w2 w1" +w60', '"w60 w60"', "w1 zzz", "+w1 +zzz"]  # fmt: skip
    for own in (index, index.delete(pl.Series(range(0, 70_000, 7)))):
        assert programs.takes(own, ANY_SCORING, 10, "cpu")
        lists = own.segments[0].bitmaps.lists
        assert 0 < len(lists) < own.terms
        found, counts = own.search(asked, 5), [own.count(query) for query in asked]
        for number, query in enumerate(asked):
            best, scores, total = own.top(query, 5, total=True)
            same = found.filter(query=number)
            assert (best.tolist(), scores.tolist()) == (same["id"].to_list(), same["score"].to_list()), query
            assert total == counts[number], query
        with by_stages():
            assert found.equals(own.search(asked, 5))
            assert counts == [own.count(query) for query in asked]


def test_bitmaps() -> None:
    words = ["the", "of", "and", "a"]
    texts = [" ".join(words[: 1 + number % 4]) for number in range(300)]
    index = tadoc.build_index(pl.Series("text", texts).tadoc.compress())  # type: ignore[attr-defined]
    postings = index.segments[0].postings
    terms = index.segments[0].terms.series.to_list()
    for least, most, named in ((0, 9, words), (151, 9, ["of", "the"]), (0, 1, ["the"]), (301, 9, [])):
        made = bitmaps_of(postings, least, most)
        assert [terms[number] for number in made.lists] == sorted(named)
        for number, own in zip(made.lists, made.words.reshape(len(made.lists), (len(texts) + 63) // 64), strict=True):
            marked = np.unpackbits(own.view(np.uint8), bitorder="little").nonzero()[0]
            assert marked.tolist() == [row for row, text in enumerate(texts) if terms[number] in text.split()]


def test_plain_quotes() -> None:
    index = tadoc.build_index(pl.Series("text", ["5 disk", "disks", "5disk"]).tadoc.compress())  # type: ignore[attr-defined]
    assert index.count('5"disk', syntax="plain") == len(index.top('5"disk', syntax="plain")[0]) == 1


def run_short(index: tadoc.Index, query: str, requires: bool = False) -> int:
    shaped = shape_of(query, (), requires)
    return -2 if shaped is None else int(programs.run(index, [shaped], ANY_SCORING, 3, None).found[0])


INDEX = tadoc.build_index(
    pl.Series("text", ["The null pointer", "a null point of order", "out of memory"] * 3).tadoc.compress(),  # type: ignore[attr-defined]
    lowercase=True, stopwords=["the", "of"],
)  # fmt: skip


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("+null -pointer", 3),
        ("Null* AND (order OR memory)", 3),
        ('"NULL pointer" -memory', 3),
        ("pionter~ zzz", 3),
        ("+zzz null", 0),
        ("1 AND 2", 0),
        ("+null-pointer +null memory", 3),
        ("+null-zzz memory", 0),
        ("null -pointer-zzz", 3),
        ("memory (null AND null-point)", 3),
        ("-null zzz", 0),
        ('"null zzz"', 0),
        ("nul_l~1", 3),
        ("nul_* null", 3),
        ("th* null", 3),  # stop words have no list
        # the stages answer these
        ("+the null", -1),
        ("+null-pointer", -1),  # alone; index.search writes +(null AND pointer)
        ("(null-pointer OR zzz) AND null", -1),
        ("null^2 pointer", -2),
        ("null NEAR/2 pointer", -2),
        ("nu?l", -2),
        ("n*l", -2),
        ('null "pointer', -2),
        ("NULL AND POINTER", -2),
        ("a:(null)", -2),
        ("null.*", -2),
        ("null\n-pointer", -2),
    ],
)
def test_what_takes_the_short_way(query: str, found: int) -> None:
    assert run_short(INDEX, query) == found
    with by_stages():
        wanted = INDEX.search([query]), INDEX.count(query)
        alone = INDEX.top(query, total=True)
    assert INDEX.search([query]).equals(wanted[0])
    assert INDEX.count(query) == alone[2] == wanted[1]
    assert [own.tolist() for own in INDEX.top(query)] == [own.tolist() for own in alone[:2]]


def test_words_that_are_cut_into_several() -> None:
    """One query is written with ``AND`` between them, and takes the short way; a prefix may have vowel signs."""
    text = pl.Series("text", ["दस्तावेज़ null", "null 文件 pointer", "文 null-pointer 件 point"])
    index = tadoc.build_index(text.tadoc.compress())  # type: ignore[attr-defined]
    asked = {"(文件 OR zzz) AND null": 2, "+null-pointer -zzz": 2, "दस्त*": 1, "दस्ताेवज़~1": 1, "मா* -null": 0}
    for query, hits in asked.items():
        assert programs.run_one(index, query, False, ANY_SCORING, 3, None, True).totals[0] == hits  # type: ignore[union-attr]
        ids, scores = index.top(query)
        with by_stages():
            wanted = index.search([query])
        assert (ids.tolist(), scores.tolist()) == (wanted["id"].to_list(), wanted["score"].to_list())
        assert len(ids) == index.count(query) == hits


def test_long_phrases_and_many_words_are_answered() -> None:
    for query in [
        '+"' + "null " * 40 + '"',
        "+null " * 40,
        " ".join(f"+{word}*" for word in "abcdefghij" * 3),
        "-null " + "明" * 500,
        "明" * 510,
    ]:
        how: dict[str, Any] = {"k": 4}
        found = INDEX.search([query], **how)
        with by_stages():
            assert found.equals(INDEX.search([query], **how))
