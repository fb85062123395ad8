"""Tasks of the calls about passages on Spark: as for workers (:mod:`passage_tasks`), but text is read once.

A task sends the stretches of all windows of its rows to shards, and the rows themselves past them: repeated
windows come back to the rows, as document frequencies do. Occurrences are in ascending order of the ids.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from polars_tadoc.analytics.cleaning.drop_repeats import DropRepeatsRequest
from polars_tadoc.analytics.cleaning.kept_stretches import NO_WORDS
from polars_tadoc.analytics.cleaning.laid_words import LaidWords, lay_out
from polars_tadoc.analytics.cleaning.overlap import OverlapRequest
from polars_tadoc.analytics.cleaning.passages import Passages, PassageSearch
from polars_tadoc.analytics.cleaning.repeats import RepeatsRequest
from polars_tadoc.analytics.cleaning.sent_stretches import OwnStretches, find_repeated
from polars_tadoc.distributed.binary_cells import unpack
from polars_tadoc.distributed.labelled import label_order
from polars_tadoc.distributed.spark_tasks import (
    TEXT_BYTES,
    Batches,
    at_work,
    first_part,
    gathered,
    in_cells,
    result_batches,
    row,
    series,
)
from polars_tadoc.errors import InvalidGrammarError
from polars_tadoc.kernels.host.passages.stretches import Grams
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.records.labelled_results import Labels

PASSAGES = pa.schema([("shard", pa.int32()), ("part", pa.int64()), ("whole", pa.bool_()), ("payload", pa.binary())])
"""The rows of a part (``whole``), or what a shard gets of it, or has found for it."""


@dataclass(frozen=True)
class Documents:
    """Reads the documents of a call."""

    request: object
    """The call."""
    column: str
    """Name of the column, for messages."""
    place: int
    """Its position in batches."""
    label: int
    """Position of the ids."""
    packed: bool
    """Whether the column has cells."""

    def parts(self, batches: Batches) -> Iterator[tuple[pl.Series, pa.Table]]:
        """Yield the column of some rows, with all columns that were read; of cells, one value per document."""
        if not self.packed:
            for table in gathered(batches, self.place, TEXT_BYTES):
                yield series(table.column(self.place)), table
            return
        for batch in batches:
            for at in range(batch.num_rows):
                cell = pl.Series(self.column, [batch.column(self.place)[at].as_py()], pl.Binary)
                column = unpack(cell.to_frame(), self.column)[self.column]
                columns = []
                for place, values in enumerate(batch.columns):
                    own = pa.nulls(len(column)) if place == self.place else values[at].values
                    if len(() if own is None else own) != len(column):
                        raise InvalidGrammarError(
                            f'column "{self.column}": a cell has {len(column):,} documents, an array beside it '
                            f"{len(() if own is None else own):,}"
                        )
                    columns.append(pa.array([], values.type.value_type) if own is None else own)
                yield column, pa.table(columns, batch.schema.names)


@dataclass(frozen=True)
class AskedPassages(Documents):
    """One call about passages on a frame."""

    request: RepeatsRequest | DropRepeatsRequest | OverlapRequest
    grams: Grams | None
    """The same in all tasks; None for matches with a reference."""
    shards: int
    schema: pa.Schema
    """``shards``, ``schema``: number of tasks that compare windows, and columns of the result."""
    threads: int
    """Threads per task."""

    def match(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Find matches with a reference."""
        assert isinstance(self.request, OverlapRequest)
        with at_work(self.threads):
            for column, table in self.parts(batches):
                found = self.request.frame(column, series(table.column(self.label)))
                yield from result_batches(found.to_arrow(compat_level=pl.CompatLevel.oldest()), self.schema)

    def find(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Send the stretches of a task's rows to shards, and the rows past them."""
        request = self.request
        assert self.grams is not None
        assert not isinstance(request, OverlapRequest)
        with at_work(self.threads):
            for number, (column, table) in enumerate(self.parts(batches), first_part()):
                labels = series(table.column(self.label))
                laid = lay_out(column.alias(self.column), request.name, request.tokenizer, request.morphism)
                for shard, sent in enumerate(OwnStretches.of(laid, self.grams).sent(self.shards)):
                    if len(sent.ids):
                        payload = pickle.dumps((sent, labels.gather(sent.rows)), 5)
                        yield row(PASSAGES, shard, number, False, payload)
                rows = labels if isinstance(request, RepeatsRequest) else (column if self.packed else None, table)
                whole = pickle.dumps((laid.starts, laid.places, rows), 5)
                yield row(PASSAGES, number % self.shards, number, True, whole)

    def compare(self, found: pa.Table) -> pa.Table:
        """Find the repeated windows of a shard; rows pass through unchanged."""
        assert self.grams is not None
        asked = found.filter(pc.invert(found["whole"])).sort_by("part")
        made = [found.filter(found["whole"])]
        if len(asked):
            sent, labels = zip(*map(loaded, asked["payload"]), strict=True)
            with at_work(self.threads):
                hits = find_repeated(sent, self.grams.length, label_order(pl.concat(labels)).astype(np.int64))
            for part, records in zip(asked["part"].to_pylist(), hits, strict=True):
                made.append(pa.Table.from_batches([row(PASSAGES, 0, part, False, pickle.dumps(records, 5))]))
        return pa.concat_tables(made)

    def finish(self, found: pa.Table) -> pa.Table:
        """Return the passages of a part, or its rows without them."""
        request = self.request
        assert not isinstance(request, OverlapRequest)
        (whole,) = found.filter(found["whole"])["payload"]
        starts, places, rows = loaded(whole)
        hits = [loaded(cell) for cell in found.filter(pc.invert(found["whole"]))["payload"]]
        nothing = np.zeros(0, np.uint32)
        laid = LaidWords(Vocabulary(NO_WORDS), starts, nothing, np.ones(len(starts) - 1, np.bool_), (), places)
        with at_work(self.threads):
            passages = PassageSearch.of(request).joined(0, laid, hits)
            if isinstance(request, RepeatsRequest):
                made = passages.frame(Labels(rows)).to_arrow(compat_level=pl.CompatLevel.oldest())
                return pa.Table.from_batches(result_batches(made, self.schema), self.schema)
            return pa.Table.from_batches(self._without(request, passages, *rows), self.schema)

    def _without(
        self, request: DropRepeatsRequest, passages: Passages, column: pl.Series | None, table: pa.Table
    ) -> Iterator[pa.RecordBatch]:
        """Return rows without passages; ``column`` None: it is text of the table."""
        column = series(table.column(self.place)) if column is None else column
        if request.unit == "row":
            are_kept = pl.Series(passages.shares < request.share)
            column, table = column.filter(are_kept), table.filter(are_kept.to_arrow())
        else:
            column = request.cut_out(column.alias(self.column), passages.cuts)
        if self.packed:
            return in_cells(table, self.place, column)
        text = column.to_arrow(compat_level=pl.CompatLevel.oldest())
        return result_batches(table.set_column(self.place, self.schema.names[self.place], text), self.schema)


def loaded(cell: Any) -> Any:
    """Read what another task sent."""
    return pickle.loads(cell.as_buffer())
