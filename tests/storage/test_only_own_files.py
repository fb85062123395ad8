"""What the package deletes or replaces is its own; anything else stays, and the call names it."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.errors import KeptFilesWarning
from polars_tadoc.execute import partitioned_sink as hive
from polars_tadoc.index.store.folder import HEADER
from polars_tadoc.records import Checkpoint
from polars_tadoc.records.spill_folder import PREFIX, SpillFolder
from polars_tadoc.runtime.regular_file import create_private
from polars_tadoc.storage import atomic_write
from polars_tadoc.storage.atomic_write import lock, remove_abandoned

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")

TEXT = ["to be or not to be", "to do is to be"]
RUN = "run-000001.keys.parquet"
SPILL = f"{PREFIX}0123456789abcdef"
Plant = Callable[[Path], None]


def compressed(**columns: Any) -> pl.DataFrame:
    return pl.DataFrame({**columns, "text": TEXT}).tadoc.compress("text")


def tree(folder: Path) -> dict[str, Any]:
    """Say what a folder holds: each thing's kind, and what its bytes are or where it points to."""
    found: dict[str, Any] = {}
    for place in sorted(folder.rglob("*")):
        mode = place.lstat().st_mode
        what = place.read_bytes() if stat.S_ISREG(mode) else place.readlink() if stat.S_ISLNK(mode) else None
        found[place.relative_to(folder).as_posix()] = (stat.S_IFMT(mode), what)
    return found


def a_file(path: Path) -> None:
    path.write_text("years of work")


def a_folder(path: Path) -> None:
    path.mkdir()
    a_file(path / "thesis.tex")


def a_link(path: Path) -> None:
    path.symlink_to(path.parent / "elsewhere")


PLANTS: dict[str, Plant] = {"file": a_file, "folder": a_folder, "link": a_link, "fifo": os.mkfifo}
NOT_FILES = {name: plant for name, plant in PLANTS.items() if name != "file"}

# Indexes


def save(path: Path) -> None:
    compressed().tadoc.build_index("text").save(path, overwrite=True)


def sink(path: Path) -> None:
    compressed().lazy().tadoc.sink_index(path, overwrite=True)


SAVES = pytest.mark.parametrize("save", [save, sink])


@SAVES
@pytest.mark.parametrize(
    "header",
    ["", "{", "[]", "[" * 989 + "]" * 989, '{"name": "a project"}', '{"format": "another", "files": {}}', "\0", "ü"],
)
def test_a_folder_with_a_header_of_something_else(save: Callable[[Path], None], header: str, tmp_path: Path) -> None:
    path = tmp_path / "project"
    path.mkdir()
    (path / HEADER).write_bytes(header.encode("latin-1"))
    (path / "thesis.tex").write_text("years of work")
    before = tree(tmp_path)
    with pytest.raises(
        FileExistsError, match=r"project is not a saved index, and is not replaced: its header\.json is "
    ):
        save(path)
    assert tree(tmp_path) == before


@SAVES
@pytest.mark.parametrize("plant", NOT_FILES.values(), ids=NOT_FILES)
def test_a_header_that_is_no_file(save: Callable[[Path], None], plant: Plant, tmp_path: Path) -> None:
    path = tmp_path / "project"
    path.mkdir()
    plant(path / HEADER)
    before = tree(tmp_path)
    with pytest.raises(FileExistsError, match="project is not a saved index"):
        save(path)
    assert tree(tmp_path) == before


@SAVES
@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
def test_an_index_with_a_file_that_it_does_not_list(save: Callable[[Path], None], plant: Plant, tmp_path: Path) -> None:
    path = tmp_path / "index"
    save(path)
    plant(path / "notes")
    before = tree(tmp_path)
    with pytest.raises(
        FileExistsError, match=r'index contains "notes", which is not a file of the saved index.*elsewhere'
    ):
        save(path)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("plant", [a_folder, os.mkfifo])
def test_an_index_with_something_in_the_place_of_a_file(plant: Plant, tmp_path: Path) -> None:
    path = tmp_path / "index"
    save(path)
    (path / "segment_0.lengths.npy").unlink()
    plant(path / "segment_0.lengths.npy")
    before = tree(tmp_path)
    with pytest.raises(FileExistsError, match=r'index contains "segment_0\.lengths\.npy", which is not a file'):
        save(path)
    assert tree(tmp_path) == before


@pytest.mark.parametrize("listed", [None, 5, [], ["thesis.tex"], {}, {"../thesis.tex": {}}])
def test_a_header_that_lists_no_files(listed: Any, tmp_path: Path) -> None:
    path = tmp_path / "index"
    save(path)
    (path / HEADER).write_text(json.dumps({"format": "polars_tadoc index", "files": listed}))
    before = tree(tmp_path)
    with pytest.raises(FileExistsError, match="which is not a file of the saved index"):
        save(path)
    assert tree(tmp_path) == before


def test_a_damaged_index_is_replaced(tmp_path: Path) -> None:
    """Its errors say so: build the index again and save it."""
    path = tmp_path / "index"
    save(path)
    header = json.loads((path / HEADER).read_text())
    (path / HEADER).write_text(json.dumps({**header, "crc32": 0, "format_version": 9}))
    (path / "segment_0.lengths.npy").unlink()
    save(path)
    assert tadoc.load_index(path).documents == len(TEXT)


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
def test_what_is_put_into_an_index_while_the_new_one_is_written(
    plant: Plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "index"
    save(path)
    kept, flush = tree(path), atomic_write.flush

    def planting(file: Path) -> None:
        flush(file)
        if not os.path.lexists(path / "notes"):
            plant(path / "notes")

    monkeypatch.setattr(atomic_write, "flush", planting)
    with pytest.raises(FileExistsError, match=r'index contains "notes"'):
        save(path)
    assert tree(path).items() > kept.items()
    assert [one.name for one in tmp_path.iterdir()] == ["index"]


# The instant in which the new one takes the old one's name


def write(path: Path) -> None:
    compressed(k=["A", "B"], row=[1, 2]).tadoc.write_parquet(path, partition_by="k")


@pytest.fixture(params=["exchange", "two renames"])
def exchange(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once as on a system that exchanges names, where this one can, and once as on one that cannot."""
    if request.param == "two renames":
        monkeypatch.setattr(atomic_write, "exchange", lambda one, other: False)


AT_ONCE = pytest.mark.parametrize(
    ("make", "name"), [(save, "notes"), (sink, "notes"), (write, "k=A/notes")], ids=["save", "sink", "partitions"]
)


@pytest.mark.usefixtures("exchange")
@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
@AT_ONCE
def test_what_is_put_into_the_old_one_just_before(
    make: Callable[[Path], None], name: str, plant: Plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the last look, and before the old one loses its name: the old one stays, and the call names the file."""
    path, swap = tmp_path / "out", atomic_write._swap
    make(path)
    kept = tree(path)

    def planting(temporary: Path, to: Path, old: Path) -> None:
        plant(path / name)
        swap(temporary, to, old)

    monkeypatch.setattr(atomic_write, "_swap", planting)
    with pytest.raises(FileExistsError, match=f'{re.escape(str(path))} contains "?{name}'):
        make(path)
    assert tree(path).items() > kept.items()
    assert os.path.lexists(path / name)
    assert [one.name for one in tmp_path.iterdir()] == ["out"]


@pytest.mark.usefixtures("exchange")
@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
@AT_ONCE
def test_what_is_put_into_the_old_one_just_after(
    make: Callable[[Path], None], name: str, plant: Plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one that has the folder open while it is deleted: the new one is there, and a warning tells where it is."""
    path, discard = tmp_path / "out", atomic_write._discard
    make(path)
    path.chmod(0o750)

    def planting(old: Path, to: Path, listed: Any) -> Path | None:
        plant(old / name)
        return discard(old, to, listed)

    monkeypatch.setattr(atomic_write, "_discard", planting)
    with pytest.warns(KeptFilesWarning, match=f"{re.escape(str(path))} was replaced.* kept in ") as told:
        make(path)
    monkeypatch.undo()
    kept = Path(str(told[0].message).rpartition(" kept in ")[2])
    assert (kept.parent, kept.stat().st_mode & 0o777) == (tmp_path, 0o750)
    before = tree(kept)
    assert name in before
    assert set(before) <= {"k=A", name, f"{name}/thesis.tex"}
    make(path)  # the next call lets it be
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out", kept.name]
    assert tree(kept) == before


@AT_ONCE
def test_what_is_put_into_an_old_one_that_a_killed_call_left(
    make: Callable[[Path], None], name: str, tmp_path: Path
) -> None:
    path, left = tmp_path / "out", tmp_path / ".out.01234567.old"
    make(path)
    make(left)
    a_file(left / name)
    before = tree(left)
    make(path)
    assert tree(left) == before
    (left / name).unlink()
    make(path)
    assert [one.name for one in tmp_path.iterdir()] == ["out"]


# Checkpoints


@pytest.fixture
def packed(tmp_path: Path) -> pl.LazyFrame:
    (tmp_path / "packed").mkdir()
    compressed().tadoc.write_packed(tmp_path / "packed" / "a.parquet")
    return tadoc.scan_packed(tmp_path / "packed")


def count(scan: pl.LazyFrame, folder: Path) -> int:
    return scan.tadoc.word_count("text", memory_limit="1GB", checkpoint=folder).collect().height


NAMES = [RUN, "run-000001", "run-1.txt", "run-000001.old", SPILL, f"{PREFIX}results", ".manifest.json.backup"]


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
@pytest.mark.parametrize("name", NAMES)
def test_a_folder_that_is_no_checkpoint(name: str, plant: Plant, packed: pl.LazyFrame, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    plant(folder / name)
    before = tree(folder)
    with pytest.raises((ValueError, pl.exceptions.ComputeError), match=f'is not a checkpoint: it has "{name}"; name a'):
        count(packed, folder)
    assert tree(folder) == before


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
@pytest.mark.parametrize(
    "name", ["run-000009", "run-9.txt", "run-000009.old", f"{PREFIX}results", "run-9.keys.parquet"]
)
def test_other_things_in_a_checkpoint_stay(name: str, plant: Plant, packed: pl.LazyFrame, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    height = count(packed, folder)
    plant(folder / name)
    before = tree(folder)
    assert count(packed, folder) == height
    assert tree(folder) == before


@pytest.mark.parametrize("plant", NOT_FILES.values(), ids=NOT_FILES)
def test_no_file_under_the_name_of_a_run(plant: Plant, packed: pl.LazyFrame, tmp_path: Path) -> None:
    folder, name = tmp_path / "kept", "run-000009.keys.parquet"
    height = count(packed, folder)
    plant(folder / name)
    before = tree(folder)
    with pytest.raises((ValueError, pl.exceptions.ComputeError), match=f'kept contains "{name}", not a regular file'):
        count(packed, folder)
    assert tree(folder) == before
    shutil.rmtree(folder / name) if plant is a_folder else (folder / name).unlink()
    assert count(packed, folder) == height


def test_what_an_interrupted_call_left_in_a_checkpoint_goes(packed: pl.LazyFrame, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    height = count(packed, folder)
    before = tree(folder)
    for name in ("run-000009.keys.parquet", "run-000009.words.parquet", "run-1234567.rows.parquet"):
        a_file(folder / name)
    a_file(folder / ".manifest.json.0123abcd.tmp")
    a_folder(folder / SPILL)
    assert count(packed, folder) == height
    assert tree(folder) == before


def test_what_a_call_left_that_was_killed_before_the_manifest(packed: pl.LazyFrame, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    a_file(folder / ".manifest.json.0123abcd.tmp")
    assert count(packed, folder)
    assert not (folder / ".manifest.json.0123abcd.tmp").exists()


@pytest.mark.parametrize("name", [SPILL, ".manifest.json.0123abcd.tmp"])
def test_what_another_process_has_locked_stays(name: str, packed: pl.LazyFrame, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    count(packed, folder)
    (a_folder if name == SPILL else a_file)(folder / name)
    before = tree(folder)
    descriptor = lock(folder / name)
    assert descriptor is not None
    try:
        count(packed, folder)
    finally:
        os.close(descriptor)
    assert tree(folder) == before


def test_a_run_holds_only_files_that_the_package_names(tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "kept", {"call": "word_count"}, "word_count")
    for name in (RUN, "run-000001.notes"):
        a_file(tmp_path / "kept" / name)
    checkpoint.commit(["run-000001"])
    checkpoint.close()
    said = json.loads((tmp_path / "kept" / "manifest.json").read_text())
    assert list(said["runs"]["run-000001"]) == [RUN]


# Folders for what is spilled


@pytest.mark.parametrize("name", [f"{PREFIX}results", f"{PREFIX}0123456789ABCDEF", f"{PREFIX}0123456789abcdef.bak"])
def test_folders_named_like_those_for_spilling_stay(name: str, tmp_path: Path) -> None:
    a_folder(tmp_path / name)
    a_folder(tmp_path / SPILL)
    with tadoc.Config(spill_folder=tmp_path), SpillFolder("spill") as folder:
        assert folder.path.is_dir()
    assert [one.name for one in tmp_path.iterdir()] == [name]
    assert (tmp_path / name / "thesis.tex").read_text() == "years of work"


@pytest.mark.parametrize("plant", [a_folder, os.mkfifo])
def test_a_run_is_not_written_in_the_place_of_what_is_no_file(plant: Plant, tmp_path: Path) -> None:
    plant(tmp_path / RUN)
    before = tree(tmp_path)
    with pytest.raises(FileExistsError):
        os.close(create_private(tmp_path / RUN))
    assert tree(tmp_path) == before


# Left beside a target


def test_only_folders_are_left_of_folders(tmp_path: Path) -> None:
    for name in (".index.01234567.tmp", ".index.01234567.old"):
        a_file(tmp_path / name)
    before = tree(tmp_path)
    remove_abandoned(tmp_path / "index", lambda _: [])
    assert tree(tmp_path) == before


# Folders of partitions


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
@pytest.mark.parametrize("name", ["k=A/zz.parquet", "k=A/00000001.parquet", "k=C/00000000.parquet", "notes", "k=D"])
def test_a_folder_of_partitions_with_something_else(name: str, plant: Plant, tmp_path: Path) -> None:
    path = tmp_path / "out"
    write(path)
    (path / name).parent.mkdir(exist_ok=True)
    plant(path / name)
    before = tree(path)
    if plant is a_file and name == "k=C/00000000.parquet":
        write(path)  # as an earlier call wrote it
        assert sorted(tree(path)) == ["k=A", "k=A/00000000.parquet", "k=B", "k=B/00000000.parquet"]
        return
    with pytest.raises(FileExistsError, match=rf"out contains {name}.*; choose another folder"):
        write(path)
    assert tree(path) == before


def test_empty_folders_of_others_stay(tmp_path: Path) -> None:
    (tmp_path / "out" / "photos").mkdir(parents=True)
    with pytest.raises(FileExistsError, match="out contains photos"):
        write(tmp_path / "out")
    assert (tmp_path / "out" / "photos").is_dir()


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
def test_what_is_put_among_partitions_while_new_ones_are_written(
    plant: Plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out"
    write(path)
    kept, flush = tree(path), atomic_write.flush

    def planting(file: Path) -> None:
        flush(file)
        with suppress(FileExistsError):
            plant(path / "k=A" / "zz.parquet")

    monkeypatch.setattr(atomic_write, "flush", planting)
    with pytest.raises(FileExistsError, match=r"out contains k=A/zz\.parquet"):
        write(path)
    assert tree(path).items() > kept.items()
    assert [one.name for one in tmp_path.iterdir()] == ["out"]


def test_the_name_of_the_file_is_the_one_that_is_written(tmp_path: Path) -> None:
    write(tmp_path / "out")
    assert {file.name for file in (tmp_path / "out").rglob("*.parquet")} == {hive.FILE}


# What workers compress


def test_a_target_of_workers_that_is_filled_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "packed"
    path.mkdir()

    def fill() -> None:
        require = partial(atomic_write.require_empty, call="compress")
        with atomic_write.atomic_folder(path, "compress", require) as temporary:
            a_file(temporary / "00000.parquet")
            a_file(path / "notes")

    with pytest.raises(FileExistsError, match=r"compress: .*packed already exists"):
        fill()
    assert [one.name for one in tmp_path.iterdir()] == ["packed"]
    assert [one.name for one in path.iterdir()] == ["notes"]
