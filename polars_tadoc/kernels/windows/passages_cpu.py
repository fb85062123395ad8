"""Documents laid out as words, windows of a reference, and passages, on the CPU; the protocol describes the calls."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from polars_tadoc.kernels.host.passages import layout, matches, runs
from polars_tadoc.kernels.host.passages.windows import Fingerprints
from polars_tadoc.kernels.windows.protocol import Part
from polars_tadoc.runtime.array_types import Bools, Int64, UInt32
from polars_tadoc.runtime.parallel import even_chunks, map_parallel, weighted_chunks

LEAST_FILTERED = 6
"""Least words of windows for which it pays to look for grams first."""

MORE_WORDS = 2
"""Least number of words for each word of a reference: its grams are entered in each call."""

MOST_GRAM = 16
"""Most words of a gram: nearly all of as many are in one place only."""

GRAM_BITS = 16
"""Bits of the filter of grams for each word of a reference."""


def lay_words(starts: Int64, parts: Sequence[Part]) -> UInt32:
    """Write the documents of some parts; as :meth:`WindowKernels.lay_words`."""
    words, is_empty = np.empty(starts[-1], np.uint32), np.ones(len(starts) - 1, np.bool_)
    for offsets, ids, image, documents in parts:
        begins, is_empty[documents] = starts[documents], False
        map_parallel(partial(_copy, offsets, ids, image, begins, words), weighted_chunks(offsets))
    words[starts[1:][is_empty] - 1] = layout.SEPARATOR
    return words


def _copy(offsets: Int64, ids: UInt32, image: UInt32, begins: Int64, words: UInt32, documents: tuple[int, int]) -> None:
    first, stop = documents
    layout.copy_words(offsets[first : stop + 1], ids, image, begins[first:stop], words)


def map_words(words: UInt32, image: UInt32) -> UInt32:
    """Renumber words in place; as :meth:`WindowKernels.map_words`."""
    map_parallel(lambda chunk: layout.renumber(words[slice(*chunk)], image), even_chunks(len(words)))
    return words


def find_known(
    words: UInt32, starts: Int64, fingerprints: Fingerprints, length: int, reference: tuple[Any, Any, Any, Any]
) -> UInt32:
    """Find each window in a reference; as :meth:`WindowKernels.find_known`."""
    found, grams = np.empty(len(words), np.uint32), np.zeros(0, np.uint64)
    factors = np.frombuffer(secrets.token_bytes(8 * min((length + 1) // 2, MOST_GRAM)), np.uint64) | np.uint64(1)
    if length >= LEAST_FILTERED and len(words) >= MORE_WORDS * len(reference[2]):
        grams = np.zeros(1 << (GRAM_BITS * len(reference[2]) // 64).bit_length(), np.uint64)
        matches.mark_grams(reference[2], factors, grams)

    def search(rows: tuple[int, int]) -> None:
        a, b = rows
        matches.find_windows(words, starts[a : b + 1], length, *fingerprints, factors, grams, *reference, found)

    map_parallel(search, weighted_chunks(starts))
    return found


def find_runs(
    starts: Int64, length: int, kind: int, min_count: int, first: UInt32, counts: UInt32
) -> tuple[Int64, Int64, Int64]:
    """Find the passages of a kind; as :meth:`WindowKernels.find_runs`."""
    none, fixed = np.zeros(0, np.int64), (length, kind, min_count, first, counts)

    def find(rows: tuple[int, int]) -> Any:
        count = runs.find_runs(starts, *rows, *fixed, none, none, none)
        found = tuple(np.empty((3, count), np.int64))
        runs.find_runs(starts, *rows, *fixed, *found)
        return found

    parts = map_parallel(find, weighted_chunks(starts))
    rows, begins, ends = (np.concatenate(part) for part in zip(*parts, strict=True))
    return rows, begins, ends


def describe_runs(begins: Int64, ends: Int64, length: int, first: UInt32, counts: UInt32) -> tuple[UInt32, Bools]:
    """Return count and whether first of each passage; as :meth:`WindowKernels.describe_runs`."""
    copies, are_first = np.empty(len(begins), np.uint32), np.empty(len(begins), np.bool_)
    runs.describe_runs(begins, ends, length, first, counts, copies, are_first)
    return copies, are_first


def count_covered(starts: Int64, length: int, kind: int, first: UInt32, counts: UInt32) -> Int64:
    """Count the words of each document in passages of a kind; as :meth:`WindowKernels.count_covered`."""
    covered = np.empty(len(starts) - 1, np.int64)

    def count(rows: tuple[int, int]) -> None:
        a, b = rows
        runs.count_covered(starts[a : b + 1], length, kind, 2, first, counts, covered[a:b])

    map_parallel(count, weighted_chunks(starts))
    return covered
