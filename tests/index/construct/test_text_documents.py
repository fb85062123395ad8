"""Indexes of plain text written to disk, and plain text added to an index: those of the compressed column."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

import polars_tadoc as tadoc
from polars_tadoc.engine.choose import CPU
from polars_tadoc.execute import windows

ROWS = [
    "to be, or not to be",
    None,
    "To do is to be",
    "",
    "Do be do be do",
    None,
    "be quick; be right",
    "to be, or not",
]
FORMS = (pl.String(), pl.Categorical(), pl.Enum(list(dict.fromkeys(row for row in ROWS if row is not None))))
QUERIES = ("do be", "to", "none", "Quick", "be,")


def frame(form: pl.DataType) -> pl.DataFrame:
    return pl.DataFrame({"name": list("stuvwxyz"), "text": pl.Series(ROWS).cast(form)})


def packed(cut: Any = "words") -> pl.DataFrame:
    return frame(pl.String()).tadoc.compress("text", tokenizer=cut)


def assert_same(found: tadoc.Index, expected: tadoc.Index, *, store: bool) -> None:
    assert found.documents == expected.documents
    for query in QUERIES:
        assert_frame_equal(found.search(query, k=9), expected.search(query, k=9))
    assert (found.stored.stored_text is not None) == store
    if store:
        for query in ('"to be"', '"not"'):
            assert_frame_equal(found.search(query), expected.search(query))
        hits = expected.search("be", k=9)
        assert_frame_equal(found.snippets(hits, "be"), expected.snippets(hits, "be"))


@pytest.mark.parametrize("size", [1, 1 << 30])
@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize("form", FORMS, ids=["String", "Categorical", "Enum"])
def test_an_index_of_text_is_written(form: pl.DataType, store: bool, size: int, tmp_path: Path) -> None:
    for number, cut in enumerate(("words", "whitespace", re.compile("[a-z]+"))):
        options: dict[str, Any] = {"id": "name", "metadata": ["name", "text"], "store": store, "lowercase": True}
        plan = frame(form).lazy()
        with patch.object(windows, "TEXT_SHARE", (1 << 30) // size):  # a window of each batch, or one of all
            plan.tadoc.sink_index(  # type: ignore[attr-defined]
                tmp_path / str(number), "text", tokenizer=cut, memory_limit="1GiB", **options
            )
        expected = packed(cut).with_columns(pl.col("text").tadoc.decompress().cast(form).alias("own"))  # type: ignore[attr-defined]
        own = expected.tadoc.build_index("text", id="name", store=store, lowercase=True)
        assert_same(tadoc.load_index(tmp_path / str(number)), own, store=store)
        assert tadoc.load_index(tmp_path / str(number)).metadata["text"].cast(pl.String).to_list() == [
            row for row in ROWS if row is not None
        ]


def test_files_of_text_are_indexed_window_by_window(tmp_path: Path) -> None:
    rows = [f"a w{k % 7} w{k % 11}" if k % 5 else None for k in range(5000)]
    df = pl.DataFrame({"n": range(5000), "text": rows})
    df.write_csv(tmp_path / "text.csv")
    df.write_ndjson(tmp_path / "text.ndjson")
    df.write_parquet(tmp_path / "text.parquet", row_group_size=100)
    expected = df.tadoc.build_index("text")
    for kind in ("csv", "ndjson", "parquet"):
        plan = getattr(pl, f"scan_{kind}")(tmp_path / f"text.{kind}").filter(pl.col("n") >= 0)
        with patch.object(windows, "TEXT_SHARE", 1 << 16):
            plan.tadoc.sink_index(tmp_path / kind, "text", memory_limit="1GB")
        own = tadoc.load_index(tmp_path / kind)
        for query in ("w3", "w6 w10", '"w1 w2"'):
            assert_frame_equal(own.search(query, k=50), expected.search(query, k=50))


@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize("form", FORMS, ids=["String", "Categorical", "Enum"])
@pytest.mark.parametrize("cut", ["words", "whitespace", re.compile("[a-z]+")])
def test_text_is_added_to_an_index(form: pl.DataType, store: bool, cut: Any) -> None:
    first, more = packed(cut)[:3], frame(form)[3:]
    expected = packed(cut).tadoc.build_index("text", id="name", store=store, lowercase=True)
    index = first.tadoc.build_index("text", id="name", store=store, lowercase=True)
    assert_same(index.append(more["text"], id=more["name"]), expected, store=store)
    assert_same(more.tadoc.append_to(index, "text", id="name"), expected, store=store)
    assert_same(index.append(frame(form)["text"], id=frame(form)["name"], upsert=True), expected, store=store)
    plain = frame(form)[:3].tadoc.build_index("text", id="name", store=store, lowercase=True, tokenizer=cut)
    assert_same(plain.append(packed(cut)["text"][3:], id=more["name"]), expected, store=store)


def test_text_added_to_an_index_without_documents_is_cut_into_words() -> None:
    index = pl.DataFrame({"text": pl.Series([None], dtype=pl.String)}).tadoc.build_index("text")
    assert index.append(pl.Series("text", ["to be"])).search("be")["id"].to_list() == [1]


def test_an_index_that_stores_nothing_builds_no_rules(tmp_path: Path) -> None:
    df = pl.DataFrame({"text": ["to be or not to be"] * 50})
    index = df.tadoc.build_index("text", store=False, engine="cpu")
    with (
        patch.object(CPU.kernels, "compress_rows", side_effect=AssertionError("rows")),
        patch.object(CPU.kernels, "build_rules", side_effect=AssertionError("rules")),
    ):
        assert index.append(df["text"], engine="cpu").documents == 100
        df.lazy().tadoc.sink_index(tmp_path / "index", "text", store=False, engine="cpu")  # type: ignore[attr-defined]
        with pytest.raises(AssertionError, match="rows"):
            df.lazy().tadoc.sink_index(tmp_path / "kept", "text", engine="cpu")  # type: ignore[attr-defined]
    assert not (tmp_path / "kept").exists()
    assert tadoc.load_index(tmp_path / "index").documents == 50


def test_bad_text_is_named_and_leaves_no_index(tmp_path: Path) -> None:
    data = pa.array([b"to be", b"to \xff"], pa.large_binary()).buffers()
    bad = pl.Series("text", pa.LargeStringArray.from_buffers(2, *data[1:]))
    with pytest.raises(ValueError, match=r"row 1: not UTF-8"):
        bad.to_frame().lazy().tadoc.sink_index(tmp_path / "index", "text")  # type: ignore[attr-defined]
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match=r"row 1: not UTF-8"):
        packed().tadoc.build_index("text").append(bad)


def test_a_compressed_column_is_not_cut_anew(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"sink_index: tokenizer= is for String columns"):
        packed().lazy().tadoc.sink_index(tmp_path / "index", "text", tokenizer="whitespace")  # type: ignore[attr-defined]
    with pytest.raises(tadoc.errors.NotCompressedError, match=r"append: .*neither String nor a TADOC column"):
        packed().tadoc.build_index("text").append(pl.Series("text", [1, 2]))
