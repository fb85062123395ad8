"""Statistics for the cost model of traversals: one pass over the rules, and a sample of documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numba as nb
import numpy as np

from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.kernels.traverse.tables_cpu import SHORT
from polars_tadoc.runtime.array_types import Float64, Int64, UInt32, UInt64
from polars_tadoc.runtime.jit import kernel

DOCUMENTS, ROOTS = 1024, 64
"""Maximum documents in the sample, and top-level symbols of each: 2^16 symbols in total."""

MOST = 1 << 40
"""Cap of the number of nodes of a rule."""


_measured: WeakKeyDictionary[Rules, tuple[int, Int64, Int64]] = WeakKeyDictionary()
"""Cache of the sum of bounds, bounds and nodes of rules; they are independent of rows."""


@dataclass(frozen=True)
class Statistics:
    """Input of the cost model for both strategies."""

    documents: int
    roots: int
    """``documents``, ``roots``: number of documents and of their top-level symbols."""
    terminals: int
    rules: int
    symbols: int
    """``terminals``, ``rules``, ``symbols``: number of terminals, of rules and of symbols in the rules' bodies."""
    tables: int
    """Sum of upper bounds of the rules' bottom-up tables."""
    pushed: int
    """Rules, except short ones, that top-down weights pass through, summed over documents; estimated."""
    merged: int
    """Terminals in the tables that documents merge bottom-up, summed over documents; estimated."""
    found: int
    """Distinct terminals, summed over documents; estimated upper bound."""


@kernel
def measure_rules(
    terminals: int, rule_offsets: Int64, symbols: UInt32, lengths: UInt64, short: int, bounds: Int64, nodes: Int64
) -> Any:
    """Bound each rule's table and count rules longer than ``short`` in its parse tree; return the sum of the bounds."""
    total = nb.int64(0)
    for r in range(len(rule_offsets) - 1):
        bound = nb.int64(0)
        below = nb.int64(lengths[r] > nb.uint64(short))
        for i in range(rule_offsets[r], rule_offsets[r + 1]):
            s = nb.int64(symbols[i])
            if s < terminals:
                bound += 1
            else:
                bound += bounds[s - terminals]
                below += nodes[s - terminals]
        bound = min(bound, terminals)
        if lengths[r] < nb.uint64(bound):
            bound = nb.int64(lengths[r])
        bounds[r] = bound
        nodes[r] = min(below, MOST)
        total += bound
    return total


@kernel
def sample_documents(
    terminals: int, root_offsets: Int64, roots: UInt32, bounds: Int64, nodes: Int64, sums: Float64
) -> None:
    """Estimate pushed rules, merged terminals and found terminals over all documents from evenly spaced ones."""
    documents = len(root_offsets) - 1
    looked = min(documents, DOCUMENTS)
    for k in range(looked):
        d = documents * k // looked
        size = root_offsets[d + 1] - root_offsets[d]
        taken = min(size, ROOTS)
        bound = 0.0
        below = 0.0
        for j in range(taken):
            s = nb.int64(roots[root_offsets[d] + size * j // taken])
            bound += 1.0 if s < terminals else float(bounds[s - terminals])
            below += 0.0 if s < terminals else float(nodes[s - terminals])
        if taken > 0:
            share = documents / looked
            scale = size / taken
            sums[0] += share * min(scale * below, float(len(nodes)))
            sums[1] += share * scale * bound
            sums[2] += share * min(scale * bound, float(terminals))


def corpus_statistics(rules: Rules, root_offsets: Int64, roots: UInt32) -> Statistics:
    """Measure rules and documents given as for :func:`polars_tadoc.kernels.traverse.results_cpu.count_by_document`."""
    if rules not in _measured:
        bounds, nodes = np.empty(rules.rule_count, np.int64), np.empty(rules.rule_count, np.int64)
        arrays = (rules.rule_offsets, rules.symbols, rules.lengths)
        _measured[rules] = measure_rules(rules.terminals, *arrays, SHORT, bounds, nodes), bounds, nodes
    tables, bounds, nodes = _measured[rules]
    sums = np.zeros(3)
    sample_documents(rules.terminals, root_offsets, roots, bounds, nodes, sums)
    return Statistics(
        len(root_offsets) - 1,
        len(roots),
        rules.terminals,
        rules.rule_count,
        len(rules.symbols),
        tables,
        *(int(total) for total in sums),
    )
