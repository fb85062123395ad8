"""Inverted index: the rows that contain each word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.analytics.word_count import word_count
from polars_tadoc.engine.choose import Engine
from polars_tadoc.execute.analytic import Analytic
from polars_tadoc.execute.transport import Transport
from polars_tadoc.kernels.host.records.merge_counts import join_lists
from polars_tadoc.kernels.primitives.lists import gather_lists
from polars_tadoc.model.arrow_results import dictionary, from_arrow, lists, word_series
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.vocabulary import Vocabulary, unify
from polars_tadoc.records.labelled_results import Labels
from polars_tadoc.records.packed_records import sort_records
from polars_tadoc.records.records import Layout, Records
from polars_tadoc.runtime.array_types import Int64, UInt32, array_dataclass
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.traversal.options import CountOptions, CountRequest, WordForm
from polars_tadoc.traversal.selector import timed_strategy
from polars_tadoc.traversal.source import prepare


def schema(id_type: pl.DataType | None = None) -> pl.Schema:
    """Return the columns of the result, given the type of the ``id`` column, if there is one."""
    return pl.Schema({"word": pl.String(), "documents": pl.List(Labels.dtype(id_type))})


@array_dataclass
class Postings:
    """Rows that contain each word, ascending; all arrays in host memory."""

    words: Vocabulary
    offsets: Int64
    """int64, words + 1, by word id."""
    rows: npt.NDArray[Any]

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays and the words."""
        return self.offsets.nbytes + self.rows.nbytes + self.words.nbytes


@array_dataclass
class InvertedIndex:
    """The result; labels and strings are made only in the requested form."""

    labels: Labels
    words: Vocabulary
    ids: UInt32
    offsets: Int64
    rows: npt.NDArray[Any]

    def to_arrow(self) -> pa.Table:
        """Return a table with dictionary-encoded words."""
        return pa.table({"word": dictionary(self.words, self.ids), "documents": self._documents()})

    def to_frame(self, form: WordForm = "string") -> pl.DataFrame:
        """Return a frame with the columns of :func:`schema`."""
        documents = from_arrow("documents", self._documents())
        return pl.DataFrame([word_series(self.words, self.ids, form), self.labels.typed(documents)])

    def _documents(self) -> pa.Array:
        return lists(self.offsets, self.labels.arrow(self.rows))


class PostingsTransport(Transport[Postings]):
    """A word, and a row that holds it."""

    def records(self, part: Postings) -> Records:
        """Return word and row of each posting."""
        ids = np.repeat(np.arange(len(part.words), dtype=np.uint32), np.diff(part.offsets))
        return sort_records(self.layout, part.words, np.stack([ids, part.rows.astype(np.uint32)], axis=1))

    def part(self, records: Records) -> Postings:
        """List the rows of each word."""
        words = records.vocabulary
        offsets = np.searchsorted(records.keys[:, 0], np.arange(len(words) + 1))
        return Postings(words, offsets, records.keys[:, 1].copy())


@dataclass(frozen=True)
class InvertedIndexRequest(CountRequest, Analytic[Postings, InvertedIndex]):
    """The checked arguments of a call."""

    name: ClassVar[str] = "inverted_index"
    joins_grammars_on: ClassVar[tuple[str, ...]] = ("gpu",)
    schema = staticmethod(schema)
    transport = PostingsTransport(Layout(("word", "row"), 1, counted=False))

    def partial(self, corpus: Corpus, engine: Engine) -> Postings:
        """Index one corpus."""
        source = prepare(corpus, engine, self.options.morphism)
        kernels = engine.kernels
        with timed_strategy(self.options.strategy, source, "inverted_index") as strategy:
            offsets, documents, _ = kernels.count_by_terminal(*source.symbols, strategy, counted=False)
            return Postings(source.words, kernels.to_host(offsets), source.rows_of(kernels.to_host(documents)))

    def merge(self, partials: Sequence[Postings]) -> Postings:
        """Merge the rows of several corpora, word by word."""
        if len(partials) == 1:
            return partials[0]
        words, maps = unify([part.words for part in partials])
        offsets, rows = ([getattr(part, name) for part in partials] for name in ("offsets", "rows"))
        places = [words.rank[own] for own in maps]  # so that the result need not move a list
        return Postings(words.in_order, *join_lists(len(words), places, offsets, rows))

    def result(self, total: Postings, labels: Labels) -> InvertedIndex:
        """Sort the words, and replace rows by labels."""
        ids = total.words.by_rank
        kept = np.diff(total.offsets)[ids] >= min(self.min_count, np.iinfo(np.int64).max)
        if total.words.in_order is total.words and kept.all():
            return InvertedIndex(labels, total.words, ids, total.offsets, total.rows)
        ids = ids[kept]
        return InvertedIndex(labels, total.words, ids, *gather_lists(total.offsets, total.rows, ids))


@documented_by(word_count)
def inverted_index(column: pl.Series, *, id: pl.Series | None = None, **options: Unpack[CountOptions]) -> pa.Table:
    """List the rows that contain each word (G-TADOC's inverted index, Zhang et al., ICDE 2021).

    Parameters
    ----------
    column
        Compressed column, or plain text (String, Categorical or Enum); each row is a document.
    id
        Labels of the rows, one for each; default: row numbers.
    min_count
        Drop words that fewer rows contain.

    Returns
    -------
    pyarrow.Table
        ``word: dictionary<large_string>``, in code point order; ``documents: large_list`` of the labels' type (or
        uint32), in row order.

    Raises
    ------
    TypeError
        ``min_count`` is not an integer, ``normalize`` not an expression, ``lowercase`` not a bool or ``stopwords`` not
        a list of strings; ``id`` is not a series, or of a type that results cannot hold.
    ValueError
        ``id`` has another length than the column, ``strategy`` or ``engine`` is unknown, or ``normalize`` reads columns
        or does not give one String or null per word.

    Examples
    --------
    >>> column = pl.Series("text", ["to be or not to be", "to do"]).tadoc.compress()
    >>> tadoc.inverted_index(column, min_count=2).to_pylist()
    [{'word': 'to', 'documents': [0, 1]}]
    >>> tadoc.inverted_index(column, id=pl.Series(["Hamlet", "list"])).to_pylist()[1]
    {'word': 'do', 'documents': ['list']}

    """
    return InvertedIndexRequest.from_arguments(**options).run(column, id).to_arrow()
