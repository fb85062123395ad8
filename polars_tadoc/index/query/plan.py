"""Plans a batch of queries: for each segment the lists of its words and phrases, with their weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import polars as pl

from polars_tadoc.index.collection import Collection
from polars_tadoc.index.query.analyzer import QueryWords, has_quotes
from polars_tadoc.index.query.phrases import Phrases, phrase_lists, take_phrases
from polars_tadoc.kernels.host.rows.query_words import UNKNOWN, weigh_words
from polars_tadoc.kernels.postings.coded import Lists, Queries
from polars_tadoc.model.word_map import naming_normalize
from polars_tadoc.runtime.array_types import Bools, Float32, Float64, Int64
from polars_tadoc.runtime.cached_property import cached_property
from polars_tadoc.scoring.bm25 import Scoring

MAX_TABLE = 1 << 16
"""Indexes of up to this many documents cache weights by document frequency; most queries then compute none."""


@dataclass(eq=False)
class Plan:
    """Queries as entries: the distinct words and phrases of each, in the order in which scores are summed."""

    offsets: Int64
    """int64, queries + 1: offsets of each query's entries."""
    items: Int64
    """int64 by entry: its number among the batch's distinct words and phrases."""
    weights: Float32
    """float32 by entry."""
    numbers: list[Int64]
    """By segment, int64 by distinct word or phrase: number of its list, negative if the segment has none."""
    bases: Float32 | None
    """float32 by query: constant that is added to each score; None if all are 0."""
    extra: list[Lists | None]
    """By segment: lists of phrases, made for this batch."""
    frequencies: Int64
    """int64 by distinct word or phrase: number of documents that contain it."""
    analyzed: QueryWords
    phrases: Phrases | None
    """``analyzed``, ``phrases``: The distinct words, and the phrases, whose numbers follow the words'; None without
    phrases."""

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
        """Return the queries as lists of a segment; empty for queries not chosen or without possible results."""
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
    """Find the words and phrases of queries in all segments, and weigh them by their frequency in the whole index."""
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
            own[frequencies == 0] = UNKNOWN  # all its documents are deleted
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
    """Return weights and bases, and each word's position in them; small indexes cache those of all frequencies."""
    if documents <= MAX_TABLE:
        return *table_of(scoring, documents), frequencies
    return *_values(scoring, documents, frequencies), np.arange(len(frequencies))


@lru_cache(maxsize=16)
def table_of(scoring: Scoring, documents: int) -> tuple[Float64, Float64]:
    """Return weights and bases by document frequency, up to ``MAX_TABLE``."""
    return _values(scoring, documents, np.arange(min(documents, MAX_TABLE) + 1))


def _values(scoring: Scoring, documents: int, frequencies: Int64) -> tuple[Float64, Float64]:
    """Return the weights of words, and the constants that they add to all documents; 0 for words without documents."""
    known = frequencies > 0
    weights, bases = np.zeros(len(known)), np.zeros(len(known) if scoring.has_base else 0)
    weights[known] = scoring.weights(documents, frequencies[known])
    if scoring.has_base:
        bases[known] = scoring.bases(documents, frequencies[known])
    return weights, bases


def _join(words: QueryWords, phrases: Phrases) -> tuple[Int64, Int64]:
    """Return words and phrases by query; the numbers of phrases follow the words'."""
    queries = len(words.offsets) - 1
    owners = np.append(np.repeat(np.arange(queries), np.diff(words.offsets)), phrases.owners)
    order = np.argsort(owners, kind="stable")
    offsets = words.offsets + np.searchsorted(phrases.owners, np.arange(queries + 1))
    return offsets, np.append(words.words, words.distinct + phrases.items)[order]


_NO_TOTALS: Float32 = np.zeros(0, np.float32)
