"""Joins and splits batches of queries: queries that arrive together are planned together, then may be split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from polars_tadoc.index.collection import Collection
from polars_tadoc.index.query.plan import Plan
from polars_tadoc.index.query.trees import BY_MODE
from polars_tadoc.kernels.postings.coded import Lists
from polars_tadoc.runtime.array_types import Int64


def select(plan: Plan, queries: Sequence[int]) -> Plan:
    """Return some queries of a plan by number; the plan keeps all distinct words."""
    if list(queries) == list(range(plan.size)):
        return plan
    chosen = np.array(queries, np.int64)
    starts, sizes = plan.offsets[chosen], np.diff(plan.offsets)[chosen]
    offsets = np.append(0, np.cumsum(sizes))
    entries = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes)
    bases = None if plan.bases is None else plan.bases[chosen]
    joins = None if plan.joins is None else plan.joins[chosen]
    again = None if plan.again is None else select(plan.again, queries)
    items, weights = plan.items[entries], plan.weights[entries]
    return replace(plan, offsets=offsets, items=items, weights=weights, bases=bases, joins=joins, again=again)


def join(index: Collection, batches: Sequence[Plan]) -> Plan:
    """Concatenate the queries of plans for a search; the plan has the words of the first one."""
    if len(batches) == 1:
        return batches[0]
    entries = np.cumsum([0, *(len(batch.items) for batch in batches)])
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
    bases = [batch.bases for batch in batches if batch.bases is not None]
    joins = [np.full(batch.size, BY_MODE) if batch.joins is None else batch.joins for batch in batches]
    has_again = any(batch.again is not None for batch in batches)
    return replace(
        batches[0],
        offsets=np.concatenate([[0], *(b.offsets[1:] + shift for b, shift in zip(batches, entries[:-1], strict=True))]),
        items=np.concatenate([b.items + shift for b, shift in zip(batches, items[:-1], strict=True)]),
        numbers=numbers,
        weights=np.concatenate([batch.weights for batch in batches]),
        bases=np.concatenate(bases) if bases else None,
        extra=extra,
        frequencies=np.concatenate([batch.frequencies for batch in batches]),
        joins=None if all(batch.joins is None for batch in batches) else np.concatenate(joins),
        again=join(index, [batch.again or replace(batch, again=None) for batch in batches]) if has_again else None,
    )


def _join_lists(lists: list[Lists]) -> Lists | None:
    if len(lists) < 2:
        return lists[0] if lists else None
    sizes = np.concatenate([np.diff(one.offsets) for one in lists])
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    documents = np.concatenate([one.documents for one in lists])
    return Lists(offsets, documents, np.concatenate([one.counts for one in lists]))
