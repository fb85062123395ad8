"""Inlines rules that do not pay and sorts the rest by level."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.runtime.addresses import atomic_add
from polars_tadoc.runtime.array_types import Bools, Int64, UInt32
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import kernel
from polars_tadoc.runtime.process.shared_tasks import all_done, done, take


@kernel
def count_uses(sequence: UInt32, vocabulary_size: int, shared: bool, uses: Int64) -> None:
    """Count the uses of each rule in the sequence; ``shared``: other threads count, too."""
    for i in range(len(sequence)):
        symbol = sequence[i]
        if symbol >= vocabulary_size and symbol != SEPARATOR:
            if shared:
                atomic_add(uses, nb.int64(symbol) - vocabulary_size, 1)
            else:
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
def _count_task(
    left: UInt32, right: UInt32, vocabulary_size: int, kept: Bools, first: int, stop: int, shared: bool, uses: Int64
) -> None:
    """Add the uses by the rules from ``stop - 1`` down to ``first``; ``shared``: other threads add, too."""
    for r in range(stop - 1, first - 1, -1):
        weight = nb.int64(1) if kept[r] else uses[r]
        for symbol in (left[r], right[r]):
            if symbol >= vocabulary_size:
                if shared:
                    atomic_add(uses, nb.int64(symbol) - vocabulary_size, weight)
                else:
                    uses[symbol - vocabulary_size] += weight


@njit
def _decide_task(
    left: UInt32,
    right: UInt32,
    vocabulary_size: int,
    uses: Int64,
    margin: int,
    kept: Bools,
    lengths: Int64,
    first: int,
    stop: int,
) -> Any:
    """Drop rules with ``length * uses <= length + uses + margin``; return their number."""
    dropped = nb.int64(0)
    for r in range(first, stop):
        lengths[r] = _body_length(left[r], right[r], vocabulary_size, kept, lengths)
        if kept[r] and lengths[r] * uses[r] <= lengths[r] + uses[r] + margin:
            kept[r] = False
            dropped += 1
    return dropped


@njit
def _measure_task(
    left: UInt32,
    right: UInt32,
    vocabulary_size: int,
    kept: Bools,
    lengths: Int64,
    heights: UInt32,
    first: int,
    stop: int,
) -> None:
    """Fill the lengths and heights of rules."""
    for r in range(first, stop):
        lengths[r] = _body_length(left[r], right[r], vocabulary_size, kept, lengths)
        tallest = nb.uint32(0)
        for symbol in (left[r], right[r]):
            if symbol >= vocabulary_size:
                tallest = max(tallest, heights[symbol - vocabulary_size])
        heights[r] = tallest + nb.uint32(1) if kept[r] else tallest


@polled
@njit
def decide(
    progress: Int64,
    left: UInt32,
    right: UInt32,
    vocabulary_size: int,
    edges: Int64,
    stages: Int64,
    root_uses: Int64,
    margin: int,
    uses: Int64,
    kept: Bools,
    lengths: Int64,
    heights: UInt32,
    dropped: Int64,
) -> None:
    """Drop rules with ``length * uses <= length + uses + margin``, in several passes.

    Uses count bodies and rows with the rules dropped in earlier passes inlined.

    Parameters
    ----------
    progress
        As of :func:`.shared_tasks.share_tasks`.
    edges
        Of the tasks' ranges of rules.
    stages
        First task of each stage, and the number of all; rules of one stage with several tasks do not use each other.
    root_uses
        Uses in rows.
    uses, dropped
        Work space: by rule; and by pass, zeros.
    kept
        Initially true.
    lengths
        Becomes each rule's body length with the dropped rules inlined.
    heights
        Becomes each rule's height: 0 for words, one more than the highest child's for kept rules.

    """
    began, tasks, step = interrupts(), len(edges) - 1, 0
    for number in range(len(dropped)):
        k = take(progress, step)
        while k < tasks:
            uses[edges[k] : edges[k + 1]] = root_uses[edges[k] : edges[k + 1]]
            k = done(progress, step)
        if not all_done(progress, step, tasks, began):
            return
        step += 1
        for stage in range(len(stages) - 2, -1, -1):
            base, many = stages[stage], stages[stage + 1] - stages[stage]
            k = take(progress, step)
            while k < many and interrupts() == began:
                first, stop = edges[base + k], edges[base + k + 1]
                _count_task(left, right, vocabulary_size, kept, first, stop, many > 1, uses)
                k = done(progress, step)
            if not all_done(progress, step, many, began):
                return
            step += 1
        for stage in range(len(stages) - 1):
            base, many = stages[stage], stages[stage + 1] - stages[stage]
            k = take(progress, step)
            while k < many and interrupts() == began:
                first, stop = edges[base + k], edges[base + k + 1]
                own = _decide_task(left, right, vocabulary_size, uses, margin, kept, lengths, first, stop)
                atomic_add(dropped, number, own)
                k = done(progress, step)
            if not all_done(progress, step, many, began):
                return
            step += 1
        if dropped[number] == 0:
            break
    for stage in range(len(stages) - 1):
        base, many = stages[stage], stages[stage + 1] - stages[stage]
        k = take(progress, step)
        while k < many and interrupts() == began:
            first, stop = edges[base + k], edges[base + k + 1]
            _measure_task(left, right, vocabulary_size, kept, lengths, heights, first, stop)
            k = done(progress, step)
        if not all_done(progress, step, many, began):
            return
        step += 1


@kernel
def count_levels(kept: Bools, heights: UInt32, sizes: UInt32) -> None:
    """Count the kept rules of each level; ``sizes`` is initially zero."""
    for r in range(len(kept)):
        if kept[r]:
            sizes[heights[r] - 1] += nb.uint32(1)


@kernel
def number_rules(kept: Bools, heights: UInt32, following: UInt32, numbers: UInt32, order: UInt32, first: int) -> None:
    """Number the kept rules level by level, in ``numbers``; ``order`` has each new rule's old number.

    ``following`` has each level's next number, and is advanced; ``first`` is the first rule's number in all.
    """
    for r in range(len(kept)):
        if kept[r]:
            level = heights[r] - 1
            numbers[r] = following[level]
            order[following[level]] = nb.uint32(first + r)
            following[level] += nb.uint32(1)


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
            out[at] = vocabulary_size + numbers[rule]
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
