"""Fuses a grammar's thin levels, so that a top-down sweep has fewer grid barriers.

A barrier takes as long as about 10^5 symbols, and the upper levels of a grammar have far fewer. Adjacent levels are
fused into one step by replacing each reference to a rule of the same step by that rule's body, so weights bypass the
rule. Word counts stay exact; a rule's weight is then only what reaches it from other steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.runtime.array_types import Int64, UInt32
from polars_tadoc.runtime.jit import kernel

GROWTH = 1 << 17
"""Maximum symbols that fusing a level may add."""


def fuse_levels(
    vocabulary_size: int, rule_offsets: UInt32, symbols: UInt32, level_offsets: UInt32, growth: int = GROWTH
) -> tuple[UInt32, UInt32, UInt32]:
    """Return bodies and steps that give the same word counts as the grammar's bodies and levels.

    Parameters
    ----------
    vocabulary_size
        Number of words.
    rule_offsets, symbols, level_offsets
        uint32 arrays of a checked grammar.
    growth
        Maximum symbols that fusing a level may add; 0 fuses only if nothing is added, negative values never fuse.

    Returns
    -------
    (uint32[rules + 1], uint32, uint32[steps, 2])
        Offset of each rule's body, the bodies, and the symbol positions of each nonempty step, lowest step first. A
        body refers to words and rules of lower steps only. At most twice the grammar's symbols, or 2^20 more.

    """
    lengths = np.diff(rule_offsets.astype(np.int64))
    first_rules = np.empty(len(level_offsets), np.int64)
    budget = max(len(symbols), 1 << 20)
    steps = _plan(vocabulary_size, rule_offsets, symbols, level_offsets, growth, budget, lengths, first_rules)
    first_rules = np.append(first_rules[:steps], len(lengths))
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if steps == len(level_offsets) - 1:
        fused = symbols
    else:
        fused = np.empty(offsets[-1], np.uint32)
        _write(vocabulary_size, rule_offsets, symbols, first_rules, offsets, fused)
    edges = offsets[first_rules].astype(np.uint32)
    ranges = np.stack([edges[:-1], edges[1:]], axis=1)
    return offsets.astype(np.uint32), fused, ranges[ranges[:, 0] < ranges[:, 1]]


@kernel
def _plan(
    vocabulary_size: int,
    rule_offsets: UInt32,
    symbols: UInt32,
    level_offsets: UInt32,
    growth: int,
    budget: int,
    lengths: Int64,
    first_rules: Int64,
) -> Any:
    """Compute the lengths of the fused bodies and each step's first rule; return the number of steps.

    One pass from the lowest level up: a level joins the step below it while that pays, so an exponential expansion is
    neither written nor summed up.
    """
    steps = 0
    left = np.int64(budget)
    base = np.int64(vocabulary_size)  # symbols from here on are inlined
    for level in range(len(level_offsets) - 1):
        first = np.int64(level_offsets[level])
        last = np.int64(level_offsets[level + 1])
        grown = np.int64(0)
        joined = steps > 0 and growth >= 0
        rule = first
        while joined and rule < last:
            length = np.int64(0)
            for i in range(rule_offsets[rule], rule_offsets[rule + 1]):
                symbol = np.int64(symbols[i])
                length += lengths[symbol - vocabulary_size] if symbol >= base else 1
            grown += length - (np.int64(rule_offsets[rule + 1]) - np.int64(rule_offsets[rule]))
            lengths[rule] = length
            joined = bool(grown <= min(np.int64(growth), left))
            rule += 1
        if joined:
            left = left - max(grown, np.int64(0))
        else:
            for r in range(first, last):
                lengths[r] = np.int64(rule_offsets[r + 1]) - np.int64(rule_offsets[r])
            base = vocabulary_size + first
            first_rules[steps] = first
            steps += 1
    return steps


@kernel
def _write(
    vocabulary_size: int, rule_offsets: UInt32, symbols: UInt32, first_rules: Int64, offsets: Int64, fused: UInt32
) -> None:
    """Write the fused bodies; a rule comes after the rules that it inlines."""
    for step in range(len(first_rules) - 1):
        base = vocabulary_size + first_rules[step]
        for rule in range(first_rules[step], first_rules[step + 1]):
            at = offsets[rule]
            for i in range(rule_offsets[rule], rule_offsets[rule + 1]):
                symbol = np.int64(symbols[i])
                if symbol < base:
                    fused[at] = symbol
                    at += 1
                else:
                    for j in range(offsets[symbol - vocabulary_size], offsets[symbol - vocabulary_size + 1]):
                        fused[at] = fused[j]
                        at += 1
