"""The interface of classes that are saved in one file; their docstrings take over its parameters and errors."""

from __future__ import annotations

import os
from typing import Protocol, Self


class Saved(Protocol):
    """A class whose objects are saved in one file each."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file atomically; an existing file is replaced.

        Parameters
        ----------
        path
            The file; ``~`` is the user's home.

        Raises
        ------
        FileNotFoundError
            The folder does not exist.
        IsADirectoryError, OSError
            The path is a folder, or the file cannot be written.
        TypeError
            ``path`` is not a path.
        ValueError
            ``path`` is an address (``s3://…``).

        """

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file that :meth:`save` wrote.

        Parameters
        ----------
        path
            The file; ``~`` is the user's home.

        Raises
        ------
        FileNotFoundError, OSError
            The file does not exist or cannot be read.
        TypeError
            ``path`` is not a path.
        ValueError
            ``path`` is an address (``s3://…``).

        """
