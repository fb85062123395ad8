"""``series.tadoc``: the same calls on one column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Unpack

import polars as pl

from polars_tadoc.analytics import to_csr as to_csr_analytic
from polars_tadoc.analytics.bm25_weights import BM25WeightsRequest
from polars_tadoc.analytics.cleaning.drop_repeats import drop_repeats
from polars_tadoc.analytics.cleaning.minhash import minhash
from polars_tadoc.analytics.cleaning.near_duplicates import (
    DuplicateGroupsRequest,
    NearDuplicatesOptions,
    NearDuplicatesRequest,
)
from polars_tadoc.analytics.cleaning.options import (
    DropRepeatsOptions,
    NoveltyOptions,
    OverlapOptions,
    RepeatedShareOptions,
    RepeatsOptions,
)
from polars_tadoc.analytics.cleaning.overlap import OverlapRequest, overlap_share, overlaps
from polars_tadoc.analytics.cleaning.passage_set import PassageSet
from polars_tadoc.analytics.cleaning.repeats import RepeatsRequest
from polars_tadoc.analytics.cleaning.shares import novelty, repeated_share
from polars_tadoc.analytics.cleaning.signatures import MinHashOptions
from polars_tadoc.analytics.collocations import CollocationsOptions, CollocationsRequest
from polars_tadoc.analytics.concordance import ConcordanceOptions, ConcordanceRequest, PositionsRequest
from polars_tadoc.analytics.cooccurrence import CooccurrenceRequest
from polars_tadoc.analytics.info import info
from polars_tadoc.analytics.inverted_index import InvertedIndexRequest
from polars_tadoc.analytics.ranked_inverted_index import RankedInvertedIndexRequest
from polars_tadoc.analytics.sequence_count import SequenceCountRequest
from polars_tadoc.analytics.sort import SortRequest
from polars_tadoc.analytics.term_vector import TermVectorRequest
from polars_tadoc.analytics.tfidf import TFIDFRequest
from polars_tadoc.analytics.twig_filter import twig_filter
from polars_tadoc.analytics.twig_filter_rows import AS_STRUCT, TwigFilterRowsOptions, TwigFilterRowsRequest
from polars_tadoc.analytics.word_count import WordCountRequest
from polars_tadoc.compress.compress import CompressOptions, compress
from polars_tadoc.compress.decompress import decompress
from polars_tadoc.compress.recompress import RecompressOptions, recompress
from polars_tadoc.execute.analytic import asking_for_frames
from polars_tadoc.index.construct.build import IndexOptions, build_index
from polars_tadoc.index.index import Index
from polars_tadoc.namespaces.dataframe import TadocFrame
from polars_tadoc.namespaces.frame_options import (
    BM25WeightsInFrames,
    CooccurrenceInFrames,
    CountInFrames,
    RunInFrames,
    TFIDFInFrames,
    TopInFrames,
)
from polars_tadoc.rows.bm25 import BM25Options, bm25
from polars_tadoc.rows.content_hash import content_hash
from polars_tadoc.rows.equals import EqualsRequest as Comparison
from polars_tadoc.rows.equals import equals
from polars_tadoc.rows.extract import extract, head, tail
from polars_tadoc.rows.patterns import contains, count_matches, extract_all, find
from polars_tadoc.rows.phrases import PhraseOptions, contains_any, contains_phrase, count_phrase
from polars_tadoc.rows.preview import ROWS, WORDS, preview
from polars_tadoc.rows.token_count import token_count
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.runtime.process.fork import require_threads
from polars_tadoc.traversal.options import TokenizerOption
from polars_tadoc.twig.twig_set import TwigSet

_documented = partial(documented_by, id="Labels of the rows, one for each; default: row numbers.")


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
        """Compress a String series; result as for :func:`polars_tadoc.compress`.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> tadoc.is_tadoc(pl.Series(["to be"]).tadoc.compress().dtype)
        True

        """
        return compress(self._series, **options)

    @documented_by(recompress)
    def recompress(self, **options: Unpack[RecompressOptions]) -> pl.Series:
        """Merge the grammars of a compressed series.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> column = pl.concat([pl.Series(["to be"]).tadoc.compress(), pl.Series(["to do"]).tadoc.compress()])
        >>> column.tadoc.recompress().tadoc.info()["grammars"].to_list()
        [1]

        """
        return recompress(self._series, **options)

    @documented_by(decompress)
    def decompress(self) -> pl.Series:
        """Return the text, byte for byte.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["to be", None]).tadoc.compress().tadoc.decompress().to_list()
        ['to be', None]

        """
        return decompress(self._series)

    @documented_by(token_count)
    def token_count(self, **options: Unpack[TokenizerOption]) -> pl.Series:
        """Count the words of each row; result as for :func:`polars_tadoc.token_count`.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["to be or not to be", None]).tadoc.compress().tadoc.token_count().to_list()
        [6, None]

        """
        return token_count(self._series, **options)

    @documented_by(TadocFrame.preview)
    def preview(self, rows: int = ROWS, words: int = WORDS) -> pl.Series:
        """Return the first words of the first rows, for printing.

        Polars prints the whole grammar in each row of a compressed column; print the preview instead.

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
        """Hash the text of each row, a key equal for all forms of the text; as :func:`polars_tadoc.content_hash`.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> text = pl.Series(["to be", "or not", "to be"])
        >>> text.tadoc.compress().tadoc.content_hash().equals(text.tadoc.content_hash())
        True

        """
        return content_hash(self._series)

    @documented_by(equals, other="Text, or a series, compressed or String.")
    def eq(self, other: str | pl.Series, *, nulls_equal: bool = False) -> pl.Series:
        """Tell which rows equal a text, or the text of another series; as :func:`polars_tadoc.equals`.

        Returns
        -------
        Boolean series
            One value per row; null if either side is, unless ``nulls_equal``.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["to be", "or not", None]).tadoc.compress().tadoc.eq("to be").to_list()
        [True, False, None]

        """
        return Comparison("eq", nulls_equal).with_any(self._series, other)

    @documented_by(extract)
    def extract(
        self, offset: int | pl.Series, length: int | pl.Series | None = None, **options: Unpack[TokenizerOption]
    ) -> pl.Series:
        """Return words of each row by their number, with the separators between them; as :func:`polars_tadoc.extract`.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["To be, or not to be!", "To do."]).tadoc.compress().tadoc.extract(1, 3).to_list()
        ['be, or not', 'do']

        """
        return extract(self._series, offset, length, **options)

    @documented_by(head)
    def head(self, n: int | pl.Series = 5, **options: Unpack[TokenizerOption]) -> pl.Series:
        """Return the first words of each row, with the separators between them; as :func:`polars_tadoc.head`.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["To be, or not to be!", "To do."]).tadoc.compress().tadoc.head(3).to_list()
        ['To be, or', 'To do']

        """
        return head(self._series, n, **options)

    @documented_by(tail)
    def tail(self, n: int | pl.Series = 5, **options: Unpack[TokenizerOption]) -> pl.Series:
        """Return the last words of each row, with the separators between them; as :func:`polars_tadoc.tail`.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["To be, or not to be!", "To do."]).tadoc.compress().tadoc.tail(3).to_list()
        ['not to be', 'To do']

        """
        return tail(self._series, n, **options)

    @documented_by(contains)
    def contains(self, pattern: str, *, literal: bool = False, strict: bool = True) -> pl.Series:
        """Tell which rows' text contains a match of a pattern; result as for :func:`polars_tadoc.contains`.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["GET /a/b.html", "POST /a", None]).tadoc.compress().tadoc.contains("/a/|^P").to_list()
        [True, True, None]

        """
        return contains(self._series, pattern, literal=literal, strict=strict)

    @documented_by(count_matches)
    def count_matches(self, pattern: str, *, literal: bool = False) -> pl.Series:
        """Count the matches of a pattern in each row; result as for :func:`polars_tadoc.count_matches`.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["a.b.c", "a b", None]).tadoc.compress().tadoc.count_matches(".", literal=True).to_list()
        [2, 0, None]

        """
        return count_matches(self._series, pattern, literal=literal)

    @documented_by(find)
    def find(self, pattern: str, *, literal: bool = False, strict: bool = True) -> pl.Series:
        """Return where the first match of a pattern begins, in bytes; result as for :func:`polars_tadoc.find`.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["to be", "be", "or not"]).tadoc.compress().tadoc.find("be", literal=True).to_list()
        [3, 0, None]

        """
        return find(self._series, pattern, literal=literal, strict=strict)

    @documented_by(extract_all)
    def extract_all(self, pattern: str) -> pl.Series:
        """Return all matches of a regular expression; result as for :func:`polars_tadoc.extract_all`.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["id=17, id=4", "none"]).tadoc.compress().tadoc.extract_all("[0-9]+").to_list()
        [['17', '4'], []]

        """
        return extract_all(self._series, pattern)

    @documented_by(count_phrase)
    def count_phrase(self, phrase: str, **options: Unpack[PhraseOptions]) -> pl.Series:
        """Count how often each row contains a phrase; result as for :func:`polars_tadoc.count_phrase`.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["to be, or not to be", "be", None]).tadoc.compress().tadoc.count_phrase("to be").to_list()
        [2, 0, None]

        """
        return count_phrase(self._series, phrase, **options)

    @documented_by(contains_phrase)
    def contains_phrase(self, phrase: str, **options: Unpack[PhraseOptions]) -> pl.Series:
        """Tell which rows contain a phrase; result as for :func:`polars_tadoc.contains_phrase`.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["to be", "To Be", None]).tadoc.compress().tadoc.contains_phrase("to be").to_list()
        [True, False, None]

        """
        return contains_phrase(self._series, phrase, **options)

    @documented_by(contains_any)
    def contains_any(self, phrases: Iterable[str], **options: Unpack[PhraseOptions]) -> pl.Series:
        """Tell which rows contain at least one of several phrases; result as for :func:`polars_tadoc.contains_any`.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["to be", "or not"]).tadoc.compress().tadoc.contains_any(["be or", "not"]).to_list()
        [False, True]

        """
        return contains_any(self._series, phrases, **options)

    @documented_by(bm25)
    def bm25(self, query: str, **options: Unpack[BM25Options]) -> pl.Series:
        """Score each row for a query with BM25; result as for :func:`polars_tadoc.bm25`.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> [round(score, 2) for score in pl.Series(["to be", "or not"]).tadoc.compress().tadoc.bm25("to")]
        [0.28, 0.0]

        """
        return bm25(self._series, query, **options)

    @documented_by(twig_filter, as_struct=AS_STRUCT)
    def twig_filter(self, queries: Mapping[str, str] | TwigSet, **options: Unpack[TwigFilterRowsOptions]) -> pl.Series:
        """Find the XPath queries that each row's XML document matches: row-wise, null for null rows.

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
        return TwigFilterRowsRequest.from_arguments(queries, **options).run(self._series)

    @_documented(TadocFrame.word_count)
    def word_count(self, **options: Unpack[TopInFrames]) -> pl.DataFrame:
        """Count words.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["to be", "To do"]).tadoc.compress().tadoc.word_count(lowercase=True).rows()
        [('to', 2), ('be', 1), ('do', 1)]

        """
        return asking_for_frames(WordCountRequest.from_arguments, options).frame(self._series)

    @_documented(TadocFrame.sort)
    def sort(self, **options: Unpack[CountInFrames]) -> pl.DataFrame:
        """List words in code point order.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> column = pl.Series("text", ["to be", "not to be"]).tadoc.compress()
        >>> column.tadoc.sort().rows()
        [('be', 2), ('not', 1), ('to', 2)]

        """
        return asking_for_frames(SortRequest.from_arguments, options).frame(self._series)

    @_documented(TadocFrame.inverted_index)
    def inverted_index(self, *, id: pl.Series | None = None, **options: Unpack[CountInFrames]) -> pl.DataFrame:
        """List the rows that contain each word.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> column = pl.Series("text", ["to be", "to do"]).tadoc.compress()
        >>> column.tadoc.inverted_index().rows()
        [('be', [0]), ('do', [1]), ('to', [0, 1])]

        """
        return asking_for_frames(InvertedIndexRequest.from_arguments, options).frame(self._series, id)

    @documented_by(build_index)
    def build_index(self, *, id: pl.Series | None = None, **options: Unpack[IndexOptions]) -> Index:
        """Build a search index, as :func:`polars_tadoc.build_index`.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> index = pl.Series(["to be", "to do", "or not"]).tadoc.compress().tadoc.build_index()
        >>> index.search("not to be", k=2)["id"].to_list()
        [0, 2]

        """
        return build_index(self._series, id=id, **options)

    @_documented(TadocFrame.term_vector)
    def term_vector(self, *, id: pl.Series | None = None, **options: Unpack[TopInFrames]) -> pl.DataFrame:
        """Count the words of each row.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> column = pl.Series("text", ["to be or not to be", "to do"]).tadoc.compress()
        >>> column.tadoc.term_vector(top=1).rows()
        [(0, 'be', 2), (1, 'do', 1)]

        """
        return asking_for_frames(TermVectorRequest.from_arguments, options).frame(self._series, id)

    @_documented(TadocFrame.bm25_weights)
    def bm25_weights(self, *, id: pl.Series | None = None, **options: Unpack[BM25WeightsInFrames]) -> pl.DataFrame:
        """Weigh each row's words by BM25.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> column = pl.Series("text", ["to be or not to be", "to do"])
        >>> column.tadoc.bm25_weights(top=1).equals(column.tadoc.compress().tadoc.bm25_weights(top=1))
        True

        """
        return asking_for_frames(BM25WeightsRequest.from_arguments, options).frame(self._series, id)

    @_documented(TadocFrame.tfidf)
    def tfidf(self, *, id: pl.Series | None = None, **options: Unpack[TFIDFInFrames]) -> pl.DataFrame:
        """Weigh each row's words by TF-IDF.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
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
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> counts, words = pl.Series("text", ["to be", "to do"]).tadoc.compress().tadoc.to_csr()
        >>> counts.shape, words.to_list()
        ((2, 3), ['be', 'do', 'to'])

        """
        return to_csr_analytic.to_csr(self._series, **options)

    @_documented(TadocFrame.sequence_count)
    def sequence_count(self, **options: Unpack[RunInFrames]) -> pl.DataFrame:
        """Count the sequences of n words.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> column = pl.Series("text", ["to be or not to be", "to do"]).tadoc.compress()
        >>> column.tadoc.sequence_count(n=2, top=2).rows()
        [(['to', 'be'], 2), (['be', 'or'], 1)]

        """
        return asking_for_frames(SequenceCountRequest.from_arguments, options).frame(self._series)

    @_documented(TadocFrame.ranked_inverted_index)
    def ranked_inverted_index(self, *, id: pl.Series | None = None, **options: Unpack[RunInFrames]) -> pl.DataFrame:
        """List the rows that contain each sequence of n words, by descending count.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> column = pl.Series("text", ["to be", "to be or not to be"]).tadoc.compress()
        >>> column.tadoc.ranked_inverted_index(n=2, min_count=2).rows()
        [(['to', 'be'], [{'id': 1, 'count': 2}, {'id': 0, 'count': 1}])]

        """
        return asking_for_frames(RankedInvertedIndexRequest.from_arguments, options).frame(self._series, id)

    @_documented(TadocFrame.cooccurrence)
    def cooccurrence(self, **options: Unpack[CooccurrenceInFrames]) -> pl.DataFrame:
        """Count the pairs of words within a window.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> column = pl.Series("text", ["to be or not to be"]).tadoc.compress()
        >>> column.tadoc.cooccurrence(window=1, top=1).rows()
        [('be', 'to', 2)]

        """
        return asking_for_frames(CooccurrenceRequest.from_arguments, options).frame(self._series)

    @_documented(TadocFrame.repeats)
    def repeats(self, *, id: pl.Series | None = None, **options: Unpack[RepeatsOptions]) -> pl.DataFrame:
        """Find passages of at least ``length`` words that occur more than once.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series("text", ["to be or not to be", "whether to be or not"]).tadoc.repeats(length=3).rows()
        [(0, 0, 4, 2, True), (1, 1, 4, 2, False)]

        """
        return RepeatsRequest.from_arguments(**options).frame(self._series, id)

    @_documented(TadocFrame.near_duplicates)
    def near_duplicates(self, *, id: pl.Series | None = None, **options: Unpack[NearDuplicatesOptions]) -> pl.DataFrame:
        """Find pairs of rows whose sets of n-grams of words are similar.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["to be or not to be", "to be or not to be that"]).tadoc.near_duplicates(ngram=2).rows()
        [(0, 1, 0.8)]

        """
        request: NearDuplicatesRequest = NearDuplicatesRequest.from_arguments(**options)
        return request.frame(self._series, id)

    @_documented(TadocFrame.duplicate_groups)
    def duplicate_groups(
        self, *, id: pl.Series | None = None, **options: Unpack[NearDuplicatesOptions]
    ) -> pl.DataFrame:
        """Group rows that are copies or near duplicates, directly or through others.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["to be or not to be", "to be or not to be that"]).tadoc.duplicate_groups(ngram=2).rows()
        [(0, 0, True), (1, 0, False)]

        """
        request: DuplicateGroupsRequest = DuplicateGroupsRequest.from_arguments(**options)
        return request.frame(self._series, id)

    @documented_by(drop_repeats)
    def drop_repeats(self, **options: Unpack[DropRepeatsOptions]) -> pl.Series:
        """Drop repeated passages, or rows that repeat others; result as for :func:`polars_tadoc.drop_repeats`.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> text = pl.Series("text", ["Use cookies? Yes. Leeks.", "Use cookies? Yes. Sow."])
        >>> text.tadoc.drop_repeats(length=3).to_list()
        ['Use cookies? Yes. Leeks.', 'Sow.']

        """
        return drop_repeats(self._series, **options)

    @documented_by(repeated_share)
    def repeated_share(self, **options: Unpack[RepeatedShareOptions]) -> pl.Series:
        """Return the share of each row's words inside a repeated window.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series("text", ["to be or not to be", "to be or what"]).tadoc.repeated_share(length=3).to_list()
        [0.5, 0.75]

        """
        return repeated_share(self._series, **options)

    @documented_by(novelty)
    def novelty(self, **options: Unpack[NoveltyOptions]) -> pl.Series:
        """Return the share of each row's words inside no window of an earlier row.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series("text", ["to be or not to be", "to be or what"]).tadoc.novelty(length=3).to_list()
        [1.0, 0.25]

        """
        return novelty(self._series, **options)

    @documented_by(minhash)
    def minhash(self, **options: Unpack[MinHashOptions]) -> pl.Series:
        """Return the MinHash signature of each row's set of n-grams of words.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> one, other = pl.Series("text", ["to be or not", "to be, or not"]).tadoc.minhash(permutations=4, ngram=2)
        >>> one.equals(other)
        True

        """
        return minhash(self._series, **options)

    @documented_by(TadocFrame.collocations)
    def collocations(self, **options: Unpack[CollocationsOptions]) -> pl.DataFrame:
        """Score pairs of words by how much more often they occur than by chance.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> text = pl.Series(["New York is big", "is New York on", "is it on"]).tadoc.compress()
        >>> text.tadoc.collocations(min_count=2).rows()
        [('New', 'York', 2, 1.0)]

        """
        return CollocationsRequest.from_arguments(**options).frame(self._series)

    @_documented(TadocFrame.positions)
    def positions(self, phrase: str, *, id: pl.Series | None = None, **options: Unpack[PhraseOptions]) -> pl.DataFrame:
        """Find where a phrase occurs.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["to be or not to be", "be"]).tadoc.compress().tadoc.positions("to be").rows()
        [(0, 0, 2), (0, 4, 2)]

        """
        return PositionsRequest.of(phrase, options).frame(self._series, id)

    @_documented(TadocFrame.concordance)
    def concordance(
        self, phrase: str, *, id: pl.Series | None = None, **options: Unpack[ConcordanceOptions]
    ) -> pl.DataFrame:
        """Show a phrase in context: each occurrence, with the words around it.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["To be, or not to be!", "be"]).tadoc.concordance("not", window=2).rows()
        [(0, 3, 'be, or', 'not', 'to be')]

        """
        return ConcordanceRequest.of(phrase, **options).frame(self._series, id)

    @_documented(TadocFrame.overlap)
    def overlap(
        self,
        reference: pl.Series | PassageSet,
        *,
        id: pl.Series | None = None,
        reference_id: pl.Series | None = None,
        **options: Unpack[OverlapOptions],
    ) -> pl.DataFrame:
        """Find passages that occur in a reference, too.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> text = pl.Series("text", ["how many eggs are in a dozen", "eggs"])
        >>> text.tadoc.overlap(pl.Series(["Say: how many eggs"]), length=3).rows()
        [(0, 0, 3, 0, 1)]

        """
        return OverlapRequest.of(reference, reference_id, options).frame(self._series, id)

    @documented_by(overlap_share)
    def overlap_share(self, reference: pl.Series | PassageSet, **options: Unpack[OverlapOptions]) -> pl.Series:
        """Return the share of each row's words inside windows that a reference has, too.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> text = pl.Series("text", ["how many eggs are there", "eggs"])
        >>> text.tadoc.overlap_share(pl.Series(["Say: how many eggs"]), length=3).to_list()
        [0.6, 0.0]

        """
        return overlap_share(self._series, reference, **options)

    @documented_by(overlaps)
    def overlaps(self, reference: pl.Series | PassageSet, **options: Unpack[OverlapOptions]) -> pl.Series:
        """Tell which rows have at least ``length`` adjacent words of a reference.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> text = pl.Series("text", ["how many eggs are there", "eggs"])
        >>> text.tadoc.overlaps(pl.Series(["Say: how many eggs"]), length=3).to_list()
        [True, False]

        """
        return overlaps(self._series, reference, **options)

    @documented_by(TadocFrame.info)
    def info(self) -> pl.DataFrame:
        """Describe the column in one row; columns as for :func:`polars_tadoc.info`.

        Examples
        --------
        >>> import polars as pl
        >>> import polars_tadoc as tadoc
        >>> pl.Series(["to be", "to do"]).tadoc.compress().tadoc.info().select("rows", "words", "vocabulary").row(0)
        (2, 4, 3)

        """
        return pl.DataFrame(info(self._series))
