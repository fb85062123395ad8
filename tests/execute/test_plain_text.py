"""Analytics on plain text: the results of the compressed column, and no rules are built."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import given
from polars.testing import assert_frame_equal

import polars_tadoc as tadoc
from polars_tadoc.engine.choose import CPU
from polars_tadoc.errors import NotCompressedError
from polars_tadoc.traversal import text_corpus
from tests.strategies import columns

WORDS = ("word_count", "sort", "sequence_count", "cooccurrence")
ROWS = ("inverted_index", "term_vector", "ranked_inverted_index")
CALLS = (*WORDS, *ROWS)
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "word_count": [{"top": 3}, {"min_count": 2}, {"lowercase": True, "stopwords": ["a"]}],
    "sort": [{"min_count": 2}],
    "sequence_count": [{"n": 2}, {"n": 1, "top": 2}],
    "cooccurrence": [{"window": 2, "top": 4}, {"normalize": pl.element().str.to_uppercase()}],
    "inverted_index": [{"min_count": 2}],
    "term_vector": [{"top": 1}, {"lowercase": True}],
    "ranked_inverted_index": [{"n": 2, "top": 1}],
}
FORMS = (pl.String(), pl.Categorical())


@pytest.mark.parametrize("call", CALLS)
@given(rows=columns)
def test_results_equal_those_of_the_compressed_column(engine: str, call: str, rows: list[str | None]) -> None:
    plain = pl.DataFrame({"text": pl.Series(rows, dtype=pl.String)})
    packed = plain.tadoc.compress("text")
    for options in ({}, *OPTIONS[call]):
        for block in (1, text_corpus.BLOCK_BYTES):
            with patch.object(text_corpus.text_corpora, "__defaults__", (0, block)):
                found = getattr(plain.tadoc, call)("text", engine=engine, **options)
            assert_frame_equal(found, getattr(packed.tadoc, call)("text", engine=engine, **options))


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("call", CALLS)
def test_every_surface_takes_every_form_of_text(call: str, form: pl.DataType) -> None:
    rows = ["to be or not to be", "a b c", None, "", "to be"]
    plain = pl.DataFrame({"g": [1, 1, 2, 2, 3], "text": pl.Series(rows).cast(form)})
    packed = pl.DataFrame({"g": [1, 1, 2, 2, 3], "text": rows}).tadoc.compress("text")
    expected = getattr(packed.tadoc, call)("text")
    assert_frame_equal(getattr(plain.tadoc, call)("text"), expected)
    assert_frame_equal(getattr(plain["text"].tadoc, call)(), expected)  # type: ignore[attr-defined]
    assert getattr(tadoc, call)(plain["text"]).to_pylist() == getattr(tadoc, call)(packed["text"]).to_pylist()
    assert_frame_equal(getattr(plain.lazy().tadoc, call)("text").collect(), expected)
    assert_frame_equal(getattr(plain.lazy().tadoc, call)("text", memory_limit="1GB").collect(), expected)
    grouped = [
        df.group_by("g", maintain_order=True).agg(getattr(pl.col("text").tadoc, call)())  # type: ignore[attr-defined]
        for df in (plain, packed)
    ]
    assert_frame_equal(*grouped)


@pytest.mark.parametrize("call", ROWS)
def test_rows_of_text_have_the_labels_of_id(call: str) -> None:
    plain = pl.DataFrame({"name": ["x", "y", "z"], "text": ["to be", None, "be"]})
    expected = getattr(plain.tadoc.compress("text").tadoc, call)("text", id="name")
    assert_frame_equal(getattr(plain.tadoc, call)("text", id="name"), expected)
    assert_frame_equal(getattr(plain.lazy().tadoc, call)("text", id="name", memory_limit="1GB").collect(), expected)


@pytest.mark.parametrize("call", CALLS)
def test_no_call_builds_rules_behind_the_scenes(call: str) -> None:
    text = pl.Series("text", ["to be or not to be"] * 50)
    built, kernels = [], CPU.kernels
    with (
        patch.object(kernels, "compress_rows", side_effect=lambda *_, **__: built.append("rows")),
        patch.object(kernels, "build_rules", side_effect=lambda *_, **__: built.append("rules")),
    ):
        getattr(text.to_frame().tadoc, call)("text", engine="cpu")
        with pytest.raises(Exception, match=r".*"):
            text.to_frame().tadoc.compress("text", engine="cpu")
    assert built == ["rows"]  # those of the call that compresses
    assert [len(corpus.grammar.symbols) for corpus in text_corpus.text_corpora(text, text_corpus.WORDS)] == [0]


def test_tokenizer_says_how_text_is_cut() -> None:
    plain = pl.DataFrame({"text": ["to-be or_not", None, "to-be"]})
    for tokenizer in ("words", re.compile(r"\S+")):
        packed = plain.tadoc.compress("text", tokenizer=tokenizer)
        found = plain.tadoc.word_count("text", tokenizer=tokenizer)
        assert_frame_equal(found, packed.tadoc.word_count("text"))
        assert_frame_equal(packed.tadoc.word_count("text", tokenizer=tokenizer), found)
        lazily = plain.lazy().tadoc.word_count("text", tokenizer=tokenizer, memory_limit="1GB").collect()
        assert_frame_equal(lazily, found)
    with pytest.raises(TypeError, match=r"word_count: tokenizer= is for String columns; grammar .* was cut by"):
        packed.tadoc.word_count("text", tokenizer="words")
    with pytest.raises(ValueError, match="tokenizer"):
        plain.tadoc.word_count("text", tokenizer="none such")


def test_files_of_text_are_counted_without_compressing(tmp_path: Path) -> None:
    rows = [f"w{k % 7} the w{k % 3} cat" if k % 5 else None for k in range(2000)]
    plain = pl.DataFrame({"k": range(2000), "text": rows})
    plain.write_parquet(tmp_path / "text.parquet", row_group_size=100)
    plain.write_csv(tmp_path / "text.csv")
    plain.write_ndjson(tmp_path / "text.ndjson")
    packed = plain.filter(pl.col("k") > 500).tadoc.compress("text")
    scans = (
        pl.scan_parquet(tmp_path / "*.parquet"),
        pl.scan_csv(tmp_path / "text.csv"),
        pl.scan_ndjson(tmp_path / "text.ndjson"),
    )
    for call in CALLS:
        expected = getattr(packed.tadoc, call)("text")
        for scan in scans:
            asked = getattr(scan.filter(pl.col("k") > 500).tadoc, call)
            for options in ({}, {"memory_limit": "300MB"}):
                assert_frame_equal(asked("text", **options).collect(), expected)


@pytest.mark.parametrize("call", CALLS)
def test_odd_text(call: str) -> None:
    for rows in ([], [None], [""], ["", None, " "], ["\0", "a\0b"], ["x" * 100_000], [" ".join(map(str, range(3000)))]):
        plain = pl.DataFrame({"text": pl.Series(rows, dtype=pl.String)})
        expected = getattr(plain.tadoc.compress("text").tadoc, call)("text")
        assert_frame_equal(getattr(plain.tadoc, call)("text"), expected)


def test_a_row_that_is_not_utf8_is_named() -> None:
    import pyarrow as pa

    offsets, data = pa.py_buffer(b"\0\0\0\0\1\0\0\0\3\0\0\0"), pa.py_buffer(b"a\xff\xfe")
    bad: Any = pl.from_arrow(pa.Array.from_buffers(pa.string(), 2, [None, offsets, data]))
    with pytest.raises(ValueError, match="row 1: not UTF-8"):
        bad.alias("text").to_frame().tadoc.word_count("text")


def test_other_types_are_refused_with_what_to_do() -> None:
    df = pl.DataFrame({"n": [1, 2], "text": ["a", "b"]})
    with pytest.raises(NotCompressedError, match=r'word_count: column "n" is Int64, neither String nor a TADOC column'):
        df.tadoc.word_count("n")
    with pytest.raises(NotCompressedError, match=r'name the column: word_count\("text"\)'):
        df.tadoc.word_count()


def test_explain_says_that_text_is_counted_without_rules() -> None:
    assert "counted without rules" in tadoc.explain(pl.Series("text", ["to be"]), "word_count")
