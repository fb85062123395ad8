"""Gives a namespace's method the parameters and errors of the function that it hands its arguments to."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])


def documented_by(function: Callable[..., Any], **parameters: str | None) -> Callable[[Method], Method]:
    """Insert a function's Parameters and Raises (its first parameter, the column, left out) before the Examples.

    Parameters
    ----------
    function
        The function.
    **parameters
        What to say instead of parameters that mean something else here; None where there is no such parameter.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc
    >>> "min_count" in pl.DataFrame().tadoc.word_count.__doc__
    True

    """
    text = inspect.getdoc(function) or ""
    parts = re.split(r"^(\w+)\n-{3,}\n", text, flags=re.MULTILINE)[1:]
    sections = {name: body.strip("\n") for name, body in zip(parts[::2], parts[1::2], strict=True)}
    first = next(iter(inspect.signature(function).parameters))
    for name, meaning in {first: None, **parameters}.items():
        said = f"{name}\n    {meaning}\n" if meaning else ""
        sections["Parameters"] = re.sub(rf"^{name}\n(?:    .*\n?)+", said, sections["Parameters"], flags=re.MULTILINE)
    inserted = "\n\n".join(
        f"{name}\n{'-' * len(name)}\n{sections[name]}" for name in ("Parameters", "Raises") if sections.get(name)
    )

    def document(method: Method) -> Method:
        own = inspect.getdoc(method) or ""
        before, _, examples = own.partition("Examples\n--------\n")
        method.__doc__ = f"{before.rstrip()}\n\n{inserted}\n\nExamples\n--------\n{examples}"
        return method

    return document
