"""Ranked queries, against BM25 in plain Python over the words of each document."""

from __future__ import annotations

import math
import pickle
import re
import threading
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from tests import oracle
from tests.analytic_cases import LABELS, Case, cases
from tests.bm25_oracle import MODES, SCORINGS, check

TEXTS = ["the cat saw the dog", None, "the dog saw the cat saw", "", "a cat", "the the the bird", "a dog and a dog"]
DOCUMENTS = [text.split() for text in TEXTS if text is not None]
ROWS = [row for row, text in enumerate(TEXTS) if text is not None]
COLUMN = tadoc.compress(pl.Series("text", TEXTS), rows_per_grammar=2)
INDEX = tadoc.build_index(COLUMN)
QUERIES = ["cat", "the dog", "dog dog a", "saw bird", "unknown", "cat unknown", "", "the the cat and"]
WORDS = [query.split() for query in QUERIES]


def by_document(found: pl.DataFrame, ids: list[Any] | None = None) -> pl.DataFrame:
    """The same with numbers of documents instead of ids."""
    ids = ROWS if ids is None else ids
    return found.with_columns(pl.Series("id", [ids.index(own) for own in found["id"]], pl.UInt32))


scorings = st.sampled_from(SCORINGS)
modes = st.sampled_from(MODES)
constants = st.fixed_dictionaries(
    {}, optional={"k1": st.floats(0, 5), "b": st.floats(0, 1), "delta": st.floats(0, 3), "scoring": scorings}
)


@st.composite
def searched(draw: st.DrawFn, normalised: bool = False) -> tuple[Case, list[list[str]]]:
    """Documents and queries of their words."""
    case = draw(cases(normalised=normalised))
    words = sorted({word for own in case.documents if own is not None for word in own})
    others = ["zzz", "qqq"] if not normalised else []
    one = st.lists(st.sampled_from(words + others), max_size=6) if words + others else st.just([])
    return case, draw(st.lists(one, max_size=5))


@given(searched=searched(), k=st.integers(0, 12), mode=modes, constants=constants)
def test_search(
    engine: str, searched: tuple[Case, list[list[str]]], k: int, mode: str, constants: dict[str, Any]
) -> None:
    case, queries = searched
    index = tadoc.build_index(case.column, engine=engine)
    got = index.search([" ".join(words) for words in queries], k, mode=mode, engine=engine, **constants)
    rows = [row for row, words in enumerate(case.documents) if words is not None]
    check(by_document(got, rows), [own for own in case.documents if own is not None], queries, k, mode, **constants)


@given(searched=searched(normalised=True), mode=modes)
def test_normalised(engine: str, searched: tuple[Case, list[list[str]]], mode: str) -> None:
    """Queries go the way of the texts; images of images are the same here."""
    case, queries = searched
    index = tadoc.build_index(case.column, engine=engine, **case.arguments)
    got = index.search([" ".join(words) for words in queries], 5, mode=mode, engine=engine)
    rows = [row for row, words in enumerate(case.documents) if words is not None]
    check(by_document(got, rows), [own for own in case.documents if own is not None], queries, 5, mode)


@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("k", [1, 3, 100])
def test_every_scoring_and_mode(engine: str, scoring: str, mode: str, k: int) -> None:
    got = INDEX.search(QUERIES, k, mode=mode, scoring=scoring, engine=engine)
    check(by_document(got), DOCUMENTS, WORDS, k, mode, scoring=scoring)


@pytest.mark.parametrize(
    "constants", [{"k1": 0}, {"b": 0}, {"b": 1}, {"k1": 0, "delta": 0}, {"k1": 1e9}, {"delta": 4}, {"delta": 1e5}]
)
@pytest.mark.parametrize("scoring", SCORINGS)
def test_constants_at_their_ends(engine: str, scoring: str, constants: dict[str, float]) -> None:
    got = INDEX.search(QUERIES, 10, scoring=scoring, engine=engine, **constants)
    assert got["score"].is_finite().all()
    check(by_document(got), DOCUMENTS, WORDS, 10, scoring=scoring, **constants)


def test_formulas_differ() -> None:
    found = [INDEX.search("the dog", scoring=scoring)["score"].to_list() for scoring in SCORINGS]
    assert len({tuple(scores) for scores in found}) == len(SCORINGS)


def test_stop_words_never_empty_an_and(engine: str) -> None:
    index = tadoc.build_index(COLUMN, stopwords=["the"], lowercase=True, engine=engine)
    assert index.search("The CAT", mode="and", engine=engine)["id"].sort().to_list() == [0, 2, 4]
    assert index.search("The", mode="and", engine=engine).is_empty()
    assert index.search("the unknown cat", mode="and", engine=engine).is_empty()


def test_rows_shuffled_and_filtered(engine: str) -> None:
    order = [4, 2, 0, 6, 2]
    some = COLUMN[order]
    got = tadoc.build_index(some, engine=engine).search(QUERIES, 4, engine=engine)
    check(got, [TEXTS[row].split() for row in order], WORDS, 4)  # type: ignore[union-attr]
    kept = COLUMN.filter(pl.Series([True, True, False, True, True, False, True]))
    got = tadoc.build_index(kept, engine=engine).search(QUERIES, 4, engine=engine)
    documents = [TEXTS[row].split() for row in (0, 3, 4, 6)]  # type: ignore[union-attr]
    check(by_document(got, [0, 2, 3, 4]), documents, WORDS, 4)


def test_ties_go_to_the_earlier_document(engine: str) -> None:
    column = tadoc.compress(pl.Series(["b a"] * 3 + ["a b"] * 300 + ["c"]), rows_per_grammar=50)[::-1]
    index = tadoc.build_index(column, engine=engine)
    for scoring in SCORINGS:
        for mode in ("or", "and"):
            got = index.search("a b", 200, mode=mode, scoring=scoring, engine=engine)
            assert got["id"].to_list() == list(range(1, 201))
            assert got["score"].n_unique() == 1


@pytest.mark.parametrize("name", LABELS)
def test_ids_of_any_type(name: str) -> None:
    ids = LABELS[name].head(len(TEXTS))
    index = tadoc.build_index(COLUMN, id=ids)
    plain = INDEX.search(QUERIES)
    got = index.search(QUERIES)
    assert got.schema["id"] == ids.dtype
    assert got["id"].to_list() == [ids.to_list()[row] for row in plain["id"]]
    assert got.drop("id").equals(plain.drop("id"))
    assert index.ids.to_list() == [ids.to_list()[row] for row in ROWS]


def test_row_numbers_where_no_id_is_given() -> None:
    assert INDEX.ids.to_list() == ROWS
    assert INDEX.ids.dtype == pl.UInt32
    assert INDEX.search("cat")["id"].dtype == pl.UInt32


FORMS: dict[str, Any] = {
    "list": QUERIES,
    "tuple": tuple(QUERIES),
    "series": pl.Series("anything", QUERIES),
    "chunks": pl.concat([pl.Series(QUERIES[:3]), pl.Series(QUERIES[3:])], rechunk=False),
    "slice": pl.Series(["x", *QUERIES, "cat"])[1:-1],
    "arrow": pa.array(QUERIES),
    "chunked": pa.chunked_array([QUERIES[:2], QUERIES[2:]]),
    "generator": iter(QUERIES),
    "numpy": np.array(QUERIES),
}


@pytest.mark.parametrize("form", FORMS)
def test_queries_in_many_forms(form: str) -> None:
    assert INDEX.search(FORMS[form]).equals(INDEX.search(QUERIES))


def test_one_string_is_a_batch_of_one() -> None:
    assert INDEX.search("the dog").equals(INDEX.search(["the dog"]))


NOTHING: list[Any] = [[], None, [None], "", [""], [" ... "], ["unknown"], pl.Series([], dtype=pl.String)]


@pytest.mark.parametrize("queries", NOTHING[:1] + NOTHING[2:])
@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_found(engine: str, queries: Any, mode: str) -> None:
    got = INDEX.search(queries, mode=mode, engine=engine)
    assert got.is_empty()
    assert got.schema == {"query": pl.UInt32, "rank": pl.UInt32, "id": pl.UInt32, "score": pl.Float32}


def test_null_queries_keep_their_number(engine: str) -> None:
    got = INDEX.search([None, "bird", None, "", "bird"], engine=engine)
    assert got["query"].to_list() == [1, 4]
    assert INDEX.search(pl.Series([None, None])).is_empty()


@pytest.mark.parametrize("rows", [[], [None], [None, None], [""], ["", None, " ."]])
def test_columns_without_words(engine: str, rows: list[str | None]) -> None:
    index = tadoc.build_index(tadoc.compress(pl.Series("text", rows, pl.String)), engine=engine)
    assert index.documents == sum(row is not None for row in rows)
    for mode in MODES:
        assert index.search(["a", ""], mode=mode, engine=engine).is_empty()


def test_k(engine: str) -> None:
    assert INDEX.search("the", 0, engine=engine).is_empty()
    assert len(INDEX.search("the", 1, engine=engine)) == 1
    assert INDEX.search("the", 10**12, engine=engine).equals(INDEX.search("the", 3, engine=engine))
    assert INDEX.search("the", np.int64(2), engine=engine).equals(INDEX.search("the", 3, engine=engine).head(2))  # type: ignore[arg-type]


def test_ten_thousand_terms(engine: str) -> None:
    texts = [f"w{i} w{i + 1} w{7 * i % 9973}" for i in range(10_000)]
    index = tadoc.build_index(tadoc.compress(pl.Series(texts)), engine=engine)
    query = " ".join(f"w{i}" for i in range(10_000))
    got = index.search([query, "w5", query], 20, engine=engine)
    assert got["query"].value_counts().sort("query").rows() == [(0, 20), (1, 3), (2, 20)]
    assert got.filter(query=0).drop("query").equals(got.filter(query=2).drop("query"))
    assert index.search(query, mode="and", engine=engine).is_empty()
    words = [text.split() for text in texts[:50]]
    small = tadoc.build_index(tadoc.compress(pl.Series(texts[:50])), engine=engine)
    check(small.search(query, 20, engine=engine), words, [query.split()], 20)


def test_words_that_repeat_count_again(engine: str) -> None:
    once = INDEX.search("bird", engine=engine)["score"][0]
    assert math.isclose(INDEX.search("bird bird bird", engine=engine)["score"][0], 3 * once, rel_tol=1e-6)


@pytest.mark.parametrize("tokenizer", ["words", "whitespace", re.compile("[a-z]+"), re.compile("(?i)[xy]+|[^ ]+")])
def test_queries_are_cut_as_texts_were(tokenizer: Any) -> None:
    texts = ["to-be, or not", "to-be or", "Or not x"]
    index = tadoc.build_index(tadoc.compress(pl.Series(texts), tokenizer=tokenizer), lowercase=False)
    cut = [
        tadoc.term_vector(tadoc.compress(pl.Series([text]), tokenizer=tokenizer)).column("word").to_pylist()
        for text in texts
    ]
    for words in cut:
        for word in words:
            expected = [row for row, own in enumerate(cut) if word in own]
            assert index.search(word)["id"].sort().to_list() == expected


def test_queries_of_xml_are_content_of_an_element() -> None:
    index = tadoc.build_index(tadoc.compress(pl.Series(["<a>to be, <b>or not</b></a>"]), tokenizer="xml"))
    assert index.search(["be,", "<b>", "</b> or", "</c>"], mode="and")["query"].to_list() == [0, 1, 2]


def test_words_of_many_alphabets() -> None:
    index = tadoc.build_index(tadoc.compress(pl.Series(["日本語 straße", "한국어 ΑΣ naïve", "本"])), lowercase=True)
    assert index.search("STRAẞE")["id"].to_list() == [0]
    assert index.search("ας")["id"].to_list() == [1]
    assert index.search("本")["id"].sort().to_list() == [0, 2]


@pytest.mark.parametrize("scoring", SCORINGS)
def test_batches_are_cut_where_results_are_many(monkeypatch: pytest.MonkeyPatch, engine: str, scoring: str) -> None:
    expected = INDEX.search(QUERIES, 5, scoring=scoring, mode="and_or", engine=engine)
    monkeypatch.setattr("polars_tadoc.index.query.find.MAX_PLACES", 10)
    assert INDEX.search(QUERIES, 5, scoring=scoring, mode="and_or", engine=engine).equals(expected)


def test_many_scorings_in_turn(engine: str) -> None:
    """More than an index keeps norms of."""
    first = [INDEX.search(QUERIES, k1=k1 / 10, engine=engine) for k1 in range(30)]
    again = [INDEX.search(QUERIES, k1=k1 / 10, engine=engine) for k1 in range(30)]
    assert all(one.equals(other) for one, other in zip(first, again, strict=True))
    assert len(INDEX.prepared) <= 16


def test_threads_may_search_at_once() -> None:
    index = tadoc.build_index(COLUMN)
    expected = INDEX.search(QUERIES)
    found: list[pl.DataFrame] = []
    threads = [threading.Thread(target=lambda: found.append(index.search(QUERIES))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert all(one.equals(expected) for one in found)


def test_pickled() -> None:
    INDEX.search(QUERIES)
    again = pickle.loads(pickle.dumps(INDEX))
    assert again.search(QUERIES).equals(INDEX.search(QUERIES))
    assert not {segment.key for segment in again.segments} & {segment.key for segment in INDEX.segments}


@pytest.mark.parametrize("codec", ["pfordelta", "rice"])
def test_the_first_are_those_of_the_whole_ranking(codec: str, engine: str) -> None:
    """Documents that cannot be among the first are left out early; nothing else may come of it."""
    random = np.random.default_rng(5)
    chosen = (random.zipf(1.3, 120_000) - 1) % 5000
    ends = np.sort(random.integers(0, len(chosen), 8000))
    texts = [" ".join(f"w{word}" for word in own) for own in np.split(chosen, ends)]
    index = tadoc.build_index(tadoc.compress(pl.Series(texts)), codec=codec, engine=engine)
    queries = [" ".join(f"w{word}" for word in (random.zipf(1.3, 1 + number % 6) - 1) % 5000) for number in range(60)]
    for scoring, delta in [*((scoring, 0.5) for scoring in SCORINGS), ("bm25l", 1e5), ("bm25+", 1e5)]:
        for mode in ("or", "and"):
            how: dict[str, Any] = {"mode": mode, "scoring": scoring, "delta": delta, "engine": engine}
            whole = index.search(queries, len(texts), **how)
            for k in (1, 10, 100):
                got = index.search(queries, k, **how)
                assert got.equals(whole.filter(pl.col("rank") <= k)), (scoring, delta, mode, k)


def test_what_every_document_gets_does_not_rank(engine: str) -> None:
    """A large delta makes scores equal in float32; those of BM25+ are ranked as without."""
    found, without = (
        INDEX.search(QUERIES, 10, scoring="bm25+", delta=delta, engine=engine).drop("score") for delta in (1e7, 0)
    )
    assert found.equals(without)
    whole = INDEX.search("the dog", 10, scoring="bm25+", delta=1e7, engine=engine)
    assert whole["score"].n_unique() < len(whole)


WRONG: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"queries": 5}, TypeError, "int"),
    ({"queries": b"cat"}, TypeError, "bytes"),
    ({"queries": ["cat", 5]}, TypeError, "query 1 is int"),
    ({"queries": None}, TypeError, "NoneType"),
    ({"queries": {"a": 1}}, TypeError, "not dict"),
    ({"queries": {"a"}}, TypeError, "not set"),
    ({"queries": "\ud800"}, ValueError, "search: query is not text: surrogates"),
    ({"queries": ["a", None, "b\udfff"]}, ValueError, "search: query 2 is not text"),
    ({"queries": pl.col("a")}, TypeError, "Expr"),
    ({"queries": pl.DataFrame({"a": ["cat"]})}, TypeError, "DataFrame"),
    ({"queries": pl.Series([1])}, TypeError, "Int64"),
    ({"k": -1}, ValueError, "k=-1"),
    ({"k": 1.5}, TypeError, "k=1.5"),
    ({"k": True}, TypeError, "k=True"),
    ({"mode": "xor"}, ValueError, '"and", "or" or "and_or"'),
    ({"mode": ["or"]}, ValueError, "mode"),
    ({"scoring": "bm25"}, ValueError, "'robertson', 'lucene', 'atire', 'bm25l', 'bm25\\+'"),
    ({"scoring": ["lucene"]}, ValueError, "scoring"),
    ({"k1": -0.1}, ValueError, "k1=-0.1"),
    ({"k1": math.nan}, ValueError, "k1=nan"),
    ({"k1": math.inf}, ValueError, "k1=inf"),
    ({"k1": "1"}, TypeError, "k1='1' must be a number"),
    ({"b": 1.1}, ValueError, "b=1.1 must be from 0 to 1"),
    ({"b": -1}, ValueError, "b=-1"),
    ({"b": True}, TypeError, "b=True"),
    ({"delta": -1}, ValueError, "delta=-1"),
    ({"engine": "tpu"}, ValueError, "tpu"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), WRONG)
def test_wrong_arguments(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        INDEX.search(**({"queries": "cat"} | arguments))


def test_words_as_documented() -> None:
    """The tokenizer's rule is that of the oracle."""
    texts = ["Don't-stop, 日本か 42é", "x_y z"]
    index = tadoc.build_index(tadoc.compress(pl.Series(texts)))
    for row, words in enumerate(oracle.tokenize(texts)):
        assert words
        for word in words:
            assert index.search(word)["id"].to_list() == [row]
