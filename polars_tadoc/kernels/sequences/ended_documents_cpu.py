"""Documents that end in a terminal of their own: a window of n words then begins at each of their words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.runtime.array_types import Int64, UInt32

MOST_ENDS = 8
"""Maximum ends added for each symbol: with more, counting each length by itself is faster."""


def end_documents(rules: Rules, root_offsets: Int64, roots: UInt32, times: int) -> tuple[Rules, Int64, UInt32] | None:
    """Append a new terminal, the last one, to each document; None if that makes them many times longer.

    Parameters
    ----------
    rules, root_offsets, roots
        Rules and documents.
    times
        How often it is appended.

    """
    end, documents = rules.terminals, len(root_offsets) - 1
    if documents * times > MOST_ENDS * (len(roots) + len(rules.symbols)):
        return None
    sizes = np.diff(root_offsets)
    offsets = running_sum(sizes + times)
    symbols = np.full(int(offsets[-1]), end, np.uint32)
    inside = np.ones(len(symbols), np.bool_)
    inside[(offsets[1:, None] - np.arange(1, times + 1)).reshape(-1)] = False
    symbols[inside] = _moved(roots[root_offsets[0] : root_offsets[-1]], end)
    return replace(rules, terminals=end + 1, symbols=_moved(rules.symbols, end)), offsets, symbols


def _moved(symbols: UInt32, end: int) -> UInt32:
    """Number rules one higher."""
    return symbols + (symbols >= end).astype(np.uint32)
