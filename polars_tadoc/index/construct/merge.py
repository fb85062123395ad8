"""Merges segments into one, without deleted documents."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from polars_tadoc.errors import InvalidIndexError
from polars_tadoc.index.codecs import codec_of
from polars_tadoc.index.segment import Segment
from polars_tadoc.kernels.postings import live_postings
from polars_tadoc.kernels.postings.live_postings import DELETED
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.model.vocabulary import Vocabulary, unify
from polars_tadoc.runtime.array_types import UInt32
from polars_tadoc.runtime.arrow_arrays import lent


def merge(segments: Sequence[Segment]) -> Segment:
    """Merge at least one segment into one, without deleted documents.

    The arrays equal those of indexing the live documents from scratch.

    Raises
    ------
    InvalidIndexError
        Postings are damaged.

    """
    terms, numbers = _merge_terms(segments)
    frequencies = np.zeros(len(terms), np.int64)
    for segment, own in zip(segments, numbers, strict=True):
        frequencies[own[own != DELETED]] += segment.live_frequencies[own != DELETED]
    offsets = running_sum(frequencies)
    documents, counts = np.empty(offsets[-1], np.uint32), np.empty(offsets[-1], np.uint32)
    free = np.append(offsets[:-1], 0)  # one extra element, for terms without documents
    firsts = accumulate((segment.live_count for segment in segments), initial=0)
    for segment, own, first in zip(segments, numbers, firsts, strict=False):
        places = np.minimum(own, len(terms))
        new = _numbers(segment, first)
        if not live_postings.renumber(segment.postings, new, free[places], documents, counts):
            raise InvalidIndexError("compact: the postings are damaged; load with verify=True to find the damaged file")
        free[places] += segment.live_frequencies
    lengths = [segment.lengths if segment.live is None else segment.lengths[segment.live] for segment in segments]
    joined = np.concatenate([np.zeros(0, np.uint32), *lengths])
    postings = codec_of(segments[0].postings).encode(offsets, documents, counts, len(joined))
    return Segment(terms, postings, joined)


def _numbers(segment: Segment, first: int) -> UInt32:
    """Number the live documents from ``first`` on, uint32 by document; the others are ``DELETED``."""
    if segment.live is None:
        return np.arange(first, first + segment.size, dtype=np.uint32)
    numbers = np.full(segment.size, DELETED)
    numbers[segment.live] = np.arange(first, first + segment.live_count, dtype=np.uint32)
    return numbers


def _merge_terms(segments: Sequence[Segment]) -> tuple[Vocabulary, list[UInt32]]:
    """Return all terms of live documents, ascending, and by segment the new number of each of its terms.

    A term without live documents is ``DELETED``.
    """
    kept = [segment.live_frequencies > 0 for segment in segments]
    words, ids = unify(
        [
            segment.terms if own.all() else Vocabulary(segment.terms.strings.take(lent(np.flatnonzero(own))))
            for segment, own in zip(segments, kept, strict=True)
        ]
    )
    numbers = []
    for own, new in zip(kept, ids, strict=True):
        by_term = np.full(len(own), DELETED)
        by_term[own] = words.rank[new]
        numbers.append(by_term)
    return Vocabulary(words.strings.take(lent(words.by_rank))), numbers
