"""Cuts a String column into words numbered in code point order, without rules or separators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.tokenize.count_words_cpu import ThreadTables, most_ids, scan_piece, text_blocks
from polars_tadoc.kernels.tokenize.tables_cpu import number
from polars_tadoc.kernels.tokenize.text_words_cpu import keep_words, place_words
from polars_tadoc.kernels.tokenize.tokenize_cpu import Piece
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, forget_separator, require_utf8
from polars_tadoc.runtime.array_types import UInt32, array_dataclass
from polars_tadoc.runtime.parallel import map_parallel

CHUNK = 1 << 21
"""Ids of a thread that are kept in one array."""


class Known(NamedTuple):
    """A dictionary in a device's memory."""

    trie: Any
    """Result of the kernels' ``load_trie``."""
    words: int
    vocabulary: Callable[[pa.LargeStringArray], Any]
    """Makes the vocabulary from those of its words that occur in a text."""


class Choice(NamedTuple):
    """Selects the words of a text to keep, and numbers them."""

    choose: Callable[[pa.LargeStringArray], tuple[Any, UInt32 | None]]
    """Maps the distinct words of a text, in code point order, to the words to keep and, by given word, its number among
    them: ``DELETED`` for a dropped word, ``UNKNOWN`` for one that only counts in lengths. None: all words are kept."""

    known: Callable[[], Known] | None = None
    """Loads the dictionary to a device if looking words up in it is all that ``choose`` does; None: there is no
    dictionary. Engines use it instead of ``choose``, as looking up each word of the text costs them the same."""


@array_dataclass
class NumberedWords:
    """Rows as word ids; arrays of the engine that made them."""

    words: Any
    """The vocabulary from ``choose`` or ``vocabulary``."""
    offsets: Any
    """int64, rows + 1: offsets of each row's ids."""
    ids: Any
    """uint32."""
    lengths: Any
    """uint64 by row: number of words, including those that only count in lengths."""


def number_words(text: pl.Series, tokenizer: Tokenizer, choice: Choice) -> NumberedWords:
    """Cut each row of a String series; null rows count as empty.

    Parameters
    ----------
    choice
        Selects and numbers words; called once, with the distinct words.

    Raises
    ------
    ValueError
        A row is not UTF-8.

    """
    require_utf8(text)
    tables, size = ThreadTables([b""]), int(text.estimated_size())  # SEPARATOR_ID
    stores = [_Store(min(max(size // 8, 1 << 10), CHUNK)) for _ in tables.tables]
    found: list[tuple[int, UInt32, slice]] = []
    owners, first = [], 0
    for block in text_blocks(text, tokenizer):
        owners.append(block.owner)  # the tables' addresses point into it

        def scan(piece: Piece) -> tuple[int, UInt32, slice]:
            with tables.one() as own:
                ids = stores[own].scratch(most_ids(block, piece) + 1)  # noqa: B023 - done before the next block
                kept = stores[own].keep(ids[: scan_piece(block, piece, tables.tables[own], ids)])  # noqa: B023
                return own, kept, slice(1 + first + piece.first_row, 1 + first + piece.last_row)  # noqa: B023

        found += map_parallel(scan, block.pieces)
        first += len(block.lengths)
    for table in tables.tables:
        forget_separator(table)
    strings, own_ids = number(tables.tables, by_count=False)
    words, numbers = choice.choose(strings)
    ends = np.zeros(len(text) + 1, np.int64)
    if numbers is None:
        before = running_sum(np.array([len(ids) - (rows.stop - rows.start) for _, ids, rows in found], np.int64))
        ids = np.empty(before[-1], np.uint32)

        def place(i: int) -> None:
            thread, own, rows = found[i]
            place_words(own, own_ids[thread], int(before[i]), ids, ends[rows])

        map_parallel(place, range(len(found)))
        return NumberedWords(words, ends, ids, np.diff(ends).astype(np.uint64))
    finals = [_chosen(numbers, own) for own in own_ids]
    length_ends = np.zeros(len(text) + 1, np.int64)

    def keep(i: int) -> tuple[int, int]:
        thread, own, rows = found[i]
        kept: tuple[int, int] = keep_words(own, finals[thread], ends[rows], length_ends[rows])
        return kept

    kept = np.zeros((len(found) + 1, 2), np.int64)
    kept[1:] = np.array(map_parallel(keep, range(len(found)))).reshape(-1, 2)
    starts = np.cumsum(kept, axis=0)
    ids = np.empty(starts[-1, 0], np.uint32)

    def copy(i: int) -> None:
        _, own, rows = found[i]
        ends[rows] += starts[i, 0]
        length_ends[rows] += starts[i, 1]
        ids[starts[i, 0] : starts[i + 1, 0]] = own[: kept[i + 1, 0]]

    map_parallel(copy, range(len(found)))
    return NumberedWords(words, ends, ids, np.diff(length_ends).astype(np.uint64))


class _Store:
    """Ids of a thread's pieces, in large arrays, which take few pages."""

    def __init__(self, chunk: int) -> None:
        self._chunk, self._free, self._scratch = chunk, np.zeros(0, np.uint32), np.zeros(0, np.uint32)

    def scratch(self, size: int) -> UInt32:
        """Return room for the ids of one piece, until the next one."""
        if len(self._scratch) < size:
            self._scratch = np.empty(size, np.uint32)
        return self._scratch

    def keep(self, ids: UInt32) -> UInt32:
        """Copy ids."""
        if len(self._free) < len(ids):
            self._free = np.empty(max(self._chunk, len(ids)), np.uint32)
        kept, self._free = self._free[: len(ids)], self._free[len(ids) :]
        kept[:] = ids
        return kept


def _chosen(numbers: UInt32, own: UInt32) -> UInt32:
    return numbers[own] if len(numbers) else own
