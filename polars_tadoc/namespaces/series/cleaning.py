"""``series.tadoc``: repeated, similar and shared passages."""

from __future__ import annotations

from typing import Unpack

import polars as pl

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
from polars_tadoc.namespaces.dataframe import TadocFrame
from polars_tadoc.namespaces.series.base import SeriesBase, documented
from polars_tadoc.runtime.documented import documented_by


class SeriesCleaning(SeriesBase):
    """Repeated, similar and shared passages."""

    @documented(TadocFrame.repeats)
    def repeats(self, *, id: pl.Series | None = None, **options: Unpack[RepeatsOptions]) -> pl.DataFrame:
        """Find passages of at least ``length`` words that occur more than once.

        Examples
        --------
        >>> pl.Series("text", ["to be or not to be", "whether to be or not"]).tadoc.repeats(length=3).rows()
        [(0, 0, 4, 2, True), (1, 1, 4, 2, False)]

        """
        return RepeatsRequest.from_arguments(**options).frame(self._series, id)

    @documented(TadocFrame.near_duplicates)
    def near_duplicates(self, *, id: pl.Series | None = None, **options: Unpack[NearDuplicatesOptions]) -> pl.DataFrame:
        """Find pairs of rows whose sets of n-grams of words are similar.

        Examples
        --------
        >>> pl.Series(["to be or not to be", "to be or not to be that"]).tadoc.near_duplicates(ngram=2).rows()
        [(0, 1, 0.8)]

        """
        request: NearDuplicatesRequest = NearDuplicatesRequest.from_arguments(**options)
        return request.frame(self._series, id)

    @documented(TadocFrame.duplicate_groups)
    def duplicate_groups(
        self, *, id: pl.Series | None = None, **options: Unpack[NearDuplicatesOptions]
    ) -> pl.DataFrame:
        """Group rows that are copies or near duplicates, directly or through others.

        Examples
        --------
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
        >>> pl.Series("text", ["to be or not to be", "to be or what"]).tadoc.repeated_share(length=3).to_list()
        [0.5, 0.75]

        """
        return repeated_share(self._series, **options)

    @documented_by(novelty)
    def novelty(self, **options: Unpack[NoveltyOptions]) -> pl.Series:
        """Return the share of each row's words inside no window of an earlier row.

        Examples
        --------
        >>> pl.Series("text", ["to be or not to be", "to be or what"]).tadoc.novelty(length=3).to_list()
        [1.0, 0.25]

        """
        return novelty(self._series, **options)

    @documented_by(minhash)
    def minhash(self, **options: Unpack[MinHashOptions]) -> pl.Series:
        """Return the MinHash signature of each row's set of n-grams of words.

        Examples
        --------
        >>> one, other = pl.Series("text", ["to be or not", "to be, or not"]).tadoc.minhash(permutations=4, ngram=2)
        >>> one.equals(other)
        True

        """
        return minhash(self._series, **options)

    @documented(TadocFrame.overlap)
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
        >>> text = pl.Series("text", ["how many eggs are in a dozen", "eggs"])
        >>> text.tadoc.overlap(pl.Series(["Say: how many eggs"]), length=3).rows()
        [(0, 0, 3, 0, 1)]

        """
        return OverlapRequest.run(self._series, id, reference, reference_id, options)

    @documented_by(overlap_share)
    def overlap_share(self, reference: pl.Series | PassageSet, **options: Unpack[OverlapOptions]) -> pl.Series:
        """Return the share of each row's words inside windows that a reference has, too.

        Examples
        --------
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
        >>> text = pl.Series("text", ["how many eggs are there", "eggs"])
        >>> text.tadoc.overlaps(pl.Series(["Say: how many eggs"]), length=3).to_list()
        [True, False]

        """
        return overlaps(self._series, reference, **options)
