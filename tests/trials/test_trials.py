"""The small forms of the field trials."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests.trials.__main__ import TRIALS


@pytest.mark.slow
@pytest.mark.parametrize("name", TRIALS)
def test_trial(name: str, tmp_path: Path) -> None:
    importlib.import_module(f"tests.trials.{name}").run(tmp_path, "small")


def test_all_trials_are_listed() -> None:
    others = {"__init__", "__main__", "corpora", "test_trials"}
    assert {path.stem for path in Path(__file__).parent.glob("*.py")} - others == set(TRIALS)
