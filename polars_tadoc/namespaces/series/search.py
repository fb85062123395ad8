"""``series.tadoc``: indexes, phrases and XPath queries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Unpack

import polars as pl

from polars_tadoc.analytics.collocations import CollocationsOptions, CollocationsRequest
from polars_tadoc.analytics.concordance import ConcordanceOptions, ConcordanceRequest, PositionsRequest
from polars_tadoc.analytics.twig_filter import twig_filter
from polars_tadoc.analytics.twig_filter_rows import AS_STRUCT, NAMES, TwigFilterRowsOptions, TwigFilterRowsRequest
from polars_tadoc.index.construct.build import IndexOptions, build_index
from polars_tadoc.index.index import Index
from polars_tadoc.namespaces.dataframe import TadocFrame
from polars_tadoc.namespaces.series.base import SeriesBase, documented
from polars_tadoc.rows.bm25 import BM25Options, bm25
from polars_tadoc.rows.patterns import contains, count_matches, extract_all, find
from polars_tadoc.rows.phrases import PhraseOptions, contains_any, contains_phrase, count_phrase
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.twig.twig_set import TwigSet


class SeriesSearch(SeriesBase):
    """Indexes, phrases and XPath queries."""

    @documented_by(contains)
    def contains(self, pattern: str, *, literal: bool = False, strict: bool = True) -> pl.Series:
        """Tell which rows' text contains a match of a pattern; result as for :func:`polars_tadoc.contains`.

        Examples
        --------
        >>> pl.Series(["GET /a/b.html", "POST /a", None]).tadoc.compress().tadoc.contains("/a/|^P").to_list()
        [True, True, None]

        """
        return contains(self._series, pattern, literal=literal, strict=strict)

    @documented_by(count_matches)
    def count_matches(self, pattern: str, *, literal: bool = False) -> pl.Series:
        """Count the matches of a pattern in each row; result as for :func:`polars_tadoc.count_matches`.

        Examples
        --------
        >>> pl.Series(["a.b.c", "a b", None]).tadoc.compress().tadoc.count_matches(".", literal=True).to_list()
        [2, 0, None]

        """
        return count_matches(self._series, pattern, literal=literal)

    @documented_by(find)
    def find(self, pattern: str, *, literal: bool = False, strict: bool = True) -> pl.Series:
        """Return where the first match of a pattern begins, in bytes; result as for :func:`polars_tadoc.find`.

        Examples
        --------
        >>> pl.Series(["to be", "be", "or not"]).tadoc.compress().tadoc.find("be", literal=True).to_list()
        [3, 0, None]

        """
        return find(self._series, pattern, literal=literal, strict=strict)

    @documented_by(extract_all)
    def extract_all(self, pattern: str) -> pl.Series:
        """Return all matches of a regular expression; result as for :func:`polars_tadoc.extract_all`.

        Examples
        --------
        >>> pl.Series(["id=17, id=4", "none"]).tadoc.compress().tadoc.extract_all("[0-9]+").to_list()
        [['17', '4'], []]

        """
        return extract_all(self._series, pattern)

    @documented_by(count_phrase)
    def count_phrase(self, phrase: str | pl.Series, **options: Unpack[PhraseOptions]) -> pl.Series:
        """Count how often each row contains a phrase; result as for :func:`polars_tadoc.count_phrase`.

        Examples
        --------
        >>> pl.Series(["to be, or not to be", "be", None]).tadoc.compress().tadoc.count_phrase("to be").to_list()
        [2, 0, None]

        """
        return count_phrase(self._series, phrase, **options)

    @documented_by(contains_phrase)
    def contains_phrase(self, phrase: str | pl.Series, **options: Unpack[PhraseOptions]) -> pl.Series:
        """Tell which rows contain a phrase; result as for :func:`polars_tadoc.contains_phrase`.

        Examples
        --------
        >>> pl.Series(["to be", "To Be", None]).tadoc.compress().tadoc.contains_phrase("to be").to_list()
        [True, False, None]

        """
        return contains_phrase(self._series, phrase, **options)

    @documented_by(contains_any)
    def contains_any(self, phrases: Iterable[str], **options: Unpack[PhraseOptions]) -> pl.Series:
        """Tell which rows contain at least one of several phrases; result as for :func:`polars_tadoc.contains_any`.

        Examples
        --------
        >>> pl.Series(["to be", "or not"]).tadoc.compress().tadoc.contains_any(["be or", "not"]).to_list()
        [False, True]

        """
        return contains_any(self._series, phrases, **options)

    @documented_by(bm25)
    def bm25(self, query: str, **options: Unpack[BM25Options]) -> pl.Series:
        """Score each row for a query with BM25; result as for :func:`polars_tadoc.bm25`.

        Examples
        --------
        >>> [round(score, 2) for score in pl.Series(["to be", "or not"]).tadoc.compress().tadoc.bm25("to")]
        [0.28, 0.0]

        """
        return bm25(self._series, query, **options)

    @documented_by(twig_filter, returns=NAMES, as_struct=AS_STRUCT)
    def twig_filter(self, queries: Mapping[str, str] | TwigSet, **options: Unpack[TwigFilterRowsOptions]) -> pl.Series:
        """Find the XPath queries that each row's XML document matches: row-wise, null for null rows.

        Examples
        --------
        >>> series = pl.Series(["<a><b/><c/></a>", "<a><c/></a>"])
        >>> series.tadoc.twig_filter({"both": "/a[b]/c", "any": "//c"}).to_list()
        [['both', 'any'], ['any']]

        """
        return TwigFilterRowsRequest.from_arguments(queries, **options).run(self._series)

    @documented_by(build_index)
    def build_index(self, *, id: pl.Series | None = None, **options: Unpack[IndexOptions]) -> Index:
        """Build a search index, as :func:`polars_tadoc.build_index`.

        Examples
        --------
        >>> index = pl.Series(["to be", "to do", "or not"]).tadoc.compress().tadoc.build_index()
        >>> index.search("not to be", k=2)["id"].to_list()
        [0, 2]

        """
        return build_index(self._series, id=id, **options)

    @documented_by(TadocFrame.collocations)
    def collocations(self, **options: Unpack[CollocationsOptions]) -> pl.DataFrame:
        """Score pairs of words by how much more often they occur than by chance.

        Examples
        --------
        >>> text = pl.Series(["New York is big", "is New York on", "is it on"]).tadoc.compress()
        >>> text.tadoc.collocations(min_count=2).rows()
        [('New', 'York', 2, 1.0)]

        """
        return CollocationsRequest.from_arguments(**options).frame(self._series)

    @documented(TadocFrame.positions)
    def positions(self, phrase: str, *, id: pl.Series | None = None, **options: Unpack[PhraseOptions]) -> pl.DataFrame:
        """Find where a phrase occurs.

        Examples
        --------
        >>> pl.Series(["to be or not to be", "be"]).tadoc.compress().tadoc.positions("to be").rows()
        [(0, 0, 2), (0, 4, 2)]

        """
        return PositionsRequest.of(phrase, options).frame(self._series, id)

    @documented(TadocFrame.concordance)
    def concordance(
        self, phrase: str, *, id: pl.Series | None = None, **options: Unpack[ConcordanceOptions]
    ) -> pl.DataFrame:
        """Show a phrase in context: each occurrence, with the words around it.

        Examples
        --------
        >>> pl.Series(["To be, or not to be!", "be"]).tadoc.concordance("not", window=2).rows()
        [(0, 3, 'be, or', 'not', 'to be')]

        """
        return ConcordanceRequest.of(phrase, **options).frame(self._series, id)
