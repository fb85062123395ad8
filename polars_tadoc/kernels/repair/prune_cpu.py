"""Inlines rules that do not pay and sorts the rest by level."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.runtime.array_types import Bools, Int64, UInt32
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.jit import kernel


@kernel
def count_uses(sequence: UInt32, vocabulary_size: int, uses: Int64) -> None:
    """Count the uses of each rule in the sequence."""
    for i in range(len(sequence)):
        symbol = sequence[i]
        if symbol >= vocabulary_size and symbol != SEPARATOR:
            uses[symbol - vocabulary_size] += 1


@njit(inline="always")
def _body_length(left: int, right: int, vocabulary_size: int, kept: Bools, lengths: Int64) -> Any:
    length = nb.int64(0)
    for symbol in (left, right):
        child = nb.int64(symbol) - vocabulary_size
        if child >= 0 and not kept[child]:
            length += lengths[child]
        else:
            length += 1
    return length


@njit
def decide(
    left: UInt32, right: UInt32, vocabulary_size: int, root_uses: Int64, margin: int, kept: Bools, lengths: Int64
) -> int:
    """Drop rules with ``length * uses <= length + uses + margin``; return their number.

    Uses count bodies and rows with the rules dropped so far inlined; ``lengths`` becomes each rule's body length with
    them inlined.
    """
    rules = len(left)
    uses = root_uses.copy()
    for r in range(rules - 1, -1, -1):
        weight = nb.int64(1) if kept[r] else uses[r]
        for symbol in (left[r], right[r]):
            if symbol >= vocabulary_size:
                uses[symbol - vocabulary_size] += weight
    dropped = 0
    for r in range(rules):
        lengths[r] = _body_length(left[r], right[r], vocabulary_size, kept, lengths)
        if kept[r] and lengths[r] * uses[r] <= lengths[r] + uses[r] + margin:
            kept[r] = False
            dropped += 1
    return dropped


@kernel
def measure(left: UInt32, right: UInt32, vocabulary_size: int, kept: Bools, lengths: Int64) -> None:
    """Fill each rule's body length with the dropped rules inlined."""
    for r in range(len(left)):
        lengths[r] = _body_length(left[r], right[r], vocabulary_size, kept, lengths)


@njit
def order_by_level(left: UInt32, right: UInt32, vocabulary_size: int, kept: Bools, numbers: UInt32) -> Any:
    """Number the kept rules level by level, older ones first; return the levels' offsets.

    ``numbers[r]`` becomes the symbol of a kept rule r (words come first).
    """
    rules = len(left)
    height = np.zeros(rules, np.uint32)  # of a symbol: 0 for words, one more than the highest child for kept rules
    top = nb.uint32(0)
    for r in range(rules):
        tallest = nb.uint32(0)
        for symbol in (left[r], right[r]):
            if symbol >= vocabulary_size:
                tallest = max(tallest, height[symbol - vocabulary_size])
        height[r] = tallest + nb.uint32(1) if kept[r] else tallest
        top = max(top, height[r])
    offsets = np.zeros(top + 1, np.uint32)
    for r in range(rules):
        if kept[r]:
            offsets[height[r]] += 1
    for level in range(1, top + 1):
        offsets[level] += offsets[level - 1]
    following = offsets.copy()
    for r in range(rules):
        if kept[r]:
            level = height[r] - 1
            numbers[r] = vocabulary_size + following[level]
            following[level] += 1
    return offsets


@njit(inline="always")
def _write_inlined(
    symbol: int,
    left: UInt32,
    right: UInt32,
    vocabulary_size: int,
    kept: Bools,
    numbers: UInt32,
    stack: Any,
    out: Any,
    at: int,
) -> int:
    """Write a symbol with dropped rules expanded; return the position after it."""
    depth = 0
    stack[0] = symbol
    while depth >= 0:
        s = nb.int64(stack[depth])
        depth -= 1
        rule = s - vocabulary_size
        if rule < 0:
            out[at] = s
            at += 1
        elif kept[rule]:
            out[at] = numbers[rule]
            at += 1
        else:
            stack[depth + 1] = right[rule]
            stack[depth + 2] = left[rule]
            depth += 2
    return at


@njit
def write_bodies(
    left: UInt32,
    right: UInt32,
    vocabulary_size: int,
    kept: Bools,
    numbers: UInt32,
    order: UInt32,
    rule_offsets: UInt32,
    stack_size: int,
    symbols: UInt32,
) -> None:
    """Write the kept rules' bodies; ``order[k]`` is the old number of new rule k."""
    stack = np.empty(stack_size, np.uint32)
    for k in range(len(order)):
        r = order[k]
        at = nb.int64(rule_offsets[k])
        at = _write_inlined(left[r], left, right, vocabulary_size, kept, numbers, stack, symbols, at)
        at = _write_inlined(right[r], left, right, vocabulary_size, kept, numbers, stack, symbols, at)


@kernel
def measure_rows(sequence: UInt32, vocabulary_size: int, kept: Bools, lengths: Int64) -> Any:
    """Count a range's symbols with dropped rules inlined, and the rows that end in it."""
    rows = size = nb.int64(0)
    for i in range(len(sequence)):
        symbol = sequence[i]
        if symbol == SEPARATOR:
            rows += 1
        else:
            rule = nb.int64(symbol) - vocabulary_size
            size += nb.int64(lengths[rule]) if rule >= 0 and not kept[rule] else 1
    return size, rows


@njit
def write_rows(
    sequence: UInt32,
    left: UInt32,
    right: UInt32,
    vocabulary_size: int,
    kept: Bools,
    numbers: UInt32,
    stack_size: int,
    at: int,
    row: int,
    roots: UInt32,
    root_offsets: Int64,
) -> None:
    """Write a range's symbols from ``roots[at]`` without separators, and the end of each row from ``row`` on."""
    stack = np.empty(stack_size, np.uint32)
    for i in range(len(sequence)):
        symbol = sequence[i]
        if symbol < vocabulary_size:
            roots[at] = symbol
            at += 1
        elif symbol == SEPARATOR:
            row += 1
            root_offsets[row] = at
        else:
            at = _write_inlined(symbol, left, right, vocabulary_size, kept, numbers, stack, roots, at)
