"""Records: the one form of partial results, its merging, splitting and writing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.analytics import twig_filter
from polars_tadoc.analytics.explain import REQUESTS
from polars_tadoc.engine.choose import CPU, GPU
from polars_tadoc.errors import InvalidRecordsError
from polars_tadoc.model.column import split as corpora_of
from polars_tadoc.records.labelled_results import Labels
from polars_tadoc.records.packed_records import merge_records
from polars_tadoc.records.records import Layout, Records, decode, encode, split
from tests.analytic_cases import Case, cases, least, tops
from tests.execute.test_memory_limit import CALLS, arguments_of

LAYOUTS = [
    Layout(("word",), 1, by_count=True),
    Layout(("word", "row"), 1, counted=False),
    Layout(("row", "word"), 1),
    Layout(("word",) * 3, 3, by_count=True),
    Layout(("word",) * 9, 9, by_count=True),
    Layout(("word", "word", "row"), 2),
    Layout(("row", "word"), 1, documents=True),
    Layout(("row", "query"), 1, counted=False),
]


def reference(layout: Layout, parts: list[Records]) -> Records:
    """Merge records, by the definition."""
    words = sorted({word for part in parts for word in part.words.to_pylist()})  # by code points
    order = {word: place for place, word in enumerate(words)}
    found: dict[tuple[int, ...], int] = {}
    lengths: dict[int, int] = {}
    for part in parts:
        own = [order[word] for word in part.words.to_pylist()]
        counts = [0] * len(part) if part.counts is None else part.counts.tolist()
        for key, count in zip(part.keys.tolist(), counts, strict=True):
            named = tuple(own[n] if kind == "word" else n for n, kind in zip(key, layout.columns, strict=True))
            found[named] = found.get(named, 0) + count
        if part.rows is not None and part.lengths is not None:
            lengths.update(zip(part.rows.tolist(), part.lengths.tolist(), strict=True))
    keys = np.array(sorted(found), np.uint32).reshape(len(found), len(layout.columns))
    return Records(
        pa.array(words, pa.large_string()),
        keys,
        np.array([found[key] for key in sorted(found)], np.uint64) if layout.counted else None,
        np.array(sorted(lengths), np.uint32) if layout.documents else None,
        np.array([lengths[row] for row in sorted(lengths)], np.uint64) if layout.documents else None,
    )


def same(one: Records, other: Records) -> bool:
    """Equal words, keys and all."""
    pairs = [(one.counts, other.counts), (one.rows, other.rows), (one.lengths, other.lengths), (one.keys, other.keys)]
    for a, b in pairs:
        if (a is None) != (b is None) or (a is not None and b is not None and not np.array_equal(a, b)):
            return False
        if a is not None and b is not None and a.dtype != b.dtype:
            return False
    return one.words.to_pylist() == other.words.to_pylist() and one.keys.shape == other.keys.shape


def words_sorted(records: Records) -> bool:
    words = [word.encode() for word in records.words.to_pylist()]
    return words == sorted(set(words))


@st.composite
def records_of(draw: st.DrawFn, layout: Layout, rows: range) -> Records:
    """Records with rows of their own; few words, so that parts share keys."""
    words = sorted(draw(st.sets(st.sampled_from(["", "a", "b", "ab", "é", "日", "\U0001f600", "\uffff"]), min_size=1)))
    kinds = {
        "word": st.integers(0, len(words) - 1),
        "row": st.integers(rows.start, rows.stop - 1),
        "query": st.integers(0, 3),
    }
    rises = draw(st.sets(st.tuples(*(kinds[kind] for kind in layout.columns)), max_size=20))
    keys = np.array(sorted(rises), np.uint32).reshape(len(rises), len(layout.columns))
    many = st.integers(1, 5) | st.integers(1, 1 << 60)
    counts = draw(st.lists(many, min_size=len(keys), max_size=len(keys)))
    there = (
        sorted({key[layout.columns.index("row")] for key in rises} | draw(st.sets(kinds["row"])))
        if layout.documents
        else []
    )
    lengths = draw(st.lists(many, min_size=len(there), max_size=len(there)))
    return Records(
        pa.array(words, pa.large_string()),
        keys,
        np.array(counts, np.uint64) if layout.counted else None,
        np.array(there, np.uint32) if layout.documents else None,
        np.array(lengths, np.uint64) if layout.documents else None,
    )


@st.composite
def several(draw: st.DrawFn) -> tuple[Layout, list[Records]]:
    """A layout and parts of it; their rows lie apart where a layout asks for it."""
    layout = draw(st.sampled_from(LAYOUTS))
    count = draw(st.integers(0, 4))
    far = draw(st.sampled_from([0, 1 << 20, (1 << 32) - 100]))
    apart = 10 if layout.documents else 0
    return layout, [draw(records_of(layout, range(far + apart * k, far + apart * k + 10))) for k in range(count)]


@given(several())
def test_merging(case: tuple[Layout, list[Records]]) -> None:
    layout, parts = case
    assert same(merge_records(layout, parts), reference(layout, parts))


@given(several(), st.integers(1, 4))
def test_splitting(case: tuple[Layout, list[Records]], shards: int) -> None:
    """Shards of parts, merged shard by shard, are those of the merged parts; each group is in one."""
    layout, parts = case
    shared = [split(layout, part, shards) for part in parts]
    merged = [merge_records(layout, [part[shard] for part in shared]) for shard in range(shards)]
    whole = split(layout, reference(layout, parts), shards)
    for one, other in zip(merged, whole, strict=True):
        assert same(one, other)
        assert words_sorted(one)
    again, expected = merge_records(layout, merged), reference(layout, parts)
    assert len(again) == len(expected)
    named = [[_named(layout, part, key) for key in part.keys[:, : layout.group].tolist()] for part in merged]
    for k in range(shards):
        for j in range(k):
            assert not set(named[k]) & set(named[j])


def _named(layout: Layout, records: Records, key: list[int]) -> tuple[Any, ...]:
    words = records.words.to_pylist()
    return tuple(words[n] if kind == "word" else n for n, kind in zip(key, layout.columns, strict=False))


def test_shards_are_the_same_everywhere() -> None:
    """Processes of other runs and machines must agree."""
    words = pa.array(["", "a", "cat", "the", "日本"], pa.large_string())
    records = Records(words, np.arange(5, dtype=np.uint32)[:, None], np.ones(5, np.uint64))
    found = [shard.words.to_pylist() for shard in split(LAYOUTS[0], records, 3)]
    assert sorted(word for shard in found for word in shard) == ["", "a", "cat", "the", "日本"]
    assert found == SHARDS


SHARDS = [["日本"], ["", "a", "cat"], ["the"]]


@given(several())
def test_writing(case: tuple[Layout, list[Records]]) -> None:
    layout, parts = case
    for part in [*parts, merge_records(layout, parts)]:
        assert same(decode(layout, encode(part)), part)


def _sample() -> Records:
    words = pa.array(["a", "b", "c"], pa.large_string())
    keys = np.array([[0, 1], [1, 2], [2, 0]], np.uint32)
    rows = np.array([0, 1, 2, 5], np.uint32)
    return Records(words, keys, np.array([1, 2, 3], np.uint64), rows, np.array([1, 2, 3, 0], np.uint64))


DAMAGED: dict[str, dict[str, Any]] = {
    "not distinct and in code point order": {"words": pa.array(["a", "c", "b"], pa.large_string())},
    "the words of the records are not distinct": {"words": pa.array(["a", "a", "b"], pa.large_string())},
    "has word numbers above 1": {"words": pa.array(["a", "b"], pa.large_string())},
    "keys of the records": {"keys": np.array([[1, 1], [0, 2], [2, 0]], np.uint32)},
    "keys of the records are not distinct": {"keys": np.array([[1, 1], [1, 1], [2, 0]], np.uint32)},
    "have other counts or rows": {"counts": None},
    "3 records have 2 counts": {"counts": np.array([1, 2], np.uint64)},
    "rows without lengths": {"lengths": None},
    "one length each": {"lengths": np.array([1, 2, 3], np.uint64)},
    "are not ascending": {"rows": np.array([0, 2, 1, 5], np.uint32)},
    "rows that do not exist": {"rows": np.array([0, 1, 3, 5], np.uint32)},
}


@pytest.mark.parametrize("message", DAMAGED)
def test_damaged(message: str) -> None:
    data = encode(replace(_sample(), **DAMAGED[message]))
    with pytest.raises(InvalidRecordsError, match=message):
        decode(LAYOUTS[6], data)


def test_no_records() -> None:
    other = pa.BufferOutputStream()
    with pa.ipc.new_stream(other, pa.schema([("a", pa.int64())])) as writer:
        writer.write_batch(pa.record_batch({"a": [1]}))
    for data in (b"", b"nothing", encode(_sample())[:-60], other.getvalue()):
        with pytest.raises(InvalidRecordsError, match="invalid records"):
            decode(LAYOUTS[6], data)
    with pytest.raises(InvalidRecordsError, match="do not have 3 columns"):
        decode(LAYOUTS[3], encode(_sample()))


def _answer(asked: Any, records: list[Records]) -> pl.DataFrame:
    merged = merge_records(asked.layout, records)
    frame: pl.DataFrame = asked.result(asked.merge([asked.transport.part(merged)]), Labels(None)).to_frame()
    return frame


@pytest.mark.parametrize("call", CALLS)
@given(case=cases(), n=st.integers(1, 3), top=tops, min_count=least, shards=st.integers(1, 3))
def test_answers(engine: str, call: str, case: Case, n: int, top: int | None, min_count: int, shards: int) -> None:
    """Through records, split, written and merged: what the partial results themselves give."""
    asked = REQUESTS[call].from_arguments(**arguments_of(call, n, top, min_count), engine=engine)
    expected = asked.run(case.column).to_frame()
    every, where = asked.without_limits(), {"cpu": CPU, "gpu": GPU}[engine]
    parts = [every.transport.records(every.partial(corpus, where)) for corpus in corpora_of(case.column)]
    for part in parts:
        assert words_sorted(part)
        assert same(part, reference(every.layout, [part]))
        assert part.counts is None or (part.counts > 0).all()
    assert _answer(asked, parts).equals(expected)
    pieces = [piece for part in parts for piece in split(every.layout, part, shards)]
    assert _answer(asked, [decode(every.layout, encode(piece)) for piece in pieces]).equals(expected)


@given(case=cases(normalised=True))
def test_answers_about_normalised_words(case: Case) -> None:
    for call in CALLS:
        asked = REQUESTS[call].from_arguments(**case.arguments, engine="cpu")
        parts = [
            asked.transport.records(asked.without_limits().partial(corpus, CPU)) for corpus in corpora_of(case.column)
        ]
        assert _answer(asked, parts).equals(asked.run(case.column).to_frame())


def test_weights_by_a_dictionary_keep_lengths() -> None:
    column = tadoc.compress(pl.Series("text", ["a b c", "c c", None, "d"]), rows_per_grammar=2)
    dictionary = tadoc.Dictionary.from_words(pl.Series(["a", "c"]))
    asked = REQUESTS["bm25_weights"].from_arguments(dictionary=dictionary, engine="cpu")
    parts = [asked.transport.records(asked.partial(corpus, CPU)) for corpus in corpora_of(column)]
    assert _answer(asked, parts).equals(asked.run(column).to_frame())
    assert merge_records(asked.layout, parts).lengths.tolist() == [3, 2, 1]


def test_twigs() -> None:
    rows = ["<a><b/></a>", None, "<c/>", "<a/>", "<a><b/></a>"] * 3
    queries = {"b": "//b", "a": "/a", "c": "/c[d]"}
    column = tadoc.compress(pl.Series("text", rows), tokenizer="xml", rows_per_grammar=4)
    asked = twig_filter.TwigFilterRequest.from_arguments(queries, engine="cpu")
    parts = [asked.transport.records(asked.partial(corpus, CPU)) for corpus in corpora_of(column)]
    assert _answer(asked, parts).equals(asked.run(column).to_frame())


@pytest.mark.parametrize("call", CALLS)
def test_nothing(call: str) -> None:
    asked = REQUESTS[call].from_arguments(engine="cpu")
    column = tadoc.compress(pl.Series("text", [], pl.String))
    assert _answer(asked, []).equals(asked.run(column).to_frame())
    empty = merge_records(asked.layout, [])
    assert [len(shard) for shard in split(asked.layout, empty, 3)] == [0, 0, 0]
