"""The documentation names every public call; what it shows is run as doctests."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import polars_tadoc as tadoc
from tests import ROOT
from tests.package.test_surfaces import methods, surfaces

DOCS = ROOT / "docs"
MODULES = {"column", "distributed", "namespaces", "plot"}
"""Public modules that the reference describes by their members."""
CONSTANTS = {"DTYPE", "PACKED_DTYPE", "STORAGE"}


def test_the_reference_is_whole() -> None:
    pages = "".join(page.read_text() for page in (DOCS / "reference").glob("*.md"))
    entries = set(re.findall(r"^::: polars_tadoc\.(?:namespaces\.)?(\w+)$", pages, flags=re.MULTILINE))
    assert entries == (set(tadoc.__all__) - MODULES - CONSTANTS) | set(tadoc.namespaces.__all__)
    assert all(f"tadoc.{name}" in pages for name in CONSTANTS)


@pytest.mark.parametrize("name", ["TadocFrame", "TadocSeries", "TadocExpr"])
def test_every_call_is_shown(name: str) -> None:
    shown = "".join(page.read_text() for folder in (DOCS, DOCS / "jobs") for page in folder.glob("*.md"))
    missing = [call for call in methods(getattr(tadoc.namespaces, name)) if not re.search(rf"\b{call}\(", shown)]
    assert not missing


def public_calls() -> Iterator[tuple[str, Any]]:
    """Yield name and object of each public function, class and method."""
    for name in tadoc.__all__:
        one = getattr(tadoc, name)
        if inspect.isclass(one) and not issubclass(one, BaseException):
            yield name, one
            members = [(member, getattr(one, member)) for member in vars(one) if not member.startswith("_")]
            yield from ((f"{name}.{member}", call) for member, call in members if callable(call))
    for surface, calls in surfaces().items():
        yield from ((f"{surface}.{name}", call) for name, call in calls.items() if name != "__init__")


CALLS = dict(public_calls())
MADE = {"Dictionary", "Index"}
"""Classes whose constructors are not public."""


def sections(call: Any) -> dict[str, str]:
    """Return the sections of a docstring by name."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", inspect.getdoc(call) or "", flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def headings(section: str) -> list[str]:
    """Return the names of parameters or errors in a section."""
    return [name.strip(" *") for line in re.findall(r"^(\S.*)$", section, re.MULTILINE) for name in line.split(",")]


def raised(call: Callable[..., Any]) -> set[str]:
    """Return the exceptions that a function's own body raises by name."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(call))))
    made = [node.exc for node in ast.walk(tree) if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)]
    called = [one.func.value if isinstance(one.func, ast.Attribute) else one.func for one in made]
    return {one.id for one in called if isinstance(one, ast.Name) and one.id.endswith("Error")}


@pytest.mark.parametrize("name", CALLS)
def test_docstrings_are_complete(name: str) -> None:
    call, described = CALLS[name], sections(CALLS[name])
    shown = [one for one in inspect.signature(call).parameters if one not in ("self", "cls")]
    assert sorted(headings(described.get("Parameters", ""))) == ([] if name in MADE else sorted(shown))
    starts_processes = name.startswith("Workers.")  # one example for all methods
    assert ">>>" in sections(tadoc.distributed.Workers if starts_processes else call)["Examples"]
    if not inspect.isclass(call):
        returns = inspect.signature(call).return_annotation not in (None, "None")
        assert returns == bool({"Returns", "Yields"} & described.keys())
        assert raised(call) <= set(headings(described.get("Raises", "")))
