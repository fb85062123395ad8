"""Windows counted over all documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polars_tadoc.kernels.cuda.bodies import make_texts
from polars_tadoc.kernels.cuda.derived_rules import derive
from polars_tadoc.kernels.cuda.device import device_errors, even_blocks, get_kernel, launch_each
from polars_tadoc.kernels.cuda.key_ranges import key_ranges
from polars_tadoc.kernels.cuda.keys import (
    Packing,
    compact_keys,
    no_windows,
    pack,
    read_keys,
    sort_keys,
    sum_runs,
    words_by_rank,
)
from polars_tadoc.kernels.cuda.primitives import exclusive_scan, radix_sort
from polars_tadoc.kernels.cuda.reduced_text import Words, write_words
from polars_tadoc.kernels.cuda.tables import terminal_counts
from polars_tadoc.kernels.cuda.windows import Kind, possible_kind
from polars_tadoc.kernels.rules import Rules

WORKING_MEMORY = 30 << 20
"""Bytes that a batch may take beside half of the rules and what the result allows."""
LEAST_MEMORY = 4 << 20
"""Bytes that a batch may take anyhow."""
EXPECTED = 0.5
"""Share of the keys that entries have been found to have so far which the rest is trusted to have."""


def count(
    kind: Kind,
    rules: Rules,
    root_offsets: Any,
    roots: Any,
    rank: Any,
    strategy: str,
    min_count: int,
    top: int | None,
) -> tuple[Any, Any]:
    """Return words and counts, by count falling, equal ones by rank."""
    with device_errors(f"counting {kind.name} of words"):
        possible = possible_kind(kind, rules, root_offsets, roots)
        if possible is None or top == 0 or min_count >= 1 << 64:
            return no_windows(kind.words)
        least = max(min_count, 1)
        if strategy == "bottom_up":
            derived = derive(possible, rules, root_offsets, roots, rank)
            packing, keys = derived.packing, derived.keys
            counts = terminal_counts(derived.rules, derived.roots, strategy)
            del derived
            found = [_chosen(keys, counts, least, top)]
            del keys, counts
        else:
            packing, found = count_batches(possible, rules, root_offsets, roots, rank, least, top)
        return ranked(found, packing, rank, top)


def count_batches(
    kind: Kind, rules: Rules, root_offsets: Any, roots: Any, rank: Any, least: int, top: int | None
) -> tuple[Packing, list[tuple[Any, Any]]]:
    """Return the packing and the keys and counts of each batch, keys ascending over all of them."""
    import cupy

    words = write_words(kind, rules, roots, make_texts(kind, rules, root_offsets, roots, rank))
    packing = pack(kind, rules.terminals, words.most)
    given = (rules.rule_offsets, rules.symbols, rules.lengths, root_offsets, roots, rank)
    room = WORKING_MEMORY + nbytes(given) // 2 - nbytes((words.words, words.owners, words.weights))
    row = 4 * kind.words + 8
    entry = {1: 17, 2: 34}.get(packing.columns, 8 * packing.columns + 25)
    found: list[tuple[Any, Any]] = []
    written = 0
    total = 0

    def count(low: int, shift: int, buckets: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        nonlocal total
        counts = _count_entries(kind, words, packing, low, shift, buckets)
        total = total or int(counts.sum())  # of everything, at first
        return counts

    def capacity() -> int:
        """Entries that a batch may have: what the result is expected to be lets the memory grow."""
        kept = sum(len(counts) for _, counts in found)
        trusted = EXPECTED * total / max(written, 1) if top is None else 1.0
        expected = 1.5 * row * kept * max(trusted, 1.0)
        held = sum(nbytes(batch) for batch in found)
        most = max(4 * written, WORKING_MEMORY // entry)  # what was found tells of no more
        return min(int(max(room + expected - held, LEAST_MEMORY) // entry), most)

    for low, high, entries in key_ranges(count, capacity, 0, 32 + packing.bits):
        ranks = (np.uint64(low), np.uint64(high))
        columns, taken = cupy.empty((packing.columns, entries), np.uint64), cupy.zeros(1, np.uint64)
        launch_each(
            *(
                "window_counts",
                f"write_{kind.name}",
                len(words.words),
                *words.arguments(),
                *packing.arguments(),
                *ranks,
            ),
            *(columns, np.uint64(entries), taken),
        )
        order, columns = sort_keys(columns, packing)
        keys, sums = sum_runs(columns, order, packing)
        del columns, order
        found.append(_chosen(keys, sums, least if least > 1 else 0, top))  # no entry counts nothing
        written += entries
        del keys, sums
    return packing, found


def nbytes(arrays: Sequence[Any]) -> int:
    """Return the bytes of some arrays."""
    return sum(int(array.nbytes) for array in arrays if array is not None)


def _count_entries(
    kind: Kind, words: Words, packing: Packing, low: int, shift: int, buckets: int
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return how many entries begin with each 2^shift pairs of ranks, from ``low`` on."""
    import cupy

    counts = cupy.zeros(buckets, np.uint64)
    if len(words.words):
        get_kernel("window_counts", f"count_{kind.name}")(
            (even_blocks(len(words.words)),),
            (1024,),
            (
                *(*words.arguments(), np.uint32(packing.digit_bits), np.uint64(low)),
                *(np.uint64(low + (buckets << shift)), np.uint32(shift), np.uint32(buckets), counts),
            ),
        )
    told: np.ndarray[Any, np.dtype[np.uint64]] = counts.get()  # synchronize!
    return told.astype(np.int64)


def _chosen(keys: Any, counts: Any, least: int, top: int | None) -> tuple[Any, Any]:
    """Leave out the keys that are counted too seldom for the result."""
    if least > 0:
        keys, counts = compact_keys(keys, counts, counts >= np.uint64(least))
    if top is None or len(counts) <= 2 * top:
        return keys, counts
    return compact_keys(keys, counts, _may_lead(counts, top))


def _may_lead(counts: Any, top: int) -> Any:
    """Return cupy bool: which may be among the ``top`` most counted ones, the earlier of equal ones first."""
    import cupy

    zeros = cupy.zeros(1024 + 2, np.uint64)
    get_kernel("select", "survey")(
        *((even_blocks(len(counts)),), (1024,)),
        (counts, None, np.uint32(len(counts)), np.uint64(1), zeros, zeros[1024:]),
    )
    steps = zeros[:1024].view(np.uint32).get()  # synchronize!
    above = np.cumsum(steps[::-1], dtype=np.int64)[::-1]  # counted at least as the step
    step = int(np.flatnonzero(above >= top)[-1])
    lowest = step if step < 32 else (32 + step % 32) << (step // 32 - 1)
    if step >= 64:  # many counts share the step
        return counts >= np.uint64(lowest)
    equal = counts == np.uint64(lowest)
    left = top - int(above[step + 1])
    return (counts > np.uint64(lowest)) | (equal & (exclusive_scan(equal)[:-1] < left))


def ranked(found: list[tuple[Any, Any]], packing: Packing, rank: Any, top: int | None) -> tuple[Any, Any]:
    """Return words and counts by count falling, equal ones by key. Takes what was found out of the list."""
    import cupy

    if not any(len(counts) for _, counts in found):
        return no_windows(packing.words)
    if len(found) == 1:
        keys, counts = found.pop()
    else:
        keys = cupy.concatenate([keys for keys, _ in found], axis=1)
        found[:] = [(None, counts) for _, counts in found]
        counts = cupy.concatenate([counts for _, counts in found])
        found.clear()
    most = int(counts.max())  # synchronize!
    bits = most.bit_length()
    narrow = bits <= 32
    falling = cupy.empty(len(counts), np.uint32) if narrow else np.uint64(most) - counts
    order = cupy.empty(len(counts), np.uint32)
    size = np.uint64(len(counts))
    launch_each("window_counts", "fall", len(counts), counts, size, np.uint64(most), falling if narrow else None, order)
    del counts
    falling, order = radix_sort(falling, order, bits, overwrite=True)
    falling, order = falling[:top], order[:top]
    words = read_keys(keys, packing, order, words_by_rank(rank))
    del keys, order
    return words, cupy.subtract(np.uint64(most), falling, dtype=np.uint64)
