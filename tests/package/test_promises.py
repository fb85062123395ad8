"""What the documentation promises about safety, sizes and interrupts: each sentence names the tests that hold it.

``promises.json``: page → sentence → tests (``file::name``), or in a word why it promises nothing.
"""

from __future__ import annotations

import json
from functools import cache

import pytest

from tests import ROOT
from tests.promises import DOCS, sentences

TESTS = ROOT / "tests"
PROMISES: dict[str, dict[str, list[str] | str]] = json.loads((TESTS / "promises.json").read_text("utf-8"))
HELD = [(page, sentence, held) for page, table in PROMISES.items() for sentence, held in table.items()]


@cache
def source(name: str) -> str:
    (path,) = TESTS.rglob(f"test_{name}.py")  # in whichever folder: names of files are unique
    return path.read_text("utf-8")


@pytest.mark.parametrize(("page", "sentence"), [one[:2] for one in HELD])
def test_the_sentence_is_in_the_documentation(page: str, sentence: str) -> None:
    assert sentence in sentences(page), f"docs/{page}.md was changed: see that tests hold it, then mend promises.json"


@pytest.mark.parametrize(("sentence", "held"), [one[1:] for one in HELD])
def test_tests_hold_the_sentence(sentence: str, held: list[str] | str) -> None:
    if isinstance(held, str):
        assert held, sentence
        return
    assert held, sentence
    for test in held:
        file, name = test.split("::")
        assert f"def {name}(" in source(file), f"{test}, which holds {sentence!r}"


def test_every_sentence_about_safety_has_its_tests() -> None:
    text = (DOCS / "security.md").read_text("utf-8")
    assert "\n## How it is fuzzed\n" in text
    fuzzed = {one for one in sentences("security", "How it is fuzzed") if not one.startswith("|")}
    missing = [one for one in sentences("security") if one not in PROMISES["security"] and one not in fuzzed]
    assert missing == []


@pytest.mark.parametrize(
    ("page", "section"),
    [
        ("jobs/beyond_memory", "What has to fit"),
        ("jobs/beyond_memory", "Interrupting"),
        ("packed", "Object stores and open files"),
        ("packed", "When something is wrong with a file"),
    ],
)
def test_every_sentence_about_limits_interrupts_and_files_has_its_tests(page: str, section: str) -> None:
    said = [one for one in sentences(page, section) if not one.startswith("|")]
    assert said
    assert [one for one in said if one not in PROMISES[page]] == []
