"""Counts of shorter sequences from those of the longest ones, which begin with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.records.by_count import least_of_largest
from polars_tadoc.kernels.keys.key_forms_cpu import Form, Ranks, words_of
from polars_tadoc.kernels.keys.key_order_cpu import MAX_COUNT, order_by_count
from polars_tadoc.runtime.array_types import UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import polled_kernel
from polars_tadoc.runtime.parallel import even_chunks, map_parallel
from polars_tadoc.runtime.scratch import scratch

KEY_BITS = 64
"""Bits of a key."""

_0, _1 = np.uint64(0), np.uint64(1)


class Beginnings(NamedTuple):
    """How sequences are counted."""

    rank: UInt32 | None
    """Rank by word; None if words are their ranks."""
    end: int
    """Rank of the word that ends a document, the last one; only it follows itself."""
    bits: int
    """Bits of a rank."""
    min_count: int
    top: int | None
    """``min_count``, ``top``: Minimum count; maximum number of sequences of a length."""


def count_beginnings(
    keys: UInt64, form: Form, counts: UInt64, how: Beginnings, lengths: Sequence[int]
) -> list[tuple[UInt32, UInt64]]:
    """Add the counts of sequences whose first words are equal.

    Parameters
    ----------
    keys
        uint64, ascending: distinct sequences.
    form
        Layout of a key.
    counts
        uint64.
    how
        Words and limits.
    lengths
        Numbers of words; above those of a key, there are no sequences.

    Returns
    -------
    list of (uint32 array, uint64 array)
        For each length, the words of each sequence, sequences x length, and its count; by descending count, then in the
        order of their words' ranks.

    """
    size, most = len(keys), form.words
    ranks = words_of(keys, form, None).reshape(-1)
    shared = scratch(size, np.uint32)
    shared[:1] = 0
    map_parallel(lambda chunk: _compare(ranks, most, *chunk, shared), even_chunks(size))

    def count(n: int) -> tuple[UInt32, UInt64]:
        if n > most:
            return np.zeros((0, n), np.uint32), np.zeros(0, np.uint64)
        fits = n < most and n * how.bits <= KEY_BITS
        own, sums = scratch(size, np.uint64), scratch(size, np.uint64)
        many = _sum_up(
            ranks, most, shared, counts, how.end, n, how.bits if fits else 0, max(how.min_count, 1), own, sums
        )
        own, sums = own[:many], sums[:many]
        if how.top is not None and how.top < many:
            kept = sums >= np.uint64(least_of_largest(sums, how.top) if how.top else MAX_COUNT)
            own, sums = own[kept], sums[kept]
        own, sums = order_by_count(own, sums, None, how.top)
        if fits:
            return words_of(own, Ranks(n, how.bits), how.rank), sums
        own = keys[own]
        if n == most:
            return words_of(own, form, how.rank), sums
        return np.ascontiguousarray(words_of(own, form, how.rank)[:, :n]), sums

    found = dict(zip(falling := sorted(lengths, reverse=True), map_parallel(count, falling), strict=True))
    return [found[n] for n in lengths]


@polled_kernel
def _compare(words: UInt32, most: int, first: int, stop: int, shared: UInt32) -> None:
    """Write how many first words a sequence shares with the one before it; none for the first sequence."""
    began, width = interrupts(), nb.uint64(most)
    for i in range(max(nb.uint64(first), _1), nb.uint64(stop)):
        if i & nb.uint64(0xFFFF) == 0 and interrupts() != began:
            return
        at, k = i * width, _0
        while k < width and words[at + k] == words[at + k - width]:
            k += _1
        shared[i] = k


@polled_kernel
def _sum_up(
    ranks: UInt32,
    most: int,
    shared: UInt32,
    counts: UInt64,
    end: int,
    n: int,
    bits: int,
    least: int,
    found: UInt64,
    sums: UInt64,
) -> Any:
    """Write each beginning of ``n`` words, and the sum of its counts; return how many.

    A beginning is its packed ranks, or with 0 bits the number of its first sequence.
    """
    began, width, size = interrupts(), nb.uint64(most), nb.uint64(len(counts))
    many, i, bound, words = _0, _0, nb.uint64(least), nb.uint64(n)
    while i < size:
        if many & nb.uint64(0xFFFF) == 0 and interrupts() != began:
            return nb.int64(many)
        start, total = i * width, counts[i]
        key = i
        i += _1
        while i < size and shared[i] >= words:
            total += counts[i]
            i += _1
        if total >= bound and ranks[start + words - _1] != end:
            if bits > 0:
                key = _0
                for k in range(words):
                    key = (key << nb.uint64(bits)) | nb.uint64(ranks[start + k])
            found[many], sums[many] = key, total
            many += _1
    return nb.int64(many)
