"""Two writers of one target, and readers beside them: each reads one of the two, whole, and nothing is left over."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.storage import atomic_write

SECONDS = 1.5
"""For which threads write and read."""

ROWS = 300


def frame(tag: str, rows: int = ROWS) -> pl.DataFrame:
    texts = [f"{tag} word{row % 50} the cat number {row}" for row in range(rows)]
    return pl.DataFrame({"id": range(rows), "text": texts})


def save_changed(tag: str, path: Path) -> None:
    """Rows are deleted and appended, and the index compacted."""
    index = frame(tag).tadoc.build_index("text", id="id").delete(list(range(0, ROWS, 2)))
    more = frame(tag, 50).with_columns(pl.col("id") + ROWS)
    more.tadoc.append_to(index, "text", id="id").compact().save(path, overwrite=True)


def search(path: Path) -> Any:
    return tadoc.load_index(path).search(["alpha cat", "beta cat", "word3"], k=ROWS).rows()


def read_packed(path: Path) -> Any:
    return tadoc.scan_packed(path).tadoc.decompress("text").collect().rows()


def lazy(tag: str) -> pl.LazyFrame:
    return frame(tag).lazy().tadoc.compress("text", rows_per_grammar=100)


def words(tag: str) -> pl.Series:
    return pl.Series([f"{tag}{number}" for number in range(200)])


@dataclass(frozen=True)
class Target:
    write: Callable[[str, Path], object]
    read: Callable[[Path], Any]


TARGETS = {
    "write_packed": Target(lambda tag, path: frame(tag).tadoc.compress("text").tadoc.write_packed(path), read_packed),
    "sink_packed": Target(lambda tag, path: lazy(tag).tadoc.sink_packed(path), read_packed),
    "Index.save": Target(
        lambda tag, path: frame(tag).tadoc.build_index("text", id="id").save(path, overwrite=True), search
    ),
    "append, delete, compact": Target(save_changed, search),
    "Dictionary.save": Target(
        lambda tag, path: tadoc.Dictionary.from_words(words(tag)).save(path),
        lambda path: tadoc.Dictionary.load(path).vocabulary.series.to_list(),
    ),
    "PassageSet.save": Target(
        lambda tag, path: tadoc.PassageSet(frame(tag)["text"], length=3).save(path),
        lambda path: tadoc.overlap(frame("alpha")["text"], tadoc.PassageSet.load(path)).to_pylist(),
    ),
    "TwigSet.save": Target(
        lambda tag, path: tadoc.TwigSet(dict.fromkeys(words(tag), "//a")).save(path),
        lambda path: tadoc.twig_filter(pl.Series(["<a/>"]), tadoc.TwigSet.load(path)).to_pylist(),
    ),
}


@pytest.mark.parametrize("kind", TARGETS)
def test_two_threads_write_while_two_read(kind: str, tmp_path: Path) -> None:
    target, path = TARGETS[kind], tmp_path / "target"
    known = []
    for tag in ("alpha", "beta"):
        target.write(tag, path)
        known.append(target.read(path))
    assert known[0] != known[1]
    until, errors, written, read = time.monotonic() + SECONDS, list[BaseException](), list[str](), list[Any]()

    def work(one: Callable[[], object]) -> None:
        try:
            one()
            while time.monotonic() < until:
                one()
        except BaseException as error:
            errors.append(error)

    def write(tag: str) -> None:
        target.write(tag, path)
        written.append(tag)

    jobs = [lambda: write("alpha"), lambda: write("beta"), *[lambda: read.append(target.read(path))] * 2]
    threads = [threading.Thread(target=work, args=[job]) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert set(written) == {"alpha", "beta"}
    assert all(answer in known for answer in read)
    assert target.read(path) in known
    assert [one.name for one in tmp_path.iterdir()] == ["target"]


PROCESS = """
import sys
from pathlib import Path
from tests.storage.test_writers_and_readers import TARGETS
kind, tag, path = sys.argv[1:]
print("ready", flush=True)
sys.stdin.readline()
for _ in range(10):
    TARGETS[kind].write(tag, Path(path))
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", TARGETS)
def test_two_processes_write_while_one_reads(kind: str, tmp_path: Path) -> None:
    target, path = TARGETS[kind], tmp_path / "target"
    known = []
    for tag in ("alpha", "beta"):
        target.write(tag, path)
        known.append(target.read(path))
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS, kind, tag, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for tag in ("alpha", "beta")
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.flush()
        while any(process.poll() is None for process in processes):
            assert target.read(path) in known
        assert [process.returncode for process in processes] == [0, 0]
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    assert target.read(path) in known
    assert [one.name for one in tmp_path.iterdir()] == ["target"]


def test_what_was_opened_stays_as_it_was(tmp_path: Path) -> None:
    """An index, a dictionary and a passage set that a writer replaces after they were loaded."""
    index, dictionary, known = (tmp_path / name for name in ("index", "dictionary", "known"))
    TARGETS["Index.save"].write("alpha", index)
    TARGETS["Dictionary.save"].write("alpha", dictionary)
    TARGETS["PassageSet.save"].write("alpha", known)
    answer = search(index)
    loaded = tadoc.load_index(index)
    loaded_words, loaded_set = tadoc.Dictionary.load(dictionary), tadoc.PassageSet.load(known)
    for _ in range(2):
        save_changed("beta", index)
        TARGETS["Dictionary.save"].write("beta", dictionary)
        TARGETS["PassageSet.save"].write("beta", known)
    assert set(loaded_words.vocabulary.series) == set(words("alpha"))
    assert tadoc.overlaps(frame("alpha")["text"], loaded_set).all()
    assert loaded.search(["alpha cat", "beta cat", "word3"], k=ROWS).rows() == answer


def test_a_plan_over_a_packed_file_that_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "packed.parquet"
    for old, new in ((300, 200), (300, 300), (200, 3000)):
        frame("alpha", old).tadoc.compress("text").tadoc.write_packed(path)
        plan = tadoc.scan_packed(path).tadoc.decompress("text")
        frame("beta", new).tadoc.compress("text", rows_per_grammar=100).tadoc.write_packed(path)
        assert plan.collect().equals(frame("beta", new))


def test_a_plan_over_parquet_that_is_replaced_raises(tmp_path: Path) -> None:
    """Polars keeps the footer that it read for the schema."""
    path = tmp_path / "text.parquet"
    for old, new in ((300, 200), (200, 3000)):
        frame("alpha", old).tadoc.compress("text").tadoc.write_parquet(path)
        plan = tadoc.scan_parquet(path).tadoc.decompress("text")
        frame("beta", new).tadoc.compress("text").tadoc.write_parquet(path)
        with pytest.raises(pl.exceptions.ComputeError):
            plan.collect()
        assert tadoc.scan_parquet(path).tadoc.decompress("text").collect().equals(frame("beta", new))


def test_a_folder_that_is_replaced_while_its_rights_are_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listing that began before another writer's exchange names files that are gone."""
    index = pl.Series("text", ["a b", "b"]).tadoc.build_index()
    index.save(tmp_path / "index")
    left, own = [2], atomic_write.take_over_files

    def gone(old: Path, new: Path) -> None:
        if left[0]:
            left[0] -= 1
            raise FileNotFoundError(2, "No such file or directory", str(old / "terms"))
        own(old, new)

    monkeypatch.setattr(atomic_write, "take_over_files", gone)
    index.save(tmp_path / "index", overwrite=True)
    assert left == [0]
    assert tadoc.load_index(tmp_path / "index").search("a")["id"].to_list() == [0]
    left[0] = 9
    with pytest.raises(FileNotFoundError):
        index.save(tmp_path / "index", overwrite=True)
    assert [file.name for file in tmp_path.iterdir()] == ["index"]


@pytest.mark.parametrize("kind", ["was removed", "is being removed", "is held for a moment"])
def test_the_folder_that_an_overtaken_writer_replaces(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second writer's folder takes the name just before; just after, a third one takes it for a leftover."""
    path, swap, look = tmp_path / "index", atomic_write._swap, atomic_write._lock_replaced
    first, second = (pl.Series("text", [text]).tadoc.build_index() for text in ("a b", "c d"))
    first.save(path)
    overtaking = threading.Thread(target=lambda: second.save(path, overwrite=True))

    def overtaken(temporary: Path, to: Path, old: Path) -> None:
        monkeypatch.setattr(atomic_write, "_swap", swap)
        overtaking.start()
        while tadoc.load_index(path).search("c").is_empty():
            time.sleep(0.001)
        swap(temporary, to, old)

    def hold(old: Path, descriptor: int) -> None:
        time.sleep(0.1)
        if kind == "is being removed":
            shutil.rmtree(old)
        os.close(descriptor)

    def locked(old: Path) -> int | None:
        if threading.current_thread() is overtaking:
            return look(old)
        overtaking.join()
        if kind == "was removed":
            atomic_write.remove_abandoned(path, lambda folder: sorted(folder.iterdir()))
            assert not old.exists()
            return look(old)
        descriptor = atomic_write.lock(old)
        assert descriptor is not None
        if kind == "is being removed":
            (old / "header.json").unlink()
        third = threading.Thread(target=hold, args=(old, descriptor))
        third.start()
        try:
            return look(old)
        finally:
            third.join()

    monkeypatch.setattr(atomic_write, "_swap", overtaken)
    monkeypatch.setattr(atomic_write, "_lock_replaced", locked)
    first.save(path, overwrite=True)
    assert tadoc.load_index(path).search("a")["id"].to_list() == [0]
    assert {file.name for file in tmp_path.iterdir()} == {"index"}


def test_a_new_folder_that_another_writer_takes_for_a_leftover(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no lock yet: another one is made."""
    path, make, removed = tmp_path / "index", atomic_write.make_private_folder, list[Path]()

    def make_slowly(folder: Path) -> int:
        mode = make(folder)
        if not removed:
            removed.append(folder)
            folder.rmdir()
            folder.stat()
        return mode

    monkeypatch.setattr(atomic_write, "make_private_folder", make_slowly)
    index = pl.Series("text", ["a b"]).tadoc.build_index()
    index.save(path)
    assert removed
    assert tadoc.load_index(path).search("a")["id"].to_list() == [0]
    monkeypatch.setattr(atomic_write, "make_private_folder", lambda folder: shutil.rmtree(tmp_path) or make(folder))
    with pytest.raises(FileNotFoundError, match="was removed while index was written"):
        index.save(path, overwrite=True)
