"""How often rules occur, and in which documents."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.cuda.bodies import Text
from polars_tadoc.kernels.cuda.device import even_blocks, get_kernel, launch_each
from polars_tadoc.kernels.cuda.primitives import exclusive_scan
from polars_tadoc.kernels.cuda.tables import device_levels, resident
from polars_tadoc.kernels.cuda.windows import Kind
from polars_tadoc.kernels.rules import Rules

THREADS = 256


def weigh_rules(rules: Rules, roots: Any) -> Any:
    """Return how often each rule occurs, cupy uint64; words are not counted."""
    import cupy

    if not rules.rule_count:
        return cupy.zeros(0, np.uint64)
    narrow = rules.rule_count // 2 + 1
    zeros = cupy.zeros(narrow + rules.rule_count + 1, np.uint64)
    counts, weights, arrived = zeros[:narrow], zeros[narrow:-1], zeros[-1:]
    get_kernel("rule_occurrences", "count_roots")(
        (min(2 * even_blocks(len(roots)), -(-len(roots) // 512)),),
        (512,),
        (roots, np.uint64(len(roots)), np.uint32(rules.terminals), counts),
    )
    kernel, blocks = resident("rule_occurrences", "weigh_rules", (), THREADS, cooperative=True)
    kernel(
        (max(1, min(blocks, -(-max(len(rules.symbols), rules.rule_count) // THREADS))),),
        (THREADS,),
        (
            *(device_levels(rules), np.uint32(len(rules.level_offsets) - 1), rules.rule_offsets, rules.symbols),
            *(np.uint32(rules.terminals), counts, weights, arrived),
        ),
    )
    return weights


def mark_rules(kind: Kind, rules: Rules, texts: tuple[Text, Text], marked: Any) -> tuple[Rules, Any, Any]:
    """Return rules over one terminal for each rule that has windows: who holds it holds the rule."""
    import cupy

    found = []
    for text in texts:
        found.append(cupy.empty(len(text.symbols), np.uint8))
        launch_each(
            *(
                "rule_occurrences",
                "find_children",
                len(text.symbols),
                text.symbols,
                np.uint64(len(text.symbols)),
                text.ends,
            ),
            *(np.uint32(text.stride), np.uint32(text.terminals), np.uint32(kind.least), found[-1]),
        )
    places = [exclusive_scan(children) for children in found]
    markers = exclusive_scan(marked)
    offsets = places[0][rules.rule_offsets] + markers
    root_offsets = places[1][texts[1].offsets]
    ends = cupy.stack([offsets[-1], root_offsets[-1]]).get()  # synchronize!
    symbols, roots = (cupy.empty(int(end), np.uint32) for end in ends)
    launch_each(
        "rule_occurrences", "mark_rules", rules.rule_count, np.uint32(rules.rule_count), marked, offsets, symbols
    )
    for text, children, before, shift, target in zip(
        texts, found, places, (markers, None), (symbols, roots), strict=True
    ):
        launch_each(
            *("rule_occurrences", "keep_children", len(text.symbols), text.symbols, np.uint64(len(text.symbols))),
            *(text.offsets, np.uint32(len(text.offsets) - 1), np.uint32(text.terminals)),
            *(np.uint32(rules.rule_count), children, before, shift, target),
        )
    # each of them has a window of its own: there are no more of them than windows
    lengths = kind.lengths(rules.lengths)
    occurring = Rules(rules.rule_count, offsets, symbols, rules.level_offsets, lengths)
    return occurring, root_offsets, roots
