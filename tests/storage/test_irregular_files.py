"""FIFOs, devices, sockets, folders and links where files are expected: a named error, at once."""

from __future__ import annotations

import errno
import os
import re
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.errors import (
    InvalidDictionaryError,
    InvalidGrammarError,
    InvalidIndexError,
    InvalidRecordsError,
    InvalidTwigSetError,
    LimitExceededError,
    NotAFileError,
)
from polars_tadoc.records.runs import KeysFile
from polars_tadoc.records.spill_folder import PREFIX, SpillFolder
from polars_tadoc.records.word_runs import WordsFile
from polars_tadoc.runtime import regular_file
from polars_tadoc.storage.atomic_write import atomic_file, beside, lock, target
from tests.rights import needs_to_give_files_away

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")

SECONDS = 20.0
TEXT = ["to be or not to be", "to do is to be"] * 20
Plant = Callable[[Path], None]


def within(call: Callable[[], Any], fifo: Path | None = None) -> Any:
    """Return what a call returns, or raise what it raises; fail where it waits."""
    done: list[Any] = []

    def run() -> None:
        try:
            done.append((call(), None))
        except BaseException as error:
            done.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(SECONDS)
    if not done and fifo is not None:  # let the thread go
        with suppress(OSError):
            os.close(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK))
    assert done, "the call waits for ever"
    value, error = done[0]
    if error is not None:
        raise error
    return value


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        before = Path.cwd()
        os.chdir(path.parent)  # the names of sockets are short
        try:
            made.bind(path.name)
        finally:
            os.chdir(before)


def make_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


PLANTS = [make_fifo, make_socket, make_device, Path.mkdir]


SCANS = [tadoc.scan_packed, tadoc.scan_parquet, tadoc.parquet_info]


@pytest.fixture(params=PLANTS, ids=["fifo", "socket", "device", "folder"])
def plant(request: pytest.FixtureRequest) -> Plant:
    made: Plant = request.param
    return made


@pytest.fixture(scope="module")
def index() -> tadoc.Index:
    return tadoc.build_index(pl.Series("text", TEXT).tadoc.compress())


def test_an_index_file(index: tadoc.Index, plant: Plant, tmp_path: Path) -> None:
    folder = tmp_path / "index"
    for verify in (True, False):
        for mmap in (True, False):
            index.save(folder, overwrite=True)
            for name in sorted(file.name for file in folder.iterdir()):
                kept = folder.parent / "kept"
                (folder / name).rename(kept)
                plant(folder / name)
                with pytest.raises(InvalidIndexError, match=re.escape(name)):
                    within(partial(tadoc.load_index, folder, verify=verify, mmap=mmap), folder / name)
                (folder / name).rmdir() if (folder / name).is_dir() else (folder / name).unlink()
                kept.rename(folder / name)


def test_an_index_of_links(index: tadoc.Index, tmp_path: Path) -> None:
    folder, linked = tmp_path / "store", tmp_path / "index"
    index.save(folder)
    linked.mkdir()
    for file in folder.iterdir():
        (linked / file.name).symlink_to(file)
    behind = tmp_path / "behind"
    behind.symlink_to(linked)
    expected = index.search("do").get_column("id").to_list()
    assert tadoc.load_index(behind).search("do").get_column("id").to_list() == expected
    index.save(behind, overwrite=True)
    assert behind.is_symlink()
    assert tadoc.load_index(behind).search("do").get_column("id").to_list() == expected


def test_a_dictionary(plant: Plant, tmp_path: Path) -> None:
    plant(tmp_path / "planted")
    for verify in (True, False):
        with pytest.raises(InvalidDictionaryError, match="planted is a"):
            within(partial(tadoc.Dictionary.load, tmp_path / "planted", verify=verify), tmp_path / "planted")


def test_a_set_of_twigs(plant: Plant, tmp_path: Path) -> None:
    plant(tmp_path / "planted")
    with pytest.raises(InvalidTwigSetError, match="planted is a"):
        within(lambda: tadoc.TwigSet.load(tmp_path / "planted"), tmp_path / "planted")


def test_a_device_without_end() -> None:
    with pytest.raises(InvalidTwigSetError, match="/dev/zero is a device"):
        within(lambda: tadoc.TwigSet.load("/dev/zero"))
    with pytest.raises(InvalidDictionaryError, match="/dev/zero is a device"):
        within(lambda: tadoc.Dictionary.load("/dev/zero"))


@pytest.mark.parametrize("size", [1 << 20, 1 << 40])
def test_json_is_read_up_to_a_limit(size: int, index: tadoc.Index, tmp_path: Path) -> None:
    index.save(tmp_path / "index")
    for path in (tmp_path / "twigs.json", tmp_path / "index" / "header.json"):
        with path.open("ab") as file:
            with suppress(OSError):  # file systems have a largest size
                file.truncate(size)
            if os.fstat(file.fileno()).st_size != size:
                pytest.skip("the file system has no such large files")
    with tadoc.Config(payload_limit_bytes=1 << 20):
        with pytest.raises(LimitExceededError, match=r"TwigSet\.load: .*payload_limit_bytes="):
            tadoc.TwigSet.load(tmp_path / "twigs.json")
        with pytest.raises(LimitExceededError, match=r"load_index: .*payload_limit_bytes="):
            tadoc.load_index(tmp_path / "index")


def test_packed_files(plant: Plant, tmp_path: Path) -> None:
    frame = pl.DataFrame({"text": TEXT}).tadoc.compress("text")
    frame.lazy().tadoc.sink_packed(tmp_path / "sound.parquet")
    (tmp_path / "below").mkdir()
    for name in ("below/manifest.json", "below/header.json"):
        plant(tmp_path / name)
    found = within(lambda: tadoc.scan_packed(tmp_path).tadoc.decompress("text").collect(), tmp_path / "planted.parquet")
    assert found["text"].to_list() == TEXT


@pytest.mark.parametrize("scan", SCANS, ids=lambda scan: scan.__name__)
def test_a_parquet_file_that_is_none(scan: Callable[[Any], Any], plant: Plant, tmp_path: Path) -> None:
    pl.DataFrame({"text": TEXT}).tadoc.compress("text").lazy().tadoc.sink_packed(tmp_path / "sound.parquet")
    planted = tmp_path / "planted.parquet"
    plant(planted)
    for source in (tmp_path, planted, str(tmp_path / "*.parquet"), [tmp_path / "sound.parquet", planted]):
        if plant is not Path.mkdir:
            with pytest.raises(
                NotAFileError, match=rf"{scan.__name__}: .*planted\.parquet is a (FIFO|socket|device), not"
            ):
                within(partial(scan, source), planted)
        elif source in (planted, [tmp_path / "sound.parquet", planted]):
            with pytest.raises(FileNotFoundError, match=r"planted\.parquet: no Parquet file found"):
                scan(source)
        elif scan is not tadoc.parquet_info:
            scan(source)  # what is in a folder of that name is read


@pytest.mark.parametrize("scan", SCANS, ids=lambda scan: scan.__name__)
def test_a_parquet_file_that_is_a_broken_link(scan: Callable[[Any], Any], tmp_path: Path) -> None:
    pl.DataFrame({"text": TEXT}).tadoc.compress("text").lazy().tadoc.sink_packed(tmp_path / "sound.parquet")
    broken = tmp_path / "broken.parquet"
    for leads_to, error, said in (
        ("gone.parquet", FileNotFoundError, "is a link to gone.parquet, which does not exist"),
        ("broken.parquet", NotAFileError, "is a link that leads back to itself, not a regular file"),
    ):
        broken.symlink_to(leads_to)
        for source in (tmp_path, broken, str(tmp_path / "*.parquet"), [broken]):
            with pytest.raises(error, match=rf"^{scan.__name__}: .*broken\.parquet {re.escape(said)}"):
                scan(source)
        broken.unlink()
    (tmp_path / "broken").symlink_to("gone")  # of no concern
    if scan is not tadoc.parquet_info:
        scan(tmp_path)


def test_links_to_folders_are_followed(tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    (folder / "sub").mkdir(parents=True)
    outside.mkdir()
    for number, place in enumerate((folder / "a.parquet", folder / "sub" / "b.parquet", outside / "c.parquet")):
        pl.DataFrame({"number": [number], "text": ["a"]}).tadoc.compress("text").write_parquet(place)
    (folder / "link").symlink_to(outside)
    numbers = pl.scan_parquet(folder).collect()["number"].to_list()
    assert numbers == [0, 2, 1]  # as Polars has it
    assert tadoc.scan_parquet(folder).collect()["number"].to_list() == numbers
    assert tadoc.scan_parquet(folder / "**" / "*.parquet").collect()["number"].to_list() == numbers
    (outside / "back").symlink_to(folder)  # two circles, one over two links
    (folder / "sub" / "up").symlink_to(folder)
    assert tadoc.scan_parquet(folder).collect()["number"].to_list() == numbers
    assert tadoc.scan_parquet(folder / "**" / "*.parquet").collect()["number"].to_list() == numbers
    (outside / "above").symlink_to(tmp_path)
    with pytest.raises(NotAFileError, match=r"scan_parquet: .*above is a link to .*, which contains .*remove the link"):
        tadoc.scan_parquet(folder)


def test_links_to_indexes_are_passed_over(index: tadoc.Index, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    frame = pl.DataFrame({"text": TEXT}).tadoc.compress("text")
    frame.lazy().tadoc.sink_packed(tmp_path / "folder" / "sound.parquet")
    index.save(tmp_path / "index")
    (tmp_path / "folder" / "link").symlink_to(tmp_path / "index")
    assert tadoc.scan_packed(tmp_path / "folder").select(pl.len()).collect().item() == len(TEXT)


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 0)() == 0, reason="root may list any folder")
def test_a_folder_that_may_not_be_listed(tmp_path: Path) -> None:
    pl.DataFrame({"text": TEXT}).tadoc.compress("text").lazy().tadoc.sink_packed(tmp_path / "sound.parquet")
    (tmp_path / "closed").mkdir(mode=0)
    with pytest.raises(PermissionError, match="closed"):
        tadoc.scan_packed(tmp_path)


def test_a_packed_file_that_becomes_something_else(plant: Plant, tmp_path: Path) -> None:
    path = tmp_path / "packed.parquet"
    pl.DataFrame({"text": TEXT}).tadoc.compress("text").lazy().tadoc.sink_packed(path)
    scan = tadoc.scan_packed(path)
    path.unlink()
    plant(path)
    with pytest.raises((OSError, InvalidGrammarError, pl.exceptions.ComputeError), match=r"packed\.parquet"):
        within(lambda: scan.tadoc.word_count("text").collect(), path)


def test_parquet_info(plant: Plant, tmp_path: Path) -> None:
    plant(tmp_path / "planted")
    with pytest.raises(
        (FileNotFoundError, NotAFileError), match=r"planted(: no Parquet file found| is a .*, not a regular)"
    ):
        within(lambda: tadoc.parquet_info(tmp_path / "planted"), tmp_path / "planted")


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed")
    for number in range(3):
        frame = pl.DataFrame({"text": TEXT[number:], "name": [str(row) for row in range(len(TEXT) - number)]})
        frame.tadoc.compress("text").lazy().tadoc.sink_packed(folder / f"{number}.parquet")
    return folder


def test_the_files_of_a_checkpoint(packed: Path, plant: Plant, tmp_path: Path) -> None:
    def count() -> pl.DataFrame:
        scan = tadoc.scan_packed(packed)
        return scan.tadoc.word_count("text", memory_limit="1GB", checkpoint=tmp_path / "kept").collect()

    expected = count()
    for name in sorted(file.name for file in (tmp_path / "kept").iterdir()):
        kept = tmp_path / "elsewhere"
        (tmp_path / "kept" / name).rename(kept)
        plant(tmp_path / "kept" / name)
        with pytest.raises((InvalidRecordsError, pl.exceptions.ComputeError), match=re.escape(name)):
            within(count, tmp_path / "kept" / name)
        planted = tmp_path / "kept" / name
        planted.rmdir() if planted.is_dir() else planted.unlink()
        kept.rename(planted)
    assert within(count).equals(expected)


def test_runs(plant: Plant, tmp_path: Path) -> None:
    plant(tmp_path / "run")
    for read in (lambda path: KeysFile(path, 1, counted=True), WordsFile):
        with pytest.raises(InvalidRecordsError, match="run is damaged"):
            within(partial(read, tmp_path / "run"), tmp_path / "run")


LEFT_BEHIND = [".new.parquet.01234567.tmp", ".new.parquet.01234567.old", f".new.parquet.{'0' * 8}.tmp"]


@pytest.mark.parametrize("name", LEFT_BEHIND)
def test_what_is_planted_beside_a_target(name: str, plant: Plant, tmp_path: Path) -> None:
    path = tmp_path / "new.parquet"
    plant(tmp_path / name)
    frame = pl.DataFrame({"text": TEXT}).tadoc.compress("text")
    within(lambda: frame.lazy().tadoc.sink_packed(path), tmp_path / name)
    assert tadoc.scan_packed(path).tadoc.decompress("text").collect()["text"].to_list() == TEXT


def test_what_is_planted_beside_an_index(index: tadoc.Index, plant: Plant, tmp_path: Path) -> None:
    plant(tmp_path / ".index.01234567.tmp")
    within(lambda: index.save(tmp_path / "index"), tmp_path / ".index.01234567.tmp")
    assert len(tadoc.load_index(tmp_path / "index").search("do")) > 0


def test_what_is_planted_among_temporary_files(plant: Plant, tmp_path: Path) -> None:
    planted = tmp_path / f"{PREFIX}{'0' * 16}"
    plant(planted)
    with tadoc.Config(spill_folder=tmp_path), SpillFolder("spill") as folder:
        path = within(lambda: folder.path, planted)
        assert path.stat().st_mode & 0o777 == 0o700
    assert os.path.lexists(planted) == (plant is not Path.mkdir)  # an empty folder of ours may be a killed process's


def test_links_that_are_left_behind_are_not_followed(tmp_path: Path) -> None:
    own, inside = tmp_path / "own", tmp_path / "own" / "file"
    own.mkdir()
    inside.write_text("kept")
    (tmp_path / f"{PREFIX}{'0' * 16}").symlink_to(own)
    (tmp_path / ".new.01234567.tmp").symlink_to(own)
    (tmp_path / ".new.01234567.old").symlink_to(inside)
    with tadoc.Config(spill_folder=tmp_path), SpillFolder("spill") as folder:
        assert folder.path.is_dir()
    with atomic_file(tmp_path / "new", "save") as temporary:
        temporary.write_text("new")
    assert inside.read_text() == "kept"
    assert (tmp_path / "new").read_text() == "new"


def test_spill_folders_of_others_stay(tmp_path: Path) -> None:
    needs_to_give_files_away(tmp_path)
    (tmp_path / f"{PREFIX}{'0' * 16}").mkdir(0o700)
    os.chown(tmp_path / f"{PREFIX}{'0' * 16}", 65534, 65534)
    with tadoc.Config(spill_folder=tmp_path), SpillFolder("spill") as folder:
        assert folder.path.is_dir()
    assert (tmp_path / f"{PREFIX}{'0' * 16}").is_dir()


@pytest.mark.parametrize("make", [make_fifo, make_socket, make_device], ids=["fifo", "socket", "device"])
def test_as_a_target(make: Plant, index: tadoc.Index, tmp_path: Path) -> None:
    path = tmp_path / "planted"
    make(path)
    frame = pl.DataFrame({"text": TEXT}).tadoc.compress("text")
    calls: list[Callable[[], object]] = [
        lambda: frame.lazy().tadoc.sink_packed(path),
        lambda: frame.lazy().tadoc.sink_parquet(path),
        lambda: frame.lazy().tadoc.sink_index(path, "text"),
        lambda: index.save(path),
        lambda: index.save(path, overwrite=True),
        lambda: tadoc.Dictionary.from_words(pl.Series(["to"])).save(path),
        lambda: tadoc.TwigSet({"a": "//a"}).save(path),
    ]
    for call in calls:
        with pytest.raises(OSError, match=r"/(planted|dev/zero) (is|already exists)"):
            within(call, path)
    assert os.path.lexists(path)


def test_a_target_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "twigs").symlink_to(tmp_path / "real" / "twigs")
    tadoc.TwigSet({"a": "//a"}).save(tmp_path / "twigs")
    tadoc.TwigSet({"b": "//b"}).save(tmp_path / "link" / "twigs")
    assert (tmp_path / "twigs").is_symlink()
    assert list(tadoc.TwigSet.load(tmp_path / "twigs")) == ["b"]
    assert target(tmp_path / "twigs", "save") == (tmp_path / "real" / "twigs").resolve()


def test_a_checkpoint_that_is_a_fifo(packed: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "kept")
    with pytest.raises((OSError, pl.exceptions.ComputeError), match="kept"):
        within(
            lambda: (
                tadoc.scan_packed(packed)
                .tadoc.word_count("text", memory_limit="1GB", checkpoint=tmp_path / "kept")
                .collect()
            ),
            tmp_path / "kept",
        )


def test_what_is_swapped_between_looking_and_opening(plant: Plant, tmp_path: Path) -> None:
    path, look = tmp_path / "file", os.stat
    path.write_text("{}")

    def swap(asked: Any, **options: Any) -> os.stat_result:
        found = look(asked, **options)
        if asked == path:
            path.unlink()
            plant(path)
        return found

    with patch.object(regular_file.os, "stat", swap), pytest.raises((NotAFileError, IsADirectoryError)):
        within(lambda: regular_file.open_regular(path), path)


def test_a_link_that_is_swapped_in(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("secret")
    (tmp_path / "file").symlink_to(tmp_path / "other")
    found = (tmp_path / "other").stat()
    with patch.object(regular_file.os, "stat", lambda *_, **__: found), pytest.raises(NotAFileError, match="file is a"):
        regular_file.open_regular(tmp_path / "file", follow=False)
    with regular_file.open_regular(tmp_path / "file") as file:
        assert file.read() == b"secret"


def test_arrow_reads_the_file_that_was_opened(tmp_path: Path) -> None:
    path, own = tmp_path / "file", regular_file._name_of
    path.write_bytes(b"first")

    def swap(descriptor: int, asked: Path) -> str:
        found = own(descriptor, asked)
        path.unlink()
        os.mkfifo(path)
        return found

    if not os.path.exists("/proc/self/fd"):
        pytest.skip("this system has no names of open files")
    with patch.object(regular_file, "_name_of", swap):
        file = within(lambda: regular_file.arrow_file(path), path)
    assert file.read() == b"first"


def test_private_files_take_nobody_elses_name(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"kept")
    (tmp_path / "run").symlink_to(tmp_path / "other")
    with regular_file.private_arrow_file(tmp_path / "run") as file:
        file.write(b"new")
    assert (tmp_path / "other").read_bytes() == b"kept"
    assert (tmp_path / "run").read_bytes() == b"new"
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o600


def test_locks(plant: Plant, tmp_path: Path) -> None:
    locked = tmp_path / "planted"
    plant(locked)
    if plant is Path.mkdir:
        descriptor = within(lambda: lock(locked))
        assert lock(locked) is None
        os.close(descriptor)
    else:
        with pytest.raises(OSError, match="is a"):
            within(lambda: lock(locked), locked)


def test_names_that_are_taken_are_not_written_to(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("kept")
    (tmp_path / ".new.01234567.tmp").symlink_to(tmp_path / "other")
    with (
        patch("secrets.token_hex", return_value="01234567"),
        pytest.raises(FileExistsError) as raised,
        beside(tmp_path / "new", lambda temporary: temporary.touch(exist_ok=False)),
    ):
        pytest.fail("a link was taken for a new file")
    assert raised.value.errno == errno.EEXIST
    assert (tmp_path / "other").read_text() == "kept"


NOT_UTF8 = os.fsdecode(b"caf\xe9.parquet")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have no such names")
@pytest.mark.parametrize(
    ("call", "make"),
    {
        "scan_packed": lambda _, path: tadoc.scan_packed(path),
        "scan_parquet": lambda _, path: tadoc.scan_parquet(path.parent),
        "write_packed": lambda df, path: df.tadoc.write_packed(path),
        "sink_packed": lambda df, path: df.lazy().tadoc.sink_packed(path),
        "sink_parquet": lambda df, path: df.lazy().tadoc.sink_parquet(path),
        "sink_index": lambda df, path: df.lazy().tadoc.sink_index(path, "text"),
    }.items(),
)
def test_a_name_that_is_not_utf8(call: str, make: Callable[[pl.DataFrame, Path], object], tmp_path: Path) -> None:
    """Linux has such names; Polars and PyArrow cannot open them, and said so without the name."""
    df = pl.DataFrame({"text": ["a b"]}).tadoc.compress("text")
    if call.startswith("scan"):
        df.tadoc.write_packed(tmp_path / "packed")
        os.rename(tmp_path / "packed", tmp_path / NOT_UTF8)
    with pytest.raises(ValueError, match=rf"^{call}: the name '{tmp_path}/caf.udce9.parquet' is not UTF-8; rename "):
        make(df, tmp_path / NOT_UTF8)


def test_an_address_that_is_not_utf8() -> None:
    with pytest.raises(ValueError, match=r"^scan_packed: the name 's3://bucket/.ud800' is not UTF-8"):
        tadoc.scan_packed("s3://bucket/\ud800")
