"""Cuts a String column into words numbered in code point order, without rules or separators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.tokenize.count_words_cpu import Pieces, ThreadTables, renumber_pieces, text_blocks
from polars_tadoc.kernels.tokenize.tables_cpu import number
from polars_tadoc.kernels.tokenize.text_words_cpu import keep_words
from polars_tadoc.kernels.tokenize.tokenize_cpu import Piece
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, require_utf8
from polars_tadoc.runtime.array_types import Int64, UInt32, array_dataclass
from polars_tadoc.runtime.parallel import map_parallel
from polars_tadoc.runtime.scratch import scratch


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
    tables, cuts, owners = ThreadTables([]), [], []
    ends, first = np.zeros(len(text) + 1, np.int64), 1
    for block in text_blocks(text, tokenizer):
        owners.append(block.owner)  # the tables' addresses point into it
        pieces, stop = Pieces(block, block.pieces, tables.tables), first + len(block.lengths)
        places = pieces.word_places()  # first, so that each piece writes to its final place
        ids = scratch(places[-1], np.uint32)
        pieces.tally(ids=ids, places=places[:-1], row_ends=ends[first:stop])
        cuts.append(_Cut(ids, places, pieces.found, block.pieces, first))
        first = stop
    strings, own_ids = number(tables.tables, by_count=False)
    words, numbers = choice.choose(strings)
    if numbers is None:
        before = running_sum(np.array([len(cut.ids) for cut in cuts], np.int64))
        for cut, start in zip(cuts, before.tolist(), strict=False):
            renumber_pieces(cut.ids, cut.places[:-1], cut.found, own_ids)
            ends[cut.first : cut.first + cut.pieces[-1].last_row] += start
        ids = cuts[0].ids if len(cuts) == 1 else np.concatenate([np.zeros(0, np.uint32), *(cut.ids for cut in cuts)])
        return NumberedWords(words, ends, ids, np.diff(ends).astype(np.uint64))
    parts = [part for cut in cuts for part in cut.parts()]
    finals = [_chosen(numbers, own) for own in own_ids]
    length_ends = np.zeros(len(text) + 1, np.int64)

    def keep(part: _Part) -> tuple[int, int]:
        rows = ends[part.rows], length_ends[part.rows]
        kept: tuple[int, int] = keep_words(part.ids, finals[part.thread], part.at, *rows)
        return kept

    kept = np.zeros((len(parts) + 1, 2), np.int64)
    kept[1:] = np.array(map_parallel(keep, parts)).reshape(-1, 2)
    starts = np.cumsum(kept, axis=0)
    ids = np.empty(starts[-1, 0], np.uint32)

    def copy(i: int) -> None:
        rows = parts[i].rows
        ends[rows] += starts[i, 0]
        length_ends[rows] += starts[i, 1]
        ids[starts[i, 0] : starts[i + 1, 0]] = parts[i].ids[: kept[i + 1, 0]]

    map_parallel(copy, range(len(parts)))
    return NumberedWords(words, ends, ids, np.diff(length_ends).astype(np.uint64))


class _Cut(NamedTuple):
    """The words of a block of text, by piece; fields as of :class:`Pieces`."""

    ids: UInt32
    places: Int64
    found: Int64
    pieces: list[Piece]
    first: int
    """Number of the first row, counted from 1."""

    def parts(self) -> Iterator[_Part]:
        """Yield each piece's own."""
        for piece, (thread, _), own in zip(self.pieces, self.found, pairwise(self.places.tolist()), strict=True):
            rows = slice(self.first + piece.first_row, self.first + piece.last_row)
            yield _Part(int(thread), self.ids[slice(*own)], own[0], rows)


class _Part(NamedTuple):
    """The words of a piece of text."""

    thread: int
    ids: UInt32
    """Ids in the table of a thread."""
    at: int
    """Where they begin in those of the block."""
    rows: slice
    """The rows that end in the piece, counted from 1."""


def _chosen(numbers: UInt32, own: UInt32) -> UInt32:
    return numbers[own] if len(numbers) else own
