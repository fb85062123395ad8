"""Cuts the documents of one grammar into pieces whose partial results fit a share of the memory limit.

A partition of 60 MB of prose has 10 million trigrams, and their postings take five times the limit that the partition
itself keeps to. Nobody knows the size of a partial result before it is made: it depends on how often sequences repeat.
The first piece has so few words that it fits even if none repeats; each later one is sized by the result before it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from polars_tadoc.config import thread_count
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.runtime.array_types import UInt64

PART_SHARE = 32
"""A partial result takes at most such a share of the limit; counting and sorting take four to seven times as much."""

GROWTH = 4
"""The next piece has at most so many times the words of the one before: repeats may end anywhere."""

ROOTS = 1 << 18
"""Roots of documents whose words are added up at a time: for all of a partition at once they take a third of 300 MB."""

RESERVED, RESERVED_BY_THREAD = 64 << 20, 8 << 20
"""Bytes that Polars' sinks and threads take beside what a limit is shared out for."""


def working_bytes(limit: int) -> int:
    """Return what a limit leaves for partial results, records and frames, at least a quarter of it."""
    threads = max(thread_count(), pl.thread_pool_size())
    return max(limit - RESERVED - RESERVED_BY_THREAD * threads, limit // 4)


def words_before(corpus: Corpus) -> UInt64:
    """Return the words of all documents before each one: uint64, documents + 1."""
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
    """Return the document behind the last one of a piece that starts at ``first``, of ``most`` words, or one document.

    Parameters
    ----------
    before
        What :func:`words_before` returned.
    first
        The first document.
    most
        Words.

    """
    bound = min(int(before[first]) + most, (1 << 64) - 1)
    stop = int(np.searchsorted(before, np.uint64(bound), side="right")) - 1
    return min(max(stop, first + 1), len(before) - 1)


class Pieces:
    """Pieces of corpora, sized by the results of those before.

    Parameters
    ----------
    limit
        Bytes of the memory limit.
    word_bytes
        Bytes that a word adds to a partial result, at most.

    """

    def __init__(self, limit: int, word_bytes: int) -> None:
        self._room = max(1, limit // PART_SHARE)
        self._fitting = max(1, self._room // word_bytes)
        self.found = 0
        """Bytes of the partial result of the last piece, which the caller sets before it asks for the next."""

    def of(self, corpus: Corpus) -> Iterator[Corpus]:
        """Cut a corpus; a piece has one document or more, and they come in their order."""
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
