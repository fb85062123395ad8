"""Writes a file beside the one that it replaces: readers see the old one or the new one, never a part."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def target(path: Path, call: str) -> Path:
    """Return the file that a path means.

    Raises
    ------
    FileNotFoundError
        The folder that it should be made in is not there.
    IsADirectoryError, OSError
        It is a folder, or something else that no file can replace.

    """
    path = Path(os.path.realpath(path.expanduser()))
    if path.is_dir():
        raise IsADirectoryError(f"{call}: {path} is a folder; name a file in it")
    if path.exists() and not path.is_file():
        raise OSError(f"{call}: {path} is no ordinary file, and cannot be replaced by one")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{call}: there is no folder {path.parent}")
    return path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary name beside the file's; it takes the file's name in the end, or goes on an error."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        temporary.touch()  # so that a folder that may not be written to is found out at once
        yield temporary
        if path.exists():
            temporary.chmod(path.stat().st_mode)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
