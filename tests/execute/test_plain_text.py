"""Analytics on plain text: the results of the compressed column, and no rules are built."""

from __future__ import annotations

import random
import re
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.io.plugins import register_io_source
from polars.testing import assert_frame_equal, assert_series_equal

import polars_tadoc as tadoc
from polars_tadoc.analytics.explain import REQUESTS
from polars_tadoc.engine.choose import CPU, GPU
from polars_tadoc.errors import NotCompressedError
from polars_tadoc.execute import windows
from polars_tadoc.execute.stages import Stages
from polars_tadoc.rows import matching, phrases
from polars_tadoc.traversal import text_corpus
from polars_tadoc.traversal.costs import COMPRESS_BYTE, TEXT_BYTE
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
INDEXED = ("to be, or not to be", "To do is to be", "Do be do be do")
FORMS = (pl.String(), pl.Categorical(), pl.Enum(["to be or not to be", "a b c", "a b c, a b", "", "to be", *INDEXED]))


@pytest.mark.parametrize("call", CALLS)
@given(rows=columns)
def test_results_equal_those_of_the_compressed_column(engine: str, call: str, rows: list[str | None]) -> None:
    plain = pl.DataFrame({"text": pl.Series(rows, dtype=pl.String)})
    packed = plain.tadoc.compress("text")
    for options in ({}, *OPTIONS[call]):
        for block in (1, text_corpus.BLOCK_BYTES):
            with patch.object(text_corpus.text_corpora, "__defaults__", (0, block, text_corpus.cut_on_cpu)):
                found = getattr(plain.tadoc, call)("text", engine=engine, **options)
            assert_frame_equal(found, getattr(packed.tadoc, call)("text", engine=engine, **options))


@pytest.mark.parametrize("call", [call for call in CALLS if call not in ("word_count", "sort")])
def test_text_is_cut_where_it_is_counted(engine: str, call: str) -> None:
    plain = pl.DataFrame({"text": ["to be or not to be", None, "a b, a b", ""] * 2})
    expected = getattr(plain.tadoc.compress("text").tadoc, call)("text", engine="cpu")
    with patch.object((CPU if engine == "gpu" else GPU).kernels, "number_words", None):
        assert_frame_equal(getattr(plain.tadoc, call)("text", engine=engine), expected)


@pytest.mark.parametrize("form", FORMS, ids=["String", "Categorical", "Enum"])
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


ROW_CALLS: dict[str, list[tuple[Any, ...]]] = {
    "token_count": [()],
    "extract": [(1, 2), (-2,), (0, 0)],
    "head": [(2,), (-1,)],
    "tail": [(2,), (-1,)],
    "count_phrase": [("a",), ("to be",), ("b c a",)],
    "contains_phrase": [("be or",)],
    "contains_any": [(["a b", "be"],), ([],)],
    "bm25": [("a b a",), ("to be",)],
}
ROW_OPTIONS: dict[str, dict[str, Any]] = {
    name: {"lowercase": True, "stopwords": ["b"]} for name in ("count_phrase", "contains_any", "bm25")
}
TOKENIZERS = ("words", "whitespace", re.compile("[a-z]+|,"))


@pytest.mark.parametrize("call", ROW_CALLS)
@given(rows=columns, tokenizer=st.sampled_from(TOKENIZERS), block=st.sampled_from([1, text_corpus.BLOCK_BYTES]))
def test_row_calls_give_what_the_compressed_column_gives(
    call: str, rows: list[str | None], tokenizer: str | re.Pattern[str], block: int
) -> None:
    text = pl.Series("text", rows, dtype=pl.String)
    packed = text.tadoc.compress(tokenizer=tokenizer)  # type: ignore[attr-defined]
    for given_ in ROW_CALLS[call]:
        for options in ({}, ROW_OPTIONS.get(call, {})):
            with patch.object(text_corpus.text_corpora, "__defaults__", (0, block, text_corpus.cut_on_cpu)):
                found = getattr(tadoc, call)(text, *given_, tokenizer=tokenizer, **options)
            assert_series_equal(found, getattr(tadoc, call)(packed, *given_, **options))


@given(rows=columns, seed=st.randoms(use_true_random=False))
def test_extract_takes_numbers_by_row_and_one_row_for_many_numbers(rows: list[str | None], seed: random.Random) -> None:
    text = pl.Series("text", rows, dtype=pl.String)
    packed = text.tadoc.compress()  # type: ignore[attr-defined]
    for one, other, size in ((text, packed, len(rows)), (text.head(1), packed.head(1), 9)):
        if len(one):
            offsets = pl.Series([seed.choice([None, *range(-5, 6)]) for _ in range(size)], dtype=pl.Int64)
            lengths = pl.Series([seed.choice([None, *range(5)]) for _ in range(size)], dtype=pl.Int64)
            assert_series_equal(tadoc.extract(one, offsets, lengths), tadoc.extract(other, offsets, lengths))


@pytest.mark.parametrize("form", FORMS, ids=["String", "Categorical", "Enum"])
@pytest.mark.parametrize("call", ROW_CALLS)
def test_row_calls_on_every_surface(call: str, form: pl.DataType) -> None:
    rows = ["to be or not to be", "a b c, a b", None, "", "to be"]
    plain = pl.DataFrame({"g": [1, 1, 2, 2, 3], "text": pl.Series(rows).cast(form)})
    packed = pl.DataFrame({"g": [1, 1, 2, 2, 3], "text": rows}).tadoc.compress("text")
    for given_ in ROW_CALLS[call]:
        expected = getattr(tadoc, call)(packed["text"], *given_)
        assert_series_equal(getattr(plain["text"].tadoc, call)(*given_), expected)  # type: ignore[attr-defined]
        asked = getattr(pl.col("text").tadoc, call)(*given_)  # type: ignore[attr-defined]
        assert_series_equal(plain.select(asked).to_series(), expected)
        assert_series_equal(plain.lazy().select(asked).collect(engine="streaming").to_series(), expected)
        assert_frame_equal(plain.select(asked.over("g")), packed.select(asked.over("g")))
        groups = [df.group_by("g", maintain_order=True).agg(asked) for df in (plain, packed)]
        assert_frame_equal(*groups)
    by_tokenizer = getattr(pl.col("text").tadoc, call)(*ROW_CALLS[call][0], tokenizer="whitespace")  # type: ignore[attr-defined]
    whole = tadoc.compress(pl.Series("text", rows), tokenizer="whitespace")
    assert_series_equal(plain.select(by_tokenizer).to_series(), getattr(tadoc, call)(whole, *ROW_CALLS[call][0]))
    with pytest.raises(TypeError, match=rf"{call}: tokenizer= is for String columns; grammar"):
        getattr(tadoc, call)(packed["text"], *ROW_CALLS[call][0], tokenizer="whitespace")


def test_bm25_takes_statistics_of_the_whole_column_in_streams(tmp_path: Path) -> None:
    rows = [f"a w{k % 7} w{k % 11}" if k % 5 else "b" for k in range(5000)]
    pl.DataFrame({"text": rows}).write_parquet(tmp_path / "text.parquet", row_group_size=100)
    found = pl.scan_parquet(tmp_path / "text.parquet").select(pl.col("text").tadoc.bm25("w3 b"))  # type: ignore[attr-defined]
    expected = tadoc.bm25(tadoc.compress(pl.Series("text", rows)), "w3 b")
    assert_series_equal(found.collect(engine="streaming").to_series(), expected)


@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize("form", FORMS, ids=["String", "Categorical", "Enum"])
def test_an_index_of_text_is_that_of_the_compressed_column(form: pl.DataType, store: bool) -> None:
    rows = [INDEXED[0], None, INDEXED[1], "", INDEXED[2]]
    plain = pl.DataFrame({"name": list("vwxyz"), "text": pl.Series(rows).cast(form)})
    packed = plain.with_columns(pl.Series("text", rows)).tadoc.compress("text")
    options: dict[str, Any] = {"id": "name", "metadata": ["name"], "store": store, "lowercase": True}
    found, expected = (df.tadoc.build_index("text", **options) for df in (plain, packed))
    for query in ("do be", "to", "none"):
        assert_frame_equal(found.search(query, k=9), expected.search(query, k=9))
    assert (found.stored.stored_text is not None) == store
    if store:
        assert_frame_equal(found.search('"or not"'), expected.search('"or not"'))
    found.save(folder := Path(mkdtemp()) / "index")
    assert_frame_equal(tadoc.load_index(folder).search("do be"), expected.search("do be"))
    again = tadoc.build_index(plain["text"].cast(pl.String), tokenizer="whitespace", store=store)
    assert again.search("be,")["id"].to_list() == [0]


@pytest.mark.parametrize("call", [*ROW_CALLS, "build_index"])
def test_no_row_call_builds_rules(call: str) -> None:
    text, built, kernels = pl.Series("text", ["to be or not to be"] * 50), [], CPU.kernels
    arguments = ROW_CALLS.get(call, [()])[0]
    with (
        patch.object(kernels, "compress_rows", side_effect=lambda *_, **__: built.append("rows")),
        patch.object(kernels, "build_rules", side_effect=lambda *_, **__: built.append("rules")),
    ):
        if call == "build_index":
            tadoc.build_index(text, engine="cpu", store=False)
            with pytest.raises(Exception, match=r".*"):
                tadoc.build_index(text, engine="cpu")
            assert built == ["rows"]  # of the text that it stores
        else:
            getattr(tadoc, call)(text, *arguments)
            assert built == []


def test_caches_keep_nothing_of_plain_text() -> None:
    held = len(matching._links)
    tadoc.count_phrase(pl.Series("text", ["to be or not to be"]), "to be")
    assert len(matching._links) == held


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


def test_reading_overlaps_counting() -> None:
    read, counted = [threading.Event() for _ in range(40)], 0
    schema = pl.Schema({"text": pl.String()})

    def source(*_: Any) -> Iterator[pl.DataFrame]:
        for number, event in enumerate(read):
            event.set()
            yield pl.DataFrame({"text": [f"a w{number} " * 20_000]})

    find = Stages.find

    def find_late(*args: Any) -> Any:
        nonlocal counted
        counted += 1
        assert counted >= len(read) or read[counted].wait(60)  # the next rows come while these are counted
        return find(*args)

    plan = register_io_source(source, schema=schema)
    with patch.object(Stages, "find", find_late), patch.object(windows, "TEXT_SHARE", 1 << 16):
        found = plan.tadoc.word_count("text", memory_limit="1GB").collect()  # type: ignore[attr-defined]
    assert counted >= len(read)
    assert found.row(0) == ("a", 40 * 20_000)


@pytest.mark.parametrize("call", CALLS)
def test_odd_text(call: str) -> None:
    for rows in ([], [None], [""], ["", None, " "], ["\0", "a\0b"], ["x" * 100_000], [" ".join(map(str, range(3000)))]):
        plain = pl.DataFrame({"text": pl.Series(rows, dtype=pl.String)})
        expected = getattr(plain.tadoc.compress("text").tadoc, call)("text")
        assert_frame_equal(getattr(plain.tadoc, call)("text"), expected)


@pytest.mark.slow
def test_many_empty_rows_and_words_that_are_all_distinct() -> None:
    empty = pl.DataFrame({"text": pl.repeat("", 2_000_000, eager=True)})
    one = pl.concat([empty, pl.DataFrame({"text": ["a b a b"]})]).rechunk()
    for call in CALLS:
        small = pl.DataFrame({"row": [0], "text": ["a b a b"]})
        found, expected = (getattr(frame.tadoc, call)("text") for frame in (one, small))
        assert found.columns == expected.columns
        if call in WORDS:
            assert_frame_equal(found, expected)
        assert len(found) == len(expected)
    many = 100_000
    words = pl.DataFrame({"text": [" ".join(f"w{k}" for k in range(many))]})
    assert words.tadoc.word_count("text")["count"].to_list() == [1] * many
    found = words.tadoc.sequence_count("text", n=3)
    assert (len(found), found["count"].sum()) == (many - 2, many - 2)
    assert len(words.tadoc.cooccurrence("text", window=2)) == 2 * many - 3


def test_a_row_of_several_blocks() -> None:
    """A row of 1 GB, four blocks of the true size, is in ``tests/trials/plain_text.py``."""
    many = 800_000
    row = pl.DataFrame({"text": ["to be or not " * many]})
    assert row["text"].str.len_bytes().item() > 4 << 21
    with patch.object(text_corpus.text_corpora, "__defaults__", (0, 1 << 21, text_corpus.cut_on_cpu)):
        assert row.tadoc.word_count("text")["count"].to_list() == [many] * 4
        assert row.tadoc.inverted_index("text")["documents"].to_list() == [[0]] * 4


def test_phrases_in_text_hold_the_words_of_one_block() -> None:
    text, held = pl.Series("text", ["to be or not to be", None, "to be"] * 20), weakref.WeakSet[Any]()

    def blocks(*args: Any) -> Any:
        for corpus in text_corpus.text_corpora(*args, most=1):
            assert len(held) <= 1  # the last one, while it is replaced
            held.add(corpus)
            yield corpus

    with patch.object(phrases, "text_corpora", blocks):
        found = tadoc.count_phrase(text, "to be")
    assert found.to_list() == [2, None, 1] * 20


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


@pytest.mark.parametrize("call", REQUESTS)
def test_explain_says_what_text_takes_and_when_compressing_repays(call: str) -> None:
    told = tadoc.explain(pl.Series("text", ["to be", None, "or not"]), call, engine="cpu")
    assert told.startswith(f"{call} on cpu: counted as text, without rules")
    assert "2 rows of 11 bytes" in told
    (repays,) = map(int, re.findall(r"compressing would repay from call (\d+) on", told))
    text, packed = TEXT_BYTE[call]
    assert repays * text > COMPRESS_BYTE + repays * packed
    assert (repays - 1) * text <= COMPRESS_BYTE + (repays - 1) * packed
