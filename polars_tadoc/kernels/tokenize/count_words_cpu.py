"""Counts the words of text without holding their sequence: cut, hash and count by thread, then merge."""

from __future__ import annotations

from collections.abc import Iterator
from queue import SimpleQueue

import numba as nb
import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.config import thread_count
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.tokenize import characters
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
    cut_block,
    intern_batch,
    tables_of,
    write_edges,
)
from polars_tadoc.kernels.tokenize.tokenizer import (
    NO_CLASSES,
    NO_MATCHES,
    Interned,
    Tokenizer,
    cut_pieces,
    found_words,
    merge_tables,
    require_utf8,
)
from polars_tadoc.runtime.array_types import UInt8, UInt32, UInt64
from polars_tadoc.runtime.arrow_memory import binary_views
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.parallel import map_parallel

MATCHED_BYTES = 1 << 26
"""Text that a regex is matched in, or XML is cut in, at a time: where its words are is kept meanwhile."""


@njit
def tally_words(
    addresses: UInt64,
    lengths: UInt32,
    piece: Piece,
    classes: Classes,
    matches: Matches,
    words: Table,
    distinct: int,
    tail: UInt8,
) -> tuple[int, int, int, bool]:
    """Count the words of a piece in a table; arguments as for :func:`tokenize_cpu.scan`.

    Returns how many strings the table has then; and where the counted text ends, row and byte, and whether that is the
    end of the piece. If not, the table is too full for the next ``BATCH_WORDS``.
    """
    by_class = len(matches.ends) == 0
    match = nb.int64(matches.ends[piece.first_row - 1]) if not by_class and piece.first_row > 0 else 0
    tables, (slots, strings) = tables_of(classes, tail), addresses_of(words)
    mask = nb.uint64(len(words.slots) // 4 - 1)
    edges = np.empty(EDGES, np.int64)
    edges_at, batch_at = nb.uint64(edges.ctypes.data), nb.uint64(tail.ctypes.data) + nb.uint64(BLOCK)
    many, last_row, last_byte = 0, nb.int64(piece.first_row), nb.int64(piece.first_byte)
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
            for k in range(0, count - 1, 2):
                start = edges[nb.uint64(k)]
                length = edges[nb.uint64(k + 1)] - start
                add_to_batch(batch_at, many, base + nb.uint64(start), length, stop - start, slots, mask)
                many += 1
            if count > 1:
                last_row, last_byte = row, edges[(count & ~1) - 1]
            if count & 1:
                edges[0] = edges[count - 1]
            count &= 1
            if many >= BATCH or (row == final_row and not more):
                if 6 * (distinct + many) >= len(words.slots):
                    return distinct, done_row, done_byte, False
                distinct = intern_batch(batch_at, many, slots, mask, strings, distinct, nb.uint64(0), False)
                done_row, done_byte, many = last_row, last_byte, 0
    return distinct, piece.last_row, piece.last_byte, True


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
    threads = thread_count()
    tables, owners = [Interned.of([]) for _ in range(threads)], []
    for block in _blocks(text, tokenizer):
        addresses, lengths, views = binary_views(block)
        owners.append(views)  # the tables' addresses point into it
        before = running_sum(lengths)
        if tokenizer.has_classes:
            classes, matches = characters.classes(tokenizer.name), NO_MATCHES
            pieces = cut_pieces(addresses, lengths, before, classes)
        else:
            classes, matches = NO_CLASSES, found_words(block, tokenizer)
            pieces = cut_pieces(addresses, lengths, before, None)
        idle: SimpleQueue[int] = SimpleQueue()
        for i in range(threads):
            idle.put(i)

        def tally(piece: Piece) -> None:
            own = idle.get()  # noqa: B023 - all are done before the next block
            try:
                _tally(addresses, lengths, piece, classes, matches, tables[own])  # noqa: B023
            finally:
                idle.put(own)  # noqa: B023

        map_parallel(tally, pieces)
    merged, _ = merge_tables(tables)
    order, tallies = merged.ordered(by_count=False)
    return merged.strings_of(order), tallies[order]


def _blocks(text: pl.Series, tokenizer: Tokenizer) -> Iterator[pl.Series]:
    if tokenizer.has_classes:
        yield text
        return
    before, first = running_sum(text.str.len_bytes().fill_null(0).to_numpy()), 0
    while first < len(text):
        stop = max(first + 1, int(np.searchsorted(before, before[first] + MATCHED_BYTES, side="right")) - 1)
        yield text[first:stop]
        first = stop


def _tally(
    addresses: UInt64, lengths: UInt32, piece: Piece, classes: Classes, matches: Matches, table: Interned
) -> None:
    """Count the words of a piece in a thread's table, which grows as it fills up: it is small while words repeat."""
    tail, is_done = np.empty(WORK_BYTES, np.uint8), False
    if len(matches.ends):  # matches are numbered, so there is no going on within a row
        first = int(matches.ends[piece.first_row - 1]) if piece.first_row else 0
        table.reserve(int(matches.ends[piece.last_row - 1]) - first if piece.last_row else 0)
    while not is_done:
        table.reserve(BATCH_WORDS)
        table.distinct, row, byte, is_done = tally_words(
            addresses, lengths, piece, classes, matches, table.arrays, table.distinct, tail
        )
        if not is_done:
            piece = piece._replace(first_row=row, first_byte=byte)
            table.reserve(table.distinct + 2 * BATCH_WORDS)
