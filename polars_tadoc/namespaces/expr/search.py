"""``pl.col(…).tadoc``: indexes, phrases and XPath queries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Unpack

import polars as pl

from polars_tadoc.analytics.concordance import PositionsRequest, positions
from polars_tadoc.analytics.twig_filter import twig_filter
from polars_tadoc.analytics.twig_filter_rows import AS_STRUCT, NAMES, TwigFilterRowsOptions, TwigFilterRowsRequest
from polars_tadoc.namespaces.expr.base import ExprBase
from polars_tadoc.rows.bm25 import BM25Options, BM25Request, bm25
from polars_tadoc.rows.expressions import elementwise
from polars_tadoc.rows.patterns import PatternRequest, contains, count_matches, extract_all, find
from polars_tadoc.rows.phrases import PhraseOptions, PhraseRequest, contains_any, contains_phrase, count_phrase
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.twig.twig_set import TwigSet


class ExprSearch(ExprBase):
    """Indexes, phrases and XPath queries."""

    @documented_by(contains, returns="``Boolean``; null for null rows.")
    def contains(self, pattern: str, *, literal: bool = False, strict: bool = True) -> pl.Expr:
        """Tell which rows' text contains a match of a pattern, as ``str.contains``, without decompressing.

        Examples
        --------
        >>> df = pl.DataFrame({"row": [1, 2], "text": ["GET /a/b.html", "POST /a"]}).tadoc.compress("text")
        >>> df.filter(pl.col("text").tadoc.contains("/a/b", literal=True))["row"].to_list()
        [1]

        """
        return self._find(PatternRequest.of("contains", pattern, literal, strict))

    @documented_by(count_matches, returns="``UInt32``; null for null rows.")
    def count_matches(self, pattern: str, *, literal: bool = False) -> pl.Expr:
        """Count the matches of a pattern in each row, as ``str.count_matches``.

        Examples
        --------
        >>> df = pl.DataFrame({"text": ["a.b.c", "a b", None]}).tadoc.compress("text")
        >>> df.select(pl.col("text").tadoc.count_matches("[ab]")).to_series().to_list()
        [2, 2, None]

        """
        return self._find(PatternRequest.of("count_matches", pattern, literal, True))

    @documented_by(find, returns="``UInt32``; null for null rows and rows without a match.")
    def find(self, pattern: str, *, literal: bool = False, strict: bool = True) -> pl.Expr:
        """Return where the first match of a pattern begins in each row, in bytes, as ``str.find``.

        Examples
        --------
        >>> df = pl.DataFrame({"text": ["to be", "be", "or not"]}).tadoc.compress("text")
        >>> df.select(pl.col("text").tadoc.find("be", literal=True)).to_series().to_list()
        [3, 0, None]

        """
        return self._find(PatternRequest.of("find", pattern, literal, strict))

    @documented_by(extract_all, returns="``List(String)``; null for null rows.")
    def extract_all(self, pattern: str) -> pl.Expr:
        """Return all matches of a regular expression in each row, as ``str.extract_all``.

        Examples
        --------
        >>> df = pl.DataFrame({"text": ["id=17, id=4", "none"]}).tadoc.compress("text")
        >>> df.select(pl.col("text").tadoc.extract_all("[0-9]+")).to_series().to_list()
        [['17', '4'], []]

        """
        return self._find(PatternRequest.of("extract_all", pattern, False, True))

    @documented_by(count_phrase, returns="``UInt64``.")
    def count_phrase(self, phrase: str | pl.Expr, **options: Unpack[PhraseOptions]) -> pl.Expr:
        """Count how often each row contains a phrase: row-wise, null for null rows.

        Examples
        --------
        >>> df = pl.DataFrame({"text": ["to be, or not to be", "be", None]}).tadoc.compress("text")
        >>> df.select(pl.col("text").tadoc.count_phrase("to be")).to_series().to_list()
        [2, 0, None]
        >>> df = df.with_columns(phrase=pl.Series(["be", "to be", "be"]))
        >>> df.select(pl.col("text").tadoc.count_phrase(pl.col("phrase"))).to_series().to_list()
        [2, 0, None]

        """
        return self._phrase(count_phrase, phrase, options)

    @documented_by(contains_phrase, returns="``Boolean``.")
    def contains_phrase(self, phrase: str | pl.Expr, **options: Unpack[PhraseOptions]) -> pl.Expr:
        """Tell which rows contain a phrase: row-wise, null for null rows.

        Examples
        --------
        >>> df = pl.DataFrame({"row": [1, 2], "text": ["to be", "or not"]}).tadoc.compress("text")
        >>> df.filter(pl.col("text").tadoc.contains_phrase("To be", lowercase=True))["row"].to_list()
        [1]
        >>> df = df.with_columns(phrase=pl.Series(["be", "to be"]))
        >>> df.filter(pl.col("text").tadoc.contains_phrase(pl.col("phrase")))["row"].to_list()
        [1]

        """
        return self._phrase(contains_phrase, phrase, options)

    @documented_by(contains_any, returns="``Boolean``.")
    def contains_any(self, phrases: Iterable[str], **options: Unpack[PhraseOptions]) -> pl.Expr:
        """Tell which rows contain at least one of several phrases: row-wise, null for null rows.

        Examples
        --------
        >>> df = pl.DataFrame({"row": [1, 2], "text": ["to be", "or not"]}).tadoc.compress("text")
        >>> df.filter(pl.col("text").tadoc.contains_any(["be or", "not"]))["row"].to_list()
        [2]

        """
        return self._find(PhraseRequest.of_phrases(phrases, options))

    def _phrase(self, call: Callable[..., pl.Series], phrase: str | pl.Expr, options: PhraseOptions) -> pl.Expr:
        """Make an expression of a call with a phrase for all rows, or with one for each row."""
        if not isinstance(phrase, pl.Expr):
            return self._find(PhraseRequest.of_phrase(call.__name__, phrase, options))
        dtype = PhraseRequest.of_phrase(call.__name__, "a", options).dtype  # wrong options raise here
        return elementwise(partial(call, **options), dtype, self._expr, phrase)

    def _find(self, request: PhraseRequest | PatternRequest) -> pl.Expr:
        return elementwise(request.run, request.dtype, self._expr)

    @documented_by(bm25, returns="``Float32``: 0 if the row has none of the query's words.")
    def bm25(self, query: str, **options: Unpack[BM25Options]) -> pl.Expr:
        """Score each row for a query with BM25: row-wise, null for null rows.

        Document frequencies are counted over the rows that Polars passes: all rows of a column in ``select``,
        ``with_columns``, ``filter`` and ``sort``, also in the streaming engine; the rows of each group in ``group_by``
        and ``over``. So a filter before the call changes scores, and one after it does not.

        Examples
        --------
        >>> df = pl.DataFrame({"row": [1, 2], "text": ["to be", "to do or not to do"]}).tadoc.compress("text")
        >>> df.sort(pl.col("text").tadoc.bm25("do"), descending=True)["row"].to_list()
        [2, 1]

        """
        request = BM25Request.from_arguments(query, **options)
        # rows become one value per group, and all groups are passed at once
        scores = self._expr.implode().map_batches(
            request.run_lists, return_dtype=pl.List(pl.Float32), is_elementwise=True
        )
        return scores.explode(empty_as_null=False, keep_nulls=False)

    @documented_by(positions, returns="``List(UInt32)``, ascending; null for null rows.")
    def positions(self, phrase: str, **options: Unpack[PhraseOptions]) -> pl.Expr:
        """Return the first word of each occurrence of a phrase: row-wise.

        Examples
        --------
        >>> df = pl.DataFrame({"text": ["to be or not to be", "be"]}).tadoc.compress("text")
        >>> df.select(pl.col("text").tadoc.positions("to be")).to_series().to_list()
        [[0, 4], []]

        """
        return elementwise(PositionsRequest.of(phrase, options).by_row, pl.List(pl.UInt32), self._expr)

    @documented_by(twig_filter, returns=NAMES, as_struct=AS_STRUCT)
    def twig_filter(self, queries: Mapping[str, str] | TwigSet, **options: Unpack[TwigFilterRowsOptions]) -> pl.Expr:
        """Find the XPath queries that each row's XML document matches: row-wise, null for null rows.

        Elementwise: it streams, and processes all groups at once. Later changes of a :class:`TwigSet` have no effect on
        the expression. Errors number rows within one call by Polars; ``df.tadoc.twig_filter`` gives the row of the
        frame.

        Examples
        --------
        >>> df = pl.DataFrame({"row": [1, 2], "xml": ["<a><b/><c/></a>", "<a><c/></a>"]})
        >>> twigs = pl.col("xml").tadoc.twig_filter({"both": "/a[b]/c", "any": "//c"})
        >>> df.with_columns(twigs).rows()
        [(1, ['both', 'any']), (2, ['any'])]
        >>> df.filter(twigs.list.contains("both"))["row"].to_list()
        [1]

        """
        request = TwigFilterRowsRequest.from_arguments(queries, **options)
        return elementwise(request.run_part, request.dtype, self._expr)
