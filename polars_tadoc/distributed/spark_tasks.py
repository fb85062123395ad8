"""The functions of Spark's Python workers: each takes and yields Arrow batches, and is sent with its arguments.

A task counts its rows block by block, merges the partial results, and hands them over in shards, by word; then one task
per shard merges the partial results of all others. Rows that are processed again, because a worker was lost, give the
same results.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from polars_tadoc.compress.compress import ROWS_PER_GRAMMAR, Compression
from polars_tadoc.config import own_threads
from polars_tadoc.distributed.binary_cells import cells, partitions_of
from polars_tadoc.distributed.labelled import (
    Labelled,
    decode_labels,
    encode_labels,
    label_order,
    merge_labelled,
    split_labelled,
)
from polars_tadoc.errors import InvalidGrammarError
from polars_tadoc.execute.analytic import Analytic
from polars_tadoc.execute.document_frequencies import FREQUENCIES, document_frequencies
from polars_tadoc.execute.stages import Stages
from polars_tadoc.execute.terms import Totals
from polars_tadoc.kernels.primitives.lists import gather_lists
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.blocks import cut_blocks
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.vocabulary import Vocabulary, unify
from polars_tadoc.records.labelled_results import Labels
from polars_tadoc.records.packed_records import merge_records
from polars_tadoc.records.records import decode, encode, split
from polars_tadoc.runtime.array_types import UInt32

Batches = Iterable[pa.RecordBatch]

TEXT_BYTES = 1 << 25
"""Approximate text bytes tokenized at a time."""

GRAMMAR_BYTES = 1 << 26
"""Text bytes per grammar: making one takes about six times the memory, and a machine runs many tasks."""

ROOM = 1 << 27
"""Bytes from which a task hands over its partial results."""

RESULT_ROWS = 1 << 18
"""Rows per batch of results: Spark's strings and lists have 31-bit sizes."""

FOUND = pa.schema([("shard", pa.int32()), ("payload", pa.binary()), ("labels", pa.binary())])
"""Partial results of a shard, written by :func:`encode`."""

TERMS = pa.schema(
    [
        ("shard", pa.int32()),
        ("part", pa.int64()),
        ("whole", pa.bool_()),
        ("payload", pa.binary()),
        ("labels", pa.binary()),
        ("documents", pa.int64()),
        ("words", pa.int64()),
    ]
)
"""Documents to be weighed (``whole``), or words with their document frequencies; and the numbers of documents and
words that they cover."""


@dataclass(frozen=True)
class Rows:
    """Converts rows of batches to documents."""

    column: str
    """Name of the column of text or cells, for messages: the first one in a batch."""
    labels: str | None
    """Name of the column that labels documents, if any: the last one."""
    packed: bool
    """Whether the column has cells."""
    tokenizer: Tokenizer
    """Tokenizer of text."""

    def blocks(self, batches: Batches) -> Iterator[tuple[Corpus | pl.Series, pl.Series | None]]:
        """Yield the documents block by block, as a corpus or as text, with their labels."""
        if self.packed:
            return self._partitions(batches)
        return self._texts(batches)

    def _texts(self, batches: Batches) -> Iterator[tuple[pl.Series, pl.Series | None]]:
        for table in gathered(batches, 0, TEXT_BYTES):
            text = series(table.column(0))
            labels = None if self.labels is None else series(table.column(table.num_columns - 1))
            sizes = text.str.len_bytes().fill_null(0).cast(pl.Int64).to_numpy()
            for start, stop in cut_blocks(sizes, len(sizes), TEXT_BYTES):
                yield text[start:stop], None if labels is None else labels[start:stop]

    def _partitions(self, batches: Batches) -> Iterator[tuple[Corpus, pl.Series | None]]:
        for batch in batches:
            for cell, values in zip(batch.column(0), batch.column(batch.num_columns - 1), strict=True):
                if not cell.is_valid:
                    continue
                labels = None if self.labels is None else series(values.values)
                held = list(partitions_of(cell.as_buffer(), self.column))
                count = sum(partition.document_count for partition in held)
                if labels is not None and len(labels) != count:
                    raise InvalidGrammarError(
                        f'column "{self.column}": a cell has {count:,} documents, "{self.labels}" has {len(labels):,}'
                    )
                first = 0
                for partition in held:
                    stop, corpus = first + partition.document_count, partition.corpus()
                    if corpus.document_count:  # rows that are all null have no grammar
                        yield corpus, None if labels is None else labels[first:stop]
                    first = stop


def gathered(batches: Batches, place: int, most: int) -> Iterator[pa.Table]:
    """Concatenate batches until a column reaches ``most`` bytes."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(one.column(place).nbytes for one in held) >= most:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def series(array: pa.Array | pa.ChunkedArray) -> pl.Series:
    """Convert an Arrow array to a Polars series."""
    made: Any = pl.from_arrow(array)
    return made.alias("values")  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Asked:
    """One analytic call on a frame."""

    analytic: Analytic[Any, Any]
    """The analytic."""
    rows: Rows
    """Converts its rows."""
    shards: int
    """Number of tasks that merge."""
    schema: pa.Schema
    """Columns of the result."""
    threads: int
    """Threads per task."""

    def answer(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Compute results that need no other documents."""
        with at_work(self.threads):
            for part, labels in self._parts(batches, in_order=False):
                total = self.analytic.merge([part])
                yield from result_batches(self.analytic.result(total, Labels(labels)).to_arrow(), self.schema)

    def find(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Compute the partial results of a task, in shards."""
        with at_work(self.threads):
            for found in self._found(batches):
                for shard, own in enumerate(split_labelled(self.analytic.layout, found, self.shards)):
                    if len(own.records):
                        yield row(FOUND, shard, encode(own.records), encode_labels(own.labels))

    def merge(self, found: pa.Table) -> pa.Table:
        """Merge the partial results of all tasks for a shard."""
        with at_work(self.threads):
            merged = merge_labelled(self.analytic.layout, self._decoded(found))
            total = self.analytic.merge([self.analytic.transport.part(merged.records)])
            made = self.analytic.result(total, Labels(merged.labels)).to_arrow()
            return pa.Table.from_batches(result_batches(made, self.schema), self.schema)

    def find_terms(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Count the words of a task's documents, and send each shard the document frequencies of its words."""
        first = first_part()
        with at_work(self.threads):
            for number, found in enumerate(self._found(batches), first):
                records = found.records
                assert records.rows is not None
                assert records.lengths is not None
                of = len(records.rows), int(records.lengths.sum())
                for shard, words in enumerate(split(FREQUENCIES, document_frequencies(records), self.shards)):
                    yield row(TERMS, shard, number, False, encode(words), None, *of)
                shard = number % self.shards
                yield row(TERMS, shard, number, True, encode(records), encode_labels(found.labels), *of)

    def count_documents(self, found: pa.Table) -> pa.Table:
        """Send each part the document frequencies over all parts; documents pass through unchanged."""
        with at_work(self.threads):
            asked = found.filter(pc.invert(found["whole"]))
            parts = [decode(FREQUENCIES, cell.as_buffer()) for cell in asked["payload"]]
            words, numbers = unify([Vocabulary(part.words) for part in parts])
            holding = np.zeros(len(words), np.uint64)
            for part, own in zip(parts, numbers, strict=True):
                assert part.counts is not None
                holding[own] += part.counts
            told = [encode(replace(part, counts=holding[own])) for part, own in zip(parts, numbers, strict=True)]
            columns = {name: asked[name] for name in TERMS.names} | {"payload": pa.array(told, pa.binary())}
            for name in ("documents", "words"):
                columns[name] = pa.array([sum(asked[name].to_pylist())] * len(parts), pa.int64())
            return pa.concat_tables([pa.table(columns, TERMS), found.filter(found["whole"])])

    def weigh(self, found: pa.Table) -> pa.Table:
        """Weigh the words of a part's documents, given the document frequencies over all parts."""
        with at_work(self.threads):
            told = found.filter(pc.invert(found["whole"]))
            (whole,) = found.filter(found["whole"]).to_batches()
            holding = merge_records(FREQUENCIES, [decode(FREQUENCIES, cell.as_buffer()) for cell in told["payload"]])
            records = decode(self.analytic.layout, whole["payload"][0].as_buffer())
            assert holding.counts is not None
            totals = Totals(told["documents"][0].as_py(), told["words"][0].as_py(), holding.counts)
            terms = replace(self.analytic.transport.part(records), known_totals=totals)
            labels = Labels(decode_labels(whole["labels"][0].as_buffer()))
            made = self.analytic.result(terms, labels).to_arrow()
            return pa.Table.from_batches(result_batches(made, self.schema), self.schema)

    def _found(self, batches: Batches) -> Iterator[Labelled]:
        """Count a task's documents, and merge until the result is large."""
        layout = self.analytic.layout
        held: list[Labelled] = []
        for part, labels in self._parts(batches, in_order=True):
            held.append(Labelled(self.analytic.transport.records(part), labels))
            if sum(found.nbytes for found in held) > ROOM:
                held = [merge_labelled(layout, held)]
                if held[0].nbytes > ROOM // 2:
                    yield held.pop()
        if held:
            yield merge_labelled(layout, held)

    def _parts(self, batches: Batches, *, in_order: bool) -> Iterator[tuple[Any, pl.Series | None]]:
        """Count block by block; return also the labels of the rows, ascending if the order matters."""
        stages = Stages(self.analytic, self.rows.tokenizer)
        for block, labels in self.rows.blocks(batches):
            documents = block
            if in_order and labels is not None:
                order = label_order(labels)
                labels = labels.gather(order)
                documents = block.gather(order) if isinstance(block, pl.Series) else _in_order(block, order)
            for part in stages.find(documents):
                yield part, labels

    def _decoded(self, found: pa.Table) -> list[Labelled]:
        cells = zip(found["payload"], found["labels"], strict=True)
        return [
            Labelled(decode(self.analytic.layout, payload.as_buffer()), decode_labels(labels.as_buffer()))
            for payload, labels in cells
        ]


@contextmanager
def at_work(threads: int) -> Iterator[None]:
    """Limit a task to ``threads`` threads."""
    _spare_imports()
    with own_threads(threads):
        yield


@cache
def _spare_imports() -> None:
    """Exclude this worker's imports from the garbage collection after each task, which takes 50 ms."""
    if _task() is not None:
        gc.freeze()


def first_part() -> int:
    """Return the number of the running task's first part; no other task numbers its parts alike."""
    context = _task()
    return 0 if context is None else context.partitionId() << 32


def _task() -> Any | None:
    """Return Spark's context of the running task; None outside of one."""
    pyspark = sys.modules.get("pyspark")
    return None if pyspark is None else pyspark.TaskContext.get()


def _in_order(corpus: Corpus, order: UInt32) -> Corpus:
    """Reorder documents, numbered by their rows."""
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.arange(len(order))
    rows = numbers[corpus.rows]
    if (rows[1:] > rows[:-1]).all():
        return replace(corpus, rows=rows)
    places = np.argsort(rows)
    lists: Any = gather_lists(corpus.root_offsets, corpus.roots, places)
    offsets, roots = lists
    return Corpus(corpus.key, corpus.grammar, rows[places], offsets, roots, corpus.gaps.gather(places))


def row(schema: pa.Schema, *values: Any) -> pa.RecordBatch:
    """Return a row of these columns."""
    return pa.record_batch([pa.array([value], kind) for value, kind in zip(values, schema.types, strict=True)], schema)


def result_batches(made: pa.Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield a result's rows in Spark's types, in batches."""
    for start in range(0, made.num_rows, RESULT_ROWS):
        yield from made.slice(start, RESULT_ROWS).cast(schema).combine_chunks().to_batches()


@dataclass(frozen=True)
class Compressing:
    """Compresses a frame's text into cells."""

    how: Compression
    """Options of compression."""
    place: int
    """Position of the text column."""
    threads: int
    """Threads per task."""

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """Compress a limited amount of text at a time; other columns become lists."""
        with at_work(self.threads):
            for table in gathered(batches, self.place, GRAMMAR_BYTES):
                text = series(table.column(self.place))
                sizes = text.str.len_bytes().fill_null(0).cast(pl.Int64).to_numpy()
                most = self.how.rows_per_grammar or ROWS_PER_GRAMMAR
                for start, stop in cut_blocks(sizes, most, GRAMMAR_BYTES):
                    yield from in_cells(table.slice(start, stop - start), self.place, self.how.run(text[start:stop]))


def in_cells(table: pa.Table, place: int, compressed: pl.Series) -> Iterator[pa.RecordBatch]:
    """Pack a compressed column into cells at ``place`` of a table; other columns become lists."""
    first = 0
    for cell, count in cells(compressed):
        own = table.slice(first, count)
        first += count
        columns = [_one_list(values) for values in own.columns]
        columns[place] = pa.array([cell], pa.binary())
        yield pa.record_batch(columns, table.column_names)


def _one_list(values: pa.ChunkedArray) -> pa.ListArray:
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values.combine_chunks())
