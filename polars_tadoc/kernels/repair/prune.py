"""Converts binary rules to the stored grammar: drops rules that do not pay, sorts the rest by level."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from polars_tadoc.kernels.repair import prune_cpu as kernels
from polars_tadoc.kernels.repair.batch_repair import BinaryRules
from polars_tadoc.runtime.array_types import Bools, Int64, UInt32
from polars_tadoc.runtime.arrow_memory import allocate
from polars_tadoc.runtime.parallel import even_chunks, map_parallel
from polars_tadoc.runtime.process.shared_tasks import share_tasks

MARGIN = 1
"""Cost of a kept rule in addition to its symbols: one offset."""

RULES_PER_TASK = 1 << 12
"""Minimum rules of a round per task."""

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
    kept, dropped = np.ones(len(left), np.bool_), np.zeros(MAX_PASSES, np.int64)
    lengths, uses, heights = (
        np.empty(len(left), np.int64),
        np.empty(len(left), np.int64),
        np.empty(len(left), np.uint32),
    )
    edges, stages = _stages(rules)
    given = (left, right, vocabulary_size, edges, stages, root_uses, margin, uses, kept, lengths, heights, dropped)
    steps = MAX_PASSES * (2 * len(stages) - 1) + len(stages) - 1
    share_tasks(lambda progress: kernels.decide(progress, *given), steps, int(np.diff(stages).max(initial=1)))
    order, numbers, level_offsets = _by_level(kept, heights)
    rule_offsets = np.concatenate([[0], np.cumsum(lengths[order])]).astype(np.uint32)
    symbols = np.empty(int(rule_offsets[-1]), np.uint32)
    stack_size = int(lengths.max(initial=1)) + 2

    def write_bodies(own: tuple[int, int]) -> None:
        new = (order[slice(*own)], rule_offsets[own[0] : own[1] + 1])
        kernels.write_bodies(left, right, vocabulary_size, kept, numbers, *new, stack_size, symbols)

    map_parallel(write_bodies, even_chunks(len(order), RULES_PER_TASK, 4))
    stretches = even_chunks(len(sequence))
    sizes = map_parallel(
        lambda s: kernels.measure_rows(sequence[s[0] : s[1]], vocabulary_size, kept, lengths), stretches
    )
    before = np.concatenate([np.zeros((1, 2), np.int64), np.cumsum(sizes, axis=0)])
    # in Arrow's memory, as a column shares it
    (_, root_offsets), (_, roots) = allocate(rows + 1, np.int64), allocate(int(before[-1, 0]), np.uint32)
    root_offsets[0] = 0

    def write(k: int) -> None:
        first, stop = stretches[k]
        dropped = (left, right, vocabulary_size, kept, numbers, stack_size)
        kernels.write_rows(sequence[first:stop], *dropped, *before[k], roots, root_offsets)

    map_parallel(write, range(len(stretches)))
    return LevelledRules(rule_offsets, symbols, level_offsets, root_offsets, roots)


def by_first_use(rules: LevelledRules, vocabulary_size: int) -> LevelledRules:
    """Number the rules of each level in the order in which the rows, spelled out, use them first.

    One thread does it, for both engines: ``effort="small"`` is not for speed.
    """
    from polars_tadoc.kernels.host.grammars import coded_rules, coded_symbols  # other efforts need not load it

    count = len(rules.rule_offsets) - 1
    numbers, uses = np.empty((2, vocabulary_size + count), np.uint32)
    shapes = np.zeros(vocabulary_size, np.uint8)  # words are not numbered
    rows = (rules.rule_offsets, rules.symbols, rules.root_offsets, rules.roots)
    coded_symbols.order_of_first_use(vocabulary_size, *rows, shapes, numbers, uses)
    used = np.empty(count, np.uint32)  # rule of each number: each rule is used
    used[numbers[vocabulary_size:] - np.uint32(vocabulary_size)] = np.arange(count, dtype=np.uint32)
    levels = np.repeat(np.arange(len(rules.level_offsets) - 1), np.diff(rules.level_offsets))
    order = used[np.argsort(levels[used].astype(np.min_scalar_type(len(rules.level_offsets))), kind="stable")]
    named = np.arange(vocabulary_size + count, dtype=np.uint32)
    named[vocabulary_size + order.astype(np.int64)] = np.arange(vocabulary_size, len(named), dtype=np.uint32)
    rule_offsets, symbols = np.empty(count + 1, np.uint32), np.empty(len(rules.symbols), np.uint32)
    coded_rules.renumber(order, named, rules.rule_offsets, rules.symbols, rule_offsets, symbols)
    return LevelledRules(rule_offsets, symbols, rules.level_offsets, rules.root_offsets, named[rules.roots])


def _stages(rules: BinaryRules) -> tuple[Int64, Int64]:
    """Return the edges of ranges of rules, and the first range of each stage.

    A stage has ranges of one round, whose rules do not use each other, or one range. Without rounds there is one range.
    """
    edges, stages = [0], [0]
    offsets = [] if rules.round_offsets is None else rules.round_offsets.tolist()
    for first, stop in pairwise(offsets):
        own = even_chunks(stop - first, RULES_PER_TASK, 2)
        if len(own) > 1 and first > edges[-1]:
            edges.append(first)
            stages.append(len(edges) - 1)
        if len(own) > 1:
            edges += [first + end for _, end in own]
            stages.append(len(edges) - 1)
    if len(rules.left) > edges[-1]:
        edges.append(len(rules.left))
        stages.append(len(edges) - 1)
    return np.array(edges), np.array(stages)


def _by_level(kept: Bools, heights: UInt32) -> tuple[UInt32, UInt32, UInt32]:
    """Number the kept rules level by level, older ones first.

    Returns each new rule's old number, each kept rule's new number, and the levels' offsets.
    """
    chunks = even_chunks(len(kept))
    levels = max(map_parallel(lambda own: int(heights[slice(*own)].max(initial=0)), chunks))
    sizes = np.zeros((len(chunks), levels), np.uint32)
    map_parallel(
        lambda k: kernels.count_levels(kept[slice(*chunks[k])], heights[slice(*chunks[k])], sizes[k]),
        range(len(chunks)),
    )
    level_offsets = np.concatenate([[0], np.cumsum(sizes.sum(axis=0))]).astype(np.uint32)
    following = level_offsets[:-1] + np.cumsum(sizes, axis=0, dtype=np.uint32) - sizes
    numbers, order = np.zeros(len(kept), np.uint32), np.empty(int(level_offsets[-1]), np.uint32)

    def number(k: int) -> None:
        own = slice(*chunks[k])
        kernels.number_rules(kept[own], heights[own], following[k], numbers[own], order, chunks[k][0])

    map_parallel(number, range(len(chunks)))
    return order, numbers, level_offsets


def _count_uses(sequence: UInt32, vocabulary_size: int, rules: int) -> Int64:
    """Count the uses of each rule in the rows."""
    uses, chunks = np.zeros(rules, np.int64), even_chunks(len(sequence), 1 << 16)

    def count(stretch: tuple[int, int]) -> None:
        kernels.count_uses(sequence[stretch[0] : stretch[1]], vocabulary_size, len(chunks) > 1, uses)

    map_parallel(count, chunks)
    return uses
