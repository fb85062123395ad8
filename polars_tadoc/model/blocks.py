"""Blocks: the rows that one step works on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt


def cut_blocks(sizes: npt.NDArray[Any], max_rows: int, max_bytes: int) -> Iterator[tuple[int, int]]:
    """Cut rows into blocks with a maximum number of rows and bytes; each block has at least one row.

    Parameters
    ----------
    sizes
        Bytes by row.
    max_rows
        Maximum rows per block.
    max_bytes
        Maximum bytes per block; a single row may have more.

    Yields
    ------
    (int, int)
        First row of a block, and the row after its last.

    Examples
    --------
    >>> list(cut_blocks(np.array([3, 4, 9, 1]), 2, 8))
    [(0, 2), (2, 3), (3, 4)]

    """
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        before = ends[start - 1] if start else 0
        stop = int(np.searchsorted(ends, before + max_bytes, side="right"))
        stop = min(max(stop, start + 1), start + max_rows, len(sizes))
        yield start, stop
        start = stop
