"""Replaces document numbers of results by ids: in a frame, or in arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_tadoc.index.documents import Documents
from polars_tadoc.index.query.rank import Found
from polars_tadoc.model.arrow_results import from_arrow, to_arrow

FEW = 200
"""For fewer numbers, a series is made faster from a Python list than from Arrow memory."""

_TYPES = {"uint32": pl.UInt32, "int64": pl.Int64, "float32": pl.Float32}
_QUERIES = pl.Series("query", [0], pl.UInt32).new_from_index(0, FEW)
_RANKS = pl.Series("rank", range(1, FEW + 1), pl.UInt32)
"""The first columns of a frame of one query: slicing them is faster than making them."""


def as_frame(stored: Documents, found: Found) -> pl.DataFrame:
    """Return results as a frame."""
    ids = stored.ids[_series("place", found.documents)].alias("id")
    return pl.DataFrame([*_queries_and_ranks(found), ids, _series("score", found.scores)])


def ids_of(stored: Documents, documents: npt.NDArray[np.integer[Any]]) -> npt.NDArray[Any]:
    """Return the ids of documents."""
    numbers = stored.id_numbers
    if numbers is not None:
        return numbers.take(documents)
    ids = np.empty(len(documents), object)
    ids[:] = stored.ids[_series("place", documents)].to_list()
    return ids


def _queries_and_ranks(found: Found) -> tuple[pl.Series, pl.Series]:
    counts, total = found.counts, len(found.documents)
    if len(counts) == 1 and total <= FEW:
        return _QUERIES.slice(0, total), _RANKS.slice(0, total)
    starts = np.repeat(np.cumsum(counts) - counts - 1, counts)
    ranks = (np.arange(total) - starts).astype(np.uint32)
    return _series("query", np.repeat(np.arange(len(counts), dtype=np.uint32), counts)), _series("rank", ranks)


def _series(name: str, numbers: npt.NDArray[Any]) -> pl.Series:
    if len(numbers) < FEW:
        return pl.Series(name, numbers.tolist(), _TYPES[numbers.dtype.name])
    return from_arrow(name, to_arrow(numbers))
