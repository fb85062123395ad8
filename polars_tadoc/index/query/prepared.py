"""A segment where an engine's kernels run, with the norms of a scoring and the bounds of its blocks.

Norms and bounds are made once for a scoring: in host memory they are kept with the index, a few scorings' worth; on a
GPU in the engine's cache, with the postings. Postings that are too large for it are brought there list by list.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from polars_tadoc.config import settings
from polars_tadoc.engine.choose import Engine
from polars_tadoc.engine.kernels import Kernels
from polars_tadoc.index.collection import Collection
from polars_tadoc.index.segment import Segment
from polars_tadoc.kernels.postings.coded import Postings
from polars_tadoc.kernels.postings.protocol import ListCache
from polars_tadoc.scoring.bm25 import Scoring

SCORINGS = 8
"""Scorings whose norms and bounds an index keeps."""

POSTINGS_SHARE = 0.75
"""Share of the device's cache that an index's postings may take; norms need some, too."""

_lock = threading.Lock()


@dataclass(frozen=True, eq=False)
class _Kept:
    """Arrays of an engine, with the bytes that a cache counts."""

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
    """float32 by block, or None where the search does without."""


def prepare_segment(index: Collection, number: int, scoring: Scoring, engine: Engine, bounded: bool) -> Prepared:
    """Return a segment of an index as the kernels of an engine take it; the second call does nothing.

    Parameters
    ----------
    index, number
        The index, and which of its segments.
    scoring
        The form of BM25.
    engine
        Where the arrays are to be.
    bounded
        Whether the search reads bounds.

    """
    segment, kernels = index.segments[number], engine.kernels
    has_bounds = bounded and kernels.READS_BOUNDS
    kept = index.prepared if engine.uses_cpu_threads else {}  # a device keeps its arrays itself
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
    bounds = keep("bounds", lambda: kernels.block_bounds(postings, norms)) if has_bounds else None
    ready = Prepared(postings, norms, bounds)
    with _lock:
        kept[number, scoring, has_bounds] = ready
        while len(kept) > 2 * SCORINGS * len(index.segments):
            kept.pop(next(iter(kept)))
    return ready


def _norms(index: Collection, segment: Segment, scoring: Scoring, kernels: Kernels) -> Any:
    return kernels.load_array(scoring.norms(segment.lengths, index.average_length))


def missing_bytes(segment: Segment, lists: npt.NDArray[np.int64], engine: Engine) -> npt.NDArray[np.float64]:
    """Return about how many bytes must be copied before an engine can read each of some lists.

    Parameters
    ----------
    segment
        The segment.
    lists
        int64: numbers of lists; those below 0 or beyond are none of the segment's.
    engine
        Where they are to be read.

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
