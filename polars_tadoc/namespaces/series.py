"""``series.tadoc``: the same calls on one column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Unpack

import polars as pl

from polars_tadoc.analytics import bm25_weights as bm25_weights_analytic
from polars_tadoc.analytics import cooccurrence as cooccurrence_analytic
from polars_tadoc.analytics import inverted_index as inverted_index_analytic
from polars_tadoc.analytics import ranked_inverted_index as ranked_inverted_index_analytic
from polars_tadoc.analytics import sequence_count as sequence_count_analytic
from polars_tadoc.analytics import sort as sort_analytic
from polars_tadoc.analytics import term_vector as term_vector_analytic
from polars_tadoc.analytics import tfidf as tfidf_analytic
from polars_tadoc.analytics import to_csr as to_csr_analytic
from polars_tadoc.analytics import twig_filter_rows as twig_filter_call
from polars_tadoc.analytics import word_count as word_count_analytic
from polars_tadoc.analytics.info import info
from polars_tadoc.analytics.twig_filter import twig_filter
from polars_tadoc.analytics.twig_filter_rows import AS_STRUCT
from polars_tadoc.compress.compress import ROWS_PER_GRAMMAR, CompressOptions, compress
from polars_tadoc.compress.decompress import decompress
from polars_tadoc.compress.recompress import recompress
from polars_tadoc.index.construct.build import build_index
from polars_tadoc.index.index import Index
from polars_tadoc.rows.bm25 import bm25
from polars_tadoc.rows.content_hash import content_hash
from polars_tadoc.rows.equals import EqualsRequest as Comparison
from polars_tadoc.rows.equals import equals
from polars_tadoc.rows.extract import extract, head, tail
from polars_tadoc.rows.phrases import contains_any, contains_phrase, count_phrase
from polars_tadoc.rows.preview import ROWS, WORDS, preview
from polars_tadoc.rows.token_count import token_count
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.fork import require_threads
from polars_tadoc.twig.twig_set import TwigSet


class TadocSeries:
    """Grammar compression and analytics on a series.

    Examples
    --------
    >>> import polars as pl
    >>> import polars_tadoc as tadoc
    >>> pl.Series("text", ["to be or not to be"]).tadoc.compress().tadoc.word_count(top=2).rows()
    [('be', 2), ('to', 2)]

    """

    def __init__(self, series: pl.Series) -> None:
        require_threads()
        self._series = series

    @documented_by(compress)
    def compress(self, **options: Unpack[CompressOptions]) -> pl.Series:
        """Compress a String series; result as :func:`polars_tadoc.compress`'s.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> tadoc.is_tadoc(pl.Series(["to be"]).tadoc.compress().dtype)
        True

        """
        return compress(self._series, **options)

    @documented_by(recompress)
    def recompress(
        self,
        *,
        tail: bool = False,
        method: str = "batch_repair",
        rows_per_grammar: int = ROWS_PER_GRAMMAR,
        progress: bool = False,
        engine: str | None = None,
    ) -> pl.Series:
        """Merge the grammars of a compressed series.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> column = pl.concat([pl.Series(["to be"]).tadoc.compress(), pl.Series(["to do"]).tadoc.compress()])
        >>> column.tadoc.recompress().tadoc.info()["grammars"].to_list()
        [1]

        """
        return recompress(
            self._series,
            tail=tail,
            method=method,
            rows_per_grammar=rows_per_grammar,
            progress=progress,
            engine=engine,
        )

    @documented_by(decompress)
    def decompress(self) -> pl.Series:
        """Give back the text, byte for byte.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["to be", None]).tadoc.compress().tadoc.decompress().to_list()
        ['to be', None]

        """
        return decompress(self._series)

    @documented_by(token_count)
    def token_count(self) -> pl.Series:
        """Count the words of each row; result as :func:`polars_tadoc.token_count`'s.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["to be or not to be", None]).tadoc.compress().tadoc.token_count().to_list()
        [6, None]

        """
        return token_count(self._series)

    def preview(self, rows: int = ROWS, words: int = WORDS) -> pl.Series:
        """Take the first words of the first rows, for printing.

        Polars prints the whole grammar for each row of a compressed column; print the preview instead.

        Parameters
        ----------
        rows
            How many rows, from the first.
        words
            How many words of each.

        Returns
        -------
        String series
            The first words of each row; null for null.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> column = pl.Series("text", ["to be, or not to be", "to do"]).tadoc.compress()
        >>> column.tadoc.preview(words=3).to_list()
        ['to be, or', 'to do']

        """
        return preview(self._series, rows, words)

    @documented_by(content_hash)
    def content_hash(self) -> pl.Series:
        """Hash the text of each row, a key that is the same in each form; as :func:`polars_tadoc.content_hash`.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> text = pl.Series(["to be", "or not", "to be"])
        >>> text.tadoc.compress().tadoc.content_hash().equals(text.tadoc.content_hash())
        True

        """
        return content_hash(self._series)

    @documented_by(equals, b=None, other="Text, or a series, compressed or String.")
    def eq(self, other: str | pl.Series, *, nulls_equal: bool = False) -> pl.Series:
        """Tell which rows hold a text, or the one that another series holds there; as :func:`polars_tadoc.equals`.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["to be", "or not", None]).tadoc.compress().tadoc.eq("to be").to_list()
        [True, False, None]

        """
        return Comparison("eq", nulls_equal).with_any(self._series, other)

    @documented_by(extract)
    def extract(self, offset: int | pl.Series, length: int | pl.Series | None = None) -> pl.Series:
        """Take words of each row by their number, and what stood between them; as :func:`polars_tadoc.extract`.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["To be, or not to be!", "To do."]).tadoc.compress().tadoc.extract(1, 3).to_list()
        ['be, or not', 'do']

        """
        return extract(self._series, offset, length)

    @documented_by(head)
    def head(self, n: int | pl.Series = 5) -> pl.Series:
        """Take the first words of each row, and what stood between them; as :func:`polars_tadoc.head`.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["To be, or not to be!", "To do."]).tadoc.compress().tadoc.head(3).to_list()
        ['To be, or', 'To do']

        """
        return head(self._series, n)

    @documented_by(tail)
    def tail(self, n: int | pl.Series = 5) -> pl.Series:
        """Take the last words of each row, and what stood between them; as :func:`polars_tadoc.tail`.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["To be, or not to be!", "To do."]).tadoc.compress().tadoc.tail(3).to_list()
        ['not to be', 'To do']

        """
        return tail(self._series, n)

    @documented_by(count_phrase)
    def count_phrase(
        self,
        phrase: str,
        *,
        normalize: pl.Expr | None = None,
        lowercase: bool = False,
        stopwords: Iterable[str] | None = None,
    ) -> pl.Series:
        """Count how often each row holds a phrase; result as :func:`polars_tadoc.count_phrase`'s.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["to be, or not to be", "be", None]).tadoc.compress().tadoc.count_phrase("to be").to_list()
        [2, 0, None]

        """
        return count_phrase(self._series, phrase, normalize=normalize, lowercase=lowercase, stopwords=stopwords)

    @documented_by(contains_phrase)
    def contains_phrase(
        self,
        phrase: str,
        *,
        normalize: pl.Expr | None = None,
        lowercase: bool = False,
        stopwords: Iterable[str] | None = None,
    ) -> pl.Series:
        """Tell which rows hold a phrase; result as :func:`polars_tadoc.contains_phrase`'s.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["to be", "To Be", None]).tadoc.compress().tadoc.contains_phrase("to be").to_list()
        [True, False, None]

        """
        return contains_phrase(self._series, phrase, normalize=normalize, lowercase=lowercase, stopwords=stopwords)

    @documented_by(contains_any)
    def contains_any(
        self,
        phrases: Iterable[str],
        *,
        normalize: pl.Expr | None = None,
        lowercase: bool = False,
        stopwords: Iterable[str] | None = None,
    ) -> pl.Series:
        """Tell which rows hold at least one of several phrases; result as :func:`polars_tadoc.contains_any`'s.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["to be", "or not"]).tadoc.compress().tadoc.contains_any(["be or", "not"]).to_list()
        [False, True]

        """
        return contains_any(self._series, phrases, normalize=normalize, lowercase=lowercase, stopwords=stopwords)

    @documented_by(bm25)
    def bm25(
        self,
        query: str,
        *,
        scoring: str = "lucene",
        k1: float = 1.5,
        b: float = 0.75,
        delta: float = 0.5,
        normalize: pl.Expr | None = None,
        lowercase: bool = False,
        stopwords: Iterable[str] | None = None,
    ) -> pl.Series:
        """Score each row for a query with BM25; result as :func:`polars_tadoc.bm25`'s.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> [round(score, 2) for score in pl.Series(["to be", "or not"]).tadoc.compress().tadoc.bm25("to")]
        [0.28, 0.0]

        """
        return bm25(
            self._series,
            query,
            scoring=scoring,
            k1=k1,
            b=b,
            delta=delta,
            normalize=normalize,
            lowercase=lowercase,
            stopwords=stopwords,
        )

    @documented_by(twig_filter, id=None, as_struct=AS_STRUCT)
    def twig_filter(
        self, queries: Mapping[str, str] | TwigSet, **options: Unpack[twig_filter_call.TwigFilterRowsOptions]
    ) -> pl.Series:
        """Find out which of many XPath queries each row's XML document matches: row-aligned, null where the row is.

        Returns
        -------
        Series
            ``List(String)``, names in the order of the set, or with ``as_struct=True`` a ``Struct`` of ``Boolean``
            fields.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> series = pl.Series(["<a><b/><c/></a>", "<a><c/></a>"])
        >>> series.tadoc.twig_filter({"both": "/a[b]/c", "any": "//c"}).to_list()
        [['both', 'any'], ['any']]

        """
        request = twig_filter_call.TwigFilterRowsRequest.from_arguments(queries, **options)
        return request.run(self._series)

    @documented_by(word_count_analytic.word_count)
    def word_count(self, **options: Unpack[word_count_analytic.WordCountOptions]) -> pl.DataFrame:
        """Count words: ``word: String, count: UInt64``.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["to be", "To do"]).tadoc.compress().tadoc.word_count(lowercase=True).rows()
        [('to', 2), ('be', 1), ('do', 1)]

        """
        request = word_count_analytic.WordCountRequest.from_arguments(**options)
        return request.run(self._series).to_frame()

    @documented_by(sort_analytic.sort)
    def sort(self, **options: Unpack[sort_analytic.SortOptions]) -> pl.DataFrame:
        """List the words in order.

        Returns
        -------
        DataFrame
            ``word: String, count: UInt64``, by word in code point order.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> column = pl.Series("text", ["to be", "not to be"]).tadoc.compress()
        >>> column.tadoc.sort().rows()
        [('be', 2), ('not', 1), ('to', 2)]

        """
        request = sort_analytic.SortRequest.from_arguments(**options)
        return request.run(self._series).to_frame()

    @documented_by(inverted_index_analytic.inverted_index)
    def inverted_index(
        self, *, id: pl.Series | None = None, **options: Unpack[inverted_index_analytic.InvertedIndexOptions]
    ) -> pl.DataFrame:
        """List the rows that hold each word.

        Returns
        -------
        DataFrame
            ``word: String, documents: List`` of labels or row numbers, in row order; by word in code point order.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> column = pl.Series("text", ["to be", "to do"]).tadoc.compress()
        >>> column.tadoc.inverted_index().rows()
        [('be', [0]), ('do', [1]), ('to', [0, 1])]

        """
        request = inverted_index_analytic.InvertedIndexRequest.from_arguments(**options)
        return request.run(self._series, id).to_frame()

    @documented_by(build_index)
    def build_index(
        self,
        *,
        id: pl.Series | None = None,
        codec: str = "pfordelta",
        normalize: pl.Expr | None = None,
        lowercase: bool = False,
        stopwords: Iterable[str] | None = None,
        metadata: pl.DataFrame | None = None,
        store: bool = True,
        strategy: str = "auto",
        engine: str | None = None,
    ) -> Index:
        """Build a search index, as :func:`polars_tadoc.build_index`.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> index = pl.Series(["to be", "to do", "or not"]).tadoc.compress().tadoc.build_index()
        >>> index.search("not to be", k=2)["id"].to_list()
        [0, 2]

        """
        return build_index(
            self._series,
            id=id,
            codec=codec,
            normalize=normalize,
            lowercase=lowercase,
            stopwords=stopwords,
            metadata=metadata,
            store=store,
            strategy=strategy,
            engine=engine,
        )

    @documented_by(term_vector_analytic.term_vector)
    def term_vector(
        self, *, id: pl.Series | None = None, **options: Unpack[term_vector_analytic.TermVectorOptions]
    ) -> pl.DataFrame:
        """Count the words of each row.

        Returns
        -------
        DataFrame
            ``id, word: String, count: UInt64``; rows in their order, each one's words by count falling, then word.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> column = pl.Series("text", ["to be or not to be", "to do"]).tadoc.compress()
        >>> column.tadoc.term_vector(top=1).rows()
        [(0, 'be', 2), (1, 'do', 1)]

        """
        request = term_vector_analytic.TermVectorRequest.from_arguments(**options)
        return request.run(self._series, id).to_frame()

    @documented_by(bm25_weights_analytic.bm25_weights)
    def bm25_weights(
        self, *, id: pl.Series | None = None, **options: Unpack[bm25_weights_analytic.BM25WeightsOptions]
    ) -> pl.DataFrame:
        """Weigh each row's words by BM25.

        Returns
        -------
        DataFrame
            ``id, word: String, weight: Float64``; rows in their order, each one's words in code point order, with
            ``top`` by weight falling.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> column = pl.Series("text", ["to be or not to be", "to do"])
        >>> column.tadoc.bm25_weights(top=1).equals(column.tadoc.compress().tadoc.bm25_weights(top=1))
        True

        """
        request = bm25_weights_analytic.BM25WeightsRequest.from_arguments(**options)
        return request.run(self._series, id).to_frame()

    @documented_by(tfidf_analytic.tfidf)
    def tfidf(self, *, id: pl.Series | None = None, **options: Unpack[tfidf_analytic.TFIDFOptions]) -> pl.DataFrame:
        """Weigh each row's words by TF-IDF.

        Returns
        -------
        DataFrame
            ``id, word: String, weight: Float64``; rows in their order, each one's words in code point order, with
            ``top`` by weight falling.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> column = pl.Series("text", ["to be or not to be", "to do"])
        >>> column.tadoc.tfidf(top=1).equals(column.tadoc.compress().tadoc.tfidf(top=1))
        True

        """
        request = tfidf_analytic.TFIDFRequest.from_arguments(**options)
        return request.run(self._series, id).to_frame()

    @documented_by(to_csr_analytic.to_csr)
    def to_csr(self, **options: Unpack[to_csr_analytic.ToCSROptions]) -> tuple[to_csr_analytic.CSR, pl.Series]:
        """Count each row's words in a sparse matrix, as scikit-learn takes it, or weigh them.

        Returns
        -------
        (scipy.sparse.csr_array, Series)
            Counts, int64, or weights, float64, a row for each row and a column for each word that occurs, or of the
            dictionary, in code point order; and those words.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> counts, words = pl.Series("text", ["to be", "to do"]).tadoc.compress().tadoc.to_csr()
        >>> counts.shape, words.to_list()
        ((2, 3), ['be', 'do', 'to'])

        """
        return to_csr_analytic.to_csr(self._series, **options)

    @documented_by(sequence_count_analytic.sequence_count)
    def sequence_count(self, **options: Unpack[sequence_count_analytic.SequenceCountOptions]) -> pl.DataFrame:
        """Count the runs of n words.

        Returns
        -------
        DataFrame
            ``sequence: List(String), count: UInt64``, by count falling, then words in code point order.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> column = pl.Series("text", ["to be or not to be", "to do"]).tadoc.compress()
        >>> column.tadoc.sequence_count(n=2, top=2).rows()
        [(['to', 'be'], 2), (['be', 'or'], 1)]

        """
        request = sequence_count_analytic.SequenceCountRequest.from_arguments(**options)
        return request.run(self._series).to_frame()

    @documented_by(ranked_inverted_index_analytic.ranked_inverted_index)
    def ranked_inverted_index(
        self,
        *,
        id: pl.Series | None = None,
        **options: Unpack[ranked_inverted_index_analytic.RankedInvertedIndexOptions],
    ) -> pl.DataFrame:
        """List the rows that hold each run of n words, those with most first.

        Returns
        -------
        DataFrame
            ``sequence: List(String), documents: List(Struct{id, count: UInt64})``; by words in code point order,
            documents by count falling, then in row order.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> column = pl.Series("text", ["to be", "to be or not to be"]).tadoc.compress()
        >>> column.tadoc.ranked_inverted_index(n=2, min_count=2).rows()
        [(['to', 'be'], [{'id': 1, 'count': 2}, {'id': 0, 'count': 1}])]

        """
        request = ranked_inverted_index_analytic.RankedInvertedIndexRequest.from_arguments(**options)
        return request.run(self._series, id).to_frame()

    @documented_by(cooccurrence_analytic.cooccurrence)
    def cooccurrence(self, **options: Unpack[cooccurrence_analytic.CooccurrenceOptions]) -> pl.DataFrame:
        """Count the pairs of words that stand near each other.

        Returns
        -------
        DataFrame
            ``word: String, other: String, count: UInt64``, by count falling, then word and other in code point order.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> column = pl.Series("text", ["to be or not to be"]).tadoc.compress()
        >>> column.tadoc.cooccurrence(window=1, top=1).rows()
        [('be', 'to', 2)]

        """
        request = cooccurrence_analytic.CooccurrenceRequest.from_arguments(**options)
        return request.run(self._series).to_frame()

    @documented_by(info)
    def info(self) -> pl.DataFrame:
        """Describe the column in one row; columns as :func:`polars_tadoc.info`'s.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["to be", "to do"]).tadoc.compress().tadoc.info().select("rows", "words", "vocabulary").row(0)
        (2, 4, 3)

        """
        return pl.DataFrame(info(self._series))
