"""``df.tadoc``: counts and weights."""

from __future__ import annotations

from typing import Unpack

import polars as pl

from polars_tadoc.analytics import to_csr as to_csr_analytic
from polars_tadoc.analytics.bm25_weights import BM25WeightsRequest, bm25_weights
from polars_tadoc.analytics.cooccurrence import CooccurrenceRequest, cooccurrence
from polars_tadoc.analytics.inverted_index import InvertedIndexRequest, inverted_index
from polars_tadoc.analytics.ranked_inverted_index import RankedInvertedIndexRequest, ranked_inverted_index
from polars_tadoc.analytics.sequence_count import request_of, sequence_count
from polars_tadoc.analytics.sort import SortRequest, sort
from polars_tadoc.analytics.term_vector import TermVectorRequest, term_vector
from polars_tadoc.analytics.tfidf import TFIDFRequest, tfidf
from polars_tadoc.analytics.word_count import WordCountRequest, word_count
from polars_tadoc.execute.analytic import asking_for_frames
from polars_tadoc.namespaces import frame_options as given
from polars_tadoc.namespaces.dataframe.base import LABELS, FrameBase
from polars_tadoc.runtime.documented import documented_by


class FrameCounting(FrameBase):
    """Counts and weights."""

    @documented_by(
        word_count,
        returns="``word: String, count: UInt64``, by descending count, then word in code point order.",
        words=given.WORD_FORM,
    )
    def word_count(self, column: str | None = None, **options: Unpack[given.TopInFrames]) -> pl.DataFrame:
        """Count the words of a compressed column (optional if there is only one).

        Examples
        --------
        >>> df = pl.DataFrame({"text": ["the cat", "the dog"]}).tadoc.compress("text")
        >>> df.tadoc.word_count("text", stopwords=["the"]).rows()
        [('cat', 1), ('dog', 1)]

        """
        return self._answer(asking_for_frames(WordCountRequest.from_arguments, options), column)

    @documented_by(sort, returns="``word: String, count: UInt64``, by word in code point order.", words=given.WORD_FORM)
    def sort(self, column: str | None = None, **options: Unpack[given.CountInFrames]) -> pl.DataFrame:
        """List the words of a compressed column (optional if there is only one) in code point order.

        Examples
        --------
        >>> df = pl.DataFrame({"text": ["to be", "not to be"]}).tadoc.compress("text")
        >>> df.tadoc.sort("text").rows()
        [('be', 2), ('not', 1), ('to', 2)]

        """
        return self._answer(asking_for_frames(SortRequest.from_arguments, options), column)

    @documented_by(
        inverted_index,
        returns="``word: String, documents: List`` of labels or row numbers, in row order; by word in code "
        "point order.",
        id=LABELS,
        words=given.WORD_FORM,
    )
    def inverted_index(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[given.CountInFrames]
    ) -> pl.DataFrame:
        """List the rows that contain each word of a compressed column (optional if there is only one).

        Examples
        --------
        >>> df = pl.DataFrame({"day": ["mon", "tue"], "text": ["to be", "to do"]}).tadoc.compress("text")
        >>> df.tadoc.inverted_index("text", id="day").rows()
        [('be', ['mon']), ('do', ['tue']), ('to', ['mon', 'tue'])]

        """
        return self._answer(asking_for_frames(InvertedIndexRequest.from_arguments, options), column, id)

    @documented_by(
        term_vector,
        returns="``id, word: String, count: UInt64``; in row order, each row's words by descending count, then word.",
        id=LABELS,
        words=given.WORD_FORM,
    )
    def term_vector(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[given.TopInFrames]
    ) -> pl.DataFrame:
        """Count the words of each row of a compressed column (optional if there is only one).

        Examples
        --------
        >>> df = pl.DataFrame({"day": ["mon", "tue"], "text": ["to be or not to be", "to do"]}).tadoc.compress("text")
        >>> df.tadoc.term_vector("text", id="day", top=1).rows()
        [('mon', 'be', 2), ('tue', 'do', 1)]

        """
        return self._answer(asking_for_frames(TermVectorRequest.from_arguments, options), column, id)

    @documented_by(bm25_weights, id=LABELS, words=given.WORD_FORM)
    def bm25_weights(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[given.BM25WeightsInFrames]
    ) -> pl.DataFrame:
        """Weigh each row's words by BM25, compressed or String (optional if only one is compressed).

        Returns
        -------
        DataFrame
            ``id, word: String, weight: Float64``; in row order, each row's words in code point order, with
            ``top`` by descending weight.

        Examples
        --------
        >>> df = pl.DataFrame({"day": ["mon", "tue"], "text": ["to be or not to be", "to do"]}).tadoc.compress("text")
        >>> df.tadoc.bm25_weights("text", id="day", top=1).with_columns(pl.col("weight").round(4)).rows()
        [('mon', 'be', 0.3412), ('tue', 'do', 0.3578)]

        """
        return self._answer(asking_for_frames(BM25WeightsRequest.from_arguments, options), column, id)

    @documented_by(tfidf, id=LABELS, words=given.WORD_FORM)
    def tfidf(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[given.TFIDFInFrames]
    ) -> pl.DataFrame:
        """Weigh each row's words by TF-IDF, compressed or String (optional if only one is compressed).

        Returns
        -------
        DataFrame
            ``id, word: String, weight: Float64``; in row order, each row's words in code point order, with
            ``top`` by descending weight.

        Examples
        --------
        >>> df = pl.DataFrame({"day": ["mon", "tue"], "text": ["to be or not to be", "to do"]}).tadoc.compress("text")
        >>> df.tadoc.tfidf("text", id="day", top=1).with_columns(pl.col("weight").round(4)).rows()
        [('mon', 'be', 0.706), ('tue', 'do', 0.8148)]

        """
        return self._answer(asking_for_frames(TFIDFRequest.from_arguments, options), column, id)

    @documented_by(to_csr_analytic.to_csr)
    def to_csr(
        self, column: str | None = None, **options: Unpack[to_csr_analytic.ToCSROptions]
    ) -> tuple[to_csr_analytic.CSR, pl.Series]:
        """Count each row's words in a sparse matrix, for scikit-learn, or weigh them.

        Returns
        -------
        (scipy.sparse.csr_array, Series)
            Counts, int64, or weights, float64, shape (rows, words): one column per word that occurs, or per word of the
            dictionary, in code point order; and these words.

        Examples
        --------
        >>> df = pl.DataFrame({"text": ["to be", "to do, to be"]}).tadoc.compress("text")
        >>> counts, words = df.tadoc.to_csr("text", stopwords=["be"])
        >>> words.to_list(), counts.toarray().tolist()
        (['do', 'to'], [[0, 1], [1, 2]])

        """
        return to_csr_analytic.to_csr(self._text("to_csr", column), **options)

    @documented_by(
        sequence_count,
        returns="``sequence: List(String), count: UInt64``, by descending count, then in code point order; with "
        "several lengths after a column ``n: UInt32``, in the order of ``n``.",
        words=given.WORD_FORM,
    )
    def sequence_count(self, column: str | None = None, **options: Unpack[given.LengthsInFrames]) -> pl.DataFrame:
        """Count the sequences of n words in a compressed column (optional if there is only one).

        Examples
        --------
        >>> df = pl.DataFrame({"text": ["to be or not to be", "to do"]}).tadoc.compress("text")
        >>> df.tadoc.sequence_count("text", n=2, top=2).rows()
        [(['to', 'be'], 2), (['be', 'or'], 1)]

        """
        return self._answer(asking_for_frames(request_of, options), column)

    @documented_by(ranked_inverted_index, id=LABELS, words=given.WORD_FORM)
    def ranked_inverted_index(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[given.RunInFrames]
    ) -> pl.DataFrame:
        """List the rows that contain each sequence of n words of a compressed column, by descending count.

        Returns
        -------
        DataFrame
            ``sequence: List(String), documents: List(Struct{id, count: UInt64})``; by words in code point order,
            documents by descending count, then in row order.

        Examples
        --------
        >>> df = pl.DataFrame({"day": ["mon", "tue"], "text": ["to be", "to be or not to be"]}).tadoc.compress("text")
        >>> df.tadoc.ranked_inverted_index("text", id="day", n=2, min_count=2).rows()
        [(['to', 'be'], [{'id': 'tue', 'count': 2}, {'id': 'mon', 'count': 1}])]

        """
        return self._answer(asking_for_frames(RankedInvertedIndexRequest.from_arguments, options), column, id)

    @documented_by(
        cooccurrence,
        returns="``word: String, other: String, count: UInt64``, by descending count, then in code point order.",
        words=given.WORD_FORM,
    )
    def cooccurrence(self, column: str | None = None, **options: Unpack[given.CooccurrenceInFrames]) -> pl.DataFrame:
        """Count the pairs of words within a window in a compressed column.

        Examples
        --------
        >>> df = pl.DataFrame({"text": ["to be or not to be"]}).tadoc.compress("text")
        >>> df.tadoc.cooccurrence("text", window=1, top=1).rows()
        [('be', 'to', 2)]

        """
        return self._answer(asking_for_frames(CooccurrenceRequest.from_arguments, options), column)
