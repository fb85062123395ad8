"""Pages, totals, orders, groups and facets, against all results in plain Python."""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.errors import ColumnMissingError

ROWS = st.lists(
    st.tuples(
        st.lists(st.sampled_from("abcd"), max_size=5).map(" ".join),
        st.sampled_from([1, 2, None]),
        st.sampled_from("xyz"),
    ),
    min_size=1,
    max_size=12,
)
QUERIES = ["a b", "", "c", '"a b" OR d', "+a -b", "-a", "zz", None]


def ordered(rows: list[tuple[int, float]], keys: list[Any], is_descending: bool) -> list[int]:
    """Documents by a key, nulls last, then by descending score, then by number."""
    present = sorted({keys[document] for document, _ in rows if keys[document] is not None}, reverse=is_descending)
    rank = {key: place for place, key in enumerate(present)} | {None: len(present)}
    return [document for document, _ in sorted(rows, key=lambda row: (rank[keys[row[0]]], -row[1], row[0]))]


@given(data=st.data(), rows=ROWS, mode=st.sampled_from(["or", "and"]))
def test_any_page(engine: str, data: Any, rows: list[Any], mode: str) -> None:
    texts, years, kinds = (list(own) for own in zip(*rows, strict=True))
    df = pl.DataFrame(
        {"text": texts, "year": years, "kind": kinds}, {"text": pl.String, "year": pl.Int64, "kind": pl.String}
    )
    cut, gone = data.draw(st.integers(0, len(rows))), data.draw(st.sets(st.integers(0, len(rows) - 1)))
    index = df[:cut].tadoc.build_index("text", metadata=["year", "kind"])
    if cut < len(rows):  # one segment answers by one kernel
        index = df[cut:].tadoc.append_to(index, "text")
    index = index.delete(sorted(gone))
    keep = pl.col("kind") != "z" if data.draw(st.booleans()) else None
    given = {"mode": mode, "filter": keep, "engine": engine}
    everything = index.search(QUERIES, len(rows), **given)
    k, offset = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 4))
    sort, descending = data.draw(st.sampled_from([None, "year"])), data.draw(st.booleans())
    group = data.draw(st.sampled_from([None, "kind", "year"]))
    ways = {"sort": sort, "descending": descending and sort is not None, "group_by": group}
    found, facets = index.search(QUERIES, k, offset=offset, total=True, facets=["kind", "year"], **ways, **given)
    without = index.search(QUERIES, k, offset=offset, **ways, **given)
    assert found.drop("total").equals(without)
    for number, query in enumerate(QUERIES):
        hits = everything.filter(pl.col("query") == number).select("id", "score").rows()
        scores, order = dict(hits), [document for document, _ in hits]
        if query is not None:
            assert len(hits) == index.count(query, mode=mode, filter=keep)
        if sort:
            order = ordered(hits, years, descending)
        groups = {"kind": kinds, "year": years}.get(group or "")
        sizes = Counter(groups[document] for document in order) if groups else Counter()
        if groups:
            order = [d for place, d in enumerate(order) if groups[d] not in {groups[other] for other in order[:place]}]
        own = found.filter(pl.col("query") == number)
        wanted = order[offset : offset + k]
        assert own["id"].to_list() == wanted
        assert own["rank"].to_list() == list(range(offset + 1, offset + 1 + len(wanted)))
        assert own["score"].to_list() == [scores[document] for document in wanted]
        assert own["total"].to_list() == [len(hits)] * len(wanted)
        if groups:
            assert own.select("group", "hits").rows() == [(groups[d], sizes[groups[d]]) for d in wanted]
        for name, values in (("kind", kinds), ("year", years)):
            counts = Counter(values[document] for document in scores)
            rows_of = facets[name].filter(pl.col("query") == number).select("value", "count").rows()
            assert dict(rows_of) == counts
            assert rows_of == sorted(rows_of, key=lambda row: (-row[1], row[0] is None, row[0] or ""))


INDEX = pl.DataFrame({"text": ["a b", "a", "b"], "year": [1, 2, 2], "kind": ["x", "y", None]}).tadoc.build_index(
    "text", id="year", metadata=["year", "kind"]
)


def test_several_columns_and_types() -> None:
    found = INDEX.search("a b", sort=["year", "kind"], descending=[True, False])
    assert found.schema == {"query": pl.UInt32, "rank": pl.UInt32, "id": pl.Int64, "score": pl.Float32}
    assert found["id"].to_list() == [2, 2, 1]
    found, facets = INDEX.search("a b", 0, total=True, facets="kind", group_by="year")
    assert found.schema["group"] == pl.Int64
    assert found.schema["hits"] == found.schema["total"] == pl.UInt32
    assert facets["kind"].schema == {"query": pl.UInt32, "value": pl.String, "count": pl.UInt32}
    assert facets["kind"].rows() == [(0, "x", 1), (0, "y", 1), (0, None, 1)]
    assert INDEX.search("a", facets=[])[1] == {}


def test_wrong_arguments() -> None:
    for call in ("sort", "group_by", "facets"):
        with pytest.raises(ColumnMissingError, match=f'search: {call}.*"yaer".*year'):
            INDEX.search("a", **{call: "yaer"})
        with pytest.raises(ValueError, match=f"search: {call}=.*but the index has none"):
            tadoc.build_index(pl.Series(["a"])).search("a", **{call: "year"})
        with pytest.raises(ValueError, match="count all hits of mode"):
            INDEX.search("a", mode="and_or", **{call: "year"})
        with pytest.raises(TypeError, match=f"search: {call}|search: group_by is"):
            INDEX.search("a", **{call: 3})
    with pytest.raises(ValueError, match="descending= has 1 values for 2"):
        INDEX.search("a", sort=["year", "kind"], descending=[True])
    with pytest.raises(ValueError, match="offset"):
        INDEX.search("a", offset=-1)
    with pytest.raises(TypeError, match="total"):
        INDEX.search("a", total=1)
    assert INDEX.search("a b", 1, offset=1, mode="and_or").equals(INDEX.search("a b", 2, mode="and_or")[1:])
    df = pl.DataFrame({"text": ["a"], "kind": ["x"]}).with_columns(kind=tadoc.compress(pl.Series(["x"])))
    with pytest.raises(TypeError, match='search: facets: column "kind" is compressed text'):
        df.tadoc.build_index("text", metadata=["kind"]).search("a", facets="kind")
