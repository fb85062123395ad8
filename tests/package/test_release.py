"""What the package says of itself: versions, supported Pythons, programs."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module

import polars_tadoc as tadoc
from tests import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_version_is_one() -> None:
    assert PROJECT["version"] == tadoc.__version__


def test_supported_pythons_are_those_that_wheels_are_built_and_tested_for() -> None:
    (built,) = re.findall(r"^PYTHONS \?= (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert [f"python{version}" for version in named] == built.split()
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_programs_exist() -> None:
    groups = [PROJECT["scripts"], PROJECT["entry-points"]["pipx.run"]]
    for target in [one for group in groups for one in group.values()]:
        module, name = target.split(":")
        assert callable(getattr(import_module(module), name))
    assert PROJECT["entry-points"]["pipx.run"].keys() == {PROJECT["name"]}


def test_security_says_how_to_report() -> None:
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    assert "tadoc doctor" in text
    assert (ROOT / "docs" / "security.md").is_file()
