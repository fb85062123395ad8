"""Cuts a String column into words numbered in code point order, without rules or separators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.kernels.tokenize.text_words_cpu import keep_words
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, cut, number
from polars_tadoc.runtime.array_types import UInt32
from polars_tadoc.runtime.parallel import map_parallel


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


@dataclass(frozen=True, eq=False)
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
    found = cut(text, tokenizer, lossless=False)
    strings, own_ids = number(found.words, by_count=False)
    words, numbers = choice.choose(strings)
    finals = own_ids if numbers is None else [_chosen(numbers, own) for own in own_ids]
    ends, length_ends = np.zeros(len(text) + 1, np.int64), np.zeros(len(text) + 1, np.int64)
    sequences = [found.sequence[a:b] for a, b in pairwise(found.places.tolist())]

    def keep(i: int) -> tuple[int, int]:
        rows = slice(1 + found.pieces[i].first_row, 1 + found.pieces[i].last_row)
        kept: tuple[int, int] = keep_words(sequences[i], finals[found.scanned[i].thread], ends[rows], length_ends[rows])
        return kept

    kept = np.zeros((len(sequences) + 1, 2), np.int64)
    kept[1:] = np.array(map_parallel(keep, range(len(sequences)))).reshape(-1, 2)
    before = np.cumsum(kept, axis=0)
    ids = np.empty(before[-1, 0], np.uint32)

    def place(i: int) -> None:
        rows = slice(1 + found.pieces[i].first_row, 1 + found.pieces[i].last_row)
        ends[rows] += before[i, 0]
        length_ends[rows] += before[i, 1]
        ids[before[i, 0] : before[i + 1, 0]] = sequences[i][: kept[i + 1, 0]]

    map_parallel(place, range(len(sequences)))
    return NumberedWords(words, ends, ids, np.diff(length_ends).astype(np.uint64))


def _chosen(numbers: UInt32, own: UInt32) -> UInt32:
    return numbers[own] if len(numbers) else own
