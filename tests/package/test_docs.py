"""The documentation names every public call; what it shows is run as doctests."""

from __future__ import annotations

import re

import pytest

import polars_tadoc as tadoc
from tests import ROOT

DOCS = ROOT / "docs"
MODULES = {"column", "distributed", "namespaces"}
"""Public modules that the reference describes by their members."""
CONSTANTS = {"DTYPE", "PACKED_DTYPE", "STORAGE"}


def test_the_reference_is_whole() -> None:
    pages = "".join(page.read_text() for page in (DOCS / "reference").glob("*.md"))
    entries = set(re.findall(r"^::: polars_tadoc\.(?:namespaces\.)?(\w+)$", pages, flags=re.MULTILINE))
    assert entries == (set(tadoc.__all__) - MODULES - CONSTANTS) | set(tadoc.namespaces.__all__)
    assert all(f"tadoc.{name}" in pages for name in CONSTANTS)


@pytest.mark.parametrize("name", ["TadocFrame", "TadocSeries", "TadocExpr"])
def test_every_call_is_shown(name: str) -> None:
    shown = "".join(page.read_text() for page in DOCS.glob("*.md"))
    calls = [call for call in vars(getattr(tadoc.namespaces, name)) if not call.startswith("_")]
    missing = [call for call in calls if not re.search(rf"\b{call}\(", shown)]
    assert not missing
