"""Snippets, against plain Python that looks at all stretches of a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.errors import ColumnMissingError, LimitExceededError, QuerySyntaxError
from polars_tadoc.index.query import snippets as module

WORD = re.compile(r"\w+")


def expected(
    text: str, units: dict[tuple[str, ...], int], size: int, before: str, after: str, stopwords: Sequence[str] = ()
) -> str:
    """The stretch in which distinct units, words or phrases with what they are worth, are worth most."""
    spans = [found.span() for found in WORD.finditer(text)]
    kept = [place for place, (a, b) in enumerate(spans) if text[a:b].lower() not in stopwords]
    lower = [text[a:b].lower() for a, b in (spans[place] for place in kept)]
    found = [
        (kept[i], kept[i + len(unit) - 1], unit)
        for i in range(len(lower))
        for unit in units
        if tuple(lower[i : i + len(unit)]) == unit
    ]
    sought = {word for unit in units for word in unit}
    best = (0, 0, 0, -1)
    for start in (place for place, word in zip(kept, lower, strict=True) if word in sought):
        inside = [own for own in found if own[0] >= start and own[1] < start + size]
        worth = sum(units[unit] for unit in {unit for _, _, unit in inside})
        if (worth, len(inside)) > best[:2]:
            best = (worth, len(inside), start, max(last for _, last, _ in inside))
    _, _, first, last = best
    first = max(0, min(first - (size - (last - first + 1)) // 2, len(spans) - size))
    stop = min(first + size, len(spans))
    if first == stop:
        return ""
    marked: set[int] = set()
    joined: set[int] = set()  # with the word before
    for a, b, _ in found:
        if a >= first and b < stop:
            run = [place for place in kept if a <= place <= b]
            marked |= set(run)
            joined |= set(run[1:])
    pieces, done = ["…" if first else ""], spans[first][0]
    runs = [place for place in sorted(marked) if place not in joined]
    for place in runs:
        end = place
        for other in sorted(marked):
            if other > end and other in joined and not any(end < run <= other for run in runs):
                end = other
        pieces += [text[done : spans[place][0]], before, text[spans[place][0] : spans[end][1]], after]
        done = spans[end][1]
    return "".join([*pieces, text[done : spans[stop - 1][1]], "…" if stop < len(spans) else ""])


def worth(index: tadoc.Index, query: str) -> dict[tuple[str, ...], int]:
    """What the units of a query are worth, as its explanation says."""
    explained = index.explain(query, index.ids[0])
    return {
        tuple(word.strip('"').split()): int(weight * (1 << 20)) + 1
        for word, weight in explained.select("word", "weight").rows()
    }


words = st.sampled_from(["a", "b", "C", "the", "The", "Ende", "zz9"])
gaps = st.sampled_from([" ", ", ", "  ", " - ", ".\n", " «é» "[:3]])
texts = st.lists(st.tuples(words, gaps), max_size=40).map(lambda own: "".join(w + g for w, g in own))
units = st.one_of(words, st.lists(words, min_size=2, max_size=3).map(lambda own: f'"{" ".join(own)}"'))


@given(
    rows=st.lists(texts, min_size=1, max_size=6),
    queries=st.lists(st.lists(units, max_size=4).map(" ".join), min_size=1, max_size=4),
    size=st.integers(1, 12),
    stopwords=st.sampled_from([[], ["the"], ["b", "the"]]),
    rows_per_grammar=st.integers(1, 6),
)
def test_all_stretches(
    rows: list[str], queries: list[str], size: int, stopwords: list[str], rows_per_grammar: int
) -> None:
    column = tadoc.compress(pl.Series("text", rows), rows_per_grammar=rows_per_grammar)
    index = tadoc.build_index(column, lowercase=True, stopwords=stopwords)
    results = index.search(queries, k=4)
    got = index.snippets(results, queries, words=size, before="<", after="/>")
    assert got.drop("snippet").equals(results)
    assert got.schema["snippet"] == pl.String
    for query, id, snippet in got.select("query", "id", "snippet").rows():
        assert snippet == expected(rows[id], worth(index, queries[query]), size, "<", "/>", stopwords)


@given(text=texts, size=st.integers(1, 50))
def test_rows_without_the_words_begin(text: str, size: int) -> None:
    index = tadoc.build_index(tadoc.compress(pl.Series([text])))
    results = pl.DataFrame({"query": [0], "id": pl.Series([0], dtype=index.ids.dtype)})
    assert index.snippets(results, "nowhere", words=size)["snippet"].item() == expected(text, {}, size, "", "")


TEXT = "The kernel is out of memory; the out-of-memory killer was called. " + "Then nothing. " * 50 + "Memory!"
INDEX = tadoc.build_index(
    tadoc.compress(pl.Series([TEXT, "Out of order", None, "no memory"])),
    id=pl.Series(["x", "y", "z", "w"]),
    lowercase=True,
)


def test_text_stays_as_it_was() -> None:
    query = '"out of memory" killer'
    found = INDEX.snippets(INDEX.search(query, k=1), query, words=10)
    assert found["snippet"].item() == "…is **out of memory**; the **out-of-memory** **killer** was…"
    marked = INDEX.snippets(INDEX.search("memory", k=5), "memory", words=3, before="", after="‼")
    assert dict(marked.select("id", "snippet").rows()) == {"x": "…of memory‼; the…", "w": "no memory‼"}


def test_results_may_be_filtered_joined_and_put_in_another_order() -> None:
    queries = ["memory", "order", "out"]
    results = INDEX.search(queries)
    every = INDEX.snippets(results, queries, words=4)
    wanted = {(query, id): text for query, id, text in every.select("query", "id", "snippet").rows()}
    some = results.sample(fraction=1, shuffle=True, seed=1).filter(pl.col("id") != "w").with_columns(more=1)
    got = INDEX.snippets(some, queries, words=4)
    assert got.columns == [*some.columns, "snippet"]
    assert [wanted[key] for key in got.select("query", "id").rows()] == got["snippet"].to_list()
    twice = INDEX.snippets(pl.concat([every, every]), queries, words=4)
    assert twice.equals(pl.concat([every, every]))
    assert INDEX.snippets(results.head(0), queries).schema["snippet"] == pl.String


def test_many_queries_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    queries = [f"w{i} w{i + 1}" for i in range(40)]
    rows = [" ".join(f"w{(i * j) % 41}" for j in range(60)) for i in range(1, 60)]
    index = tadoc.build_index(tadoc.compress(pl.Series(rows), rows_per_grammar=20))
    results = index.search(queries, k=5)
    wanted = index.snippets(results, queries, words=7)
    monkeypatch.setattr(module, "QUERIES", 7)
    assert index.snippets(results, queries, words=7).equals(wanted)
    units = [worth(index, query) for query in queries]
    for query, id, snippet in wanted.select("query", "id", "snippet").rows():
        assert snippet == expected(rows[id], units[query], 7, "**", "**")


def test_after_append_and_delete() -> None:
    changed = INDEX.append(tadoc.compress(pl.Series(["more Memory"])), id=pl.Series(["new"])).delete("x")
    found = changed.snippets(changed.search("memory"), "memory")
    assert dict(found.select("id", "snippet").rows()) == {"new": "more **Memory**", "w": "no **memory**"}
    with pytest.raises(ValueError, match="no document with id 'x'"):
        changed.snippets(INDEX.search("memory"), "memory")


def test_integer_ids_of_any_width_and_the_first_of_equal_ones() -> None:
    index = tadoc.build_index(tadoc.compress(pl.Series(["a first", "b", "a second"])), id=pl.Series([7, 8, 7]))
    results = index.search("a")
    wanted = index.snippets(results, "a")["snippet"].to_list()
    assert wanted == ["**a** first"] * 2
    for dtype in (pl.Int8, pl.UInt64, pl.Int128):
        assert index.snippets(results.cast({"id": dtype}), "a")["snippet"].to_list() == wanted


def test_without_gaps_words_come_joined_by_spaces() -> None:
    column = tadoc.compress(pl.Series(["To  be, or Not"]), lossless=False)
    index = tadoc.build_index(column)
    assert index.snippets(index.search("be"), "be", words=3)["snippet"].item() == "To **be** or…"


def test_long_rows_with_one_word() -> None:
    text = "a " * 100_000 + "needle " + "a b " * 50_000
    index = tadoc.build_index(tadoc.compress(pl.Series([text])))
    assert index.snippets(index.search("needle"), "needle", words=3)["snippet"].item() == "…a **needle** a…"
    dense = index.snippets(index.search("a b"), "a b", words=1_000)["snippet"].item()
    assert (dense.count("**a**"), dense.count("**b**")) == (500, 500)


RESULTS = INDEX.search("memory")
WRONG: list[tuple[Any, Any, dict[str, Any], type[Exception], str]] = [
    ("memory", None, {}, TypeError, "results must be a DataFrame, not str; pass the result of search()"),
    (RESULTS, None, {}, TypeError, "queries are missing; pass those that were searched for"),
    (RESULTS.lazy(), "memory", {}, TypeError, "results must be a DataFrame, not LazyFrame; collect it first"),
    (RESULTS.drop("id"), "memory", {}, ColumnMissingError, 'snippets: results: there is no column "id"'),
    (RESULTS.rename({"query": "querry"}), "memory", {}, ColumnMissingError, 'did you mean "querry"?'),
    (RESULTS, [], {}, ValueError, "a result is of query 0, of 0 queries"),
    (RESULTS.with_columns(query=-1), "memory", {}, ValueError, "a result is of query -1"),
    (RESULTS.with_columns(query=None), "memory", {}, TypeError, 'column "query" of the results must be integers'),
    (RESULTS.with_columns(query=pl.lit("a")), "memory", {}, TypeError, "must be integers, not String"),
    (RESULTS.with_columns(id=1), "memory", {}, TypeError, "snippets: the index's ids are String, these are Int32"),
    (RESULTS.with_columns(id=pl.lit("q")), "memory", {}, ValueError, "snippets: the index has no document with id 'q'"),
    (RESULTS, "memory", {"words": 0}, ValueError, "words=0 must be at least 1"),
    (RESULTS, "memory", {"words": 1_001}, ValueError, "words=1001 must be at most 1000"),
    (RESULTS, "memory", {"words": 2.5}, TypeError, "words=2.5 must be an integer"),
    (RESULTS, "memory", {"before": None}, TypeError, "before must be a string, not NoneType"),
    (RESULTS, "memory", {"after": "\ud800"}, ValueError, "snippets: after is not text"),
    (RESULTS, 7, {}, TypeError, "snippets: queries are strings"),
    (RESULTS, ["\ud800"], {}, ValueError, "snippets: query 0 is not text"),
    (RESULTS, '"memory', {"syntax": "strict"}, QuerySyntaxError, "snippets: query 0, character 1: this quote is not"),
    (RESULTS, "memory", {"syntax": "x"}, ValueError, "syntax='x': use"),
]


@pytest.mark.parametrize(("results", "queries", "arguments", "error", "message"), WRONG)
def test_what_is_wrong_is_said(
    results: Any, queries: Any, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        INDEX.snippets(results, queries, **arguments)


def test_an_index_without_the_text() -> None:
    index = tadoc.build_index(tadoc.compress(pl.Series([TEXT])), store=False)
    with pytest.raises(ValueError, match="this index does not have the text; build it with store=True"):
        index.snippets(index.search("memory"), "memory")


def test_documents_of_more_words_than_the_limit() -> None:
    index = tadoc.build_index(pl.Series(["one two three four five six seven", "two"]))
    found = index.search("two")
    with tadoc.Config(expansion_limit=7), pytest.raises(LimitExceededError, match="snippets: the rows expand to more"):
        index.snippets(found, "two")
    with tadoc.Config(expansion_limit=8):
        assert index.snippets(found, "two", words=1)["snippet"].to_list() == ["**two**", "…**two**…"]


def test_matches_that_do_not_fit_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise MemoryError

    index = tadoc.build_index(pl.Series(["one two"]))
    monkeypatch.setattr(module, "_occurrences", full)
    with pytest.raises(LimitExceededError, match="snippets: the matches do not fit in memory"):
        index.snippets(index.search("two"), "two")
