"""Where nothing can be written, the package is imported and works all the same."""

from __future__ import annotations

import ctypes
import os
import pickle
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

import polars_tadoc as tadoc
from polars_tadoc.runtime.machine_code import entries, folders
from tests.kernel_samples import compile_twice
from tests.rights import needs_a_private_path, needs_closed_folders

pytestmark = pytest.mark.skipif(os.name != "posix", reason="this system has no such permissions")

PACKAGE = Path(tadoc.__file__).parent
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
NOWHERE = "/proc/nowhere"

IMPORT = """
import warnings
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    import polars_tadoc as tadoc
    from polars_tadoc.runtime.compiled import njit
    assert njit(nogil=True)(lambda number: number + 1)(1) == 2
own = [str(one.message) for one in told if one.category is tadoc.errors.KernelCacheWarning]
print(tadoc.__file__, *own, sep="\\n")
"""


def without_rights() -> None:
    """Take root's right to write anywhere from this process."""
    system = ctypes.CDLL(None)
    for right in range(64):
        system.prctl(24, right, 0, 0, 0)  # PR_CAPBSET_DROP


BEFORE = without_rights if IS_ROOT and sys.platform == "linux" else None


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The package where it cannot be written to."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(PACKAGE, folder / "polars_tadoc", ignore=shutil.ignore_patterns("__pycache__"))
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o555)
    try:
        needs_closed_folders(folder, BEFORE)
        yield folder
    finally:
        for path in folders:
            path.chmod(0o755)


def run(code: str, site: Path, temporary: Path | str) -> list[str]:
    given = {"PATH": os.environ["PATH"], "HOME": NOWHERE, "TMPDIR": str(temporary), "PYTHONPATH": str(site)}
    command = [sys.executable, "-B", "-c", code]
    done = subprocess.run(
        command, env=given, cwd="/", preexec_fn=BEFORE, check=False, timeout=300, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    file, *told = done.stdout.splitlines()
    assert file.startswith(str(site))
    return told


@pytest.mark.slow
def test_a_temporary_folder_is_taken(site: Path, tmp_path: Path) -> None:
    needs_a_private_path(tmp_path)
    told = run(IMPORT, site, tmp_path)
    folder = tmp_path / f"polars_tadoc-kernels-{os.geteuid()}"
    assert len(told) == 1
    assert f"is kept in {folder}: " in told[0]
    assert "set NUMBA_CACHE_DIR to a folder that only you can write to" in told[0]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(list(folder.rglob(f"*{entries.SUFFIX}"))) == 1


@pytest.mark.slow
def test_a_named_folder_that_is_refused_is_named(tmp_path: Path) -> None:
    needs_a_private_path(tmp_path)
    for mode, refused in (0o700, False), (0o777, True):
        named = tmp_path / str(mode)
        named.mkdir()
        named.chmod(mode)  # others may replace the folder in it
        given = {**os.environ, "NUMBA_CACHE_DIR": str(named)}
        done = subprocess.run([sys.executable, "-c", IMPORT], env=given, capture_output=True, text=True, check=True)
        told = [line for line in done.stdout.splitlines() if line.startswith("NUMBA_CACHE_DIR=")]
        assert [line.split(" ")[0] for line in told] == [f"NUMBA_CACHE_DIR={named}"] * refused


def planted_link(path: Path, other: Path) -> None:
    path.symlink_to(other)


def planted_open(path: Path, _: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


def planted_file(path: Path, _: Path) -> None:
    path.touch()


@pytest.mark.slow
@pytest.mark.parametrize("plant", [planted_link, planted_open, planted_file, None])
def test_it_is_done_without(plant: object, site: Path, tmp_path: Path) -> None:
    path, other = tmp_path / f"polars_tadoc-kernels-{os.geteuid()}", tmp_path / "other"
    other.mkdir()
    if callable(plant):
        plant(path, other)
    else:
        tmp_path.chmod(0o777)  # others could put another folder in its place
    told = run(IMPORT, site, tmp_path)
    assert len(told) == 1
    assert "is not cached, and compiled again in each process" in told[0]
    assert list(other.iterdir()) == []
    assert not path.is_dir() or list(path.iterdir()) == []


def test_the_folder_of_another_user_is_not_taken(tmp_path: Path) -> None:
    needs_a_private_path(tmp_path)
    with patch("tempfile.gettempdir", return_value=str(tmp_path)):
        folders.private_folder.cache_clear()
        folder = folders.private_folder()
        assert folder == tmp_path.resolve() / f"polars_tadoc-kernels-{os.geteuid()}"
        folders.private_folder.cache_clear()
        with patch.object(folders, "is_owned", return_value=False):
            assert folders.private_folder() is None
        folders.private_folder.cache_clear()


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A user's cache folder, empty."""
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(folders, "_warned", [])
    monkeypatch.setattr(folders, "_refused", [])
    for found in (folders.readable, folders.writable):
        found.cache_clear()
    yield tmp_path / "polars_tadoc-kernels"
    for found in (folders.readable, folders.writable):
        found.cache_clear()


DAMAGES = {
    "empty": lambda data: b"",
    "cut short": lambda data: data[:-10],  # the machine lost power
    "a bit flipped": lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
    "another format": lambda data: b"\x80\x04N." + data,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_what_is_damaged_is_compiled_again(damage: Callable[[bytes], bytes], own_folder: Path) -> None:
    assert compile_twice() == (0, 1)
    folders.readable.cache_clear()
    assert compile_twice() == (1, 0)
    (entry,) = own_folder.rglob(f"*{entries.SUFFIX}")
    entry.write_bytes(damage(entry.read_bytes()))
    assert compile_twice() == (0, 1)
    assert compile_twice() == (1, 0)


def test_a_full_disk_is_done_without(own_folder: Path) -> None:
    full = patch.object(entries.os, "replace", side_effect=OSError(28, "No space left on device"))
    with full, pytest.warns(tadoc.errors.KernelCacheWarning, match=r"cannot be written to .*No space left on device"):
        assert compile_twice() == (0, 1)
    assert [path for path in own_folder.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_folder_that_others_may_write_to_is_not_taken(own_folder: Path, mode: int) -> None:
    own_folder.mkdir()
    own_folder.chmod(mode)
    with pytest.warns(tadoc.errors.KernelCacheWarning, match="others can neither write to nor replace"):
        assert own_folder not in folders.readable()
    assert folders.writable() != own_folder
    own_folder.chmod(0o755)
    folders.readable.cache_clear()
    folders.writable.cache_clear()
    assert own_folder in folders.readable()
    assert folders.writable() == own_folder


def test_the_cache_folder_of_another_user_is_not_taken(own_folder: Path) -> None:
    own_folder.mkdir()
    other = os.stat_result((stat.S_IFDIR | 0o755, 0, 0, 1, os.geteuid() + 1, 0, 0, 0, 0, 0))
    with patch.object(Path, "lstat", return_value=other):
        assert not folders._is_trusted(own_folder)


def test_entries_that_nobody_reads_are_deleted(own_folder: Path) -> None:
    compile_twice()
    (entry,) = own_folder.rglob(f"*{entries.SUFFIX}")
    months_ago = entry.stat().st_mtime - 40 * 24 * 60 * 60
    old, own = entry.with_name(f"old{entries.SUFFIX}"), entry.with_name("other.txt")
    for path in (old, own, entry):
        path.write_bytes(entry.read_bytes())
        os.utime(path, (months_ago, months_ago))
    folders.readable.cache_clear()
    assert compile_twice() == (1, 0)  # in use again
    folders.writable.cache_clear()
    folders.writable()
    assert (entry.exists(), own.exists(), old.exists()) == (True, True, False)


def test_entries_name_no_folder_of_this_machine(own_folder: Path) -> None:
    compile_twice()
    (path,) = own_folder.rglob(f"*{entries.SUFFIX}")
    entry = entries.read(path)
    assert entry is not None
    assert str(PACKAGE.parent).encode() not in pickle.dumps(entry.code[1:])
    assert b"twice" in pickle.dumps(entry.code[1:])


def test_what_callers_are_linked_with_is_left_out(own_folder: Path) -> None:
    compile_twice()
    (path,) = own_folder.rglob(f"*{entries.SUFFIX}")
    entry, size = entries.read(path), path.stat().st_size
    assert entry is not None
    entries.write(path, entries.unlinked(entry))
    assert path.stat().st_size < 0.8 * size
    assert compile_twice() == (1, 0)  # and it returns what it has to


ZIPPED = """
import polars as pl
import polars_tadoc as tadoc
df = pl.DataFrame({"text": ["to be or not to be", "to do"]}).tadoc.compress("text")
assert df.tadoc.word_count("text", top=2).rows() == [("to", 3), ("be", 2)]
assert df.tadoc.decompress("text")["text"].to_list() == ["to be or not to be", "to do"]
from polars_tadoc.analytics.word_count import Request, WordCountRequest
assert Request is WordCountRequest
print(tadoc.__file__)
"""


@pytest.mark.slow
def test_an_application_in_one_file_runs(tmp_path: Path) -> None:
    application = tmp_path / "application.zip"
    with zipfile.ZipFile(application, "w") as file:
        for path in PACKAGE.rglob("*"):
            if path.suffix in (".py", ".json"):
                file.write(path, path.relative_to(PACKAGE.parent))
    given = {**os.environ, "PYTHONPATH": str(application)}
    command = [sys.executable, "-W", "error", "-c", ZIPPED]
    done = subprocess.run(command, env=given, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(application))
    assert len(done.stderr.splitlines()) <= 1  # that kernels are compiled, where they were not before


def test_every_kernel_is_compiled_there() -> None:
    for path in PACKAGE.rglob("*.py"):
        if path.name != "compiled.py":
            assert not re.search(r"\bnb\.(njit|jit|cfunc|vectorize)\(", path.read_text("utf-8")), path
