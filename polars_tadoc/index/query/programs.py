"""The short way of queries with syntax on an index of one segment: programs by shape, answered in one kernel."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from polars_tadoc.engine.choose import CPU, runnable
from polars_tadoc.index.collection import Collection
from polars_tadoc.index.language.ideographs import joins_ideographs
from polars_tadoc.index.language.parse import may_have_syntax
from polars_tadoc.index.query.expand import MAX_WORDS
from polars_tadoc.index.query.plan import segment_table
from polars_tadoc.index.query.prepared import prepare_segment
from polars_tadoc.index.query.rank import Found
from polars_tadoc.index.query.read import fields_of, has_marks, with_syntax
from polars_tadoc.index.query.request import Request
from polars_tadoc.index.query.segment_text import flat_text
from polars_tadoc.index.query.shapes import ANY_WORDS, Shape, shape_of, with_split_words
from polars_tadoc.index.query.shapes import MAX_WORDS as MAX_TEXTS
from polars_tadoc.kernels.host.rows.programs import (
    BATCH,
    GIVEN,
    LINE_FEED,
    MAX_LISTS,
    MAX_PHRASE,
    MAX_SEGMENT,
    NOT_HERE,
    NUMBERS,
    WORK,
    answer_programs,
)
from polars_tadoc.kernels.host.rows.spelling import table_size
from polars_tadoc.kernels.postings.decode_cpu import addresses_of
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.search.arguments_cpu import BLOCK_SIZE, packed
from polars_tadoc.kernels.search.programs_cpu import SETS, WORDS
from polars_tadoc.kernels.search.search_cpu import search_function
from polars_tadoc.kernels.search.workspace_cpu import thread_rooms
from polars_tadoc.runtime.array_types import Bools, Float32, Int64, UInt32, UInt64
from polars_tadoc.runtime.parallel import even_chunks, map_parallel
from polars_tadoc.scoring.bm25 import Scoring

MAX_BYTES = 512
"""Bytes of a query up to which it may take the short way."""

MAX_K = 1024
"""The same for results."""

MAX_PHRASE_DOCUMENTS = 4
"""Room for documents with phrases: this many times those of the segment."""

AT_ONCE = 4096
"""Queries of a call of the kernel."""

MAX_HITS = 1 << 24
"""Room for the documents that a call of the kernel lists."""

CHUNK = 32
"""Queries of a task."""

KEPT = 32
"""Entries that an index keeps for single queries, by scoring and by request; the oldest is dropped."""

Given = tuple[UInt64, tuple[Any, ...]]
Shaped = tuple[list[str], Shape]
"""The words and phrases of a query, and its shape."""


class _Rooms:
    """Work space of a thread, which queries overwrite."""

    def __init__(self) -> None:
        self.text, self.shape = np.empty((2, MAX_BYTES), np.uint8)
        self.documents, self.scores = np.empty(MAX_K, np.int64), np.empty(MAX_K, np.float32)
        self.counts = np.zeros(2, np.int64)
        self.arrays = (
            np.empty(MAX_BYTES, np.uint8),
            np.empty(10 * MAX_BYTES + 20, np.int64),
            np.empty(NUMBERS, np.int64),
            np.empty(8 * MAX_LISTS, np.uint64),
            np.empty(MAX_LISTS, np.float32),
            np.empty(MAX_LISTS, np.uint32),
            np.empty(MAX_TEXTS * MAX_PHRASE, np.uint32),
            np.empty(MAX_WORDS, np.uint64),
            np.empty(table_size(MAX_BYTES), np.int64),
        )
        self.others = np.empty(MAX_PHRASE * MAX_PHRASE, np.uint8), np.empty(SETS * WORDS, np.uint64)
        self.search = np.empty(BLOCK_SIZE, np.uint64), np.empty(2 * MAX_K + 10 * MAX_LISTS + 1, np.uint64)
        self.spelled, self.extra = np.empty(0, np.int64), np.empty((2, 0), np.uint32)
        self.every = np.empty(0, np.uint64)
        self.single = (
            np.empty(MAX_BYTES, np.uint8),
            np.zeros(2, np.int64),
            np.zeros(1, np.int64),
            np.zeros(2, np.int64),
            _NO_CODES,
            _NO_MASK,
            self.counts[:1],
            self.counts[1:],
            np.empty(MAX_K, np.uint32),
            self.scores.view(np.uint32),
            _NO_MASK,
        )
        self.batch = packed(self.single, BATCH, (0,))
        self.typed, self.numbers, self.is_taken = self.text.data, self.counts.data, False
        """``is_taken``: a query uses it; one of a signal's handler, which interrupts that, makes its own work space."""

    def all(self, terms: int, documents: int) -> UInt64:
        """Return all arrays as the kernel takes them, for a segment of some terms and documents."""
        if len(self.spelled) < 2 * terms or self.extra.shape[1] < MAX_PHRASE_DOCUMENTS * documents + MAX_BYTES:
            self.spelled = np.empty(2 * terms, np.int64)
            self.extra = np.empty((2, MAX_PHRASE_DOCUMENTS * documents + MAX_BYTES), np.uint32)
            own = self.text, self.shape, self.documents
            every = (*self.arrays, self.spelled, *self.others, *self.extra, *self.search, *thread_rooms(), *own)
            self.every = packed(every, WORK)
        return self.every


class _Threads(threading.local):
    """The work space of this thread."""

    def __init__(self) -> None:
        self.rooms = _Rooms()


_NO_CODES, _NO_MASK = np.zeros(0, np.int64), np.zeros(0, np.uint32)
this_thread, _keeping = _Threads(), threading.Lock()


def shape_for(index: Collection, text: str, fields: tuple[str, ...], requires: bool) -> Shaped | None:
    """Return the words of a query and its shape, if it may take the short way."""
    return shape_of(text, fields, requires) if _is_short(index, text) else None


def _is_short(index: Collection, text: str) -> bool:
    """Tell whether a query is short enough, and means what its words say."""
    if len(text) << 2 > MAX_BYTES and (len(text) > MAX_BYTES or len(text.encode()) > MAX_BYTES):
        return False
    return not (index.analyzer.joins_ideographs and joins_ideographs(text))


def takes(index: Collection, scoring: Scoring, k: int, asked: str) -> bool:
    """Tell whether queries of an index may take the short way."""
    return k <= MAX_K and not scoring.has_base and _is_open(index, asked)


def _is_open(index: Collection, asked: str) -> bool:
    known: bool | None = index.short_ways.get(asked)
    if known is None:
        known = _opens(index, asked)
        keep(index.short_ways, asked, known)
    return known


def _opens(index: Collection, asked: str) -> bool:
    if len(index.segments) != 1 or not index.analyzer.tokenizer.has_classes:
        return False
    (segment,) = index.segments
    if index.fields is not None or segment.size > MAX_SEGMENT or len(segment.terms) > MAX_SEGMENT:
        return False
    return asked == "cpu" or (asked == "auto" and len(runnable("auto")) == 1)


class Answer(NamedTuple):
    """Results of queries."""

    found: Int64
    """By query its number of best documents, negative if it can't take the short way."""
    documents: UInt32
    scores: Float32
    """``documents``, ``scores``: by query, its best documents and their scores."""
    totals: Int64
    """By query the number of all documents, if they were counted."""
    hits: UInt32
    """By query all documents, if they were asked for."""


def run(
    index: Collection,
    queries: Sequence[Shaped],
    scoring: Scoring,
    k: int,
    allowed: UInt32 | None,
    whole: bool = False,
    lists: bool = False,
) -> Answer:
    """Answer queries; ``whole`` counts all of their documents, ``lists`` also lists them."""
    segment, size = index.segments[0], len(queries)
    documents_held = segment.size
    k = min(k, documents_held)
    texts, shapes = [_text_of(*query) for query in queries], [shape for _, shape in queries]
    data = b"".join(texts)
    phrases, spells = any(shape.phrases for shape in shapes), any(shape.spells for shape in shapes)
    given = prepared(index, scoring, data.isascii(), spells, phrases)
    own = this_thread.rooms
    if size == 1 and not (lists or own.is_taken):
        return _run_one(own, data, shapes[0], given, (len(segment.terms), documents_held), k, allowed, whole)
    found, totals, documents = np.empty(size, np.int64), np.empty(size, np.int64), np.empty((size, k), np.uint32)
    scores, hits = np.empty((size, k), np.uint32), np.empty((size, documents_held if lists else 0), np.uint32)
    mask, terms = _NO_MASK if allowed is None else allowed, len(segment.terms)
    results = found, totals, documents.ravel(), scores.ravel(), hits.ravel()
    arrays = np.frombuffer(data, np.uint8), *_batch(texts, shapes), mask, *results
    batch = packed(arrays, BATCH, (hits.shape[1],))

    def answer(chunk: tuple[int, int]) -> None:
        own = this_thread.rooms
        own = _Rooms() if own.is_taken else own
        own.is_taken = True
        try:
            answer_programs(given[0], own.all(terms, documents_held), batch, _NO_SHAPES, *chunk, -1, k, whole)
        finally:
            own.is_taken = False

    map_parallel(answer, [(0, 1)] if size == 1 else even_chunks(size, CHUNK, 4))
    return Answer(found, documents, scores.view(np.float32), totals, hits)


def _run_one(
    own: _Rooms,
    data: bytes,
    shape: Shape,
    given: Given,
    sizes: tuple[int, int],
    k: int,
    allowed: UInt32 | None,
    whole: bool,
) -> Answer:
    """Answer one query in the arrays of the thread: addresses of eleven new ones take longer than most searches."""
    batch, program = own.batch.copy(), shape.program
    batch[8], batch[9] = program.ctypes.data, len(program)
    if allowed is not None:
        batch[10], batch[11] = allowed.ctypes.data, len(allowed)
    own.is_taken = True
    try:
        own.single[0].data[: len(data)] = data
        own.single[1][1], own.single[3][:] = len(data), shape.ends
        own.single[1][0] = 0
        answer_programs(given[0], own.all(*sizes), batch, _NO_SHAPES, 0, 1, -1, k, whole)
        documents, scores = own.single[8][:k].reshape((1, k)).copy(), own.scores[:k].reshape((1, k)).copy()
        return Answer(own.counts[:1].copy(), documents, scores, own.counts[1:].copy(), np.empty((1, 0), np.uint32))
    finally:
        own.is_taken = False


def _text_of(words: list[str], shape: Shape) -> bytes:
    """Return the words and phrases of a query as the kernel reads them."""
    text = _BETWEEN.join(words) if len(words) > 1 else words[0]
    return (text.replace('"', "") if shape.phrases else text).encode()


def run_one(
    index: Collection,
    query: str,
    requires: bool,
    scoring: Scoring,
    k: int,
    allowed: UInt32 | None,
    whole: bool = False,
    shaped: Shaped | None = None,
) -> Answer | None:
    """Answer one query, whose shape may be known, by :func:`run`; None if it can't take the short way."""
    for _ in range(2):
        shaped = shaped or shape_for(index, query, fields_of(index), requires)
        if shaped is None:
            return None
        found = run(index, [shaped], scoring, k, allowed, whole)
        if found.found[0] >= 0:
            return found
        again = with_split_words(index, query, shaped[1])
        if again is None:
            return None
        query, shaped = again, None
    return None


def _batch(texts: list[bytes], shapes: list[Shape]) -> tuple[Int64, Int64, Int64, Int64]:
    """Return where each query's text begins, the number of its program, and the programs."""
    known = {id(shape): shape.program for shape in shapes}
    numbers = {key: number for number, key in enumerate(known)}
    kinds = np.array([numbers[id(shape)] for shape in shapes], np.int64)
    return (
        running_sum(np.array([*map(len, texts)])),
        kinds,
        running_sum(np.array([*map(len, known.values())])),
        np.concatenate([*known.values()]),
    )


def prepared(
    index: Collection, scoring: Scoring, is_ascii: bool, spells: bool, phrases: bool, marks: bool = True
) -> Given:
    """Return what the kernel reads of an index, and the arrays at these addresses, to be kept meanwhile."""
    kept, key = index.short_ways, (scoring, is_ascii, spells, phrases, marks)
    given: Given | None = kept.get(key)
    if given is None:
        (segment,), ready = index.segments, prepare_segment(index, 0, scoring, CPU, True)
        page_of, pages, firsts, widths, maps, lowers, *stop_words, lower_case = index.analyzer.cutting(is_ascii)
        arrays = (
            page_of,
            pages,
            *stop_words,
            lower_case,
            *segment.sought,
            segment.live_frequencies,
            segment_table(scoring, index.documents, segment)[0],
            addresses_of(segment.postings),
            ready.norms,
            ready.bounds,
            *(segment.bitmaps if marks else _NO_BITMAPS),
            *(segment.spelled if spells else _NO_SPELLED),
            *((flat_text(index, 0) if phrases else None) or _NO_TEXT),
            _NO_MASK if segment.deleted is None else segment.deleted,
        )
        functions = search_function(False), search_function(True)
        numbers = firsts, widths, maps, lowers, index.analyzer.morphism is not None, *functions
        given = packed(arrays, GIVEN, numbers), arrays
        keep(kept, key, given)
    return given


def keep(kept: dict[Any, Any], key: Any, value: Any) -> None:
    """Add an entry to those that an index keeps for single queries."""
    with _keeping:
        while len(kept) >= KEPT:
            del kept[next(iter(kept))]
        kept[key] = value


def top_and_count(index: Collection, text: str, request: Request, allowed: UInt32 | None, asked: str) -> Answer | None:
    """Find the best documents of a query and count all; None if it can't take the short way."""
    if not takes(index, request.scoring, min(request.k, index.documents), asked):
        return None
    if not _is_of_words(text, request):
        return None if request.syntax != "lenient" else run_one(
            index, text, request.mode == "and", request.scoring, request.k, allowed, True
        )  # fmt: skip
    if not _is_short(index, text):
        return None
    found = run(index, [([text], ANY_WORDS)], request.scoring, request.k, allowed, True)
    return found if found.found[0] >= 0 else None


def _is_of_words(text: str, request: Request) -> bool:
    """Tell whether a query is words of which any may be found."""
    if request.mode != "or" or request.syntax == "strict" or not text or "\n" in text:
        return False
    return request.syntax == "plain" or not (has_marks(text.encode()) and may_have_syntax(text))


class Whole(NamedTuple):
    """All documents of the queries of a batch that take the short way."""

    taken: Bools
    found: Found
    totals: Int64
    hits: tuple[Int64, Int64]
    """The query of each document, ascending, and the document, if they were asked for."""


def find_whole(
    index: Collection, texts: pl.Series, request: Request, allowed: UInt32 | None, asked: str, lists: bool
) -> Whole | None:
    """Find the best documents of queries and count all, or list them; None if no query takes the short way."""
    k = min(request.k, index.documents)
    if request.mode == "and_or" or request.syntax == "strict" or not takes(index, request.scoring, k, asked):
        return None
    fields, requires, own = fields_of(index), request.mode == "and", list[tuple[int, Shaped]]()
    for row, text in enumerate(texts.to_list()):
        shaped = None
        if text and _is_of_words(text, request):
            shaped = ([text], ANY_WORDS) if _is_short(index, text) else None
        elif text and request.syntax == "lenient":
            shaped = shape_for(index, text, fields, requires)
        if shaped is not None:
            own.append((row, shaped))
    size = index.segments[0].size
    counts, totals = np.full((2, len(texts)), NOT_HERE)
    documents, bits = np.zeros((2, len(texts), k), np.uint32)
    scores, owners, hits = bits.view(np.float32), [_NO_HITS], [_NO_HITS]
    at_once = max(1, min(AT_ONCE, MAX_HITS // max(size, 1))) if lists else AT_ONCE
    for part in (own[first : first + at_once] for first in range(0, len(own), at_once)):
        rows = np.array([row for row, _ in part])
        found = run(index, [shaped for _, shaped in part], request.scoring, k, allowed, True, lists)
        counts[rows], documents[rows], scores[rows], totals[rows] = found[:4]
        if lists:
            sizes = np.where(found.found < 0, 0, found.totals)
            owners.append(np.repeat(rows, sizes))
            hits += [found.hits[place, :count].astype(np.int64) for place, count in enumerate(sizes.tolist())]
    taken, filled = counts >= 0, np.arange(k) < counts[:, None]
    best = Found(np.maximum(counts, 0), documents[filled], scores[filled])
    listed = np.concatenate(owners), np.concatenate(hits)
    return Whole(taken, best, np.where(taken, totals, 0), listed) if own else None


def find_short(
    index: Collection, texts: pl.Series, request: Request, allowed: UInt32 | None, asked: str
) -> tuple[Found, Bools] | None:
    """Find the best documents of the queries of a batch that take the short way, and tell which do; None if none does.

    Queries are read in ``mode``; "and_or" is "and", then "or" for queries with too few results.
    """
    k = min(request.k, index.documents)
    if request.syntax != "lenient" or not takes(index, request.scoring, k, asked):
        return None
    places = with_syntax(texts)
    if not places:
        return None
    strings, fields = texts.gather(places).to_list(), fields_of(index)
    counts, (documents, bits) = np.full(len(places), NOT_HERE), np.zeros((2, len(places), k), np.uint32)
    scores = bits.view(np.float32)
    for is_again, requires in enumerate({"and": (True,), "or": (False,), "and_or": (True, False)}[request.mode]):
        own = [
            (row, shaped)
            for row, text in enumerate(strings)
            if (0 <= counts[row] < request.k if is_again else True)
            and (shaped := shape_for(index, text, fields, requires))
        ]
        for part in (own[first : first + AT_ONCE] for first in range(0, len(own), AT_ONCE)):
            rows = [row for row, _ in part]
            found = run(index, [shaped for _, shaped in part], request.scoring, k, allowed)
            counts[rows], documents[rows], scores[rows] = found[:3]
    taken, all_counts = np.zeros(len(texts), np.bool_), np.zeros(len(texts), np.int64)
    taken[places], all_counts[places] = counts >= 0, np.maximum(counts, 0)
    filled = np.arange(k) < counts[:, None]
    return Found(all_counts, documents[filled], scores[filled]), taken


_BETWEEN = chr(LINE_FEED)
_NO_HITS: Int64 = np.zeros(0, np.int64)
_NO_SHAPES = np.zeros(0, np.uint64)
_NO_SPELLED = np.zeros(0, np.int64), np.zeros(0, np.uint32), *np.zeros((3, 0), np.uint64), np.zeros(0, np.uint32)
_NO_BITMAPS = np.zeros(0, np.int64), np.zeros(0, np.uint64)
_NO_TEXT = np.zeros(0, np.int64), np.zeros(0, np.uint32)
