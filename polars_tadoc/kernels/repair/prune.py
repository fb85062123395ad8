"""Converts binary rules to the stored grammar: drops rules that do not pay, sorts the rest by level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polars_tadoc.kernels.repair import prune_cpu as kernels
from polars_tadoc.kernels.repair.batch_repair import BinaryRules
from polars_tadoc.runtime.array_types import Int64, UInt32
from polars_tadoc.runtime.parallel import even_chunks, map_parallel

MARGIN = 1
"""Cost of a kept rule in addition to its symbols: one offset."""

MAX_PASSES = 4
"""Number of passes, because inlining changes lengths and uses of other rules; further passes dropped under 0.1 %
more."""


@dataclass(frozen=True)
class LevelledRules:
    """Rules in level order and the rows that use them, as a ``Grammar`` stores them."""

    rule_offsets: UInt32
    symbols: UInt32
    level_offsets: UInt32
    root_offsets: Int64
    roots: UInt32


def prune(rules: BinaryRules, vocabulary_size: int, rows: int, margin: int = MARGIN) -> LevelledRules:
    """Keep a rule of length l with u uses only if ``l * u > l + u + margin``; inline the others."""
    left, right, sequence = rules.left, rules.right, rules.sequence
    root_uses = _count_uses(sequence, vocabulary_size, len(left))
    kept = np.ones(len(left), np.bool_)
    lengths = np.zeros(len(left), np.int64)
    for _ in range(MAX_PASSES):
        if not kernels.decide(left, right, vocabulary_size, root_uses, margin, kept, lengths):
            break
    kernels.measure(left, right, vocabulary_size, kept, lengths)
    numbers = np.zeros(len(left), np.uint32)
    level_offsets = kernels.order_by_level(left, right, vocabulary_size, kept, numbers)
    old = np.flatnonzero(kept).astype(np.uint32)
    order = np.empty(len(old), np.uint32)
    order[numbers[old] - vocabulary_size] = old
    rule_offsets = np.concatenate([[0], np.cumsum(lengths[order])]).astype(np.uint32)
    symbols = np.empty(int(rule_offsets[-1]), np.uint32)
    stack_size = int(lengths.max(initial=1)) + 2

    def write_bodies(own: tuple[int, int]) -> None:
        new = (order[slice(*own)], rule_offsets[own[0] : own[1] + 1])
        kernels.write_bodies(left, right, vocabulary_size, kept, numbers, *new, stack_size, symbols)

    map_parallel(write_bodies, even_chunks(len(order)))
    root_offsets = np.zeros(rows + 1, np.int64)
    stretches = even_chunks(len(sequence))
    sizes = map_parallel(
        lambda s: kernels.measure_rows(sequence[s[0] : s[1]], vocabulary_size, kept, lengths), stretches
    )
    before = np.concatenate([np.zeros((1, 2), np.int64), np.cumsum(sizes, axis=0)])
    roots = np.empty(int(before[-1, 0]), np.uint32)

    def write(k: int) -> None:
        first, stop = stretches[k]
        dropped = (left, right, vocabulary_size, kept, numbers, stack_size)
        kernels.write_rows(sequence[first:stop], *dropped, *before[k], roots, root_offsets)

    map_parallel(write, range(len(stretches)))
    return LevelledRules(rule_offsets, symbols, level_offsets, root_offsets, roots)


def _count_uses(sequence: UInt32, vocabulary_size: int, rules: int) -> Int64:
    """Count the uses of each rule in the rows."""

    def count(stretch: tuple[int, int]) -> Int64:
        uses = np.zeros(rules, np.int64)
        kernels.count_uses(sequence[stretch[0] : stretch[1]], vocabulary_size, uses)
        return uses

    parts = map_parallel(count, even_chunks(len(sequence), max(1 << 18, 2 * rules)))
    for part in parts[1:]:
        parts[0] += part
    return parts[0]
