"""Expands documents of a grammar to the events of their words."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.twigs.twig_pruning_cpu import PrunedGrammar
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32
from polars_tadoc.runtime.jit import kernel

_MANY = np.int64(1 << 61)
_1 = np.uint64(1)


def count_events(grammar: PrunedGrammar, needed: UInt8, root_offsets: Int64, roots: UInt32) -> Int64:
    """Count the events of documents; ``needed`` marks the symbols that they reach."""
    terminals, documents = grammar.terminals, len(root_offsets) - 1
    sizes = np.zeros(len(needed), np.int64)
    sizes[:terminals] = np.diff(grammar.words.offsets)
    _sum_sizes(grammar.rule_offsets, grammar.symbols, needed[terminals:], sizes, sizes[terminals:])
    counts = np.zeros(documents, np.int64)
    _sum_sizes(root_offsets, roots, np.ones(documents, np.uint8), sizes, counts)
    return counts


@kernel
def _sum_sizes(offsets: Any, symbols: Any, needed: Any, sizes: Any, sums: Any) -> None:
    for body in range(len(sums)):
        if needed[body]:
            total = np.int64(0)
            for i in range(np.uint64(offsets[body]), np.uint64(offsets[body + 1])):
                total = min(_MANY, total + sizes[symbols[i]])
            sums[body] = total


def expand_events(
    grammar: PrunedGrammar, root_offsets: Int64, roots: UInt32, offsets: Int64, symbols: npt.NDArray[Any]
) -> None:
    """Write the events of documents at ``offsets``; documents without room for any are skipped."""
    _expand(grammar, root_offsets, roots, offsets, np.empty((grammar.nesting, 2), np.int64), symbols)


@kernel
def _expand(grammar: Any, root_offsets: Any, roots: Any, offsets: Any, open_bodies: Any, events: Any) -> None:
    """Expand; ``open_bodies`` is a stack of the next position and the end of each open body."""
    words, rules_from = grammar.words, np.uint64(grammar.terminals)
    for document in range(len(offsets) - 1):
        at = np.uint64(offsets[document])
        if offsets[document + 1] == offsets[document]:
            continue
        for i in range(np.uint64(root_offsets[document]), np.uint64(root_offsets[document + 1])):
            symbol = np.uint64(roots[i])
            level = 0
            while True:
                if symbol < rules_from:
                    for k in range(np.uint64(words.offsets[symbol]), np.uint64(words.offsets[symbol + _1])):
                        events[at] = words.symbols[k]
                        at += _1
                else:
                    rule = symbol - rules_from
                    open_bodies[level, 0], open_bodies[level, 1] = (
                        grammar.rule_offsets[rule],
                        grammar.rule_offsets[rule + _1],
                    )
                    level += 1
                while level > 0 and open_bodies[level - 1, 0] == open_bodies[level - 1, 1]:
                    level -= 1
                if level == 0:
                    break
                symbol = np.uint64(grammar.symbols[open_bodies[level - 1, 0]])
                open_bodies[level - 1, 0] += 1
