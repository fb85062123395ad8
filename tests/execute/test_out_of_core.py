"""Results that a memory limit does not hold: they go through the disk, and are the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import given

import polars_tadoc as tadoc
from polars_tadoc.execute import labels as kept_labels
from polars_tadoc.execute import stream, windows
from polars_tadoc.execute.labels import KeptLabels
from polars_tadoc.records.spill_folder import PREFIX
from polars_tadoc.storage.atomic_write import lock
from tests.analytic_cases import LABELS
from tests.execute.test_memory_limit import (
    CALLS,
    LABELLED,
    LIMIT,
    WEIGHING,
    Asked,
    asked,
    hold_to_memory,
)

WORDY = [f"{k % 7} all " + " ".join(f"w{k}_{j} the" for j in range(200)) for k in range(100)]
"""Every row has words of its own, each grammar few."""
COLUMN = tadoc.compress(pl.Series("text", WORDY), rows_per_grammar=1)
SMALL = 1_000_000
"""One grammar fits, and not what all of them hold."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where spill folders are made; none must be left."""
    path = tmp_path / "spills"
    path.mkdir()
    with tadoc.Config(spill_folder=str(path)):
        yield path
    assert list(path.iterdir()) == []


@contextmanager
def tiny() -> Iterator[None]:
    """Leave room for some records only."""
    with (
        patch.multiple(windows, ROWS_SHARE=1 << 62),
        patch.multiple(stream, FRESH_SHARE=1 << 62, SPILL_SHARE=1 << 20, MAX_FRAME=3),
    ):
        yield


@pytest.mark.parametrize("call", CALLS)
@given(asked=asked)
def test_equals_the_call_in_memory(engine: str, call: str, asked: Asked) -> None:
    """Each corpus is a run, each frame of the result a few records."""
    with patch.multiple(kept_labels, HELD_SHARE=1 << 62, PIECE_SHARE=1 << 62):
        hold_to_memory(engine, call, asked, tiny())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "arguments"), [(call, {}) for call in CALLS] + [(call, {"id": "name"}) for call in LABELLED]
)
def test_less_memory_than_the_result(call: str, arguments: dict[str, str], folder: Path) -> None:
    df = pl.DataFrame([COLUMN, pl.Series("name", [f"row {k}" for k in range(100)])])
    expected = getattr(df.tadoc, call)("text", **arguments)
    seen: list[int] = []
    lazy = getattr(df.lazy().tadoc, call)("text", **arguments, memory_limit=SMALL)
    got = lazy.map_batches(lambda part: seen.append(len(list(folder.iterdir()))) or part, streamable=True).collect(
        engine="streaming"
    )
    assert got.equals(expected)
    if call not in ("term_vector", *WEIGHING):  # whose rows need not wait for others, or wait for counts alone
        assert max(seen) == 1


@pytest.mark.slow
@pytest.mark.parametrize("call", ["sequence_count", "ranked_inverted_index"])
def test_packed(call: str, tmp_path: Path) -> None:
    df = pl.DataFrame([COLUMN, pl.Series("name", [f"row {k}" for k in range(100)])])
    df.tadoc.write_packed(tmp_path / "rows.parquet")
    lf = tadoc.scan_packed(tmp_path / "rows.parquet").filter(pl.col("name") > "row 2")
    arguments: dict[str, Any] = {"id": "name"} if call in LABELLED else {"top": 1000}
    expected = getattr(df.filter(pl.col("name") > "row 2").tadoc, call)("text", min_count=2, **arguments)
    got = getattr(lf.tadoc, call)("text", min_count=2, **arguments, memory_limit=SMALL).collect()
    assert got.equals(expected)


def test_small_results_stay_in_memory(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "nowhere").mkdir()
    with (
        patch.object(tempfile, "gettempdir", side_effect=AssertionError),
        tadoc.Config(spill_folder=tmp_path / "nowhere"),
    ):
        (tmp_path / "nowhere").rmdir()
        COLUMN.to_frame().lazy().tadoc.sequence_count("text", memory_limit=LIMIT).collect()


@pytest.mark.parametrize("call", ["word_count", "ranked_inverted_index", "tfidf", "duplicate_groups", "sink_index"])
def test_small_results_remove_what_killed_calls_left(call: str, folder: Path, tmp_path: Path) -> None:
    left, own, fifo = (folder / f"{PREFIX}{digit * 16}" for digit in "012")
    for path in (left, own):
        path.mkdir()
        (path / "run000001").touch()
    os.mkfifo(fifo)
    descriptor = lock(own)  # its call still runs
    assert descriptor is not None
    lf = pl.DataFrame({"text": ["to be or not", "to be"]}).lazy()
    target = (tmp_path / "index",) if call == "sink_index" else ()
    made = getattr(lf.tadoc, call)(*target, column="text", memory_limit=LIMIT)
    if made is not None:
        made.collect()
    assert {*folder.iterdir()} == {own, fifo}
    os.close(descriptor)
    shutil.rmtree(own)
    fifo.unlink()


@pytest.mark.parametrize("kind", LABELS)
def test_labels_in_files(kind: str) -> None:
    values = LABELS[kind].alias("name")
    with patch.multiple(kept_labels, HELD_SHARE=1 << 62, PIECE_SHARE=1 << 62), KeptLabels("name", "call", 1) as kept:
        kept.keep(values.clear().to_frame())
        for first, size in ((0, 3), (3, 0), (3, 1), (4, 6)):
            kept.keep(values.slice(first, size).to_frame())
        stored = kept.all()
        assert isinstance(stored, kept_labels.StoredLabels)
        for rows in ([], [9], [3, 3, 0], [*range(10)], [9, 8, 0, 4, 3, 9]):
            got = stored.series(np.array(rows, np.uint32))
            assert got.equals(values.alias("id").gather(rows))
            assert got.dtype == values.dtype


def test_labels_go_to_the_disk(folder: Path) -> None:
    df = pl.DataFrame([COLUMN, pl.Series("name", [f"{k}" * 5000 for k in range(100)])])
    lazy = df.lazy().tadoc.inverted_index("text", id="name", memory_limit=SMALL)
    assert lazy.collect().equals(df.tadoc.inverted_index("text", id="name"))


STOPS = """
import sys
import polars as pl
import polars_tadoc as tadoc
from tests.execute.test_out_of_core import COLUMN, SMALL

tadoc.Config.set(spill_folder=sys.argv[1])
lazy = COLUMN.to_frame().lazy().tadoc.sequence_count("text", memory_limit=SMALL)
expected = COLUMN.to_frame().tadoc.sequence_count("text").head(3)

def fails(part):
    raise RuntimeError("stop")

for engine in ("streaming", "in-memory"):
    print(lazy.head(3).collect(engine=engine).equals(expected))
    try:
        lazy.map_batches(fails, streamable=True).collect(engine=engine)
    except Exception as error:
        print("stop" in str(error))
"""


@pytest.mark.slow
def test_a_plan_that_stops_early_leaves_no_folder(folder: Path) -> None:
    """Polars may never come to close the source of a plan that stops early: the folder goes with the process."""
    command = [sys.executable, "-c", STOPS, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"] * 4


SINKS = """
import sys
from pathlib import Path
import polars_tadoc as tadoc

files = sorted(Path(sys.argv[1]).glob("part-*.parquet"))
for count in (3, len(files)):
    counts = tadoc.scan_packed(files[:count]).tadoc.sequence_count("text", memory_limit="60MB")
    counts.tadoc.sink_parquet(Path(sys.argv[1]) / "counts.parquet")
    status = Path("/proc/self/status").read_text()
    print(int(status.partition("VmHWM:")[2].split()[0]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's account of memory")
def test_memory_does_not_grow_with_the_result(tmp_path: Path, folder: Path) -> None:
    """Four times the partitions, and nearly as many times the sequences."""
    generator = np.random.default_rng(3)
    for place in range(12):
        numbers = generator.integers(0, 20_000, (5_000, 30)).astype(str)
        column = tadoc.compress(pl.Series("text", [" ".join(row) for row in numbers]), rows_per_grammar=5_000)
        column.to_frame().tadoc.write_packed(tmp_path / f"part-{place:02}.parquet")
    command = [sys.executable, "-c", SINKS, str(tmp_path)]
    threads = {
        "POLARS_MAX_THREADS": "2",
        "NUMBA_NUM_THREADS": "2",
    }  # 3 files occupy no more
    environment = {**os.environ, **threads, "TMPDIR": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    few, many = (int(line) * 1024 for line in done.stdout.split())
    rows = pl.scan_parquet(tmp_path / "counts.parquet").select(pl.len()).collect().item()
    assert rows > 1_600_000  # of 20 bytes as records, and of 100 in a frame
    assert many - few < 60_000_000
