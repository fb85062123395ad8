"""``Workers``: calls that count, list and weigh words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

import polars as pl

from polars_tadoc.analytics.bm25_weights import BM25WeightsOnWorkers, BM25WeightsRequest, bm25_weights
from polars_tadoc.analytics.cooccurrence import CooccurrenceOnWorkers, CooccurrenceRequest, cooccurrence
from polars_tadoc.analytics.inverted_index import InvertedIndexRequest, inverted_index
from polars_tadoc.analytics.ranked_inverted_index import RankedInvertedIndexRequest, ranked_inverted_index
from polars_tadoc.analytics.sequence_count import LengthsRequest, request_of, sequence_count, with_length
from polars_tadoc.analytics.sort import SortRequest, sort
from polars_tadoc.analytics.term_vector import TermVectorRequest, term_vector
from polars_tadoc.analytics.tfidf import TFIDFOnWorkers, TFIDFRequest, tfidf
from polars_tadoc.analytics.twig_filter import TwigFilterOnWorkers, TwigFilterRequest, twig_filter
from polars_tadoc.analytics.word_count import WordCountRequest, word_count
from polars_tadoc.distributed.worker_runs import COLUMN, LABELS, SOURCE, WorkersBase
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.storage.find import Source
from polars_tadoc.traversal.options import CountOnWorkers, LengthsOnWorkers, RunOnWorkers, TopOnWorkers
from polars_tadoc.twig.twig_set import TwigSet


class WorkersCounting(WorkersBase):
    """Calls that count, list and weigh words."""

    @documented_by(word_count, source=SOURCE, column=COLUMN)
    def word_count(self, source: Source, column: str | None = None, **options: Unpack[TopOnWorkers]) -> pl.LazyFrame:
        """Count words.

        Returns
        -------
        LazyFrame
            ``word: String, count: UInt64``, by descending count, then word in code point order.

        """
        return self._answer(WordCountRequest.from_arguments(**options), source, column)

    @documented_by(sort, source=SOURCE, column=COLUMN)
    def sort(self, source: Source, column: str | None = None, **options: Unpack[CountOnWorkers]) -> pl.LazyFrame:
        """List words in code point order.

        Returns
        -------
        LazyFrame
            ``word: String, count: UInt64``, by word in code point order.

        """
        return self._answer(SortRequest.from_arguments(**options), source, column)

    @documented_by(inverted_index, source=SOURCE, column=COLUMN, id=LABELS)
    def inverted_index(
        self, source: Source, column: str | None = None, *, id: str | None = None, **options: Unpack[CountOnWorkers]
    ) -> pl.LazyFrame:
        """List the rows that contain each word.

        Returns
        -------
        LazyFrame
            ``word: String, documents: List(id)``, by word in code point order; documents ascending.

        """
        return self._answer(InvertedIndexRequest.from_arguments(**options), source, column, id)

    @documented_by(term_vector, source=SOURCE, column=COLUMN, id=LABELS)
    def term_vector(
        self, source: Source, column: str | None = None, *, id: str | None = None, **options: Unpack[TopOnWorkers]
    ) -> pl.LazyFrame:
        """Count the words of each row.

        Returns
        -------
        LazyFrame
            ``id, word: String, count: UInt64``, in row order, each row's words by descending count, then word.

        """
        return self._answer(TermVectorRequest.from_arguments(**options), source, column, id)

    @documented_by(sequence_count, source=SOURCE, column=COLUMN)
    def sequence_count(
        self, source: Source, column: str | None = None, **options: Unpack[LengthsOnWorkers]
    ) -> pl.LazyFrame:
        """Count the sequences of n words; each of several lengths by itself.

        Returns
        -------
        LazyFrame
            ``sequence: List(String), count: UInt64``, by descending count, then in code point order; with several
            lengths after a column ``n: UInt32``, in the order of ``n``.

        """
        request = request_of(**options)
        if not isinstance(request, LengthsRequest):
            return self._answer(request, source, column)
        return pl.concat([with_length(one.n, self._answer(one, source, column)) for one in request.each])

    @documented_by(ranked_inverted_index, source=SOURCE, column=COLUMN, id=LABELS)
    def ranked_inverted_index(
        self, source: Source, column: str | None = None, *, id: str | None = None, **options: Unpack[RunOnWorkers]
    ) -> pl.LazyFrame:
        """List the rows that contain each sequence of n words, by descending count.

        Returns
        -------
        LazyFrame
            ``sequence: List(String), documents: List(Struct{id, count: UInt64})``; by words in code point order,
            documents by descending count, then in row order.

        """
        return self._answer(RankedInvertedIndexRequest.from_arguments(**options), source, column, id)

    @documented_by(cooccurrence, source=SOURCE, column=COLUMN)
    def cooccurrence(
        self, source: Source, column: str | None = None, **options: Unpack[CooccurrenceOnWorkers]
    ) -> pl.LazyFrame:
        """Count the pairs of words within a window.

        Returns
        -------
        LazyFrame
            ``word: String, other: String, count: UInt64``, by descending count, then in code point order.

        """
        return self._answer(CooccurrenceRequest.from_arguments(**options), source, column)

    @documented_by(bm25_weights, source=SOURCE, column=COLUMN, id=LABELS)
    def bm25_weights(
        self,
        source: Source,
        column: str | None = None,
        *,
        id: str | None = None,
        **options: Unpack[BM25WeightsOnWorkers],
    ) -> pl.LazyFrame:
        """Weigh each row's words by BM25.

        Returns
        -------
        LazyFrame
            ``id, word: String, weight: Float64``, in row order, words in the order of
            :func:`polars_tadoc.bm25_weights`.

        """
        return self._answer(BM25WeightsRequest.from_arguments(**options), source, column, id)

    @documented_by(tfidf, source=SOURCE, column=COLUMN, id=LABELS)
    def tfidf(
        self, source: Source, column: str | None = None, *, id: str | None = None, **options: Unpack[TFIDFOnWorkers]
    ) -> pl.LazyFrame:
        """Weigh each row's words by TF-IDF.

        Returns
        -------
        LazyFrame
            ``id, word: String, weight: Float64``, in row order, words in the order of :func:`polars_tadoc.tfidf`.

        """
        return self._answer(TFIDFRequest.from_arguments(**options), source, column, id)

    @documented_by(twig_filter, source=SOURCE, column=COLUMN, id=LABELS)
    def twig_filter(
        self,
        source: Source,
        column: str | None = None,
        queries: Mapping[str, str] | TwigSet | None = None,
        *,
        id: str | None = None,
        **options: Unpack[TwigFilterOnWorkers],
    ) -> pl.LazyFrame:
        """Find the XPath queries that each row's XML document matches.

        Returns
        -------
        LazyFrame
            ``id, query: String``, in row order, each row's queries in the order of the set.

        """
        request = TwigFilterRequest.of_frame(column, queries, **options)
        return self._answer(request, source, column, id)
