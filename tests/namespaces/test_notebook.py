"""What IPython and notebooks show of compressed columns: the first words of rows, never a grammar's bytes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import polars as pl
import pytest

from polars_tadoc.namespaces import notebook

formatters = pytest.importorskip("IPython.core.formatters")

TEXT = [f"row {i} says: to be, or not to be, that is the question" for i in range(30)]


@pytest.fixture
def show() -> Any:
    class Shell:
        display_formatter = formatters.DisplayFormatter()

    notebook.load_ipython_extension(Shell)
    return lambda value: Shell.display_formatter.format(value)[0]


@pytest.mark.parametrize("rows", [0, 1, 2, 10, 20, 21, 30])
def test_series(show: Any, rows: int) -> None:
    column = pl.Series("text", TEXT[:rows], pl.String).tadoc.compress()
    shown = show(column)
    assert f"shape: ({rows},)" in shown["text/plain"]
    assert max(map(len, shown.values())) < 4000
    assert "TADOC" not in "".join(shown.values())
    for kind in shown if rows > 1 else ():
        assert "row 0 says: to be, or not to" in shown[kind]
        assert f"row {rows - 1} says" in shown[kind]


def test_frames(show: Any) -> None:
    plain = pl.DataFrame({"year": range(30), "text": TEXT, "": TEXT[::-1]})
    shown = show(plain.tadoc.compress("text", rows_per_grammar=7).tadoc.compress(""))["text/html"]
    assert "TADOC" not in shown
    assert "row 29 says" in shown
    assert "<td>29</td>" in shown
    assert "<th></th>" in shown
    assert len(shown) < 8000


def test_nulls_and_what_is_not_compressed(show: Any) -> None:
    column = pl.Series("text", [None, *TEXT[:2], ""]).tadoc.compress()
    assert show(column)["text/plain"].split("\n")[3].strip() == "null"
    numbers = pl.Series("n", [1, 2, 3])
    assert show(numbers)["text/plain"] == str(numbers)
    assert show(numbers.to_frame())["text/html"] == numbers.to_frame()._repr_html_()


def test_all_rows_where_polars_shows_all(show: Any) -> None:
    with pl.Config(tbl_rows=-1):
        assert "row 15 says" in show(pl.Series("text", TEXT).tadoc.compress())["text/plain"]


def test_a_grammar_of_null_rows_only(show: Any) -> None:
    column = pl.Series("text", [None] * 25 + TEXT[:10], pl.String).tadoc.compress()
    assert "row 9 says" in show(column)["text/plain"]


SESSION = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
import polars as pl, polars_tadoc
print(shell.display_formatter.format(pl.Series(["to be"]).tadoc.compress())[0]["text/plain"])
"""


@pytest.mark.slow
def test_importing_the_package_in_a_shell_is_enough() -> None:
    done = subprocess.run([sys.executable, "-c", SESSION], capture_output=True, text=True, check=True, timeout=100)
    assert '"to be"' in done.stdout
    assert "TADOC" not in done.stdout
