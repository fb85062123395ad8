"""Cuts pieces of text into word ids and gaps, in one pass over the bytes."""

from __future__ import annotations

import numba as nb
import numpy as np

from polars_tadoc.kernels.primitives.varint import write_varint
from polars_tadoc.kernels.tokenize.shared_words_cpu import MISS_BYTES, Shared, intern_through_cache
from polars_tadoc.kernels.tokenize.tokenize_cpu import (
    BATCH,
    BATCH_WORDS,
    BLOCK,
    EDGES,
    EMPTY_ID,
    LOW,
    SPACE,
    SPACE_ID,
    SPANS,
    WORK_BYTES,
    Classes,
    Matches,
    Piece,
    Table,
    add_to_batch,
    addresses_of,
    cut_block,
    find_or_add,
    first_match,
    hash_of,
    key_of,
    load_up_to_8,
    shift_of,
    tables_of,
    tally,
    write_edges,
)
from polars_tadoc.runtime.addresses import load_u8, load_u64, ordered_load_at
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit

SCAN_BYTES = WORK_BYTES + MISS_BYTES
"""Work space of a thread, as ``WORK_BYTES``."""

_RECENT_GAPS = 1024
_K1 = np.uint64(0x9E3779B97F4A7C15)


@njit
def scan(
    addresses: UInt64,
    lengths: UInt32,
    piece: Piece,
    classes: Classes,
    matches: Matches,
    cache: UInt64,
    cache_shift: int,
    words: Shared,
    shift: int,
    limit: int,
    gaps: Table,
    distinct_gaps: int,
    sequence: UInt32,
    lossless: bool,
    gap_ends: Int64,
    pairs: UInt8,
    tail: UInt8,
) -> tuple[int, int, int, int, bool, int, int, bool]:
    """Cut a piece into word ids, with ``SEPARATOR_ID`` after each row that ends in it, and gaps.

    A row of n words has n + 1 gaps. Gaps other than the default (one space inside a row, empty at its ends) are encoded
    as pairs of varints: number of gaps skipped since the last pair of the row, gap id. ``gap_ends[row]`` becomes the
    number of bytes up to the row's end.

    Parameters
    ----------
    addresses, lengths
        All rows.
    piece
        The piece.
    classes, matches
        Tokenizer.
    cache, cache_shift, words, shift, limit
        The thread's cache, the table, and from which number of strings on it must grow.
    gaps, distinct_gaps
        Table with room for ``BATCH_WORDS`` more strings, and its size. A gap's tally does not count default
        occurrences.
    sequence
        Output: ids, length words + rows that end in the piece.
    lossless
        Whether to record gaps.
    gap_ends
        By row.
    pairs
        Room for ``MAX_PAIR_BYTES`` per id.
    tail
        Work space, ``SCAN_BYTES`` bytes.

    Returns
    -------
    (int, int, int, int, bool, int, int, bool)
        Number of gap strings; number of ids; bytes of pairs; for a row that continues: the number of gaps skipped since
        its last pair, and whether it had a pair; and where the scanned text ends, row and byte, and whether that is the
        end of the piece. If not, a table has no room for ``BATCH_WORDS`` more strings; the rest is another piece.

    """
    by_class, match = len(matches.ends) == 0, first_match(matches, piece)
    tables, pairs_at = tables_of(classes, tail), nb.uint64(pairs.ctypes.data)
    slots, strings = nb.uint64(words.slots.ctypes.data), nb.uint64(words.strings.ctypes.data)
    counts, entries = nb.uint64(words.counts.ctypes.data), nb.uint64(cache.ctypes.data)
    gap_slots, gap_strings = addresses_of(gaps)
    gap_shift, missed = shift_of(gaps), nb.uint64(tail.ctypes.data) + nb.uint64(WORK_BYTES)
    edges = np.empty(EDGES, np.int64)
    edges_at, batch_at = nb.uint64(edges.ctypes.data), nb.uint64(tail.ctypes.data) + nb.uint64(BLOCK)
    odd = np.empty(EDGES // 2, np.int64)
    recent, recent_ids = np.full(_RECENT_GAPS, ~np.uint64(0)), np.zeros(_RECENT_GAPS, np.int64)
    recent_slots, ids_at = np.zeros(_RECENT_GAPS, np.uint64), nb.uint64(sequence.ctypes.data)
    at = written = many = skipped = row_pairs = 0
    final_row = piece.last_row if piece.last_byte > 0 else piece.last_row - 1
    for row in range(piece.first_row, final_row + 1):
        ends_here = row < piece.last_row
        position = piece.first_byte if row == piece.first_row else 0
        stop = nb.int64(lengths[row]) if ends_here else piece.last_byte
        base = addresses[row]
        gap_start = position
        assumed = EMPTY_ID if position == 0 else SPACE_ID
        in_word, single_end = 0, -1
        count = skipped = row_pairs = 0
        more = True
        while more:
            if by_class:
                while position < stop and count < SPANS:
                    starts, ends, size, in_word, single_end = cut_block(
                        base + nb.uint64(position), stop - position, in_word, single_end, *tables
                    )
                    count = write_edges(edges_at, count, position, starts, ends)
                    position += size
                more = position < stop
                if not more and in_word:
                    edges[count] = stop
                    count += 1
            else:
                while match < matches.ends[row] and count < SPANS:
                    edges[count] = nb.int64(matches.starts[match])
                    edges[count + 1] = edges[count] + nb.int64(matches.lengths[match])
                    count += 2
                    match += 1
                more = match < matches.ends[row]
            if not more and ends_here:  # the row's end counts as an empty word, the separator
                edges[count] = edges[count + 1] = stop
                count += 2
            others = 0
            for k in range(0, count - 1, 2):
                start = edges[nb.uint64(k)]
                length = edges[nb.uint64(k + 1)] - start
                if lossless:  # most gaps are one space: no branch, which would be unpredictable
                    odd[nb.uint64(others)] = k
                    if k > 0:
                        gap = start - edges[nb.uint64(k - 1)]
                        is_space = (gap == 1) & (load_u8(base + nb.uint64(start - 1)) == SPACE) & (length > 0)
                        others += 1 - nb.int64(is_space)
                    else:
                        others += 1
                add_to_batch(batch_at, many, base + nb.uint64(start), length, stop - start, entries, cache_shift)
                many += 1
            following = 0  # the word after the last one whose gap was looked at
            for j in range(others):
                k = odd[nb.uint64(j)]
                if k > 0:
                    gap_start = edges[nb.uint64(k - 1)]
                skipped += (k - following) >> 1
                following = k + 2
                start = edges[nb.uint64(k)]
                length = edges[nb.uint64(k + 1)] - start
                if length == 0:
                    assumed = EMPTY_ID
                gap = start - gap_start
                from_ = base + nb.uint64(gap_start)
                packed = ~nb.uint64(0)
                if gap < 8:
                    packed = load_u64(from_) & LOW[gap] if gap_start + 8 <= stop else load_up_to_8(from_, gap)
                    packed |= nb.uint64(gap) << nb.uint64(56)
                r = (packed * _K1) >> nb.uint64(54)
                g = recent_ids[r]
                gap_slot = recent_slots[r]
                if gap >= 8 or recent[r] != packed:
                    low, high = key_of(from_, gap)
                    p = hash_of(low, high, gap) >> gap_shift
                    g, gap_slot = find_or_add(
                        p, gap_slots, gap_shift, gap_strings, distinct_gaps, low, high, gap, from_
                    )
                    distinct_gaps = max(distinct_gaps, g + 1)
                    recent[r] = packed
                    recent_ids[r] = g
                    recent_slots[r] = gap_slot
                differs = nb.int64(g != assumed)
                tally(gap_slot, differs)
                if skipped < 0x80 and g < 0x4000:  # branches only on rare cases
                    two = nb.int64(g >= 0x80)
                    pairs[at] = skipped
                    pairs[at + 1] = (g & 0x7F) | (two << 7)
                    pairs[at + 2] = g >> 7
                    at += differs * (2 + two)
                elif differs:
                    at = write_varint(pairs_at, at, skipped)
                    at = write_varint(pairs_at, at, g)
                skipped = 0 if differs else skipped + 1
                row_pairs |= differs
                assumed = SPACE_ID
            if lossless and count > 1:
                skipped += ((count & ~1) - following) >> 1
                gap_start, assumed = edges[(count & ~1) - 1], SPACE_ID
            done = edges[(count & ~1) - 1]
            if count & 1:
                edges[0] = edges[count - 1]
            count &= 1
            if many >= BATCH or (row == final_row and not more):
                ids = ids_at + nb.uint64(4 * written)
                intern_through_cache(batch_at, many, slots, shift, strings, counts, ids, missed)
                written += many
                many = 0
                is_full = ordered_load_at(counts) >= nb.uint64(limit)
                is_full |= 6 * (distinct_gaps + BATCH_WORDS) >= len(gaps.slots)
                if is_full and not (row == final_row and not more):
                    found = (distinct_gaps, written, at, skipped, row_pairs != 0)
                    if more or not ends_here:
                        return *found, row, done, False
                    if lossless:
                        gap_ends[row] = at
                    return *found, row + 1, 0, False
        if ends_here and lossless:
            gap_ends[row] = at
    found = (distinct_gaps, written, at, skipped, row_pairs != 0)
    return *found, piece.last_row, piece.last_byte, True
