"""What is left when spilling is killed, interrupted or out of room, and how a checkpoint goes on."""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import polars_tadoc as tadoc
from polars_tadoc.errors import DiskFullError, InvalidRecordsError
from polars_tadoc.kernels.host.records.packed_keys import KeyForm
from polars_tadoc.records import Checkpoint, Spill, SpillFolder, spill
from polars_tadoc.records import packed_records as packed
from polars_tadoc.records import run_merge as merging
from polars_tadoc.records.key_ranges import Source, read_ranges
from polars_tadoc.records.packed_records import merge_records
from polars_tadoc.records.records import Layout, Records
from polars_tadoc.records.runs import KeysFile, KeysWriter
from polars_tadoc.records.word_runs import WordsFile, WordsWriter
from tests import ROOT

# ruff: noqa: PT012 - what is to raise goes on for a while
pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and locks are those of POSIX")

resource = pytest.importorskip("resource")

LAYOUT = Layout(("word", "word"), 2, by_count=True)
WEIGHTS = Layout(("row", "word"), 1, documents=True)
PARTITIONS = 40
ROOM = 40_000
CALL = "cooccurrence"
MANIFEST = "manifest.json"


def partition(number: int, layout: Layout = LAYOUT) -> Records:
    """Make what is found in a partition: nothing but the number decides."""
    rng = np.random.default_rng(number)
    words = sorted({f"{n}" for n in rng.integers(0, 400, 100)})
    rows = range(10 * number, 10 * number + 10)
    firsts = rng.choice(rows, 400) if layout.documents else rng.integers(0, len(words), 400)
    keys = np.unique(np.stack([firsts, rng.integers(0, len(words), 400)], axis=1).astype(np.uint32), axis=0)
    there = np.array(rows, np.uint32) if layout.documents else None
    return Records(
        pa.array(words, pa.large_string()),
        keys,
        rng.integers(1, 4, len(keys)).astype(np.uint64),
        there,
        None if there is None else np.ones(10, np.uint64),
    )


def tuples(parts: list[Records]) -> list[tuple[object, ...]]:
    return [
        (*(part.words[n].as_py() for n in key), count)
        for part in parts
        for key, count in zip(part.keys.tolist(), part.counts.tolist(), strict=True)  # type: ignore[union-attr]
    ]


@pytest.fixture(scope="module")
def answer() -> list[tuple[object, ...]]:
    found = tuples([merge_records(LAYOUT, [partition(number) for number in range(PARTITIONS)])])
    return sorted(found, key=lambda row: -row[-1])  # type: ignore[operator]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tadoc.Config.set(spill_folder=str(tmp_path))
    return tmp_path


def checkpoint(path: Path, **question: object) -> Checkpoint:
    return Checkpoint(path, {"call": CALL, **question}, CALL)


def finish(path: Path) -> tuple[list[tuple[object, ...]], int]:
    """Answer with a checkpoint; returns the answer and how many partitions were read."""
    with Spill(LAYOUT, ROOM, CALL, checkpoint(path)) as spilled:
        missing = [number for number in range(PARTITIONS) if number not in spilled.covered]
        for number in missing:
            spilled.add(partition(number))
            spilled.finish(number)
        return tuples(list(spilled.merged())), len(missing)


CHILD = """
import sys, time
import polars_tadoc as tadoc
from tests.records.test_spill_faults import *
tadoc.Config.set(spill_folder=sys.argv[1])
kept = checkpoint(Path(sys.argv[2])) if len(sys.argv) > 2 else None
with Spill(LAYOUT, ROOM, CALL, kept) as spilled:
    for number in range(PARTITIONS):
        if number not in spilled.covered:
            spilled.add(partition(number))
            spilled.finish(number)
            print(number, flush=True)
            time.sleep(0.01)
    found = spilled.merged(batch=10)
    next(found)
    print("merging", flush=True)
    time.sleep(60)
"""


def child(*arguments: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


def wait_for(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout is not None
    for said in process.stdout:
        if said.strip() == line:
            return
    assert process.stderr is not None
    raise AssertionError(process.stderr.read())


@pytest.mark.slow
def test_what_a_killed_process_left_goes_with_the_next(folder: Path) -> None:
    process = child(folder)
    wait_for(process, "merging")
    left = list(folder.iterdir())
    assert len(left) == 1
    with SpillFolder(CALL) as other:
        assert {other.path, *left} == {*folder.iterdir()}  # it is in use: it stays
    process.kill()
    process.communicate()
    assert list(left[0].iterdir())
    with SpillFolder(CALL) as other:
        assert [other.path] == list(folder.iterdir())
    assert list(folder.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("line", ["30", "merging"])
def test_an_interrupted_process_leaves_nothing(line: str, folder: Path) -> None:
    process = child(folder)
    wait_for(process, line)
    assert list(folder.iterdir())
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in said
    assert list(folder.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("last", ["17", "merging"])
def test_a_killed_call_goes_on_behind_what_is_finished(
    last: str, folder: Path, answer: list[tuple[object, ...]]
) -> None:
    path = folder / "kept"
    process = child(folder, path)
    wait_for(process, last)
    with pytest.raises(OSError, match=r"cooccurrence: another call is using the checkpoint .*kept"):
        checkpoint(path)
    process.kill()
    process.communicate()
    covered = json.loads((path / MANIFEST).read_text())["covered"]
    found, read = finish(path)
    assert found == answer
    assert read == PARTITIONS - sum(one - other + 1 for other, one in covered) < PARTITIONS
    assert (read == 0) == (last == "merging")
    assert finish(path) == (answer, 0)  # and answers again until the folder is deleted
    assert {name.split("-")[0] for name in os.listdir(path)} == {MANIFEST, "run"}


def test_an_interrupted_call_keeps_what_is_in_memory_too(folder: Path, answer: list[tuple[object, ...]]) -> None:
    path = folder / "kept"
    with pytest.raises(KeyboardInterrupt), Spill(LAYOUT, 1 << 30, CALL, checkpoint(path)) as spilled:
        for number in range(7):
            spilled.add(partition(number))
            spilled.finish(number)
        raise KeyboardInterrupt
    assert finish(path) == (answer, PARTITIONS - 7)


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_what_an_error_leaves_half_merged_is_not_kept(
    error: type[BaseException], folder: Path, answer: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "kept"
    with pytest.raises(error), Spill(LAYOUT, 1 << 30, CALL, checkpoint(path)) as spilled:
        monkeypatch.setattr(spill, "FRESH_SHARE", 1 << 40)  # merged as it comes
        spilled.add(partition(0))
        spilled.finish(0)
        monkeypatch.setattr(spill, "FRESH_SHARE", 1)  # it waits
        spilled.add(partition(1))
        spilled.finish(1)
        with monkeypatch.context() as patched:

            def failing(parts: list[packed.Sorted]) -> packed.Sorted:
                patched.undo()
                raise error

            patched.setattr(packed, "merge_sorted", failing)
            patched.setattr(spill, "CHECKPOINT_SECONDS", -1.0)
            spilled.add(partition(2))
            spilled.finish(2)
    assert finish(path) == (answer, PARTITIONS)


def test_a_run_is_not_kept_twice(folder: Path, answer: list[tuple[object, ...]]) -> None:
    class Interrupted(list[merging.Run]):
        def append(self, run: merging.Run) -> None:
            super().append(run)
            if len(self) == 1:
                raise KeyboardInterrupt

    path = folder / "kept"
    with pytest.raises(KeyboardInterrupt), Spill(LAYOUT, 1 << 30, CALL, checkpoint(path)) as spilled:
        spilled._runs = Interrupted()
        spilled.add(partition(0))
        spilled.finish(0)
        list(spilled.merged())
    assert finish(path) == (answer, PARTITIONS)


def test_what_was_found_of_an_unfinished_partition_is_not_kept(
    folder: Path, answer: list[tuple[object, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = folder / "kept"
    with pytest.raises(KeyboardInterrupt), Spill(LAYOUT, 1, CALL, checkpoint(path)) as spilled:
        for number in range(7):
            spilled.add(partition(number))  # a run
            if number < 6:
                spilled.finish(number)
        raise KeyboardInterrupt
    assert finish(path) == (answer, PARTITIONS - 6)


def test_is_written_now_and_then_even_where_all_fits(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(spill, "MAX_RUNS", 5)
    kept = checkpoint(folder / "kept")
    with Spill(LAYOUT, 1 << 30, CALL, kept) as spilled:
        for number in range(12):
            spilled.add(partition(number))
            spilled.finish(number)
            assert kept.covered == {*range(number + 1)}
        found = tuples(list(spilled.merged()))
        assert len(kept.runs) <= 5
    expected = tuples([merge_records(LAYOUT, [partition(number) for number in range(12)])])
    assert found == sorted(expected, key=lambda row: -row[-1])  # type: ignore[operator]


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ({"n": 3, "files": [["a", 1], ["b", 2]]}, r"n was 2 and is 3"),
        ({"n": 2, "files": [["a", 1], ["b", 3]]}, r"files was 2 and is 3"),
        ({"n": 2, "files": [["a", 1], ["c", 2]]}, r"of its files, c is new; b is gone"),
        ({"n": 2, "files": [["a", 1]]}, r"of its files, b is gone"),
        ({"n": 2, "files": [["a", 1], ["b", 2]], "top": 5}, r"top was null and is 5"),
        ({"n": 2, "files": [["a", 1], ["b", {"bytes": 3}]]}, r'files, "b", was 2 and is \{"bytes": 3\}'),
    ],
)
def test_another_question_is_an_error(question: dict[str, object], named: str, folder: Path) -> None:
    asked = {"n": 2, "files": [["a", 1], ["b", 2]]}
    checkpoint(folder / "kept", **asked).close()
    checkpoint(folder / "kept", **asked).close()
    with pytest.raises(ValueError, match=rf"^cooccurrence: the checkpoint .*kept was made for another .*: {named};"):
        checkpoint(folder / "kept", **question)
    checkpoint(folder / "kept", **asked).close()  # and not locked by what failed


def test_a_folder_of_something_else_is_an_error(folder: Path) -> None:
    (folder / "thesis.tex").write_text("years of work")
    with pytest.raises(ValueError, match=r'is not a checkpoint: it has "thesis.tex"; name a new or an empty folder'):
        checkpoint(folder)
    assert (folder / "thesis.tex").exists()
    (folder / "file").touch()
    with pytest.raises(OSError, match="file"):
        checkpoint(folder / "file")


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'{"version": 1}',
        b'{"version": 9, "question": {}, "runs": [], "covered": []}',
        b'{"version": 1, "question": {}, "runs": {"../run": {}}, "covered": []}',
        b'{"version": 1, "question": {}, "runs": {"run-000001": {"../a": [0, 0]}}, "covered": []}',
        b'{"version": 1, "question": {}, "runs": {"run-000001": {"run-000001.keys.parquet": 5}}, "covered": []}',
        b'{"version": 1, "question": {"call": "cooccurrence"}, "runs": {}, "covered": [[0, 9999999999999]]}',
        b'{"version": 1, "question": {"call": "cooccurrence"}, "runs": {}, "covered": [[0, 8388608]]}',
        b'{"version": 1, "question": {}, "runs": {}, "covered": [[0.0, 1]]}',
        b'{"version": 1, "question": {}, "runs": {}, "covered": [["a", 1]]}',
        b'{"version": 1, "question": {}, "runs": 5, "covered": []}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_manifest_is_named(said: bytes, folder: Path) -> None:
    checkpoint(folder / "kept").close()
    (folder / "kept" / MANIFEST).write_bytes(said)
    with pytest.raises(InvalidRecordsError, match=r"manifest.json is damaged"):
        checkpoint(folder / "kept")


def test_damaged_runs_are_named(folder: Path, answer: list[tuple[object, ...]]) -> None:
    path = folder / "kept"
    finish(path)
    for file in sorted(path.glob("run-*"))[:2]:
        whole = file.read_bytes()
        middle = len(whole) // 2
        for said in (whole[:middle], b"", bytes([*whole[:middle], whole[middle] ^ 1, *whole[middle + 1 :]])):
            file.write_bytes(said)
            with pytest.raises(InvalidRecordsError, match=rf"cooccurrence: {file} is damaged; delete the checkpoint"):
                finish(path)
        file.write_bytes(whole)
    assert finish(path) == (answer, 0)
    file.unlink()
    with pytest.raises(InvalidRecordsError, match=rf"{file} is gone; delete the checkpoint"):
        finish(path)


def test_damaged_files_of_runs_are_named(tmp_path: Path) -> None:
    """Files of a run are checked as they are read, too, whatever a checkpoint said of them."""
    file = tmp_path / "run-000001.keys.parquet"
    form = KeyForm((4, 4))

    def written(form: KeyForm, *keys: list[int]) -> KeysFile:
        with KeysWriter(file, form, True) as writer:
            for own in keys:
                writer.write(np.array([own], np.uint64), np.ones(len(own), np.uint64))
        return KeysFile(file, 2, True)

    for wrong in (written(form, [3, 2]), written(form, [5, 6], [2, 3]), written(form, [3, 200])):
        source = Source(wrong, np.arange(5, dtype=np.uint32))
        with pytest.raises(InvalidRecordsError, match=rf"{file}"):
            list(read_ranges([source], form, [True, True], form.first_limb_mask(2), 1_000, CALL))
    for columns, counted in ((3, True), (2, False)):
        with pytest.raises(InvalidRecordsError, match=rf"{file}"):
            KeysFile(file, columns, counted)
    with pytest.raises(InvalidRecordsError, match=rf"{file}"):
        WordsFile(file)
    for said in (b"", b"PAR1", b"PAR1" * 10):
        file.write_bytes(said)
        with pytest.raises(InvalidRecordsError, match=rf"{file} is damaged"):
            KeysFile(file, 2, True)
    with WordsWriter(file) as words:
        words.write(pa.array(["b", "a"], pa.large_string()))
    with pytest.raises(InvalidRecordsError, match=r"group 0: the words are not distinct and in code point order"):
        WordsFile(file).read_all()


@contextmanager
def files_of(size: int) -> Iterator[None]:
    """Let no file grow beyond some bytes, as if the disk were full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


FULL = r"cooccurrence: cannot write to .*tadoc-spill-[0-9a-f]* .*: free space there, or .*spill_folder="


@pytest.mark.parametrize("layout", [LAYOUT, WEIGHTS])
@pytest.mark.parametrize("size", [0, 100, 1_000])
def test_a_full_disk_is_named_while_records_gather(layout: Layout, size: int, folder: Path) -> None:
    with files_of(size), pytest.raises(DiskFullError, match=FULL), Spill(layout, ROOM, CALL) as spilled:
        for number in range(PARTITIONS):
            spilled.add(partition(number, layout))
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("size", [0, 500, 4_000, 10_000])
@pytest.mark.parametrize("most", [5, 64])
def test_a_full_disk_is_named_while_runs_are_merged(
    size: int, most: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spill, "MAX_RUNS", most)
    monkeypatch.setattr(spill, "ORDER_SHARE", 1_000)
    monkeypatch.setattr(merging, "WORDS_SHARE", 1_000)
    with pytest.raises(DiskFullError, match=FULL), Spill(LAYOUT, 10_000, CALL) as spilled:
        for number in range(PARTITIONS):
            spilled.add(partition(number))
        spilled._write()
        with files_of(size):
            list(spilled.merged())
    assert list(folder.iterdir()) == []


def test_a_full_disk_keeps_what_a_checkpoint_has(folder: Path, answer: list[tuple[object, ...]]) -> None:
    path = folder / "kept"
    with Spill(LAYOUT, ROOM, CALL, checkpoint(path)) as spilled:
        for number in range(20):
            spilled.add(partition(number))
            spilled.finish(number)
        covered = spilled.covered
    assert covered
    with files_of(1_000), pytest.raises(DiskFullError, match=rf"cannot write to {path} .* repeat the call"):
        finish(path)
    assert finish(path) == (answer, PARTITIONS - len(covered))


@pytest.mark.slow
def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    script = f"""
import os, sys
from tests.records.test_spill_faults import *
tadoc.Config.set(spill_folder={str(tmp_path)!r})
try:
    with Spill(LAYOUT, ROOM, CALL) as spilled:
        for number in range(4 * PARTITIONS):
            spilled.add(partition(number))
except DiskFullError as error:
    print(error.errno, error, os.listdir({str(tmp_path)!r}), sep="|")
"""
    mount = f"mount -t tmpfs -o size=32k none {tmp_path} && exec {sys.executable} -c {shlex.quote(script)}"
    shell = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    if not shutil.which("unshare") or subprocess.run([*shell, "mount -t tmpfs none /mnt"], check=False).returncode:
        pytest.skip("no file system of its own can be mounted here")
    done = subprocess.run([*shell, mount], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    number, message, left = done.stdout.strip().split("|")
    assert int(number) == errno.ENOSPC
    assert f"cannot write to {tmp_path}/tadoc-spill-" in message
    assert left == "[]"


@pytest.mark.parametrize("when", ["adding", "merging"])
def test_a_folder_that_goes_away_is_named(when: str, folder: Path) -> None:
    with pytest.raises(FileNotFoundError, match=rf"{folder}/tadoc-spill-"), Spill(LAYOUT, ROOM, CALL) as spilled:
        for number in range(PARTITIONS):
            spilled.add(partition(number))
            if number == 30 and when == "adding":
                shutil.rmtree(spilled._folder.path)
        shutil.rmtree(spilled._folder.path, ignore_errors=True)
        list(spilled.merged())


def test_there_is_no_folder_for_spilling(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    tadoc.Config.set(spill_folder=str(tmp_path / "gone"))
    (tmp_path / "gone").rmdir()
    with pytest.raises(FileNotFoundError, match=r"^cooccurrence: .*gone does not exist, .*Config\(spill_folder="):
        _ = SpillFolder(CALL).path
    (tmp_path / "gone").touch()
    with pytest.raises(NotADirectoryError, match=r"^cooccurrence: .*gone is a file; .* tadoc\.Config\(spill_folder="):
        _ = SpillFolder(CALL).path


FORKS = """
import os, sys
from pathlib import Path
import polars_tadoc as tadoc
from polars_tadoc.records import Checkpoint, SpillFolder

folder = SpillFolder("call", Path(sys.argv[1]))
checkpoint = Checkpoint(Path(sys.argv[1]) / "kept", {}, "call")
made = folder.path
waits, ends = os.pipe()
if (child := os.fork()) == 0:
    if os.fork() == 0:  # one that ends as usual
        sys.exit()
    os.wait()
    os.close(ends)
    os.read(waits, 1)  # one that stays
    os._exit(0)
os.close(waits)
import time
time.sleep(0.5)
print(made.is_dir())
checkpoint.close()
Checkpoint(Path(sys.argv[1]) / "kept", {}, "call").close()
folder.close()
print(made.exists())
os.close(ends)
os.wait()
"""


@pytest.mark.slow
def test_forked_processes_leave_folders_and_locks_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FORKS, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["True", "False"]
