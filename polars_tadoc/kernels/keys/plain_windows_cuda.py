"""Windows of documents without rules: each word is read once, and all keys are sorted at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.keys.keys_cuda import Packing, pack, sum_entries, sum_runs
from polars_tadoc.kernels.primitives import primitives_cuda as primitives
from polars_tadoc.kernels.sequences.windows_cuda import Kind
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.runtime.device import device_memory, launch_each

MEMORY_SHARE = 8
"""Of device memory keys take at most so small a share; where they would take more, they are counted in ranges."""

MAX_REACH = 16
"""Words between two of a pair up to which all pairs are written."""

_WITH_DOCUMENT = Packing(2, 32, 1, 2, 32, 32)
"""A key of one column, and a document above a weight of one."""

_WHOLE = Packing(1, 64, 1, 1, 0, 0)
"""A key of one column, without a weight."""


def is_plain(kind: Kind, rules: Rules, words: Any, documents: bool = False) -> bool:
    """Tell whether there are no rules, and memory for all keys at once, with documents if asked."""
    if rules.rule_count or kind.reach > MAX_REACH:
        return False
    columns = pack(kind, rules.terminals, 1).columns
    if columns > 1 and (documents or kind.name == "pairs"):
        return False
    entries = len(words) * (kind.reach if kind.name == "pairs" else 1)
    return entries < 1 << 30 and MEMORY_SHARE * entries * (40 * columns + 24) <= device_memory()


def count_plain(kind: Kind, rules: Rules, offsets: Any, words: Any, rank: Any) -> tuple[Packing, Any, Any]:
    """Return how keys are packed, each distinct key, and how often it occurs."""
    import cupy

    packing = pack(kind, rules.terminals, 1)
    columns = [_keys(kind, packing, offsets, words, rank)[0]]
    if columns[0].shape[1] == 0:
        return packing, *columns, cupy.empty(0, np.uint64)
    return packing, *sum_entries(columns, packing)


def list_plain(kind: Kind, rules: Rules, offsets: Any, words: Any, rank: Any) -> tuple[Packing, tuple[Any, ...]]:
    """List the documents of each window.

    Returns
    -------
    (Packing, (keys, offsets, lists, documents, counts))
        How keys are packed; keys, one column; where each one's documents start; the key of each document; documents,
        ascending; and how often each holds the window.

    """
    packing = pack(kind, rules.terminals, 1)
    return packing, list_keys(packing, [*_keys(kind, packing, offsets, words, rank)])


def list_keys(packing: Packing, given: list[Any]) -> tuple[Any, ...]:
    """List the documents of each key as :func:`list_plain` does.

    ``given`` are the keys and their documents, ascending; the list is emptied, to free memory early.
    """
    import cupy

    bits, first_bit = packing.sorted_bits(0)
    owners, keys = given.pop(), given.pop()
    ordered, documents = primitives.radix_sort(keys[0], owners, bits, first_bit, overwrite=True)
    del keys, owners
    size = len(ordered)
    columns = cupy.empty((2, size), np.uint64)
    launch_each("plain_windows", "pack_postings", size, ordered, documents, size, packing.spare, columns)
    del ordered, documents
    pairs, counts = sum_runs(columns, None, _WITH_DOCUMENT)
    del columns
    size = len(counts)
    lists, documents = cupy.empty((2, size), np.uint32)
    distinct, _ = sum_runs(pairs[:1], None, _WHOLE, None, lists)
    starts = cupy.zeros(distinct.shape[1] + 1, np.int64)
    runs = (lists, pairs[1], size, distinct.shape[1], 32)
    launch_each("window_postings", "find_lists", size, *runs, starts, documents)
    return distinct, starts, lists, documents, counts


def _keys(kind: Kind, packing: Packing, offsets: Any, words: Any, rank: Any) -> tuple[Any, Any]:
    """Return the keys of all windows, cupy uint64 by column, and the document of each run of words, or of each word."""
    import cupy

    ranks = words if rank is None else rank.take(words)
    distances = cupy.arange(kind.reach if kind.name == "windows" else 1, kind.reach + 1)
    sizes = cupy.maximum((offsets[1:] - offsets[:-1])[None] - distances[:, None], 0)
    before = primitives.exclusive_scan(sizes.reshape(-1))
    total = int(before[-1])  # synchronize!
    keys = cupy.empty((packing.columns, total), np.uint64)
    if kind.name == "windows":
        owners = primitives.expand(before, total)
        layout = (kind.words, packing.bits, packing.per_column, packing.columns, packing.spare)
        launch_each("plain_windows", "pack_windows", total, ranks, offsets, before, owners, total, *layout, keys)
    else:
        owners = primitives.expand(offsets, len(words))
        given = (ranks, offsets, before, len(offsets) - 1, owners, len(words))
        launch_each("plain_windows", "pack_pairs", len(words), *given, kind.reach, packing.bits, packing.spare, keys)
    return keys, owners
