"""Applies a map of words to rules and rows: words are renamed, merged or deleted without expansion."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.primitives.codes import DELETED
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.jit import inner, kernel


def map_rules(rules: Rules, image: UInt32, size: int) -> Rules:
    """Apply a map of terminals to rules in host memory.

    ``image`` is uint32 by terminal: one of ``size`` new terminals, or ``DELETED``. Bodies of the new rules have no
    deleted terminals and may be empty.
    """
    offsets = np.zeros(rules.rule_count + 1, np.int64)
    symbols = np.empty(len(rules.symbols), np.uint32)
    lengths = np.zeros(rules.rule_count, np.uint64)
    _map_bodies(rules.terminals, rules.rule_offsets, rules.symbols, image, size, offsets, symbols, lengths)
    return Rules(size, offsets, symbols[: offsets[-1]], rules.level_offsets, lengths)


def map_roots(rules: Rules, root_offsets: Int64, roots: UInt32, image: UInt32, mapped: Rules) -> tuple[Int64, UInt32]:
    """Apply a map of terminals to documents.

    Parameters
    ----------
    rules, image
        As for :func:`map_rules`.
    root_offsets, roots
        int64, documents + 1, and uint32: the documents' symbols.
    mapped
        Result of :func:`map_rules`.

    Returns
    -------
    (int64[documents + 1], uint32 array)
        The documents' symbols with the new terminals.

    """
    offsets = np.zeros(len(root_offsets), np.int64)
    symbols = np.empty(len(roots), np.uint32)
    _map_rows(rules.terminals, root_offsets, roots, image, mapped.terminals, mapped.lengths, offsets, symbols)
    return offsets, symbols[: offsets[-1]]


@inner
def _map_symbols(
    terminals: int, symbols: UInt32, first: int, stop: int, image: UInt32, size: int, lengths: UInt64, mapped: UInt32,
    at: int,
) -> Any:  # fmt: skip
    """Map some symbols from position ``at`` on; return the end, and the number of words that they expand to."""
    length = nb.uint64(0)
    for i in range(first, stop):
        symbol = np.int64(symbols[i])
        if symbol < terminals:
            if image[symbol] != DELETED:
                mapped[at] = image[symbol]
                at += 1
                length += nb.uint64(1)
        elif lengths[symbol - terminals] != 0:
            mapped[at] = symbol - terminals + size
            at += 1
            length += lengths[symbol - terminals]
    return at, length


@kernel
def _map_bodies(
    terminals: int,
    rule_offsets: Int64,
    symbols: UInt32,
    image: UInt32,
    size: int,
    offsets: Int64,
    mapped: UInt32,
    lengths: UInt64,
) -> None:
    at = 0
    for r in range(len(rule_offsets) - 1):
        at, lengths[r] = _map_symbols(
            terminals, symbols, rule_offsets[r], rule_offsets[r + 1], image, size, lengths, mapped, at
        )
        offsets[r + 1] = at


@kernel
def _map_rows(
    terminals: int,
    root_offsets: Int64,
    roots: UInt32,
    image: UInt32,
    size: int,
    lengths: UInt64,
    offsets: Int64,
    mapped: UInt32,
) -> Any:
    at = 0
    for d in range(len(root_offsets) - 1):
        at, _ = _map_symbols(terminals, roots, root_offsets[d], root_offsets[d + 1], image, size, lengths, mapped, at)
        offsets[d + 1] = at
