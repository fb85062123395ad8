"""Near duplicates on Spark: as for workers (:mod:`near_tasks`), but no task numbers the rows of all.

A row is known by a hash of its words, so that it is the same however often Spark reads it. *Sign*: tasks send the keys
of their rows' signatures to shards. *Join*, *assign*: one task joins rows with equal keys, and gives each component to
a shard. *Send*: tasks read their rows again, and send them by hash to where that is known. *Route*: on to the shard of
the component; rows without one are done. *Compare*: as in memory, rows in ascending order of their ids.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.analytics.cleaning.laid_words import lay_out
from polars_tadoc.analytics.cleaning.limited_near import row_hashes
from polars_tadoc.analytics.cleaning.near_duplicates import DuplicateGroupsRequest
from polars_tadoc.analytics.cleaning.sent_near import (
    NearRequest,
    SentRows,
    SignedRows,
    compare,
    components_of,
    edges_of,
)
from polars_tadoc.distributed.labelled import label_order
from polars_tadoc.distributed.spark_passages import Documents, loaded
from polars_tadoc.distributed.spark_tasks import Batches, at_work, first_part, result_batches, row, series
from polars_tadoc.kernels.host.near.rows import NONE
from polars_tadoc.kernels.primitives.lists import gather_lists
from polars_tadoc.records.labelled_results import Labels
from polars_tadoc.runtime.array_types import UInt32, UInt64

NEAR = pa.schema([("shard", pa.int32()), ("payload", pa.binary())])
"""Rows sent to a shard: keys with hashes of rows, joined ones, shards of hashes, rows, or a part of the result."""


@dataclass(frozen=True)
class AskedNear(Documents):
    """One call about near duplicates on a frame."""

    request: NearRequest
    shards: int
    schema: pa.Schema
    """``shards``, ``schema``: number of tasks that compare rows, and columns of the result."""
    threads: int
    """Threads per task."""

    def sign(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Send the keys of a task's rows."""
        with at_work(self.threads):
            for own, _ in self._signed(batches):
                distinct, nodes = _nodes(own)
                for shard, (keys, rows) in enumerate(own.keys(self.shards)):
                    if len(keys):
                        yield _sent(shard, (keys, nodes[np.searchsorted(distinct, rows)]))

    def join(self, found: pa.Table) -> pa.Table:
        """Join rows with equal keys."""
        keys, nodes = (np.concatenate(some) for some in zip(*map(loaded, found["payload"]), strict=True))
        return pa.Table.from_batches([_sent(0, edges_of(keys, nodes))])

    def assign(self, found: pa.Table) -> pa.Table:
        """Give each component of rows to a shard, and tell those that get the rows."""
        nodes, roots = components_of([loaded(cell) for cell in found["payload"]])
        shards = self._shard(roots.astype(np.uint64))
        known = self._shard(nodes.astype(np.uint64))
        made = [_sent(shard, (nodes[known == shard], shards[known == shard])) for shard in range(self.shards)]
        return pa.Table.from_batches(made)

    def send(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Send a task's distinct rows, with their copies."""
        with at_work(self.threads):
            for number, (own, labels) in enumerate(self._signed(batches), first_part()):
                rows, nodes = _nodes(own)
                shards = self._shard(nodes)
                for shard, some in enumerate(own.sent(rows, shards, Labels(labels), self.shards)):
                    if len(some.rows):
                        yield _sent(shard, (some, nodes[shards == shard]))
                yield from self._alone(number % self.shards, labels.filter(pl.Series(own.firsts == NONE)))

    def route(self, found: pa.Table) -> pa.Table:
        """Send rows to the shards of their components; return the result of those that nothing is like."""
        given = [loaded(cell) for cell in found["payload"]]
        here = found["shard"][0].as_py()
        made = [_sent(here, one) for one in given if isinstance(one, pl.DataFrame)]
        parts = [one for one in given if isinstance(one, tuple) and isinstance(one[0], SentRows)]
        known = [one for one in given if isinstance(one, tuple) and not isinstance(one[0], SentRows)]
        none = np.zeros(0, np.uint64)
        nodes = np.concatenate([none, *(one[0] for one in known)])  # of one task: ascending
        shards = np.append(np.concatenate([none, *(one[1] for one in known)]), 0).astype(np.uint32)
        every, counts = np.unique(np.concatenate([none, *(one[1] for one in parts)]), return_counts=True)
        several = every[counts > 1]  # copies that several tasks have
        for sent, own in parts:
            places = np.searchsorted(nodes, own)
            is_joined = np.append(nodes, 0)[places] == own
            is_joined[places == len(nodes)] = False
            shard = np.where(is_joined, shards[places], self._shard(own))
            is_sent = is_joined | np.isin(own, several) | np.isin(sent.rows, sent.of)
            numbers = np.unique(shard[is_sent]).tolist()
            made += [_sent(number, sent.some(is_sent & (shard == number))) for number in numbers]
            made += self._alone(here, sent.labels[: len(own)].filter(pl.Series(~is_sent)))
        return pa.Table.from_batches(made, NEAR)

    def compare(self, found: pa.Table) -> pa.Table:
        """Compare the rows of a shard."""
        given = [loaded(cell) for cell in found["payload"]]
        frames = [one for one in given if isinstance(one, pl.DataFrame)]
        parts = [one for one in given if isinstance(one, SentRows)]
        if parts:
            order = label_order(pl.concat([one.labels for one in parts]))
            numbers = np.empty(len(order), np.uint32)
            numbers[order] = np.arange(len(order), dtype=np.uint32)
            edges = np.cumsum([len(one.labels) for one in parts])[:-1]
            parts = [one.renumbered(own) for one, own in zip(parts, np.split(numbers, edges), strict=True)]
            with at_work(self.threads):
                made, candidates = compare(self.request, parts)
            self.request.require_few(candidates)
            frames.append(made.select(self.schema.names))
        result = pl.concat(frames).to_arrow(compat_level=pl.CompatLevel.oldest())
        return pa.Table.from_batches(result_batches(result, self.schema), self.schema)

    def _signed(self, batches: Batches) -> Iterator[tuple[SignedRows, pl.Series]]:
        """Yield documents in ascending order of their ids, with these."""
        request = self.request
        for column, table in self.parts(batches):
            labels = series(table.column(self.label))
            order = label_order(labels)
            laid = lay_out(column.alias(self.column), request.name, request.tokenizer, request.morphism)
            starts, words = gather_lists(laid.starts, laid.words, order)
            laid = replace(laid, starts=starts, words=words, valid=laid.valid[order], places=None)
            yield SignedRows.of(request, laid, 0), labels.gather(order)

    def _shard(self, nodes: UInt64) -> Any:
        """Return a shard for each hash, uint32."""
        mixed = nodes * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)
        return (mixed % np.uint64(self.shards)).astype(np.uint32)

    def _alone(self, shard: int, labels: pl.Series) -> Iterator[pa.RecordBatch]:
        """Yield the result of rows that nothing is like."""
        if isinstance(self.request, DuplicateGroupsRequest) and len(labels):
            made = pl.DataFrame([labels.alias("id"), labels.alias("group")]).with_columns(keep=True)
            yield _sent(shard, made)


def _nodes(own: SignedRows) -> tuple[UInt32, UInt64]:
    """Return the distinct rows, and a hash of the words of each."""
    rows = np.flatnonzero(own.firsts == np.arange(len(own.firsts)))
    return rows.astype(np.uint32), row_hashes(own.laid, rows)


def _sent(shard: int, value: object) -> pa.RecordBatch:
    return row(NEAR, shard, pickle.dumps(value, 5))
