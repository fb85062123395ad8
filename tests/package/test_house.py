"""The house keeps its measures: few modules at the root, no folder with more files than one reads at a glance."""

from __future__ import annotations

from pathlib import Path

import pytest

import polars_tadoc

PACKAGE = Path(polars_tadoc.__file__).parent
MAX_FILES = 25
MAX_ROOT_MODULES = 8
SOURCES = {".py", ".cu", ".cuh", ".json"}
FOLDERS = sorted(
    {path.parent for path in PACKAGE.rglob("*") if path.suffix in SOURCES and "_compiled" not in path.parts}
)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_folder_is_cut_by_topic(folder: Path) -> None:
    files = sorted(path.name for path in folder.iterdir() if path.suffix in SOURCES)
    assert len(files) <= MAX_FILES, f"cut {folder.name} by topic: {', '.join(files)}"


def test_few_modules_are_at_the_root() -> None:
    assert len(list(PACKAGE.glob("*.py"))) <= MAX_ROOT_MODULES
