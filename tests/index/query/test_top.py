"""``index.top`` gives the first columns of ``index.search`` as arrays."""

from __future__ import annotations

import itertools
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc import Index
from polars_tadoc.index.query import costs, one
from polars_tadoc.index.query.filter import allowed_by_segment
from polars_tadoc.index.query.one import MAX_BYTES, MAX_K, find_one
from polars_tadoc.index.query.plan import plan
from polars_tadoc.index.query.request import Request
from tests.analytic_cases import LABELS
from tests.bm25_oracle import MODES, SCORINGS
from tests.index.query.test_search import COLUMN, INDEX, QUERIES, TEXTS, WRONG, searched

MORE = tadoc.compress(pl.Series("text", ["the dog and the cat", None, "bird bird cat", "saw"]))
PHRASES = ['"the dog"', '"the dog" cat', '"dog the"', '"no such" words', '""', '"cat"', '"saw the" "the cat" bird']
FORMS: dict[str, Index] = {
    "one segment": INDEX,
    "segments": INDEX.append(MORE),
    "deleted": INDEX.delete([2, 5]),
    "segments, deleted": INDEX.append(MORE).delete([0, 6, 7]),
    "all deleted": INDEX.delete(INDEX.ids),
    "compacted": INDEX.append(MORE).delete([0, 6, 7]).compact(),
    "no documents": tadoc.build_index(COLUMN.head(0)),
    "lower case, stop words": tadoc.build_index(COLUMN, lowercase=True, stopwords=["the", "Saw", "日"]),
    "normalised": tadoc.build_index(COLUMN, normalize=pl.element().str.head(2), stopwords=["th"]),
    "whitespace": tadoc.build_index(tadoc.compress(pl.Series(TEXTS), tokenizer="whitespace")),
    "no text": tadoc.build_index(COLUMN, store=False),
}


def check(index: Index, *queries: str, k: int = 10, **how: Any) -> None:
    batch = index.search(["cat", *queries, None, *queries], k, **how).partition_by("query", as_dict=True)
    for number, query in enumerate(queries, 1):
        expected = index.search(query, k, **how)
        ids, scores = index.top(query, k, **how)
        assert ids.tolist() == expected["id"].to_list()
        assert ids.dtype == index.ids.to_numpy().dtype
        assert scores.dtype == np.float32
        assert scores.tobytes() == expected["score"].to_numpy().tobytes()
        for place in (number, number + len(queries) + 1):
            found = batch[place,] if (place,) in batch else expected.clear()
            assert found.drop("query").equals(expected.drop("query"))


@pytest.mark.parametrize(
    ("form", "mode", "scoring"),
    [  # every pair of form, mode and scoring
        (form, list(MODES)[(place + turn) % len(MODES)], scoring)
        for place, form in enumerate(FORMS)
        for turn, scoring in enumerate(SCORINGS)
    ],
)
def test_top_is_what_search_finds(engine: str, form: str, mode: str, scoring: str) -> None:
    index = FORMS[form]
    others = ["THE Cat", "dog Ünknown 日本 cat", "ΣΑΣ THE", "cat " * 40, *([] if form == "no text" else PHRASES)]
    for k in (0, 1, 2, 100):
        check(index, *QUERIES, *others, k=k, mode=mode, scoring=scoring, engine=engine)


@pytest.mark.parametrize("form", ["one segment", "deleted", "compacted", "lower case, stop words", "whitespace"])
@pytest.mark.parametrize("mode", MODES)
def test_the_short_way(form: str, mode: str) -> None:
    """Words of any script are answered in one kernel; only long queries, phrases and normalised words are not."""
    index, request = FORMS[form], Request.of(10, mode, "bm25+", 1.5, 0.75, 0.5)
    allowed = allowed_by_segment(index, None, "top")
    for query in ["the dog", "THE CAT the", "no such words", "日本 ÜBER Жук", "-", "a " * (MAX_BYTES // 2)]:
        found = find_one(index, query, request, allowed, "cpu")
        assert found is not None
        assert found.counts.tolist() == [len(index.search([query], mode=mode))]
        check(index, query, mode=mode, engine="cpu")
        assert find_one(index, query, request, allowed, "gpu") is None
    for query in ["", '"the dog"', "a " * (MAX_BYTES // 2) + "a", *(["ΣΑΣ"] if "lower" in form else [])]:
        assert find_one(index, query, request, allowed, "cpu") is None


def test_what_takes_the_long_way() -> None:
    request = Request.of(2000, "or", "lucene", 1.5, 0.75, 0.5)
    for form in ("segments", "normalised"):
        allowed = allowed_by_segment(FORMS[form], None, "top")
        assert find_one(FORMS[form], "the dog", request, allowed, "cpu") is None
    many = tadoc.build_index(tadoc.compress(pl.Series(["a b"] * (MAX_K + 1))))
    assert find_one(many, "a", request, [None], "cpu") is None
    check(many, "a b", k=2000)
    check(many, "a b", k=MAX_K)


def test_a_gpu_that_is_faster_takes_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    request = Request.of(10, "and", "lucene", 1.5, 0.75, 0.5)
    for feature, cost in itertools.product(range(len(costs.FEATURES)), (-1.0, 1.0)):
        edge = np.zeros(len(costs.FEATURES))
        edge[feature] = cost
        monkeypatch.setattr(one, "edge_of", lambda mode, edge=edge: edge)
        is_on_cpu = find_one(INDEX, "the dog", request, [None], "auto") is not None
        planned = plan(INDEX, pl.Series(["the dog"]), request.scoring, "top")
        value = costs.features_of(planned.offsets, planned.frequencies[planned.items], INDEX.documents)
        has = {**value["and"], **value["or"]}[costs.FEATURES[feature]][0] > 0
        assert is_on_cpu == (cost < 0 or not has)


def test_many_threads() -> None:
    """Each thread has its own work space."""
    queries = [*QUERIES, "the dog", "saw the", "THE Cat"] * 20
    expected = [INDEX.top(query)[1].tobytes() for query in queries]
    with ThreadPoolExecutor(8) as pool:
        assert [scores.tobytes() for _, scores in pool.map(INDEX.top, queries)] == expected


@given(searched=searched(), k=st.integers(0, 12), mode=st.sampled_from(MODES), scoring=st.sampled_from(SCORINGS))
def test_any_texts(searched: Any, k: int, mode: str, scoring: str) -> None:
    case, queries = searched
    index = tadoc.build_index(case.column)
    check(index, *(" ".join(words) for words in queries), k=k, mode=mode, scoring=scoring)


@pytest.mark.parametrize("name", [*LABELS, "floats", "Booleans", "wide"])
def test_ids_of_any_type(name: str) -> None:
    others = {
        "floats": pl.Series([k / 4 for k in range(10)], dtype=pl.Float32),
        "Booleans": pl.Series([k % 2 == 0 for k in range(10)]),
        "wide": pl.Series(range(10), dtype=pl.Int128),
    }
    ids = (LABELS | others)[name].head(len(TEXTS))
    index = tadoc.build_index(COLUMN, id=ids)
    for query in ("the dog", "unknown"):
        got, _ = index.top(query)
        assert got.dtype == {"integers": np.int16, "floats": np.float32}.get(name, object)
        assert got.tolist() == index.search(query)["id"].to_list()
    assert pickle.loads(pickle.dumps(index)).top("cat")[1].tolist() == index.top("cat")[1].tolist()


@pytest.mark.parametrize("mode", ["or", "and"])
@pytest.mark.parametrize("form", FORMS)
def test_counts_are_those_of_search(form: str, mode: str) -> None:
    index = FORMS[form]
    some = [number % 2 == 0 for number in range(index.documents)]
    for query in [*QUERIES, "THE Cat", "dog Ünknown 日本 cat", *([] if form == "no text" else PHRASES)]:
        assert index.count(query, mode=mode) == len(index.search(query, 1000, mode=mode))
        assert index.count(query, mode=mode, filter=some) == len(index.search(query, 1000, mode=mode, filter=some))


@given(searched=searched(), mode=st.sampled_from(["or", "and"]))
def test_counts_of_any_texts(searched: Any, mode: str) -> None:
    case, queries = searched
    index = tadoc.build_index(case.column)
    for words in queries:
        assert index.count(" ".join(words), mode=mode) == len(index.search(" ".join(words), 1000, mode=mode))


def test_wrong_counts() -> None:
    with pytest.raises(TypeError, match="count: query must be a string, not list"):
        INDEX.count(["cat"])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="mode='and_or': use"):
        INDEX.count("cat", mode="and_or")
    assert INDEX.count('"cat') == INDEX.count("cat")
    with pytest.raises(ValueError, match="count: filter must have one value"):
        INDEX.count("cat", filter=[True])


def test_a_filter() -> None:
    mask = [True, False, True, False, True, True]
    check(INDEX, "the dog", filter=mask)
    check(FORMS["deleted"], "the dog", filter=mask[:4])


def test_results_are_the_callers() -> None:
    """Writing to them changes no other result, and nothing of the index."""
    ids, scores = INDEX.top("cat")
    expected = ids.tolist(), scores.tolist()
    ids[:], scores[:] = 7, 7
    again = INDEX.top("cat")
    assert (again[0].tolist(), again[1].tolist()) == expected
    assert INDEX.ids.to_list() == [0, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("query", [None, 5, ["cat"], b"cat", pl.Series(["cat"]), pl.col("a")])
def test_only_one_string(query: Any) -> None:
    with pytest.raises(TypeError, match=f"top: query must be a string, not {type(query).__name__}"):
        INDEX.top(query)


@pytest.mark.parametrize("case", [case for case in WRONG if "queries" not in case[0]], ids=lambda case: str(case[0]))
def test_wrong_arguments(case: tuple[dict[str, Any], type[Exception], str]) -> None:
    arguments, error, message = case
    for _ in range(2):  # what was checked before is checked again
        with pytest.raises(error, match=message):
            INDEX.top("cat", **arguments)


def test_wrong_queries() -> None:
    with pytest.raises(ValueError, match="top: query is not text: surrogates"):
        INDEX.top("\ud800")
    assert INDEX.top('"cat')[0].tolist() == INDEX.top("cat")[0].tolist()
    with pytest.raises(ValueError, match="top: the phrase 'the cat' needs the text"):
        FORMS["no text"].top('"the cat"')


def test_equal_arguments_of_other_types_are_checked_apart() -> None:
    """1, 1.0 and True are equal; each is checked as what it is."""
    assert len(INDEX.top("cat", 1, k1=1, b=1)[0]) == 1
    with pytest.raises(TypeError, match=r"k=1\.0"):
        INDEX.top("cat", 1.0, k1=1, b=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="k1=True"):
        INDEX.top("cat", 1, k1=True, b=1)
    with pytest.raises(ValueError, match="scoring="):
        INDEX.top("cat", scoring=[])  # type: ignore[arg-type]
