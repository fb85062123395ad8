"""Term vectors: counts of words by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import polars as pl
import pyarrow as pa

from polars_tadoc.analytics.inverted_index import inverted_index
from polars_tadoc.engine.choose import Engine
from polars_tadoc.execute.analytic import Analytic
from polars_tadoc.execute.row_order import in_row_order
from polars_tadoc.execute.transport import Transport
from polars_tadoc.kernels.host.records.merge_counts import renumber
from polars_tadoc.kernels.primitives.to_arrow_cpu import spread
from polars_tadoc.model.arrow_results import dictionary, numbers, to_arrow, word_series
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.vocabulary import Vocabulary, unify
from polars_tadoc.records.labelled_results import Labels
from polars_tadoc.records.packed_records import sort_records
from polars_tadoc.records.records import Layout, Records, runs_of_equal
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64, array_dataclass
from polars_tadoc.runtime.arrow_memory import view
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.traversal.options import TopOptions, TopRequest, WordForm
from polars_tadoc.traversal.selector import timed_strategy
from polars_tadoc.traversal.source import prepare


def schema(id_type: pl.DataType | None = None) -> pl.Schema:
    """Return the columns of the result, given the type of the ``id`` column, if there is one."""
    return pl.Schema({"id": Labels.dtype(id_type), "word": pl.String(), "count": pl.UInt64()})


@array_dataclass
class DocumentWords:
    """Each document's words, by descending count, ties in code point order; all arrays in host memory."""

    words: Vocabulary
    rows: Int64
    """int64 by document, ascending: its row."""
    offsets: Int64
    """int64, documents + 1: start of each document's words."""
    ids: UInt32
    counts: UInt64

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays and the words."""
        return self.rows.nbytes + self.offsets.nbytes + self.ids.nbytes + self.counts.nbytes + self.words.nbytes


@array_dataclass
class TermVectors:
    """The result; labels and strings are made only in the requested form."""

    labels: Labels
    documents: DocumentWords

    def to_arrow(self) -> pa.Table:
        """Return a table with dictionary-encoded words."""
        return pa.table(
            {
                "id": self.labels.arrow(self._rows()),
                "word": dictionary(self.documents.words, self.documents.ids),
                "count": to_arrow(self.documents.counts),
            }
        )

    def to_frame(self, form: WordForm = "string") -> pl.DataFrame:
        """Return a frame with the columns of :func:`schema`."""
        words = word_series(self.documents.words, self.documents.ids, form)
        return pl.DataFrame([self.labels.series(self._rows()), words, numbers("count", self.documents.counts)])

    def _rows(self) -> UInt32:
        return view(spread(self.documents.rows.astype(np.uint32), self.documents.offsets))


class TermVectorTransport(Transport[DocumentWords]):
    """A row, a word that it holds, and how often."""

    def records(self, part: DocumentWords) -> Records:
        """Return row, word and count."""
        rows = np.repeat(part.rows.astype(np.uint32), np.diff(part.offsets))
        return sort_records(self.layout, part.words, np.stack([rows, part.ids], axis=1), part.counts)

    def part(self, records: Records) -> DocumentWords:
        """Order each row's words by their counts."""
        assert records.counts is not None
        rows, offsets = runs_of_equal(records.keys[:, 0])
        order = np.lexsort((records.keys[:, 1], ~records.counts, records.keys[:, 0]))
        ids, counts = records.keys[order, 1], records.counts[order]
        return DocumentWords(records.vocabulary, rows.astype(np.int64), offsets, ids, counts)


@dataclass(frozen=True)
class TermVectorRequest(TopRequest, Analytic[DocumentWords, TermVectors]):
    """The checked arguments of a call."""

    name: ClassVar[str] = "term_vector"
    joins_grammars_on: ClassVar[tuple[str, ...]] = ("gpu",)
    schema = staticmethod(schema)
    transport = TermVectorTransport(Layout(("row", "word"), 1))

    def without_limits(self) -> Self:
        """Return the same request: limits apply per row, and no row is in two parts."""
        return self

    def partial(self, corpus: Corpus, engine: Engine) -> DocumentWords:
        """Count one corpus' words by document."""
        source = prepare(corpus, engine, self.options.morphism)
        kernels = engine.kernels
        with timed_strategy(self.options.strategy, source, "term_vector") as strategy:
            counted = kernels.count_by_document(*source.symbols, strategy, source.rank, self.min_count, self.top)
            return DocumentWords(source.words, source.rows, *(kernels.to_host(array) for array in counted))

    def merge(self, partials: Sequence[DocumentWords]) -> DocumentWords:
        """Put the documents of several corpora in row order; counts do not change."""
        if len(partials) == 1:
            return partials[0]
        words, maps = unify([part.words for part in partials])
        ids = renumber([part.ids for part in partials], maps)
        rows, offsets, counts = ([getattr(part, name) for part in partials] for name in ("rows", "offsets", "counts"))
        return DocumentWords(words, *in_row_order(rows, offsets, (np.uint32, [ids]), (np.uint64, counts)))

    @property
    def asked(self) -> dict[str, Any]:
        """Arguments on which the records depend."""
        return {**super().asked, "top": self.top, "min_count": self.min_count}

    def result(self, total: DocumentWords, labels: Labels) -> TermVectors:
        """Replace rows by labels."""
        return TermVectors(labels, total)


@documented_by(inverted_index)
def term_vector(column: pl.Series, *, id: pl.Series | None = None, **options: Unpack[TopOptions]) -> pa.Table:
    """Count each row's words (G-TADOC's term vector, Zhang et al., ICDE 2021).

    Parameters
    ----------
    top
        Maximum words per row.
    min_count
        Drop words with smaller counts in the row.

    Returns
    -------
    pyarrow.Table
        ``id`` (the labels' type, or uint32), ``word: dictionary<large_string>``, ``count: uint64``; in row order, each
        row's words by descending count, then in code point order. Null rows give no result rows.

    Raises
    ------
    TypeError
        ``top`` or ``min_count`` is not an integer, ``normalize`` not an expression, ``lowercase`` not a bool or
        ``stopwords`` not a list of strings; ``id`` is not a series, or of a type that results cannot hold.
    ValueError
        ``top`` is negative, ``id`` has another length than the column, ``strategy`` or ``engine`` is unknown, or
        ``normalize`` reads columns or does not give one String or null per word.

    Examples
    --------
    >>> column = pl.Series("text", ["to be or not to be", "to do"]).tadoc.compress()
    >>> tadoc.term_vector(column, top=1).to_pylist()
    [{'id': 0, 'word': 'be', 'count': 2}, {'id': 1, 'word': 'do', 'count': 1}]

    """
    return TermVectorRequest.from_arguments(**options).run(column, id).to_arrow()
