"""What stands between words, on the device: interned, and encoded as the CPU encodes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from polars_tadoc.kernels.cuda.bitmap import rank
from polars_tadoc.kernels.cuda.device import launch_each
from polars_tadoc.kernels.cuda.intern import intern


@dataclass(frozen=True, eq=False)
class NotedGaps:
    """The gaps that decompression does not assume (one space inside a row, nothing at its ends)."""

    vocabulary: pa.LargeStringArray
    """Distinct gaps by falling count, equal ones in code point order."""
    ids: Any
    """cupy uint32 by noted gap, in the text's order."""
    tokens: Any
    """cupy uint32 by noted gap: place in the sequence of the word, or of the separator, that it stands before."""
    row_gaps: Any
    """cupy uint32: noted gaps before each row, and all; length rows + 1."""
    row_tokens: Any
    """cupy uint32: where each row starts in the sequence, and its length; length rows + 1."""


def note_gaps(text: Any, token_starts: Any, token_stops: Any, row_tokens: Any) -> NotedGaps:
    """Find and number the gaps between tokens.

    Parameters
    ----------
    text
        cupy uint8, padded.
    token_starts, token_stops
        cupy uint32: the bytes of each word, and those of a token without bytes at each row's end.
    row_tokens
        cupy uint32: tokens before each row, and all; length rows + 1.

    """
    import cupy

    tokens, rows = len(token_starts), len(row_tokens) - 1
    bits = cupy.empty(tokens // 32 + 1, np.uint32)
    words = np.uint32(len(bits))
    launch_each("gaps", "mark_gaps", 32 * len(bits), text, token_starts, token_stops, np.uint32(tokens), words, bits)
    ranks = rank(bits)
    noted = int(ranks[-1])  # synchronize!
    gap_tokens, starts, stops = (cupy.empty(noted, np.uint32) for _ in range(3))
    launch_each(
        "gaps", "place_gaps", len(bits), bits, ranks, words, token_starts, token_stops, gap_tokens, starts, stops
    )
    row_gaps = cupy.empty(rows + 1, np.uint32)
    launch_each("gaps", "place_gap_rows", rows + 1, row_tokens, np.uint32(rows), bits, ranks, row_gaps)
    interned = intern(text, starts, stops, leave_empty_out=False)
    return NotedGaps(interned.distinct, interned.ids, gap_tokens, row_gaps, row_tokens)


def encode_gaps(gaps: NotedGaps) -> tuple[Any, Any]:
    """Encode each row's noted gaps as varint pairs: gaps passed over, gap id.

    Returns
    -------
    (cupy int64, cupy uint8)
        Where each row's bytes start, and all, length rows + 1; the bytes.

    """
    import cupy

    noted, rows = len(gaps.ids), len(gaps.row_gaps) - 1
    count, row_count = np.uint32(noted), np.uint32(rows)
    first_tokens = cupy.zeros(noted, np.uint32)
    launch_each("gaps", "mark_first_gaps", rows, gaps.row_tokens, gaps.row_gaps, row_count, first_tokens)
    sizes = cupy.empty(noted, np.uint8)
    launch_each("gaps", "measure_gaps", noted, gaps.tokens, first_tokens, gaps.ids, count, sizes)
    stops = cupy.cumsum(sizes, dtype=np.uint64)
    data = cupy.empty(int(stops[-1]) if noted else 0, np.uint8)  # synchronize!
    launch_each("gaps", "write_gaps", noted, gaps.tokens, first_tokens, gaps.ids, count, stops, data)
    offsets = cupy.empty(rows + 1, np.int64)
    launch_each("gaps", "place_gap_bytes", rows + 1, gaps.row_gaps, row_count, stops, offsets)
    return offsets, data
