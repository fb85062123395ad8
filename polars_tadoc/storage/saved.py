"""The interface of classes that are saved in one file; their docstrings take over its parameters and errors."""

from __future__ import annotations

import os
from typing import Protocol, Self

from polars_tadoc.runtime.documented import documented_by


def _at(path: str | os.PathLike[str]) -> None:
    """Take the path of a file.

    Parameters
    ----------
    path
        The file; ``~`` is the user's home.

    Raises
    ------
    TypeError
        ``path`` is not a path.
    ValueError
        ``path`` is an address (``s3://…``).

    """


class Saved(Protocol):
    """A class whose objects are saved in one file each."""

    @documented_by(_at, path="The file; ``~`` is the user's home.")
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file atomically; an existing file is replaced.

        Raises
        ------
        FileNotFoundError
            The folder does not exist.
        IsADirectoryError, OSError
            The path is a folder, or the file cannot be written.

        """

    @classmethod
    @documented_by(_at)
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file that :meth:`save` wrote.

        Raises
        ------
        FileNotFoundError, OSError
            The file does not exist or cannot be read.

        """
