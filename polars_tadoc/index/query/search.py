"""One batch of queries: words, lists with weights, the best documents of each segment, one frame."""

from __future__ import annotations

from collections.abc import Iterable, Set
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.config import thread_count
from polars_tadoc.engine.choose import Engine, require_engine, runnable
from polars_tadoc.index.collection import Collection
from polars_tadoc.index.query.analyzer import QueryWords, has_quotes
from polars_tadoc.index.query.costs import OVERHEADS, predict
from polars_tadoc.index.query.filter import bitmap, filter_mask
from polars_tadoc.index.query.phrases import Phrases, phrase_lists, take_phrases
from polars_tadoc.index.query.prepared import Prepared, prepare_segment
from polars_tadoc.kernels.postings.coded import Lists, Queries
from polars_tadoc.records.labelled_results import from_arrow, to_arrow
from polars_tadoc.runtime.arguments import require_integer, require_text
from polars_tadoc.runtime.interrupts import interruptible
from polars_tadoc.scoring.bm25 import Scoring
from polars_tadoc.traversal.options import MAX_COUNT

Bool = npt.NDArray[np.bool_]
UInt32 = npt.NDArray[np.uint32]
Int64 = npt.NDArray[np.int64]
Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]

ModeName = Literal["and", "or", "and_or"]
QueriesLike = str | pl.Series | Iterable[str | None]
"""Arrow arrays are iterable, too."""
FilterLike = pl.Series | pl.Expr | npt.NDArray[np.bool_] | Iterable[bool | None] | None

MAX_PLACES = 1 << 24
"""Results that are made room for at a time: so many documents of so many queries."""


FEW = 200
"""Below so many numbers, a list of Python's becomes a series sooner than Arrow's memory does."""

_TYPES = {"uint32": pl.UInt32, "int64": pl.Int64, "float32": pl.Float32}


@dataclass(frozen=True, eq=False)
class Found:
    """The best documents of queries, by query, then by score falling, equal ones by document.

    They are ordered by scores as they were before what all documents get was added.
    """

    counts: Int64
    """int64 by query: how many were found."""
    documents: npt.NDArray[np.integer[Any]]
    """Numbers among all documents of the index."""
    scores: Float32


@dataclass(frozen=True, eq=False)
class Batch:
    """Words of queries with their weights; an entry is a distinct word of a query, in the order in which sums are made.

    Parameters
    ----------
    size
        Number of queries.
    owners, items
        int64 by entry: its query, ascending, and its number among the batch's distinct words.
    numbers
        By segment, int64 by distinct word: the number of its list, below 0 where the segment has none.
    weights
        float32 by entry.
    bases
        float32 by query: what is added to each score.
    postings
        How many postings all entries have, deleted ones too.
    extra
        By segment: lists made for this batch, those of phrases.
    frequencies
        int64 by distinct word: documents that hold it.
    analyzed, phrases
        The distinct words, and the phrases, which are numbered on after them; None where there are none.

    """

    size: int
    owners: Int64
    items: Int64
    numbers: list[Int64]
    weights: Float32
    bases: Float32
    postings: int
    extra: list[Lists | None]
    frequencies: Int64
    analyzed: QueryWords
    phrases: Phrases | None

    def names(self) -> list[tuple[str, ...]]:
        """Return the words of each distinct word or phrase."""
        words: list[tuple[str, ...]] = [(word,) for word in self.analyzed.strings()]
        return words if self.phrases is None else words + self.phrases.words

    def queries(self, segment: int, require_all: bool, chosen: Bool | None = None) -> Queries:
        """Return the queries as lists of a segment; those not chosen, or that cannot find anything, have none."""
        lists = self.numbers[segment][self.items]
        has = lists >= 0
        if require_all and not has.all():
            lacking = np.zeros(self.size, np.bool_)
            lacking[self.owners[~has]] = True
            has &= ~lacking[self.owners]
        if chosen is not None:
            has &= chosen[self.owners]
        offsets = np.zeros(self.size + 1, np.int64)
        np.cumsum(np.bincount(self.owners[has], minlength=self.size), out=offsets[1:])
        return Queries(offsets, lists[has].astype(np.uint32), self.weights[has])


def search(
    index: Collection,
    queries: QueriesLike,
    k: int,
    mode: str,
    scoring: str,
    k1: float,
    b: float,
    delta: float,
    filter: FilterLike,
    engine: str | None,
) -> pl.DataFrame:
    """Answer :meth:`polars_tadoc.index.index.Index.search`."""
    form = Scoring(scoring, k1, b, delta)
    k = min(require_integer("k", k, 0), MAX_COUNT)
    if mode not in get_args(ModeName):
        raise ValueError(f'mode={mode!r}: use "and", "or" or "and_or"')
    asked = require_engine(engine)
    texts = as_series(queries, "search")
    allowed = allowed_by_segment(index, filter, "search")
    batch = weigh(index, texts, form, "search")
    chosen = choose_engine(asked, index, batch, mode, k)
    with interruptible():
        return frame(index, find(index, batch, k, mode, form, allowed, chosen))


def as_series(queries: QueriesLike, call: str) -> pl.Series:
    """Return queries as a String series.

    Raises
    ------
    TypeError
        They are no strings; the message names the call.
    ValueError
        One is no text.

    """
    if isinstance(queries, str):
        require_text(queries, f"{call}: query")
        return pl.Series("query", [queries])
    if isinstance(queries, (pa.Array, pa.ChunkedArray)):
        queries = pl.Series("query", queries)
    if isinstance(queries, pl.Series):
        if queries.dtype == pl.Null:
            return queries.cast(pl.String)
        if queries.dtype != pl.String:
            raise TypeError(f"{call}: queries are a series of {queries.dtype}, not String; cast it first")
        return queries
    if not isinstance(queries, Iterable) or isinstance(queries, (bytes, dict, Set, pl.DataFrame)):
        raise TypeError(f"{call}: queries are strings: one, a list, or a String series; not {type(queries).__name__}")
    texts = list(queries)
    for number, text in enumerate(texts):
        if not isinstance(text, str) and text is not None:
            raise TypeError(f"{call}: query {number} is {type(text).__name__}, not a string")
    try:
        return pl.Series("query", texts, pl.String)
    except UnicodeEncodeError:
        for number, text in enumerate(texts):
            require_text(text or "", f"{call}: query {number}")
        raise


def choose_engine(asked: str, index: Collection, batch: Batch, mode: str, k: int) -> Engine:
    """Choose the engine for a batch: "auto" takes the one that is predicted to be faster with the index resident."""
    engines = runnable(asked)
    if len(engines) == 1:
        return engines[0]
    offsets = np.searchsorted(batch.owners, np.arange(batch.size + 1))

    def seconds(engine: Engine) -> float:
        own = predict(engine.name, mode, offsets, batch.frequencies[batch.items], index.documents, k)
        threads = thread_count() if engine.uses_cpu_threads else 1
        return float(OVERHEADS[engine.name] + max(own.sum() / threads, own.max(initial=0.0)))

    return min(engines, key=seconds)


def allowed_by_segment(index: Collection, filter: FilterLike, call: str) -> list[UInt32 | None]:
    """Return which documents may be found, a bitmap for each segment; None where all may."""
    mask = None
    if filter is not None:
        mask = filter_mask(filter, index.metadata, index.documents, call)
        if index.live is not None:  # users know of no others
            every = index.live.copy()
            every[every] = mask
            mask = every
    allowed: list[UInt32 | None] = []
    start = 0
    for segment in index.segments:
        own = segment.live
        if mask is not None:
            part = mask[start : start + segment.size]
            own = part if own is None else own & part
        allowed.append(None if own is None else bitmap(own))
        start += segment.size
    return allowed


def weigh(index: Collection, texts: pl.Series, scoring: Scoring, call: str) -> Batch:
    """Find the words of queries in all segments, and weigh them by how many documents of the index hold each."""
    phrases = take_phrases(texts, index.analyzer, call) if has_quotes(texts) else None
    words = index.analyzer.analyze(texts if phrases is None else phrases.texts)
    known = _find_words(index, words)
    if phrases is not None and phrases.words:
        known = _with_phrases(index, known, words, phrases, call)
    for own in known.numbers:
        own[known.frequencies == 0] = -1  # all its documents were deleted
    rank = np.empty(len(known.ascending), np.uint64)
    rank[known.ascending] = np.arange(len(rank), dtype=np.uint64)
    order = np.argsort(known.frequencies.astype(np.uint64) << np.uint64(32) | rank)
    owners, items, times = _entries(known.offsets, known.words, order)
    weights, bases = _worth(index, known.frequencies, scoring)
    total = np.zeros(len(texts), np.float32)
    if scoring.has_base:
        by_term = np.lexsort((rank[items], owners))  # in one order, that sums are the same to the last bit
        total = np.bincount(owners[by_term], (times * bases[items])[by_term], len(texts)).astype(np.float32)
    return Batch(
        len(texts),
        owners,
        items,
        known.numbers,
        (times * weights[items]).astype(np.float32),
        total,
        int(known.postings[items].sum()),
        known.extra,
        known.frequencies,
        words,
        phrases,
    )


class _Known(NamedTuple):
    """The distinct words of a batch, and what the segments have of each; phrases are numbered on after words."""

    offsets: Int64
    """int64 by query: where its words start."""
    words: Int64
    """int64 by place in a query: the word's number."""
    numbers: list[Int64]
    """By segment, int64 by word: its list."""
    frequencies: Int64
    postings: Int64
    """int64 by word, deleted ones too."""
    ascending: Int64
    """The words' numbers as terms ascend, then the phrases'."""
    extra: list[Lists | None]


def _find_words(index: Collection, words: QueryWords) -> _Known:
    """Find words in all segments."""
    numbers = [words.find(segment) for segment in index.segments]
    frequencies, postings = np.zeros((2, words.distinct), np.int64)
    for segment, own in zip(index.segments, numbers, strict=True):
        has = own >= 0
        frequencies[has] += segment.live_frequencies[own[has]]
        postings[has] += segment.postings.frequencies[own[has]]
    none: list[Lists | None] = [None] * len(numbers)
    return _Known(words.offsets, words.words, numbers, frequencies, postings, _ascending(words, numbers), none)


def _with_phrases(index: Collection, known: _Known, words: QueryWords, phrases: Phrases, call: str) -> _Known:
    """Find phrases, too; each segment's lists of them follow its own."""
    lists = phrase_lists(index, phrases.words, call)
    sizes = [np.diff(own.offsets) for own in lists]
    numbers = []
    for segment, own, found in zip(index.segments, sizes, known.numbers, strict=True):
        named = len(segment.postings.frequencies) + np.arange(len(own))
        numbers.append(np.append(found, np.where(own > 0, named, -1)))
    total = np.sum(sizes, axis=0)
    return _Known(
        *_join(words, phrases),
        numbers,
        np.append(known.frequencies, total),
        np.append(known.postings, total),
        np.append(known.ascending, words.distinct + np.arange(len(phrases.words))),
        [*lists],
    )


def _worth(index: Collection, frequencies: Int64, scoring: Scoring) -> tuple[Float64, Float64]:
    """Return words' weights, and what they add to all documents; 0 where no document holds one."""
    known = frequencies > 0
    weights, bases = np.zeros((2, len(known)), np.float64)
    weights[known] = scoring.weights(index.documents, frequencies[known])
    if scoring.has_base:
        bases[known] = scoring.bases(index.documents, frequencies[known])
    return weights, bases


def _join(words: QueryWords, phrases: Phrases) -> tuple[Int64, Int64]:
    """Words of queries and their phrases, which are numbered on, by query."""
    queries = len(words.offsets) - 1
    owners = np.append(np.repeat(np.arange(queries), np.diff(words.offsets)), phrases.owners)
    order = np.argsort(owners, kind="stable")
    offsets = words.offsets + np.searchsorted(phrases.owners, np.arange(queries + 1))
    return offsets, np.append(words.words, words.distinct + phrases.items)[order]


def _ascending(words: QueryWords, numbers: list[Int64]) -> Int64:
    """Return distinct words as terms ascend."""
    if len(numbers) == 1:
        return np.argsort(numbers[0])
    return pl.Series(words.strings(), dtype=pl.String).arg_sort().to_numpy().astype(np.int64)


def _entries(offsets: Int64, words: Int64, order: Int64) -> tuple[Int64, Int64, Int64]:
    """Take each distinct word of each query once: queries ascend, words stand in an order; and how often it has it."""
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    keys = np.repeat(np.arange(len(offsets) - 1) * len(order), offsets[1:] - offsets[:-1]) + place[words]
    keys.sort()
    is_first = np.ones(len(keys) + 1, np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:-1])
    firsts = np.flatnonzero(is_first)
    keys = keys[firsts[:-1]]
    owners = keys // max(len(order), 1)
    return owners, order[keys - owners * len(order)], firsts[1:] - firsts[:-1]


def find(
    index: Collection,
    batch: Batch,
    k: int,
    mode: str,
    scoring: Scoring,
    allowed: list[UInt32 | None],
    engine: Engine,
) -> Found:
    """Find the best documents of each query in all segments."""
    most = min(k, sum(segment.size for segment in index.segments))
    if most == 0 or batch.size == 0:
        return Found(np.zeros(batch.size, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))
    found = _find(index, batch, most, mode != "or", scoring, allowed, engine, None)
    if mode == "and_or":
        again = found.counts < k
        if again.any():
            found = _replace(found, _find(index, batch, most, False, scoring, allowed, engine, again), again)
    return found


def _replace(first: Found, second: Found, again: Bool) -> Found:
    """Take the documents of some queries from a second search."""
    owners = [np.repeat(np.arange(len(again)), found.counts) for found in (first, second)]
    kept = [~again[owners[0]], again[owners[1]]]
    order = np.argsort(np.concatenate([owners[0][kept[0]], owners[1][kept[1]]]), kind="stable")
    return Found(
        np.where(again, second.counts, first.counts),
        np.concatenate([first.documents[kept[0]], second.documents[kept[1]]])[order],
        np.concatenate([first.scores[kept[0]], second.scores[kept[1]]])[order],
    )


def _find(
    index: Collection,
    batch: Batch,
    k: int,
    require_all: bool,
    scoring: Scoring,
    allowed: list[UInt32 | None],
    engine: Engine,
    chosen: Bool | None,
) -> Found:
    parts = []
    start = 0
    for number, segment in enumerate(index.segments):
        queries = batch.queries(number, require_all, chosen)
        if len(queries.lists):
            ready = prepare_segment(index, number, scoring, engine, not require_all)
            own = min(k, segment.size)
            parts += [
                _in_segment(ready, part, own, require_all, allowed[number], batch.extra[number], engine, first, start)
                for first, part in _cut(queries, max(1, MAX_PLACES // own))
            ]
        start += segment.size
    return _merge(parts, batch, k)


def _cut(queries: Queries, size: int) -> Iterable[tuple[int, Queries]]:
    """Cut a batch into several of so many queries, each with the number of its first one."""
    count = len(queries.offsets) - 1
    if count <= size:
        yield 0, queries
        return
    for first in range(0, count, size):
        offsets = queries.offsets[first : first + size + 1]
        own = slice(offsets[0], offsets[-1])
        yield first, Queries(offsets - offsets[0], queries.lists[own], queries.weights[own])


def _in_segment(
    ready: Prepared,
    queries: Queries,
    k: int,
    require_all: bool,
    allowed: UInt32 | None,
    extra: Lists | None,
    engine: Engine,
    first: int,
    start: int,
) -> tuple[Int64, Int64, Float32]:
    """Search one segment; returns queries, documents among those of all segments, and scores."""
    kernels = engine.kernels
    with closing(ready.bring(queries)) as brought:  # an error's traceback must not hold what it holds
        parts = [
            [
                kernels.to_host(array)
                for array in kernels.search(
                    postings, ready.norms, ready.bounds, part, k, require_all, allowed=allowed, extra=extra
                )
            ]
            for postings, part in brought
        ]
    counts, documents, scores = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
    filled = np.arange(k) < counts[:, None]
    return (
        np.repeat(np.arange(first, first + len(counts)), counts),
        documents[filled].astype(np.int64) + start,
        scores[filled],
    )


def _merge(parts: list[tuple[Int64, Int64, Float32]], batch: Batch, k: int) -> Found:
    """Join what segments gave: the best of each query, with what its words add to all documents.

    That is added last: in float32 a large one makes scores equal, and which are best would depend on k and segments.
    """
    none: tuple[Int64, Int64, Float32] = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))
    owners, documents, scores = (np.concatenate(arrays) for arrays in zip(none, *parts, strict=True))
    if len(batch.numbers) > 1:
        order = np.lexsort((documents, -scores, owners))
        owners, documents, scores = owners[order], documents[order], scores[order]
    counts = np.bincount(owners, minlength=batch.size)
    ranks = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    if len(ranks) and ranks.max() >= k:
        kept = ranks < k
        owners, documents, scores, counts = owners[kept], documents[kept], scores[kept], np.minimum(counts, k)
    return Found(counts, documents, scores + batch.bases[owners])


def frame(index: Collection, found: Found) -> pl.DataFrame:
    """Return results as a frame."""
    counts = found.counts
    starts = np.repeat(np.cumsum(counts) - counts - 1, counts)
    ranks = (np.arange(len(starts)) - starts).astype(np.uint32)
    owners = np.repeat(np.arange(len(counts), dtype=np.uint32), counts)
    ids = index.stored.ids[_series("place", found.documents)]
    return pl.DataFrame(
        [_series("query", owners), _series("rank", ranks), ids.alias("id"), _series("score", found.scores)]
    )


def _series(name: str, numbers: npt.NDArray[Any]) -> pl.Series:
    if len(numbers) < FEW:
        return pl.Series(name, numbers.tolist(), _TYPES[numbers.dtype.name])
    return from_arrow(name, to_arrow(numbers))
