"""Calls that go on behind what an interrupted one has finished."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.errors import InvalidGrammarError, InvalidRecordsError
from polars_tadoc.execute import stream
from polars_tadoc.execute.stages import Stages
from polars_tadoc.records import Checkpoint, spill
from polars_tadoc.storage.atomic_write import lock
from tests.execute.test_memory_limit import CALLS, LABELLED

CALLS_OF_FRAMES = (*CALLS, "twig_filter")
PARTITIONS = 5


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed")
    for place in range(PARTITIONS):
        rows = [f"w{(place * 7 + k) % 11} the cat w{place} saw w{k % 5}" if k % 6 else None for k in range(40)]
        names = [f"row {place} {k}" for k in range(40)]
        xml = [f"<a><b/><w{k % 3}/></a>" for k in range(40)]
        for name, texts, tokenizer in (("text", rows, "words"), ("xml", xml, "xml")):
            df = pl.DataFrame({"text": texts, "name": names}).tadoc.compress("text", tokenizer=tokenizer)
            df.tadoc.write_packed(folder / f"{name}-{place}.parquet")
    return folder


def asked(call: str, files: Path, checkpoint: Path | None, **more: Any) -> pl.LazyFrame:
    """Ask over the files, with labels where there are some."""
    given: dict[str, Any] = {"queries": {"b": "//b", "w": "/a[w1]"}} if call == "twig_filter" else {}
    if call in LABELLED:
        given["id"] = "name"
    name = "xml" if call == "twig_filter" else "text"
    scan = tadoc.scan_packed(sorted(files.glob(f"{name}-*.parquet")))
    if checkpoint is not None:
        given |= {"memory_limit": "1GB", "checkpoint": checkpoint}
    return getattr(scan.tadoc, call)("text", **{**given, **more})


class Stoppable:
    """What was answered, and where it stops."""

    def __init__(self, answered: list[str], limit: list[int]) -> None:
        self.answered, self._limit = answered, limit

    def stop_at(self, corpora: int) -> None:
        """Let the call fail at a corpus; -1: at none."""
        self.answered.clear()
        self._limit[0] = corpora


@pytest.fixture
def counted() -> Iterator[Stoppable]:
    """Watch which corpora are answered."""
    answered: list[str] = []
    original = Stages._partial

    def watched(self: Any, aggregation: Any, corpus: Any, engine: Any) -> Any:
        if len(answered) == limit[0]:
            raise RuntimeError("stop")
        answered.append(corpus.key)
        return original(self, aggregation, corpus, engine)

    limit = [-1]
    with patch.object(Stages, "_partial", watched), patch.multiple(stream, FRESH_SHARE=1 << 62):
        yield Stoppable(answered, limit)


@pytest.mark.parametrize("call", CALLS_OF_FRAMES)
def test_goes_on(call: str, files: Path, tmp_path: Path, counted: Stoppable) -> None:
    expected = asked(call, files, None).collect()
    folder = tmp_path / "checkpoint"
    counted.stop_at(3)
    with pytest.raises((RuntimeError, pl.exceptions.ComputeError), match="stop"):
        asked(call, files, folder).collect()
    counted.stop_at(-1)
    assert asked(call, files, folder).collect().equals(expected)
    assert len(counted.answered) == PARTITIONS - 3
    counted.stop_at(0)
    assert asked(call, files, folder).collect().equals(expected)  # all is there
    assert folder.is_dir()


@pytest.mark.parametrize(("call", "share"), [("word_count", 64), ("word_count", 1 << 17), ("sequence_count", 64)])
def test_goes_on_after_any_commit(call: str, share: int, files: Path, tmp_path: Path) -> None:
    """Several partitions are handed over at once, and it ends without a chance to put anything right."""
    expected = asked(call, files, None).collect()
    commit, committed = Checkpoint.commit, [0]

    def stopping(self: Checkpoint, *arguments: Any) -> None:
        commit(self, *arguments)
        committed[0] += 1
        if committed[0] == last:
            raise OSError("stop")  # after which nothing more is written

    for last in range(1, 20):
        committed[0] = 0
        folder = tmp_path / f"{last}"
        with (
            patch.object(Checkpoint, "commit", stopping),
            patch.multiple(stream, FRESH_SHARE=share),
            patch.multiple(spill, CHECKPOINT_SECONDS=-1.0),
        ):
            try:
                asked(call, files, folder).collect()
            except (OSError, pl.exceptions.ComputeError) as error:
                assert "stop" in str(error)  # noqa: PT017 - the last one does not fail
        assert asked(call, files, folder).collect().equals(expected)
        if committed[0] < last:
            break
    assert last > 1


def test_limits_may_change(files: Path, tmp_path: Path, counted: Stoppable) -> None:
    """They are not applied to what is kept."""
    asked("sequence_count", files, tmp_path / "kept").collect()
    for arguments in ({"top": 2}, {"min_count": 3}):
        expected = asked("sequence_count", files, None, **arguments).collect()
        counted.stop_at(0)
        assert asked("sequence_count", files, tmp_path / "kept", **arguments).collect().equals(expected)
        counted.stop_at(-1)


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        ("word_count", {}, "call was .*sequence_count.* and is .*word_count"),
        ("sequence_count", {"n": 2}, "n was 3 and is 2"),
        ("sequence_count", {"lowercase": True}, "lowercase was false and is true"),
        ("sequence_count", {"normalize": pl.element().str.head(2)}, "normalize was null and is"),
        ("sequence_count", {"stopwords": ["the"]}, "stopwords"),
    ],
)
def test_another_question(call: str, arguments: dict[str, Any], message: str, files: Path, tmp_path: Path) -> None:
    asked("sequence_count", files, tmp_path / "kept").collect()
    with pytest.raises((ValueError, pl.exceptions.ComputeError), match=message):
        asked(call, files, tmp_path / "kept", **arguments).collect()


def test_other_files(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    df = pl.DataFrame({"text": ["to be", "or not"]}).tadoc.compress("text")
    df.tadoc.write_packed(path)
    kept = {"memory_limit": "1GB", "checkpoint": tmp_path / "kept"}
    lf = tadoc.scan_packed(path)
    lf.tadoc.word_count("text", **kept).collect()
    with pytest.raises((ValueError, pl.exceptions.ComputeError), match="limit was null and is 1"):
        lf.head(1).tadoc.word_count("text", **kept).collect()
    df.head(1).tadoc.write_packed(path)
    os.utime(path, ns=(1, 1))
    with pytest.raises(
        (ValueError, pl.exceptions.ComputeError), match=r'files, ".*rows.parquet", bytes was \d+ and is \d+'
    ):
        lf.tadoc.word_count("text", **kept).collect()


def test_a_file_that_could_not_be_read_is_named(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.parquet" for number in range(2)]
    for path in paths:
        pl.DataFrame({"text": ["to be"]}).tadoc.compress("text").tadoc.write_packed(path)
    words = tadoc.scan_packed(paths).tadoc.word_count("text", memory_limit="1GB", checkpoint=tmp_path / "kept")
    whole = paths[1].read_bytes()
    paths[1].write_bytes(whole[:-1])
    with pytest.raises((InvalidGrammarError, pl.exceptions.ComputeError), match=r"1\.parquet"):
        words.collect()
    paths[1].write_bytes(whole)
    message = r'files, ".*1\.parquet", was "unreadable" and is \{"bytes": \d+'
    with pytest.raises((ValueError, pl.exceptions.ComputeError), match=message):
        words.collect()


def test_files_that_are_new_or_gone_are_named(files: Path, tmp_path: Path) -> None:
    paths = sorted(files.glob("text-*.parquet"))
    given: dict[str, Any] = {"memory_limit": "1GB", "checkpoint": tmp_path / "kept"}
    tadoc.scan_packed(paths[:-1]).tadoc.word_count("text", **given).collect()
    other = tadoc.scan_packed(paths[1:]).tadoc.word_count("text", **given)
    new, gone = paths[-1].name, paths[0].name
    message = rf"was made for another question: of its files, .*{new} is new; .*{gone} is gone; use another folder"
    with pytest.raises((ValueError, pl.exceptions.ComputeError), match=message):
        other.collect()


@pytest.mark.parametrize("call", [*CALLS_OF_FRAMES, "sink_index"])
def test_partitions_that_may_be_skipped_have_no_fixed_numbers(call: str, files: Path, tmp_path: Path) -> None:
    scan = tadoc.scan_packed(sorted(files.glob("text-*.parquet")), on_error="skip")
    given: dict[str, Any] = {"memory_limit": "1GB", "checkpoint": tmp_path / "kept"}
    if call == "twig_filter":
        given["queries"] = {"b": "//b"}
    if call == "sink_index":
        given["path"] = tmp_path / "index"
    with pytest.raises(
        ValueError, match=rf'^{call}: checkpoint= does not support scan_packed\(on_error="skip"\), .*"raise"'
    ):
        getattr(scan.tadoc, call)(column="text", **given)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("call", ["word_count", "bm25_weights", "sink_index"])
@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (3, TypeError, "checkpoint is int, not a path"),
        (b"kept", TypeError, "checkpoint is bytes, not a path"),
        (
            "s3://bucket/kept",
            ValueError,
            'checkpoint="s3://bucket/kept" is an address; give the path of a local file or folder',
        ),
    ],
)
def test_no_path(call: str, given: Any, error: type[Exception], message: str, files: Path, tmp_path: Path) -> None:
    scan = tadoc.scan_packed(sorted(files.glob("text-*.parquet")))
    path = {"path": tmp_path / "index"} if call == "sink_index" else {}
    with pytest.raises(error, match=f"^{call}: {message}"):
        getattr(scan.tadoc, call)(**path, column="text", memory_limit="1GB", checkpoint=given)


def test_a_file_is_no_folder(files: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.parquet").touch()
    for path in (tmp_path / "pairs.parquet", tmp_path / "pairs.parquet" / "below"):
        with pytest.raises(
            (OSError, pl.exceptions.ComputeError), match=r"pairs\.parquet is a file; use a folder: checkpoint="
        ):
            asked("word_count", files, path).collect()


def test_numbers_beyond_the_partitions_are_refused(files: Path, tmp_path: Path) -> None:
    words = asked("word_count", files, tmp_path / "kept")
    words.collect()
    path = tmp_path / "kept" / "manifest.json"
    said = json.loads(path.read_text())
    assert said["covered"] == [[0, PARTITIONS - 1]]
    for covered in ([[0, PARTITIONS]], [[0, 1 << 23]], [[-1, 2]]):
        path.write_text(json.dumps({**said, "covered": covered}))
        with pytest.raises(
            (InvalidRecordsError, pl.exceptions.ComputeError),
            match=f"damaged: it names partitions beyond the {PARTITIONS}",
        ):
            words.collect()


@pytest.mark.slow
def test_the_same_normalisation_in_another_process(files: Path, tmp_path: Path) -> None:
    program = """
import sys
from pathlib import Path
import polars as pl
from tests.records.test_checkpoint import asked
normalize = pl.when(pl.element().is_in(["the", "cat"])).then(pl.element().str.head(2))
for call, more in (("word_count", {"normalize": normalize, "stopwords": ["a", "b", "th"]}), ("twig_filter", {})):
    got = asked(call, Path(sys.argv[1]), Path(sys.argv[2]) / call, **more).collect()
    print(got.height)
"""
    command = [sys.executable, "-c", program, str(files), str(tmp_path)]
    found = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert found[0] == found[1]


def test_needs_a_limit(files: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="word_count: checkpoint= is for calls with memory_limit="):
        asked("word_count", files, tmp_path, memory_limit=None)


@pytest.mark.parametrize("call", ["word_count", "bm25_weights"])
def test_needs_a_packed_scan(call: str, files: Path, tmp_path: Path) -> None:
    df = pl.DataFrame({"text": ["to be"]}).tadoc.compress("text")
    scan = tadoc.scan_packed(sorted(files.glob("text-*.parquet")))
    for lf in (df.lazy(), scan.sort("name"), scan.filter(pl.int_range(pl.len()) > 3)):
        with pytest.raises(
            ValueError, match=f"{call}: checkpoint= requires a plan that only selects documents of tadoc.scan_p"
        ):
            getattr(lf.tadoc, call)("text", memory_limit="1GB", checkpoint=tmp_path / "kept")
    assert list(tmp_path.iterdir()) == []


def test_two_at_once(files: Path, tmp_path: Path) -> None:
    """A folder is of one call at a time."""
    lazy = asked("word_count", files, tmp_path / "kept")
    lazy.collect()
    descriptor = lock(tmp_path / "kept")
    assert descriptor is not None
    try:
        with pytest.raises((OSError, pl.exceptions.ComputeError), match="another call is using the checkpoint"):
            lazy.collect()
    finally:
        os.close(descriptor)
    lazy.collect()
