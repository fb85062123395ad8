"""Fields: BM25F in plain Python, and queries of one field."""

from __future__ import annotations

import json
import pickle
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.errors import ColumnMissingError, InvalidIndexError
from polars_tadoc.execute import windows
from polars_tadoc.index.store.folder import HEADER, _header_text
from tests.bm25_oracle import idf, part

Document = dict[str, list[str]]


def scores(
    documents: list[Document], weights: dict[str, float], terms: list[tuple[str, tuple[str, ...]]], scoring: str
) -> dict[int, float]:
    """BM25F (Robertson, Zaragoza and Taylor 2004): counts and lengths are weighted sums over the fields."""

    def count(document: Document, field: str, words: tuple[str, ...]) -> float:
        return sum(
            weight * sum(tuple(own[at : at + len(words)]) == words for at in range(len(own)))
            for name, weight in weights.items()
            if field in ("", name)
            for own in [document[name]]
        )

    lengths = [sum(weight * len(own[name]) for name, weight in weights.items()) for own in documents]
    average, found = sum(lengths) / len(documents), dict[int, float]()
    for field, words in terms:
        counts = [count(own, field, words) for own in documents]
        weight = idf(scoring, len(documents), sum(one > 0 for one in counts)) if any(counts) else 0.0
        for number, own in enumerate(counts):
            if own:
                found[number] = found.get(number, 0.0) + weight * part(
                    scoring, own, lengths[number], average, 1.5, 0.75, 0.5
                )
    return found


WORDS = st.lists(st.sampled_from("abcd"), max_size=5)
QUERIES = {
    "a b": [("", ("a",)), ("", ("b",))],
    "title:a body:b": [("title", ("a",)), ("body", ("b",))],
    '"a b"': [("", ("a", "b"))],
    'title:"a b" OR c': [("title", ("a", "b")), ("", ("c",))],
    "body:(a OR c)": [("body", ("a",)), ("body", ("c",))],
    "title:zz": [],
}


@given(
    data=st.data(),
    rows=st.lists(st.tuples(st.none() | WORDS, WORDS), min_size=1, max_size=8),
    title=st.sampled_from([1, 2.0, 0.5, 2.125]),
    scoring=st.sampled_from(["lucene", "robertson", "atire"]),
)
def test_any_fields(engine: str, data: Any, rows: list[Any], title: float, scoring: str) -> None:
    weights = {"title": title, "body": 1.0}
    df = pl.DataFrame(
        {
            "title": [None if own is None else " ".join(own) for own, _ in rows],
            "body": [" ".join(own) for _, own in rows],
        },
        {"title": pl.String, "body": pl.String},
    ).with_row_index("number")
    cut, gone = data.draw(st.integers(1, len(rows))), data.draw(st.sets(st.integers(0, len(rows) - 1), max_size=2))
    if data.draw(st.booleans()):
        df = df.tadoc.compress("title")
    index = df[:cut].tadoc.build_index(weights, id="number", metadata=["number"], engine=engine)
    index = df[cut:].tadoc.append_to(index, id="number").delete(sorted(gone))
    left = [number for number in range(len(rows)) if number not in gone]
    documents = [{"title": rows[number][0] or [], "body": rows[number][1]} for number in left]
    if data.draw(st.booleans()):
        index = index.compact()
    for query, terms in QUERIES.items():
        wanted = (
            {left[number]: score for number, score in scores(documents, weights, terms, scoring).items()}
            if left
            else {}
        )
        found = index.search(query, len(rows), scoring=scoring, engine=engine)
        assert dict(found.select("id", "score").rows()) == pytest.approx(wanted, rel=1e-5)
        ids, top = index.top(query, len(rows), scoring=scoring, engine=engine)
        assert dict(zip(ids.tolist(), top.tolist(), strict=True)) == dict(found.select("id", "score").rows())
        assert index.count(query) == len(wanted)
        for number in wanted:
            explained = index.explain(query, number, scoring=scoring)["score"].to_numpy()
            assert (
                np.add.accumulate(explained, dtype=np.float32)[-1] == dict(found.select("id", "score").rows())[number]
            )
    words = {word for own in documents for name in own for word in own[name]}
    assert index.terms == len(words)
    assert set(index.suggest("")["word"]) == words
    assert index.postings == sum(len({*own["title"], *own["body"]}) for own in documents)


DF = pl.DataFrame(
    {
        "title": ["Disk errors", "Links", None],
        "body": ["the link is down", "a disk failed. disk errors", "out of memory"],
        "year": [2023, 2024, 2024],
    }
)


def test_queries_and_snippets(tmp_path: Path) -> None:
    index = DF.tadoc.build_index({"title": 2.0, "body": 1.0}, metadata=["year"], analyzer="english")
    for query, ids in {
        "title:disks": [0], "body:disks": [1], "disk": [0, 1], "title:(disk OR link) AND year:2024": [1],
        "title:lin*": [1], "title:dsik~1": [0], "-title:disk": [1, 2], '"errors link"': [],
        "title:(disk NEAR/2 errors)": [0], "+title:link +body:fail^2": [1], "that:memory": [2],
    }.items():  # fmt: skip
        assert index.search(query)["id"].sort().to_list() == ids, query
    found = index.search("disk")
    texts = dict(zip(found["id"], index.snippets(found, "disk")["snippet"], strict=True))
    assert texts == {0: "the link is down", 1: "a **disk** failed. **disk** errors"}
    assert index.snippets(found, "disk", field="title")["snippet"].sort().to_list() == ["**Disk** errors", "Links"]
    assert index.explain("title:disk link", 0).select("word", "count").sort("word").rows() == [
        ("link", 1),
        ("title:disk", 2),
    ]
    assert index.did_you_mean("title:dsik") == "title:disk"
    index.save(tmp_path / "index")
    loaded = tadoc.load_index(tmp_path / "index")
    queries = ["title:disk", '"disk errors"', "disk link"]
    assert loaded.search(queries).equals(index.search(queries))
    assert loaded.delete(0).compact().search(queries).equals(index.delete(0).search(queries))
    assert pickle.loads(pickle.dumps(index)).search(queries).equals(index.search(queries))
    with index.serve(k=3) as server:
        assert server.submit("title:disk").result()["id"].to_list() == index.search("title:disk", 3)["id"].to_list()
    header = json.loads((tmp_path / "index" / HEADER).read_text())
    assert header.pop("crc32")
    header["fields"] = [{"name": "title", "weight": "2"}]
    (tmp_path / "index" / HEADER).write_text(_header_text(header))
    with pytest.raises(InvalidIndexError, match=r"header\.json"):
        tadoc.load_index(tmp_path / "index")


def test_wrong_fields() -> None:
    for weights, error, message in [
        ({"titel": 1.0}, ColumnMissingError, 'titel.*did you mean "title"'),
        ({"title": 0}, ValueError, "weights are from 0.001 to 1000"),
        ({"title": 0.12345}, ValueError, "at most three decimals"),
        ({"title": "2"}, TypeError, 'weight of field "title" is str'),
        ({}, ValueError, "there are 0 fields"),
        ({"year": 1.0}, TypeError, "year"),
    ]:
        with pytest.raises(error, match=message):
            DF.tadoc.build_index(weights)
    index = DF.tadoc.build_index({"title": 2, "body": 1})
    with pytest.raises(ValueError, match='"title" is a field and a column of the metadata'):
        DF.tadoc.build_index({"title": 2, "body": 1}, metadata=["title"])
    with pytest.raises(TypeError, match="pass a frame with these columns"):
        index.append(DF["title"])
    with pytest.raises(ColumnMissingError, match='"body"'):
        DF.drop("body").tadoc.append_to(index)
    with pytest.raises(ValueError, match="omit the column"):
        DF.tadoc.append_to(index, "title")
    with pytest.raises(ValueError, match="snippets: field='year': the index has no such field; it has title, body"):
        index.snippets(index.search("disk"), "disk", field="year")
    with pytest.raises(ValueError, match="needs the text"):
        DF.tadoc.build_index({"title": 2, "body": 1}, store=False).search('"a disk"')
    mixed = DF.tadoc.compress("title", tokenizer="whitespace")
    with pytest.raises(TypeError, match='was cut by tokenizer "whitespace", not "words"'):
        mixed.tadoc.build_index({"title": 2, "body": 1}, tokenizer="words")
    with pytest.raises(ValueError, match="cut by different tokenizers"):
        mixed.tadoc.compress("body").tadoc.build_index({"title": 2, "body": 1})


@given(
    parts=st.lists(st.lists(st.tuples(st.none() | WORDS, st.none() | WORDS), max_size=4), min_size=1, max_size=3),
    compressed=st.sets(st.sampled_from(["title", "body"])),
    store=st.booleans(),
    share=st.sampled_from([windows.TEXT_SHARE, 1 << 40]),
)
def test_sunk_fields_are_those_built_in_memory(
    engine: str, parts: list[list[Any]], compressed: set[str], store: bool, share: int
) -> None:
    weights, frames, first = {"title": 2.5, "body": 1.0}, [], 0
    for rows in parts:
        texts = {
            name: [None if row[place] is None else " ".join(row[place]) for row in rows]
            for place, name in enumerate(weights)
        }
        frame = pl.DataFrame(texts, dict.fromkeys(weights, pl.String)).with_row_index("number", first)
        frames.append(frame.tadoc.compress(sorted(compressed)) if compressed else frame)
        first += len(rows)
    options: dict[str, Any] = {"id": "number", "metadata": ["number"], "store": store, "engine": engine}
    built = pl.concat(frames).tadoc.build_index(weights, **options)
    with tempfile.TemporaryDirectory() as folder, patch.object(windows, "TEXT_SHARE", share):
        plan = pl.concat([frame.lazy() for frame in frames])
        plan.tadoc.sink_index(Path(folder) / "sunk", weights, **options)
        sunk = tadoc.load_index(Path(folder) / "sunk")
        built.save(Path(folder) / "built")
        headers = [json.loads((Path(folder) / name / HEADER).read_text()) for name in ("sunk", "built")]
        assert headers[0]["fields"] == headers[1]["fields"]
        assert headers[0]["documents"] == headers[1]["documents"]
        assert (sunk.terms, sunk.postings) == (built.terms, built.postings)
        for query in QUERIES:
            if store or '"' not in query:
                wanted = built.search(query, 20, engine=engine)
                assert sunk.search(query, 20, engine=engine).equals(wanted)
                if store:
                    assert sunk.snippets(wanted, query).equals(built.snippets(wanted, query))
        assert sunk.search("a b", sort="number").equals(built.search("a b", sort="number"))


def test_wrong_fields_of_a_plan(tmp_path: Path) -> None:
    lf, weights = DF.lazy(), {"title": 2, "body": 1}
    for wrong, options, error, message in [
        ({"titel": 1.0}, {}, ColumnMissingError, 'titel.*did you mean "title"'),
        ({"year": 1.0}, {}, TypeError, "year"),
        ({}, {}, ValueError, "there are 0 fields"),
        (weights, {"metadata": ["title"]}, ValueError, 'sink_index: "title" is a field and a column of the metadata'),
        (weights, {"checkpoint": tmp_path / "parts"}, ValueError, "checkpoint= is for an index of one column"),
    ]:
        with pytest.raises(error, match=message):
            lf.tadoc.sink_index(tmp_path / "unwritten", wrong, **options)
    mixed = pl.concat([DF.tadoc.compress("title", tokenizer=own).lazy() for own in ("words", "whitespace")])
    with pytest.raises((ValueError, TypeError), match=r"sink_index: .*tokenizer"):
        mixed.tadoc.sink_index(tmp_path / "unwritten", weights)
    assert not (tmp_path / "unwritten").exists()
