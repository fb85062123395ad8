"""Splits the documents of one grammar into pieces whose partial results fit a share of the memory limit.

A partition of 60 MB of prose has 10 million trigrams, and their postings take five times the limit that the partition
itself respects. The size of a partial result is unknown before it is made: it depends on how often sequences repeat.
The first piece is so small that it fits even without repeats; each later one is sized by the result before it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from polars_tadoc.config import thread_count
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.runtime.array_types import UInt64

PART_SHARE = 32
"""Maximum share of the limit for a partial result; counting and sorting take four to seven times as much."""

GROWTH = 4
"""Maximum growth of a piece relative to the one before, because repeats may end anywhere."""

ROOTS = 1 << 18
"""Roots whose words are added up at a time: for a whole partition they would take a third of 300 MB."""

RESERVED, RESERVED_BY_THREAD = 64 << 20, 8 << 20
"""Bytes that Polars' sinks and threads take beside the bytes shared out of a limit."""


def working_bytes(limit: int) -> int:
    """Return the bytes of a limit for partial results, records and frames: at least a quarter of it."""
    threads = max(thread_count(), pl.thread_pool_size())
    return max(limit - RESERVED - RESERVED_BY_THREAD * threads, limit // 4)


def words_before(corpus: Corpus) -> UInt64:
    """Return the number of words before each document: uint64, documents + 1."""
    grammar, roots, offsets = corpus.grammar, corpus.roots, corpus.root_offsets
    words = np.empty(len(offsets), np.uint64)
    total, vocabulary = np.uint64(0), np.uint32(grammar.vocabulary_size)
    for first in range(0, len(roots), ROOTS):
        own = roots[first : first + ROOTS]
        sizes = np.ones(len(own) + 1, np.uint64)
        rules = own >= vocabulary
        sizes[1:][rules] = grammar.expansion_lengths[own[rules] - vocabulary]
        sizes[0] = total
        np.cumsum(sizes, out=sizes)
        start, stop = np.searchsorted(offsets, [first, first + len(own)])
        words[start:stop] = sizes[offsets[start:stop] - first]
        total = sizes[-1]
    words[np.searchsorted(offsets, len(roots)) :] = total
    return words


def stop_of(before: UInt64, first: int, most: int) -> int:
    """Return the end of a piece that starts at document ``first`` and has at most ``most`` words, or one document.

    Parameters
    ----------
    before
        Result of :func:`words_before`.
    first
        The first document.
    most
        Maximum number of words.

    """
    bound = min(int(before[first]) + most, (1 << 64) - 1)
    stop = int(np.searchsorted(before, np.uint64(bound), side="right")) - 1
    return min(max(stop, first + 1), len(before) - 1)


class Pieces:
    """Pieces of corpora, each sized by the results of earlier ones.

    Parameters
    ----------
    limit
        Memory limit in bytes.
    word_bytes
        Maximum bytes that a word adds to a partial result.

    """

    def __init__(self, limit: int, word_bytes: int) -> None:
        self._room = max(1, limit // PART_SHARE)
        self._fitting = max(1, self._room // word_bytes)
        self.found = 0
        """Bytes of the last piece's partial result; the caller sets it before it takes the next piece."""

    def of(self, corpus: Corpus) -> Iterator[Corpus]:
        """Yield pieces of a corpus in order, of at least one document each."""
        before = words_before(corpus)
        first, most = 0, self._fitting
        while first < corpus.document_count:
            stop = stop_of(before, first, most)
            if first == 0 and stop == corpus.document_count:
                yield corpus
                return
            yield corpus.some(first, stop)
            words = int(before[stop] - before[first])
            most = max(self._fitting, min(self._room * words // max(1, self.found), GROWTH * words))
            first = stop
