"""Words of documents on the device, for analytics that rules do not make faster."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.primitives.primitives_cuda import exclusive_scan, expand
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.runtime.device import device_errors, launch_each


def expand_words(rules: Rules, root_offsets: Any, roots: Any, rank: Any = None) -> tuple[Any, Any]:
    """Expand documents; arguments and result as in :meth:`TraverseKernels.expand_words`, arrays of CuPy.

    Raises
    ------
    EngineUnavailableError
        The device is out of memory or failed.

    """
    with device_errors(f"expanding {len(roots):,} symbols"):
        import cupy

        if not len(roots) or not rules.terminals:
            return cupy.zeros(len(root_offsets), np.int64), cupy.empty(0, np.uint32)
        lengths = cupy.concatenate([cupy.ones(1, np.uint64), rules.lengths])

        def words_before(symbols: Any) -> Any:
            last = np.uint32(rules.terminals - 1)
            return exclusive_scan(lengths.take(cupy.maximum(symbols, last) - last))

        before, root_words = words_before(rules.symbols), words_before(roots)
        total = int(root_words[-1])  # synchronize!
        words = cupy.empty(total, np.uint32)
        launch_each(
            *("expand_words", "expand_words", total, rules.rule_offsets, rules.symbols, before, rules.terminals),
            *(roots, root_words, expand(root_words, total), total, rank, words),
        )
        return root_words.take(root_offsets), words
