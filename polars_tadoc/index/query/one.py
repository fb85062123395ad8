"""The short way of one query of an index of one segment: one kernel from its bytes to documents and scores."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from polars_tadoc.engine.choose import CPU
from polars_tadoc.index.collection import Collection
from polars_tadoc.index.language.ideographs import joins_ideographs
from polars_tadoc.index.language.parse import may_have_syntax
from polars_tadoc.index.query import programs
from polars_tadoc.index.query.costs import edge_of
from polars_tadoc.index.query.plan import segment_table
from polars_tadoc.index.query.prepared import prepare_segment
from polars_tadoc.index.query.rank import Found
from polars_tadoc.index.query.read import fields_of, has_marks, read_one
from polars_tadoc.index.query.request import Request, with_mode
from polars_tadoc.index.query.trees import ALL, ANY, BY_MODE
from polars_tadoc.kernels.host.rows.one_query import NOT_HERE, answer_words
from polars_tadoc.kernels.postings.decode_cpu import addresses_of
from polars_tadoc.kernels.search.arguments_cpu import BLOCK_SIZE
from polars_tadoc.kernels.search.search_cpu import search_function
from polars_tadoc.kernels.search.workspace_cpu import thread_rooms
from polars_tadoc.runtime.array_types import UInt32

MAX_BYTES = 512
"""Bytes of a query up to which it may take the short way."""

MAX_K = 1024
"""The same for results."""


class _Rooms(threading.local):
    """Work space of a thread, which queries leave as they find it, or overwrite."""

    def __init__(self) -> None:
        self.arrays = (
            np.empty(MAX_BYTES, np.uint8),
            np.empty(12 * MAX_BYTES + 20, np.int64),
            np.empty(MAX_BYTES + 1, np.float32),
            np.empty(MAX_BYTES, np.uint32),
            np.empty(2 * MAX_K, np.uint32),
            np.empty(BLOCK_SIZE, np.uint64),
            np.empty(2 * MAX_K + 10 * MAX_BYTES + 1, np.uint64),
            *thread_rooms(),
        )


_rooms = _Rooms()


def find_one(index: Collection, query: str, request: Request, allowed: list[UInt32 | None], asked: str) -> Found | None:
    """Find the best documents for one query on the CPU; None where it takes the way of many."""
    try:
        data = query.encode()
    except UnicodeEncodeError:
        return None
    if not 0 < len(data) <= MAX_BYTES or request.syntax == "strict":
        return None
    if not query.isascii() and index.analyzer.joins_ideographs and joins_ideographs(query):
        query, join, tree = read_one(query, fields_of(index), request.syntax, True)
        if tree is not None:
            return None
        request = request if join == BY_MODE else with_mode(request, "and" if join == ALL else "or")
        data = query.encode()
    elif request.syntax == "lenient" and has_marks(data):
        fields = fields_of(index)
        shaped = programs.shape_for(index, query, fields, request.mode != "or")
        if shaped is None and may_have_syntax(query):
            return None
        if shaped is not None:
            words, how = shaped[0], shaped[1].join
            if how is None or (how == ANY and not all(map(str.isalnum, words))):
                return _by_program(index, query, request, allowed[0], asked, shaped)
            request = request if how == BY_MODE else with_mode(request, "and" if how == ALL else "or")
            data = " ".join(words).encode()
    known = index.short_ways.get(request) or _prepared(index, request)
    given, k = known
    if given is None or asked == "gpu":
        return None
    documents, scores = np.empty(k, np.int64), np.empty(k, np.float32)
    mask, edge = allowed[0], edge_of(request.mode) if asked == "auto" else _NO_EDGE
    count = answer_words(
        np.frombuffer(data, np.uint8),
        index.analyzer.morphism is not None,
        *index.analyzer.cutting(query.isascii()),
        *given,
        _ALL if mask is None else mask,
        edge,
        *_rooms.arrays,
        documents,
        scores,
    )
    if count == NOT_HERE:
        return None
    if count != k:
        documents, scores = documents[:count], scores[:count]
    return Found(np.array([count]), documents, scores)


def _by_program(
    index: Collection, query: str, request: Request, allowed: UInt32 | None, asked: str, shaped: programs.Shaped
) -> Found | None:
    """Answer a query with syntax; "and_or" is "and", then "or" if that finds too little."""
    k, scoring = min(request.k, index.documents), request.scoring
    if not programs.takes(index, scoring, k, asked):
        return None
    found = programs.run_one(index, query, request.mode != "or", scoring, k, allowed, shaped=shaped)
    if found is not None and request.mode == "and_or" and found.found[0] < request.k:
        found = programs.run_one(index, query, False, scoring, k, allowed)
    if found is None:
        return None
    count = found.found.item()
    return Found(found.found, found.documents[0, :count], found.scores[0, :count])


def _prepared(index: Collection, request: Request) -> tuple[Any, int]:
    """Return what the kernel reads, None where the index or the request is not for it; and the number of results."""
    analyzer, given, k = index.analyzer, None, min(request.k, index.documents)
    if len(index.segments) == 1 and analyzer.tokenizer.has_classes and k <= MAX_K:
        (segment,), ready = index.segments, prepare_segment(index, 0, request.scoring, CPU, True)
        given = (
            *segment.sought,
            segment.live_frequencies,
            *segment_table(request.scoring, index.documents, segment),
            addresses_of(segment.postings),
            ready.norms,
            ready.bounds,
            _NO_LISTS,
            request.mode != "or",
            search_function(request.mode != "or"),
            search_function(False) if request.mode == "and_or" else 0,
        )
    programs.keep(index.short_ways, request, (given, k))
    return given, k


_NO_EDGE, _ALL, _NO_LISTS = np.zeros(0), np.zeros(0, np.uint32), np.zeros(1, np.int64)
