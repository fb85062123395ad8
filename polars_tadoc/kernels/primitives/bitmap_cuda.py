"""Ranks of bitmaps on the device."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.runtime.device import launch

_THREADS, _TILE = 1024, 8192  # of bitmap.cu


def rank(bits: Any) -> Any:
    """Count the bits set before each word of a bitmap.

    Parameters
    ----------
    bits
        cupy uint32: 32 bits each, the lowest first.

    Returns
    -------
    cupy uint32
        Bits set before each word, and in total; length words + 1.

    """
    import cupy

    words = len(bits)
    tiles = words // _TILE + 1  # the last one also writes the total
    totals, ranks = cupy.empty(tiles, np.uint32), cupy.empty(words + 1, np.uint32)
    launch("bitmap", "count_tiles", tiles, _THREADS, bits, words, totals)
    launch("bitmap", "rank_words", tiles, _THREADS, bits, words, totals, ranks)
    return ranks
