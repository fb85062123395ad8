"""Gives the words of a text their final numbers."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.cpu.counts import DELETED

UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
Int64 = npt.NDArray[np.int64]

UNKNOWN = np.uint32(0xFFFFFFFE)
"""Number of a word that counts to its document's length only."""


@nb.njit(nogil=True, cache=True)
def keep_words(sequence: UInt32, separator: int, numbers: UInt32, offsets: Int64, lengths: UInt64) -> int:
    """Replace ids by ``numbers[id]``, in place, and leave out separators, ``DELETED`` and ``UNKNOWN``.

    ``offsets`` and ``lengths`` (with ``UNKNOWN``) become those of the rows. Returns how many are kept.
    """
    kept = row = 0
    length = nb.uint64(0)
    for i in range(len(sequence)):
        if sequence[i] == separator:
            lengths[row] = length
            row += 1
            offsets[row] = kept
            length = nb.uint64(0)
            continue
        number = numbers[sequence[i]]
        sequence[kept] = number
        kept += number < UNKNOWN
        length += nb.uint64(number != DELETED)
    return kept
