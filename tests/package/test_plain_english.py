"""Docstrings and messages of the package avoid turns of phrase that readers have to decipher."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import polars_tadoc

PACKAGE = Path(polars_tadoc.__file__).parent

BANNED = {
    r"\bwhat (?:is|was|are) (?:asked|found|kept|left|made|read|said|there|told|wanted|written)\b": "name the thing",
    r"\bwhat (?:stands|stood)\b": "separators, text, …",
    r"\b(?:stands?|stood) (?:at|before|behind|beside|for|in|there)\b": "is, means, occurs",
    r"\b(?:it|that|which) is no (?!longer|more|\w+er\b)\w+": "is not a …",
    r"\bat most so many\b": "maximum",
    r"\bfrom one time to the next\b": "between runs",
    r"\bneighbours of each other\b": "adjacent words",
    r"\ball that (?:is|was)\b": "everything, all",
    r"\bgoes? on (?:behind|from|with)\b": "continues",
    r"\b(?:nobody|whoever)\b": "no process, the caller, …",
    r"\bpasses over\b": "skips, ignores",
    r"\bfor ever\b": "forever",
    r"\bis (?:not there|there already)\b": "does not exist, already exists",
    r"\bthere is no (?:file|folder)\b": "does not exist",
}
"""Turns of phrase, and what to write instead."""

UNCHECKED = ("kernels",)
"""Rooms that still have some."""

FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.relative_to(PACKAGE).parts[0] not in UNCHECKED]


def found(path: Path) -> Iterator[str]:
    """Yield line, phrase and advice for each banned phrase in the strings of a file."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for pattern, advice in BANNED.items():
                for match in re.finditer(pattern, re.sub(r"\s+", " ", node.value)):
                    yield f"line {node.lineno}: {match[0]!r}: write: {advice}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_strings_are_in_plain_english(path: Path) -> None:
    assert list(found(path)) == []


def test_banned_phrases_are_found(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text('def f():\n    """Return what is\n    found."""\n    raise ValueError(f"{f}: it is no path")\n')
    assert [line.split(":")[0] for line in found(path)] == ["line 2", "line 4"]
