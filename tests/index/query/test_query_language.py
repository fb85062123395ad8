"""Queries with syntax, against their meaning in plain Python over each document's words."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.errors import LimitExceededError, QuerySyntaxError
from polars_tadoc.index.language.parse import parse
from polars_tadoc.index.query import expand, segment_text
from polars_tadoc.index.segment import SpelledTerms
from polars_tadoc.kernels.host.rows.spelling import find_alike, table_size
from polars_tadoc.model.vocabulary import Vocabulary
from tests import oracle
from tests.bm25_oracle import KAMPHUIS
from tests.query_oracle import Oracle, distance
from tests.query_strategies import PIECES, WORDS, Typed, mistakes, queries


def make(words: list[list[str]], years: list[int], **options: Any) -> tadoc.Index:
    text = pl.Series("text", [" ".join(own) for own in words], dtype=pl.String)
    metadata = pl.DataFrame({"year": pl.Series(years, dtype=pl.Int32)})
    return tadoc.build_index(tadoc.compress(text, rows_per_grammar=3), metadata=metadata, **options)


def cut(text: str) -> list[str]:
    (words,) = oracle.tokenize([text])
    return words or []


def checked(index: tadoc.Index, text: str, wanted: dict[int, float], **how: Any) -> pl.DataFrame:
    found = index.search(text, k=1000, **how)
    assert dict(found.select("id", "score").rows()) == pytest.approx(wanted, rel=1e-4, abs=1e-5), text
    assert found["score"].to_list() == sorted(found["score"].to_list(), reverse=True)
    return found


@cache
def corpus(seed: int) -> tuple[list[list[str]], list[int], tadoc.Index, tadoc.Index]:
    """Documents, their years, and indexes of one segment and of two with deleted documents."""
    drawn = random.Random(seed)
    words = [drawn.choices(WORDS[:-1], k=drawn.randint(0, 7)) for _ in range(2 * seed + 1)]
    years = [drawn.randint(1, 3) for _ in words]
    whole = make(words, years)
    first, rest = [["b"], *words[:seed]], [*words[seed:], ["ab"]]
    text = pl.Series("text", [" ".join(own) for own in rest], dtype=pl.String)
    more = pl.DataFrame({"year": pl.Series([*years[seed:], 1], dtype=pl.Int32)})
    parts = make(first, [1, *years[:seed]]).append(text, metadata=more)
    return words, years, whole, parts.delete([0, len(words) + 1])


@given(
    seed=st.integers(0, 4),
    asked=st.lists(queries, min_size=1, max_size=2),
    mode=st.sampled_from(["or", "and"]),
    scoring=st.sampled_from(["lucene", "robertson", "atire"]),
)
def test_any_tree(engine: str, seed: int, asked: list[Typed], mode: str, scoring: str) -> None:
    words, years, whole, parts = corpus(seed)
    meaning = Oracle(words, mode, cut, [{"year": year} for year in years], scoring)
    how: dict[str, Any] = {"mode": mode, "scoring": scoring}
    alone = [checked(whole, text, meaning.scores(tree), **how, engine=engine).drop("query") for text, tree in asked]
    batch = parts.search(["plain a", *(text for text, _ in asked), None], 1000, **how, engine=engine)
    for number, ((text, _), found) in enumerate(zip(asked, alone, strict=True), 1):
        own = batch.filter(query=number).select("rank", pl.col("id") - 1, "score")
        assert own.equals(found), text
        ids, scores = whole.top(text, 1000, **how)
        assert (ids.tolist(), scores.tolist()) == (found["id"].to_list(), found["score"].to_list())
        assert parts.count(text, mode=mode) == whole.count(text, mode=mode) == len(found)
    text, found = asked[0][0], alone[0]
    for id, score in found.select("id", "score").rows()[-1:]:
        total = np.float32(0)
        for own in whole.explain(text, id, **how)["score"].to_numpy():
            total += own
        assert float(total) == score


TEXTS = [
    "The pointer is null.",
    "A null point, a POINT of order",
    None,
    "out of memory: the killer",
    "Order of the memory",
    "killer bees are out",
]
FRAME = pl.DataFrame({
    "text": TEXTS, "year": [2020, 2021, 2022, 2023, None, 2023],
    "kind": ["error", "log", "log", "error", "Error log", None],
    "day": pl.Series(["2020-01-31", None, None, "2023-05-01", "2023-06-01", "2024-01-01"]).str.to_date(),
    "is_new": [True, False, None, True, True, False],
})  # fmt: skip
COLUMNS = ["year", "kind", "day", "is_new"]
INDEX = FRAME.tadoc.compress("text").tadoc.build_index(  # type: ignore[attr-defined]
    "text", lowercase=True, stopwords=["the", "is", "a"], metadata=COLUMNS
)

FOUND = {
    '"null': [0, 1],
    "NULL POINTER": [0, 1],
    "POINTER AND NULL": [0, 1],
    "null AND Pointer": [0],
    "null NOT pointer": [1],
    "-null": [3, 4, 5],
    "the AND null": [0, 1],
    "the": [],
    "NOT the": [],
    "AND": [],
    "null zzz": [0, 1],
    "null AND zzz": [],
    "point*": [0, 1],
    "poin?": [],
    "poi*r": [0],
    "*er": [0, 1, 3, 4, 5],
    "the*": [],
    "NOT (zz* -null)": [0, 1, 3, 4, 5],
    "pionter~": [0],
    "pionter~1": [0],
    "pionter": [],
    '"out memory"~1': [3],
    '"memory of"~1': [],
    '"memory of"~2': [3, 4],
    "memory NEAR/2 out": [3],
    "memory NEAR/1 out": [],
    "order memory year:2023": [1, 3, 4, 5],
    "+year:2023 order memory": [3, 5],
    "memory AND year:[2020 TO 2023]": [3],
    "year:{2020 TO 2023}": [1],
    "year:>2021": [3, 5],
    "year:x null": [0, 1],
    "kind:error": [0, 3],
    'kind:"Error log"': [4],
    "kind:e*": [0, 3],
    "day:>=2023-06-01": [4, 5],
    "is_new:true -null": [3, 4],
    "kind:(error OR log)": [0, 1, 3],
    "nothing:null": [0, 1],
    "(null OR killer) AND -(bees point)": [0, 3],
    "+(null killer) -of": [0, 5],
}
"""Queries, and the rows that they find."""


@pytest.mark.parametrize("query", FOUND)
def test_what_is_found(query: str) -> None:
    assert sorted(INDEX.search(query)["id"].to_list()) == FOUND[query]
    assert INDEX.count(query) == len(FOUND[query])


def test_words_near_each_other_in_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same where the terms of all words are not cached."""
    monkeypatch.setattr(segment_text, "FLAT_SHARE", 1 << 60)
    INDEX.texts.clear()
    for query in [own for own in FOUND if "NEAR/" in own or '"' in own]:
        assert sorted(INDEX.search(query)["id"].to_list()) == FOUND[query]
    INDEX.texts.clear()


def test_scores_count_what_matches() -> None:
    """A part that doesn't match adds nothing, factors multiply, and conditions and exclusions add nothing."""
    score = {query: INDEX.search(query).filter(id=0)["score"][0] for query in
             ["null", "pointer", "null^3", "null pointer", "null (pointer AND zzz)", "null AND year:2020 AND -zzz",
              "(null^2 pointer^2)^0.5", "+null pointer"]}  # fmt: skip
    assert score["null^3"] == pytest.approx(3 * score["null"])
    assert score["null pointer"] == score["+null pointer"] == score["(null^2 pointer^2)^0.5"]
    assert score["null (pointer AND zzz)"] == score["null AND year:2020 AND -zzz"] == score["null"]


@pytest.mark.parametrize("scoring", KAMPHUIS)
def test_every_scoring_ranks_syntax_as_words(scoring: str) -> None:
    for syntax, plain in {"+null +memory": "null memory", '"null" OR order': "null order"}.items():
        for mode in ("or", "and", "and_or"):
            found = INDEX.search(syntax, mode=mode, scoring=scoring)
            words = INDEX.search(plain, mode="and" if syntax[0] == "+" else "or", scoring=scoring)
            assert found.equals(words)
    assert INDEX.search("null (order -zzz)", scoring=scoring).equals(INDEX.search("null order", scoring=scoring))


@pytest.mark.parametrize("k", [1, 2, 10])
def test_and_or_widens_what_mode_joins(k: int) -> None:
    asked = ["null memory -bees", "null +memory -bees", "order memory -bees", "order memory", "+order +memory"]
    found = INDEX.search(asked, k, mode="and_or")
    for number, query in enumerate(asked):
        narrow, wide = (INDEX.search(query, k, mode=mode).drop("query") for mode in ("and", "or"))
        assert found.filter(query=number).drop("query").equals(narrow if len(narrow) == k else wide)


def test_plain_and_strict_syntax() -> None:
    query = '"null pointer" NOT order -zzz*'
    assert INDEX.search(query, syntax="plain").equals(INDEX.search("null pointer NOT order zzz", syntax="plain"))
    for call in (INDEX.search, INDEX.top, INDEX.count):
        with pytest.raises(QuerySyntaxError, match=rf"{call.__name__}: query 0, character 6: .*\n.*\n       \^"):
            call('null "pointer', syntax="strict")
        with pytest.raises(ValueError, match="syntax='x': use"):
            call("null", syntax="x")
    with pytest.raises(QuerySyntaxError, match="search: query 1, "):
        INDEX.search(["a", "(b"], syntax="strict")
    assert INDEX.search(["null AND pointer", None], syntax="strict")["id"].to_list() == [0]
    assert INDEX.explain("null -order", 0, syntax="plain")["word"].to_list() == ["null", "order"]


def test_served_and_shown() -> None:
    asked = ["null -pointer", '"unclosed', "point* AND null", "order memory", "memory NEAR/2 out"]
    with INDEX.serve(k=5, mode="and_or") as server:
        answers = [future.result() for future in [server.submit(query) for query in asked]]
    assert all(own.equals(INDEX.search(query, 5, mode="and_or")) for own, query in zip(answers, asked, strict=True))
    with INDEX.serve(syntax="strict") as server, pytest.raises(QuerySyntaxError, match="submit: query 0"):
        server.submit('"a').result()
    asked = ["point* -order", "memory NEAR/2 out", "null AND year:2020"]
    shown = INDEX.snippets(INDEX.search(asked), asked, before="<", after=">")["snippet"].to_list()
    assert shown == ["The <pointer> is null", "<out> of <memory>: the killer", "The pointer is <null>"]


def test_deleted_documents_are_not_matched() -> None:
    index = INDEX.delete([0, 3])
    for query, found in FOUND.items():
        if "~" not in query and "*" not in query:
            assert sorted(index.search(query)["id"].to_list()) == [row for row in found if row not in (0, 3)], query
    new = FRAME.with_row_index("row").filter(pl.col("row").is_in([0, 3]).not_()).tadoc.compress("text")
    fresh = new.tadoc.build_index("text", id="row", lowercase=True, stopwords=["the", "is", "a"], metadata=COLUMNS)
    for query in FOUND:
        assert index.search(query).equals(fresh.search(query)), query
    assert index.suggest("poin").rows() == [("point", 1)]
    assert index.did_you_mean("pionter") is None


def test_suggestions(monkeypatch: pytest.MonkeyPatch) -> None:
    assert INDEX.suggest("O").rows() == [("of", 3), ("order", 2), ("out", 2)]
    assert INDEX.suggest("o", k=1).rows() == [("of", 3)]
    assert INDEX.suggest("").height == 10
    assert INDEX.suggest("zz").schema == {"word": pl.String, "document_frequency": pl.UInt32}
    assert INDEX.did_you_mean('Null "Pionter" -ordre of zzzzzz') == 'Null "pointer" -order of zzzzzz'
    assert INDEX.did_you_mean("null pointer the") is None
    monkeypatch.setattr(expand, "MAX_WORDS", 1)
    with pytest.raises(TypeError, match="suggest: beginning must be a string, not int"):
        INDEX.suggest(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="did_you_mean: query is not text"):
        INDEX.did_you_mean("\ud800")


def test_a_pattern_stands_for_the_most_frequent_words() -> None:
    texts = [" ".join(f"w{number:03d}" for number in range(row, 120)) for row in range(0, 120, 2)]
    index = tadoc.build_index(pl.Series("text", texts).tadoc.compress())  # type: ignore[attr-defined]
    words = [f"w{number:03d}" for number in range(119, 119 - expand.MAX_WORDS, -1)]
    assert sorted(word for word, _ in expand.matching(index, "w*")) == sorted(words)
    assert index.search("w*", 100).equals(index.search(" ".join(words), 100))
    assert [word for word, _, _ in expand.alike(index, "w119", 1, 3)] == ["w119", "w118", "w116"]


def test_words_of_deleted_documents_take_no_place() -> None:
    texts = [f"w{number}" for number in range(500) for _ in range(1 + number % 101)]
    is_kept = [int(text[1:]) % 3 > 0 for text in texts]
    index = tadoc.build_index(pl.Series("text", texts).tadoc.compress())  # type: ignore[attr-defined]
    index = index.delete([row for row, own in enumerate(is_kept) if not own])
    live = Counter(itertools.compress(texts, is_kept))
    for word in ("w10", "w11", "w21"):
        rows = sorted((distance(word, own), -count, own) for own, count in live.items())
        wanted = [own for edits, _, own in rows if edits <= 2]
        assert len(wanted) > 2 * expand.MAX_WORDS
        for most in (1, 20, expand.MAX_WORDS):
            assert [own for own, _, _ in expand.alike(index, word, 2, most)] == wanted[:most]
        ids, _ = index.top(f"{word}~2", len(texts))
        assert {texts[number] for number in ids.tolist()} == set(wanted[: expand.MAX_WORDS])


alphabet = st.text("abéñ明🙂", min_size=1, max_size=6) | st.text("ab", min_size=1, max_size=12)
alphabet |= st.builds(str.__add__, alphabet, st.sampled_from(["明" * 59, "a" * 58 + "é🙂"]))


@given(words=st.sets(alphabet, max_size=25), word=alphabet, edits=st.integers(0, 2))
def test_words_that_are_spelled_alike(words: set[str], word: str, edits: int) -> None:
    ordered = sorted(words, key=str.encode)
    terms = Vocabulary.copied(pl.Series("word", ordered, dtype=pl.String))
    found, distances = np.empty((2, len(ordered)), np.int64)
    points = np.array([ord(character) for character in word], np.uint32)
    table = np.full(table_size(len(word)), -1)
    count = find_alike(terms.offsets, terms.data, *SpelledTerms.of(terms), points, edits, table, found, distances)
    wanted = [(number, own) for number, other in enumerate(ordered) if (own := distance(word, other)) <= edits]
    assert sorted(zip(found[:count].tolist(), distances[:count].tolist(), strict=True)) == wanted


LONG = [
    "?" * 5000 + "a",
    "a*" * 5000,
    "a" * 5000 + "~2",
    "null NEAR/1 " * 2000 + "null",
    '"' + "null " * 2000 + '"~3',
    "+null " * 2000,
    "nul* " * 500,
    "nul~^2 -" * 500 + "x",
    "((null " * 1000,
    "year:[" * 2000,
    "null^9999" * 999,
]


@pytest.mark.parametrize("number", range(len(LONG)))
def test_long_queries_are_answered(number: int) -> None:
    INDEX.search(LONG[number])
    INDEX.did_you_mean(LONG[number])


@given(query=mistakes)
def test_mistakes_are_answered(query: str) -> None:
    INDEX.search([query, "null"], mode="and_or")


@pytest.mark.slow
def test_ten_thousand_queries_have_answers() -> None:
    """A grammar of mistakes and random bytes: each query is answered, in one batch and alone."""
    drawn = random.Random(5)
    asked = ["".join(drawn.choices(PIECES, k=drawn.randint(0, 9))) for _ in range(6_000)]
    asked += [drawn.randbytes(drawn.randint(0, 30)).decode("utf-8", "replace") for _ in range(4_000)]
    batch = INDEX.search(asked, 3)
    for number in range(0, 10_000, 50):
        assert batch.filter(query=number).drop("query").equals(INDEX.search(asked[number], 3).drop("query"))
        parse(asked[number], COLUMNS)


def test_words_near_each_other_in_more_words_than_the_limit() -> None:
    index = tadoc.build_index(pl.Series(["one two three four five six seven", "two one"]))
    index.texts.update({0: None})  # the text is read for each query, as that of a large index
    with tadoc.Config(expansion_limit=8):
        assert index.count('"three four"') == 1
        with pytest.raises(LimitExceededError, match="search: the rows expand to more than 8 words"):
            index.count("one NEAR/3 two")
    assert index.count("one NEAR/3 two") == 2
