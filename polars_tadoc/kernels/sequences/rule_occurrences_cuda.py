"""Occurrences of rules, in total and by document."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.documents.documents_cuda import count_by_terminal
from polars_tadoc.kernels.primitives.primitives_cuda import exclusive_scan
from polars_tadoc.kernels.sequences.bodies_cuda import Text
from polars_tadoc.kernels.sequences.windows_cuda import Kind
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.kernels.traverse.tables_cuda import device_levels, terminal_counts
from polars_tadoc.runtime.device import even_blocks, launch, launch_each, launch_resident

THREADS = 256


def weigh_rules(rules: Rules, roots: Any) -> Any:
    """Return the occurrences of each rule, cupy uint64; words are not counted."""
    import cupy

    if not rules.rule_count:
        return cupy.zeros(0, np.uint64)
    narrow = rules.rule_count // 2 + 1
    zeros = cupy.zeros(narrow + rules.rule_count + 1, np.uint64)
    counts, weights, arrived = zeros[:narrow], zeros[narrow:-1], zeros[-1:]
    launch(
        *("rule_occurrences", "count_roots", min(2 * even_blocks(len(roots)), -(-len(roots) // 512)), 512, roots),
        *(len(roots), rules.terminals, counts),
    )
    launch_resident(
        *("rule_occurrences", "weigh_rules", -(-max(len(rules.symbols), rules.rule_count) // THREADS), THREADS),
        *(device_levels(rules), len(rules.level_offsets) - 1, rules.rule_offsets, rules.symbols, rules.terminals),
        *(counts, weights, arrived),
        cooperative=True,
    )
    return weights


def rule_weights(kind: Kind, rules: Rules, bodies: Text, documents: Text, strategy: str) -> Any:
    """Return the occurrences of each rule that contains windows, cupy uint64 by rule.

    Top-down, weights are propagated from the documents to the rules (G-TADOC, ICDE 2021, Algorithm 1). Bottom-up,
    tables of the rules in each rule's expansion are made from the lowest level up (Algorithm 2), and summed.
    """
    if strategy == "top_down":
        return weigh_rules(rules, documents.symbols)
    marked, _, roots = mark_rules(kind, rules, bodies, documents)
    return terminal_counts(marked, roots, strategy)


def rule_documents(kind: Kind, rules: Rules, bodies: Text, documents: Text, strategy: str) -> tuple[Any, Any, Any]:
    """Return offsets of each rule's documents, for rules that contain windows, the documents, and the occurrences."""
    return count_by_terminal(*mark_rules(kind, rules, bodies, documents), strategy, counted=True)


def mark_rules(kind: Kind, rules: Rules, bodies: Text, documents: Text) -> tuple[Rules, Any, Any]:
    """Return rules and documents with one terminal per rule that contains windows: its occurrences are the rule's."""
    import cupy

    marked = cupy.zeros(rules.rule_count, np.uint8)
    least = kind.least
    launch_each(
        *("rule_occurrences", "find_owners", len(bodies.symbols), bodies.struct, least, bodies.offsets),
        *(rules.rule_count, marked),
    )
    markers = exclusive_scan(marked)
    texts = (bodies, documents)
    places = [_children_before(kind, text) for text in texts]
    ends = cupy.concatenate([places[0][-1:], places[1][-1:], markers[-1:]])
    body_children, root_children, marker_count = ends.get().tolist()  # synchronize!
    offsets = markers + body_children
    root_offsets = cupy.full(len(documents.offsets), root_children, np.int64)
    symbols = cupy.empty(body_children + marker_count, np.uint32)
    roots = cupy.empty(root_children, np.uint32)
    for text, before, shift, owner_offsets, target in (
        (bodies, places[0], markers, offsets, symbols),
        (documents, places[1], None, root_offsets, roots),
    ):
        launch_each(
            *("rule_occurrences", "keep_children", len(text.symbols), text.struct, least, text.offsets),
            *(len(text.offsets) - 1, rules.rule_count, before, shift, owner_offsets, target),
        )
    count = rules.rule_count
    launch_each("rule_occurrences", "write_markers", rules.rule_count, count, marked, offsets, symbols)
    # each of them has an own window: there are at most as many as windows
    lengths = kind.lengths(rules.lengths)
    return Rules(rules.rule_count, offsets, symbols, rules.level_offsets, lengths), root_offsets, roots


def _children_before(kind: Kind, text: Text) -> Any:
    """Return the number of children that contain windows before each block of positions, cupy int64."""
    import cupy

    sizes = cupy.empty(-(-len(text.symbols) // THREADS), np.uint32)
    launch_each("rule_occurrences", "count_children", len(text.symbols), text.struct, kind.least, sizes)
    return exclusive_scan(sizes)
