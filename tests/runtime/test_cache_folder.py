"""Where caches are, and which folders are not read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from polars_tadoc.engine import machine_costs
from polars_tadoc.runtime.cache_folder import cache_folder
from polars_tadoc.runtime.machine_code import folders


@pytest.mark.parametrize("value", ["", "caches", "./caches"])
def test_a_relative_cache_folder_is_ignored(value: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever fills the working folder does not fill the cache, whose entries are code."""
    monkeypatch.setenv("XDG_CACHE_HOME", value)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder("name") == tmp_path / ".cache" / "name"
    assert folders.candidates()[0] == tmp_path / ".cache" / folders.NAME
    assert machine_costs.calibration_file() == tmp_path / ".cache" / "polars_tadoc" / "calibration.json"


def test_without_a_home_the_package_keeps_its_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert cache_folder("name") is None
    assert all(folder.is_absolute() for folder in folders.candidates())
    assert machine_costs.calibration_file().is_absolute()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs owners of files")
def test_a_folder_that_others_can_replace_is_not_trusted(tmp_path: Path) -> None:
    above = tmp_path / "shared"
    folder = above / folders.NAME
    folder.mkdir(0o700, parents=True)
    for mode, is_trusted in ((0o755, True), (0o777, False), (0o1777, True)):
        above.chmod(mode)
        assert folders._is_trusted(folder) == is_trusted, oct(mode)
