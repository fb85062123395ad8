"""What ``import polars_tadoc`` costs, what it leaves alone, and that names come when they are asked for."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import polars_tadoc as tadoc

HEAVY = ["numba", "llvmlite", "scipy", "pyspark", "pyarrow.dataset", "polars_tadoc.index", "polars_tadoc.kernels"]


def output(code: str) -> str:
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    "how", ["import polars_tadoc", "import polars_tadoc as tadoc; dir(tadoc); tadoc.DTYPE, tadoc.Config"]
)
def test_what_is_heavy_is_left_alone(how: str) -> None:
    loaded = json.loads(output(f"import json, sys; {how}; print(json.dumps(list(sys.modules)))"))
    assert "polars" in loaded
    assert [name for name in HEAVY if name in loaded] == []


def test_searching_is_imported_by_what_searches() -> None:
    code = "import polars as pl, polars_tadoc, sys; pl.DataFrame().tadoc; print('numba' in sys.modules)"
    assert output(code).split() == ["True"]
    code = "import polars_tadoc as tadoc, sys; tadoc.word_count; print('polars_tadoc.index' in sys.modules)"
    assert output(code).split() == ["False"]


COST = """
import time
import polars
before = time.process_time()
import polars_tadoc
print(time.process_time() - before)
"""


def test_it_costs_a_quarter_of_a_second_at_most() -> None:
    assert min(float(output(COST)) for _ in range(3)) <= 0.25


def test_names_are_those_that_type_checkers_see() -> None:
    tree = ast.parse(Path(tadoc.__file__).read_text("utf-8"))
    (checked,) = [
        one for one in tree.body if isinstance(one, ast.If) and getattr(one.test, "id", "") == "TYPE_CHECKING"
    ]
    seen = {name.name: one.module for one in checked.body if isinstance(one, ast.ImportFrom) for name in one.names}
    assert seen.keys() | {"Config", "DTYPE", "STORAGE", "Text", "errors", "namespaces"} <= set(tadoc.__all__)
    for name, module in seen.items():
        found = getattr(tadoc, name)
        assert found is getattr(import_module(str(module)), name), name
        assert getattr(tadoc, name) is found


@pytest.mark.parametrize(
    "first",
    [
        "from polars_tadoc.compress.compress import compress",
        "import polars_tadoc.compress",
        "import polars as pl, polars_tadoc; pl.DataFrame({'a': ['b']}).tadoc.compress('a')",
        "import polars_tadoc as tadoc; tadoc.word_count",
        "from polars_tadoc import *",
    ],
)
def test_compress_is_the_function(first: str) -> None:
    code = f"{first}\nimport polars_tadoc\nprint(polars_tadoc.compress.__module__, 'compress' in dir(polars_tadoc))"
    assert output(code).split() == ["polars_tadoc.compress.compress", "True"]


def test_other_names_there_are_not() -> None:
    for name in ("word_coumt", "_word_count", "__wrapped__"):
        assert not hasattr(tadoc, name)
        with pytest.raises(ImportError, match=name):
            exec(f"from polars_tadoc import {name}")
    with pytest.raises(AttributeError, match=r"module 'polars_tadoc.namespaces' has no attribute 'TadocFrames'"):
        tadoc.namespaces.TadocFrames  # type: ignore[attr-defined]  # noqa: B018


def test_forks_are_looked_at_from_the_import_on() -> None:
    code = "import sys, polars_tadoc; print('polars_tadoc.runtime.fork' in sys.modules)"
    assert output(code).split() == ["True"]


def test_without_docstrings() -> None:
    """``python -OO`` drops them."""
    program = "import polars as pl, polars_tadoc; pl.Series(['a b a']).tadoc.compress()"
    command = [sys.executable, "-OO", "-c", program]
    assert subprocess.run(command, capture_output=True, text=True, check=False).returncode == 0
