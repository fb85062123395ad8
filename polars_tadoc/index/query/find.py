"""Searches each segment for a plan's queries, on the chosen engine."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polars_tadoc.engine.choose import Engine
from polars_tadoc.index.collection import Collection
from polars_tadoc.index.query.plan import Plan
from polars_tadoc.index.query.prepared import Prepared, prepare_segment
from polars_tadoc.index.query.rank import Found, Part, merge, replaced
from polars_tadoc.index.query.request import Request
from polars_tadoc.kernels.postings.coded import Lists, Postings, Queries
from polars_tadoc.runtime.array_types import Bools, UInt32

MAX_PLACES = 1 << 24
"""Maximum results (documents times queries) per call of a kernel."""


def find(index: Collection, plan: Plan, request: Request, allowed: list[UInt32 | None], engine: Engine) -> Found:
    """Find the best documents of each query in all segments."""
    searched = _Searched(index, request, allowed, engine)
    found = searched.by_joins(plan, request.mode != "or", None)
    if request.mode == "and_or":
        again = found.counts < request.k
        if again.any():
            other = plan if plan.again is None else plan.again
            found = replaced(found, searched.by_joins(other, False, again), again)
    return found


@dataclass(frozen=True)
class _Searched:
    """An index, and how its segments are searched."""

    index: Collection
    request: Request
    allowed: list[UInt32 | None]
    engine: Engine

    def by_joins(self, plan: Plan, require_all: bool, chosen: Bools | None) -> Found:
        """Search queries that want all of their lists, and those that want any."""
        required = plan.required(require_all)
        if required is None or required.all() or not required.any():
            return self._find(plan, require_all if required is None else bool(required.any()), chosen)
        both = [required, ~required] if chosen is None else [required & chosen, ~required & chosen]
        first, second = (self._find(plan, is_all, own) for is_all, own in zip((True, False), both, strict=True))
        return replaced(first, second, ~required)

    def _find(self, plan: Plan, require_all: bool, chosen: Bools | None) -> Found:
        parts: list[Part] = []
        start = 0
        for number, segment in enumerate(self.index.segments):
            k = min(self.request.k, segment.size)
            queries = plan.queries(number, require_all, chosen)
            if k and len(queries.lists):
                ready = prepare_segment(self.index, number, self.request.scoring, self.engine, not require_all)
                for first, part in _cut(queries, max(1, MAX_PLACES // k)):
                    own = self.allowed[number], plan.extra[number]
                    parts.append(Part(first, start, *_in_segment(ready, part, k, require_all, *own, self.engine)))
            start += segment.size
        return merge(parts, plan, self.request.k)


def _cut(queries: Queries, size: int) -> Iterable[tuple[int, Queries]]:
    """Split a batch into smaller ones; yields each with the number of its first query."""
    count = len(queries.offsets) - 1
    if count <= size:
        return [(0, queries)]
    parts = []
    for first in range(0, count, size):
        offsets = queries.offsets[first : first + size + 1]
        own = slice(offsets[0], offsets[-1])
        parts.append((first, Queries(offsets - offsets[0], queries.lists[own], queries.weights[own])))
    return parts


def _in_segment(
    ready: Prepared,
    queries: Queries,
    k: int,
    require_all: bool,
    allowed: UInt32 | None,
    extra: Lists | None,
    engine: Engine,
) -> tuple[npt.NDArray[np.int64], UInt32, npt.NDArray[np.float32]]:
    """Search one segment; return the kernel's results in host memory."""
    kernels = engine.kernels

    def search(postings: Postings, part: Queries) -> Any:
        found = kernels.search(postings, ready.norms, ready.bounds, part, k, require_all, allowed, extra)
        return [kernels.to_host(array) for array in found]

    if isinstance(ready.postings, Postings):
        counts, documents, scores = search(ready.postings, queries)
        return counts, documents, scores
    with closing(ready.postings.bring(queries)) as brought:  # a traceback must not keep its memory alive
        counts, documents, scores = map(np.concatenate, zip(*(search(*one) for one in brought), strict=True))
    return counts, documents, scores
