"""Finds a phrase in rows (D. Knuth, J. Morris and V. Pratt, *Fast pattern matching in strings*, 1977)."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.runtime.array_types import Int64, UInt32
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import kernel, polled_kernel


@kernel
def fill_borders(phrase: UInt32, borders: Int64) -> None:
    """Write the length of the longest border of each beginning of a phrase, int64, words + 1."""
    borders[0], k = -1, np.int64(-1)
    for i in range(len(phrase)):
        while k >= 0 and phrase[k] != phrase[i]:
            k = borders[k]
        k += 1
        borders[i + 1] = k


@polled_kernel
def find_occurrences(
    starts: Int64, words: UInt32, first: int, stop: int, phrase: UInt32, borders: Int64, rows: Int64, places: Int64
) -> Any:
    """Find the occurrences of a phrase, overlapping ones too.

    Parameters
    ----------
    starts, words, first, stop
        As for :func:`polars_tadoc.kernels.host.near.rows.hash_rows`; no phrase has the separator.
    phrase, borders
        uint32, at least one word, and :func:`fill_borders` of it.
    rows, places
        int64: row and first word of each occurrence; only counted if there is no room.

    Returns
    -------
    int
        Number of occurrences.

    """
    count, began = np.int64(0), interrupts()
    for row in range(first, stop):
        if interrupts() != began:
            return count
        k = np.int64(0)
        for i in range(starts[row], starts[row + 1] - 1):
            if i & 0xFFFF == 0 and interrupts() != began:
                return count
            while k >= 0 and (k == len(phrase) or phrase[k] != words[i]):
                k = borders[k]
            k += 1
            if k == len(phrase):
                if count < len(rows):
                    rows[count], places[count] = row, i + 1 - k
                count += 1
    return count
