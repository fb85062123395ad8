"""Gives the words of a text their final numbers."""

from __future__ import annotations

from polars_tadoc.kernels.primitives.codes import DELETED, UNKNOWN
from polars_tadoc.runtime.array_types import Int64, UInt32
from polars_tadoc.runtime.jit import kernel


@kernel
def keep_words(sequence: UInt32, numbers: UInt32, at: int, ends: Int64, length_ends: Int64) -> tuple[int, int]:
    """Replace the ids of a piece by ``numbers[id]`` in place, and drop ``DELETED`` and ``UNKNOWN``.

    ``ends``, by row that ends in the piece, is where the row's ids end, less ``at``, where the piece's begin. They
    become the number of words kept up to the row's end, and ``length_ends`` that of words that count in lengths.
    Returns both for the whole piece.
    """
    kept = counted = i = 0
    for row in range(len(ends) + 1):
        stop = ends[row] - at if row < len(ends) else len(sequence)
        while i < stop:
            number = numbers[sequence[i]]
            sequence[kept] = number
            kept += number < UNKNOWN
            counted += number != DELETED
            i += 1
        if row < len(ends):
            ends[row], length_ends[row] = kept, counted
    return kept, counted
