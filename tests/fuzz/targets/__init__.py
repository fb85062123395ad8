"""The targets, each in a file of its own."""

from __future__ import annotations

from importlib import import_module

from tests.fuzz.target import Target

NAMES = (
    "payload",
    "packed_rows",
    "packed_files",
    "index_folder",
    "dictionary",
    "xpath",
    "xml",
    "twig_set",
    "records",
    "checkpoint",
    "normalize",
)


def load(name: str) -> Target:
    """Import a target."""
    target: Target = import_module(f"tests.fuzz.targets.{name}").TARGET
    return target
