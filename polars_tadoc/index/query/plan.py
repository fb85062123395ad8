"""Plans a batch of queries: for each segment the lists of its words and phrases, with their weights."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import polars as pl

from polars_tadoc.index.collection import Collection
from polars_tadoc.index.query.analyzer import QueryWords
from polars_tadoc.index.query.phrases import Unit
from polars_tadoc.index.query.read import Read, read
from polars_tadoc.index.query.trees import ALL, BY_MODE, Entries, entries_of
from polars_tadoc.index.segment import Segment
from polars_tadoc.kernels.host.rows.query_words import UNKNOWN, weigh_words
from polars_tadoc.kernels.postings.coded import Lists, Queries
from polars_tadoc.model.word_map import naming_normalize
from polars_tadoc.runtime.array_types import Bools, Float32, Float64, Int64
from polars_tadoc.runtime.cached_property import cached_property
from polars_tadoc.scoring.bm25 import Scoring

MAX_TABLE = 1 << 16
"""Indexes of up to this many documents cache weights by document frequency; most queries then compute none."""

MAX_FREQUENCY = 1 << 20
"""Maximum document frequency in tables of weights: single queries of more frequent words run as a batch."""


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
    units: list[Unit]
    """``analyzed``, ``units``: The distinct words of queries without syntax; then those and the phrases of others."""
    joins: Int64 | None = None
    """int64 by query: ``BY_MODE``, ``ANY`` or ``ALL``; None if all are by mode."""
    again: Plan | None = None
    """The queries with words joined by "or", to be searched where "and" finds too few; None: this plan."""

    @property
    def size(self) -> int:
        """Number of queries."""
        return len(self.offsets) - 1

    @cached_property
    def owners(self) -> Int64:
        """int64 by entry: its query, ascending."""
        return np.repeat(np.arange(self.size), np.diff(self.offsets))

    def names(self) -> list[Unit]:
        """Return each distinct word or phrase."""
        return [Unit((word,)) for word in self.analyzed.strings()] + self.units

    def required(self, require_all: bool) -> Bools | None:
        """Return whether each query wants all of its lists; None if all queries want what the mode says."""
        return None if self.joins is None else (self.joins == ALL) | ((self.joins == BY_MODE) & require_all)

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


def plan(
    index: Collection,
    texts: str | pl.Series,
    scoring: Scoring,
    call: str,
    mode: str = "or",
    syntax: str = "lenient",
) -> Plan:
    """Find the words and phrases of queries in all segments, and weigh them by their frequency in the whole index."""
    with naming_normalize(call):
        found = read(index, texts, syntax, call)
        planned = _planned(index, found, scoring)
        joins = np.full(planned.size, BY_MODE) if found.joins or found.trees else None
        for query, join in found.joins.items():
            joins[query] = join  # type: ignore[index]
        planned.joins = joins
        if not found.trees:
            return planned
        first = _joined(index, scoring, planned, entries_of(index, found.trees, "or" if mode == "or" else "and", call))
        if mode == "and_or":
            first.again = _joined(index, scoring, planned, entries_of(index, found.trees, "or", call))
        return first


def _planned(index: Collection, found: Read, scoring: Scoring) -> Plan:
    """Plan the queries without syntax."""
    size = 1 if isinstance(found.texts, str) else len(found.texts)
    if len(found.trees) == size:
        bases = np.zeros(size, np.float32) if scoring.has_base else None
        none, offsets = [_NO_NUMBERS for _ in index.segments], np.zeros(size + 1, np.int64)
        words, extra = QueryWords.of_strings([]), [None for _ in index.segments]
        return Plan(offsets, _NO_NUMBERS, _NO_TOTALS, none, bases, [*extra], _NO_NUMBERS, words, [])
    words = index.analyzer.analyze(found.texts)
    frequencies = np.zeros(words.distinct, np.int64)
    numbers = [words.find(segment, frequencies) for segment in index.segments]
    return _weighed(index, scoring, words, numbers, frequencies)


def _weighed(index: Collection, scoring: Scoring, words: QueryWords, numbers: list[Int64], frequencies: Int64) -> Plan:
    offsets, items = words.offsets, words.words.copy()
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
    extra: list[Lists | None] = [None] * len(numbers)
    return Plan(entry_offsets, entries[:count], entry_weights[:count], numbers, totals, extra, frequencies, words, [])


def _joined(index: Collection, scoring: Scoring, planned: Plan, entries: Entries) -> Plan:
    """Add queries with syntax to a plan of the others."""
    weights, bases, places = _worth(scoring, index.documents, entries.frequencies)
    owners, items = entries.owners, entries.items
    places, totals = places[items], planned.bases
    own_weights = (entries.factors * weights[places]).astype(np.float32)
    if totals is not None:
        names = [entries.units[item] for item in items.tolist()]  # the sum is in this order
        by_name = sorted(range(len(names)), key=lambda entry: (len(names[entry].words) > 1, names[entry]))
        own_bases = (entries.factors * bases[places])[by_name]
        totals = totals + np.bincount(owners[by_name], own_bases, planned.size).astype(np.float32)
    offsets, items = owners.searchsorted(np.arange(planned.size + 1)), len(planned.frequencies) + items
    if len(planned.items):
        all_owners = np.append(planned.owners, owners)
        order = np.argsort(all_owners, kind="stable")
        items, own_weights = np.append(planned.items, items)[order], np.append(planned.weights, own_weights)[order]
        offsets = planned.offsets + offsets
    joins = np.full(planned.size, BY_MODE) if planned.joins is None else planned.joins.copy()
    for query, join in entries.joins.items():
        joins[query] = join
    numbers = [np.append(first, own) for first, own in zip(planned.numbers, entries.numbers, strict=True)]
    frequencies = np.append(planned.frequencies, entries.frequencies)
    return Plan(
        offsets, items, own_weights, numbers, totals, entries.extra, frequencies, planned.analyzed, entries.units, joins
    )


def _worth(scoring: Scoring, documents: int, frequencies: Int64) -> tuple[Float64, Float64, Int64]:
    """Return weights and bases, and each word's position in them; small indexes cache those of all frequencies."""
    if documents <= MAX_TABLE:
        return *table_of(scoring, documents), frequencies
    return *_values(scoring, documents, frequencies), np.arange(len(frequencies))


@lru_cache(maxsize=16)
def table_of(scoring: Scoring, documents: int, most: int = MAX_TABLE) -> tuple[Float64, Float64]:
    """Return weights and bases by document frequency, up to ``most``."""
    return _values(scoring, documents, np.arange(min(documents, most) + 1))


def segment_table(scoring: Scoring, documents: int, segment: Segment) -> tuple[Float64, Float64]:
    """Return weights and bases by document frequency, up to the largest of a segment, or ``MAX_FREQUENCY``.

    Above ``MAX_TABLE`` only those of the segment's words are filled; the others are 0.
    """
    own = segment.live_frequencies
    weights, bases = table_of(scoring, documents, min(int(own.max(initial=0)), MAX_TABLE))
    frequent = own[(own > MAX_TABLE) & (own <= MAX_FREQUENCY)]
    if not len(frequent):
        return weights, bases
    filled = np.unique(frequent)
    found = np.zeros(int(filled[-1]) + 1), np.zeros(int(filled[-1]) + 1 if scoring.has_base else 0)
    for table, dense, values in zip(
        found, (weights, bases), _values(scoring, documents, filled.astype(np.int64)), strict=True
    ):
        table[: len(dense)] = dense
        table[filled[: len(values)]] = values
    return found


def _values(scoring: Scoring, documents: int, frequencies: Int64) -> tuple[Float64, Float64]:
    """Return the weights of words, and the constants that they add to all documents; 0 for words without documents."""
    known = frequencies > 0
    weights, bases = np.zeros(len(known)), np.zeros(len(known) if scoring.has_base else 0)
    weights[known] = scoring.weights(documents, frequencies[known])
    if scoring.has_base:
        bases[known] = scoring.bases(documents, frequencies[known])
    return weights, bases


_NO_TOTALS: Float32 = np.zeros(0, np.float32)
_NO_NUMBERS: Int64 = np.zeros(0, np.int64)
