"""Counts sequences and pairs of words while text is cut: only the ids of one block of text are held at a time.

The threads cut a block with tables of their own, number its words in a common table, and distribute the keys over
buckets by their hashes, where they are counted (:mod:`polars_tadoc.kernels.host.sequences.hash_counts`).

Indices are unsigned in kernels: indices that may be negative cost a comparison and a select at each use.
"""

from __future__ import annotations

from collections.abc import Iterator

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
    Pieces,
    TextBlock,
    ThreadTables,
    most_ids,
    renumber_pieces,
    text_blocks,
)
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR_ID, Piece
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, require_utf8
from polars_tadoc.runtime.addresses import atomic_add
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.parallel import map_parallel, tell
from polars_tadoc.runtime.scratch import scratch

PIECES = 8
"""Pieces of text per thread in a block."""

MAX_BITS = 64
"""Bits of the numbers of the words of a sequence."""

MAX_WORDS = 3
"""Maximum words of a sequence: the numbers of more do not fit for most vocabularies."""

MAX_SPAN = 64
"""Maximum words before a word with which it is counted."""

COUNTING_SHARE = 0.7
"""Share of the work that is done before keys are counted and sorted, for bars."""

WORD_BYTES = 5
"""Bytes of text per word, at least, in most texts."""

HOT = 8
"""Bits of the ids of the first words of the text, most of which are frequent: their pairs have counters."""

_0, _1, _32, _64, _HOT = (np.uint64(number) for number in (0, 1, 32, 64, HOT))


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


@polled
@njit
def _spread_pieces(
    ids: UInt32,
    parts: Int64,
    n: int,
    window: int,
    sizes: Int64,
    keys: UInt64,
    counters: UInt64,
    is_pairs: bool,
    taken: Int64,
) -> None:
    """Write the hashes of one piece after the other, or only count them; ``taken[0]`` is the next piece.

    ``parts`` is int64[pieces, 3]: where the ids begin that are counted with a piece's own, where those begin, and
    where they end; ``sizes`` is int64[pieces, buckets].
    """
    began, k = interrupts(), atomic_add(taken, 0, 1)
    while k < len(parts) and interrupts() == began:
        if is_pairs:
            _spread_pairs(ids, parts[k, 0], parts[k, 1], parts[k, 2], window, sizes[k], keys, counters)
        else:
            _spread_sequences(ids, parts[k, 0], parts[k, 1], parts[k, 2], n, sizes[k], keys)
        k = atomic_add(taken, 0, 1)


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
    rooms, done = _Rooms(), 0
    for block in text_blocks(text, tokenizer):
        owners.append(block.owner)  # the tables' addresses point into it
        for pieces in _groups(block.pieces):
            rooms.scan(block, pieces, tables)
            numbers.update()
            if numbers.distinct > 1 << min(32, MAX_BITS // n):
                return None
            rooms.renumber(pieces, numbers.maps, span)
            _spread(rooms, n, span, counters, hashes)
            done += pieces[-1].last_row - pieces[0].first_row
            tell(COUNTING_SHARE * done / max(len(text), 1), COUNTING_SHARE)
    tell(COUNTING_SHARE, 1)
    words, rank = numbers.ranked()
    form = Ranks(n, rank_bits(len(words)))
    totals = counters.sum(axis=0)
    hot = np.flatnonzero(totals)
    ranks = np.sort(rank[np.stack([hot >> HOT, hot & ((1 << HOT) - 1)])], axis=0).astype(np.uint64)
    more = ranks[0] << np.uint64(form.bits) | ranks[1], totals[hot]
    counted, once = hashes.read(rank, n, form.bits, is_pairs, min_count, *more)
    keys, counts = in_result_order(counted, min_count, top)
    singles = sort_with(once, None, form.width)[0]  # most keys of most texts: without counts, twice as fast
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
        self.ids, self.parts = np.zeros(0, np.uint32), np.zeros((0, 3), np.int64)
        self._before = np.zeros(0, np.uint32)
        self._places, self._found = np.zeros(0, np.int64), np.zeros((0, 2), np.int64)

    def scan(self, block: TextBlock, pieces: list[Piece], tables: ThreadTables) -> None:
        """Cut pieces, in one large array, which takes few pages."""
        before = running_sum(np.array([most_ids(block, piece) + 1 + MAX_SPAN for piece in pieces], np.int64))
        if len(self.ids) < before[-1]:
            self.ids = scratch(before[-1], np.uint32)
        self._places, given = before[:-1] + MAX_SPAN, Pieces(block, pieces, tables.tables)
        given.tally(ids=self.ids, places=self._places)
        self._found = given.found

    def renumber(self, pieces: list[Piece], maps: list[UInt32], span: int) -> None:
        """Replace the threads' ids, and put the last ``span`` ids of a row before a piece that continues it."""
        renumber_pieces(self.ids, self._places, self._found, maps)
        parts = []
        for piece, place, size in zip(pieces, self._places.tolist(), self._found[:, 1].tolist(), strict=True):
            before = self._before if piece.first_byte else self._before[:0]
            first, stop = place - len(before), place + size
            self.ids[first:place] = before
            last = self.ids[max(first, stop - span) : stop]
            ends = np.flatnonzero(last == SEPARATOR_ID)
            self._before = last[ends[-1] + 1 if len(ends) else 0 :].copy()
            parts.append((first, place, stop))
        self.parts = np.array(parts, np.int64)


def _spread(rooms: _Rooms, n: int, span: int, counters: UInt64, hashes: HashCounts) -> None:
    """Give the hashes of a block's sequences, or of pairs if threads have counters, to be counted."""
    sizes, is_pairs = np.zeros((len(rooms.parts), 1 << BUCKETS), np.int64), len(counters) > 0
    threads = range(min(thread_count(), len(rooms.parts)))

    def spread(keys: UInt64, places: Int64) -> None:
        taken = np.zeros(1, np.int64)
        given = (rooms.ids, rooms.parts, n, span, places, keys)
        map_parallel(
            lambda own: _spread_pieces(*given, counters[own if is_pairs else slice(0)].ravel(), is_pairs, taken),
            threads,
        )

    spread(np.zeros(0, np.uint64), sizes)
    hashes.add(sizes, spread)
