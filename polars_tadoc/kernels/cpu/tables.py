"""Bottom-up traversal: the table of terminals and counts of each rule, in one arena that is bounded before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.cpu.parallel import even_chunks, map_parallel
from polars_tadoc.kernels.rules import Rules

UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Tables:
    """Terminals and counts of some rules, those that a rule with a table names among them.

    Parameters
    ----------
    starts
        int64, rules + 1: where each rule's table starts; a rule without one has an empty stretch.
    terminals
        uint32: the terminals, each once a rule, in the order of their first occurrence.
    counts
        Unsigned integers: how often each occurs in the rule.

    """

    starts: Int64
    terminals: UInt32
    counts: Any

    @classmethod
    def none(cls, rules: int) -> Tables:
        """Return no table for any of so many rules."""
        return cls(np.zeros(rules + 1, np.int64), np.empty(0, np.uint32), np.empty(0, np.uint32))


@nb.njit(nogil=True, cache=True)
def mark_symbols(symbols: UInt32, marked: Bool) -> None:
    """Mark each of the symbols."""
    for i in range(len(symbols)):
        marked[symbols[i]] = True


@nb.njit(nogil=True, cache=True)
def mark_reached(terminals: int, rule_offsets: Int64, symbols: UInt32, reached: Bool) -> None:
    """Mark the symbols that a marked rule names."""
    for r in range(len(rule_offsets) - 2, -1, -1):
        if reached[terminals + r]:
            for i in range(rule_offsets[r], rule_offsets[r + 1]):
                reached[symbols[i]] = True


@nb.njit(nogil=True, cache=True)
def bound_tables(
    terminals: int, rule_offsets: Int64, symbols: UInt32, lengths: UInt64, wanted: Bool, bounds: Int64
) -> Any:
    """Bound each wanted rule's table by its children's bounds, its length and the terminals; return the sum."""
    total = nb.int64(0)
    for r in range(len(rule_offsets) - 1):
        bounds[r] = 0
        if wanted[r]:
            bound = nb.int64(0)
            for i in range(rule_offsets[r], rule_offsets[r + 1]):
                bound += nb.int64(1) if symbols[i] < terminals else bounds[nb.int64(symbols[i]) - terminals]
            bound = min(bound, terminals)
            if lengths[r] < nb.uint64(bound):
                bound = nb.int64(lengths[r])
            bounds[r] = bound
            total += bound
    return total


@nb.njit(nogil=True, cache=True)
def fill_tables(
    terminals: int,
    rule_offsets: Int64,
    symbols: UInt32,
    wanted: Bool,
    weights: Any,
    touched: UInt32,
    starts: Int64,
    table_terminals: UInt32,
    table_counts: Any,
) -> None:
    """Merge the tables of each wanted rule's children, lowest rule first.

    ``weights`` (one number a terminal) is zero before and after; ``touched`` has a place more than there are terminals.
    """
    p = nb.int64(0)
    for r in range(len(rule_offsets) - 1):
        starts[r] = p
        if wanted[r]:
            n = nb.int64(0)
            for i in range(rule_offsets[r], rule_offsets[r + 1]):
                s = nb.int64(symbols[i])
                if s < terminals:
                    touched[n] = nb.uint32(s)  # kept where this is the first time: no branch to mispredict
                    n += weights[s] == 0
                    weights[s] += 1
                else:
                    for j in range(starts[s - terminals], starts[s - terminals + 1]):
                        t = table_terminals[j]
                        touched[n] = t
                        n += weights[t] == 0
                        weights[t] += table_counts[j]
            for k in range(n):
                t = touched[k]
                table_terminals[p] = t
                table_counts[p] = weights[t]
                weights[t] = 0
                p += 1
    starts[len(rule_offsets) - 1] = p


@nb.njit(nogil=True, cache=True)
def add_tables(
    terminals: int, starts: Int64, table_terminals: UInt32, table_counts: Any, weights: UInt64, counts: UInt64
) -> None:
    """Add each symbol's table, times the symbol's weight, to ``counts``."""
    for t in range(terminals):
        counts[t] += weights[t]
    for r in range(len(starts) - 1):
        weight = weights[terminals + r]
        if weight != 0:
            for j in range(starts[r], starts[r + 1]):
                counts[table_terminals[j]] += weight * nb.uint64(table_counts[j])


def count_type(most: int) -> Any:
    """Return the narrowest type of weights for counts up to ``most``: half the memory is half the cache misses."""
    return np.uint32 if most < 1 << 32 else np.uint64


def build_tables(rules: Rules, roots: UInt32) -> Tables:
    """Build the tables of the rules that the roots reach (G-TADOC, Zhang et al., ICDE 2021, algorithm 2).

    Parameters
    ----------
    rules
        The rules.
    roots
        uint32: top-level symbols.

    """
    reached = np.zeros(rules.terminals + rules.rule_count, np.bool_)
    map_parallel(  # threads write nothing but True
        lambda chunk: mark_symbols(roots[chunk[0] : chunk[1]], reached), even_chunks(len(roots), 1 << 18)
    )
    mark_reached(rules.terminals, rules.rule_offsets, rules.symbols, reached)
    wanted = reached[rules.terminals :]
    bounds = np.empty(rules.rule_count, np.int64)
    total = bound_tables(rules.terminals, rules.rule_offsets, rules.symbols, rules.lengths, wanted, bounds)
    dtype = count_type(int(rules.lengths.max(initial=1)))
    tables = Tables(np.empty(rules.rule_count + 1, np.int64), np.empty(total, np.uint32), np.empty(total, dtype))
    fill_tables(
        rules.terminals,
        rules.rule_offsets,
        rules.symbols,
        wanted,
        np.zeros(rules.terminals, dtype),
        np.empty(rules.terminals + 1, np.uint32),
        tables.starts,
        tables.terminals,
        tables.counts,
    )
    return tables
