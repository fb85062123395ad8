"""``series.tadoc``: counts and weights."""

from __future__ import annotations

from typing import Unpack

import polars as pl

from polars_tadoc.analytics import to_csr as to_csr_analytic
from polars_tadoc.analytics.bm25_weights import BM25WeightsRequest
from polars_tadoc.analytics.cooccurrence import CooccurrenceRequest
from polars_tadoc.analytics.inverted_index import InvertedIndexRequest
from polars_tadoc.analytics.ranked_inverted_index import RankedInvertedIndexRequest
from polars_tadoc.analytics.sequence_count import request_of
from polars_tadoc.analytics.sort import SortRequest
from polars_tadoc.analytics.term_vector import TermVectorRequest
from polars_tadoc.analytics.tfidf import TFIDFRequest
from polars_tadoc.analytics.word_count import WordCountRequest
from polars_tadoc.execute.analytic import asking_for_frames
from polars_tadoc.namespaces import frame_options as given
from polars_tadoc.namespaces.dataframe import TadocFrame
from polars_tadoc.namespaces.series.base import SeriesBase, documented
from polars_tadoc.runtime.documented import documented_by


class SeriesCounting(SeriesBase):
    """Counts and weights."""

    @documented(TadocFrame.word_count)
    def word_count(self, **options: Unpack[given.TopInFrames]) -> pl.DataFrame:
        """Count words.

        Examples
        --------
        >>> pl.Series(["to be", "To do"]).tadoc.compress().tadoc.word_count(lowercase=True).rows()
        [('to', 2), ('be', 1), ('do', 1)]

        """
        return asking_for_frames(WordCountRequest.from_arguments, options).frame(self._series)

    @documented(TadocFrame.sort)
    def sort(self, **options: Unpack[given.CountInFrames]) -> pl.DataFrame:
        """List words in code point order.

        Examples
        --------
        >>> column = pl.Series("text", ["to be", "not to be"]).tadoc.compress()
        >>> column.tadoc.sort().rows()
        [('be', 2), ('not', 1), ('to', 2)]

        """
        return asking_for_frames(SortRequest.from_arguments, options).frame(self._series)

    @documented(TadocFrame.inverted_index)
    def inverted_index(self, *, id: pl.Series | None = None, **options: Unpack[given.CountInFrames]) -> pl.DataFrame:
        """List the rows that contain each word.

        Examples
        --------
        >>> column = pl.Series("text", ["to be", "to do"]).tadoc.compress()
        >>> column.tadoc.inverted_index().rows()
        [('be', [0]), ('do', [1]), ('to', [0, 1])]

        """
        return asking_for_frames(InvertedIndexRequest.from_arguments, options).frame(self._series, id)

    @documented(TadocFrame.term_vector)
    def term_vector(self, *, id: pl.Series | None = None, **options: Unpack[given.TopInFrames]) -> pl.DataFrame:
        """Count the words of each row.

        Examples
        --------
        >>> column = pl.Series("text", ["to be or not to be", "to do"]).tadoc.compress()
        >>> column.tadoc.term_vector(top=1).rows()
        [(0, 'be', 2), (1, 'do', 1)]

        """
        return asking_for_frames(TermVectorRequest.from_arguments, options).frame(self._series, id)

    @documented(TadocFrame.bm25_weights)
    def bm25_weights(
        self, *, id: pl.Series | None = None, **options: Unpack[given.BM25WeightsInFrames]
    ) -> pl.DataFrame:
        """Weigh each row's words by BM25.

        Examples
        --------
        >>> column = pl.Series("text", ["to be or not to be", "to do"])
        >>> column.tadoc.bm25_weights(top=1).equals(column.tadoc.compress().tadoc.bm25_weights(top=1))
        True

        """
        return asking_for_frames(BM25WeightsRequest.from_arguments, options).frame(self._series, id)

    @documented(TadocFrame.tfidf)
    def tfidf(self, *, id: pl.Series | None = None, **options: Unpack[given.TFIDFInFrames]) -> pl.DataFrame:
        """Weigh each row's words by TF-IDF.

        Examples
        --------
        >>> column = pl.Series("text", ["to be or not to be", "to do"])
        >>> column.tadoc.tfidf(top=1).equals(column.tadoc.compress().tadoc.tfidf(top=1))
        True

        """
        return asking_for_frames(TFIDFRequest.from_arguments, options).frame(self._series, id)

    @documented_by(TadocFrame.to_csr)
    def to_csr(self, **options: Unpack[to_csr_analytic.ToCSROptions]) -> tuple[to_csr_analytic.CSR, pl.Series]:
        """Count each row's words in a sparse matrix, for scikit-learn, or weigh them.

        Examples
        --------
        >>> counts, words = pl.Series("text", ["to be", "to do"]).tadoc.compress().tadoc.to_csr()
        >>> counts.shape, words.to_list()
        ((2, 3), ['be', 'do', 'to'])

        """
        return to_csr_analytic.to_csr(self._series, **options)

    @documented(TadocFrame.sequence_count)
    def sequence_count(self, **options: Unpack[given.LengthsInFrames]) -> pl.DataFrame:
        """Count the sequences of n words.

        Examples
        --------
        >>> column = pl.Series("text", ["to be or not to be", "to do"]).tadoc.compress()
        >>> column.tadoc.sequence_count(n=2, top=2).rows()
        [(['to', 'be'], 2), (['be', 'or'], 1)]

        """
        return asking_for_frames(request_of, options).frame(self._series)

    @documented(TadocFrame.ranked_inverted_index)
    def ranked_inverted_index(
        self, *, id: pl.Series | None = None, **options: Unpack[given.RunInFrames]
    ) -> pl.DataFrame:
        """List the rows that contain each sequence of n words, by descending count.

        Examples
        --------
        >>> column = pl.Series("text", ["to be", "to be or not to be"]).tadoc.compress()
        >>> column.tadoc.ranked_inverted_index(n=2, min_count=2).rows()
        [(['to', 'be'], [{'id': 1, 'count': 2}, {'id': 0, 'count': 1}])]

        """
        return asking_for_frames(RankedInvertedIndexRequest.from_arguments, options).frame(self._series, id)

    @documented(TadocFrame.cooccurrence)
    def cooccurrence(self, **options: Unpack[given.CooccurrenceInFrames]) -> pl.DataFrame:
        """Count the pairs of words within a window.

        Examples
        --------
        >>> column = pl.Series("text", ["to be or not to be"]).tadoc.compress()
        >>> column.tadoc.cooccurrence(window=1, top=1).rows()
        [('be', 'to', 2)]

        """
        return asking_for_frames(CooccurrenceRequest.from_arguments, options).frame(self._series)
