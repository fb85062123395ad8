"""What is written is as private as what it replaces, while it is written and afterwards."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.records.spill_folder import SpillFolder
from polars_tadoc.runtime import permissions
from polars_tadoc.storage import atomic_write
from tests.rights import needs_modes_of_the_umask, needs_to_give_files_away

pytestmark = pytest.mark.skipif(os.name != "posix", reason="this system has no such permissions")

FRAME = pl.DataFrame({"text": ["to be or not to be", "to do is to be"] * 20}).tadoc.compress("text")
INDEX = tadoc.build_index(FRAME["text"])

FILES: dict[str, Callable[[Path], object]] = {
    "sink_packed": lambda path: FRAME.lazy().tadoc.sink_packed(path),
    "sink_parquet": lambda path: FRAME.lazy().tadoc.sink_parquet(path),
    "Dictionary.save": lambda path: tadoc.Dictionary.from_words(pl.Series(["to"])).save(path),
    "TwigSet.save": lambda path: tadoc.TwigSet({"a": "//a"}).save(path),
}
FOLDERS: dict[str, Callable[[Path], object]] = {
    "Index.save": lambda path: INDEX.save(path, overwrite=True),
    "sink_index": lambda path: FRAME.lazy().tadoc.sink_index(path, "text", overwrite=True),
}


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@contextmanager
def watched() -> Iterator[tuple[list[int], list[int]]]:
    """Note the modes of all that has a temporary name whenever a file is flushed, and just before it is renamed."""
    flushes: list[int] = []
    renames: list[int] = []
    flush, rename = atomic_write.flush, os.replace

    def flushed(path: Path) -> None:
        top = next(one for one in (path, *path.parents) if one.name.endswith(".tmp"))
        flushes.append(mode(top))
        flush(path)

    def renamed(old: Any, new: Any) -> None:
        if any(part.endswith(".tmp") for part in Path(old).parts[-2:]):  # itself, or in a folder of that name
            renames.append(mode(Path(old)))
        rename(old, new)

    with patch.object(atomic_write, "flush", flushed), patch.object(os, "replace", renamed):
        yield flushes, renames


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize("call", FILES)
def test_a_file(call: str, mask: int, tmp_path: Path) -> None:
    needs_modes_of_the_umask(tmp_path)
    path = tmp_path / "file"
    with umask(mask):
        FILES[call](path)
        assert mode(path) == 0o666 & ~mask
        for own in (0o600, 0o640, 0o664, 0o400):
            path.chmod(own)
            with watched() as (flushes, renames):
                FILES[call](path)
            assert mode(path) == own
            assert renames == [own]
            assert set(flushes) == {0o700 if call == "sink_parquet" else 0o600}  # it writes in a private folder


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize("call", FOLDERS)
def test_a_folder(call: str, mask: int, tmp_path: Path) -> None:
    needs_modes_of_the_umask(tmp_path)
    path = tmp_path / "index"
    with umask(mask):
        with watched() as (flushes, renames):
            FOLDERS[call](path)
        assert mode(path) == 0o777 & ~mask
        assert {mode(file) for file in path.iterdir()} == {0o666 & ~mask}
        assert set(flushes) == {0o700}
        assert set(renames) == {0o777 & ~mask}
        for folder, file in ((0o700, 0o600), (0o750, 0o640), (0o755, 0o600)):
            path.chmod(folder)
            for one in path.iterdir():
                one.chmod(file)
            with watched() as (flushes, renames):
                FOLDERS[call](path)
            assert mode(path) == folder
            assert {mode(one) for one in path.iterdir()} == {file}
            assert set(flushes) == {0o700}
            assert set(renames) == {folder}
    assert [one.name for one in tmp_path.iterdir()] == ["index"]


def test_files_that_are_new_in_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "index"
    with umask(0o022):
        INDEX.save(path)
        for name, own in (("header.json", 0o640), ("segment_0.terms.parquet", 0o604)):
            (path / name).chmod(own)
        for one in path.iterdir():
            if one.name not in ("header.json", "segment_0.terms.parquet"):
                one.unlink()
        INDEX.save(path, overwrite=True)
    modes = {one.name: mode(one) for one in path.iterdir()}
    assert (modes.pop("header.json"), modes.pop("segment_0.terms.parquet")) == (0o640, 0o604)
    assert set(modes.values()) == {0o600}


def test_an_error_leaves_the_mode(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o640)
    with pytest.raises(IsADirectoryError), atomic_write.atomic_file(path, "save"):
        tmp_path.read_text()
    assert (mode(path), path.read_text()) == (0o640, "old")


def test_owners_and_groups(tmp_path: Path) -> None:
    needs_to_give_files_away(tmp_path)
    path, folder = tmp_path / "file", tmp_path / "index"
    FILES["TwigSet.save"](path)
    FOLDERS["Index.save"](folder)
    for one in (path, folder, *folder.iterdir()):
        os.chown(one, 12345, 23456)
    FILES["TwigSet.save"](path)
    FOLDERS["Index.save"](folder)
    for one in (path, folder, *folder.iterdir()):
        assert (one.stat().st_uid, one.stat().st_gid) == (12345, 23456)


@pytest.mark.parametrize(("own", "left"), [(0o660, 0o600), (0o664, 0o644), (0o640, 0o600), (0o600, 0o600)])
def test_a_group_that_cannot_be_kept_gets_no_more_than_others(own: int, left: int, tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.touch()
    new.touch()
    old.chmod(own)
    real = Path.stat

    def stat_with_group(path: Path, **options: Any) -> os.stat_result:
        found = real(path, **options)
        return os.stat_result((*found[:5], 23456, *found[6:10])) if path == old else found

    with patch.object(Path, "stat", stat_with_group), patch.object(os, "chown", side_effect=PermissionError):
        permissions.take_over(old, new)
    assert mode(new) == left


def entries(*own: tuple[int, int, int]) -> bytes:
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *one) for one in own)


NOBODY = 0xFFFFFFFF
LIST = entries((1, 6, NOBODY), (2, 4, 12345), (4, 0, NOBODY), (16, 4, NOBODY), (32, 0, NOBODY))
"""The owner reads and writes, user 12345 reads, the group nothing; the mask, which is shown as the group's: reads."""


def set_list(path: Path, name: str = "access", value: bytes = LIST) -> None:
    try:
        os.setxattr(path, f"system.posix_acl_{name}", value)  # type: ignore[attr-defined,unused-ignore]
    except (OSError, AttributeError):
        pytest.skip("the file system has no access lists")


def test_access_lists_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "file"
    FILES["TwigSet.save"](path)
    set_list(path)
    FILES["TwigSet.save"](path)
    assert os.getxattr(path, "system.posix_acl_access") == LIST
    with patch.object(os, "setxattr", side_effect=PermissionError):
        FILES["TwigSet.save"](path)
    assert mode(path) == 0o600  # without the list, its mask would have been the group's right


def test_a_folders_access_list_gives_no_more(tmp_path: Path) -> None:
    path = tmp_path / "file"
    FILES["TwigSet.save"](path)
    path.chmod(0o640)
    set_list(tmp_path, "default")
    FILES["TwigSet.save"](path)
    assert mode(path) == 0o640
    with pytest.raises(OSError, match="No data"):
        os.getxattr(path, "system.posix_acl_access")


def test_spilled_runs_and_checkpoints_are_private(tmp_path: Path) -> None:
    needs_modes_of_the_umask(tmp_path)
    FILES["sink_packed"](tmp_path / "packed.parquet")
    with umask(0o000), tadoc.Config(spill_folder=tmp_path), SpillFolder("spill") as folder:
        assert mode(folder.path) == 0o700
        own = tmp_path / "own"
        own.mkdir()  # of the user's mode: its files are private all the same
        for kept in (tmp_path / "kept", own):
            scan = tadoc.scan_packed(tmp_path / "packed.parquet")
            scan.tadoc.word_count("text", memory_limit="1GB", checkpoint=kept).collect()
            assert {mode(file) for file in kept.iterdir()} == {0o600}
            assert len(list(kept.iterdir())) == 3
        assert (mode(tmp_path / "kept"), mode(own)) == (0o700, 0o777)
