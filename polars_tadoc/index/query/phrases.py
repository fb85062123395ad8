"""Phrases of queries: words in double quotes, which must be consecutive in a document.

A phrase is searched like a word of its own. Its list is computed for each call: the postings give the documents that
contain all of its words, and only their rows are read (:mod:`.segment_text`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from polars_tadoc.index.collection import Collection
from polars_tadoc.index.query.analyzer import Analyzer, QueryWords
from polars_tadoc.index.query.segment_text import SegmentText, segment_text
from polars_tadoc.index.segment import Segment
from polars_tadoc.kernels.host.rows.query_words import UNKNOWN
from polars_tadoc.kernels.postings.coded import Lists
from polars_tadoc.kernels.postings.decode_cpu import decode_lists
from polars_tadoc.runtime.array_types import Int64, UInt32
from polars_tadoc.runtime.parallel import map_apart

SHOWN = 80
"""Characters of a query in messages."""


@dataclass(frozen=True, eq=False)
class Phrases:
    """Phrases of a batch of queries."""

    texts: str | pl.Series
    """The queries without their phrases. A phrase of one word stays here as a word."""
    owners: Int64
    items: Int64
    """``owners``, ``items``: int64 by occurrence of a phrase: the query, ascending, and the phrase's number."""
    words: list[tuple[str, ...]]
    """The distinct phrases, ascending, as two or more words after the index's morphism."""
    analyzed: QueryWords
    numbers: list[list[int]]
    """``analyzed``, ``numbers``: The words of phrases, and the word numbers of each distinct phrase."""


def take_phrases(given: str | pl.Series, analyzer: Analyzer, call: str) -> Phrases:
    """Extract the parts in double quotes from queries; messages name the call.

    A phrase without words after analysis is dropped.

    Raises
    ------
    ValueError
        A quote is not closed.

    """
    texts = [given] if isinstance(given, str) else given.to_list()
    parts = [(query, *part) for query, text in enumerate(texts) for part in _cut(query, text or "", call)]
    quoted = [(query, part) for query, part, is_phrase in parts if is_phrase]
    analyzed = analyzer.analyze(_texts([part for _, part in quoted]))
    strings, numbers = analyzed.strings(), analyzed.words.tolist()
    spelled = [numbers[first:stop] for first, stop in itertools.pairwise(analyzed.offsets.tolist())]
    cut = [tuple(strings[number] for number in own) for own in spelled]
    numbers_of = {phrase: own for phrase, own in zip(cut, spelled, strict=True) if len(phrase) > 1}
    words = sorted(numbers_of)
    number_of = {phrase: number for number, phrase in enumerate(words)}
    stands = [(query, number_of[own]) for (query, _), own in zip(quoted, cut, strict=True) if own in number_of]
    left: list[list[str]] = [[] for _ in range(len(texts))]
    for query, part, is_phrase in parts:
        if not is_phrase:
            left[query].append(part)
    for (query, part), own in zip(quoted, cut, strict=True):
        if len(own) == 1:
            left[query].append(part)
    places = np.array(stands, np.int64).reshape(-1, 2)
    return Phrases(
        _texts(list(map(" ".join, left))),
        places[:, 0],
        places[:, 1],
        words,
        analyzed,
        [numbers_of[own] for own in words],
    )


def _texts(strings: list[str]) -> str | pl.Series:
    return strings[0] if len(strings) == 1 else pl.Series("query", strings, pl.String)


def _cut(query: int, text: str, call: str) -> list[tuple[str, bool]]:
    """Split a query at its quotes; every other part is a phrase."""
    parts = text.split('"')
    if len(parts) % 2 == 0:
        shown = text if len(text) <= SHOWN else f"…{parts[-1][:SHOWN]}"
        raise ValueError(
            f"{call}: query {query} opens a double quote and does not close it: {shown!r}; close it, or remove it"
        )
    return [(part, number % 2 == 1) for number, part in enumerate(parts)]


def phrase_lists(index: Collection, phrases: Phrases, call: str) -> list[Lists]:
    """Find the documents with each phrase, and its counts.

    Parameters
    ----------
    index
        The index.
    phrases
        The phrases.
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
            f"{call}: the phrase {' '.join(phrases.words[0])[:SHOWN]!r} needs the text, which this index does not "
            "have; build it with store=True"
        )
    return [_in_segment(index, number, phrases) for number in range(len(index.segments))]


def _in_segment(index: Collection, number: int, phrases: Phrases) -> Lists:
    segment = index.segments[number]
    known = phrases.analyzed.find(segment, np.zeros(phrases.analyzed.distinct, np.int64))
    terms = [known[own] for own in phrases.numbers]
    candidates = _candidates(segment, terms)
    read = [own for own in candidates if len(own)]
    text: SegmentText | None = None
    if read:
        text = segment_text(index, number, read[0] if len(read) == 1 else np.unique(np.concatenate(read)))

    def count(phrase: int) -> tuple[UInt32, UInt32]:
        own = candidates[phrase]
        if text is None or not len(own):
            return _NO_NUMBERS, _NO_NUMBERS
        counts = text.count(own, terms[phrase])
        held = counts.nonzero()[0]
        return own[held].astype(np.uint32), np.minimum(counts[held], 0xFFFFFFFF).astype(np.uint32)

    found = map_apart(count, range(len(terms)))
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
