"""Gives a namespace's method the parameters and errors of the function that it hands its arguments to."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

from polars_tadoc.runtime.option_signature import takes_options

_ORDER = ("Parameters", "Returns", "Raises", "Warns", "Notes", "Examples")

Method = TypeVar("Method", bound=Callable[..., Any])


def documented_by(function: Callable[..., Any], **parameters: str | None) -> Callable[[Method], Method]:
    """Give a method a function's Parameters (but the first, the column) and Raises, where it has none of its own.

    A method that takes ``**options: Unpack[…]`` shows each option in its signature: in the function's place, before
    parameters of its own that the function has not.

    Parameters
    ----------
    function
        The function.
    **parameters
        What to say of parameters that the function has not, or that mean something else here; None where there is no
        such parameter.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc
    >>> "min_count" in pl.DataFrame().tadoc.word_count.__doc__
    True

    """
    _, sections = _sections(function)
    known = inspect.signature(function).parameters
    first, own_ones = next(iter(known)), parameters.keys() - known.keys()
    for name, meaning in {first: None, **parameters}.items():
        said = f"{name}\n    {meaning}\n" if meaning else ""
        found = re.subn(rf"^{name}\n(?:    .*\n?)+", said, sections["Parameters"], flags=re.MULTILINE)
        sections["Parameters"] = found[0] if found[1] else f"{found[0].rstrip()}\n{said}".rstrip()
    taken = {name: sections[name].strip("\n") for name in ("Parameters", "Raises") if sections.get(name)}

    def document(method: Method) -> Method:
        summary, own = _sections(method)
        given = taken | own
        order = sorted(given, key=lambda name: _ORDER.index(name))
        method.__doc__ = "\n\n".join([summary, *(f"{name}\n{'-' * len(name)}\n{given[name]}" for name in order)]) + "\n"
        last = list(inspect.signature(method).parameters.values())[-1:]
        spelled = last and last[0].kind is inspect.Parameter.VAR_KEYWORD and "Unpack[" in str(last[0].annotation)
        return takes_options(method, own_ones) if spelled else method

    return document


def _sections(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return what a docstring says first, and its sections by name."""
    summary, *parts = re.split(r"^(\w+)\n-{3,}\n", inspect.getdoc(function) or "", flags=re.MULTILINE)
    named = zip(parts[::2], parts[1::2], strict=True)
    return summary.rstrip(), {name: body.strip("\n") for name, body in named}
