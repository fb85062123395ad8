"""Indices with documents appended, deleted and compacted give what fresh ones give."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.errors import ColumnMissingError, InvalidIndexError, NotCompressedError
from tests.index.store.test_index_files import VALUES

CODECS = ["pfordelta", "rice"]
QUERIES = ["a", "b c", "a a b e", "zz", "", "c zz", "d e f", None]
SCORINGS = ["robertson", "lucene", "atire", "bm25+", "bm25l", "wakatsuki"]


def compressed(texts: list[str | None], tokenizer: Any = "words") -> pl.Series:
    return pl.Series("text", texts, pl.String).tadoc.compress(tokenizer=tokenizer)


def index_of(ids: list[int], texts: list[str | None], codec: str = "pfordelta", **how: Any) -> tadoc.Index:
    metadata = pl.DataFrame({"odd": pl.Series([id % 2 == 1 for id in ids], dtype=pl.Boolean)})
    return tadoc.build_index(
        compressed(texts), id=pl.Series(ids, dtype=pl.Int64), metadata=metadata, codec=codec, lowercase=True, **how
    )


def assert_same_arrays(one: tadoc.Index, other: tadoc.Index) -> None:
    assert len(one.segments) == len(other.segments) == 1
    a, b = one.segments[0], other.segments[0]
    assert a.terms.strings.equals(b.terms.strings)
    assert_equal(a.postings, b.postings)
    assert_equal(a.lengths, b.lengths)
    assert a.deleted is b.deleted is None
    assert one.stored.ids.equals(other.stored.ids)


def assert_equal(a: Any, b: Any) -> None:
    if isinstance(a, tuple):
        assert type(a) is type(b)
        for one, other in zip(a, b, strict=True):
            assert_equal(one, other)
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    else:
        assert a == b


def assert_finds_the_same(
    one: tadoc.Index, other: tadoc.Index, engine: str, scoring: str = "lucene", delta: float = 0.5
) -> None:
    for mode in ("or", "and", "and_or"):
        for k in (3, 1000):
            found, expected = (
                index.search(QUERIES, k, mode=mode, scoring=scoring, delta=delta, engine=engine)
                for index in (one, other)
            )
            assert found.equals(expected), (mode, k, found, expected)  # scores to the last bit
    chosen = {"k": 1000, "filter": pl.col("odd"), "engine": engine}
    assert one.search(QUERIES, **chosen).equals(other.search(QUERIES, **chosen))


@dataclass
class Model:
    """The documents that are there, and an index that came to hold them."""

    documents: dict[int, str]
    index: tadoc.Index
    next: int = 0

    def numbered(self, texts: list[str | None]) -> list[int]:
        ids = list(range(self.next, self.next + len(texts)))
        self.next += len(texts)
        self.documents.update({id: text for id, text in zip(ids, texts, strict=True) if text is not None})
        return ids

    def append(self, texts: list[str | None]) -> None:
        ids = self.numbered(texts)
        self.index = self.index.append(
            compressed(texts),
            id=pl.Series(ids, dtype=pl.Int64),
            metadata=pl.DataFrame({"odd": pl.Series([id % 2 == 1 for id in ids], dtype=pl.Boolean)}),
        )

    def delete(self, share: float) -> None:
        kept = int(share * len(self.documents))
        gone = list(self.documents)[kept::2]
        self.index = self.index.delete(gone)
        for id in gone:
            del self.documents[id]

    def delete_odd(self) -> None:
        self.index = self.index.delete(pl.col("odd"))
        self.documents = {id: text for id, text in self.documents.items() if id % 2 == 0}

    def compact(self) -> None:
        self.index = self.index.compact()

    def fresh(self, codec: str) -> tadoc.Index:
        return index_of(list(self.documents), list(self.documents.values()), codec)


TEXTS = st.one_of(st.none(), st.text("abcdefA ", max_size=12).map(lambda letters: " ".join(letters)))


@st.composite
def batches(draw: st.DrawFn) -> list[str | None]:
    texts = draw(st.lists(TEXTS, max_size=6))
    return texts * draw(st.sampled_from([1, 1, 2, 43]))  # 43: lists of several blocks


CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("append"), batches()),
        st.tuples(st.just("append"), batches()),
        st.tuples(st.just("delete"), st.sampled_from([0.0, 0.5, 0.9])),
        st.tuples(st.just("delete_odd")),
        st.tuples(st.just("compact")),
    ),
    max_size=8,
)


@pytest.mark.parametrize("codec", CODECS)
@given(first=batches(), changes=CHANGES, scoring=st.sampled_from(SCORINGS), delta=st.sampled_from([0.5, 1e5]))
def test_any_chain_of_changes(
    engine: str, codec: str, first: list[str | None], changes: list[tuple[Any, ...]], scoring: str, delta: float
) -> None:
    model = Model({}, index_of([], []))
    model.index = index_of(model.numbered(first), first, codec)
    for name, *arguments in changes:
        getattr(model, name)(*arguments)
    fresh = model.fresh(codec)
    assert model.index.ids.to_list() == list(model.documents)
    assert (model.index.documents, model.index.terms, model.index.postings) == (
        fresh.documents,
        fresh.terms,
        fresh.postings,
    )
    assert_finds_the_same(model.index, fresh, engine, scoring, delta)
    assert_same_arrays(model.index.compact(), fresh)


def test_the_old_index_stays(engine: str) -> None:
    index = index_of([1, 2, 3], ["a b", "b", "b c"])
    before = index.search(QUERIES, engine=engine)
    less = index.delete([1, 3])
    more = less.append(compressed(["a"]), id=pl.Series([4]), metadata=pl.DataFrame({"odd": [False]}))
    assert less.search("b", engine=engine)["id"].to_list() == [2]
    assert more.search("a", engine=engine)["id"].to_list() == [4]
    assert index.search(QUERIES, engine=engine).equals(before)
    assert index.segments[0].deleted is None


def test_segments_are_shared() -> None:
    index = index_of(list(range(10)), ["a b"] * 10)
    more = index.append(compressed(["b"]), id=pl.Series([10]), metadata=pl.DataFrame({"odd": [False]}))
    assert more.segments[0] is index.segments[0]
    less = more.delete(3)
    assert less.segments[0].postings.gaps.low.base is index.segments[0].postings.gaps.low.base
    assert less.segments[0].key == index.segments[0].key
    assert less.segments[1] is more.segments[1]


def test_small_segments_are_merged() -> None:
    index = tadoc.build_index(compressed(["a b"]))
    for number in range(1, 300):
        index = index.append(compressed([f"a w{number}"]))
        sizes = [segment.size for segment in index.segments]
        assert sizes == sorted(set(sizes), reverse=True)
    assert len(index.segments) <= 9
    assert index.search("w250")["id"].to_list() == [250]
    assert index.stored.ids.n_chunks() <= 33


def test_merging_forgets_deleted_documents() -> None:
    index = tadoc.build_index(compressed(["a", "b", "c", "d"])).append(compressed(["e", "f"]))
    index = index.delete([0, 4])
    index = index.append(compressed(["g"]))
    assert [segment.size for segment in index.segments] == [4, 2]
    assert index.stored.ids.to_list() == [0, 1, 2, 3, 5, 6]
    assert index.ids.to_list() == [1, 2, 3, 5, 6]
    assert index.search("f g a")["id"].to_list() == [5, 6]


def test_numbers_of_rows_go_on_behind_null_rows() -> None:
    index = tadoc.build_index(compressed(["a", None, "b", None])).append(compressed([None, "c", None]))
    assert index.ids.to_list() == [0, 2, 5]
    assert index.append(compressed(["d"])).compact().ids.to_list() == [0, 2, 5, 7]
    assert index.compact().append(compressed(["d"])).ids.to_list() == [0, 2, 5, 7]


def test_nothing_is_appended() -> None:
    index = tadoc.build_index(compressed([]))
    assert index.append(compressed([])).documents == 0
    assert index.append(compressed([None])).append(compressed(["a"])).ids.to_list() == [1]


def test_all_is_deleted(engine: str) -> None:
    index = index_of([1, 2], ["a b", "b"])
    gone = index.delete([1, 2])
    assert (gone.documents, gone.terms, gone.postings, gone.average_length) == (0, 0, 0, 0.0)
    assert gone.search(QUERIES, engine=engine).is_empty()
    assert_same_arrays(gone.compact(), index_of([], []))
    assert gone.delete([]).documents == 0


def test_documents_are_replaced(engine: str) -> None:
    index = index_of([1, 2], ["a b", "b"])
    new = index.delete(2).append(compressed(["c"]), id=pl.Series([2]), metadata=pl.DataFrame({"odd": [False]}))
    assert new.search("c", engine=engine)["id"].to_list() == [2]
    assert new.search("b", engine=engine)["id"].to_list() == [1]
    assert new.delete(2).ids.to_list() == [1]


LABELS: dict[str, pl.Series] = {
    **{name: values.filter(values.is_not_null()) for name, values in VALUES.items() if values.dtype != pl.Null},
    "Float64": pl.Series([0.0, float("nan"), float("-inf")]),
}


@pytest.mark.parametrize("is_loaded", [False, True])
@pytest.mark.parametrize("name", LABELS)
def test_an_id_that_exists_is_refused_or_replaced(name: str, is_loaded: bool, tmp_path: Path) -> None:
    values = LABELS[name].unique(maintain_order=True) if name == "Enum" else LABELS[name]
    first, last = values[:1], values[1:]
    index = tadoc.build_index(compressed(["old"] + ["a"] * len(last)), id=values)
    if is_loaded:
        index.save(tmp_path / "index")
        index = tadoc.load_index(tmp_path / "index")
    with pytest.raises(ValueError, match=r"^append: the index already has documents with id .*; pass upsert=True"):
        index.append(compressed(["new"]), id=first)
    changed = index.append(compressed(["new"]), id=first, upsert=True)
    assert changed.documents == index.documents == len(values)
    assert changed.search("new").height == 1
    assert changed.search("old").is_empty()
    assert index.search("old").height == 1  # it never changes
    less = changed.compact()
    again = less.append(compressed(["newer"]), id=first, upsert=True)
    assert (again.documents, again.search("new").height, again.search("newer").height) == (len(values), 0, 1)
    if len(last):
        assert index.delete(values).append(compressed(["b"] * len(last)), id=last).documents == len(last)


def test_replaced_is_what_a_fresh_index_has(engine: str) -> None:
    """Several rows of one id, on both sides; rows without a text; ids that are new."""
    texts = ["a b", "b", "c d", None, "d e", "a"]
    index = index_of([1, 2, 2, 3, 4, 5], texts)
    more = compressed(["z a", None, "b z", "q"])
    ids, odd = pl.Series([2, 4, 2, 9]), pl.DataFrame({"odd": [False, False, False, True]})
    changed = index.append(more, id=ids, metadata=odd, upsert=True)
    fresh = index_of([1, 5, 2, 2, 9], ["a b", "a", "z a", "b z", "q"])
    assert changed.ids.to_list() == [1, 5, 2, 2, 9]
    assert_finds_the_same(changed, fresh, engine)
    assert_finds_the_same(changed.compact(), fresh, engine)
    assert changed.delete(2).ids.to_list() == [1, 5, 9]


def test_which_ids_are_refused() -> None:
    index = tadoc.build_index(compressed(["a", "b", "c", "d", "e", None]), id=pl.Series(list("ppqrst")))
    said = "^append: the index already has documents with id 'p', 'q', 'r' and 1 more; pass upsert=True"
    with pytest.raises(ValueError, match=said):
        index.append(compressed(["x"] * 6), id=pl.Series(list("srqpxy")))
    assert index.append(compressed(["x", None]), id=pl.Series(["new", "p"])).documents == 6  # no document is called p
    assert index.append(compressed(["x"]), id=pl.Series(["t"])).documents == 6  # nor was one called t
    assert index.delete("q").append(compressed(["x"]), id=pl.Series(["q"])).documents == 5
    assert index.append(compressed(["x", "y"]), id=pl.Series(["new", "new"])).documents == 7


def test_null_is_no_name() -> None:
    index = tadoc.build_index(compressed(["a", "b"]), id=pl.Series(["x", None]))
    for upsert in (False, True):
        assert index.append(compressed(["c"]), id=pl.Series([None], dtype=pl.String), upsert=upsert).documents == 3


def test_upsert_needs_ids() -> None:
    index = tadoc.build_index(compressed(["a"]))
    with pytest.raises(ValueError, match=r"append: upsert=True replaces documents by id, but .* build it with id="):
        index.append(compressed(["b"]), upsert=True)
    with pytest.raises(TypeError, match="append: upsert=1 must be True or False"):
        index.append(compressed(["b"]), upsert=1)  # type: ignore[arg-type]
    assert index.append(compressed(["a"])).ids.to_list() == [0, 1]


def test_frames_replace() -> None:
    df = pl.DataFrame({"name": ["x", "y"], "n": [1, 2], "text": ["a", "b"]}).tadoc.compress("text")
    index = df.tadoc.build_index("text", id="name", metadata=["n"])
    new = pl.DataFrame({"name": ["y", "z"], "n": [5, 6], "text": ["c", "d"]}).tadoc.compress("text")
    with pytest.raises(ValueError, match="append: the index already has documents with id 'y'; pass upsert=True"):
        new.tadoc.append_to(index, id="name")
    changed = new.tadoc.append_to(index, id="name", upsert=True)
    assert changed.ids.to_list() == ["x", "y", "z"]
    assert changed.metadata is not None
    assert changed.metadata["n"].to_list() == [1, 5, 6]
    assert changed.search("c", filter=pl.col("n") == 5)["id"].to_list() == ["y"]


def test_ids_are_looked_up_quickly() -> None:
    """100,000 documents: no comparison of all with all."""
    ids = pl.int_range(100_000, eager=True).cast(pl.String)
    index = tadoc.build_index(compressed(["a", "b"] * 50_000), id=ids)
    more = compressed(["c"] * 50_000)
    with pytest.raises(ValueError, match="and 49,997 more"):
        index.append(more, id=ids.slice(25_000, 50_000))
    changed = index.append(more, id=ids.slice(75_000, 50_000).extend(ids.head(25_000) + "x"), upsert=True)
    assert changed.documents == 125_000
    assert changed.search("c", k=100_000).height == 50_000


def test_all_documents_of_an_id_go() -> None:
    index = tadoc.build_index(compressed(["a", "b", "c"]), id=pl.Series(["x", "y", "x"]))
    assert index.delete("x").ids.to_list() == ["y"]


IDS: dict[str, pl.Series] = {
    "int64": pl.Series([5, -7, 9]),
    "uint8": pl.Series([5, 7, 9], dtype=pl.UInt8),
    "float": pl.Series([0.5, float("inf"), -0.0]),
    "string": pl.Series(["x", "", "日本"]),
    "binary": pl.Series([b"x", b"", b"\xff"]),
    "date": pl.Series([datetime.date(2020, 1, day) for day in (1, 2, 3)]),
    "datetime": pl.Series([datetime.datetime(2020, 1, day) for day in (1, 2, 3)]).dt.replace_time_zone("UTC"),
    "enum": pl.Series(["x", "y", "z"], dtype=pl.Enum(["x", "y", "z"])),
    "categorical": pl.Series(["x", "y", "z"], dtype=pl.Categorical),
    "decimal": pl.Series(["1.5", "2.5", "3.5"]).cast(pl.Decimal(10, 2)),
    "struct": pl.Series([{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 2, "b": "x"}]),
    "with null": pl.Series(["x", None, "z"]),
}


@pytest.mark.parametrize("name", IDS)
def test_ids_of_many_types_are_deleted(name: str) -> None:
    ids = IDS[name]
    index = tadoc.build_index(compressed(["a", "b", "c"]), id=ids)
    assert index.delete(ids[1:]).ids.equals(ids[:1].alias("id"))
    assert index.delete(ids[1:2].to_list()).ids.equals(ids[[0, 2]].alias("id"))
    assert index.delete(ids[1]).compact().ids.equals(ids[[0, 2]].alias("id"))
    with pytest.raises(ValueError, match="append: the index already has documents with id "):
        index.append(compressed(["d"]), id=ids[:1])
    assert index.append(compressed(["d"]), id=ids[:1], upsert=True).ids.equals(ids[[1, 2, 0]].alias("id"))


@pytest.mark.parametrize(
    "ids", [[1, 2], (1, 2), {1, 2}, range(1, 3), np.array([1, 2]), pa.array([1, 2]), pl.Series([1, 2], dtype=pl.Int8)]
)
def test_ids_come_in_many_forms(ids: Any) -> None:
    assert index_of([0, 1, 2], ["a", "b", "c"]).delete(ids).ids.to_list() == [0]


def test_null_and_numbers_out_of_range_are_told_apart() -> None:
    index = tadoc.build_index(compressed(["a", "b"]), id=pl.Series([1, None], dtype=pl.UInt8))
    assert index.delete(pl.Series([None, 1])).documents == 0
    for wrong in (300, -1, 2**70):
        with pytest.raises(ValueError, match=f"no document with id {wrong}; did you mean 1"):
            index.delete([wrong])


def test_a_frame_is_appended(engine: str) -> None:
    frame = pl.DataFrame({"name": ["x", "y", "z"], "year": [1, 2, 3], "more": [0, 0, 0], "text": ["a", "a b", None]})
    frame = frame.tadoc.compress("text")
    index = frame.head(1).tadoc.build_index("text", id="name", metadata=["year"])
    more = frame.tail(2).tadoc.append_to(index, id="name", engine=engine)
    assert_same_arrays(more.compact(), frame.tadoc.build_index("text", id="name", metadata=["year"]))
    assert more.metadata is not None
    assert more.metadata.rows() == [(1,), (2,)]
    numbered = frame.head(1).tadoc.build_index("text", metadata=[])
    assert numbered.metadata is None
    assert frame.tail(2).tadoc.append_to(numbered).ids.to_list() == [0, 1]


def test_null_is_not_true() -> None:
    metadata = pl.DataFrame({"year": [1990, None, 2010]})
    index = tadoc.build_index(compressed(["a", "b", "c"]), metadata=metadata)
    assert index.delete(pl.col("year") < 2000).ids.to_list() == [1, 2]
    less = index.delete(0)
    assert less.delete(pl.col("year") == pl.col("year").min()).ids.to_list() == [1]  # of those that are there


def change(call: Callable[[tadoc.Index], object]) -> Callable[[], object]:
    return lambda: call(index_of([1, 2], ["a", "b"]))


ODD = pl.DataFrame({"odd": [True]})
WRONG: dict[str, tuple[type[Exception], str, Callable[[], object]]] = {
    "unknown id": (ValueError, "no document with id 7;", change(lambda index: index.delete([1, 7]))),
    "many unknown ids": (ValueError, " and 2 more;", change(lambda index: index.delete([3, 4, 5, 6, 7]))),
    "deleted id": (ValueError, "no document with id 1;", change(lambda index: index.delete(1).delete(1))),
    "ids of another type": (TypeError, "ids are Int64; 'x' is not one", change(lambda index: index.delete("x"))),
    "some ids of another type": (
        TypeError,
        "ids are Int64; not all of [1, 'x'] are",
        change(lambda index: index.delete([1, "x"])),
    ),
    "truth for an integer": (TypeError, "ids are Int64; True is not one", change(lambda index: index.delete([True]))),
    "a frame for ids": (TypeError, 'pass df["id"]', change(lambda index: index.delete(ODD))),
    "near id": (ValueError, "no document with id 7; did you mean 2?", change(lambda index: index.delete([7]))),
    "a frame for a column": (
        TypeError,
        'df.tadoc.append_to(index, "text", id="name")',
        change(lambda index: index.append(ODD)),  # type: ignore[arg-type]
    ),
    "series of another type": (TypeError, "these are Float64", change(lambda index: index.delete(pl.Series([1.5])))),
    "id out of range": (
        ValueError,
        "no document",
        change(lambda index: index.delete(pl.Series([2**63], dtype=pl.UInt64))),
    ),
    "no such metadata": (ColumnMissingError, "did you mean", change(lambda index: index.delete(pl.col("od")))),
    "no metadata": (
        ValueError,
        "delete: filter is an expression",
        lambda: tadoc.build_index(compressed(["a"])).delete(pl.col("odd")),
    ),
    "no ids": (
        TypeError,
        "pass the ids of the new",
        change(lambda index: index.append(compressed(["c"]), metadata=ODD)),
    ),
    "ids of another type appended": (
        TypeError,
        "id is String",
        change(lambda index: index.append(compressed(["c"]), id=pl.Series(["x"]), metadata=ODD)),
    ),
    "too few ids": (
        ValueError,
        "append: id has 2 rows, the column 1",
        change(lambda index: index.append(compressed(["c"]), id=pl.Series([1, 2]), metadata=ODD)),
    ),
    "ids where rows are numbered": (
        TypeError,
        "omit id",
        lambda: tadoc.build_index(compressed(["a"])).append(compressed(["b"]), id=pl.Series([1])),
    ),
    "no new metadata": (
        ValueError,
        'has metadata ("odd")',
        change(lambda index: index.append(compressed(["c"]), id=pl.Series([3]))),
    ),
    "other metadata": (
        ColumnMissingError,
        '"odd"',
        change(
            lambda index: index.append(compressed(["c"]), id=pl.Series([3]), metadata=pl.DataFrame({"even": [True]}))
        ),
    ),
    "more metadata": (
        ValueError,
        '"more"',
        change(
            lambda index: index.append(compressed(["c"]), id=pl.Series([3]), metadata=ODD.with_columns(more=pl.lit(1)))
        ),
    ),
    "metadata of another type": (
        TypeError,
        "Int64",
        change(lambda index: index.append(compressed(["c"]), id=pl.Series([3]), metadata=pl.DataFrame({"odd": [1]}))),
    ),
    "metadata where there is none": (
        ValueError,
        "has no metadata",
        lambda: tadoc.build_index(compressed(["a"])).append(compressed(["b"]), metadata=ODD),
    ),
    "no frame of the index's metadata": (
        ColumnMissingError,
        "append_to: the index's metadata",
        change(lambda index: compressed(["c"]).to_frame().with_columns(name=3).tadoc.append_to(index, id="name")),
    ),
    "no index": (
        TypeError,
        "append_to: index is str",
        lambda: compressed(["c"]).to_frame().tadoc.append_to("text", "id"),  # type: ignore[arg-type]
    ),
    "numbers": (NotCompressedError, "append", lambda: tadoc.build_index(compressed(["a"])).append(pl.Series([1]))),
    "another tokenizer": (
        ValueError,
        '"whitespace"',
        lambda: tadoc.build_index(compressed(["a"])).append(compressed(["b"], "whitespace")),
    ),
    "another regex": (
        ValueError,
        '"regex:',
        lambda: tadoc.build_index(compressed(["a"])).append(compressed(["b"], re.compile("b"))),
    ),
    "strategy": (
        ValueError,
        "strategy='x'",
        lambda: tadoc.build_index(compressed(["a"])).append(compressed(["b"]), strategy="x"),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments(name: str) -> None:
    error, message, call = WRONG[name]
    with pytest.raises(error, match=re.escape(message)):
        call()


@pytest.mark.parametrize("saved", [False, True])
def test_an_index_of_nulls_takes_the_tokenizer_of_the_first_documents(saved: bool, tmp_path: Path) -> None:
    xml = ["<a>b c</a>", "<a>b</a>"]

    def kept(index: tadoc.Index) -> tadoc.Index:
        if not saved:
            return index
        index.save(tmp_path / "index", overwrite=True)
        return tadoc.load_index(tmp_path / "index")

    whole = tadoc.build_index(compressed([None, None, *xml], "xml"), lowercase=True)
    for start in ([None, None], []):
        index = kept(tadoc.build_index(compressed(start, "xml"), lowercase=True))
        assert index.search("b").height == 0
        index = kept(index.append(compressed([None] * (2 - len(start)), "xml")))
        index = kept(index.append(compressed(xml, "xml"))).append(compressed([None], "xml"))
        for query in ("b", "<a>", "C </a>"):
            assert index.search(query).equals(whole.search(query))
            assert index.search(query).height > 0
        with pytest.raises(ValueError, match='cut by tokenizer "words", the index\'s texts by "xml"'):
            index.append(compressed(["b"]))
        with pytest.raises(ValueError, match='cut by tokenizer "words"'):
            index.delete([2, 3]).append(compressed(["b"]))


def test_normalize_is_applied_to_appended_documents(engine: str) -> None:
    how = {"normalize": pl.element().str.strip_suffix("s"), "stopwords": ["the"], "lowercase": True}
    texts = ["The cats", "cat sees", "THE the"]
    index = tadoc.build_index(compressed(texts[:1]), **how).append(compressed(texts[1:]))
    whole = tadoc.build_index(compressed(texts), **how)
    assert_same_arrays(index.compact(), whole)
    assert index.search(["cat", "the sees"], engine=engine).equals(whole.search(["cat", "the sees"], engine=engine))


def test_text_is_kept_with_appended_documents() -> None:
    index = tadoc.build_index(compressed(["a b", None, "c"])).append(compressed(["d", None])).delete(2).compact()
    assert index.stored.text is not None
    assert index.stored.text.tadoc.decompress().to_list() == ["a b", "d"]
    without = tadoc.build_index(compressed(["a"]), store=False).append(compressed(["b"]))
    assert without.stored.text is None


def test_damaged_postings_are_not_compacted() -> None:
    index = tadoc.build_index(compressed(["a b", "a", "b a", "b", "a"] * 60)).delete(0)
    segment = index.segments[0]
    low = segment.postings.gaps.low.copy()
    heads = segment.postings.heads.copy()
    heads[1] = heads[0]
    postings = segment.postings._replace(heads=heads, gaps=segment.postings.gaps._replace(low=low))
    damaged = tadoc.Index(
        (type(segment)(segment.terms, postings, segment.lengths, segment.deleted),),
        index.analyzer,
        index.stored,
        index.codec,
    )
    with pytest.raises(InvalidIndexError, match="compact: the postings are damaged"):
        damaged.compact()


@pytest.mark.parametrize("codec", CODECS)
def test_changes_of_a_real_collection(corpus: Callable[[str], pl.DataFrame], codec: str) -> None:
    texts = corpus("ir_cranfield_docs")["text"].tadoc.compress()
    queries = corpus("ir_cranfield_queries")["text"]
    index = tadoc.build_index(texts[:700], codec=codec)
    for start in range(700, 1400, 100):
        index = index.append(texts[start : start + 100])
    index = index.delete(range(0, 1400, 3))
    kept = [row for row in range(1400) if row % 3]
    fresh = tadoc.build_index(texts[kept], id=pl.Series(kept, dtype=pl.UInt32), codec=codec)
    assert index.search(queries, 20).equals(fresh.search(queries, 20))
    assert_same_arrays(index.compact(), fresh)
