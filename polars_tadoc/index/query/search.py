"""The stages of a search: analyse and plan, find in each segment, rank, name documents.

Each stage is a module: :mod:`.request` checks arguments, :mod:`.analyzer` tokenizes queries, :mod:`.plan` finds and
weighs their lists, :mod:`.find` searches the segments, :mod:`.rank` merges the results, and :mod:`.results` names
documents.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_tadoc.engine.choose import require_engine
from polars_tadoc.index.collection import Collection
from polars_tadoc.index.query.costs import choose_engine, correct
from polars_tadoc.index.query.direct import answer
from polars_tadoc.index.query.filter import allowed_by_segment
from polars_tadoc.index.query.find import find
from polars_tadoc.index.query.one import find_one
from polars_tadoc.index.query.pages import Facets, Page, facets_of, hits_of, paged, with_k
from polars_tadoc.index.query.plan import Plan, plan
from polars_tadoc.index.query.programs import Whole, find_short, find_whole, top_and_count
from polars_tadoc.index.query.rank import Found, replaced
from polars_tadoc.index.query.request import FilterLike, QueriesLike, Request, as_texts
from polars_tadoc.index.query.results import as_frame, ids_of
from polars_tadoc.index.segment import Segment
from polars_tadoc.kernels.postings.decode_cpu import decode_lists
from polars_tadoc.runtime.array_types import Bools, Int64, UInt32
from polars_tadoc.runtime.interrupts import interruptible
from polars_tadoc.scoring.bm25 import Scoring


def search(
    index: Collection, queries: QueriesLike, request: Request, filter: FilterLike, engine: str | None
) -> pl.DataFrame:
    """Answer :meth:`polars_tadoc.index.index.Index.search`."""
    with interruptible():
        return as_frame(index.stored, _best(index, queries, request, filter, engine, "search"))


def search_page(
    index: Collection, queries: QueriesLike, request: Request, filter: FilterLike, engine: str | None, page: Page
) -> tuple[pl.DataFrame, Facets]:
    """Answer :meth:`polars_tadoc.index.index.Index.search` where it asks for more than the best documents."""
    with interruptible():
        size, k = len(index.stored), request.k
        texts = as_texts(queries, "search")
        texts = pl.Series("query", [texts], pl.String) if isinstance(texts, str) else texts
        wanted = with_k(request, size if page.wants_all else min(page.offset + k, size))
        if not page.counts_hits:
            found = _best(index, texts, wanted, filter, engine, "search")
            return paged(index, found, page, k, None), {}
        allowed, lists = allowed_by_segment(index, filter, "search"), page.facets is not None
        short = find_whole(index, texts, wanted, allowed[0] if allowed else None, require_engine(engine), lists)
        found, totals, hits = _whole(index, texts, wanted, filter, engine, allowed, short)
        return paged(index, found, page, k, totals), facets_of(index, page.facets or (), hits)


def _whole(
    index: Collection,
    texts: pl.Series,
    request: Request,
    filter: FilterLike,
    engine: str | None,
    allowed: list[UInt32 | None],
    short: Whole | None,
) -> tuple[Found, Int64, tuple[Int64, Int64]]:
    """Return the best documents, the number of all, and all of them, beside those that the short way found."""
    if short is not None and short.taken.all():
        return short.found, short.totals, short.hits
    rest = texts if short is None else texts.set(pl.Series(short.taken), "")
    found = _best(index, rest, request, filter, engine, "search")
    planned = plan(index, rest, request.scoring, "search", request.mode, request.syntax)
    owners, documents = hits_of(index, planned, request.mode == "and", allowed)
    totals = np.bincount(owners, minlength=len(texts))
    if short is None:
        return found, totals, (owners, documents)
    owners, documents = np.append(owners, short.hits[0]), np.append(documents, short.hits[1])
    order = np.argsort(owners, kind="stable")
    hits = owners[order], documents[order]
    return replaced(found, short.found, short.taken), np.where(short.taken, short.totals, totals), hits


def top(
    index: Collection, query: str, request: Request, filter: FilterLike, engine: str | None
) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
    """Answer :meth:`polars_tadoc.index.index.Index.top`."""
    _require_one(query, "top")
    if filter is None and request.k:
        direct = answer(index, query, request, engine, False)
        if direct is not None:
            return direct[:2]
    with interruptible():
        found = _best(index, query, request, filter, engine, "top")
        return ids_of(index.stored, found.documents), found.scores


def top_and_total(
    index: Collection, query: str, request: Request, filter: FilterLike, engine: str | None
) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32], int]:
    """Answer :meth:`polars_tadoc.index.index.Index.top` with the number of all hits."""
    _require_one(query, "top")
    if request.mode == "and_or":
        raise ValueError('top: total= counts all hits of mode "and" or "or"')
    if filter is None and request.k:
        direct = answer(index, query, request, engine, True)
        if direct is not None:
            return direct
    with interruptible():
        text = as_texts(query, "top")
        allowed = allowed_by_segment(index, filter, "top")
        short = top_and_count(index, query, request, allowed[0] if allowed else None, require_engine(engine))
        if short is not None:
            count = short.found.item()
            return ids_of(index.stored, short.documents[0, :count]), short.scores[0, :count], short.totals.item()
        found = _best(index, text, request, filter, engine, "top")
        total = _count(index, text, request.mode, request.syntax, allowed)
        return ids_of(index.stored, found.documents), found.scores, total


def _require_one(query: object, call: str) -> None:
    if not isinstance(query, str):
        raise TypeError(f"{call}: query must be a string, not {type(query).__name__}; use search() for several")


def count(index: Collection, query: str, mode: str, syntax: str, filter: FilterLike) -> int:
    """Answer :meth:`polars_tadoc.index.index.Index.count`."""
    if not isinstance(query, str):
        raise TypeError(f"count: query must be a string, not {type(query).__name__}")
    if mode not in ("or", "and"):
        raise ValueError(f'mode={mode!r}: use "and" or "or"')
    request = Request.of(0, mode, "lucene", 1.5, 0.75, 0.5, syntax)
    if filter is None:
        direct = answer(index, query, request, "cpu", True)
        if direct is not None:
            return direct[2]
    with interruptible():
        text = as_texts(query, "count")
        allowed = allowed_by_segment(index, filter, "count")
        short = top_and_count(index, query, request, allowed[0] if allowed else None, "cpu")
        return short.totals.item() if short is not None else _count(index, text, mode, syntax, allowed)


def _count(index: Collection, text: str | pl.Series, mode: str, syntax: str, allowed: list[UInt32 | None]) -> int:
    """Count the documents of a query by its lists."""
    planned = plan(index, text, _ANY_SCORING, "count", mode, syntax)
    required = planned.required(mode == "and")
    is_all = mode == "and" if required is None else bool(required[0])
    return sum(
        _count_in(segment, planned, number, is_all, allowed[number]) for number, segment in enumerate(index.segments)
    )


def _count_in(segment: Segment, planned: Plan, number: int, is_all: bool, allowed: UInt32 | None) -> int:
    """Count the documents of a segment that contain any, or all, of a query's words and phrases."""
    lists, extra = planned.queries(number, is_all).lists, planned.extra[number]
    if not len(lists):
        return 0
    coded = lists < len(segment.terms)
    _, documents, _ = decode_lists(segment.postings, lists[coded])
    if extra is not None:
        phrases = (lists[~coded] - len(segment.terms)).tolist()
        own = [extra.documents[extra.offsets[phrase] : extra.offsets[phrase + 1]] for phrase in phrases]
        documents = np.concatenate([documents, *own])
    hits = np.bincount(documents, minlength=segment.size)
    matches = hits == len(lists) if is_all else hits > 0
    if allowed is not None:
        matches &= np.unpackbits(allowed.view(np.uint8), count=segment.size, bitorder="little").view(np.bool_)
    return int(np.count_nonzero(matches))


_ANY_SCORING = Scoring("lucene", 1.5, 0.75, 0.5)


def _best(
    index: Collection, queries: QueriesLike, request: Request, filter: FilterLike, engine: str | None, call: str
) -> Found:
    asked = require_engine(engine)
    texts = as_texts(queries, call)
    allowed = allowed_by_segment(index, filter, call)
    short: tuple[Found, Bools] | None = None
    if isinstance(texts, str):
        found = find_one(index, texts, request, allowed, asked)
        if found is not None:
            return found
    else:
        short = find_short(index, texts, request, allowed[0] if allowed else None, asked)
        if short is not None:
            if short[1].all():
                return short[0]
            texts = texts.set(pl.Series(short[1]), "")
    planned = plan(index, texts, request.scoring, call, request.mode, request.syntax)
    chosen = choose_engine(asked, planned, index.documents, request)
    start = time.perf_counter()
    found = find(index, planned, request, allowed, chosen)
    if asked == "auto":
        correct(chosen, planned, index.documents, request, time.perf_counter() - start)
    return found if short is None else replaced(found, *short)
