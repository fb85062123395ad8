"""Counts the words of text without holding their sequence: cut, hash and count by thread, then merge."""

from __future__ import annotations

from collections.abc import Iterator

import numba as nb
import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.config import thread_count
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.tokenize.tables_cpu import MOST_RANGES, Interned, Merge, gathered, merge_tables
from polars_tadoc.kernels.tokenize.tokenize_cpu import (
    BATCH,
    BATCH_WORDS,
    BLOCK,
    EDGES,
    SPANS,
    WORK_BYTES,
    Classes,
    Matches,
    Piece,
    Table,
    add_to_batch,
    addresses_of,
    count_ids,
    cut_block,
    first_match,
    intern_batch,
    shift_of,
    tables_of,
    write_edges,
)
from polars_tadoc.kernels.tokenize.tokenizer import (
    TextBlock as TextBlock,
)
from polars_tadoc.kernels.tokenize.tokenizer import (
    Tokenizer,
    require_utf8,
)
from polars_tadoc.runtime.addresses import atomic_add, load_u32
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.free_memory import give_back_memory
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.parallel import map_parallel

MATCHED_BYTES = 1 << 26
"""Text that a regex is matched in, or XML is cut in, at a time: where its words are is kept meanwhile."""

HELD = 1 << 20
"""Strings in the tables of all threads before they are merged: words that all threads meet are not held by each."""

PIECE_WORDS = 1 << 13
"""Distinct words of a piece of text, about: tables begin with room for those of a thread's share."""

FIRST_WORDS = 1 << 14
"""Distinct words, at most, that tables begin with room for: threads that let tables grow wait for the GIL."""

_ALL = 1 << 62

NO_IDS = np.zeros(0, np.uint32)
"""Words are only counted."""

NO_ENDS = np.zeros(0, np.int64)
"""Rows end with ``SEPARATOR_ID`` if ids are written."""


@njit
def tally_words(
    addresses: UInt64,
    lengths: UInt32,
    piece: Piece,
    classes: Classes,
    matches: Matches,
    words: Table,
    distinct: int,
    ids: UInt32,
    at: int,
    row_ends: Int64,
    tail: UInt8,
) -> tuple[int, int, int, int, bool]:
    """Count the words of a piece in a table; arguments as for :func:`tokenize_cpu.scan`.

    Writes ids if there is room for them; at the end of each row that ends in the piece, ``SEPARATOR_ID``, or if there
    is room for the ``row_ends`` of all rows, the number of ids so far, from ``at`` on. Returns the numbers of strings
    in the table and of ids; and where the counted text ends, row and byte, and whether that is the end of the piece. If
    not, the table is too full for the next ``BATCH_WORDS``.
    """
    by_class, match = len(matches.ends) == 0, first_match(matches, piece)
    tables, (slots, strings) = tables_of(classes, tail), addresses_of(words)
    shift = shift_of(words)
    edges = np.empty(EDGES, np.int64)
    edges_at, batch_at = nb.uint64(edges.ctypes.data), nb.uint64(tail.ctypes.data) + nb.uint64(BLOCK)
    many, last_row, last_byte = 0, nb.int64(piece.first_row), nb.int64(piece.first_byte)
    ids_at, written, keeps, separates = nb.uint64(ids.ctypes.data), 0, len(ids) > 0, len(row_ends) == 0
    done_row, done_byte = last_row, last_byte
    final_row = piece.last_row if piece.last_byte > 0 else piece.last_row - 1
    for row in range(piece.first_row, final_row + 1):
        position = piece.first_byte if row == piece.first_row else 0
        stop = nb.int64(lengths[row]) if row < piece.last_row else piece.last_byte
        base, in_word, single_end, count, more = addresses[row], 0, -1, 0, True
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
            ends_here = keeps and separates and not more and row < piece.last_row
            if ends_here:  # the row's end counts as an empty word, the separator
                edges[count] = edges[count + 1] = stop
                count += 2
            for k in range(0, count - 1, 2):
                start = edges[nb.uint64(k)]
                length = edges[nb.uint64(k + 1)] - start
                add_to_batch(batch_at, many, base + nb.uint64(start), length, stop - start, slots, shift)
                many += 1
            if count > 1:
                last_row, last_byte = (row + 1, 0) if ends_here else (row, edges[(count & ~1) - 1])
            if count & 1:
                edges[0] = edges[count - 1]
            count &= 1
            if not separates and not more and row < piece.last_row:
                row_ends[row] = at + written + many
            if many >= BATCH or (row == final_row and not more):
                if 6 * (distinct + many) >= len(words.slots):
                    return distinct, written, done_row, done_byte, False
                to = ids_at + nb.uint64(4 * written)
                distinct = intern_batch(batch_at, many, slots, shift, strings, distinct, to, keeps)
                written += many
                done_row, done_byte, many = last_row, last_byte, 0
    return distinct, written, piece.last_row, piece.last_byte, True


@njit
def _next_piece(taken: Int64, edges: Int64, own: int) -> int:
    """Take the next piece of a thread's share, then of others'; -1 if there is none."""
    shares = len(edges) - 1
    for k in range(own, own + shares):
        share = k % shares
        if taken[share] < edges[share + 1]:
            piece = atomic_add(taken, share, 1)
            if piece < edges[share + 1]:
                return int(piece)
    return -1


@polled
@njit
def _tally_pieces(
    addresses: UInt64,
    lengths: UInt32,
    pieces: Int64,
    classes: Classes,
    matches: Matches,
    taken: Int64,
    edges: Int64,
    most: int,
    own: int,
    rest: Int64,
    words: Table,
    distinct: int,
    ids: UInt32,
    places: Int64,
    found: Int64,
    row_ends: Int64,
    tail: UInt8,
) -> tuple[int, bool]:
    """Count the words of one piece after the other in a thread's table: between pieces no thread waits for the GIL.

    Parameters
    ----------
    addresses, lengths, classes, matches, words, distinct, row_ends, tail
        As for :func:`tally_words`.
    ids, places
        Room for ids, or none; those of a piece are written from ``places[piece]`` on.
    found
        int64[pieces, 2]: the share whose thread counted a piece, and the number of its ids; written.
    pieces
        int64[pieces, 4]: the fields of each :class:`tokenize_cpu.Piece`.
    taken, edges
        By share of a thread: the next piece, and ``pieces[edges[own]:edges[own + 1]]``. The last of ``taken``: strings
        in the tables of all threads.
    most
        No piece is begun if the tables hold more.
    own
        The thread's share.
    rest
        int64[5]: the rest of a piece and its number, which is -1 if there is none; written.

    Returns
    -------
    (int, bool)
        The number of strings in the table; and whether it is too full for the next ``BATCH_WORDS``.

    """
    began = interrupts()
    while interrupts() == began:
        if rest[4] < 0:
            rest[4] = _next_piece(taken, edges, own) if taken[len(edges) - 1] <= most else -1
            if rest[4] < 0:
                break
            rest[:4] = pieces[rest[4]]
            found[rest[4], 0] = own
        k = rest[4]
        piece, at, before = Piece(rest[0], rest[1], rest[2], rest[3]), places[k] + found[k, 1], distinct
        distinct, many, row, byte, is_done = tally_words(
            addresses, lengths, piece, classes, matches, words, distinct, ids[at:], at, row_ends, tail
        )
        found[k, 1] += many
        atomic_add(taken, len(edges) - 1, distinct - before)
        if not is_done:
            rest[0], rest[1] = row, byte
            return distinct, True
        rest[4] = -1
    return distinct, False


@polled
@njit
def _renumber_pieces(ids: UInt32, places: Int64, found: Int64, maps: UInt64, taken: Int64) -> None:
    """Replace the ids of one piece after the other, which are a thread's, by others.

    Arguments as for :class:`Pieces`; ``maps`` are addresses by table, and ``taken[0]`` is the next piece.
    """
    began, k = interrupts(), atomic_add(taken, 0, 1)
    while k < len(found) and interrupts() == began:
        final, first = maps[found[k, 0]], nb.uint64(places[k])
        for i in range(first, first + nb.uint64(found[k, 1])):
            ids[i] = load_u32(final + nb.uint64(4) * nb.uint64(ids[i]))
        k = atomic_add(taken, 0, 1)


@polled
@njit
def _count_pieces(
    addresses: UInt64,
    lengths: UInt32,
    pieces: Int64,
    counts: Int64,
    classes: Classes,
    matches: Matches,
    taken: Int64,
    tail: UInt8,
) -> None:
    """Count the words of one piece after the other; ``taken[0]`` is the next piece, others as for ``_tally_pieces``."""
    began, k = interrupts(), atomic_add(taken, 0, 1)
    while k < len(pieces) and interrupts() == began:
        piece = Piece(pieces[k, 0], pieces[k, 1], pieces[k, 2], pieces[k, 3])
        rows = piece.last_row - piece.first_row
        counts[k] = count_ids(addresses, lengths, piece, classes, matches, tail) - rows
        k = atomic_add(taken, 0, 1)


def count_text_words(text: pl.Series, tokenizer: Tokenizer) -> tuple[pa.LargeStringArray, UInt64]:
    """Count the words of all rows of a String series.

    Returns
    -------
    (LargeStringArray, uint64 array)
        The distinct words in code point order, and how often each occurs.

    Raises
    ------
    ValueError
        A row is not UTF-8.

    """
    require_utf8(text)
    threads, merge, owners = ThreadTables([]), None, []
    for block in text_blocks(text, tokenizer):
        owners.append(block.owner)  # the tables' addresses point into it
        pieces = Pieces(block, block.pieces, threads.tables)
        while not pieces.tally(HELD if len(threads.tables) > 1 else _ALL):
            merge = merge or Merge(MOST_RANGES)
            merge.add(threads.tables)
            map_parallel(Interned.clear, threads.tables)
            give_back_memory()  # what tables left behind as they grew
    if merge is None:
        merged, _ = merge_tables(threads.tables, keeps_ids=False)
        threads.tables.clear()  # frees them
    else:
        merge.add(threads.tables)
        threads.tables.clear()
        give_back_memory()
        merged = merge.strings()
        give_back_memory()
    order = merged.order(by_count=False)
    return merged.copied(order), gathered(merged.tallies, order)


def text_blocks(text: pl.Series, tokenizer: Tokenizer) -> Iterator[TextBlock]:
    """Cut valid text into pieces: all at once, or ``MATCHED_BYTES`` at a time where matches are found first."""
    for block in _blocks(text, tokenizer):
        yield TextBlock.of(block, tokenizer)


class Pieces:
    """Pieces of a block that threads take in turn, in machine code.

    Each begins with its share, neighbouring pieces: their table has fewer words than one of as many pieces from all
    over the text.
    """

    def __init__(self, block: TextBlock, pieces: list[Piece], tables: list[Interned]) -> None:
        self._block, self._tables, self._pieces = block, tables, np.array(pieces, np.int64).reshape(-1, 4)
        self._edges = np.linspace(0, len(pieces), len(tables) + 1).astype(np.int64)
        self._taken = np.append(self._edges[:-1], 0)
        self._expected = min(FIRST_WORDS, PIECE_WORDS * ((len(pieces) - 1) // len(tables)))  # 0 for short text
        self.found = np.zeros((len(pieces), 2), np.int64)
        """By piece, the table that has its words, and the number of its ids."""

    def word_places(self) -> Int64:
        """Count the words before each piece, and all of them, without interning any: int64, pieces + 1."""
        block, counts, taken = self._block, np.zeros(len(self._pieces), np.int64), np.zeros(1, np.int64)
        read = (block.addresses, block.lengths, self._pieces, counts, block.classes, block.matches, taken)
        map_parallel(
            lambda _: _count_pieces(*read, np.empty(WORK_BYTES, np.uint8)),
            range(min(len(self._tables), len(self._pieces))),
        )
        return running_sum(counts)

    def tally(
        self,
        most: int = _ALL,
        ids: UInt32 = NO_IDS,
        places: Int64 | None = None,
        row_ends: Int64 = NO_ENDS,
    ) -> bool:
        """Count the words of pieces that no thread has begun, unless the tables hold more than ``most`` strings.

        Writes the ids of a piece from its place on, if there is room for them; and the end of each row's ids to
        ``row_ends``. Without these, rows end with ``SEPARATOR_ID``, which the tables must have, and a piece has up to
        :func:`most_ids` ids. Returns whether all pieces are done.
        """
        self._taken[-1] = sum(table.distinct for table in self._tables)
        starts = np.zeros(len(self._pieces), np.int64) if places is None else places
        read = (self._block.addresses, self._block.lengths, self._pieces, self._block.classes, self._block.matches)

        def tally(own: int) -> None:
            table, tail, rest, is_full = self._tables[own], np.empty(WORK_BYTES, np.uint8), np.full(5, -1), True
            table.reserve(self._expected - table.distinct)
            while is_full:
                table.reserve(BATCH_WORDS)
                share, words = (self._taken, self._edges, most, own, rest), (table.arrays, table.distinct)
                table.distinct, is_full = _tally_pieces(*read, *share, *words, ids, starts, self.found, row_ends, tail)
                if is_full:
                    table.reserve(2 * BATCH_WORDS)  # twice as large

        map_parallel(tally, range(min(len(self._tables), len(self._pieces))))
        return bool((self._taken[:-1] >= self._edges[1:]).all())


def renumber_pieces(ids: UInt32, places: Int64, found: Int64, maps: list[UInt32]) -> None:
    """Replace the ids that :meth:`Pieces.tally` wrote, by a map for each table; ``found`` is that of the pieces."""
    at, taken = np.array([own.ctypes.data for own in maps], np.uint64), np.zeros(1, np.int64)
    threads = range(min(thread_count(), len(found)))
    map_parallel(lambda _: _renumber_pieces(ids, places, found, at, taken), threads)


class ThreadTables:
    """A table of strings for each thread."""

    def __init__(self, strings: list[bytes]) -> None:
        self.tables = [Interned.of(strings) for _ in range(thread_count())]


def _blocks(text: pl.Series, tokenizer: Tokenizer) -> Iterator[pl.Series]:
    if tokenizer.has_classes:
        yield text
        return
    before, first = running_sum(text.str.len_bytes().fill_null(0).to_numpy()), 0
    while first < len(text):
        stop = max(first + 1, int(np.searchsorted(before, before[first] + MATCHED_BYTES, side="right")) - 1)
        yield text[first:stop]
        first = stop


def most_ids(block: TextBlock, piece: Piece) -> int:
    """Return an upper bound of the words of a piece and the rows that end in it."""
    rows = slice(piece.first_row, piece.last_row)
    ended = piece.last_row - piece.first_row
    if len(block.matches.ends):
        first = int(block.matches.ends[piece.first_row - 1]) if piece.first_row else 0
        return ended + (int(block.matches.ends[piece.last_row - 1]) - first if piece.last_row else 0)
    text = int(block.lengths[rows].sum(dtype=np.int64)) - piece.first_byte + piece.last_byte
    return 2 * ended + text // 2 + 1  # words have a byte at least, and one between them or two bytes
