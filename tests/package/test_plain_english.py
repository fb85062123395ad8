"""Docstrings, messages and comments of the package avoid turns of phrase that readers have to decipher."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import polars_tadoc

PACKAGE = Path(polars_tadoc.__file__).parent

BANNED = {
    r"\b[Ww]hat (?:is|was|are|were) (?!missing|wrong)\w+": "name the thing",
    r"^What\b": "start with a noun or a verb",
    r"\b(?:it|that|which) is no (?!longer|more|\w+er\b)\w+": "is not a …",
    r"\bat most so many\b": "maximum",
    r"\bso many (?:arguments|are|blocks|keys|texts|ties|words)\b": "maximum, minimum, number of",
    r"\bwhich ones\b|\bof which one\b": "rows that, …",
    r"\band the like\b": "and similar …, and so on",
    r"\bin vain\b": "without need",
    r"\bthe same again\b": "as much, another",
    r"\b(?:is|are) told\b|\bsees? to (?:it|signals)\b": "found, handled, …",
    r"\b(?:bears?|bore)\b": "supports, has",
    r"\b(?:stands?|stood|standing)\b(?!-)": "is, has, occurs",
    r"\bfrom one time to the next\b": "between runs",
    r"\bneighbours of each other\b": "adjacent words",
    r"\ball that (?:is|was)\b": "everything, all",
    r"\bgoes? on (?:behind|from|with)\b": "continues",
    r"\b(?:nobody|whoever)\b": "no process, the caller, …",
    r"\bpasses over\b": "skips, ignores",
    r"\bfor ever\b": "forever",
    r"\bis (?:not there|there already)\b": "does not exist, already exists",
    r"\bthere is no (?:file|folder)\b": "does not exist",
    r"\b(?:by|with) (?:count|weight|score)s? falling\b|\bfalling counts?\b": "by descending count, …",
    r"\bequal ones (?:by|in (?:code|rank|key))\b": "then by …",
    r"\b(?:of|by|in|for) so many\b": "name the number",
    r"\bone (?:behind|after) the other\b": "consecutive, concatenated",
    r"\bthat (?:is|are) there(?: already)?\b": "existing",
    r"\bfor want of\b": "for lack of",
    r"\btold apart\b": "distinguished, compared",
    r"\bforetells?\b|\breckon(?:s|ed)?\b": "predict, compute",
    r"\b(?:is|was|were) known of\b": "results, state, …",
    r"\b(?:lies|lie|lying)\b": "is, are",
    r"\bin the end\b": "finally, at the end",
    r"\bwhere (?:it|that|they|these|those|there) (?:is|are) (?:no|none|one)\b": "if there is none",
}
"""Turns of phrase, and what to write instead."""

ANY = re.compile("|".join(BANNED))

FILES = sorted(path for path in PACKAGE.rglob("*") if path.suffix in {".py", ".cu", ".cuh"})


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line and text of each string and comment of a Python file, and of each block of comments of a CUDA file."""
    source = path.read_text("utf-8")
    if path.suffix != ".py":
        for block in re.finditer(r"//[^\n]*(?:\n[ \t]*//[^\n]*)*", source):
            yield source.count("\n", 0, block.start()) + 1, block[0].replace("//", " ")
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def found(path: Path) -> Iterator[str]:
    """Yield line, phrase and advice for each banned phrase of a file."""
    for line, text in texts(path):
        folded = " ".join(text.split())
        for pattern, advice in BANNED.items() if ANY.search(folded) else ():
            for match in re.finditer(pattern, folded):
                yield f"line {line}: {match[0]!r}: write: {advice}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_texts_are_in_plain_english(path: Path) -> None:
    assert list(found(path)) == []


def test_banned_phrases_are_found(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(
        'def f():\n    """Return what is\n    found."""\n    raise ValueError(f"{f}: it is no path")  # for ever\n'
    )
    assert [line.split(":")[0] for line in found(path)] == ["line 2", "line 4", "line 4"]
    path = tmp_path / "kernel.cu"
    path.write_text("int a;  // what\n        // is left\n")
    assert [line.split(":")[0] for line in found(path)] == ["line 1"]
