"""Phrases of queries: words in double quotes, which must be consecutive in a document, and words near each other.

A phrase is searched like a word of its own. Its list is computed for each call: the postings give the documents that
contain all of its words, and only their rows are read (:mod:`.segment_text`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from polars_tadoc.index.collection import Collection
from polars_tadoc.index.query.segment_text import SegmentText, Spread, segment_text
from polars_tadoc.index.segment import Segment
from polars_tadoc.kernels.host.rows.query_words import UNKNOWN
from polars_tadoc.kernels.postings.coded import Lists
from polars_tadoc.kernels.postings.decode_cpu import decode_lists
from polars_tadoc.runtime.array_types import Int64, UInt32
from polars_tadoc.runtime.parallel import map_apart

SHOWN = 80
"""Characters of a phrase in messages."""


class Unit(NamedTuple):
    """A unit of a query that is scored as one word: a word, a phrase, or words near each other."""

    words: tuple[str, ...]
    """After the index's morphism."""
    slop: int = 0
    """For more than one word: maximum difference of their shifts (:func:`.phrases_reference.count_near`)."""
    is_ordered: bool = True
    field: str = ""
    """Name of the field that has them; empty for any."""

    @property
    def is_phrase(self) -> bool:
        """Whether the words must be consecutive."""
        return self.is_ordered and not self.slop and len(self.words) > 1

    @property
    def spread(self) -> Spread | None:
        """Places of the words, unless they must be consecutive."""
        if self.is_ordered and not self.slop:
            return None
        size = len(self.words)
        return Spread(np.arange(size) if self.is_ordered else np.zeros(size, np.int64), self.slop)


def phrase_lists(index: Collection, phrases: Sequence[Unit], terms: list[list[Int64]], call: str) -> list[Lists]:
    """Find the documents with each phrase, and its counts.

    Parameters
    ----------
    index
        The index.
    phrases
        The phrases, and words near each other.
    terms
        By segment and phrase: the terms of its words.
    call
        The call's name, for messages.

    Returns
    -------
    list of Lists
        By segment: the live documents with each phrase.

    Raises
    ------
    ValueError
        The index does not have the text.
    InvalidGrammarError
        A row is damaged.

    """
    if index.stored.stored_text is None:
        raise ValueError(
            f"{call}: the phrase {' '.join(phrases[0].words)[:SHOWN]!r} needs the text, which this index does not "
            "have; build it with store=True"
        )
    return [_in_segment(index, number, phrases, own) for number, own in enumerate(terms)]


def _in_segment(index: Collection, number: int, phrases: Sequence[Unit], terms: list[Int64]) -> Lists:
    segment = index.segments[number]
    candidates = _candidates(segment, terms)
    read = [own for own in candidates if len(own)]
    fields = index.fields
    text: SegmentText | None = None
    if read:
        asked = read[0] if len(read) == 1 else np.unique(np.concatenate(read))
        if fields is not None:
            asked = (asked[:, None] * len(fields.names) + np.arange(len(fields.names))).ravel()
        text = segment_text(index, number, asked)

    def count(phrase: int) -> tuple[UInt32, UInt32]:
        own = candidates[phrase]
        if text is None or not len(own):
            return _NO_NUMBERS, _NO_NUMBERS
        if fields is None:
            counts = text.count(own, terms[phrase], phrases[phrase].spread)
        else:
            counts = np.zeros(len(own), np.uint64)
            for place, (name, weight) in enumerate(zip(fields.names, fields.weights, strict=True)):
                if phrases[phrase].field in ("", name):
                    rows = own * len(fields.names) + place
                    counts += np.uint64(weight) * text.count(rows, terms[phrase], phrases[phrase].spread)
        held = counts.nonzero()[0]
        return own[held].astype(np.uint32), np.minimum(counts[held], 0xFFFFFFFF).astype(np.uint32)

    return joined_lists(map_apart(count, range(len(terms))))


def joined_lists(found: Sequence[tuple[UInt32, UInt32]]) -> Lists:
    """Return lists of documents, each with its counts, as one table."""
    sizes = [len(documents) for documents, _ in found]
    documents, counts = (own[0] if len(own) == 1 else np.concatenate(own) for own in zip(*found, strict=True))
    return Lists(np.array([0, *itertools.accumulate(sizes)], np.int64), documents, counts)


def _candidates(segment: Segment, phrases: Sequence[Int64]) -> list[Int64]:
    """Return the live documents that contain all terms of each phrase, ascending."""
    wanted = sorted({term for phrase in phrases for term in phrase.tolist()} - {UNKNOWN})
    offsets, documents, _ = decode_lists(segment.postings, np.array(wanted, np.uint32))
    lists = {term: documents[offsets[place] : offsets[place + 1]] for place, term in enumerate(wanted)}

    def find(phrase: Int64) -> Int64:
        own = sorted((lists.get(term, documents[:0]) for term in set(phrase.tolist())), key=len)
        found = own[0]
        for other in own[1:]:
            if not len(found):
                break
            at = other.searchsorted(found)
            at[at == len(other)] = 0
            found = found[other[at] == found]
        return (found if segment.live is None else found[segment.live[found]]).astype(np.int64)

    return [find(phrase) for phrase in phrases]


_NO_NUMBERS: UInt32 = np.zeros(0, np.uint32)
