"""A segment in an engine's memory, with the norms of a scoring and the score bounds of its blocks.

Norms and bounds are computed once per scoring, a list's bounds when it is first searched. On the host, the index
caches them for a few scorings; on a GPU, the engine's cache has them with the postings. Postings too large for that
cache are copied list by list.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from polars_tadoc.config import settings
from polars_tadoc.engine.choose import Engine
from polars_tadoc.engine.kernels import Kernels
from polars_tadoc.index.collection import Collection
from polars_tadoc.index.segment import Segment
from polars_tadoc.kernels.postings.coded import Postings
from polars_tadoc.kernels.postings.protocol import ListCache
from polars_tadoc.kernels.search.search_cpu import unknown_bounds
from polars_tadoc.runtime.array_types import Float32, UInt32
from polars_tadoc.scoring.bm25 import Scoring

SCORINGS = 8
"""Scorings whose norms and bounds an index caches."""

POSTINGS_SHARE = 0.75
"""Maximum share of the device's cache for an index's postings; norms need some, too."""

_lock = threading.Lock()


class _Kept(NamedTuple):
    """Arrays of an engine, with their bytes for the cache."""

    value: Any
    nbytes: int


@dataclass(frozen=True, eq=False)
class Prepared:
    """Arrays of an engine."""

    postings: Postings | ListCache
    """Postings, or a cache of their lists."""
    norms: Any
    """float32 by document."""
    bounds: Any
    """float32 by block, or None if the search does not use bounds."""


def prepare_segment(index: Collection, number: int, scoring: Scoring, engine: Engine, bounded: bool) -> Prepared:
    """Return a segment of an index in the form that an engine's kernels take; cached.

    Parameters
    ----------
    index, number
        The index, and the number of the segment.
    scoring
        The form of BM25.
    engine
        Engine of the arrays.
    bounded
        Whether the search reads bounds.

    """
    segment, kernels = index.segments[number], engine.kernels
    has_bounds = bounded and kernels.READS_BOUNDS
    kept = engine.host_cache(index.prepared)
    found: Prepared | None = kept.get((number, scoring, has_bounds))
    if found is not None:
        return found

    def keep(name: str, make: Callable[[], Any]) -> Any:
        key = f"{segment.key}:{scoring}:{index.average_length}:{name}"
        return engine.keep(key, lambda: _kept(make()), lambda make: make()).value

    def make_postings() -> _Kept:
        share = POSTINGS_SHARE * segment.nbytes / sum(one.nbytes for one in index.segments)
        return _kept(kernels.resident_postings(segment.postings, int(share * settings().device_cache_bytes)))

    own = _Kept(segment.postings, 0)
    postings = engine.keep(f"{segment.key}:postings", make_postings, lambda _: own).value
    other: Prepared | None = kept.get((number, scoring, not has_bounds))
    norms = other.norms if other else keep("norms", lambda: _norms(index, segment, scoring, kernels))
    bounds = keep("bounds", lambda: unknown_bounds(segment.postings)) if has_bounds else None
    ready = Prepared(postings, norms, bounds)
    with _lock:
        kept[number, scoring, has_bounds] = ready
        while len(kept) > 2 * SCORINGS * len(index.segments):
            kept.pop(next(iter(kept)))
    return ready


def _norms(index: Collection, segment: Segment, scoring: Scoring, kernels: Kernels) -> Any:
    return kernels.load_array(norms_of(index, segment.lengths, scoring))


def norms_of(index: Collection, lengths: UInt32, scoring: Scoring) -> Float32:
    """Return the norms of documents, float32, given their lengths; counts of fields are scaled."""
    if index.fields is None:
        return scoring.norms(lengths, index.average_length)
    return (scoring.exact_norms(lengths, index.average_length) * index.fields.scale).astype(np.float32)


def missing_bytes(segment: Segment, lists: npt.NDArray[np.int64], engine: Engine) -> npt.NDArray[np.float64]:
    """Return the approximate bytes to copy before an engine can read each of some lists.

    Parameters
    ----------
    segment
        The segment.
    lists
        int64: numbers of lists; numbers out of range are not in the segment.
    engine
        The engine that will read them.

    Returns
    -------
    float64 array
        By list.

    """
    missing = np.zeros(len(lists))
    found = engine.peek(f"{segment.key}:postings", on_host=_Kept(segment.postings, 0))
    if found is not None and isinstance(found.value, Postings):
        return missing
    places = np.flatnonzero((lists >= 0) & (lists < len(segment.terms)))
    if found is not None:
        places = places[~found.value.is_resident(lists[places])]
    missing[places] = segment.postings.frequencies[lists[places]] * (segment.nbytes / max(segment.posting_count, 1))
    return missing


def _kept(value: Any) -> _Kept:
    return _Kept(value, _nbytes(value))


def _nbytes(value: Any) -> int:
    if isinstance(value, tuple):
        return sum(map(_nbytes, value))
    return int(getattr(value, "nbytes", 0))
