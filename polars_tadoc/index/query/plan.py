"""What a batch of queries reads: for each segment the lists of its words and phrases, with their weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import polars as pl

from polars_tadoc.index.collection import Collection
from polars_tadoc.index.query.analyzer import QueryWords, bytes_of, has_quotes
from polars_tadoc.index.query.phrases import Phrases, phrase_lists, take_phrases
from polars_tadoc.kernels.host.rows.query_words import UNKNOWN, plan_words, weigh_words
from polars_tadoc.kernels.postings.coded import Lists, Queries
from polars_tadoc.model.word_map import naming_normalize
from polars_tadoc.runtime.array_types import Bools, Float32, Float64, Int64, UInt32
from polars_tadoc.runtime.cached_property import cached_property
from polars_tadoc.scoring.bm25 import Scoring

MAX_TABLE = 1 << 16
"""Documents of an index up to which weights are kept by document frequency: most queries then compute none."""


@dataclass(eq=False)
class Plan:
    """Queries as entries: the distinct words and phrases of each, in the order in which scores are summed."""

    offsets: Int64
    """int64, queries + 1: where each query's entries start."""
    items: Int64
    """int64 by entry: its number among the batch's distinct words and phrases."""
    weights: Float32
    """float32 by entry."""
    numbers: list[Int64]
    """By segment, int64 by distinct word or phrase: the number of its list, below 0 where the segment has none."""
    bases: Float32 | None
    """float32 by query: what is added to each score; None where nothing is."""
    extra: list[Lists | None]
    """By segment: lists made for this batch, those of phrases."""
    frequencies: Int64
    """int64 by distinct word or phrase: documents that hold it."""
    analyzed: QueryWords
    phrases: Phrases | None
    """``analyzed``, ``phrases``: The distinct words, and the phrases, which are numbered on after them; None where
    there are none."""
    lists: UInt32 | None = None
    """uint32 by entry: its list in the only segment; None where there are several, or one of the entries has none."""

    @property
    def size(self) -> int:
        """Number of queries."""
        return len(self.offsets) - 1

    @cached_property
    def owners(self) -> Int64:
        """int64 by entry: its query, ascending."""
        return np.repeat(np.arange(self.size), np.diff(self.offsets))

    def names(self) -> list[tuple[str, ...]]:
        """Return the words of each distinct word or phrase."""
        words: list[tuple[str, ...]] = [(word,) for word in self.analyzed.strings()]
        return words if self.phrases is None else words + self.phrases.words

    def queries(self, segment: int, require_all: bool, chosen: Bools | None = None) -> Queries:
        """Return the queries as lists of a segment; those not chosen, or that cannot find anything, have none."""
        if self.lists is not None and chosen is None:
            return Queries(self.offsets, self.lists, self.weights)
        lists = self.numbers[segment][self.items]
        has = lists >= 0
        if require_all and not has.all():
            lacking = np.zeros(self.size, np.bool_)
            lacking[self.owners[~has]] = True
            has &= ~lacking[self.owners]
        if chosen is not None:
            has &= chosen[self.owners]
        offsets = np.append(0, np.cumsum(has))[self.offsets]
        return Queries(offsets, lists[has].astype(np.uint32), self.weights[has])


def plan(index: Collection, texts: str | pl.Series, scoring: Scoring, call: str) -> Plan:
    """Find the words and phrases of queries in all segments, and weigh them by their documents in the whole index."""
    if isinstance(texts, str) and len(index.segments) == 1 and (one := _plan_one(index, texts, scoring)) is not None:
        return one
    with naming_normalize(call):
        phrases = take_phrases(texts, index.analyzer, call) if has_quotes(texts) else None
        words = index.analyzer.analyze(texts if phrases is None else phrases.texts)
    offsets, items, frequencies = words.offsets, words.words, np.zeros(words.distinct, np.int64)
    numbers = [words.find(segment, frequencies) for segment in index.segments]
    extra: list[Lists | None] = [None] * len(numbers)
    if phrases is not None and phrases.words:
        offsets, items = _join(words, phrases)
        lists = phrase_lists(index, phrases, call)
        sizes = [np.diff(own.offsets) for own in lists]
        for number, segment in enumerate(index.segments):
            named = len(segment.postings.frequencies) + np.arange(len(phrases.words))
            numbers[number] = np.append(numbers[number], np.where(sizes[number] > 0, named, UNKNOWN))
        frequencies = np.append(frequencies, np.sum(sizes, axis=0, dtype=np.int64))
        extra = [*lists]
    return _weighed(index, scoring, offsets, items.copy(), numbers, extra, frequencies, words, phrases)


def _plan_one(index: Collection, text: str, scoring: Scoring) -> Plan | None:
    """Plan a query of words for the only segment in one kernel; None where it takes more."""
    if '"' in text or index.documents > MAX_TABLE or not index.analyzer.tokenizer.has_classes:
        return None
    segment, (weights, bases), (data, ends) = index.segments[0], _table(scoring, index.documents), bytes_of(text)
    size = len(data)
    room, lowered = np.zeros(12 * size + 8, np.int64), np.empty(size, np.uint8)
    entry_weights, lists = np.empty(size, np.float32), np.empty(size, np.uint32)
    totals = np.zeros(1, np.float32) if scoring.has_base else _NO_TOTALS
    known = *index.analyzer.cutting, *segment.sought, segment.live_frequencies, weights, bases
    count, found, is_whole = plan_words(data, ends, *known, lowered, room, entry_weights, lists, totals)
    if not is_whole:
        return None
    return Plan(
        room[6 * size + 2 : 6 * size + 4],
        room[:count],
        entry_weights[:count],
        [room[2 * size : 2 * size + found]],
        totals if scoring.has_base else None,
        [None],
        room[size : size + found],
        QueryWords(ends, room[:0], lowered, room[3 * size : 3 * size + 2 * found]),
        None,
        lists[:count],
    )


def _weighed(
    index: Collection,
    scoring: Scoring,
    offsets: Int64,
    items: Int64,
    numbers: list[Int64],
    extra: list[Lists | None],
    frequencies: Int64,
    words: QueryWords,
    phrases: Phrases | None,
) -> Plan:
    if index.live is not None:
        for own in numbers:
            own[frequencies == 0] = UNKNOWN  # all its documents were deleted
    weights, bases, places = _worth(scoring, index.documents, frequencies)
    totals = np.zeros(len(offsets) - 1, np.float32) if scoring.has_base else None
    entry_offsets, entries = np.empty(len(offsets), np.int64), np.empty(len(items), np.int64)
    entry_weights = np.empty(len(items), np.float32)
    count = weigh_words(
        offsets,
        items,
        words.data,
        words.spans,
        frequencies,
        weights,
        bases,
        places,
        entry_offsets,
        entries,
        entry_weights,
        _NO_TOTALS if totals is None else totals,
    )
    return Plan(
        entry_offsets, entries[:count], entry_weights[:count], numbers, totals, extra, frequencies, words, phrases
    )


def _worth(scoring: Scoring, documents: int, frequencies: Int64) -> tuple[Float64, Float64, Int64]:
    """Return weights and bases, and the place of each word's: those of all frequencies are kept if they are few."""
    if documents <= MAX_TABLE:
        return *_table(scoring, documents), frequencies
    return *_values(scoring, documents, frequencies), np.arange(len(frequencies))


@lru_cache(maxsize=16)
def _table(scoring: Scoring, documents: int) -> tuple[Float64, Float64]:
    return _values(scoring, documents, np.arange(documents + 1))


def _values(scoring: Scoring, documents: int, frequencies: Int64) -> tuple[Float64, Float64]:
    """Return words' weights, and what they add to all documents; 0 where no document holds one."""
    known = frequencies > 0
    weights, bases = np.zeros(len(known)), np.zeros(len(known) if scoring.has_base else 0)
    weights[known] = scoring.weights(documents, frequencies[known])
    if scoring.has_base:
        bases[known] = scoring.bases(documents, frequencies[known])
    return weights, bases


def _join(words: QueryWords, phrases: Phrases) -> tuple[Int64, Int64]:
    """Words of queries and their phrases, which are numbered on, by query."""
    queries = len(words.offsets) - 1
    owners = np.append(np.repeat(np.arange(queries), np.diff(words.offsets)), phrases.owners)
    order = np.argsort(owners, kind="stable")
    offsets = words.offsets + np.searchsorted(phrases.owners, np.arange(queries + 1))
    return offsets, np.append(words.words, words.distinct + phrases.items)[order]


_NO_TOTALS: Float32 = np.zeros(0, np.float32)
