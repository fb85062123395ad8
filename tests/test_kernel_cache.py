"""Where nothing can be written, the package is imported and works all the same."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

import polars_tadoc as tadoc
from polars_tadoc.kernels import compiled

pytestmark = pytest.mark.skipif(os.name != "posix", reason="this system has no such permissions")

PACKAGE = Path(tadoc.__file__).parent
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
NOWHERE = "/proc/nowhere"

IMPORT = """
import warnings
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    import numpy as np
    import polars as pl
    import polars_tadoc as tadoc
    from polars_tadoc.kernels.cpu.text_words import *
    from polars_tadoc.kernels.compiled import njit
    assert njit(nogil=True)(lambda number: number + 1)(1) == 2
own = [str(one.message) for one in told if one.category is tadoc.errors.KernelCacheWarning]
print(tadoc.__file__, *own, sep="\\n")
"""
JOB = """
frame = pl.DataFrame({"text": ["to be or not to be", "to do is to be"]}).tadoc.compress("text")
assert frame.tadoc.word_count("text", top=2).rows() == [("to", 4), ("be", 3)]
"""


def without_rights() -> None:
    """Take root's right to write anywhere from this process."""
    system = ctypes.CDLL(None)
    for right in range(64):
        system.prctl(24, right, 0, 0, 0)  # PR_CAPBSET_DROP


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The package where it cannot be written to."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(PACKAGE, folder / "polars_tadoc", ignore=shutil.ignore_patterns("__pycache__"))
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    for path in folders:
        path.chmod(0o555)
    yield folder
    for path in folders:
        path.chmod(0o755)


def run(code: str, site: Path, temporary: Path | str) -> list[str]:
    given = {"PATH": os.environ["PATH"], "HOME": NOWHERE, "TMPDIR": str(temporary), "PYTHONPATH": str(site)}
    command = [sys.executable, "-B", "-c", code]
    before = without_rights if IS_ROOT and sys.platform == "linux" else None
    done = subprocess.run(
        command, env=given, cwd="/", preexec_fn=before, check=False, timeout=300, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    file, *told = done.stdout.splitlines()
    assert file.startswith(str(site))
    return told


def test_a_temporary_folder_is_taken(site: Path, tmp_path: Path) -> None:
    told = run(IMPORT + JOB, site, tmp_path)
    folder = tmp_path / f"polars_tadoc-kernels-{os.geteuid()}"
    assert len(told) == 1
    assert f"is kept in {folder}: " in told[0]
    assert "set NUMBA_CACHE_DIR to a folder that only you can write to" in told[0]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert len(list(folder.rglob("*.nbc"))) > 10


def planted_link(path: Path, other: Path) -> None:
    path.symlink_to(other)


def planted_open(path: Path, _: Path) -> None:
    path.mkdir()
    path.chmod(0o777)


def planted_file(path: Path, _: Path) -> None:
    path.touch()


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
    assert "is kept nowhere, and made again in each process" in told[0]
    assert list(other.iterdir()) == []
    assert not path.is_dir() or list(path.iterdir()) == []


def test_the_folder_of_another_user_is_not_taken(tmp_path: Path) -> None:
    with patch("tempfile.gettempdir", return_value=str(tmp_path)):
        compiled.private_folder.cache_clear()
        folder = compiled.private_folder()
        assert folder == tmp_path.resolve() / f"polars_tadoc-kernels-{os.geteuid()}"
        compiled.private_folder.cache_clear()
        with patch.object(compiled, "is_owned", return_value=False):
            assert compiled.private_folder() is None
        compiled.private_folder.cache_clear()


def test_a_cache_that_fails_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_warned", [])
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))

    def twice(number: int) -> int:
        return 2 * number

    assert compiled.njit(nogil=True)(twice)(21) == 42
    index = next(tmp_path.rglob("*.nbi"))
    index.write_bytes(index.read_bytes()[:10])  # the machine lost power
    assert compiled.njit(nogil=True)(twice)(21) == 42
    full = patch("numba.core.caching.IndexDataCacheFile.save", side_effect=OSError(28, "No space left on device"))
    with full, pytest.warns(tadoc.errors.KernelCacheWarning, match=r"cannot be written to .*No space left on device"):
        assert compiled.njit(nogil=True)(twice)(21.0) == 42.0


def test_every_kernel_is_compiled_there() -> None:
    for path in PACKAGE.rglob("*.py"):
        if path.name != "compiled.py":
            assert not re.search(r"\bnb\.(njit|jit|cfunc|vectorize)\(", path.read_text("utf-8")), path
