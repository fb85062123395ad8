"""Validates a grammar's arrays, and computes sizes in bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.runtime.array_types import UInt32, UInt64
from polars_tadoc.runtime.jit import kernel

OK = 0
RULES_START = 1
RULES_FALL = 2
RULES_END = 3
LEVELS = 4
SYMBOL_RANGE = 5
NOT_LOWER = 6
TOO_LONG = 7
TOO_SHORT = 8


@kernel
def check(
    vocabulary_size: int,
    rule_offsets: UInt32,
    symbols: UInt32,
    level_offsets: UInt32,
    limit: int,
    expansion_lengths: UInt64,
) -> Any:
    """Check everything that later kernels rely on; fill the number of words in each rule's expansion.

    Returns ``(code, where)``: ``OK``, or the first error and its rule, level or symbol index. Never reads out of
    bounds, whatever the arrays contain.
    """
    rules = len(rule_offsets) - 1
    levels = len(level_offsets) - 1
    if rules < 0 or rule_offsets[0] != 0:
        return RULES_START, np.int64(0)
    for r in range(rules):
        if rule_offsets[r] > rule_offsets[r + 1]:
            return RULES_FALL, np.int64(r)
    if rule_offsets[rules] != len(symbols):
        return RULES_END, np.int64(rules)
    for r in range(rules):
        # with fewer symbols, rules need not grow with the level, and expanding one could take forever
        if rule_offsets[r + 1] - rule_offsets[r] < 2:
            return TOO_SHORT, np.int64(r)
    if levels < 0 or level_offsets[0] != 0 or level_offsets[levels] != rules:
        return LEVELS, np.int64(0)
    for level in range(levels):
        if level_offsets[level] >= level_offsets[level + 1]:
            return LEVELS, np.int64(level)
    for level in range(levels):
        first = np.int64(level_offsets[level])
        for r in range(first, np.int64(level_offsets[level + 1])):
            total = np.int64(0)
            for i in range(rule_offsets[r], rule_offsets[r + 1]):
                symbol = np.int64(symbols[i])
                if symbol < vocabulary_size:
                    total += 1
                else:
                    rule = symbol - vocabulary_size
                    if rule >= rules:
                        return SYMBOL_RANGE, np.int64(i)
                    if rule >= first:
                        return NOT_LOWER, np.int64(r)
                    total += np.int64(expansion_lengths[rule])
                if total > limit:
                    return TOO_LONG, np.int64(r)
            expansion_lengths[r] = np.uint64(total)
    return OK, np.int64(0)


@kernel
def inherit_from_first(vocabulary_size: int, rule_offsets: UInt32, symbols: UInt32, values: UInt32) -> None:
    """Give each rule the value of its body's first symbol (rules ascending: children first)."""
    for rule in range(len(rule_offsets) - 1):
        values[vocabulary_size + rule] = values[symbols[rule_offsets[rule]]]


@kernel
def sum_bytes(vocabulary_size: int, rule_offsets: UInt32, symbols: UInt32, gap_bytes: UInt64, sums: UInt64) -> None:
    """Fill the rules' part of ``sums`` (bytes by symbol): the symbols of the body and the gaps between them.

    Sums saturate at 2^62, so they cannot wrap.
    """
    most = np.uint64(1 << 62)
    for rule in range(len(rule_offsets) - 1):
        first = rule_offsets[rule]
        total = sums[symbols[first]]
        for i in range(first + 1, rule_offsets[rule + 1]):
            total = min(total + gap_bytes[i] + sums[symbols[i]], most)
        sums[vocabulary_size + rule] = total
