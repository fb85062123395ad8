"""The notebook in ``examples`` runs as shown; ``python -m tests.package.test_example_notebook`` records its outputs.

Jupyter itself is not needed: a cell's result is the value of its last expression, as there.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests import ROOT

NOTEBOOK = ROOT / "examples" / "speeches.ipynb"


def outputs(notebook: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, object]]:
    """Run the cells of code in order; yield each, with what it prints and its result."""
    names: dict[str, Any] = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree, result = ast.parse("".join(cell["source"])), None
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(tree, cell["id"], "exec"), names)
            if isinstance(last, ast.Expr):
                result = eval(compile(ast.Expression(last.value), cell["id"], "eval"), names)
        yield cell, printed.getvalue(), result


def kept(printed: str, result: Any, picture: bool) -> list[dict[str, Any]]:
    """Return the outputs of a cell as notebooks keep them; charts as pictures."""
    made: list[dict[str, Any]] = []
    if printed:
        made.append({"name": "stdout", "output_type": "stream", "text": printed.splitlines(keepends=True)})
    if result is not None:
        data = {"text/plain": repr(result).splitlines(keepends=True)}
        if hasattr(result, "mark_bar"):
            data = {"text/plain": ["a chart"]}
            if picture:
                result.save(drawn := io.StringIO(), format="svg")
                data["image/svg+xml"] = [drawn.getvalue()]
        made.append({"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"})
    return made


def without_pictures(shown: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**one, "data": {"text/plain": one["data"]["text/plain"]}} if "data" in one else one for one in shown]


def test_the_notebook_shows_what_it_keeps(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("altair")
    monkeypatch.chdir(NOTEBOOK.parent)
    notebook = json.loads(NOTEBOOK.read_text("utf-8"))
    ran = 0
    with pl.Config(restore_defaults=True):
        for cell, printed, result in outputs(notebook):
            shown = without_pictures(cell["outputs"])
            assert kept(printed, result, picture=False) == shown, "run: python -m tests.package.test_example_notebook"
            assert len(shown) == 1, cell["source"]
            ran += 1
    assert ran == 8
    assert "100%" in capsys.readouterr().err  # the bar of compress


def record(path: Path) -> None:
    """Keep the outputs of each cell in the notebook."""
    os.chdir(path.parent)
    notebook = json.loads(path.read_text("utf-8"))
    for cell, printed, result in outputs(notebook):
        cell["outputs"] = kept(printed, result, picture=True)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    record(NOTEBOOK)
