"""Pages run in a folder of their own, beside the sample texts: what they write stays out of the tree."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each page an empty folder with ``examples``, as a reader has it."""
    (tmp_path / "examples").symlink_to(Path(__file__).parents[1] / "examples")
    monkeypatch.chdir(tmp_path)
