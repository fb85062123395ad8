"""``pl.col(…).tadoc``: repeated, similar and shared passages."""

from __future__ import annotations

from typing import Unpack

import polars as pl

from polars_tadoc.analytics.cleaning.minhash import MinHashRequest, minhash
from polars_tadoc.analytics.cleaning.options import NoveltyOptions, OverlapOptions, RepeatedShareOptions
from polars_tadoc.analytics.cleaning.overlap import SharedRequest, overlap_share, overlaps
from polars_tadoc.analytics.cleaning.passage_set import PassageSet
from polars_tadoc.analytics.cleaning.shares import ShareRequest, novelty, repeated_share
from polars_tadoc.analytics.cleaning.signatures import MinHashOptions
from polars_tadoc.namespaces.expr.base import ExprBase
from polars_tadoc.rows.expressions import elementwise
from polars_tadoc.runtime.documented import documented_by


class ExprCleaning(ExprBase):
    """Repeated, similar and shared passages."""

    @documented_by(repeated_share, returns="``Float64``, from 0 to 1; null for rows without words.")
    def repeated_share(self, **options: Unpack[RepeatedShareOptions]) -> pl.Expr:
        """Return the share of each row's words inside a repeated window.

        Windows are counted over the rows that Polars passes: all rows of a column in ``select``, ``with_columns``,
        ``filter`` and ``sort``, the rows of each group in ``group_by`` and ``over``.

        Examples
        --------
        >>> df = pl.DataFrame({"row": [1, 2], "text": ["to be or not to be", "to be or what"]}).tadoc.compress("text")
        >>> df.filter(pl.col("text").tadoc.repeated_share(length=3) > 0.5)["row"].to_list()
        [2]

        """
        return self._over_groups(ShareRequest.repeated(options))

    @documented_by(novelty, returns="``Float64``, from 0 to 1; null for rows without words.")
    def novelty(self, **options: Unpack[NoveltyOptions]) -> pl.Expr:
        """Return the share of each row's words inside no window of an earlier row.

        Earlier rows are those that Polars passes before, as for :meth:`repeated_share`: with ``over``, those of the
        group, in the order of the frame.

        Examples
        --------
        >>> df = pl.DataFrame({"site": ["a", "b", "a"], "text": ["to be or not", "to be or what", "to be or that"]})
        >>> df.select(pl.col("text").tadoc.novelty(length=3).over("site")).to_series().to_list()
        [1.0, 1.0, 0.25]

        """
        return self._over_groups(ShareRequest.new(options))

    @documented_by(minhash, returns="``Array(UInt32, permutations)``; null for null rows.")
    def minhash(self, **options: Unpack[MinHashOptions]) -> pl.Expr:
        """Return the MinHash signature of each row's set of n-grams of words: row-wise.

        Examples
        --------
        >>> df = pl.DataFrame({"text": ["to be or not", "to be, or not", "to do"]}).tadoc.compress("text")
        >>> df.unique(pl.col("text").tadoc.minhash(ngram=2)).height
        2

        """
        request = MinHashRequest.from_arguments(**options)
        return elementwise(request.run, request.dtype, self._expr)

    @documented_by(overlap_share, returns="``Float64``, from 0 to 1; null for rows without words.")
    def overlap_share(self, reference: pl.Series | PassageSet, **options: Unpack[OverlapOptions]) -> pl.Expr:
        """Return the share of each row's words inside windows that a reference has, too: row-wise.

        Examples
        --------
        >>> df = pl.DataFrame({"row": [1, 2], "text": ["how many eggs are there", "eggs"]}).tadoc.compress("text")
        >>> questions = tadoc.PassageSet(pl.Series(["Say: how many eggs"]), length=3)
        >>> df.select("row", pl.col("text").tadoc.overlap_share(questions)).rows()
        [(1, 0.6), (2, 0.0)]

        """
        return self._shared(SharedRequest.of("overlap_share", reference, options))

    @documented_by(overlaps, returns="``Boolean``; null for null rows.")
    def overlaps(self, reference: pl.Series | PassageSet, **options: Unpack[OverlapOptions]) -> pl.Expr:
        """Tell which rows have at least ``length`` adjacent words of a reference: row-wise.

        Examples
        --------
        >>> df = pl.DataFrame({"row": [1, 2], "text": ["how many eggs are there", "eggs"]})
        >>> questions = tadoc.PassageSet(pl.Series(["Say: how many eggs"]), length=3)
        >>> df.filter(~pl.col("text").tadoc.overlaps(questions))["row"].to_list()
        [2]

        """
        return self._shared(SharedRequest.of("overlaps", reference, options))

    def _shared(self, request: SharedRequest) -> pl.Expr:
        return elementwise(request.run, request.dtype, self._expr)
