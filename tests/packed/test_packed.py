"""The packed form: rows of a grammar as one self-contained row, and back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from polars.testing import assert_frame_equal

import polars_tadoc as tadoc
from polars_tadoc.errors import (
    ColumnMissingError,
    InvalidGrammarError,
    LimitExceededError,
    NotCompressedError,
    NotPackedError,
)
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.grammar_cache import grammars
from polars_tadoc.packed import pack as packing
from polars_tadoc.packed import write
from polars_tadoc.packed.partition import PACKED_DTYPE, partitions
from tests.packed_cases import every_column, frames

TEXT = ["to be", None, "to  do", "be, or not to be"]


def corpora_of_packed(packed: pl.Series, first_row: int = 0) -> Iterator[Corpus]:
    for partition in partitions(packed):
        yield partition.corpus(first_row)
        first_row += partition.document_count


def one_row(**changes: Any) -> pl.DataFrame:
    """A packed row of four documents beside their numbers, with fields changed."""
    df = pl.DataFrame({"text": TEXT, "i": range(4)}).tadoc.compress("text").tadoc.pack()
    fields = [
        pl.lit(pl.Series([value], dtype=PACKED_DTYPE.to_schema()[name])).alias(name) for name, value in changes.items()
    ]
    return df.with_columns(pl.col("text").struct.with_fields(*fields))


@given(frames())
def test_round_trip(frame: pl.DataFrame) -> None:
    packed = frame.tadoc.pack("text")
    assert packed.schema == {
        name: PACKED_DTYPE if name == "text" else pl.List(dtype) for name, dtype in frame.schema.items()
    }
    assert_frame_equal(packed.tadoc.unpack(), frame)
    lazy = frame.lazy().tadoc.pack()
    assert lazy.collect_schema() == packed.schema
    assert_frame_equal(lazy.collect(), packed)
    back = lazy.tadoc.unpack()
    assert back.collect_schema() == frame.schema
    assert_frame_equal(back.collect(), frame)


def test_every_type_of_other_columns() -> None:
    frame = every_column(60, 8)
    packed = frame.tadoc.pack()
    assert packed.height == 8
    assert_frame_equal(packed.tadoc.unpack(), frame)
    wide = frame.select("text", pl.col("number").cast(pl.Int128))
    assert_frame_equal(wide.tadoc.pack().tadoc.unpack(), wide)


def test_another_compressed_column_is_a_list_like_others() -> None:
    frame = pl.DataFrame({"a": TEXT, "b": TEXT[::-1]}).tadoc.compress("a").tadoc.compress("b")
    packed = frame.tadoc.pack("a")
    assert packed.schema == {"a": PACKED_DTYPE, "b": pl.List(tadoc.DTYPE)}
    assert_frame_equal(packed.tadoc.unpack(), frame)


def test_a_grammar_that_comes_again_is_packed_again() -> None:
    one, other = (pl.DataFrame({"text": [text] * 2}).tadoc.compress("text") for text in ("a b", "b c"))
    frame = pl.concat([one, other, one, one, other])
    packed = frame.tadoc.pack()
    assert packed["text"].struct.field("valid").list.len().to_list() == [2, 2, 4, 2]
    assert_frame_equal(packed.tadoc.unpack(), frame)


def test_copies_are_limited() -> None:
    one, other = (pl.DataFrame({"text": [text]}).tadoc.compress("text") for text in ("a b", "b c"))
    frame = pl.concat([one, other] * 20)
    size = tadoc.column.split(one["text"])[0].grammar.nbytes
    with tadoc.Config(payload_limit_bytes=38 * size):
        assert frame.tadoc.pack().height == 40
    with (
        tadoc.Config(payload_limit_bytes=38 * size - 1),
        pytest.raises(LimitExceededError, match=r"2 grammars alternate.*recompress"),
    ):
        frame.tadoc.pack()
    assert pl.concat([one] * 40).tadoc.pack().height == 1


@pytest.mark.parametrize(
    ("rows", "runs"),
    [([], []), ([None], [1]), ([None, None], [2]), ([None, "a", None], [3]), ([""], [1])],
    ids=repr,
)
def test_null_rows_need_no_grammar(rows: list[str | None], runs: list[int]) -> None:
    frame = pl.DataFrame({"text": rows}, schema={"text": pl.String}).tadoc.compress("text")
    packed = frame.tadoc.pack()
    assert packed["text"].struct.field("valid").list.len().to_list() == runs
    assert_frame_equal(packed.tadoc.unpack(), frame)
    assert sum(corpus.document_count for corpus in corpora_of_packed(packed["text"])) == len(
        [row for row in rows if row is not None]
    )


def test_corpora_come_without_a_payload(engine: str) -> None:
    frame = pl.DataFrame({"text": TEXT * 3}).tadoc.compress("text", rows_per_grammar=5)
    packed = frame.tadoc.pack()["text"]
    rows = []
    for own, expected in zip(corpora_of_packed(packed, first_row=100), tadoc.column.split(frame["text"]), strict=True):
        np.testing.assert_array_equal(own.rows, expected.rows + 100)
        np.testing.assert_array_equal(own.root_offsets, expected.root_offsets)
        np.testing.assert_array_equal(own.roots, expected.roots)
        assert own.gaps.to_list() == expected.gaps.to_list()
        assert own.grammar.to_arrow() == expected.grammar.to_arrow()
        assert own.key != expected.key
        assert grammars.get(own.key) is own.grammar
        rows.extend(own.rows.tolist())
    assert rows == [100 + i for i in range(12) if i % 4 != 1]
    assert packed.to_frame().tadoc.unpack().tadoc.word_count(engine=engine).equals(frame.tadoc.word_count())


def test_roots_are_not_copied() -> None:
    packed = pl.DataFrame({"text": TEXT}).tadoc.compress("text").tadoc.pack()["text"]
    (corpus,) = corpora_of_packed(packed)
    cell = packed.struct.field("roots")[0].to_numpy(allow_copy=False)
    assert np.shares_memory(corpus.roots, cell)


def test_a_cached_grammar_keeps_no_packed_rows() -> None:
    packed = pl.DataFrame({"text": [f"{i % 7} {i % 3} word" for i in range(50)]}).tadoc.compress("text").tadoc.pack()
    grammars.clear()
    (partition,) = partitions(packed["text"])
    cell = packed["text"].struct.field("symbols")[0].to_numpy()
    assert not np.shares_memory(partition.grammar.symbols, cell)


def test_a_run_too_large_for_a_cell_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    text = pl.Series("text", ["a b c d", "b c", "d a c", None, "e f g h i j"] * 10)
    frame = pl.DataFrame([tadoc.compress(text), pl.Series("tags", [["x"] * (i % 5) for i in range(50)])])
    assert frame.tadoc.pack().height == 1
    monkeypatch.setattr(packing, "MAX_VALUES", 20)
    packed = frame.tadoc.pack()
    assert packed.height > 3
    assert packed["tags"].list.explode().list.len().max() <= 5
    for name in ("roots", "valid", "gaps"):
        assert packed["text"].struct.field(name).list.len().max() <= 20
    assert packed["tags"].list.eval(pl.element().list.len().sum()).list.first().max() <= 20
    assert_frame_equal(packed.tadoc.unpack(), frame)
    monkeypatch.setattr(packing, "MAX_VALUES", 3)
    with pytest.raises(LimitExceededError, match=r'column "text": a row has 4 values .* a cell holds at most 3 values'):
        pl.DataFrame([tadoc.compress(pl.Series("text", ["a b c d"]))]).tadoc.pack()
    monkeypatch.setattr(packing, "MAX_VALUES", 1 << 29)
    monkeypatch.setattr(packing, "MAX_BYTES", 10)
    names = frame.with_columns(pl.col("tags").list.len().cast(pl.String).alias("name"))
    assert names.tadoc.pack()["name"].list.len().max() <= 10
    with pytest.raises(LimitExceededError, match='column "name": a row has 1 values and 11 bytes'):
        frame.head(1).with_columns(name=pl.lit("x" * 11)).tadoc.pack()


HOSTILE: list[tuple[dict[str, Any], str]] = [
    ({"version": 1}, "format version 1, this release reads 2"),
    ({"version": None}, "version is null"),
    ({"tokenizer": None}, "tokenizer is null"),
    ({"vocabulary": None}, "vocabulary is null or contains nulls"),
    ({"vocabulary": ["be", "to", None, "or", "not"]}, "vocabulary is null or contains nulls"),
    ({"vocabulary": ["be", "be", "do", "not", "or"]}, "holds a word twice"),
    ({"vocabulary": ["be"]}, "predicted_gaps does not have one entry"),
    ({"rule_offsets": []}, "rule_offsets"),
    ({"rule_offsets": [1]}, "rule_offsets does not start with 0"),
    ({"rule_offsets": [0, 9]}, "rule_offsets|level_offsets"),
    ({"symbols": [7]}, "rule_offsets does not end at the number of symbols"),
    ({"level_offsets": [0, 3]}, "level_offsets"),
    ({"level_offsets": []}, "level_offsets"),
    ({"gap_vocabulary": None}, "gap_vocabulary is null"),
    ({"predicted_gaps": [0, 0, 9, 0, 0]}, "predicted_gaps has a code"),
    ({"document_offsets": []}, "differ in length"),
    ({"document_offsets": [0, 2, 2, 4]}, "differ in length"),
    ({"document_offsets": [0, 2, 2, 4, 7]}, "do not ascend from 0"),
    ({"document_offsets": [1, 2, 2, 4, 9]}, "do not ascend from 0"),
    ({"document_offsets": [0, 5, 5, 4, 9]}, "do not ascend from 0"),
    ({"document_offsets": [0, -1, -1, 4, 9]}, "do not ascend from 0"),
    ({"document_offsets": [0, 2**63 - 1, -2, 4, 9]}, "do not ascend from 0"),  # the differences wrap to positive ones
    ({"document_offsets": [0, 2, None, 4, 9]}, "document_offsets is null or contains nulls"),
    ({"roots": [0, 1]}, "do not ascend from 0"),
    ({"roots": [0, 1, 2, 3, 4, 0, 1, 2, 1000]}, "has symbol 1000"),
    ({"gaps": [None]}, "differ in length"),
    ({"gaps": None}, "gaps is null"),
    ({"valid": [True] * 3}, "differ in length"),
    ({"valid": [True, None, True, True]}, "valid is null or contains nulls"),
    ({"valid": [False, False, True, True]}, "a null document has symbols"),
]


@pytest.mark.parametrize(("changes", "message"), HOSTILE, ids=lambda value: str(value)[:50])
def test_damaged_structs_are_named_errors(changes: dict[str, Any], message: str) -> None:
    grammars.clear()
    damaged = one_row(**changes)
    with pytest.raises(InvalidGrammarError, match=rf'packed column "text", row 0: .*({message})'):
        damaged.tadoc.unpack()
    with pytest.raises(InvalidGrammarError, match=message):
        list(corpora_of_packed(damaged["text"]))


def test_gaps_that_are_damaged_are_found_when_they_are_read() -> None:
    unpacked = one_row(gaps=[b"\x80", None, b"", b""]).tadoc.unpack()
    with pytest.raises(InvalidGrammarError, match="gaps"):
        unpacked.tadoc.decompress()


def test_lists_beside_have_a_value_for_each_document() -> None:
    packed = one_row()
    for wrong in ([1, 2, 3], [1, 2, 3, 4, 5], [], None):
        unequal = packed.with_columns(pl.Series("i", [wrong], pl.List(pl.Int64)))
        with pytest.raises(InvalidGrammarError, match=r'column "text" has 4 documents, "i" has \d'):
            unequal.tadoc.unpack()
    with pytest.raises(NotPackedError, match=r'column "i" is Int64; columns beside a packed one must be lists'):
        packed.with_columns(i=1).cast({"i": pl.Int64}).tadoc.unpack()


def test_null_packed_rows_hold_no_documents() -> None:
    packed = one_row()
    nothing = pl.DataFrame({"text": [None], "i": [[]]}, schema=packed.schema)
    both = pl.concat([nothing, packed, nothing.with_columns(i=None).cast(packed.schema)])
    assert_frame_equal(both.tadoc.unpack(), packed.tadoc.unpack())
    assert len(list(partitions(both["text"]))) == 1


def test_limits_hold_for_packed_grammars() -> None:
    packed = pl.DataFrame({"text": ["a b " * 500] * 2}).tadoc.compress("text").tadoc.pack()
    for forget in (grammars.clear, lambda: None):
        forget()
        with tadoc.Config(expansion_limit=10), pytest.raises(LimitExceededError, match="expansion_limit"):
            packed.tadoc.unpack()
        packed.tadoc.unpack()


def test_errors_name_the_column() -> None:
    frame = pl.DataFrame({"text": TEXT}).tadoc.compress("text")
    for either in (frame, frame.lazy()):
        with pytest.raises(ColumnMissingError, match='pack: there is no column "txt"; did you mean "text"'):
            either.tadoc.pack("txt")
        with pytest.raises(NotPackedError, match=r'unpack: column "text" is Text\(\), not a packed .*pack'):
            either.tadoc.unpack("text")
        with pytest.raises(NotPackedError, match=r"the frame has no packed TADOC column; df\.tadoc\.pack"):
            either.tadoc.unpack()
    with pytest.raises(NotCompressedError):
        frame.tadoc.pack().tadoc.pack("text")
    with pytest.raises(NotPackedError):
        list(corpora_of_packed(frame["text"]))
    things = frame.with_columns(pl.Series("thing", [object()] * 4, dtype=pl.Object))
    with pytest.raises(TypeError, match='pack: column "thing" is Object'):
        things.tadoc.pack()


def test_is_packed() -> None:
    assert tadoc.is_packed(tadoc.PACKED_DTYPE)
    assert not tadoc.is_packed(tadoc.DTYPE)
    assert not tadoc.is_packed(pl.Struct)


def test_a_lazy_plan_packs_what_it_is_asked_for() -> None:
    text = [*TEXT, "a", None, "b", "c", "d", None, "e", "f"]
    frame = pl.DataFrame({"text": text, "i": range(12)}).tadoc.compress("text", rows_per_grammar=4)
    packed = frame.lazy().tadoc.pack()
    assert packed.head(2).collect().height == 2
    assert packed.filter(pl.col("i").list.contains(5)).select("i").collect().rows() == [([4, 5, 6, 7],)]
    rows = packed.tadoc.unpack()
    assert rows.head(5).select("i").collect()["i"].to_list() == [0, 1, 2, 3, 4]
    assert rows.filter(pl.col("i") > 9).collect().equals(frame.filter(pl.col("i") > 9))
    assert rows.head(6).filter(pl.col("i") > 4).select("i").collect()["i"].to_list() == [5]
    assert rows.filter(pl.col("text").is_null()).select("i").collect()["i"].to_list() == [1, 5, 9]


def words_of_document(path: Path, document: int) -> list[str]:
    """The format in ten lines: pyarrow and nothing else."""
    packed = pq.ParquetFile(path).read_row_group(0).column("text")[0].as_py()
    vocabulary, offsets, symbols = packed["vocabulary"], packed["rule_offsets"], packed["symbols"]
    stack = packed["roots"][packed["document_offsets"][document] : packed["document_offsets"][document + 1]][::-1]
    words = []
    while stack:
        symbol = stack.pop()
        if symbol < len(vocabulary):
            words.append(vocabulary[symbol])
        else:
            rule = symbol - len(vocabulary)
            stack += symbols[offsets[rule] : offsets[rule + 1]][::-1]
    return words


def test_pyarrow_alone_reads_a_packed_file(tmp_path: Path) -> None:
    rows = [f"the {i % 3} same words in the {i % 5} same order" for i in range(60)]
    pl.DataFrame({"text": rows}).tadoc.compress("text").tadoc.write_packed(tmp_path / "a.parquet")
    assert pq.read_table(tmp_path / "a.parquet")["text"][0].as_py()["symbols"], "there are rules to expand"
    for document in (0, 7, 59):
        assert words_of_document(tmp_path / "a.parquet", document) == rows[document].split()


@pytest.mark.parametrize("name", ["logs_elastic", "docs_tldr"])
def test_corpora(name: str, corpus: Any, tmp_path: Path) -> None:
    plain = corpus(name).head(30_000)
    (column,) = [c for c, dtype in plain.schema.items() if dtype == pl.String][-1:]
    column = "text" if "text" in plain.columns else column
    frame = plain.tadoc.compress(column, rows_per_grammar=8_000)
    packed = frame.tadoc.pack(column)
    assert packed.height == -(-frame.height // 8_000)
    assert_frame_equal(packed.tadoc.unpack(), frame)
    frame.tadoc.write_packed(tmp_path / "a.parquet")
    assert_frame_equal(tadoc.scan_packed(tmp_path).collect(), frame)
    assert_frame_equal(tadoc.scan_packed(tmp_path).tadoc.decompress().collect(), plain)


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_plans_that_need_no_column(engine: Any, tmp_path: Path) -> None:
    plain = pl.DataFrame({"n": range(6), "text": ["a b"] * 6})
    frame = plain.tadoc.compress("text", rows_per_grammar=2)
    frame.tadoc.write_packed(tmp_path / "a.parquet")
    plans = (
        plain.lazy().tadoc.compress("text"),
        frame.lazy().tadoc.pack(),
        frame.lazy().tadoc.pack().tadoc.unpack(),
        tadoc.scan_packed(tmp_path),
    )
    for lf in plans:
        expected = lf.collect()
        for plan in (
            lambda lf: lf.with_row_index().select("index"),
            lambda lf: lf.with_row_index().filter(pl.col("index") % 2 == 0).select(pl.len()),
            lambda lf: lf.head(2).with_row_index().select("index"),
            lambda lf: lf.select(pl.int_range(pl.len())),
            lambda lf: lf.filter(pl.len() > 2).with_row_index().select("index"),
            lambda lf: lf.filter(pl.lit(False)).with_row_index().select("index"),
            lambda lf: lf.filter(pl.col("text").is_not_null()).with_row_index().select("index"),
        ):
            assert_frame_equal(plan(lf).collect(engine=engine), plan(expected.lazy()).collect())
        assert lf.drop("n", "text").collect(engine=engine).shape == (expected.height, 0)
        assert lf.filter(pl.col("n").is_not_null()).drop("n", "text").collect(engine=engine).height == expected.height


def test_a_column_without_a_name(tmp_path: Path) -> None:
    frame = pl.DataFrame({"": range(4), "text": TEXT})
    for column in ("text", ""):
        names = frame.columns if column else frame.columns[::-1]
        compressed = pl.DataFrame(dict(zip(names, frame, strict=True))).tadoc.compress(column)
        assert_frame_equal(compressed.tadoc.pack().tadoc.unpack(), compressed)
        assert_frame_equal(compressed.lazy().tadoc.pack().tadoc.unpack().collect(), compressed)
        compressed.tadoc.write_packed(tmp_path / "a.parquet")
        lf = tadoc.scan_packed(tmp_path / "a.parquet")
        assert_frame_equal(lf.collect(), compressed)
        assert_frame_equal(lf.select(pl.nth(0)).collect(), compressed.select(pl.nth(0)))
        assert lf.tadoc.word_count().collect().height == 5


SINK = """
import sys
import polars as pl, polars_tadoc as tadoc
lf = pl.LazyFrame({"n": range(4), "text": ["a b", None, "a b", "b"]})
lf.tadoc.compress("text", rows_per_grammar=2).tadoc.sink_packed(sys.argv[1])
print("pandas" in sys.modules)
"""


@pytest.mark.slow
def test_writing_imports_no_pandas(tmp_path: Path) -> None:
    """An interrupt while pyarrow imports it would be lost."""
    run = [sys.executable, "-c", SINK, str(tmp_path / "a.parquet")]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "False\n"


@pytest.mark.parametrize("place", ["write_table", "compress"])
def test_an_interrupt_does_not_wait_for_one_long_compression(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyArrow compresses a list of a row in one piece: seconds for a row of 200 MB, and it looks for no interrupt."""
    df = pl.DataFrame({"text": ["to be or not to be", "that is the question"]}).tadoc.compress("text")
    df.head(1).tadoc.write_packed(tmp_path / "file")
    before, ended = (tmp_path / "file").read_bytes(), threading.Event()
    sent: list[None] = []
    done: list[bool] = []

    def compress(*_: object, **__: object) -> bytes:
        sent.append(os.kill(os.getpid(), signal.SIGINT))
        done.append(ended.wait(20))
        return b""

    if place == "write_table":
        monkeypatch.setattr(write, "_leaves", lambda empty: list(empty.column_names))
        monkeypatch.setattr(pq.ParquetWriter, place, compress)
    else:
        monkeypatch.setattr(write.pa, "Codec", lambda *_: SimpleNamespace(compress=compress))
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            df.tadoc.write_packed(tmp_path / "file", effort="small")
        assert (len(sent), done) == (1, [])
    finally:
        signal.signal(signal.SIGINT, handler)
        ended.set()
    assert (tmp_path / "file").read_bytes() == before
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]
