"""Tables of rules in one arena of bounded size: terminals of a rule, and child rules whose tables are not merged in.

Bottom-up, a rule's table has all terminals of its expansion. Top-down, it has the terminals of its body, with short
rules expanded, and refers to the other rules as children: reading a rule of few terminals takes less time than waiting
for its turn. Traversals read only these tables.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.runtime.array_types import Bools, Int64, UInt8, UInt32, UInt64, array_dataclass
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import kernel, polled_kernel

SHORT = 32
"""Top-down, rules of at most this many terminals are expanded in the bodies that use them: reading the terminals takes
less time than waiting for the rule's turn."""

_0, _1 = np.uint64(0), np.uint64(1)

WIDE = 16
"""Numbers copied at a time; arrays read in this way have as many spare ones at the end."""


LANES = 64
"""Numbers scanned at a time."""


@array_dataclass
class Tables:
    """Terminals, counts and children of rules."""

    starts: Any
    """uint32 (uint64 if necessary), rules + 1: start of each rule's terminals."""
    terminals: UInt32
    """uint32: the terminals, distinct within a rule."""
    counts: Any
    """Unsigned integers: count of each."""
    child_starts: Int64
    """int64, rules + 1: start of each rule's children."""
    children: UInt32
    """uint32: symbols of child rules, repeated as in the body."""
    waits: UInt8
    """uint8 by rule: 1 if other tables may have the rule as a child; its weight is known after theirs."""
    parents: Int64
    """int64: the rules with children, highest first."""

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        arrays = (self.starts, self.terminals, self.counts, self.child_starts, self.children, self.waits, self.parents)
        return sum(array.nbytes for array in arrays)


def _lanes_at(context: Any, builder: Any, signature: Any, arguments: Any, k: int, lanes: Any) -> Any:
    """Return the address of lanes in memory: argument k is the array, the next one the index."""
    data = context.make_array(signature.args[k])(context, builder, arguments[k]).data
    return builder.bitcast(builder.gep(data, [arguments[k + 1]]), lanes.as_pointer())


@intrinsic
def copy_wide(typing_context: Any, target: Any, place: Any, source: Any, start: Any) -> Any:
    """Copy ``WIDE`` 32-bit numbers from ``source[start]`` to ``target[place]``."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = ir.VectorType(ir.IntType(32), WIDE)
        to, at = (_lanes_at(context, builder, signature, arguments, k, block) for k in (0, 2))
        value = builder.load(at)
        value.align = 4
        builder.store(value, to).align = 4
        return context.get_dummy_value()

    return types.void(target, types.uint64, source, types.uint64), generate


@intrinsic
def copy_scaled(typing_context: Any, target: Any, place: Any, source: Any, start: Any, factor: Any) -> Any:
    """Copy ``WIDE`` unsigned integers times a factor; the target's type may be wider than the source's."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide, narrow = (ir.VectorType(ir.IntType(signature.args[k].dtype.bitwidth), WIDE) for k in (0, 2))
        given = (context, builder, signature, arguments)
        to, at = _lanes_at(*given, 0, wide), _lanes_at(*given, 2, narrow)
        value = builder.load(at)
        value.align = narrow.element.width // 8
        if narrow.element.width < wide.element.width:
            value = builder.zext(value, wide)
        one = arguments[4] if wide.element.width == 64 else builder.trunc(arguments[4], wide.element)
        lanes = ir.VectorType(ir.IntType(32), WIDE)
        spread = builder.shuffle_vector(
            builder.insert_element(ir.Constant(wide, ir.Undefined), one, ir.IntType(32)(0)),
            ir.Constant(wide, ir.Undefined),
            ir.Constant(lanes, None),
        )
        builder.store(builder.mul(value, spread), to).align = wide.element.width // 8
        return context.get_dummy_value()

    return types.void(target, types.uint64, source, types.uint64, types.uint64), generate


@intrinsic
def nonzero_bits(typing_context: Any, array: Any, start: Any) -> Any:
    """Return a bit mask: bit i tells whether ``array[start + i]`` is nonzero, for ``LANES`` numbers."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = ir.VectorType(ir.IntType(array.dtype.bitwidth), LANES)
        value = builder.load(_lanes_at(context, builder, signature, arguments, 0, lanes))
        value.align = array.dtype.bitwidth // 8
        return builder.bitcast(builder.icmp_unsigned("!=", value, lanes(None)), ir.IntType(LANES))

    return types.uint64(array, types.uint64), generate


@kernel
def mark_symbols(symbols: UInt32, marked: Bools) -> None:
    """Mark each of the symbols."""
    for i in range(len(symbols)):
        marked[symbols[i]] = True


@kernel
def mark_reached(terminals: int, rule_offsets: Int64, symbols: UInt32, reached: Bools) -> None:
    """Mark the symbols in the bodies of marked rules."""
    for r in range(len(rule_offsets) - 2, -1, -1):
        if reached[terminals + r]:
            for i in range(rule_offsets[r], rule_offsets[r + 1]):
                reached[symbols[i]] = True


@kernel
def bound_tables(
    terminals: int, rule_offsets: Int64, symbols: UInt32, lengths: UInt64, longest: int, reached: Bools, bounds: Int64
) -> Any:
    """Bound each reached rule's table by its children's bounds, its length and the number of terminals.

    Rules with an expansion of more than ``longest`` terminals stay children. Returns the sum of the bounds and the
    number of children.
    """
    total = nb.int64(0)
    children = nb.int64(0)
    for r in range(len(rule_offsets) - 1):
        bounds[r] = 0
        if reached[terminals + r]:
            bound = nb.int64(0)
            for i in range(rule_offsets[r], rule_offsets[r + 1]):
                s = nb.int64(symbols[i])
                if s < terminals:
                    bound += 1
                elif lengths[s - terminals] <= nb.uint64(longest):
                    bound += bounds[s - terminals]
                else:
                    children += 1
            bound = min(bound, terminals)
            if lengths[r] < nb.uint64(bound):
                bound = nb.int64(lengths[r])
            bounds[r] = bound
            total += bound
    return total, children


@polled_kernel
def fill_tables(
    terminals: int,
    rule_offsets: Int64,
    symbols: UInt32,
    lengths: UInt64,
    longest: int,
    reached: Bools,
    weights: Any,
    touched: UInt32,
    starts: Any,
    table_terminals: UInt32,
    table_counts: Any,
    child_starts: Int64,
    children: UInt32,
    waits: UInt8,
) -> None:
    """Merge the tables of each reached rule's children, lowest rule first.

    ``weights`` (one number per terminal) is zero before and after; ``touched`` has one entry more than there are
    terminals.
    """
    began = interrupts()
    p = _0
    q = _0
    rules_from, most = nb.uint64(terminals), nb.uint64(longest)
    for r in range(nb.uint64(len(rule_offsets) - 1)):
        if r & nb.uint64(0xFF) == 0 and interrupts() != began:
            return
        starts[r] = p
        child_starts[r] = q
        waits[r] = lengths[r] > most
        if not reached[rules_from + r]:
            continue
        n = _0
        for i in range(nb.uint64(rule_offsets[r]), nb.uint64(rule_offsets[r + _1])):
            s = nb.uint64(symbols[i])
            if s < rules_from:
                touched[n] = s  # overwritten unless this is its first occurrence: no branch to mispredict
                n += nb.uint64(weights[s] == 0)
                weights[s] += 1
            elif lengths[s - rules_from] <= most:
                for j in range(nb.uint64(starts[s - rules_from]), nb.uint64(starts[s - rules_from + _1])):
                    t = table_terminals[j]
                    touched[n] = t
                    n += nb.uint64(weights[t] == 0)
                    weights[t] += table_counts[j]
            else:
                children[q] = s
                q += _1
        for k in range(n):
            t = touched[k]
            table_terminals[p + k] = t
            table_counts[p + k] = weights[t]
            weights[t] = 0
        p += n
    starts[len(rule_offsets) - 1] = p
    child_starts[len(rule_offsets) - 1] = q


@kernel
def add_tables(
    terminals: int, starts: Any, table_terminals: UInt32, table_counts: Any, weights: UInt64, counts: UInt64
) -> None:
    """Add each symbol's table, times the symbol's weight, to ``counts``."""
    for t in range(nb.uint64(terminals)):
        counts[t] += weights[t]
    for r in range(nb.uint64(len(starts) - 1)):
        weight = weights[nb.uint64(terminals) + r]
        if weight != 0:
            for j in range(nb.uint64(starts[r]), nb.uint64(starts[r + _1])):
                counts[table_terminals[j]] += weight * nb.uint64(table_counts[j])


def count_type(most: int) -> Any:
    """Return the narrowest type of weights for counts up to ``most``: half the memory means half the cache misses."""
    return np.uint32 if most < 1 << 32 else np.uint64


@array_dataclass
class Plan:
    """Plan of tables: reached symbols, expanded rules, and the maximum size."""

    reached: Bools
    longest: int
    total: int
    children: int
    nbytes: int


def plan_tables(rules: Rules, roots: UInt32 | None, strategy: str) -> Plan:
    """Bound the tables of the rules that the roots reach.

    Parameters
    ----------
    rules
        The rules.
    roots
        uint32: top-level symbols; None: all rules.
    strategy
        "bottom_up": tables of whole expansions. "top_down": tables in which only short rules are expanded.

    """
    size = rules.terminals + rules.rule_count
    longest = SHORT if strategy == "top_down" else int(rules.lengths.max(initial=1))
    reached = np.full(size, roots is None)
    if roots is not None:
        mark_symbols(roots, reached)
        mark_reached(rules.terminals, rules.rule_offsets, rules.symbols, reached)
    bounds = np.empty(rules.rule_count, np.int64)
    bodies = (rules.terminals, rules.rule_offsets, rules.symbols, rules.lengths, longest, reached)
    total, children = bound_tables(*bodies, bounds)
    each = 4 + np.dtype(count_type(longest)).itemsize
    return Plan(reached, longest, total, children, total * each + 4 * children + 13 * rules.rule_count)


def build_tables(rules: Rules, plan: Plan) -> Tables:
    """Build the planned tables (G-TADOC, Zhang et al., ICDE 2021, algorithm 2)."""
    bodies = (rules.terminals, rules.rule_offsets, rules.symbols, rules.lengths, plan.longest, plan.reached)
    dtype, room = count_type(plan.longest), plan.total + WIDE
    starts, terminals = np.empty(rules.rule_count + 1, count_type(plan.total)), np.empty(room, np.uint32)
    counts, waits = np.empty(room, dtype), np.empty(rules.rule_count, np.uint8)
    child_starts, children = np.empty(rules.rule_count + 1, np.int64), np.empty(plan.children, np.uint32)
    scratch = np.zeros(rules.terminals, dtype), np.empty(rules.terminals + 1, np.uint32)
    fill_tables(*bodies, *scratch, starts, terminals, counts, child_starts, children, waits)
    if counts[: starts[-1]].max(initial=0) < 1 << 8:  # most tables have small counts: fewer cache lines to read
        counts = counts.astype(np.uint8)
    parents = np.flatnonzero(np.diff(child_starts))[::-1].copy()
    return Tables(starts, terminals, counts, child_starts, children, waits, parents)
