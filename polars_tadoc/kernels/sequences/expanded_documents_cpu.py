"""Expands documents whose rules save too few windows.

Indices are unsigned in kernels: indices that may be negative cost a comparison and a select at each use.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.sequences.bodies_cpu import Bodies
from polars_tadoc.kernels.sequences.rule_ends_cpu import Ends, head_sizes, head_spans
from polars_tadoc.kernels.sequences.windows_cpu import AHEAD, count_windows
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.runtime.addresses import prefetch
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.jit import kernel
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks

MOSTLY = 0.75
"""From this many own windows per word on, documents are expanded: then rules save less than reading them costs."""

_0, _1 = (np.uint64(number) for number in (0, 1))
_AHEAD = np.uint64(AHEAD)


@kernel
def _measure_documents(
    terminals: int, lengths: UInt64, offsets: Int64, roots: UInt32, first: int, stop: int, sizes: Int64
) -> None:
    """Count the words of documents."""
    rules_from = nb.uint64(terminals)
    for document in range(nb.uint64(first), nb.uint64(stop)):
        total = _0
        for i in range(nb.uint64(offsets[document]), nb.uint64(offsets[document + _1])):
            symbol = nb.uint64(roots[i])
            total += nb.uint64(lengths[symbol - rules_from]) if symbol >= rules_from else _1
        sizes[document] = total


@kernel
def _expand(
    terminals: int,
    rank: UInt32,
    begins: Int64,
    words: UInt32,
    offsets: Int64,
    roots: UInt32,
    places: Int64,
    first: int,
    stop: int,
    out: UInt32,
) -> None:
    """Write the words of documents; those of rule r are ``words[begins[r] : begins[r + 1]]``."""
    rules_from, last = nb.uint64(terminals), nb.uint64(len(roots)) - _1
    for document in range(nb.uint64(first), nb.uint64(stop)):
        at = nb.uint64(places[document])
        for i in range(nb.uint64(offsets[document]), nb.uint64(offsets[document + _1])):
            soon = nb.uint64(roots[min(i + _AHEAD, last)])
            if soon >= rules_from:
                prefetch(words, begins[soon - rules_from])
            symbol = nb.uint64(roots[i])
            if symbol < rules_from:
                out[at] = rank[symbol] if len(rank) > 0 else symbol
                at += _1
            else:
                rule = symbol - rules_from
                for k in range(nb.uint64(begins[rule]), nb.uint64(begins[rule + _1])):
                    out[at] = words[k]
                    at += _1


def expand_documents(bodies: Bodies, rank: UInt32 | None, n: int) -> Bodies | None:
    """Expand documents to ranks of words if rules save few windows; None if they save more."""
    rules, offsets, roots = bodies.rules, bodies.root_offsets, bodies.roots
    least = MOSTLY * bodies.words
    if (len(roots) + len(rules.symbols)) * (n - 1) < least or rules.lengths.sum(dtype=np.float64) > bodies.words:
        return None
    if _own_windows(bodies, n) < least:
        return None
    ends = Ends.of(rules, rank, int(rules.lengths.max(initial=1)))
    sizes = np.empty(len(offsets) - 1, np.int64)
    map_parallel(
        lambda chunk: _measure_documents(rules.terminals, rules.lengths, offsets, roots, *chunk, sizes),
        weighted_chunks(offsets),
    )
    places = running_sum(sizes)
    words = np.empty(places[-1], np.uint32)
    read = (rules.terminals, ends.rank, ends.starts, ends.words, offsets, roots, places)
    map_parallel(lambda chunk: _expand(*read, *chunk, words), weighted_chunks(places))
    none = np.zeros(0, np.uint64)
    plain = Rules(rules.terminals, np.zeros(1, np.int64), words[:0], np.zeros(1, np.int64), none)
    return Bodies(plain, places, words, none, bodies.words)


def _own_windows(bodies: Bodies, n: int) -> int:
    """Count the own windows of documents and of the rules they use."""
    rules, spans = bodies.rules, head_spans(head_sizes(bodies.rules, n - 1))

    def count_in(offsets: Int64, symbols: UInt32) -> Int64:
        counts = np.empty(len(offsets) - 1, np.int64)
        read = (rules.terminals, symbols, spans, n - 1, offsets[:-1], offsets[:-1], offsets[1:])
        map_parallel(lambda chunk: count_windows(*read, *chunk, counts), weighted_chunks(offsets))
        return counts

    of_rules = count_in(rules.rule_offsets, rules.symbols)[bodies.weights > 0]
    return int(of_rules.sum() + count_in(bodies.root_offsets, bodies.roots).sum())
