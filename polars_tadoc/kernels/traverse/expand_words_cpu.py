"""Words of documents in host memory."""

from __future__ import annotations

import numpy as np

from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.runtime.array_types import Int64, UInt32
from polars_tadoc.runtime.jit import kernel


def expand_words(rules: Rules, root_offsets: Int64, roots: UInt32, rank: UInt32 | None = None) -> tuple[Int64, UInt32]:
    """Expand documents: arguments and result as in :meth:`TraverseKernels.expand_words`, arrays of NumPy."""
    offsets = np.concatenate([rules.rule_offsets, rules.rule_offsets[-1] + root_offsets[1:]])  # rows are rules, too
    symbols = np.concatenate([rules.symbols, roots])
    lengths = np.ones(rules.terminals + rules.rule_count, np.int64)
    lengths[rules.terminals :] = rules.lengths
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths[symbols])])
    starts = before[offsets]
    words = np.empty(int(starts[-1]), np.uint32)
    _expand(rules.terminals, offsets, symbols, starts, words)
    documents = starts[rules.rule_count :]
    own = words[documents[0] :]
    return documents - documents[0], own.copy() if rank is None else rank[own]


@kernel
def _expand(terminals: int, offsets: Int64, symbols: UInt32, starts: Int64, words: UInt32) -> None:
    """Write each rule's words from its start on."""
    for r in range(len(offsets) - 1):
        at = starts[r]
        for i in range(offsets[r], offsets[r + 1]):
            if symbols[i] < terminals:
                words[at] = symbols[i]
                at += 1
            else:
                rule = symbols[i] - terminals
                for j in range(starts[rule], starts[rule + 1]):
                    words[at] = words[j]
                    at += 1
