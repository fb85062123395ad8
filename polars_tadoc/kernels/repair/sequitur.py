"""Sequitur: a grammar inferred word by word, in linear time (Nevill-Manning and Witten, 1997).

The method of the TADOC papers. No digram (two adjacent symbols) occurs twice, and every rule is used at least twice, so
rules are as long as the repeats, and grammars may have thousands of levels. Runs in one thread;
:func:`polars_tadoc.kernels.repair.reference.sequitur` defines the rules.
"""

from __future__ import annotations

import numpy as np

from polars_tadoc.errors import LimitExceededError
from polars_tadoc.kernels.repair import sequitur_cpu as kernels
from polars_tadoc.kernels.repair.prune import LevelledRules
from polars_tadoc.runtime.array_types import UInt32


def build(sequence: UInt32, vocabulary_size: int, rows: int) -> LevelledRules:
    """Infer rules over all rows; digrams never cross the end of a row.

    ``sequence`` and ``vocabulary_size`` as for :func:`polars_tadoc.kernels.repair.batch_repair.build`; ``rows`` is the
    number of separators in the sequence.

    Returns
    -------
    LevelledRules
        Bodies of at least two symbols, in level order, and within a level in order of creation.

    Raises
    ------
    LimitExceededError
        2^31 words or more in one grammar, or more words and rules than 32-bit symbols can number.

    Examples
    --------
    >>> import numpy as np
    >>> end = 0xFFFFFFFF
    >>> rules = build(np.array([0, 1, 2, 0, 1, 2, end, 1, 2, end], np.uint32), 3, 2)
    >>> rules.rule_offsets, rules.symbols
    (array([0, 2, 4], dtype=uint32), array([1, 2, 0, 3], dtype=uint32))
    >>> rules.root_offsets, rules.roots
    (array([0, 2, 3]), array([4, 4, 3], dtype=uint32))

    """
    size = len(sequence)
    if max(vocabulary_size + size, 2 * size + 1) > kernels.HELD:
        raise LimitExceededError(
            f"sequitur: {size:,} words and row ends in one grammar are too many; compress with fewer rows_per_grammar"
        )
    nodes = np.empty(kernels.FIELDS * (2 * size + 1), np.uint32)  # untouched pages of unused rules take no memory
    made, left_over = kernels.infer(sequence, vocabulary_size, nodes)
    levels = kernels.levels(nodes, size, made, vocabulary_size)
    kept = np.flatnonzero(levels)
    order = kept[np.argsort(levels[kept], kind="stable")].astype(np.uint32)
    numbers = np.zeros(made, np.uint32)
    numbers[order] = vocabulary_size + np.arange(len(order), dtype=np.uint32)
    rule_offsets = np.zeros(len(order) + 1, np.uint32)
    root_offsets = np.zeros(rows + 1, np.int64)
    out = np.empty(left_over, np.uint32)
    kernels.write_bodies(nodes, size, order, vocabulary_size, numbers, rule_offsets, out)
    symbols, roots = out[: rule_offsets[-1]], out[rule_offsets[-1] :]
    kernels.write_rows(nodes, sequence, vocabulary_size, numbers, root_offsets, roots)
    level_offsets = np.cumsum(np.bincount(levels[kept], minlength=1)).astype(np.uint32)
    return LevelledRules(rule_offsets, symbols, level_offsets, root_offsets, roots)
