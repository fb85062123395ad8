"""Single queries of an index of one segment: one call of a kernel reads the text, searches, and ranks.

The kernel cuts the text as :mod:`.shapes` does, and finds its program in a table of shapes; a new shape is parsed once.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from polars_tadoc.engine.choose import require_engine
from polars_tadoc.index.collection import Collection
from polars_tadoc.index.query import programs
from polars_tadoc.index.query.programs import MAX_BYTES, Given, keep, prepared, this_thread
from polars_tadoc.index.query.read import fields_of
from polars_tadoc.index.query.request import Request
from polars_tadoc.index.query.results import ids_of
from polars_tadoc.index.query.segment_text import flat_text
from polars_tadoc.index.query.shapes import ANY_WORDS, outline_of
from polars_tadoc.kernels.host.rows.programs import NEW_SHAPE, SHAPES, answer_programs
from polars_tadoc.kernels.host.rows.query_shapes import COLONS, PLAIN, WHOLE
from polars_tadoc.kernels.host.rows.query_words import number_words
from polars_tadoc.kernels.primitives.lists import running_sum
from polars_tadoc.kernels.search.arguments_cpu import packed
from polars_tadoc.runtime.array_types import Int64

MAX_SHAPES = 256
"""Shapes of a table; a full one begins anew."""

UNMARKED = 16
"""Queries of a new index that are answered without bitmaps of its long lists: making them takes longer than one."""

Best = tuple[npt.NDArray[Any], npt.NDArray[np.float32], int]
"""Ids and scores of the best documents, and the number of all, 0 if they were not counted."""


class _Shapes:
    """A table of shapes and their programs; threads may read it while it grows."""

    def __init__(self, requires: bool, reads: int) -> None:
        self._requires, self._reads, self._lock = requires, reads, threading.Lock()
        self._known = {b"": ANY_WORDS.program}
        self.given = self._packed()

    def add(self, text: str) -> None:
        """Add the shape of a query."""
        outline, program = outline_of(text, self._requires)
        with self._lock:
            if len(self._known) >= MAX_SHAPES:
                self._known = {b"": ANY_WORDS.program}
            self._known[outline] = program
            self.given = self._packed()

    def _packed(self) -> Given:
        outlines, codes = [*self._known], [*self._known.values()]
        data, ends = np.frombuffer(b"".join(outlines) or b" ", np.uint8), running_sum(np.array([*map(len, outlines)]))
        spans = np.stack([ends[:-1], ends[1:]], 1).ravel()
        slots = np.empty(1 << (2 * len(outlines) + 1).bit_length(), np.int64)
        number_words(data, spans, slots, np.empty(len(outlines), np.int64), np.empty_like(spans))
        code_ends: Int64 = running_sum(np.array([*map(len, codes)]))
        arrays = slots, spans, data, code_ends, np.concatenate(codes)
        return packed(arrays, SHAPES, (self._reads,)), arrays


_shapes = cache(_Shapes)


class _Way(NamedTuple):
    """Arrays and numbers that single queries of a request read."""

    k: int
    terms: int
    documents: int
    numbers: npt.NDArray[Any] | None
    """Ids, if they are numbers."""
    has_text: bool
    spells: bool
    unmarked: list[None]
    """An item for each query that is still answered without the bitmaps of long lists."""
    given: tuple[Given, Given]
    """For any text, and for one of ASCII."""
    shapes: _Shapes


def answer(index: Collection, query: str, request: Request, engine: str | None, whole: bool) -> Best | None:
    """Find the best documents for one query, and count all, or not; None if it takes another way."""
    asked = "cpu" if engine == "cpu" else require_engine(engine)
    way: _Way | None = index.short_ways.get((request, asked), _UNKNOWN)
    if way is _UNKNOWN:
        way = _way(index, request, asked)
    own = this_thread.rooms
    if way is None or own.is_taken:  # a signal's handler may search while this thread does
        return None
    try:
        data, is_ascii = query.encode(), query.isascii()
    except (AttributeError, UnicodeEncodeError):
        return None
    size = len(data)
    if not 0 < size <= MAX_BYTES:
        return None
    own.is_taken = True
    try:
        own.typed[:size] = data
        work = own.all(way.terms, way.documents)
        for _ in range(_TRIES):
            given, shapes = way.given[is_ascii], way.shapes.given
            count = answer_programs(given[0], work, own.batch, shapes[0], 0, 1, size, way.k, whole)
            if count >= 0:
                if way.unmarked:
                    _without_bitmaps(index, request, asked, way)
                if way.k == 0:
                    return _NO_IDS, _NO_SCORES, own.numbers[1]
                documents = own.documents[:count]
                ids = ids_of(index.stored, documents) if way.numbers is None else way.numbers.take(documents)
                return ids, own.scores[:count].copy(), own.numbers[1] if whole else 0
            if count == NEW_SHAPE:
                way.shapes.add(query)
            elif "~" in query and not way.spells and '"' not in query:
                way = _way(index, request, asked, way.has_text, True)
                assert way is not None
            elif way.has_text or '"' not in query or flat_text(index, 0) is None:
                return None
            else:
                way = _way(index, request, asked, True, way.spells)
                assert way is not None
        return None
    finally:
        own.is_taken = False


def _without_bitmaps(index: Collection, request: Request, asked: str, way: _Way) -> None:
    """Count a query; after ``UNMARKED``, bitmaps pay for themselves."""
    del way.unmarked[-1:]
    if not way.unmarked:
        index.segments[0].bitmaps  # noqa: B018 - makes them
        _way(index, request, asked, way.has_text, way.spells)


def _way(index: Collection, request: Request, asked: str, has_text: bool = False, spells: bool = False) -> _Way | None:
    """Return the way of single queries of a request; None where they take another."""
    k, mode, plain = min(request.k, index.documents), request.mode, request.syntax == "plain"
    made = None
    if (
        programs.takes(index, request.scoring, k, asked)
        and index.live is None
        and not index.analyzer.joins_ideographs
        and (mode == "or" or (mode == "and" and not plain))
        and request.syntax != "strict"
    ):
        (segment,) = index.segments
        marks = "bitmaps" in segment.__dict__
        given = [prepared(index, request.scoring, is_ascii, spells, has_text, marks) for is_ascii in (False, True)]
        reads = WHOLE * (mode == "or") + PLAIN * plain + COLONS * bool(fields_of(index))
        numbers = index.stored.id_numbers if k else None
        shapes = _shapes(mode == "and", reads)
        unmarked: list[None] = [] if marks else [None] * UNMARKED
        sizes = min(k, segment.size), len(segment.terms), segment.size
        made = _Way(*sizes, numbers, has_text, spells, unmarked, (given[0], given[1]), shapes)
    keep(index.short_ways, (request, asked), made)
    return made


_TRIES = 4
_UNKNOWN: Any = object()
_NO_IDS, _NO_SCORES = np.zeros(0, np.uint32), np.zeros(0, np.float32)
