"""Merges the results of segments into the best documents of each query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from polars_tadoc.index.query.plan import Plan
from polars_tadoc.runtime.array_types import Bools, Float32, Int64


class Part(NamedTuple):
    """Results of a segment for some queries, best first."""

    first: int
    """Number of the first query."""
    start: int
    """Number of the segment's first document."""
    counts: Int64
    """By query: number of results."""
    documents: npt.NDArray[np.integer[Any]]
    """By query and rank: numbers within the segment."""
    scores: Float32
    """By query and rank."""


@dataclass(eq=False)
class Found:
    """The best documents of queries: by query, then descending score, then document number.

    The order is that of scores before the constant of all documents was added.
    """

    counts: Int64
    """int64 by query: number of results."""
    documents: npt.NDArray[np.integer[Any]]
    """Document numbers in the whole index."""
    scores: Float32


def merge(parts: Sequence[Part], plan: Plan, k: int) -> Found:
    """Merge results of segments to the k best of each query, and add the constant of the query's words.

    It is added last: in float32 a large constant makes scores equal, and the order would depend on k and on segments.
    """
    if plan.size == 1 and len(parts) == 1:
        (part,) = parts
        count = part.counts[0]
        counts, documents, scores = part.counts, part.documents[0, :count], part.scores[0, :count]
        if part.start:
            documents = documents + np.int64(part.start)
        return Found(counts, documents, scores if plan.bases is None else scores + plan.bases)
    owners, documents, scores = (np.concatenate(arrays) for arrays in zip(_NOTHING, *map(_flat, parts), strict=True))
    if len(plan.numbers) > 1:
        order = np.lexsort((documents, -scores, owners))
        owners, documents, scores = owners[order], documents[order], scores[order]
    counts = np.bincount(owners, minlength=plan.size)
    ranks = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
    if len(ranks) and ranks.max() >= k:
        kept = ranks < k
        owners, documents, scores, counts = owners[kept], documents[kept], scores[kept], np.minimum(counts, k)
    return Found(counts, documents, scores if plan.bases is None else scores + plan.bases[owners])


def _flat(part: Part) -> tuple[Int64, Int64, Float32]:
    """Return the query of each result, its document number in the whole index, and its score."""
    counts = part.counts
    filled = np.arange(part.documents.shape[1]) < counts[:, None]
    return (
        np.repeat(np.arange(part.first, part.first + len(counts)), counts),
        part.documents[filled].astype(np.int64) + part.start,
        part.scores[filled],
    )


def replaced(first: Found, second: Found, again: Bools) -> Found:
    """Replace the results of some queries by those of a second search."""
    owners = [np.repeat(np.arange(len(again)), found.counts) for found in (first, second)]
    kept = [~again[owners[0]], again[owners[1]]]
    order = np.argsort(np.concatenate([owners[0][kept[0]], owners[1][kept[1]]]), kind="stable")
    return Found(
        np.where(again, second.counts, first.counts),
        np.concatenate([first.documents[kept[0]], second.documents[kept[1]]])[order],
        np.concatenate([first.scores[kept[0]], second.scores[kept[1]]])[order],
    )


_NOTHING: tuple[Int64, Int64, Float32] = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))
