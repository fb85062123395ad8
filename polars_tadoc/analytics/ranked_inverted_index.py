"""Ranked inverted index: the rows that contain each sequence of n words, by descending count."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.analytics.sequence_count import sequence_count
from polars_tadoc.engine.choose import Engine
from polars_tadoc.execute.analytic import Analytic
from polars_tadoc.execute.transport import Transport
from polars_tadoc.kernels.host.records.merge_counts import joined, renumber
from polars_tadoc.kernels.keys.merge_cpu import join_postings
from polars_tadoc.kernels.keys.posting_order_cpu import rank_postings
from polars_tadoc.model.arrow_results import from_arrow, lists, sequence_lists, sequence_series, to_arrow
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.vocabulary import Vocabulary, unify
from polars_tadoc.records.labelled_results import Labels
from polars_tadoc.records.packed_records import sort_records
from polars_tadoc.records.records import Layout, Records, runs_of_equal, word_columns
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64, array_dataclass
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.traversal.options import RunOptions, RunRequest, WordForm
from polars_tadoc.traversal.selector import timed_source
from polars_tadoc.traversal.source import prepare


def schema(id_type: pl.DataType | None = None) -> pl.Schema:
    """Return the columns of the result, given the type of the ``id`` column, if there is one."""
    documents = pl.List(pl.Struct({"id": Labels.dtype(id_type), "count": pl.UInt64()}))
    return pl.Schema({"sequence": pl.List(pl.String()), "documents": documents})


@array_dataclass
class Postings:
    """Rows that contain each sequence, by descending count; all arrays in host memory."""

    words: Vocabulary
    ids: UInt32
    """uint32[sequences, n]: word ids; sequences in code point order."""
    offsets: Int64
    """int64, sequences + 1: start of each sequence's rows."""
    rows: npt.NDArray[Any]
    counts: UInt64

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays and the words."""
        return self.ids.nbytes + self.offsets.nbytes + self.rows.nbytes + self.counts.nbytes + self.words.nbytes


@array_dataclass
class RankedInvertedIndex:
    """The result; labels and strings are made only in the requested form."""

    labels: Labels
    postings: Postings

    def to_arrow(self) -> pa.Table:
        """Return a table with lists of dictionary-encoded words."""
        sequences = sequence_lists(self.postings.words, self.postings.ids)
        return pa.table({"sequence": sequences, "documents": self._documents()})

    def to_frame(self, form: WordForm = "string") -> pl.DataFrame:
        """Return a frame with the columns of :func:`schema`."""
        documents = self.labels.typed_counts(from_arrow("documents", self._documents()))
        return pl.DataFrame([sequence_series(self.postings.words, self.postings.ids, form), documents])

    def _documents(self) -> pa.Array:
        fields = [self.labels.arrow(self.postings.rows), to_arrow(self.postings.counts)]
        return lists(self.postings.offsets, pa.StructArray.from_arrays(fields, ["id", "count"]))


@dataclass(frozen=True)
class RankedTransport(Transport[Postings]):
    """The words of a run, a row that holds it, and how often."""

    def records(self, part: Postings) -> Records:
        """Return sequence, row and count of each posting."""
        runs = np.repeat(part.ids, np.diff(part.offsets), axis=0)
        keys = np.column_stack([runs, part.rows.astype(np.uint32)])
        return sort_records(self.layout, part.words, keys, part.counts)

    def part(self, records: Records, min_count: int = 1, top: int | None = None) -> Postings:
        """Order each run's rows by their counts, and apply limits."""
        assert records.counts is not None
        n = self.layout.group
        ids, offsets = runs_of_equal(records.keys[:, :n])
        rows, counts = records.keys[:, n].copy(), records.counts.copy()
        kept, offsets, rows, counts = rank_postings(offsets, rows, counts, min_count, top)
        return Postings(records.vocabulary, ids if kept is None else ids[kept], offsets, rows, counts)


@dataclass(frozen=True)
class RankedInvertedIndexRequest(RunRequest, Analytic[Postings, RankedInvertedIndex]):
    """The checked arguments of a call."""

    name: ClassVar[str] = "ranked_inverted_index"
    joins_grammars_on: ClassVar[tuple[str, ...]] = ("cpu", "gpu")
    schema = staticmethod(schema)

    def partial(self, corpus: Corpus, engine: Engine) -> Postings:
        """Index one corpus."""
        source = prepare(corpus, engine, self.options.morphism)
        kernels = engine.kernels
        with timed_source(self.options.strategy, source, "ranked_inverted_index", self.n) as (source, strategy):
            found = kernels.sequence_postings(
                *source.symbols, self.n, source.rank, strategy, min_count=self.min_count, top=self.top
            )
        ids, offsets, documents, counts = map(kernels.to_host, found)  # takes the same time by any strategy
        return Postings(source.words, ids, offsets, source.rows_of(documents), counts)

    def merge(self, partials: Sequence[Postings]) -> Postings:
        """Merge the rows of several corpora, sequence by sequence, in host memory."""
        words, maps = unify([part.words for part in partials])
        ids = renumber([part.ids.reshape(-1) for part in partials], maps).reshape(-1, self.n)
        sizes = joined(np.int64, [np.diff(part.offsets) for part in partials])
        rows = joined(np.uint32, [part.rows for part in partials])
        counts = joined(np.uint64, [part.counts for part in partials])
        return Postings(words, *join_postings(ids, sizes, rows, counts, words.rank, self.min_count, self.top))

    @property
    def asked(self) -> dict[str, Any]:
        """Arguments on which the records depend."""
        return {**super().asked, "n": self.n}

    @property
    def transport(self) -> RankedTransport:
        """How partial results travel."""
        return RankedTransport(Layout((*word_columns(self.n), "row"), self.n))

    def ranged(self, records: Records, labels: Labels) -> RankedInvertedIndex:
        """Apply the limits to each run's rows."""
        return RankedInvertedIndex(labels, self.transport.part(records, self.min_count, self.top))

    def result(self, total: Postings, labels: Labels) -> RankedInvertedIndex:
        """Replace rows by labels."""
        return RankedInvertedIndex(labels, total)


@documented_by(sequence_count)
def ranked_inverted_index(column: pl.Series, *, id: pl.Series | None = None, **options: Unpack[RunOptions]) -> pa.Table:
    """List the rows that contain each sequence of n words, by descending count (Zhang et al., ICDE 2021).

    Parameters
    ----------
    column
        Compressed column, or plain text (String, Categorical or Enum); each row is a document.
    id
        Labels of the rows, one for each; default: row numbers.
    top
        Maximum rows per sequence.
    min_count
        Drop sequences with smaller counts over all rows.

    Returns
    -------
    pyarrow.Table
        ``sequence: large_list<dictionary<large_string>>``, word by word in code point order;
        ``documents: large_list<struct<id, count: uint64>>``, by descending count, then in row order.

    Raises
    ------
    TypeError
        ``n``, ``top`` or ``min_count`` is not an integer, ``normalize`` not an expression, ``lowercase`` not a bool or
        ``stopwords`` not a list of strings; ``id`` is not a series, or of a type that results cannot hold.
    ValueError
        ``n`` is not from 1 to 2^32 - 1, ``top`` is negative, ``id`` has another length than the column, ``strategy`` or
        ``engine`` is unknown, or ``normalize`` reads columns or does not give one String or null per word.

    Examples
    --------
    >>> column = pl.Series("text", ["not to be", "to be or not to be"]).tadoc.compress()
    >>> tadoc.ranked_inverted_index(column, n=2, min_count=3).to_pylist()
    [{'sequence': ['to', 'be'], 'documents': [{'id': 1, 'count': 2}, {'id': 0, 'count': 1}]}]

    """
    return RankedInvertedIndexRequest.from_arguments(**options).run(column, id).to_arrow()
