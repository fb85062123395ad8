"""Every fuzz target: the inputs kept in the tree are replayed; some are fuzzed, `make test-deep` fuzzes each."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fuzz import corpus
from tests.fuzz.__main__ import fuzz
from tests.fuzz.script import Script, edit_bytes, edit_json, edit_numbers, edit_strings
from tests.fuzz.targets import NAMES, load

SECONDS = 1
"""For each target, beside the time that its process takes to start."""

FUZZED = ("payload", "index_folder", "xml")
"""Bytes of grammars, a folder of files, a language."""


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_inputs_that_are_kept(name: str) -> None:
    target = load(name)
    accepted = [target.run(data) for data in [*target.seeds, *corpus.read(name)]]
    assert accepted[0]  # sound, so that what is beyond the first checks is reached
    assert sum(accepted) > 2
    assert name == "xml" or not all(accepted)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("atheris") is None, reason="there is no Atheris for this Python or platform")
@pytest.mark.parametrize("name", FUZZED)
def test_a_short_run(name: str, tmp_path: Path) -> None:
    outcome = fuzz(name, SECONDS, tmp_path, seed=1)
    assert not outcome.findings, outcome.output[-5_000:]
    assert outcome.executions > 0
    assert outcome.coverage > 0


def test_a_corpus_is_of_a_target() -> None:
    assert {path.stem for path in corpus.FOLDER.glob("*.txt")} <= set(NAMES)


def test_a_script_that_is_used_up_chooses_the_first() -> None:
    script = Script(b"\x02")
    assert (script.pick("abc"), script.pick("abc"), script.number(1 << 40), script.left) == ("c", "a", 0, 0)


@pytest.mark.parametrize("seed", range(50))
def test_edits_take_any_script(seed: int) -> None:
    data = bytes((seed * 37 + 11 * place * place) % 256 for place in range(60))
    for values in ([], [1], [3, 2, 1, 1 << 31]):
        edit_numbers(Script(data), values, 32)
        assert all(0 <= value < 1 << 32 for value in values)
    for strings in ([], [b""], [b"a", b"bc"]):
        edit_strings(Script(data), strings)
    edit_bytes(Script(data), bytearray())
    edit_json(Script(data), {"a": [1, {"b": "c"}], "d": None})
