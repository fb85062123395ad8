"""Completes docstrings: parameters, results and errors of the function that a call is about; imports of examples."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import is_dataclass
from types import FunctionType
from typing import Any, TypeVar, cast

from polars_tadoc.runtime.option_signature import PROGRESS, names_unknown_options, takes_options

SHARED = {
    PROGRESS: "Whether to show a progress bar (tqdm) on standard error; by default as ``tadoc.Config`` says.",
    "engine": '"auto", "cpu" or "gpu"; by default the engine of ``tadoc.Config``.',
    "storage_options": "Access to the object store, as for :func:`polars_tadoc.scan_packed`.",
    "credential_provider": "As for :func:`polars_tadoc.scan_packed`.",
}
"""Descriptions of parameters that many calls share: docstrings need not repeat them."""

_ORDER = ("Parameters", "Returns", "Raises", "Warns", "Notes", "Examples")

Call = TypeVar("Call", bound=Callable[..., Any])

Documented = TypeVar("Documented")


def with_imports(documented: Documented) -> Documented:
    r"""Put the usual imports before a call's examples; of a class, also before its methods'.

    Docstrings need not repeat them, nor the parameters of :data:`SHARED`. An example that imports the package itself
    stays as it is. The calls' errors for unknown keyword arguments suggest the closest name.

    Examples
    --------
    >>> import polars_tadoc as tadoc
    >>> tadoc.Index.__doc__.partition("--------\n")[2].split("\n")[0].strip()
    '>>> import polars as pl'

    """
    for part in (documented, *(vars(documented).values() if isinstance(documented, type) else ())):
        written = getattr(part, "__func__", part)  # of a class method
        if isinstance(written, FunctionType | property | type) and isinstance(written.__doc__, str):
            if isinstance(written, FunctionType):
                _describe_shared(written)
            written.__doc__ = _BEFORE_EXAMPLES.sub(_add_imports, written.__doc__)
    if isinstance(documented, type):
        for name, method in list(vars(documented).items()):
            if isinstance(method, FunctionType) and _is_called_by_users(documented, name):
                setattr(documented, name, names_unknown_options(method))
        return documented
    return cast(Documented, names_unknown_options(cast(FunctionType, documented)))


def _describe_shared(call: FunctionType) -> None:
    """Add shared parameters to the docstring of a call that describes others, in the order of its signature."""
    places = _places(call)
    summary, own = _sections(call)
    described = _entries(own.get("Parameters", ""))
    names = {name.strip(" *") for heading in described for name in heading.split(",")}
    lacking = {name: f"    {meaning}" for name, meaning in SHARED.items() if name in places and name not in names}
    if not lacking or not (described or own.get("Returns")):
        return
    entries = described | lacking
    own["Parameters"] = _joined({name: entries[name] for name in sorted(entries, key=lambda one: places[_first(one)])})
    call.__doc__ = _written(summary, own)
    inspect.unwrap(call).__doc__ = call.__doc__  # of which the reference pages are made


def _places(call: Callable[..., Any]) -> dict[str, int]:
    """Return the position of each parameter."""
    return {name: place for place, name in enumerate(inspect.signature(call).parameters)}


def _written(summary: str, sections: dict[str, str]) -> str:
    """Write a docstring."""
    written = [f"{name}\n{'-' * len(name)}\n{sections[name]}" for name in _ORDER if sections.get(name)]
    return "\n\n".join([summary, *written]) + "\n"


def _is_called_by_users(owner: type, name: str) -> bool:
    """Tell whether users call a method by its name, or the class for it."""
    return not name.startswith("_") or (name == "__init__" and not is_dataclass(owner))


def _add_imports(heading: re.Match[str]) -> str:
    code, space = heading.string[heading.end() :], heading[1]
    needed = [line for line, use in _IMPORTS.items() if re.search(use, code)]
    if "import polars_tadoc" in code or "from polars_tadoc" in code or set(needed) <= _FURTHER.keys():
        return heading[0]
    return heading[0] + "".join(f"{space}>>> {line}\n" for line in dict.fromkeys([*needed, _PACKAGE]))


_PACKAGE = "import polars_tadoc as tadoc"
_FURTHER = {
    "import tempfile": r"\btempfile\.",
    "from pathlib import Path": r"\bPath\(",
    "import numpy as np": r"\bnp\.",
}
_IMPORTS = {**_FURTHER, "import polars as pl": r"\bpl\.", _PACKAGE: r"\btadoc\."}
"""Imports by what uses them."""
_BEFORE_EXAMPLES = re.compile(r"^( *)Examples\n *-{8}\n(?= *>>> )", re.MULTILINE)


def documented_by(
    function: Callable[..., Any], *, returns: str | None = None, **parameters: str
) -> Callable[[Call], Call]:
    """Add the parameters and errors of a function to a call's docstring, where it does not have its own.

    Leaves out parameters that the call lacks, and for a method also the function's first one, the column. Adds the
    function's result if the call returns the same type, or if the function is a method; then the type is replaced. A
    call that takes ``**options: Unpack[…]`` gets each option in its signature: in the function's order, before its own
    further parameters.

    Parameters
    ----------
    function
        The function.
    returns
        Description of the result; its type is that of the call, unless a first line names it.
    **parameters
        Descriptions of parameters that the function lacks, or that mean something else here.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc
    >>> "min_count" in pl.DataFrame().tadoc.word_count.__doc__
    True

    """
    known = inspect.signature(function).parameters
    _, sections = _sections(function)
    returned, annotated = sections.get("Returns"), inspect.signature(function).return_annotation
    described, errors = _entries(sections.get("Parameters", "")), _entries(sections.get("Raises", ""))

    def document(call: Call) -> Call:
        last = list(inspect.signature(call).parameters.values())[-1:]
        spelled = last and last[0].kind is inspect.Parameter.VAR_KEYWORD and "Unpack[" in str(last[0].annotation)
        made = takes_options(call, parameters.keys() - known.keys()) if spelled else names_unknown_options(call)
        places = _places(made)
        summary, own = _sections(call)
        entries = dict(described)
        if "self" in places:
            entries.pop(next(iter(known)), None)
        entries |= {name: f"    {meaning}" for name, meaning in parameters.items()} | _entries(
            own.get("Parameters", "")
        )
        for name in SHARED.keys() & places.keys():
            entries.setdefault(name, f"    {SHARED[name]}")
        if "column" in places and "column" not in entries:
            required = inspect.signature(made).parameters["column"].default is inspect.Parameter.empty
            entries["column"] = f"    Name of the column{'.' if required else '; by default the only one that fits.'}"
        shown = sorted((name for name in entries if _first(name) in places), key=lambda name: places[_first(name)])
        own["Parameters"] = _joined({name: entries[name] for name in shown})
        own["Raises"] = _joined(errors | _entries(own.get("Raises", "")))
        kind = inspect.signature(made).return_annotation
        if returns is not None:
            own["Returns"] = returns if "\n" in returns else f"{str(kind).rpartition('.')[2]}\n    {returns}"
        elif returned is not None and "Returns" not in own and ("self" in known or kind == annotated):
            own["Returns"] = returned if kind == annotated else re.sub("^.*", str(kind).rpartition(".")[2], returned)
        made.__doc__ = _BEFORE_EXAMPLES.sub(_add_imports, _written(summary, own))
        inspect.unwrap(made).__doc__ = made.__doc__  # of which the reference pages are made
        return made

    return document


def _sections(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return a docstring's text before its sections, and the sections by name."""
    summary, *parts = re.split(r"^(\w+)\n-{3,}\n", inspect.getdoc(function) or "", flags=re.MULTILINE)
    named = zip(parts[::2], parts[1::2], strict=True)
    return summary.rstrip(), {name: body.strip("\n") for name, body in named}


def _entries(section: str) -> dict[str, str]:
    """Return a section's description of each parameter or error, by its heading."""
    parts = re.split(r"^(\S.*)\n", section, flags=re.MULTILINE)
    return {heading: body.rstrip() for heading, body in zip(parts[1::2], parts[2::2], strict=True)}


def _joined(entries: dict[str, str]) -> str:
    return "\n".join(f"{heading}\n{body}" for heading, body in entries.items())


def _first(heading: str) -> str:
    """Return the first parameter in a heading."""
    return heading.partition(",")[0].lstrip("*")
