"""Several processes give what one gives, in the same order, whatever becomes of some of them."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import NoneType
from typing import Any
from unittest.mock import Mock

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal as assert_nearly_equal

import polars_tadoc as tadoc
from polars_tadoc.distributed import Workers, worker_runs, workers
from polars_tadoc.distributed import file_splits as sources
from polars_tadoc.distributed import worker_tasks as answering
from polars_tadoc.distributed.pool import FINISH, Kept, Pool, Task, _Stage
from polars_tadoc.distributed.process import WorkerProcess
from polars_tadoc.errors import (
    ColumnMissingError,
    InvalidGrammarError,
    LimitExceededError,
    NotCompressedError,
    WorkerLostError,
)
from polars_tadoc.records.records import Layout, Records
from tests import workers_faults
from tests.package.test_doc_code import code, run

CALLS: dict[str, dict[str, Any]] = {
    "word_count": {},
    "sort": {"min_count": 2, "lowercase": True},
    "inverted_index": {},
    "term_vector": {"top": 3},
    "sequence_count": {"n": 2},
    "ranked_inverted_index": {"n": 2, "min_count": 2},
    "cooccurrence": {"window": 2},
    "bm25_weights": {},
    "tfidf": {"top": 2, "lowercase": True},
}
LIMITED: dict[str, dict[str, Any]] = {
    "word_count": {"top": 5, "min_count": 2, "stopwords": ["the"]},
    "sequence_count": {"n": range(2, 4), "top": 7},
    "ranked_inverted_index": {"top": 4},
    "cooccurrence": {"top": 3, "min_count": 2},
}
LABELLED = ("inverted_index", "term_vector", "ranked_inverted_index", "bm25_weights")


def assert_frame_equal(answer: pl.DataFrame, wanted: pl.DataFrame) -> None:
    """Hold one frame to another, weights to the last bit."""
    assert_nearly_equal(answer, wanted, check_exact=True)


def texts(rows: int = 60) -> pl.DataFrame:
    """Rows with words of their own and words in common, null and empty ones among them."""
    some = ["the cat sat on the mat", "a dog and the cat", "", None, "Ünïcode wörds 漢字 the cat", "b a b a b a"]
    lines = [one and f"{one} n{row % 17} u{row}" for row in range(rows) for one in [some[row % len(some)]]]
    schema = {"name": pl.String, "text": pl.String}
    return pl.DataFrame({"name": [f"r{row}" for row in range(rows)], "text": lines}, schema=schema)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of text, and the same rows packed, in partitions of seven rows."""
    made = tmp_path_factory.mktemp("files")
    df = texts()
    (made / "text").mkdir()
    df.head(25).write_parquet(made / "text" / "a.parquet", row_group_size=10)
    df.slice(25).write_parquet(made / "text" / "b.parquet", row_group_size=10)
    (made / "packed").mkdir()
    for name, rows in {"a": df.head(25), "b": df.slice(25)}.items():
        rows.tadoc.compress("text", rows_per_grammar=7).tadoc.write_packed(made / "packed" / f"{name}.parquet")
    return made


@pytest.fixture(scope="module", autouse=True)
def _small() -> Iterator[None]:
    """Let a few rows be many pieces, blocks and ranges."""
    patch = pytest.MonkeyPatch()
    patch.setattr(sources, "PIECE_BYTES", 100)
    patch.setattr(worker_runs, "BLOCK_RECORDS", 5)
    patch.setattr(worker_runs, "RANGE_RECORDS", 9)
    yield
    patch.undo()


def kinds() -> list[dict[str, int]]:
    """Numbers of workers of each kind that can be had here; ``two`` are asked, too."""
    gpus = len(workers.visible_devices())
    return [{kind: count} for kind, most in {"cpus": 4, "gpus": gpus}.items() for count in (1, 4) if count <= most]


@pytest.fixture(scope="module", params=kinds(), ids=str)
def several(request: pytest.FixtureRequest) -> Iterator[Workers]:
    with tadoc.Config(engine="gpu" if "gpus" in request.param else "cpu"):
        made = Workers(**request.param, threads=16 if "gpus" in request.param else 1)
    with made:
        yield made


@pytest.fixture(scope="module")
def two() -> Iterator[Workers]:
    with Workers(cpus=2, threads=1) as made:
        yield made


def expected(folder: Path, call: str, **arguments: Any) -> pl.DataFrame:
    answer: pl.LazyFrame = getattr(tadoc.scan_packed(folder / "packed").tadoc, call)("text", **arguments)  # type: ignore[attr-defined]
    return answer.collect()


class TestResults:
    @pytest.mark.parametrize("call", CALLS)
    def test_equals_one_process(
        self, request: pytest.FixtureRequest, several: Workers, folder: Path, call: str
    ) -> None:
        answer = getattr(several, call)(folder / "packed", **CALLS[call]).collect()
        same = assert_nearly_equal if "gpus" in request.node.name else assert_frame_equal  # it adds in another order
        same(answer, expected(folder, call, **CALLS[call]))

    @pytest.mark.parametrize("call", LIMITED)
    def test_limits(self, two: Workers, folder: Path, call: str) -> None:
        answer = getattr(two, call)(folder / "packed", "text", **LIMITED[call]).collect()
        assert_frame_equal(answer, expected(folder, call, **LIMITED[call]))

    @pytest.mark.parametrize("call", LABELLED)
    @pytest.mark.parametrize("kind", ["packed", "text"])
    def test_labels(self, two: Workers, folder: Path, call: str, kind: str) -> None:
        answer = getattr(two, call)(folder / kind, "text", id="name").collect()
        assert_frame_equal(answer, expected(folder, call, id="name"))

    @pytest.mark.parametrize("call", CALLS)
    def test_text(self, two: Workers, folder: Path, call: str) -> None:
        answer = getattr(two, call)(folder / "text", "text", **CALLS[call]).collect()
        assert_frame_equal(answer, expected(folder, call, **CALLS[call]))

    @pytest.mark.parametrize("call", CALLS)
    def test_no_rows(self, two: Workers, tmp_path: Path, call: str) -> None:
        texts(0).tadoc.compress("text").tadoc.write_packed(tmp_path / "none.parquet")  # type: ignore[attr-defined]
        for labels in [{}, {"id": "name"}] if call in LABELLED else [{}]:
            answer = getattr(two, call)(tmp_path, **labels).collect()
            assert_frame_equal(answer, getattr(texts(0).tadoc.compress("text").tadoc, call)("text", **labels))  # type: ignore[attr-defined]

    @pytest.mark.parametrize("kind", ["packed", "text"])
    def test_twigs(self, two: Workers, tmp_path: Path, kind: str) -> None:
        rows = pl.DataFrame({"xml": [f"<a><b n='{row}'/>{'<c/>' * (row % 3)}</a>" for row in range(20)]})
        rows = rows.with_columns(pl.int_range(pl.len()).alias("number") * 10)
        if kind == "packed":
            rows = rows.tadoc.compress("xml", tokenizer="xml", rows_per_grammar=6)  # type: ignore[attr-defined]
            rows.tadoc.write_packed(tmp_path / "rows.parquet")  # type: ignore[attr-defined]
        else:
            rows.write_parquet(tmp_path / "rows.parquet", row_group_size=6)
        queries = {"c": "/a/c", "both": "/a[b]/c", "four": "//b[@n='4']"}
        for labels in (None, "number"):
            answer = two.twig_filter(tmp_path, "xml", queries, id=labels).collect()
            assert_frame_equal(answer, rows.tadoc.twig_filter("xml", queries, id=labels))  # type: ignore[attr-defined]

    @pytest.mark.parametrize("kind", ["packed", "text"])
    def test_passages(self, two: Workers, folder: Path, kind: str) -> None:
        """Windows that lie in several splits, and overlap; the same as of all rows in one process."""
        df, options = texts(), {"length": 3, "lowercase": True}
        labels = {"id": "name"} if kind == "text" else {}
        found = two.repeats(folder / kind, "text", min_count=3, **options, **labels).collect()
        assert_frame_equal(found, df.tadoc.repeats("text", min_count=3, **options, **labels))  # type: ignore[attr-defined]
        assert not found["first"].all()
        for more in ({}, {"keep": "none"}, {"unit": "row", "share": 0.6}):
            left = two.drop_repeats(folder / kind, "text", length=3, **more).collect()
            left = left.tadoc.decompress("text") if kind == "packed" else left  # type: ignore[attr-defined]
            assert_frame_equal(left, df.tadoc.drop_repeats("text", length=3, **more))  # type: ignore[attr-defined]
            assert not left.equals(df)
        reference = pl.Series(["on the mat n0", "Wörds 漢字 the"])
        known = {"reference_id": pl.Series(["x", "y"]), **options}
        matches = two.overlap(folder / kind, "text", reference, **known, **labels).collect()
        assert_frame_equal(matches, df.tadoc.overlap("text", reference, **known, **labels))  # type: ignore[attr-defined]
        assert set(matches["reference"]) == {"x", "y"}

    @pytest.mark.parametrize("kind", ["packed", "text"])
    def test_near_duplicates(self, two: Workers, folder: Path, kind: str) -> None:
        """Copies and similar rows in one split and in several; the same as of all rows in one process."""
        df, labels = texts(), {"id": "name"} if kind == "text" else {}
        options = {"ngram": 2, "lowercase": True, "normalize": pl.element().str.replace(r"\d\d+$", ""), **labels}
        found = two.near_duplicates(folder / kind, "text", threshold=0.4, **options).collect()
        assert_frame_equal(found, df.tadoc.near_duplicates("text", threshold=0.4, **options))  # type: ignore[attr-defined]
        groups = two.duplicate_groups(folder / kind, "text", threshold=0.4, **options).collect()
        assert_frame_equal(groups, df.tadoc.duplicate_groups("text", threshold=0.4, **options))  # type: ignore[attr-defined]
        assert 0 < groups["keep"].sum() < len(df)
        assert found["similarity"].min() < 1
        with pytest.raises(LimitExceededError, match="near_duplicates: signatures propose more than max_cand"):
            two.near_duplicates(folder / kind, "text", max_candidates=5, ngram=1).collect()

    def test_passages_of_no_rows(self, two: Workers, tmp_path: Path) -> None:
        texts(0).write_parquet(tmp_path / "none.parquet")
        assert_frame_equal(two.drop_repeats(tmp_path, "text").collect(), texts(0))
        assert_frame_equal(
            two.repeats(tmp_path, "text", id="name").collect(), texts(0).tadoc.repeats("text", id="name")
        )  # type: ignore[attr-defined]

    def test_calls_from_two_threads(self, two: Workers, folder: Path) -> None:
        with ThreadPoolExecutor(2) as threads:
            answers = list(threads.map(lambda call: getattr(two, call)(folder / "packed").collect(), ["sort"] * 4))
        assert all(answer.equals(expected(folder, "sort")) for answer in answers)

    def test_what_is_found_is_written_when_a_share_is_full(self, folder: Path) -> None:
        with Workers(cpus=1, threads=1, memory_limit=1) as one:
            for call, arguments in CALLS.items():
                answer = getattr(one, call)(folder / "packed", **arguments).collect()
                assert_frame_equal(answer, expected(folder, call, **arguments))


class TestCompress:
    def test_gives_the_rows_back(self, two: Workers, folder: Path, tmp_path: Path) -> None:
        packed = two.compress(folder / "text", "text", tmp_path / "packed")
        assert_frame_equal(packed.tadoc.decompress().collect(), texts())  # type: ignore[attr-defined]
        assert len(list((tmp_path / "packed").iterdir())) > 3

    def test_files_do_not_depend_on_the_number_of_workers(self, several: Workers, folder: Path, tmp_path: Path) -> None:
        several.compress(folder / "text", "text", tmp_path / "packed", lossless=False)
        one = tmp_path / "packed" / "part-0000000.parquet"
        rows = pl.read_parquet(folder / "text" / "a.parquet").head(10).tadoc.compress("text", lossless=False)  # type: ignore[attr-defined]
        assert_frame_equal(tadoc.scan_packed(one).collect(), rows)

    def test_no_rows(self, two: Workers, tmp_path: Path) -> None:
        texts(0).write_parquet(tmp_path / "none.parquet")
        packed = two.compress(tmp_path / "none.parquet", "text", tmp_path / "packed")
        assert_frame_equal(packed.tadoc.decompress().collect(), texts(0))  # type: ignore[attr-defined]

    def test_columns_in_another_order(self, two: Workers, tmp_path: Path) -> None:
        texts(20).write_parquet(tmp_path / "a.parquet")
        texts(20).select("text", "name").write_parquet(tmp_path / "b.parquet")
        packed = two.compress([tmp_path / "a.parquet", tmp_path / "b.parquet"], "text", tmp_path / "packed")
        assert_frame_equal(packed.tadoc.decompress().collect(), pl.concat([texts(20)] * 2))  # type: ignore[attr-defined]
        texts(20).select("text").write_parquet(tmp_path / "b.parquet")
        with pytest.raises(
            pl.exceptions.SchemaError, match=r'b\.parquet: columns differ .*"name" is not there, in the first file'
        ):
            two.compress([tmp_path / "a.parquet", tmp_path / "b.parquet"], "text", tmp_path / "again")

    def test_addresses_are_refused(self, two: Workers, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="word_count: s3://bucket/x is an address; only local files can be read"):
            two.word_count("s3://bucket/x", "text")
        with pytest.raises(ValueError, match="compress: s3://bucket/x is an address"):
            two.compress("s3://bucket/x", "text", tmp_path / "packed")

    def test_files_named_twice(self, two: Workers, tmp_path: Path) -> None:
        for name, words in (("a", ["aa", None]), ("b", ["bb", "cc"])):
            pl.DataFrame({"text": words}).write_parquet(tmp_path / f"{name}.parquet")
        files = [tmp_path / f"{name}.parquet" for name in "aaba"]
        packed = two.compress(files, "text", tmp_path / "packed")
        expected = ["aa", None, "aa", None, "bb", "cc", "aa", None]
        assert packed.tadoc.decompress("text").collect()["text"].to_list() == expected
        assert two.word_count(files, "text").collect().rows() == [("aa", 3), ("bb", 1), ("cc", 1)]
        rows = two.inverted_index(files, "text").collect().filter(pl.col("word") == "cc")
        assert rows.row(0)[1] == [5]

    def test_the_documented_program(self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "pages").symlink_to(folder / "text")
        names = run([code("distributed")[3].replace("gpus=4", "cpus=1")], {})
        assert_frame_equal(names["tadoc"].scan_packed("pages.tadoc").tadoc.decompress().collect(), texts())
        wanted = pl.read_parquet("pages").tadoc.compress("text").tadoc.sequence_count(n=3)  # type: ignore[attr-defined]
        assert_frame_equal(pl.read_parquet("trigrams.parquet"), wanted)

    def test_files_by_relative_paths(self, two: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Workers are in the folder that this process was in when they were started."""
        pl.DataFrame({"text": ["to be"]}).write_parquet(tmp_path / "a.parquet")
        monkeypatch.chdir(tmp_path)
        assert two.word_count("a.parquet", "text").collect().height == 2
        assert two.compress(".", "text", "packed").collect().height == 1

    def test_a_folder_with_files_stays(self, two: Workers, folder: Path, tmp_path: Path) -> None:
        (tmp_path / "mine").touch()
        with pytest.raises(FileExistsError, match="already exists"):
            two.compress(folder / "text", "text", tmp_path)
        assert [file.name for file in tmp_path.iterdir()] == ["mine"]

    def test_an_error_leaves_nothing(self, two: Workers, folder: Path, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="regex"):
            two.compress(folder / "text", "text", tmp_path / "packed", tokenizer="regex")
        (tmp_path / "text").mkdir()
        good = (folder / "text" / "a.parquet").read_bytes()
        (tmp_path / "text" / "a.parquet").write_bytes(good)
        middle = len(good) // 3
        (tmp_path / "text" / "b.parquet").write_bytes(good[:middle] + bytes(300) + good[middle + 300 :])
        with pytest.raises(Exception, match=r"."):
            two.compress(tmp_path / "text", "text", tmp_path / "packed")
        assert [file.name for file in tmp_path.iterdir()] == ["text"]


class TestLostWorkers:
    """Whoever dies, at whatever it was, the result is the same."""

    @pytest.mark.parametrize(
        ("call", "after"),
        [
            *(("word_count", after) for after in (0, 1, 3)),
            pytest.param("sequence_count", 1, marks=pytest.mark.slow),
            pytest.param("term_vector", 3, marks=pytest.mark.slow),
            pytest.param("near_duplicates", 6, marks=pytest.mark.slow),  # rows are signed, and are sent
        ],
    )
    def test_a_killed_worker_changes_nothing(
        self, two: Workers, folder: Path, tmp_path: Path, call: str, after: int
    ) -> None:
        answer = getattr(two, call)(folder / "packed", normalize=workers_faults.dying(tmp_path, after)).collect()
        assert len(list(tmp_path.glob("killed-*"))) == 1
        assert_frame_equal(answer, expected(folder, call))

    def test_the_only_worker(self, folder: Path, tmp_path: Path) -> None:
        with Workers(cpus=1, threads=1) as one:
            answer = one.sort(folder / "packed", normalize=workers_faults.dying(tmp_path, 2, times=2)).collect()
        assert_frame_equal(answer, expected(folder, "sort"))

    def test_one_that_nobody_waits_for(self, two: Workers, folder: Path) -> None:
        os.kill(two._pool._workers[0].number, signal.SIGKILL)
        assert_frame_equal(two.word_count(folder / "packed").collect(), expected(folder, "word_count"))

    @pytest.mark.slow
    def test_work_that_kills_each(self, two: Workers, folder: Path, tmp_path: Path) -> None:
        said = r"word_count: 3 workers were lost over .*a\.parquet, row group \d.* it was killed by SIGKILL; .*memory"
        with pytest.raises(WorkerLostError, match=said):
            two.word_count(folder / "packed", normalize=workers_faults.dying(tmp_path, 0, times=100))
        assert_frame_equal(two.word_count(folder / "packed").collect(), expected(folder, "word_count"))

    def test_no_more_processes(self, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> None:
            raise OSError("no more processes")

        with Workers(cpus=2, threads=1) as both:
            monkeypatch.setattr(both._pool, "_start", refuse)
            with pytest.raises(OSError, match="no more processes"):
                both.word_count(folder / "packed", normalize=workers_faults.dying(tmp_path, 0, times=2))
        started: list[WorkerProcess] = []

        def refuse_the_second(pool: Pool, name: str) -> WorkerProcess:
            if started:
                raise OSError("no more processes")
            started.append(start(pool, name))
            return started[0]

        start = Pool._start
        monkeypatch.setattr(Pool, "_start", refuse_the_second)
        with pytest.raises(OSError, match="no more processes"):
            Workers(cpus=2, threads=1)
        assert not started[0].alive

    def test_what_was_answered_before_it_was_lost_counts_once(self) -> None:
        """The answer is read when others have already taken over what the process had kept."""
        gone, other = Mock(alive=True), Mock(alive=True)
        tasks = [Task(str(number), ()) for number in range(3)]
        stage = _Stage("call", tasks, Mock(), Mock(), left=deque(range(3)))
        assert [stage.take(0, lambda: gone) for _ in range(2)] == [0, 1]
        stage.answered(0, gone, 0, None)
        gone.alive = False
        assert stage.take(1, lambda: other) == 0  # what it had kept is done again
        stage.answered(0, gone, 1, Kept(frozenset({0, 1}), "of the one that is gone"))
        assert sorted(stage.take(1, lambda: other) for _ in range(2)) == [1, 2]  # type: ignore[type-var]
        for number in range(3):
            stage.answered(1, other, number, None)
        assert stage.take(1, lambda: other) == FINISH
        stage.answered(1, other, FINISH, Kept(frozenset(range(3)), "of the other"))
        assert (stage.handed_over, stage.done, stage.over) == (["of the other"], {0, 1, 2}, True)

    def test_nobody_has_them_any_more(self) -> None:
        workers = Workers(cpus=1, threads=1)
        process = workers._pool._workers[0]
        del workers
        gc.collect()
        assert process._gone.wait(30)

    def test_an_error_that_cannot_be_read(self, two: Workers) -> None:
        with pytest.raises(RuntimeError, match=r"cannot be sent"):
            two._pool.run("call", workers_faults.raises, [Task("one", ())])

    @pytest.mark.slow
    def test_out_of_memory(self, two: Workers, folder: Path) -> None:
        with pytest.raises(WorkerLostError, match=r"last one because out of memory: (.|\n)*no more than this"):
            two.word_count(folder / "packed", normalize=workers_faults.out_of_memory())
        assert_frame_equal(two.word_count(folder / "packed").collect(), expected(folder, "word_count"))


class TestErrors:
    def test_a_damaged_partition_is_named(self, two: Workers, folder: Path, tmp_path: Path) -> None:
        for name in ("a", "b"):
            (tmp_path / f"{name}.parquet").write_bytes((folder / "packed" / f"{name}.parquet").read_bytes())
        damaged = bytearray((tmp_path / "b.parquet").read_bytes())
        damaged[50:150] = bytes(100)
        (tmp_path / "b.parquet").write_bytes(damaged)
        with pytest.raises(InvalidGrammarError, match=r"b\.parquet") as caught:
            two.word_count(tmp_path)
        assert any("In worker process" in note for note in caught.value.__notes__)
        assert not [one for one in two._folder.path.glob("word_count-*") if not list(one.glob("result-*"))]
        assert_frame_equal(two.word_count(folder / "packed").collect(), expected(folder, "word_count"))

    def test_a_damaged_text_file_is_named(self, two: Workers, folder: Path, tmp_path: Path) -> None:
        whole = (folder / "text" / "a.parquet").read_bytes()
        (tmp_path / "a.parquet").write_bytes(whole[:100] + bytes(200) + whole[300:])
        with pytest.raises(InvalidGrammarError, match=r"a\.parquet: not a Parquet file, or damaged"):
            two.sort(tmp_path, "text")
        (tmp_path / "a.parquet").write_bytes(whole[:-20])
        with pytest.raises(InvalidGrammarError, match=r"sort: .*a\.parquet: not a Parquet file"):
            two.sort(tmp_path, "text")

    def test_closed_while_others_wait(self, folder: Path, tmp_path: Path) -> None:
        one = Workers(cpus=1, threads=1)
        process = one._pool._workers[0]
        with ThreadPoolExecutor(3) as threads:
            calls = [threads.submit(one.sequence_count, folder / "text", "text") for _ in range(3)]
            one.close()
        assert all(isinstance(call.exception(), (ValueError, WorkerLostError, NoneType)) for call in calls)
        assert not process.alive
        assert one._pool._workers[0] is process

    def test_closed(self, folder: Path) -> None:
        with Workers(cpus=1, threads=1) as one:
            pass
        with pytest.raises(ValueError, match="word_count: the workers are closed"):
            one.word_count(folder / "packed")

    def test_arguments(self, two: Workers, folder: Path) -> None:
        for wrong in ({}, {"gpus": 1, "cpus": 1}):
            with pytest.raises(ValueError, match="either gpus=2"):
                Workers(**wrong)
        with pytest.raises(ValueError, match="cpus"):
            Workers(cpus=0)
        with pytest.raises(FileNotFoundError, match=r"word_count: .*nothing: no Parquet file found"):
            two.word_count(folder / "nothing")
        with pytest.raises(
            TypeError, match="word_count: workers read Parquet files; give their paths, not a DataFrame"
        ):
            two.word_count(texts())  # type: ignore[arg-type]
        with pytest.raises(NotCompressedError, match=r"holds text, .*a\.parquet packed rows"):
            two.word_count([folder / "text", folder / "packed"], "text")
        with pytest.raises(FileNotFoundError, match=r"compress: folder .*nowhere does not exist"):
            two.compress(folder / "text", "text", folder / "nowhere" / "packed")
        with pytest.raises(NotCompressedError, match=r'workers\.word_count\(source, "text"\)'):
            two.word_count(folder / "text")
        with pytest.raises(ColumnMissingError, match='did you mean "text"'):
            two.word_count(folder / "text", "texts")
        with pytest.raises(NotCompressedError, match='is "text", not "name"'):
            two.word_count(folder / "packed", "name")
        with pytest.raises(ColumnMissingError, match="there is no column"):
            two.inverted_index(folder / "packed", id="nothing")
        with pytest.raises(ValueError, match='id="text" is the packed column itself'):
            two.inverted_index(folder / "packed", id="text")

    @pytest.mark.skipif("gpu" in tadoc.testing.engines(), reason="there is a GPU")
    def test_no_gpu(self) -> None:
        for asked in (1, "all"):
            with pytest.raises(tadoc.errors.EngineUnavailableError, match="0 GPUs are visible: "):
                Workers(gpus=asked)


@given(st.lists(st.sampled_from([1, 2, 3, 65_534, 65_535, 65_536, 65_537, 1 << 40]), max_size=40))
def test_order(counts: list[int]) -> None:
    """By count falling, equal ones as they came; counts that 16 bits do not tell apart among them."""
    layout = Layout(("word",), 1, by_count=True)
    keys = np.arange(len(counts), dtype=np.uint32).reshape(-1, 1)
    words = pa.array([f"{number:03}" for number in range(len(counts))], pa.large_string())
    records = Records(words, keys, np.array(counts, np.uint64))
    order = answering._order(layout, records).tolist()
    assert order == sorted(range(len(counts)), key=lambda place: (-counts[place], place))
    for place in range(len(counts)):
        before = answering._before(layout, records, answering._place(layout, records, place))
        assert np.flatnonzero(before).tolist() == sorted(order[: order.index(place)])


def wait_until(what: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_whoever_waits_goes(folder: Path, tmp_path: Path, how: signal.Signals) -> None:
    """Interrupted, all is cleaned up; killed, the workers go at least."""
    script = f"""
        import signal
        from pathlib import Path
        import polars_tadoc as tadoc
        from polars_tadoc.distributed import Workers
        from tests.workers_faults import waiting
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
        folder = Path({str(tmp_path)!r})
        tadoc.Config.set(spill_folder=str(folder))
        with Workers(cpus=2, threads=1) as workers:
            print(*(one.number for one in workers._pool._workers.values()), flush=True)
            workers.word_count({str(folder / "packed")!r}, normalize=waiting(folder))
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as started:
        interrupted(started, how, tmp_path)
    if how == signal.SIGINT:
        assert not list(tmp_path.glob("tadoc-*"))


def interrupted(started: subprocess.Popen[str], how: signal.Signals, folder: Path) -> None:
    """Send a signal when both workers are at something; they go with the process that started them."""
    assert started.stdout is not None
    numbers = [int(number) for number in started.stdout.readline().split()]
    assert len(numbers) == 2
    wait_until(lambda: len(list(folder.glob("waits-*"))) == 2)
    started.send_signal(how)
    assert started.wait(30) != 0
    wait_until(lambda: not any(Path(f"/proc/{number}").exists() for number in numbers))


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
def test_an_interrupt_while_workers_start_ends_them_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They import for seconds before they see that nobody calls them any more."""
    started: list[WorkerProcess] = []

    def interrupted(worker: WorkerProcess) -> None:
        started.append(worker)
        raise KeyboardInterrupt

    monkeypatch.setattr(WorkerProcess, "wait_until_ready", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Workers(cpus=2)
    (worker,) = started
    assert not worker.alive
    assert worker._process.returncode == -signal.SIGKILL
