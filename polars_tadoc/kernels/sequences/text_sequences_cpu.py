"""Counts sequences and pairs of words while text is cut: only the ids of one block of text are held at a time.

The threads cut a block with tables of their own, number its words in a common table, and distribute the keys over
buckets by their hashes. Each bucket has a table of its own, which fits a core's cache, and one thread counts in it.

Indices are unsigned in kernels: indices that may be negative cost a comparison and a select at each use.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numba as nb
import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.config import thread_count
from polars_tadoc.kernels.host.records.sort_keys import sort_with
from polars_tadoc.kernels.keys.key_forms_cpu import Ranks, words_of
from polars_tadoc.kernels.keys.key_order_cpu import Counted, in_result_order
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.sequences.rule_ends_cpu import rank_bits
from polars_tadoc.kernels.tokenize.count_words_cpu import (
    TextBlock,
    ThreadTables,
    most_ids,
    scan_piece,
    text_blocks,
)
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR_ID, Piece, Table, merge
from polars_tadoc.kernels.tokenize.tokenizer import Interned, Tokenizer, require_utf8
from polars_tadoc.runtime.addresses import prefetch
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.parallel import even_chunks, map_parallel

PIECES = 8
"""Pieces of text per thread in a block."""

BUCKETS = 8
"""Bits of a hash that number its bucket."""

FIRST_SLOTS = 8
"""Bits of the slots of a bucket at first."""

MAX_BITS = 64
"""Bits of the numbers of the words of a sequence."""

MAX_WORDS = 3
"""Maximum words of a sequence: the numbers of more do not fit for most vocabularies."""

MAX_SPAN = 64
"""Maximum words before a word with which it is counted."""

HOT = 8
"""Bits of the ids of the first words of the text, most of which are frequent: their pairs have counters."""

AHEAD = 16
"""Prefetch distance in keys."""

_ODD, _ODD_TOO = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
_K1, _K2 = np.uint64(_ODD), np.uint64(_ODD_TOO)
_BACK1, _BACK2 = np.uint64(pow(_ODD, -1, 1 << 64)), np.uint64(pow(_ODD_TOO, -1, 1 << 64))
_0, _1, _2, _32, _64 = (np.uint64(number) for number in (0, 1, 2, 32, 64))
_BUCKET_SHIFT, _AHEAD, _HOT = np.uint64(64 - BUCKETS), np.uint64(AHEAD), np.uint64(HOT)


@njit
def _hashed(key: int) -> Any:
    """Spread a key over 64 bits; no two keys have the same hash."""
    h = nb.uint64(key) * _K1
    return (h ^ (h >> _32)) * _K2


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
            h = _hashed(key)
            bucket = h >> _BUCKET_SHIFT
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
                    h = _hashed(low << _32 | high)
                    bucket = h >> _BUCKET_SHIFT
                    at = sizes[bucket]
                    sizes[bucket] = at + 1
                    if writes:
                        keys[nb.uint64(at)] = h
        run += _1


@njit
def _count_buckets(
    keys: UInt64,
    done: Int64,
    stops: Int64,
    table: UInt64,
    used: Int64,
    single: Int64,
    slot_bits: int,
    first: int,
    stop: int,
) -> None:
    """Count the hashes of buckets from ``done`` on in their tables, until they are two thirds full.

    ``used`` is the number of hashes in each table, ``single`` of those that occurred once.
    """
    size = _1 << nb.uint64(slot_bits)
    most, shift, last = _2 * size // nb.uint64(3), _64 - nb.uint64(slot_bits), size - _1
    for bucket in range(nb.uint64(first), nb.uint64(stop)):
        base = _2 * size * bucket
        i, end, many = nb.uint64(done[bucket]), nb.uint64(stops[bucket]), nb.uint64(used[bucket])
        once = nb.uint64(single[bucket])
        while i < end and many < most:
            ahead = keys[min(i + _AHEAD, end - _1)]
            prefetch(table, nb.int64(base + _2 * (ahead << nb.uint64(BUCKETS) >> shift)))
            h = keys[i]
            slot = h << nb.uint64(BUCKETS) >> shift
            while True:
                at = base + _2 * slot
                count = table[at + _1]
                if count == _0:
                    table[at] = h
                    many += _1
                    once += _1
                if count == _0 or table[at] == h:
                    table[at + _1] = count + _1
                    once -= nb.uint64(count == _1)
                    break
                slot = (slot + _1) & last
            i += _1
        done[bucket], used[bucket], single[bucket] = nb.int64(i), nb.int64(many), nb.int64(once)


@njit
def _grow(table: UInt64, slot_bits: int, larger: UInt64, larger_bits: int, first: int, stop: int) -> None:
    """Copy buckets to larger tables."""
    size, more = _1 << nb.uint64(slot_bits), _1 << nb.uint64(larger_bits)
    shift, last = _64 - nb.uint64(larger_bits), more - _1
    for bucket in range(nb.uint64(first), nb.uint64(stop)):
        for at in range(_2 * size * bucket, _2 * size * (bucket + _1), _2):
            if table[at + _1] != _0:
                slot = table[at] << nb.uint64(BUCKETS) >> shift
                while larger[_2 * (more * bucket + slot) + _1] != _0:
                    slot = (slot + _1) & last
                to = _2 * (more * bucket + slot)
                larger[to], larger[to + _1] = table[at], table[at + _1]


@njit
def _read_buckets(
    table: UInt64,
    slot_bits: int,
    places: Int64,
    single_places: Int64,
    rank: UInt32,
    n: int,
    width: int,
    is_pairs: bool,
    first: int,
    stop: int,
    keys: UInt64,
    counts: UInt64,
    singles: UInt64,
) -> None:
    """Write keys of ranks, each of ``width`` bits, and counts; the lower rank of a pair first.

    Keys that occurred once are written to ``singles``, if there is room for any.
    """
    size, many, wide = _1 << nb.uint64(slot_bits), nb.uint64(n), nb.uint64(width)
    bits = _64 // many
    mask = ~_0 >> (_64 - bits)
    for bucket in range(nb.uint64(first), nb.uint64(stop)):
        out, out_once = nb.uint64(places[bucket]), nb.uint64(single_places[bucket])
        for at in range(_2 * size * bucket, _2 * size * (bucket + _1), _2):
            count = table[at + _1]
            if count == _0 or (count == _1 and len(singles) == 0):
                continue
            h = table[at] * _BACK2
            key = (h ^ (h >> _32)) * _BACK1
            packed = _0
            for k in range(many):
                packed = packed << wide | nb.uint64(rank[key >> bits * (many - _1 - nb.uint64(k)) & mask])
            if is_pairs:
                one, other = packed >> wide, packed & ((_1 << wide) - _1)
                packed = min(one, other) << wide | max(one, other)
            if count == _1:
                singles[out_once] = packed
                out_once += _1
            else:
                keys[out], counts[out] = packed, count
                out += _1


@dataclass
class _Buckets:
    """Counts of hashes, by the buckets of their highest bits."""

    slot_bits: int = FIRST_SLOTS
    table: UInt64 = field(default_factory=lambda: np.zeros(2 << (BUCKETS + FIRST_SLOTS), np.uint64))
    """Hash and count by slot, slots by bucket; count 0: the slot is free."""
    used: Int64 = field(default_factory=lambda: np.zeros(1 << BUCKETS, np.int64))
    single: Int64 = field(default_factory=lambda: np.zeros(1 << BUCKETS, np.int64))

    def count(self, keys: UInt64, offsets: Int64) -> None:
        """Count hashes that are ordered by bucket."""
        done, stops = offsets[:-1].copy(), offsets[1:]
        chunks = even_chunks(1 << BUCKETS, 1 << BUCKETS if offsets[-1] < 1 << 14 else 1, 16)
        while True:
            read = (keys, done, stops, self.table, self.used, self.single, self.slot_bits)
            map_parallel(lambda chunk: _count_buckets(*read, *chunk), chunks)  # noqa: B023
            left = int((stops - done).sum())
            if left == 0:
                return
            new = int(self.used.sum()) * left // (int(offsets[-1]) - left + 1)  # if the rest is like the first part
            bits = self.slot_bits + (2 if new > int(self.used.sum()) else 1)
            larger = np.zeros(2 << (BUCKETS + bits), np.uint64)
            given = (self.table, self.slot_bits, larger, bits)
            map_parallel(lambda chunk: _grow(*given, *chunk), chunks)  # noqa: B023
            self.table, self.slot_bits = larger, bits

    def read(self, rank: UInt32, n: int, width: int, is_pairs: bool, min_count: int) -> tuple[UInt64, UInt64, UInt64]:
        """Return keys of ranks with counts above 1, the counts, and, if they are to be kept, keys with count 1."""
        many = self.used - self.single
        places, single_places = running_sum(many), running_sum(self.single)
        keys, counts = np.empty(places[-1], np.uint64), np.empty(places[-1], np.uint64)
        singles = np.empty(single_places[-1] if min_count <= 1 else 0, np.uint64)
        given = (self.table, self.slot_bits, places, single_places, rank, n, width, is_pairs)
        chunks = even_chunks(1 << BUCKETS, 1, 16)  # many: interrupts are noticed between them
        map_parallel(lambda chunk: _read_buckets(*given, *chunk, keys, counts, singles), chunks)
        return keys, counts, singles


class _Numbers:
    """Numbers of the words of all threads in one table; that of the separator is ``SEPARATOR_ID``."""

    def __init__(self, threads: list[Interned]) -> None:
        self._threads, self.merged = threads, Interned.of([b""])
        self.maps = [np.zeros(1, np.uint32) for _ in threads]

    def update(self) -> None:
        """Number the words that are new since the last time."""
        for k, (table, known) in enumerate(zip(self._threads, self.maps, strict=True)):
            ids = np.empty(table.distinct - len(known), np.uint32)
            if len(ids):
                new = Table(table.arrays.slots, table.arrays.strings[4 * len(known) : 4 * table.distinct])
                self.merged.reserve(len(ids))
                ones = np.ones(len(ids), np.uint64)
                self.merged.distinct = merge(self.merged.arrays, self.merged.distinct, new, ones, ids)
                self.maps[k] = np.concatenate([known, ids])

    def ranked(self) -> tuple[pa.LargeStringArray, UInt32]:
        """Return the words in code point order, and the rank of each number."""
        order, _ = self.merged.ordered(by_count=False)
        rank = np.zeros(self.merged.distinct, np.uint32)
        rank[order] = np.arange(len(order), dtype=np.uint32)
        return self.merged.strings_of(order), rank


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
    numbers, buckets = _Numbers(tables.tables), _Buckets()
    counters = np.zeros((len(tables.tables) if is_pairs else 0, 1 << 2 * HOT), np.uint64)
    rooms = _Rooms()
    for block in text_blocks(text, tokenizer):
        owners.append(block.owner)  # the tables' addresses point into it
        for pieces in _groups(block.pieces):
            _scan(block, pieces, tables, rooms)
            numbers.update()
            if numbers.merged.distinct > 1 << min(32, MAX_BITS // n):
                return None
            rooms.renumber(pieces, numbers.maps, span)
            buckets.count(*_spread(rooms, n, span, tables, counters))
    words, rank = numbers.ranked()
    form = Ranks(n, rank_bits(len(words)))
    keys, counts, singles = buckets.read(rank, n, form.bits, is_pairs, min_count)
    if is_pairs:
        totals = counters.sum(axis=0)
        hot = np.flatnonzero(totals >= max(min_count, 1))
        ranks = np.sort(rank[np.stack([hot >> HOT, hot & ((1 << HOT) - 1)])], axis=0).astype(np.uint64)
        own, once = ranks[0] << np.uint64(form.bits) | ranks[1], totals[hot] == 1
        keys, counts = np.concatenate([keys, own[~once]]), np.concatenate([counts, totals[hot][~once]])
        singles = np.concatenate([singles, own[once]])
    keys, counts = in_result_order(Counted.of(keys, counts), min_count, top)
    if len(singles) and (top is None or len(keys) < top):  # most keys of most texts: without counts, twice as fast
        last = sort_with(singles, None, form.width)[0][: None if top is None else top - len(keys)]
        keys, counts = np.concatenate([keys, last]), np.concatenate([counts, np.ones(len(last), np.uint64)])
    return words, words_of(keys, form, None), counts


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
        self.keys = np.empty(0, np.uint64)
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
            self._room = np.empty(before[-1], np.uint32)
        self.ids = [self._room[start:stop] for start, stop in pairwise(before.tolist())]

    def room_for_keys(self, size: int) -> UInt64:
        """Return room for keys, and for at least one."""
        if len(self.keys) < size + 1:
            self.keys = np.empty(size + 1 + size // 8, np.uint64)
        return self.keys

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


def _spread(rooms: _Rooms, n: int, span: int, tables: ThreadTables, counters: UInt64) -> tuple[UInt64, Int64]:
    """Return the hashes of a block's sequences, or of pairs if threads have counters, and the offsets of buckets."""
    parts, none = rooms.parts, np.zeros(0, np.uint64)
    sizes = np.zeros((len(parts), 1 << BUCKETS), np.int64)

    def spread(k: int, sizes: Int64, keys: UInt64) -> None:
        if not len(counters):
            _spread_sequences(*parts[k], n, sizes, keys)
        else:
            with tables.one() as own:
                _spread_pairs(*parts[k], span, sizes, keys, counters[own])

    map_parallel(lambda k: spread(k, sizes[k], none), range(len(parts)))
    before = running_sum(sizes.T.ravel())
    places = before[:-1].reshape(1 << BUCKETS, len(parts)).T.copy()
    keys = rooms.room_for_keys(int(before[-1]))
    map_parallel(lambda k: spread(k, places[k], keys), range(len(parts)))
    return keys, np.ascontiguousarray(before[:: len(parts)])
