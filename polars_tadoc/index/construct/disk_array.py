"""An array of numbers in a file, for numbers that do not fit in memory: written and read sequentially."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

CHUNK = 1 << 20
"""Numbers read at a time; a multiple of 8, so that each chunk starts at a whole byte of packed bits."""


class DiskArray:
    """Numbers of one type in their own file.

    Parameters
    ----------
    path
        The file; created now, and removed with its folder.
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
        """Append numbers."""
        if len(values):
            with self.path.open("ab") as file:
                file.write(np.ascontiguousarray(values, self.dtype).data)
            self._size += len(values)

    def chunks(self, size: int = CHUNK) -> Iterator[npt.NDArray[Any]]:
        """Yield all numbers in chunks of ``size``."""
        with self.path.open("rb") as file:
            for start in range(0, self._size, size):
                chunk = np.fromfile(file, self.dtype, min(size, self._size - start))
                if len(chunk) < min(size, self._size - start):
                    raise OSError(f"{self.path} was made shorter by another process")
                yield chunk

    def delete(self) -> None:
        """Delete the file."""
        self.path.unlink()
