"""Indices written beyond memory: the files are those that the index built in memory would save."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal, assert_series_equal

import polars_tadoc as tadoc
from polars_tadoc.errors import ColumnMissingError, LimitExceededError, NotCompressedError
from polars_tadoc.execute import windows
from polars_tadoc.index.codecs import CODECS, require_codec
from polars_tadoc.index.codecs.numbers import pack_numbers, pack_streamed
from polars_tadoc.index.construct import posting_files as pieces
from polars_tadoc.index.construct import sink, sink_documents
from polars_tadoc.index.construct.collect import count_words
from polars_tadoc.index.construct.disk_array import DiskArray
from polars_tadoc.index.construct.posting_files import PostingsWriter
from polars_tadoc.index.store.folder import Reader, Writer
from tests import handmade

numbers = st.one_of(st.integers(0, 3), st.integers(0, 300), st.integers(0, (1 << 56) - 1))


@given(numbers=st.lists(numbers, max_size=300), size=st.integers(1, 5))
def test_streamed_numbers_are_packed_as_those_in_memory(numbers: list[int], size: int) -> None:
    given = np.array(numbers, np.uint64)
    with tempfile.TemporaryDirectory() as folder:
        made = iter(range(100))

        class Short(DiskArray):
            def chunks(self, _size: int = 0) -> Iterator[npt.NDArray[Any]]:
                return super().chunks(8 * size)

        def new_array() -> DiskArray:
            return Short(Path(folder) / str(next(made)), np.uint64)

        held, data = new_array(), bytearray()
        held.append(given)
        pack_streamed(held, new_array, data.extend)
    assert bytes(data) == pack_numbers(given).tobytes()


sizes = st.one_of(st.integers(1, 4), st.sampled_from([127, 128, 129, 256, 300]))


@pytest.mark.parametrize("codec", CODECS)
@given(data=st.data(), lists=st.lists(sizes, max_size=12), seed=st.integers(0, 1 << 30))
def test_lists_in_pieces_fill_the_files_of_all_at_once(
    codec: str, data: st.DataObject, lists: list[int], seed: int
) -> None:
    random = np.random.default_rng(seed)
    documents = 1000
    held = [np.sort(random.choice(documents, size, replace=False)).astype(np.uint32) for size in lists]
    counts = [np.minimum(random.zipf(1.3, size), 1 << 31).astype(np.uint32) for size in lists]
    how = require_codec(codec)
    expected = how.pack(how.encode(*_joined(held, counts), documents))
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "LONG", 128)
        scratch, saved = Path(folder) / "scratch", Path(folder) / "saved"
        scratch.mkdir()
        saved.mkdir()
        lists_writer, writer = PostingsWriter(how, scratch), Writer(saved)
        at = 0
        while at < len(held):
            step = data.draw(st.integers(0, 4))
            if step:
                lists_writer.append(*_joined(held[at : at + step], counts[at : at + step]))
            else:
                arrays = [DiskArray(scratch / name, np.uint32) for name in ("long documents", "long counts")]
                arrays[0].append(held[at])
                arrays[1].append(counts[at])
                lists_writer.append_long(*arrays)
            at += max(step, 1)
        assert lists_writer.finish(writer, "segment") == list(expected)
        writer.finish({})
        reader = Reader(saved, verify=True, mapped=False)
        found = {name: reader.array(f"segment.{name}")() for name in expected}
    for name, array in expected.items():
        assert found[name].dtype == array.dtype, name
        assert found[name].tobytes() == array.tobytes(), name


def _joined(
    documents: list[npt.NDArray[np.uint32]], counts: list[npt.NDArray[np.uint32]]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    none = np.zeros(0, np.uint32)
    offsets = np.cumsum([0, *map(len, documents)])
    return offsets, np.concatenate([none, *documents]), np.concatenate([none, *counts])


LIMIT = "1MB"


def frame(rows: int, nulls: bool, rows_per_grammar: int = 300) -> pl.DataFrame:
    words = [["a"] * (row % 5) + [f"w{n}" for n in range(row % 7, 60, 11)] + [f"u{row}", "B"] for row in range(rows)]
    texts = [None if nulls and row % 17 == 3 else " ".join(own) for row, own in enumerate(words)]
    kinds = pl.Series(["x", "y", None] * rows, dtype=pl.Categorical).head(rows)
    made: pl.DataFrame = pl.DataFrame(
        {
            "name": [f"document {row}" for row in range(rows)],
            "year": [row % 30 for row in range(rows)],
            "kind": kinds,
            "text": pl.Series(texts, dtype=pl.String),
        }
    ).tadoc.compress("text", rows_per_grammar=rows_per_grammar)  # type: ignore[attr-defined]
    return made


def assert_same_files(sunk: Path, saved: Path) -> None:
    """Everything is the same, byte for byte, but tables that have other row groups."""
    own, other = (json.loads((folder / "header.json").read_text()) for folder in (sunk, saved))
    assert {path.name for path in sunk.iterdir()} == {path.name for path in saved.iterdir()}
    assert {key: own[key] for key in own if key not in ("crc32", "files")} == {
        key: other[key] for key in other if key not in ("crc32", "files")
    }
    tables = {"text.parquet", "ids.arrow", "metadata.arrow"}
    for name in sorted(set(other["files"]) - tables):
        assert (sunk / name).read_bytes() == (saved / name).read_bytes(), name
    one, two = tadoc.load_index(sunk), tadoc.load_index(saved)
    assert_series_equal(one.ids, two.ids)
    assert (one.metadata is None) == (two.metadata is None)
    if one.metadata is not None and two.metadata is not None:
        assert_frame_equal(one.metadata, two.metadata)
    text, expected = one.stored.text, two.stored.text
    assert (text is None) == (expected is None)
    if text is not None and expected is not None:
        assert text.tadoc.decompress().equals(expected.tadoc.decompress())  # type: ignore[attr-defined]


FORMS = ("packed", "packed with nulls", "rows", "shuffled", "few", "none")
OPTIONS: list[dict[str, Any]] = [
    {},
    {"id": "name", "metadata": ["year", "kind"], "lowercase": True},
    {"metadata": ["name"], "store": False, "stopwords": ["a"]},
]


@pytest.mark.parametrize(
    ("form", "how", "codec"),
    [  # every pair of form, options and codec
        (form, how, list(CODECS)[(place + turn) % len(CODECS)])
        for place, form in enumerate(FORMS)
        for turn, how in enumerate(OPTIONS)
    ],
)
def test_the_saved_index_is_the_one_built_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: str, form: str, how: dict[str, Any]
) -> None:
    monkeypatch.setattr(pieces, "LONG", 256)
    monkeypatch.setattr(sink, "LONG", 256)
    monkeypatch.setattr(sink, "RANGE", 100)  # lists are torn
    monkeypatch.setattr(sink_documents, "HELD_BYTES", 1000)
    monkeypatch.setattr(windows, "WORD_BYTES", 1000)  # packed rows are cut
    df = frame(800, nulls=form != "packed", rows_per_grammar=160)
    df.tadoc.write_packed(tmp_path / "packed.parquet")  # type: ignore[attr-defined]
    plan = tadoc.scan_packed(tmp_path / "packed.parquet")
    if form == "shuffled":
        df = df.sample(fraction=1.0, shuffle=True, seed=1)
    if form in ("rows", "shuffled"):
        plan = df.lazy()
    if form in ("few", "none"):
        kept = pl.col("year") == (7 if form == "few" else 99)
        plan, df = plan.filter(kept), df.filter(kept)
    with tadoc.Config(spill_folder=str(tmp_path)):
        plan.tadoc.sink_index(tmp_path / "sunk", codec=codec, memory_limit=LIMIT, **how)  # type: ignore[attr-defined]
    df.tadoc.build_index("text", codec=codec, **how).save(tmp_path / "saved")  # type: ignore[attr-defined]
    assert_same_files(tmp_path / "sunk", tmp_path / "saved")
    assert {path.name for path in tmp_path.iterdir()} == {"packed.parquet", "sunk", "saved"}


@pytest.mark.parametrize("form", ["packed", "rows"])
@pytest.mark.parametrize("text", [[None] * 3, ["a b", "b", None], [None, "a"], ["a", None, "b"], []], ids=str)
def test_documents_are_numbered_alike(tmp_path: Path, form: str, text: list[str | None]) -> None:
    df = pl.DataFrame({"text": pl.Series(text, dtype=pl.String)}).tadoc.compress("text")  # type: ignore[attr-defined]
    plan = df.lazy()
    if form == "packed":
        df.tadoc.write_packed(tmp_path / "packed.parquet")
        plan = tadoc.scan_packed(tmp_path / "packed.parquet")
    plan.tadoc.sink_index(tmp_path / "sunk")
    df.tadoc.build_index("text").save(tmp_path / "saved")
    assert_same_files(tmp_path / "sunk", tmp_path / "saved")


def test_searches_phrases_and_snippets_are_the_same(tmp_path: Path) -> None:
    df = frame(1000, nulls=True)
    df.lazy().tadoc.sink_index(tmp_path / "index", id="name")  # type: ignore[attr-defined]
    own, other = tadoc.load_index(tmp_path / "index"), df.tadoc.build_index("text", id="name")  # type: ignore[attr-defined]
    queries = ["a w3", '"w3 w14"', "u77 B", "nothing"]
    found = own.search(queries)
    assert_frame_equal(found, other.search(queries))
    assert_frame_equal(own.snippets(found, queries), other.snippets(found, queries))


def test_a_folder_appears_when_it_is_complete_and_is_replaced_only_when_asked(tmp_path: Path) -> None:
    df = frame(50, nulls=False)
    plan = df.lazy()
    plan.tadoc.sink_index(tmp_path / "index")  # type: ignore[attr-defined]
    with pytest.raises(FileExistsError, match=r"sink_index: .* already exists; overwrite=True"):
        plan.tadoc.sink_index(tmp_path / "index")  # type: ignore[attr-defined]

    def fails(batch: pl.DataFrame) -> pl.DataFrame:
        raise RuntimeError("the plan fails")

    with pytest.raises(RuntimeError, match="the plan fails"):
        plan.map_batches(fails).tadoc.sink_index(tmp_path / "index", overwrite=True)  # type: ignore[attr-defined]
    assert tadoc.load_index(tmp_path / "index").documents == 50
    df.head(20).lazy().tadoc.sink_index(tmp_path / "index", overwrite=True)  # type: ignore[attr-defined]
    assert tadoc.load_index(tmp_path / "index").documents == 20
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


KILLED = """
import os, signal, sys
import polars as pl
import polars_tadoc as tadoc
from polars_tadoc.index.construct import posting_files as pieces

def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)

pieces.PostingsWriter.finish = killed
tadoc.Config.set(spill_folder=sys.argv[2])
tadoc.scan_packed(sys.argv[1]).tadoc.sink_index(sys.argv[2] + "/index", memory_limit="1MB")
"""


@pytest.mark.slow
def test_a_killed_process_leaves_no_index_and_the_next_one_cleans_up(tmp_path: Path) -> None:
    df = frame(1500, nulls=False)
    df.tadoc.write_packed(tmp_path / "packed.parquet")  # type: ignore[attr-defined]
    work = tmp_path / "work"
    work.mkdir()
    command = [sys.executable, "-c", KILLED, str(tmp_path / "packed.parquet"), str(work)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not (work / "index").exists()
    assert list(work.iterdir())
    with tadoc.Config(spill_folder=str(work)):
        tadoc.scan_packed(tmp_path / "packed.parquet").tadoc.sink_index(  # type: ignore[attr-defined]
            work / "index", memory_limit=LIMIT
        )
    assert [path.name for path in work.iterdir()] == ["index"]


@pytest.mark.parametrize("how", [{}, {"id": "name", "lowercase": True}], ids=["plain", "id"])
def test_an_interrupted_call_goes_on_behind_the_partitions_that_are_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]
) -> None:
    df = frame(1500, nulls=True)
    df.tadoc.write_packed(tmp_path / "packed.parquet")  # type: ignore[attr-defined]
    plan = tadoc.scan_packed(tmp_path / "packed.parquet")
    asked = {**how, "checkpoint": tmp_path / "checkpoint", "memory_limit": LIMIT}
    counted: list[int] = []

    def counting(corpora: Any, rows: npt.NDArray[np.int64], *others: Any) -> Any:
        if counted == [0, 300]:
            counted.clear()
            raise KeyboardInterrupt
        counted.append(int(rows[0]))
        return count_words(corpora, rows, *others)

    monkeypatch.setattr(sink, "count_words", counting)
    with pytest.raises(KeyboardInterrupt):
        plan.tadoc.sink_index(tmp_path / "sunk", **asked)  # type: ignore[attr-defined]
    assert not (tmp_path / "sunk").exists()
    plan.tadoc.sink_index(tmp_path / "sunk", **asked)  # type: ignore[attr-defined]
    assert counted == [600, 900, 1200]
    df.tadoc.build_index("text", **how).save(tmp_path / "saved")  # type: ignore[attr-defined]
    assert_same_files(tmp_path / "sunk", tmp_path / "saved")
    with pytest.raises(ValueError, match="another question: stopwords"):
        plan.tadoc.sink_index(tmp_path / "other", stopwords=["a"], **asked)  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="sink_index: checkpoint= requires a plan that only selects documents"):
        df.lazy().tadoc.sink_index(tmp_path / "other", **asked)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ({"id": "nam"}, ColumnMissingError, "name"),
        ({"metadata": ["yeer"]}, ColumnMissingError, "year"),
        ({"metadata": "year"}, TypeError, r'metadata=\["year"\]'),
        ({"codec": "zip"}, ValueError, "pfordelta"),
        ({"store": 1}, TypeError, "store=1"),
        ({"overwrite": None}, TypeError, "overwrite=None"),
        ({"memory_limit": None}, TypeError, "memory_limit=None"),
        ({"memory_limit": "much"}, ValueError, "2GB"),
        ({"memory_limit": 100}, LimitExceededError, "memory_limit=100"),
        ({"column": "year"}, NotCompressedError, "year"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_written(
    tmp_path: Path, how: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        frame(30, nulls=False).lazy().tadoc.sink_index(tmp_path / "index", **how)  # type: ignore[attr-defined]
    assert not list(tmp_path.iterdir())


def test_texts_cut_otherwise_are_refused(tmp_path: Path) -> None:
    one = pl.DataFrame({"text": ["to be"]}).tadoc.compress("text")  # type: ignore[attr-defined]
    two = pl.DataFrame({"text": ["to be"]}).tadoc.compress("text", tokenizer="whitespace")  # type: ignore[attr-defined]
    for number, part in enumerate((one, two)):
        part.tadoc.write_packed(tmp_path / f"{number}.parquet")
    with pytest.raises(ValueError, match='different tokenizers, "words", "whitespace"'):
        tadoc.scan_packed(tmp_path).tadoc.sink_index(tmp_path / "index")  # type: ignore[attr-defined]
    assert not (tmp_path / "index").exists()


def test_documents_of_too_many_words_are_refused(tmp_path: Path) -> None:
    doubling = handmade.grammar(["a", "b"], [[0, 0], *([2 + rule, 2 + rule] for rule in range(30))])
    column = handmade.column(doubling, [[0], [32, 32]])
    with pytest.raises(LimitExceededError, match="sink_index: row 1 has more than 4,294,967,295 words"):
        column.to_frame().lazy().tadoc.sink_index(tmp_path / "index")  # type: ignore[attr-defined]
