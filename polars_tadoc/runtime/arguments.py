"""Checks of single arguments."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np

from polars_tadoc.runtime.process.fork import require_threads


def require_integer(name: str, value: object, least: int | None = None, most: int | None = None) -> int:
    """Return an integer argument after checking it.

    Raises
    ------
    TypeError
        The value is not an integer.
    ValueError
        The value is below ``least`` or above ``most``.

    """
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        unit = ' of bytes, or text as "2GB"' if name == "memory_limit" else ""
        raise TypeError(f"{name}={value!r} must be an integer{unit}")
    if least is not None and value < least:
        raise ValueError(f"{name}={value} must be at least {least}")
    if most is not None and value > most:
        raise ValueError(f"{name}={value} must be at most {most}")
    return int(value)


def require_text(text: str, what: str) -> None:
    """Raise ``ValueError`` if a string has half a surrogate pair, which UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{what} is not text: {error.reason}") from None


def require_bool(name: str, value: object, call: str) -> None:
    """Raise ``TypeError`` unless an argument is True or False."""
    if not isinstance(value, bool):
        raise TypeError(f"{call}: {name}={value!r} must be True or False")


def require_path(name: str, value: object, call: str, instead: str = "") -> Path:
    """Return the local path of a file or a folder; ``~`` is the user's home.

    Parameters
    ----------
    name, value, call
        The argument's name and value, and the call.
    instead
        Alternative for other values, for messages.

    Raises
    ------
    TypeError
        The value is not a path.
    ValueError
        The value is an address.

    """
    require_threads()
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    more = f"; {instead}" if instead else ""
    if not isinstance(path, str):
        raise TypeError(f"{call}: {name} is {type(value).__name__}, not a path: a str or an os.PathLike{more}")
    if re.match(r"\w+://", path):
        raise ValueError(f'{call}: {name}="{path}" is an address; give the path of a local file or folder{more}')
    return Path(os.path.expanduser(path))
