"""What is written where it cannot be: the error says so, the old file stays as it was, and nothing else is left."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_tadoc as tadoc
from polars_tadoc.errors import DiskFullError, TadocError
from polars_tadoc.storage.atomic_write import atomic_file, atomic_folder, lock, naming_full_disk, remove_abandoned

WRITES = """
import json, random, resource, sys
from pathlib import Path
import polars as pl
import polars_tadoc as tadoc

folder, how = Path(sys.argv[1]), sys.argv[2]
numbers = random.Random(1)
words = [f"{numbers.getrandbits(96):x}" for _ in range(110_000)]

def frame(words):
    return pl.DataFrame({"text": words}).tadoc.compress("text")

CALLS = {
    "write_packed": lambda words, path: frame(words).tadoc.write_packed(path),
    "sink_packed": lambda words, path: frame(words).lazy().tadoc.sink_packed(path),
    "sink_parquet": lambda words, path: frame(words).lazy().tadoc.word_count("text").tadoc.sink_parquet(path),
    "sink_index": lambda words, path: frame(words).lazy().tadoc.sink_index(path, "text", overwrite=True),
    "save": lambda words, path: frame(words).tadoc.build_index("text").save(path, overwrite=True),
    "Dictionary.save": lambda words, path: tadoc.Dictionary.from_words(pl.Series(words)).save(path),
    "TwigSet.save": lambda words, path: tadoc.TwigSet({word: f"//w{word}" for word in words[:25_000]}).save(path),
    "PassageSet.save": lambda words, path: tadoc.PassageSet(pl.Series(words), length=1).save(path),
    "write_parquet": lambda words, path: frame(words).tadoc.write_parquet(path),
}

def contents(path):
    if path.is_file():
        return path.read_bytes().hex()[:2000], path.stat().st_size
    return sorted((file.name, file.stat().st_size, file.read_bytes().hex()[:200]) for file in path.iterdir())

found = {}
for name, call in CALLS.items():
    call(words[:9], folder / name)
before = {name: contents(folder / name) for name in CALLS}
if how == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
for name, call in CALLS.items():
    try:
        call(words, folder / name)
    except OSError as error:
        found[name] = [type(error).__name__, error.errno, str(error)]
left = sorted(path.name for path in folder.iterdir())
print(json.dumps([found, left, before == {name: contents(folder / name) for name in CALLS}]))
"""

NO_ROOM = {"limit": (27, "File too large"), "small": (28, "No space left on device")}


def can_mount() -> bool:
    """Tell whether a small file system can be made here, for one process."""
    command = ["unshare", "-rm", "mount", "-t", "tmpfs", "none", "/mnt"]
    return (
        shutil.which("unshare") is not None
        and subprocess.run(command, capture_output=True, check=False).returncode == 0
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="limits of file sizes are POSIX's")
@pytest.mark.parametrize("how", NO_ROOM)
def test_no_room(tmp_path: Path, how: str) -> None:
    command = [sys.executable, "-c", WRITES, str(tmp_path), how]
    if how == "small":
        if not can_mount():
            pytest.skip("no file system can be mounted here without rights; limits of file sizes are tested")
        mount = 'mount -t tmpfs -o size=1m none "$0" && exec "$@"'
        command = ["unshare", "-rm", "sh", "-c", mount, str(tmp_path), *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    found, left, is_as_before = json.loads(done.stdout)
    number, why = NO_ROOM[how]
    files = ["sink_packed", "sink_parquet", "write_packed", "write_parquet"]
    calls = ["Dictionary.save", "PassageSet.save", "TwigSet.save", "save", "sink_index", *files]
    for call in calls:
        named = "sink_parquet" if call == "write_parquet" else call  # which it is made of
        message = f"[Errno {number}] {named}: cannot write to {tmp_path} ({why}): {tmp_path / call} is"
        kind, errno, text = found[call]
        assert (kind, errno) == ("DiskFullError", number), found
        assert text == f"{message} unchanged; free some space, or write elsewhere"
    assert left == calls
    assert is_as_before


def test_the_error_is_an_os_error() -> None:
    assert issubclass(DiskFullError, OSError)
    assert issubclass(DiskFullError, TadocError)


def test_errors_of_polars_and_others(tmp_path: Path) -> None:
    for error in (
        OSError(28, "No space left on device"),
        OSError("No space left on device (os error 28)"),
        pl.exceptions.ComputeError("parquet: underlying IO error: No space left on device (os error 28)"),
    ):
        said = f"call: cannot write to {tmp_path} .*: mend it"
        with pytest.raises(DiskFullError, match=said) as caught, naming_full_disk(tmp_path, "call", "mend it"):
            raise error
        assert caught.value.errno == 28
        with pytest.raises(DiskFullError) as outer, naming_full_disk(Path("other"), "call", "mend it"):
            raise caught.value
        assert outer.value is caught.value  # the first to see it names the folder
    for error in (OSError(13, "Permission denied"), OSError("other"), pl.exceptions.ComputeError("other")):
        with pytest.raises(type(error)) as same, naming_full_disk(tmp_path, "call", "mend it"):
            raise error
        assert same.value is error


def write(path: Path, text: str) -> None:
    with atomic_file(path, "call") as temporary:
        temporary.write_text(text)


def everything(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.exists() else []


def folder_beside(path: Path, call: str) -> Any:
    return atomic_folder(path, call, everything)


@pytest.mark.parametrize("make", [atomic_file, folder_beside])
def test_the_folder_goes_away(tmp_path: Path, make: Callable[[Path, str], Any]) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()

    def fail() -> None:
        with make(folder / "it", "call") as temporary:
            shutil.rmtree(folder)
            (temporary if make is atomic_file else temporary / "file").write_text("text")

    with pytest.raises(FileNotFoundError, match=f"^call: folder {folder} was removed while it was written$"):
        fail()
    assert not folder.exists()


def test_a_plan_whose_folder_goes_away(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    frame = pl.DataFrame({"text": ["a b"] * 9}).tadoc.compress("text")

    def gone(df: pl.DataFrame) -> pl.DataFrame:
        shutil.rmtree(folder)
        return df

    with pytest.raises(FileNotFoundError, match=r"folder .*folder was removed while a\.parquet was written"):
        frame.lazy().map_batches(gone).tadoc.sink_packed(folder / "a.parquet")


@pytest.mark.parametrize("error", [ValueError("own"), OSError(13, "own"), KeyboardInterrupt()], ids=repr)
def test_other_errors_are_as_they_were(tmp_path: Path, error: BaseException) -> None:
    def fail() -> None:
        with atomic_file(tmp_path / "a", "call") as temporary:
            temporary.write_text("text")
            raise error

    with pytest.raises(type(error)) as caught:
        fail()
    assert caught.value is error
    assert list(tmp_path.iterdir()) == []


WRITER = """
import signal, sys
from pathlib import Path
from polars_tadoc.storage.atomic_write import atomic_file, atomic_folder
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs this may have it ignored
path, make = Path(sys.argv[1]), {"file": atomic_file, "folder": atomic_folder}[sys.argv[2]]
with make(path, "call", *([] if make is atomic_file else [lambda old: list(old.glob("*"))])) as temporary:
    file = temporary if make is atomic_file else temporary / "file"
    file.write_text("a part")
    print("ready", flush=True)
    sys.stdin.readline()
    file.write_text("whole")
"""


@contextmanager
def writer(path: Path, kind: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that writes there, and waits."""
    command = [sys.executable, "-c", WRITER, str(path), kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def text(path: Path) -> str:
    return (path / "file" if path.is_dir() else path).read_text()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_process_has_left_goes(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "it.parquet"
    with writer(path, kind) as process:
        remove_abandoned(path)
        assert len(hidden(tmp_path)) == 1  # it is being written
        process.kill()
        process.wait()
    assert len(hidden(tmp_path)) == 1
    (tmp_path / ".it.parquet.0123abcd.tmp.txt").touch()
    (tmp_path / ".other.parquet.0123abcd.tmp").touch()
    kept = [".it.parquet.0123abcd.tmp.txt", ".other.parquet.0123abcd.tmp"]
    assert not path.exists()
    write(path, "new")
    assert path.read_text() == "new"
    assert sorted(hidden(tmp_path)) == kept


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_two_write_the_same(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "it"
    with writer(path, kind) as one, writer(path, kind) as two:
        assert len(hidden(tmp_path)) == 2
        for process in (one, two):
            process.communicate("\n", timeout=60)
            assert process.returncode == 0
            assert text(path) == "whole"
    assert hidden(tmp_path) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="it is another signal")
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_an_interrupt_leaves_nothing(tmp_path: Path, kind: str) -> None:
    with writer(tmp_path / "it", kind) as process:
        process.send_signal(signal.SIGINT)
        process.wait(timeout=60)
    assert list(tmp_path.iterdir()) == []


def test_an_old_folder_gets_its_name_back(tmp_path: Path) -> None:
    """A process was killed between taking the old folder's name and giving it to the new one."""
    path = tmp_path / "it"
    (tmp_path / ".it.0123abcd.old").mkdir()
    (tmp_path / ".it.0123abcd.old" / "file").write_text("old")
    remove_abandoned(path, everything)
    assert text(path) == "old"
    (tmp_path / ".it.0123abcd.old").mkdir()
    remove_abandoned(path, everything)
    assert text(path) == "old"
    assert hidden(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")
def test_locks(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "file"):
        if path != tmp_path:
            path.touch()
        first = lock(path)
        assert first is not None
        assert lock(path) is None
        os.close(first)
        again = lock(path)
        assert again is not None
        os.close(again)
    with pytest.raises(FileNotFoundError):
        lock(tmp_path / "none")


def test_saving_an_index_again_and_again(tmp_path: Path) -> None:
    index = pl.DataFrame({"text": ["a b", "b c"]}).tadoc.compress("text").tadoc.build_index("text")
    for _ in range(3):
        index.save(tmp_path / "index", overwrite=True)
        assert_frame_equal(tadoc.load_index(tmp_path / "index").search(["b"]), index.search(["b"]))
    assert hidden(tmp_path) == []
