"""Gives the words of a text their final numbers."""

from __future__ import annotations

from polars_tadoc.kernels.primitives.codes import DELETED, UNKNOWN
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR_ID
from polars_tadoc.runtime.array_types import Int64, UInt32
from polars_tadoc.runtime.jit import kernel


@kernel
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


@kernel
def place_words(sequence: UInt32, numbers: UInt32, at: int, ids: UInt32, ends: Int64) -> None:
    """Write ``numbers[id]`` of a piece's ids without separators from ``ids[at]`` on; fill the ``ends`` of its rows."""
    to, row = at, 0
    for i in range(len(sequence)):
        own = sequence[i]
        if own == SEPARATOR_ID:
            ends[row] = to
            row += 1
        else:
            ids[to] = numbers[own]
            to += 1
