"""The inputs kept in the tree: a file for each target, a Python literal of bytes on each line."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"


def read(target: str) -> list[bytes]:
    """Return a target's inputs; lines that begin with # say what those below them found."""
    path = FOLDER / f"{target}.txt"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [ast.literal_eval(line) for line in lines if line and not line.startswith("#")]


def add(target: str, inputs: Iterable[bytes]) -> None:
    """Add inputs to a target's."""
    with (FOLDER / f"{target}.txt").open("a", encoding="utf-8") as file:
        file.writelines(f"{data!r}\n" for data in inputs)


def unpack(inputs: Iterable[bytes], folder: Path) -> None:
    """Write inputs into a folder as libFuzzer does: each in a file named by its digest."""
    folder.mkdir(parents=True, exist_ok=True)
    for data in inputs:
        (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)
