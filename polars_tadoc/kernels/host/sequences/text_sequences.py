"""Counts sequences and pairs of words while text is cut: only the ids of one block of text are held at a time.

The threads cut a block with tables of their own, number its words in a common table, and distribute the keys over
buckets by their hashes, where they are counted (:mod:`polars_tadoc.kernels.host.sequences.hash_counts`).

Indices are unsigned in kernels: indices that may be negative cost a comparison and a select at each use.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numba as nb
import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.config import thread_count
from polars_tadoc.kernels.host.records.sort_keys import sort_with
from polars_tadoc.kernels.host.sequences.hash_counts import BUCKETS, HashCounts, bucket_of, hashed
from polars_tadoc.kernels.keys.key_forms_cpu import Ranks
from polars_tadoc.kernels.keys.key_order_cpu import in_result_order
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.sequences.rule_ends_cpu import rank_bits
from polars_tadoc.kernels.tokenize.common_numbers_cpu import CommonNumbers
from polars_tadoc.kernels.tokenize.count_words_cpu import (
    TextBlock,
    ThreadTables,
    most_ids,
    scan_piece,
    text_blocks,
)
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR_ID, Piece
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, require_utf8
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.parallel import map_parallel
from polars_tadoc.runtime.scratch import scratch

PIECES = 8
"""Pieces of text per thread in a block."""

MAX_BITS = 64
"""Bits of the numbers of the words of a sequence."""

MAX_WORDS = 3
"""Maximum words of a sequence: the numbers of more do not fit for most vocabularies."""

MAX_SPAN = 64
"""Maximum words before a word with which it is counted."""

WORD_BYTES = 5
"""Bytes of text per word, at least, in most texts."""

HOT = 8
"""Bits of the ids of the first words of the text, most of which are frequent: their pairs have counters."""

_0, _1, _32, _64, _HOT = (np.uint64(number) for number in (0, 1, 32, 64, HOT))


@njit
def _renumber(ids: UInt32, lead: int, stop: int, final: UInt32) -> None:
    """Replace the ids from ``lead`` on, which are a thread's, by those of the common table."""
    for i in range(nb.uint64(lead), nb.uint64(stop)):
        ids[i] = final[ids[i]]


@njit
def _spread_sequences(ids: UInt32, first: int, lead: int, stop: int, n: int, sizes: Int64, keys: UInt64) -> None:
    """Write the hashes of the sequences that end from ``lead`` on to their buckets; without keys, only count them."""
    bits, most, run, key = _64 // nb.uint64(n), nb.uint64(n), _0, _0
    mask, writes = ~_0 >> (_64 - bits * most), len(keys) > 0
    for i in range(nb.uint64(first), nb.uint64(stop)):
        own = nb.uint64(ids[i])
        key = ((key << bits) | own) & mask if bits < _64 else own
        run = run + _1 if own != _0 else _0
        if run >= most and i >= nb.uint64(lead):
            h = hashed(key)
            bucket = bucket_of(h)
            at = sizes[bucket]
            sizes[bucket] = at + 1
            if writes:
                keys[nb.uint64(at)] = h


@njit
def _spread_pairs(
    ids: UInt32, first: int, lead: int, stop: int, window: int, sizes: Int64, keys: UInt64, counters: UInt64
) -> None:
    """Write the hashes of the pairs of words from ``lead`` on with earlier ones, but count pairs of two hot words.

    Without keys, only counts those to write.
    """
    most, run, writes = nb.uint64(window), _0, len(keys) > 0
    for i in range(nb.uint64(first), nb.uint64(stop)):
        own = nb.uint64(ids[i])
        if own == _0:
            run = _0
            continue
        if i >= nb.uint64(lead):
            for j in range(i - min(run, most), i):
                other = nb.uint64(ids[j])
                low, high = min(own, other), max(own, other)
                if high >> _HOT == _0:
                    if writes:
                        counters[low << _HOT | high] += _1
                else:
                    h = hashed(low << _32 | high)
                    bucket = bucket_of(h)
                    at = sizes[bucket]
                    sizes[bucket] = at + 1
                    if writes:
                        keys[nb.uint64(at)] = h
        run += _1


Sequences = tuple[pa.LargeStringArray, UInt32, UInt64]
"""The distinct words in code point order; the words of each sequence or pair, and their counts."""


def count_text_sequences(
    text: pl.Series, tokenizer: Tokenizer, span: int, min_count: int, top: int | None
) -> Sequences | None:
    """Count the sequences of ``span`` words of all rows of a String series.

    Returns
    -------
    (LargeStringArray, uint32 array, uint64 array) or None
        The distinct words in code point order; each sequence's words, sequences x span, and its count; by descending
        count, then in the order of the words. None if the numbers of the words of a sequence do not fit 64 bits.

    Raises
    ------
    ValueError
        A row is not UTF-8.

    """
    return _count(text, tokenizer, span, span - 1, False, min_count, top)


def count_text_pairs(
    text: pl.Series, tokenizer: Tokenizer, span: int, min_count: int, top: int | None
) -> Sequences | None:
    """Count the pairs of words at most ``span`` words apart; otherwise as :func:`count_text_sequences`.

    The word that is first in code point order is the first of a pair. None if ``span`` exceeds ``MAX_SPAN``.
    """
    return _count(text, tokenizer, 2, span, True, min_count, top)


def _count(
    text: pl.Series, tokenizer: Tokenizer, n: int, span: int, is_pairs: bool, min_count: int, top: int | None
) -> Sequences | None:
    if n > MAX_WORDS or span > MAX_SPAN:
        return None
    require_utf8(text)
    tables, owners = ThreadTables([b""]), []  # SEPARATOR_ID
    numbers, hashes = (
        CommonNumbers(tables.tables, 1 << HOT),
        HashCounts(int(text.estimated_size()) // WORD_BYTES * (span if is_pairs else 1)),
    )
    counters = np.zeros((len(tables.tables) if is_pairs else 0, 1 << 2 * HOT), np.uint64)
    rooms = _Rooms()
    for block in text_blocks(text, tokenizer):
        owners.append(block.owner)  # the tables' addresses point into it
        for pieces in _groups(block.pieces):
            _scan(block, pieces, tables, rooms)
            numbers.update()
            if numbers.distinct > 1 << min(32, MAX_BITS // n):
                return None
            rooms.renumber(pieces, numbers.maps, span)
            _spread(rooms, n, span, tables, counters, hashes)
    words, rank = numbers.ranked()
    form = Ranks(n, rank_bits(len(words)))
    totals = counters.sum(axis=0)
    hot = np.flatnonzero(totals)
    ranks = np.sort(rank[np.stack([hot >> HOT, hot & ((1 << HOT) - 1)])], axis=0).astype(np.uint64)
    more = ranks[0] << np.uint64(form.bits) | ranks[1], totals[hot]
    counted, once, shares = hashes.read(rank, n, form.bits, is_pairs, min_count, *more)
    keys, counts = in_result_order(counted, min_count, top)
    singles = sort_with(once, None, form.width, shares)[0]  # most keys of most texts: without counts, twice as fast
    singles = singles[: None if top is None else top - len(keys)]
    ids = scratch((len(keys) + len(singles), n), np.uint32)
    for own, part in ((keys, ids[: len(keys)]), (singles, ids[len(keys) :])):
        form.unpack(own, np.zeros(0, np.uint32), part, 0)
    return words, ids, np.append(counts, np.ones(len(singles), np.uint64))


def _groups(pieces: list[Piece]) -> Iterator[list[Piece]]:
    size = PIECES * thread_count()
    for first in range(0, len(pieces), size):
        yield pieces[first : first + size]


class _Rooms:
    """The ids of a block's pieces, ``MAX_SPAN`` places after their start: before them those that they are counted with.

    Memory is reused from block to block.
    """

    def __init__(self) -> None:
        self._room = np.zeros(0, np.uint32)
        self.ids: list[UInt32] = []
        self.threads: list[int] = []
        self.sizes: list[int] = []
        self.leads: list[int] = []
        self._before = np.zeros(0, np.uint32)

    @property
    def parts(self) -> list[tuple[UInt32, int, int, int]]:
        """Ids of each piece, where those to be counted with begin, where its own begin, and where they end."""
        return [
            (ids, MAX_SPAN - lead, MAX_SPAN, MAX_SPAN + size)
            for ids, lead, size in zip(self.ids, self.leads, self.sizes, strict=False)
        ]

    def reserve(self, sizes: list[int]) -> None:
        """Make room for the ids of pieces: one large array, which takes few pages."""
        before = running_sum(np.array(sizes, np.int64) + MAX_SPAN)
        if len(self._room) < before[-1]:
            self._room = scratch(before[-1], np.uint32)
        self.ids = [self._room[start:stop] for start, stop in pairwise(before.tolist())]

    def renumber(self, pieces: list[Piece], maps: list[UInt32], span: int) -> None:
        """Replace the threads' ids, and put the last ``span`` ids of a row before a piece that continues it."""
        parts = list(zip(self.ids, self.threads, self.sizes, strict=False))
        map_parallel(lambda one: _renumber(one[0], MAX_SPAN, MAX_SPAN + one[2], maps[one[1]]), parts)
        self.leads.clear()
        for piece, (ids, _, size) in zip(pieces, parts, strict=True):
            before = self._before if piece.first_byte else self._before[:0]
            self.leads.append(len(before))
            ids[MAX_SPAN - len(before) : MAX_SPAN] = before
            last = ids[max(MAX_SPAN - len(before), MAX_SPAN + size - span) : MAX_SPAN + size]
            ends = np.flatnonzero(last == SEPARATOR_ID)
            self._before = last[ends[-1] + 1 if len(ends) else 0 :].copy()


def _scan(block: TextBlock, pieces: list[Piece], tables: ThreadTables, rooms: _Rooms) -> None:
    rooms.reserve([most_ids(block, piece) + 1 for piece in pieces])

    def scan(k: int) -> tuple[int, int]:
        with tables.one() as own:
            return own, scan_piece(block, pieces[k], tables.tables[own], rooms.ids[k][MAX_SPAN:])

    found = map_parallel(scan, range(len(pieces)))
    rooms.threads, rooms.sizes = [own for own, _ in found], [size for _, size in found]


def _spread(rooms: _Rooms, n: int, span: int, tables: ThreadTables, counters: UInt64, hashes: HashCounts) -> None:
    """Give the hashes of a block's sequences, or of pairs if threads have counters, to be counted."""
    parts, none = rooms.parts, np.zeros(0, np.uint64)
    sizes = np.zeros((len(parts), 1 << BUCKETS), np.int64)

    def spread(k: int, sizes: Int64, keys: UInt64) -> None:
        if not len(counters):
            _spread_sequences(*parts[k], n, sizes, keys)
        else:
            with tables.one() as own:
                _spread_pairs(*parts[k], span, sizes, keys, counters[own])

    map_parallel(lambda k: spread(k, sizes[k], none), range(len(parts)))
    hashes.add(sizes, lambda keys, places: map_parallel(lambda k: spread(k, places[k], keys), range(len(parts))))
