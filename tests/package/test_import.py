"""What ``import polars_tadoc`` costs, what it leaves alone, and that names come when they are asked for."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import polars_tadoc as tadoc

HEAVY = ["numba", "llvmlite", "scipy", "pyspark", "pyarrow.dataset", "polars_tadoc.index", "polars_tadoc.kernels"]
HEAVY += ["cyclopts", "rich", "altair", "sklearn"]


def output(code: str, *arguments: str) -> str:
    command = [sys.executable, "-W", "error", "-c", code, *arguments]
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


FIRST = [
    "from polars_tadoc.compress.compress import compress",
    "import polars_tadoc.compress",
    "import polars as pl, polars_tadoc; pl.DataFrame({'a': ['b']}).tadoc.compress('a')",
    "import polars_tadoc as tadoc; tadoc.word_count",
    "from polars_tadoc import *",
]
EACH = """
import os, sys
import numba, polars, pyarrow  # once, for all
for first in sys.argv[1:]:
    if child := os.fork():
        assert os.waitpid(child, 0)[1] == 0, first
    else:
        assert not any(name.startswith("polars_tadoc") for name in sys.modules)
        exec(first, {})
        import polars_tadoc
        print(polars_tadoc.compress.__module__, "compress" in dir(polars_tadoc), flush=True)
        os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_compress_is_the_function() -> None:
    assert output(EACH, *FIRST).splitlines() == ["polars_tadoc.compress.compress True"] * len(FIRST)


def test_other_names_there_are_not() -> None:
    for name in ("word_coumt", "_word_count", "__wrapped__"):
        assert not hasattr(tadoc, name)
        with pytest.raises(ImportError, match=name):
            exec(f"from polars_tadoc import {name}")
    with pytest.raises(AttributeError, match=r"module 'polars_tadoc.namespaces' has no attribute 'TadocFrames'"):
        tadoc.namespaces.TadocFrames  # type: ignore[attr-defined]  # noqa: B018


def test_forks_are_looked_at_from_the_import_on() -> None:
    code = "import sys, polars_tadoc; print('polars_tadoc.runtime.process.fork' in sys.modules)"
    assert output(code).split() == ["True"]


def test_without_docstrings() -> None:
    """``python -OO`` drops them."""
    program = "import polars as pl, polars_tadoc; pl.Series(['a b a']).tadoc.compress()"
    command = [sys.executable, "-OO", "-c", program]
    assert subprocess.run(command, capture_output=True, text=True, check=False).returncode == 0
