"""Imports that Ctrl-C does not divide."""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module
from types import ModuleType

from polars_tadoc.runtime.process.threads import undivided


def import_whole(name: str) -> ModuleType:
    """Import a module, and raise an interrupt afterwards.

    An interrupt in the middle leaves Numba half imported: each later import of it fails, until the program ends.
    Importing in another thread while this one imports could wait forever, so that import remains divisible.
    """
    load = partial(import_module, name)
    return load() if name in sys.modules or _imports() else undivided(load)


def _imports() -> bool:
    """Tell whether a module is being imported."""
    specs = (getattr(module, "__spec__", None) for module in tuple(sys.modules.values()))
    return any(getattr(spec, "_initializing", False) for spec in specs)
