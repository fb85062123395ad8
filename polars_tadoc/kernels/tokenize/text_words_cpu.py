"""Gives the words of a text their final numbers."""

from __future__ import annotations

from polars_tadoc.kernels.primitives.codes import DELETED, UNKNOWN
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR_ID
from polars_tadoc.runtime.array_types import Int64, UInt32
from polars_tadoc.runtime.compiled import njit


@njit
def keep_words(sequence: UInt32, numbers: UInt32, ends: Int64, length_ends: Int64) -> tuple[int, int]:
    """Replace the ids of a piece by ``numbers[id]`` in place, and drop separators, ``DELETED`` and ``UNKNOWN``.

    Fills ``ends`` and ``length_ends``, by row that ends in the piece, with the number of words kept up to the row's
    end, and of words that count in lengths. Returns both for the whole piece.
    """
    kept = counted = row = 0
    for i in range(len(sequence)):
        if sequence[i] == SEPARATOR_ID:
            ends[row], length_ends[row] = kept, counted
            row += 1
            continue
        number = numbers[sequence[i]]
        sequence[kept] = number
        kept += number < UNKNOWN
        counted += number != DELETED
    return kept, counted
