"""Numbers that are more than memory holds, in a file: written one after another, then read again in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

CHUNK = 1 << 20
"""Numbers that are read at a time; a multiple of 8, so that each stretch begins with a whole byte of packed bits."""


class Spool:
    """Numbers of one type in a file of their own.

    Parameters
    ----------
    path
        The file; it is made, and stays until its folder goes.
    dtype
        Type of the numbers.

    """

    def __init__(self, path: Path, dtype: npt.DTypeLike) -> None:
        self.path, self.dtype = path, np.dtype(dtype)
        self._size = 0
        path.write_bytes(b"")

    def __len__(self) -> int:
        return self._size

    def append(self, values: npt.NDArray[Any]) -> None:
        """Write numbers behind those that are there."""
        if len(values):
            with self.path.open("ab") as file:
                file.write(np.ascontiguousarray(values, self.dtype).data)
            self._size += len(values)

    def chunks(self, size: int = CHUNK) -> Iterator[npt.NDArray[Any]]:
        """Give all numbers, ``size`` at a time and the rest."""
        with self.path.open("rb") as file:
            for start in range(0, self._size, size):
                chunk = np.fromfile(file, self.dtype, min(size, self._size - start))
                if len(chunk) < min(size, self._size - start):
                    raise OSError(f"{self.path} was made shorter by another process")
                yield chunk

    def delete(self) -> None:
        """Delete the file."""
        self.path.unlink()
