"""Reads the words of a compressed row, one after another."""

from __future__ import annotations

import numba as nb

from polars_tadoc.runtime.array_types import Int64, UInt32
from polars_tadoc.runtime.jit import inner


@inner
def next_word(
    terminals: int, rule_offsets: Int64, symbols: UInt32, roots: UInt32, position: Int64, end: Int64, depth: int
) -> tuple[int, int]:
    """Return the next terminal of a row and its level, -1 and -1 after the last.

    Parameters
    ----------
    terminals, rule_offsets, symbols, roots
        The rules, and the symbols of all rows.
    position, end
        By level: the next symbol and the end, of the row (level 0) or of a rule.
    depth
        The level of the terminal before, or 0.

    """
    depth = nb.int64(depth)
    while depth >= 0:
        inside = position[depth]
        if inside == end[depth]:
            depth -= 1
            continue
        position[depth] = inside + 1
        symbol = nb.int64(roots[inside]) if depth == 0 else nb.int64(symbols[inside])
        if symbol < terminals:
            return symbol, depth
        depth += 1
        position[depth] = rule_offsets[symbol - terminals]
        end[depth] = rule_offsets[symbol - terminals + 1]
    return nb.int64(-1), depth
