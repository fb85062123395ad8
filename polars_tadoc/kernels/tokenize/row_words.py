"""Finds words of a String column's rows by their number."""

from __future__ import annotations

import numpy as np
import polars as pl

from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.tokenize import characters
from polars_tadoc.kernels.tokenize import row_words_cpu as kernels
from polars_tadoc.kernels.tokenize.tokenize_cpu import BLOCK, Matches
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, found_words, require_utf8
from polars_tadoc.runtime.array_types import Int64, UInt64
from polars_tadoc.runtime.arrow_memory import binary_views
from polars_tadoc.runtime.parallel import map_parallel, weighted_chunks


def count_row_words(text: pl.Series, tokenizer: Tokenizer) -> UInt64:
    """Return the number of words of each row, uint64; 0 for null rows; errors as of :func:`find_row_words`."""
    require_utf8(text)
    if not tokenizer.has_classes:
        return np.diff(found_words(text, tokenizer).ends, prepend=0).astype(np.uint64)
    addresses, lengths, owner = binary_views(text)
    classes, counts = characters.classes(tokenizer.name), np.empty(len(text), np.uint64)

    def count(rows: tuple[int, int]) -> None:
        own = slice(*rows)
        kernels.count_row_words(addresses[own], lengths[own], classes, np.empty(BLOCK, np.uint8), counts[own])

    map_parallel(count, weighted_chunks(running_sum(lengths)))
    del owner  # the addresses point into it until here
    return counts


def find_row_words(
    text: pl.Series, tokenizer: Tokenizer, documents: Int64, firsts: Int64, stops: Int64
) -> tuple[Int64, Int64]:
    """Return start and end in bytes of intervals of words in the rows of a series; equal if there is no such word.

    Parameters
    ----------
    documents
        int64: the row of each interval. Consecutive intervals of one row with ascending ``firsts`` search it once.
    firsts, stops
        int64: the first word, and the one after the last, which may exceed the row.

    Raises
    ------
    ValueError
        A row is not UTF-8.

    """
    require_utf8(text)
    if not tokenizer.has_classes:
        return _of_matches(found_words(text, tokenizer), documents, firsts, stops)
    addresses, lengths, owner = binary_views(text)
    classes, count = characters.classes(tokenizer.name), len(documents)
    starts, ends = np.empty(count, np.int64), np.empty(count, np.int64)

    def find(chunk: tuple[int, int]) -> None:
        own, tail = slice(*chunk), np.empty(BLOCK, np.uint8)
        kernels.find_row_words(
            addresses, lengths, documents[own], firsts[own], stops[own], classes, tail, starts[own], ends[own]
        )

    map_parallel(find, weighted_chunks(running_sum(lengths[documents])))
    del owner  # the addresses point into it until here
    return starts, ends


def _of_matches(words: Matches, documents: Int64, firsts: Int64, stops: Int64) -> tuple[Int64, Int64]:
    before = np.append(0, words.ends)
    first = before[documents] + firsts
    last = np.minimum(before[documents] + np.minimum(stops, np.diff(before)[documents]), before[documents + 1]) - 1
    starts, ends = np.zeros((2, len(documents)), np.int64)
    some = first <= last
    starts[some] = words.starts[first[some]]
    ends[some] = words.starts[last[some]].astype(np.int64) + words.lengths[last[some]]
    return starts, ends
