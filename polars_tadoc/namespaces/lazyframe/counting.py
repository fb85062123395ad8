"""``lf.tadoc``: counts and weights."""

from __future__ import annotations

from typing import Any, Unpack

import polars as pl

from polars_tadoc.analytics.bm25_weights import BM25WeightsRequest
from polars_tadoc.analytics.cooccurrence import CooccurrenceRequest
from polars_tadoc.analytics.inverted_index import InvertedIndexRequest
from polars_tadoc.analytics.ranked_inverted_index import RankedInvertedIndexRequest
from polars_tadoc.analytics.sequence_count import SequenceCountRequest, lengths_of, request_of, with_length
from polars_tadoc.analytics.sort import SortRequest
from polars_tadoc.analytics.term_vector import TermVectorRequest
from polars_tadoc.analytics.tfidf import TFIDFRequest
from polars_tadoc.analytics.word_count import WordCountRequest
from polars_tadoc.execute.analytic import asking_for_frames
from polars_tadoc.execute.columns import text_column
from polars_tadoc.execute.plan import read_columns
from polars_tadoc.namespaces.dataframe import TadocFrame
from polars_tadoc.namespaces.lazyframe.base import (
    BM25WeightsInPlans,
    CooccurrenceInPlans,
    CountInPlans,
    LengthsInPlans,
    PlanBase,
    RunInPlans,
    TFIDFInPlans,
    TopInPlans,
    documented,
)
from polars_tadoc.runtime.arguments import require_path


class PlanCounting(PlanBase):
    """Counts and weights."""

    @documented(TadocFrame.word_count)
    def word_count(self, column: str | None = None, **options: Unpack[TopInPlans]) -> pl.LazyFrame:
        """Count the words of a compressed column; only that column is read.

        Examples
        --------
        >>> lf = pl.LazyFrame({"text": ["the cat", "the dog"]}).tadoc.compress("text")
        >>> lf.tadoc.word_count(top=1).collect().rows()
        [('the', 2)]

        """
        return self._plan(WordCountRequest.from_arguments, options, column)

    @documented(TadocFrame.sort)
    def sort(self, column: str | None = None, **options: Unpack[CountInPlans]) -> pl.LazyFrame:
        """List the words of a compressed column in code point order; only that column is read.

        Examples
        --------
        >>> lf = pl.LazyFrame({"text": ["to be", "not to be"]}).tadoc.compress("text")
        >>> lf.tadoc.sort("text").collect().rows()
        [('be', 2), ('not', 1), ('to', 2)]

        """
        return self._plan(SortRequest.from_arguments, options, column)

    @documented(TadocFrame.inverted_index)
    def inverted_index(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[CountInPlans]
    ) -> pl.LazyFrame:
        """List the rows that contain each word of a compressed column; only that column and ``id`` are read.

        Examples
        --------
        >>> lf = pl.LazyFrame({"day": ["mon", "tue"], "text": ["to be", "to do"]}).tadoc.compress("text")
        >>> lf.tadoc.inverted_index("text", id="day").collect().rows()
        [('be', ['mon']), ('do', ['tue']), ('to', ['mon', 'tue'])]

        """
        return self._plan(InvertedIndexRequest.from_arguments, options, column, id)

    @documented(TadocFrame.term_vector)
    def term_vector(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[TopInPlans]
    ) -> pl.LazyFrame:
        """Count the words of each row of a compressed column; only that column and ``id`` are read.

        Examples
        --------
        >>> lf = pl.LazyFrame({"day": ["mon", "tue"], "text": ["to be or not to be", "to do"]}).tadoc.compress("text")
        >>> lf.tadoc.term_vector("text", id="day", top=1).collect().rows()
        [('mon', 'be', 2), ('tue', 'do', 1)]

        """
        return self._plan(TermVectorRequest.from_arguments, options, column, id)

    @documented(TadocFrame.bm25_weights)
    def bm25_weights(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[BM25WeightsInPlans]
    ) -> pl.LazyFrame:
        """Weigh each row's words by BM25, of a compressed column or a String one; only it and ``id`` are read.

        Examples
        --------
        >>> lf = pl.LazyFrame({"day": ["mon", "tue"], "text": ["to be or not to be", "to do"]}).tadoc.compress("text")
        >>> lf.tadoc.bm25_weights("text", id="day", top=1).select("id", "word").collect().rows()
        [('mon', 'be'), ('tue', 'do')]

        """
        return self._plan(BM25WeightsRequest.from_arguments, options, column, id)

    @documented(TadocFrame.tfidf)
    def tfidf(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[TFIDFInPlans]
    ) -> pl.LazyFrame:
        """Weigh each row's words by TF-IDF, of a compressed column or a String one; only it and ``id`` are read.

        Examples
        --------
        >>> lf = pl.LazyFrame({"day": ["mon", "tue"], "text": ["to be or not to be", "to do"]}).tadoc.compress("text")
        >>> lf.tadoc.tfidf("text", id="day", top=1).select("id", "word").collect().rows()
        [('mon', 'be'), ('tue', 'do')]

        """
        return self._plan(TFIDFRequest.from_arguments, options, column, id)

    @documented(TadocFrame.sequence_count)
    def sequence_count(self, column: str | None = None, **options: Unpack[LengthsInPlans]) -> pl.LazyFrame:
        """Count the sequences of n words in a compressed column; only that column is read.

        With ``memory_limit``, each of several lengths is counted by itself, and ``checkpoint`` has a folder for each.

        Examples
        --------
        >>> lf = pl.LazyFrame({"text": ["to be or not to be", "to do"]}).tadoc.compress("text")
        >>> lf.tadoc.sequence_count("text", n=2, top=2).collect().rows()
        [(['to', 'be'], 2), (['be', 'or'], 1)]

        """
        own: dict[str, Any] = dict(options)
        lengths = lengths_of(own["n"])
        if lengths is None:
            return self._plan(SequenceCountRequest.from_arguments, own, column)
        checkpoint = own.pop("checkpoint")
        if own["memory_limit"] is None and checkpoint is None:
            del own["memory_limit"]
            request, columns = asking_for_frames(request_of, own | {"n": lengths}), self._lf.collect_schema()
            return read_columns(self._lf, request, text_column(columns, column, request.name), None, request.schema)
        plans = []
        for n in lengths:
            folder = None if checkpoint is None else require_path("checkpoint", checkpoint, "sequence_count") / f"n={n}"
            asked = own | {"n": n, "checkpoint": folder}
            plans.append(with_length(n, self._plan(SequenceCountRequest.from_arguments, asked, column)))
        return pl.concat(plans)

    @documented(TadocFrame.ranked_inverted_index)
    def ranked_inverted_index(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[RunInPlans]
    ) -> pl.LazyFrame:
        """List the rows that contain each sequence of n words of a compressed column, by descending count.

        Examples
        --------
        >>> lf = pl.LazyFrame({"day": ["mon", "tue"], "text": ["to be", "to be or not to be"]}).tadoc.compress("text")
        >>> lf.tadoc.ranked_inverted_index("text", id="day", n=2, min_count=2).collect().rows()
        [(['to', 'be'], [{'id': 'tue', 'count': 2}, {'id': 'mon', 'count': 1}])]

        """
        return self._plan(RankedInvertedIndexRequest.from_arguments, options, column, id)

    @documented(TadocFrame.cooccurrence)
    def cooccurrence(self, column: str | None = None, **options: Unpack[CooccurrenceInPlans]) -> pl.LazyFrame:
        """Count the pairs of words within a window in a compressed column; only that column is read.

        Examples
        --------
        >>> lf = pl.LazyFrame({"text": ["to be or not to be"]}).tadoc.compress("text")
        >>> lf.tadoc.cooccurrence("text", window=1, top=1).collect().rows()
        [('be', 'to', 2)]

        """
        return self._plan(CooccurrenceRequest.from_arguments, options, column)
