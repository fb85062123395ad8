"""Cuts a String column into words numbered in code point order, without rules and without what stands between."""

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
    """A dictionary where a device's kernels can use it."""

    trie: Any
    """What the kernels' ``load_trie`` gives."""
    words: int
    vocabulary: Callable[[pa.LargeStringArray], Any]
    """Makes the vocabulary of those of its words that a text has."""


class Choice(NamedTuple):
    """Which words of a text are kept, and their numbers."""

    choose: Callable[[pa.LargeStringArray], tuple[Any, UInt32 | None]]
    """Names the distinct words of a text, given in code point order: the words to be kept, and by given word its
    number among them, ``DELETED`` for one that is as if not there, ``UNKNOWN`` for one that counts to lengths only;
    None: all are kept as they are."""

    known: Callable[[], Known] | None = None
    """Makes the dictionary ready that ``choose`` does no more than look words up in, for an engine to which that is
    the same for every word of the text; None: there is none."""


@dataclass(frozen=True, eq=False)
class NumberedWords:
    """Rows as word ids; arrays of the engine that made them."""

    words: Any
    """The vocabulary that ``choose`` or ``vocabulary`` made."""
    offsets: Any
    """int64, rows + 1: where each row's ids start."""
    ids: Any
    """uint32."""
    lengths: Any
    """uint64 by row: its words, with those that count to lengths only."""


def number_words(text: pl.Series, tokenizer: Tokenizer, choice: Choice) -> NumberedWords:
    """Cut each row of a String series; null rows count as empty.

    Parameters
    ----------
    choice
        Which words are kept, and their numbers: chosen once for each distinct word.

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
