"""Queries of several batches as one: what waits together is weighed together, but not always answered together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from polars_tadoc.index.collection import Collection
from polars_tadoc.index.query.search import Batch
from polars_tadoc.kernels.postings.coded import Lists

Int64 = npt.NDArray[np.int64]


def select(batch: Batch, queries: Sequence[int]) -> Batch:
    """Return some queries of a batch, as many as there are numbers; it keeps all distinct words."""
    if list(queries) == list(range(batch.size)):
        return batch
    chosen = np.array(queries, np.int64)
    starts, stops = np.searchsorted(batch.owners, chosen), np.searchsorted(batch.owners, chosen + 1)
    sizes = stops - starts
    before = np.cumsum(sizes) - sizes
    entries = np.arange(sizes.sum()) + np.repeat(starts - before, sizes)
    items = batch.items[entries]
    return replace(
        batch,
        size=len(chosen),
        owners=np.repeat(np.arange(len(chosen)), sizes),
        items=items,
        weights=batch.weights[entries],
        bases=batch.bases[chosen],
        postings=int(batch.frequencies[items].sum()),
    )


def join(index: Collection, batches: Sequence[Batch]) -> Batch:
    """Return the queries of batches one after another, to be searched for; its words are named as the first's."""
    if len(batches) == 1:
        return batches[0]
    queries = np.cumsum([0, *(batch.size for batch in batches)])
    items = np.cumsum([0, *(len(batch.frequencies) for batch in batches)])
    numbers: list[Int64] = []
    extra: list[Lists | None] = []
    for place, segment in enumerate(index.segments):
        own = len(segment.postings.frequencies)
        made = [batch.extra[place] for batch in batches]
        before = np.cumsum([0, *(0 if lists is None else len(lists.offsets) - 1 for lists in made)])
        numbers.append(
            np.concatenate(
                [
                    np.where(batch.numbers[place] >= own, batch.numbers[place] + shift, batch.numbers[place])
                    for batch, shift in zip(batches, before[:-1], strict=True)
                ]
            )
        )
        extra.append(_join_lists([lists for lists in made if lists is not None]))
    return replace(
        batches[0],
        size=int(queries[-1]),
        owners=np.concatenate([b.owners + shift for b, shift in zip(batches, queries[:-1], strict=True)]),
        items=np.concatenate([b.items + shift for b, shift in zip(batches, items[:-1], strict=True)]),
        numbers=numbers,
        weights=np.concatenate([batch.weights for batch in batches]),
        bases=np.concatenate([batch.bases for batch in batches]),
        postings=sum(batch.postings for batch in batches),
        extra=extra,
        frequencies=np.concatenate([batch.frequencies for batch in batches]),
    )


def _join_lists(lists: list[Lists]) -> Lists | None:
    if len(lists) < 2:
        return lists[0] if lists else None
    sizes = np.concatenate([np.diff(one.offsets) for one in lists])
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    documents = np.concatenate([one.documents for one in lists])
    return Lists(offsets, documents, np.concatenate([one.counts for one in lists]))
