"""The list of kernel specialisations, stored with the source, from which builds compile.

A line of ``signatures.json`` names a kernel by file and function, and its argument types. It has no folders, so moved
files need no change. ``python -m polars_tadoc.runtime.machine_code.build --record`` writes it from the cache, after
tests and examples have filled it.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

from numba import types
from numba.core.dispatcher import Dispatcher

from polars_tadoc.runtime.machine_code.content import ROOTS, named_in

LIST = Path(__file__).with_name("signatures.json")
DEMO = LIST.with_name("demo.json")
"""The list of what the demo runs."""
_SCALARS = (types.Integer, types.Float, types.Boolean, types.NoneType)


class UnknownTypeError(Exception):
    """A signature has a type that the list cannot represent."""


@cache
def modules() -> list[Any]:
    """Import and return all kernel modules that can be imported here: those of CUDA need CuPy."""
    found = []
    for root in ROOTS:
        for one in pkgutil.walk_packages(importlib.import_module(root).__path__, f"{root}."):
            with suppress(ImportError):
                found.append(importlib.import_module(one.name))
    return found


def _name_of(value: Any) -> str:
    """Return the listed name of a kernel or of a named tuple type; the full name outside this folder."""
    if not value.__module__.startswith(ROOTS):
        return f"{value.__module__}.{value.__qualname__}"
    return f"{value.__module__.rpartition('.')[2]}.{value.__qualname__}"


@cache
def kernels() -> dict[str, list[Any]]:
    """Return the kernels, and the plain functions beside them, by file and name; file names are almost unique."""
    found: dict[str, list[Any]] = {}
    for value in {id(value): value for module in modules() for value in vars(module).values()}.values():
        inside = vars(value).get("__wrapped__") if hasattr(value, "__dict__") else None
        if isinstance(inside, Dispatcher):  # wrapped to end on interrupts
            value = inside
        function = value.py_func if isinstance(value, Dispatcher) else value
        if callable(function) and str(getattr(function, "__module__", "")).startswith("polars_tadoc."):
            name = _name_of(function) if hasattr(function, "__qualname__") else ""
            found.setdefault(name, []).append(value)
    return found


def is_inner(kernel: Any) -> bool:
    """Tell whether only kernels call a kernel: it is compiled into each of them."""
    return bool(getattr(kernel, "targetoptions", {}).get("no_cpython_wrapper"))


@cache
def called() -> frozenset[str]:
    """Return the names of everything that kernels call, and of some functions that none calls."""
    functions = {getattr(one, "py_func", one) for kernels_of_name in kernels().values() for one in kernels_of_name}
    return frozenset(name for one in functions if isinstance(one, FunctionType) for name in named_in(one))


def encode(kind: Any) -> Any:
    """Return a JSON value for a type.

    Raises
    ------
    UnknownTypeError
        The type has none.

    """
    if isinstance(kind, types.Literal):
        return {"literal": kind.literal_value}
    if isinstance(kind, types.Omitted):
        return {"omitted": kind.value}
    if isinstance(kind, types.BaseNamedTuple):
        return {"named": _name_of(kind.instance_class), "of": [encode(one) for one in kind]}
    if isinstance(kind, types.BaseTuple):
        return {"tuple": [encode(one) for one in kind]}
    if type(kind) is types.Array and isinstance(kind.dtype, _SCALARS):
        form = f"{kind.dtype} {kind.ndim} {kind.layout}"
        return form + ("" if kind.mutable else " readonly") + ("" if kind.aligned else " unaligned")
    if isinstance(kind, _SCALARS):
        return str(kind)
    raise UnknownTypeError(f"{type(kind).__name__} {kind}")


def decode(form: Any) -> Any:
    """Return the type of a value of :func:`encode`."""
    if isinstance(form, str):
        name, *rest = form.split()
        dtype = getattr(types, "boolean" if name == "bool" else name)
        if not rest:
            return dtype
        return types.Array(dtype, int(rest[0]), rest[1], "readonly" in rest, aligned="unaligned" not in rest)
    if "literal" in form:
        return types.literal(form["literal"])
    if "omitted" in form:
        return types.Omitted(form["omitted"])
    if "named" in form:
        return types.BaseTuple.from_types([decode(one) for one in form["of"]], _class_of(form["named"]))
    return types.BaseTuple.from_types([decode(one) for one in form["tuple"]])


def _class_of(name: str) -> Any:
    module, _, own = name.rpartition(".")
    if "." in module:
        return getattr(importlib.import_module(module), own)
    (found,) = [one for one in kernels()[name] if isinstance(one, type)]
    return found


def fits(name: str, form: list[Any]) -> bool:
    """Tell whether a kernel still takes this number of arguments, and their types still exist."""
    functions = [getattr(one, "py_func", one) for one in kernels().get(name, [])]
    try:
        [decode(one) for one in form]
    except (AttributeError, KeyError, TypeError, ValueError):
        return False
    return any(isinstance(one, FunctionType) and one.__code__.co_argcount == len(form) for one in functions)


def read(path: Path | None = None) -> dict[str, list[list[Any]]]:
    """Return a list, by default of all: the argument types of each kernel, encoded."""
    found: dict[str, list[list[Any]]] = json.loads((path or LIST).read_text("utf-8"))
    return found


def write(listed: dict[str, list[list[Any]]], path: Path | None = None) -> None:
    """Write a list, one line per specialisation."""
    lines = []
    for name in sorted(listed):
        forms = sorted({json.dumps(form) for form in listed[name]})
        lines.append(f"{json.dumps(name)}: [\n" + ",\n".join(f"  {form}" for form in forms) + "\n]")
    (path or LIST).write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def specialisations(path: Path | None = None) -> Iterator[tuple[str, Any, list[Any]]]:
    """Yield name, kernel and encoded arguments of everything in a list that still exists."""
    known = kernels()
    for name, forms in read(path).items():
        for one in known.get(name, []):
            if not isinstance(one, type):
                yield from ((name, one, form) for form in forms)
