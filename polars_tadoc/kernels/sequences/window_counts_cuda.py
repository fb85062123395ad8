"""Counts windows over all documents."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.keys.key_ranges_cuda import Batches, Survey, spare_memory
from polars_tadoc.kernels.keys.keys_cuda import (
    ANY_WEIGHT,
    Packing,
    compact_keys,
    no_windows,
    pack,
    read_keys,
    sum_entries,
    words_by_rank,
)
from polars_tadoc.kernels.keys.plain_windows_cuda import count_plain, is_plain
from polars_tadoc.kernels.primitives.primitives_cuda import exclusive_scan, radix_sort
from polars_tadoc.kernels.sequences.bodies_cuda import Text, make_texts
from polars_tadoc.kernels.sequences.protocol import Limits
from polars_tadoc.kernels.sequences.rule_occurrences_cuda import rule_weights
from polars_tadoc.kernels.sequences.windows_cuda import Kind, possible_kind
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.runtime.device import device_errors, even_blocks, launch, launch_each

THREADS = 256


def count_windows(
    kind: Kind, rules: Rules, root_offsets: Any, roots: Any, rank: Any, strategy: str, limits: Limits
) -> tuple[Any, Any]:
    """Return words and counts, by descending count, then rank."""
    min_count, top = limits.get("min_count", 1), limits.get("top")
    with device_errors(f"counting {kind.name} of words"):
        possible = possible_kind(kind, rules, root_offsets, roots)
        if possible is None or top == 0 or min_count >= 1 << 64:
            return no_windows(kind.words)
        if is_plain(possible, rules, roots):
            packing, keys, counts = count_plain(possible, rules, root_offsets, roots, rank)
            return ranked([_chosen(keys, counts, min_count if min_count > 1 else 0, top)], packing, rank, top)
        texts = make_texts(possible, rules, root_offsets, roots, rank)
        weights = rule_weights(possible, rules, *texts, strategy)
        packing, found = _count_batches(possible, texts, weights, spare_memory(rules, *texts), max(min_count, 1), top)
        del texts, weights
        return ranked(found, packing, rank, top)


def _count_batches(
    kind: Kind, texts: tuple[Text, Text], weights: Any, room: int, least: int, top: int | None
) -> tuple[Packing, list[tuple[Any, Any]]]:
    """Return the packing, and the keys and counts of each batch, with keys ascending over all batches."""
    import cupy

    packing = pack(kind, texts[0].terminals, ANY_WEIGHT)
    if packing.columns > pack(kind, texts[0].terminals, 1).columns:  # it may fit with the actual weights
        packing = pack(kind, texts[0].terminals, int(weights.max()) if len(weights) else 1)  # synchronize!
    bodies, documents = texts
    parts = (
        (bodies, (weights, bodies.offsets, len(bodies.offsets) - 1)),
        (documents, (None, documents.offsets, len(documents.offsets) - 1)),
    )
    row_bytes = 4 * kind.words + 8
    columns_bytes = 8 * packing.columns
    batches = Batches(
        Survey(("window_counts", "survey_entries"), packing, parts, defines=kind.defines),
        room - int(weights.nbytes),
        entry_bytes=2 * columns_bytes if packing.columns <= 2 else columns_bytes + 37,
        summed_bytes=columns_bytes if packing.columns <= 2 else columns_bytes + 4,
        key_bytes=columns_bytes + 8,
        row_bytes=row_bytes if top is None and least == 1 else 0,
        kept=top is None,
    )
    # a weight has at most as many digits as fit
    digits = -(-ANY_WEIGHT.bit_length() // packing.digit_bits)
    most = kind.most_at_position * (digits * len(bodies.symbols) + len(documents.symbols))
    few = packing.columns <= 2 and batches.fit(most)
    every = [(0, ANY_WEIGHT, most)]
    found: list[tuple[Any, Any]] = []
    for low, last, entries in every if few else batches.ranges(packing.first_bits):
        columns, taken = [cupy.empty((packing.columns, entries), np.uint64)], cupy.zeros(1, np.uint64)
        for text, owners in parts:
            launch_each(
                *("window_counts", "write_entries", len(text.symbols), text.struct, packing.struct, low, last),
                *(*owners, columns[0], entries, taken),
                defines=kind.defines,
            )
        if few:
            columns[0] = columns[0][:, : int(taken.get()[0])]  # synchronize!
        keys, sums = sum_entries(columns, packing)
        found.append(_chosen(keys, sums, least if least > 1 else 0, top))  # each entry counts at least 1
        del keys, sums
        held = sum(int(array.nbytes) for array in found[-1])
        batches.found(held, len(found[-1][1]) * row_bytes)
    return packing, found


def _chosen(keys: Any, counts: Any, least: int, top: int | None) -> tuple[Any, Any]:
    """Drop the keys whose counts are too low for the result."""
    if least > 0:
        keys, counts = compact_keys(keys, counts, counts >= np.uint64(least))
    if top is None or len(counts) <= 2 * top:
        return keys, counts
    return compact_keys(keys, counts, _may_lead(counts, top))


def _may_lead(counts: Any, top: int) -> Any:
    """Return cupy bool: which may be among the ``top`` highest counts, with ties going to earlier ones."""
    import cupy

    zeros = cupy.zeros(1024 + 2, np.uint64)
    launch("select", "survey", even_blocks(len(counts)), 1024, counts, None, len(counts), 1, zeros, zeros[1024:])
    steps = zeros[:1024].view(np.uint32).get()  # synchronize!
    above = np.cumsum(steps[::-1], dtype=np.int64)[::-1]  # number with at least the step's count
    step = int(np.flatnonzero(above >= top)[-1])
    lowest = step if step < 32 else (32 + step % 32) << (step // 32 - 1)
    if step >= 64:  # many counts share the step
        return counts >= np.uint64(lowest)
    equal = counts == np.uint64(lowest)
    left = top - int(above[step + 1])
    return (counts > np.uint64(lowest)) | (equal & (exclusive_scan(equal)[:-1] < left))


def ranked(found: list[tuple[Any, Any]], packing: Packing, rank: Any, top: int | None) -> tuple[Any, Any]:
    """Return words and counts by descending count, then key; empties the list of results."""
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
    largest = cupy.zeros(1, np.uint64)
    size = len(counts)
    launch("keys", "find_most", 4 * even_blocks(len(counts)), THREADS, counts, size, largest)
    most = int(largest.get()[0])  # synchronize!
    bits = most.bit_length()
    narrow = bits <= 32
    falling = cupy.empty(len(counts), np.uint32) if narrow else np.uint64(most) - counts
    order = cupy.empty(len(counts), np.uint32)
    launch_each("keys", "fall", len(counts), counts, size, most, falling if narrow else None, order)
    del counts
    falling, order = radix_sort(falling, order, bits, overwrite=True)
    falling, order = falling[:top], order[:top]
    words = read_keys(keys, packing, order, words_by_rank(rank))
    del keys, order
    return words, cupy.subtract(np.uint64(most), falling, dtype=np.uint64)
