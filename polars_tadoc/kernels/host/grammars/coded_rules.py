"""Orders the rules of a decoded grammar by level, and renumbers its symbols."""

from __future__ import annotations

import numba as nb
import numpy as np

from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled

_POLL = (1 << 12) - 1
"""Between looks for an interrupt, this number of symbols, less 1, a power of two less 1."""


@polled
@njit
def weigh(words: int, order: UInt32, rule_starts: UInt32, bodies: UInt32, roots: UInt32, weights: UInt64) -> None:
    """Count how often each symbol occurs in the rows, expanded; ``order`` has each rule after those in its body."""
    began = interrupts()
    for first in range(0, len(roots), _POLL + 1):
        if interrupts() != began:
            return
        for at in range(nb.uint64(first), nb.uint64(min(first + _POLL + 1, len(roots)))):
            weights[roots[at]] += nb.uint64(1)
    for i in range(len(order) - 1, -1, -1):
        weight = weights[words + order[i]]
        for at in range(nb.int64(rule_starts[order[i]]), nb.int64(rule_starts[order[i] + 1])):
            if at & _POLL == 0 and interrupts() != began:  # places of all rules together: short ones, too
                return
            weights[bodies[at]] += weight


@polled
@njit
def order_rules(heights: UInt32, steps: Int64, level_offsets: UInt32, order: UInt32) -> bool:
    """Order the rules, level by level, by the steps between their places in the order of first use.

    Fills the rule, by first use, of each number; False if a step leaves the level or a rule is met twice.
    """
    rules, levels = len(heights), len(level_offsets) - 1
    by_level = np.empty(rules, np.uint32)
    met = np.zeros(rules, np.bool_)
    following = np.empty(levels + 1, np.uint32)
    following[:] = level_offsets
    began = interrupts()
    for rule in range(rules):
        if rule & _POLL == 0 and interrupts() != began:
            return False
        level = heights[rule] - nb.uint32(1)
        by_level[following[level]] = rule
        following[level] += nb.uint32(1)
    for level in range(levels):
        start, stop = nb.int64(level_offsets[level]), nb.int64(level_offsets[level + 1])
        at = start - 1
        for number in range(start, stop):
            if number & _POLL == 0 and interrupts() != began:
                return False
            at += steps[number] + 1
            if at < start or at >= stop or met[at]:
                return False
            met[at] = True
            order[number] = by_level[at]
    return True


@polled
@njit
def renumber(
    order: UInt32, numbers: UInt32, rule_starts: UInt32, bodies: UInt32, rule_offsets: UInt32, symbols: UInt32
) -> None:
    """Write the bodies of the rules in an order, with their offsets; ``numbers`` maps the symbols."""
    out = nb.int64(0)
    began = interrupts()
    for i in range(len(order)):
        rule_offsets[i] = out
        for at in range(nb.int64(rule_starts[order[i]]), nb.int64(rule_starts[order[i] + 1])):
            if at & _POLL == 0 and interrupts() != began:
                return
            symbols[out] = numbers[bodies[at]]
            out += 1
    rule_offsets[len(order)] = out


@polled
@njit
def renumber_rows(numbers: UInt32, roots: UInt32, symbols: UInt32) -> None:
    """Map symbols of rows."""
    began = interrupts()
    for first in range(0, len(roots), _POLL + 1):
        if interrupts() != began:
            return
        for at in range(nb.uint64(first), nb.uint64(min(first + _POLL + 1, len(roots)))):
            symbols[at] = numbers[roots[at]]
