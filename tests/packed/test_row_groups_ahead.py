"""Row groups are decoded side by side: same rows, same errors, none that a plan does not need."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import Any
from unittest.mock import patch

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_tadoc as tadoc
from polars_tadoc.errors import InvalidGrammarError, SkippedPartitionWarning
from polars_tadoc.model.grammar_cache import grammars
from polars_tadoc.packed import contexts, unpack
from polars_tadoc.packed.faults import Faults
from polars_tadoc.packed.files import SYMBOL_BYTES, PackedFile
from polars_tadoc.packed.hive_columns import HiveColumns
from polars_tadoc.packed.scan import PackedScan
from polars_tadoc.storage.files import LocalFile
from tests.packed.test_scan_packed import spoil

GROUPS, ROWS = 9, 700
TEXT = [
    None
    if row % 97 == 0
    else f"2026-11-{row % 28 + 1:02} host{row % 7} task[{row * row % 9973}]:  took {row % 13} ms\n"
    for row in range(GROUPS * ROWS)
]
FRAME = pl.DataFrame({"number": range(len(TEXT)), "text": TEXT})


@pytest.fixture(scope="module", params=["default", "small"])
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ahead") / f"{request.param}.parquet"
    rows = FRAME.with_columns(text=tadoc.compress(FRAME["text"], rows_per_grammar=ROWS))
    rows.tadoc.write_packed(path, effort=request.param)
    return path


@pytest.fixture(autouse=True)
def without_caches() -> None:
    grammars.clear()
    unpack.payloads.clear()


class Reads:
    """The row groups whose text is read, and how many at once."""

    def __init__(self) -> None:
        self.groups: list[int] = []
        self.most = self._now = 0
        self._lock = Lock()
        self._table = PackedFile.table

    def table(self, file: PackedFile, group: int, names: list[str]) -> Any:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
            self.groups += [group] * ("text" in names)
        try:
            return self._table(file, group, names)
        finally:
            with self._lock:
                self._now -= 1


@pytest.fixture
def reads() -> Iterator[Reads]:
    seen = Reads()
    with patch.object(PackedFile, "table", lambda *given: seen.table(*given)):
        yield seen


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
def test_rows_are_the_same_with_any_number_of_threads(path: Path, threads: int, engine: Any) -> None:
    lf = tadoc.scan_packed([path, path])
    with tadoc.Config(threads=threads):
        assert_frame_equal(lf.tadoc.decompress().collect(engine=engine), pl.concat([FRAME, FRAME]))
        few = pl.col("number") % 1000 > 950
        assert_frame_equal(
            lf.filter(few).tadoc.decompress().collect(engine=engine), pl.concat([FRAME, FRAME]).filter(few)
        )
        assert (
            lf.tadoc.word_count("text")
            .collect()
            .equals(FRAME.tadoc.word_count("text").with_columns(pl.col("count") * 2))
        )


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_packed_rows_are_unpacked_side_by_side(path: Path, threads: int) -> None:
    packed = pl.read_parquet(path)
    packed = pl.concat([packed.head(3), pl.DataFrame({"number": [[]], "text": [None]}, packed.schema), packed.slice(3)])
    with tadoc.Config(threads=threads):
        assert_frame_equal(packed.tadoc.unpack().tadoc.decompress(), FRAME)
        lf = packed.lazy().tadoc.unpack()
        assert_frame_equal(lf.tadoc.decompress().collect(), FRAME)
        few = pl.col("number") % 1000 > 950
        assert_frame_equal(lf.filter(few).tadoc.decompress().collect(), FRAME.filter(few))
        assert_frame_equal(lf.head(ROWS + 1).tadoc.decompress().collect(), FRAME.head(ROWS + 1))
        damaged = packed.with_columns(pl.col("text").struct.with_fields(pl.field("roots").list.head(1)))
        with pytest.raises(InvalidGrammarError, match='packed column "text", row 0'):
            damaged.tadoc.unpack()


@pytest.mark.parametrize("threads", [1, 5])
def test_a_damaged_row_group_is_told_in_its_turn(path: Path, tmp_path: Path, threads: int) -> None:
    spoilt = tmp_path / "spoilt.parquet"
    spoilt.write_bytes(path.read_bytes())
    spoil(spoilt, [2, 5], keep=("number",))
    with tadoc.Config(threads=threads):
        reader = unpacked(spoilt)
        assert [next(reader).height for _ in range(2)] == [ROWS, ROWS]
        with pytest.raises(InvalidGrammarError, match="row group 2: the data is damaged"):
            next(reader)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            rows = tadoc.scan_packed(spoilt, on_error="skip").tadoc.decompress("text").collect()
    places = [str(one.message).split(" group ")[1][0] for one in told if one.category is SkippedPartitionWarning]
    assert places == ["2", "5"]
    assert_frame_equal(rows, FRAME.filter(~(pl.col("number") // ROWS).is_in([2, 5])))


def unpacked(path: Path) -> Iterator[pl.DataFrame]:
    """The frames of a scan, without Polars' engines."""
    return scan_of(path)(None, None, None, None)  # type: ignore[return-value]  # a generator


def scan_of(*paths: Path) -> PackedScan:
    return PackedScan(
        [LocalFile(path) for path in paths], Faults("raise"), HiveColumns.of([()] * len(paths), {}, False)
    )


def test_a_missing_file_is_told_after_the_rows_before_it(path: Path, tmp_path: Path) -> None:
    scan = scan_of(path, tmp_path / "gone.parquet")
    with tadoc.Config(threads=16):
        reader = scan(None, None, None, None)
        assert sum(next(reader).height for _ in range(GROUPS)) == len(TEXT)
        with pytest.raises(FileNotFoundError, match=r"gone.parquet"):
            next(reader)


def test_no_row_group_is_decoded_that_a_plan_does_not_need(path: Path, reads: Reads) -> None:
    lf = tadoc.scan_packed(path)
    with tadoc.Config(threads=8):
        for rows, groups in ((10, 1), (ROWS, 1), (ROWS + 1, 2), (3 * ROWS, 3), (3 * ROWS + 1, 4)):
            reads.groups.clear()
            assert lf.head(rows).tadoc.decompress("text").collect().equals(FRAME.head(rows))
            assert sorted(reads.groups) == list(range(groups))
        for number in (5, 4 * ROWS + 3):
            reads.groups.clear()
            one = pl.col("number") == number
            assert lf.filter(one).tadoc.decompress("text").collect().equals(FRAME.filter(one))
            assert reads.groups == [number // ROWS]
        reads.groups.clear()
        odd = pl.col("number") % 5000 == 4501  # no statistics tell
        assert lf.filter(odd).tadoc.decompress("text").collect().equals(FRAME.filter(odd))
        assert reads.groups == [6]


def test_a_reader_that_may_stop_begins_few(path: Path, reads: Reads) -> None:
    scan = scan_of(path)
    with tadoc.Config(threads=8):
        reader = scan(["text"], pl.col("number") >= 0, None, None)
        next(reader)
        assert [group for group in reads.groups if group] == []
        reader.close()  # type: ignore[attr-defined]  # a generator
    assert reads.groups == [0]


def test_under_a_memory_limit_few_are_decoded_ahead(path: Path, reads: Reads) -> None:
    lf = tadoc.scan_packed(path)
    expected = FRAME.tadoc.word_count("text")
    with tadoc.Config(threads=8):
        assert lf.tadoc.word_count("text", memory_limit="64MB").collect().equals(expected)
        assert reads.most > 1
        reads.most = 0
        small = 6 * SYMBOL_BYTES * max(sizes(path))
        assert lf.tadoc.word_count("text", memory_limit=small).collect().equals(expected)
        assert reads.most == 1
        reads.most = 0  # a plan that Polars runs
        assert lf.tadoc.decompress().tadoc.word_count("text", memory_limit="64MB").collect().equals(expected)
        assert reads.most == 1


def sizes(path: Path) -> list[int]:
    with PackedFile(path) as file:
        return [file.grammar_sizes(group)[0] for group in range(file.group_count)]


def test_gaps_that_are_not_needed_are_not_decoded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lf = tadoc.scan_packed(path)
    monkeypatch.setattr(contexts, "decode_gaps", None)
    for memory_limit in (None, "64MB"):
        counted = lf.tadoc.word_count("text", memory_limit=memory_limit).collect()
        assert counted.equals(FRAME.tadoc.word_count("text"))


BUSY = """
import sys, threading
import polars as pl
import polars_tadoc as tadoc
from polars_tadoc.packed import scan
from polars_tadoc.packed.unpack import Documents

lf = tadoc.scan_packed(sys.argv[1])
(packed,) = scan.scans
meeting = threading.Barrier(2)

def read():
    asked = Documents(packed.schema, packed.column)
    for group in packed.row_groups(asked):
        asked._read((group, []))

def wait(series):
    if threading.current_thread() is not threading.main_thread():  # otherwise Polars looks for the type
        meeting.wait(60)
        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        thread.join(60)
        ended.append(not thread.is_alive())
        meeting.wait(60)
    return series

ended = []
read()
frame = pl.LazyFrame({"v": [1]})
both = [pl.col("v").map_batches(wait, return_dtype=pl.Int64).alias(name) for name in "ab"]
frame.select(both).collect(engine="in-memory")
print(ended, flush=True)
"""


@pytest.mark.parametrize("effort", ["default", "small"])
def test_decoding_does_not_wait_for_threads_of_polars(effort: str, tmp_path: Path) -> None:
    """All of them may wait for rows; they share large vocabularies out."""
    words = [f"{'x' * (number % 19)}{number}" for number in range(200_000)]
    text = [" ".join(words[row : row + 20]) + f"\t{row % 7}" if row % 9 else None for row in range(0, 200_000, 10)]
    path = tmp_path / "many.parquet"
    pl.DataFrame({"number": range(len(text)), "text": text}).tadoc.compress("text").tadoc.write_packed(
        path, effort=effort
    )
    run = subprocess.run(
        [sys.executable, "-c", BUSY, str(path)],
        env={**os.environ, "POLARS_MAX_THREADS": "2"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert (run.stdout, run.returncode) == ("[True, True]\n", 0), run.stderr
