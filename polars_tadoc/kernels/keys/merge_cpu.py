"""Merges the sequences of several corpora."""

from __future__ import annotations

import numpy as np

from polars_tadoc.kernels.host.records.sort_keys import sort_with
from polars_tadoc.kernels.keys.key_forms_cpu import Ranks, unpack
from polars_tadoc.kernels.keys.key_numbers_cpu import dense_ids
from polars_tadoc.kernels.keys.key_order_cpu import sum_in_result_order
from polars_tadoc.kernels.keys.posting_order_cpu import rank_postings
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.runtime.array_types import Bools, Int64, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import kernel, polled_kernel
from polars_tadoc.runtime.parallel import even_chunks, map_parallel, weighted_chunks

_1 = np.uint64(1)


def sum_sequences(
    sequences: UInt32, counts: UInt64, rank: UInt32, min_count: int = 1, top: int | None = None
) -> tuple[UInt32, UInt64]:
    """Add the counts of equal sequences.

    Parameters
    ----------
    sequences
        uint32[m, n]: word ids.
    counts
        uint64[m].
    rank
        uint32 by word id: rank in code point order.
    min_count, top
        Minimum count; maximum number of sequences.

    Returns
    -------
    (uint32[k, n], uint64[k])
        Distinct sequences and counts, by descending count, then rank.

    """
    keys, packed = _keys(sequences, rank)
    chosen, totals = sum_in_result_order([(keys, counts, None)], min_count, top)
    if packed is not None:
        return unpack(chosen, packed, _inverse(rank)), totals
    places = np.empty(len(keys), np.int64)
    places[keys] = np.arange(len(keys))
    return sequences[places[chosen]], totals


def join_postings(
    sequences: UInt32,
    sizes: Int64,
    rows: UInt32,
    counts: UInt64,
    rank: UInt32,
    min_count: int = 1,
    top: int | None = None,
) -> tuple[UInt32, Int64, UInt32, UInt64]:
    """Merge the rows of equal sequences.

    Parameters
    ----------
    sequences, rank
        As for :func:`sum_sequences`.
    sizes
        int64[m]: rows of each sequence.
    rows, counts
        uint32 and uint64, sequence by sequence, rows by descending count, then ascending; a row occurs once
        per sequence.
    min_count, top
        Minimum total count of a sequence; maximum number of rows per sequence.

    Returns
    -------
    (uint32[k, n], int64[k + 1], uint32 array, uint64 array)
        Sequences by rank, offsets of their rows, rows by descending count, then ascending, and counts.

    """
    keys, packed = _keys(sequences, rank)
    keys, order = sort_with(keys, np.arange(len(sequences), dtype=np.uint64))
    firsts = np.flatnonzero(np.append(np.ones(min(len(keys), 1), np.bool_), keys[1:] != keys[:-1]))
    starts, taken = running_sum(sizes), running_sum(sizes[order.view(np.int64)])
    offsets = taken[np.append(firsts, len(keys))]
    made_rows, made_counts = np.empty(len(rows), np.uint32), np.empty(len(counts), np.uint64)
    ends = np.append(firsts, len(keys))
    map_parallel(
        lambda chunk: _merge_lists(order, ends, starts, taken, rows, counts, *chunk, made_rows, made_counts),
        weighted_chunks(offsets),
    )
    if min_count > 1 or top is not None:
        kept, offsets, made_rows, made_counts = rank_postings(offsets, made_rows, made_counts, min_count, top)
        firsts = firsts if kept is None else firsts[kept]
    chosen = sequences[order[firsts]] if packed is None else unpack(keys[firsts], packed, _inverse(rank))
    return chosen, offsets, made_rows, made_counts


@polled_kernel
def _merge_lists(
    order: UInt64,
    ends: Int64,
    starts: Int64,
    taken: Int64,
    rows: UInt32,
    counts: UInt64,
    first: int,
    stop: int,
    made_rows: UInt32,
    made_counts: UInt64,
) -> None:
    """Merge the lists of each group, ordered by descending count, then row: each from its end."""
    began = interrupts()
    for group in range(first, stop):
        if group & 0xFF == 0 and interrupts() != began:
            return
        start = np.uint64(taken[ends[group]])
        for k in range(np.uint64(ends[group]), np.uint64(ends[group + 1])):
            at, to = np.uint64(starts[order[k] + _1]), np.uint64(taken[k + _1])
            left, end = np.uint64(taken[k]), np.uint64(starts[order[k]])
            while at > end:
                row, count = rows[at - _1], counts[at - _1]
                while left > start and (
                    made_counts[left - _1] < count or (made_counts[left - _1] == count and made_rows[left - _1] > row)
                ):
                    to, left = to - _1, left - _1
                    made_rows[to], made_counts[to] = made_rows[left], made_counts[left]
                to, at = to - _1, at - _1
                made_rows[to], made_counts[to] = row, count


def number_sequences(sequences: UInt32, rank: UInt32) -> tuple[Int64, UInt32]:
    """Number distinct sequences in the order of their ranks.

    Returns
    -------
    (int64 array, uint32[m])
        The index of one occurrence of each distinct sequence, and the number of each sequence.

    """
    numbers, distinct = dense_ids(_keys(sequences, rank)[0])
    places = np.empty(len(distinct), np.int64)
    places[numbers] = np.arange(len(sequences))
    return places, numbers


def _keys(sequences: UInt32, rank: UInt32) -> tuple[UInt64, Ranks | None]:
    """Make one key per sequence, in the order of ranks, without truncation.

    Returns
    -------
    (uint64[m], Ranks or None)
        Keys, and the layout of packed ranks; None if ranks do not fit: then keys are below m.

    """
    form = Ranks(sequences.shape[1], max(1, (len(rank) - 1).bit_length()))
    if form.width <= 64:
        keys = np.empty(len(sequences), np.uint64)
        map_parallel(lambda chunk: _pack(sequences, rank, form.bits, *chunk, keys), even_chunks(len(keys)))
        return keys, form
    return _starts(sequences, rank, form.bits), None


@kernel
def _pack(sequences: UInt32, rank: UInt32, bits: int, first: int, stop: int, keys: UInt64) -> None:
    for i in range(np.uint64(first), np.uint64(stop)):
        key = np.uint64(0)
        for k in range(sequences.shape[1]):
            key = key << np.uint64(bits) | np.uint64(rank[sequences[i, np.uint64(k)]])
        keys[i] = key


def _starts(sequences: UInt32, rank: UInt32, bits: int) -> UInt64:
    """Return the number of smaller sequences for each sequence.

    Sequences with equal prefixes form a group, which is split by as many further words at a time as fit in a key with
    the group's number (Larsson and Sadakane, 2007, sort suffixes in this way). Singletons and groups of equal sequences
    are done: in natural text few remain after some words, and the cost depends on their number, not on the sequences'
    length.
    """
    many, n = sequences.shape
    starts = np.zeros(many, np.uint64)
    rows, groups, gaps = np.arange(many), np.zeros(many, np.uint64), np.zeros(1, np.int64)
    column = compared = 0
    while len(rows) and column < n:
        columns = min((64 - (len(gaps) - 1).bit_length()) // bits, n - column)  # at least one: groups are below 2^31
        keys = groups
        for k in range(column, column + columns):
            _append(keys, rank[sequences[:, k][rows]], bits)
        column += columns
        ids, distinct = dense_ids(keys)
        sizes = np.bincount(ids, minlength=len(distinct))
        # groups are in order among the remaining rows, `gaps` apart from their positions among all
        parents = (distinct >> np.uint64(columns * bits)).astype(np.int64) if columns * bits < 64 else 0
        firsts = gaps[parents] + np.cumsum(sizes) - sizes
        starts[rows] = firsts[ids]
        mixed = sizes > 1
        if column >= 2 * compared:  # reads all remaining words, so not after every few words
            mixed, compared = _mixed(sequences, column, rows, ids, len(sizes)), column
        left = mixed[ids]
        rows, groups = rows[left], (np.cumsum(mixed, dtype=np.uint64) - np.uint64(1))[ids[left]]
        gaps = firsts[mixed] - (np.cumsum(sizes[mixed]) - sizes[mixed])
    return starts


def _mixed(sequences: UInt32, column: int, rows: Int64, groups: UInt32, many: int) -> Bools:
    """Return the groups whose rows differ from ``column`` on."""
    examples = np.empty(many, np.int64)
    examples[groups] = rows
    mixed = np.zeros(many, np.bool_)
    map_parallel(
        lambda chunk: _compare(sequences, column, rows, groups, examples, *chunk, mixed), even_chunks(len(rows))
    )
    return mixed


@kernel
def _compare(
    sequences: UInt32, column: int, rows: Int64, groups: UInt32, examples: Int64, first: int, stop: int, mixed: Bools
) -> None:
    """Mark the groups with a row that differs from the group's first."""
    for i in range(first, stop):
        row, example = rows[i], examples[groups[i]]
        if row != example and not mixed[groups[i]]:
            for k in range(column, sequences.shape[1]):
                if sequences[row, k] != sequences[example, k]:
                    mixed[groups[i]] = True
                    break


def _append(keys: UInt64, ranks: UInt32, bits: int) -> None:
    """Append a rank in the lowest bits of keys."""
    keys <<= np.uint64(bits)
    keys |= ranks


def _inverse(rank: UInt32) -> UInt32:
    words = np.empty(len(rank), np.uint32)
    words[rank] = np.arange(len(rank), dtype=np.uint32)
    return words
