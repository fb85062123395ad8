"""``df.tadoc``: repeated, similar and shared passages."""

from __future__ import annotations

from typing import Unpack

import polars as pl

from polars_tadoc.analytics.cleaning.drop_repeats import DropRepeatsRequest, drop_repeats
from polars_tadoc.analytics.cleaning.near_duplicates import (
    DuplicateGroupsRequest,
    NearDuplicatesOptions,
    NearDuplicatesRequest,
    duplicate_groups,
    near_duplicates,
)
from polars_tadoc.analytics.cleaning.options import DropRepeatsOptions, OverlapOptions, RepeatsOptions
from polars_tadoc.analytics.cleaning.overlap import OverlapRequest, overlap
from polars_tadoc.analytics.cleaning.passage_set import PassageSet
from polars_tadoc.analytics.cleaning.repeats import RepeatsRequest, repeats
from polars_tadoc.namespaces.dataframe.base import LABELS, FrameBase
from polars_tadoc.runtime.documented import documented_by


class FrameCleaning(FrameBase):
    """Repeated, similar and shared passages."""

    @documented_by(repeats, id=LABELS)
    def repeats(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[RepeatsOptions]
    ) -> pl.DataFrame:
        """Find passages of at least ``length`` words that occur more than once, in a compressed column or text.

        Returns
        -------
        DataFrame
            ``id, offset: UInt32, length: UInt32, copies: UInt64, first: Boolean``, in row order: the passage's first
            word and its number of words, the largest count of its windows, and whether all of them are first
            occurrences.

        Examples
        --------
        >>> df = pl.DataFrame({"page": ["a", "b"], "text": ["to be or not to be", "whether to be or not"]})
        >>> df.tadoc.repeats("text", id="page", length=3).rows()
        [('a', 0, 4, 2, True), ('b', 1, 4, 2, False)]

        """
        call = "repeats"
        request = RepeatsRequest.from_arguments(**options)
        return request.frame(self._text(call, column), self._labels(call, id))

    @documented_by(
        near_duplicates,
        returns="``id, other, similarity: Float64``, the earlier row first, in order of both.",
        id=LABELS,
    )
    def near_duplicates(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[NearDuplicatesOptions]
    ) -> pl.DataFrame:
        """Find pairs of rows whose sets of n-grams of words are similar, in a compressed column or text.

        Examples
        --------
        >>> df = pl.DataFrame({"page": ["a", "b"], "text": ["to be or not to be", "to be or not to be that"]})
        >>> df.tadoc.near_duplicates("text", id="page", ngram=2).rows()
        [('a', 'b', 0.8)]

        """
        call = "near_duplicates"
        request: NearDuplicatesRequest = NearDuplicatesRequest.from_arguments(**options)
        return request.frame(self._text(call, column), self._labels(call, id))

    @documented_by(duplicate_groups, id=LABELS)
    def duplicate_groups(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[NearDuplicatesOptions]
    ) -> pl.DataFrame:
        """Group rows that are copies or near duplicates, directly or through others, in a compressed column or text.

        Returns
        -------
        DataFrame
            ``id, group, keep: Boolean``, all rows in row order: the label of the group's first row, and whether the
            row is that one.

        Examples
        --------
        >>> df = pl.DataFrame({"page": ["a", "b"], "text": ["to be or not to be", "to be or not to be that"]})
        >>> groups = df.tadoc.duplicate_groups("text", id="page", ngram=2)
        >>> groups.rows()
        [('a', 'a', True), ('b', 'a', False)]
        >>> df.filter(groups["keep"])["page"].to_list()
        ['a']

        """
        call = "duplicate_groups"
        request: DuplicateGroupsRequest = DuplicateGroupsRequest.from_arguments(**options)
        return request.frame(self._text(call, column), self._labels(call, id))

    @documented_by(drop_repeats)
    def drop_repeats(self, column: str | None = None, **options: Unpack[DropRepeatsOptions]) -> pl.DataFrame:
        """Drop repeated passages from a compressed column or text, or rows that repeat others.

        Returns
        -------
        DataFrame
            The frame with the column in its form, without the passages; with ``unit="row"``, without the rows.

        Examples
        --------
        >>> df = pl.DataFrame({"page": ["a", "b"], "text": ["Use cookies? Yes. Leeks.", "Use cookies? Yes. Sow."]})
        >>> df.tadoc.drop_repeats("text", length=3).rows()
        [('a', 'Use cookies? Yes. Leeks.'), ('b', 'Sow.')]
        >>> df.tadoc.drop_repeats("text", length=3, unit="row", share=0.7)["page"].to_list()
        ['a']

        """
        request, text = DropRepeatsRequest.from_arguments(**options), self._text("drop_repeats", column)
        if request.unit == "row":
            return self._df.filter(request.kept_rows(text))
        return self._df.with_columns(request.cut(text))

    @documented_by(
        overlap,
        returns="``id, offset: UInt32, length: UInt32, reference, reference_offset: UInt32``, in row order.",
        id=LABELS,
    )
    def overlap(
        self,
        column: str | None = None,
        reference: pl.Series | PassageSet | None = None,
        *,
        id: str | None = None,
        reference_id: pl.Series | None = None,
        **options: Unpack[OverlapOptions],
    ) -> pl.DataFrame:
        """Find passages of a compressed column or text that occur in a reference, too.

        The column is optional if there is only one compressed column: ``overlap(reference=…)``.

        Examples
        --------
        >>> df = pl.DataFrame({"page": ["a", "b"], "text": ["how many eggs are in a dozen", "eggs"]})
        >>> df.tadoc.overlap("text", pl.Series(["Say: how many eggs"]), id="page", length=3).rows()
        [('a', 0, 3, 0, 1)]

        """
        text, labels = self._text("overlap", column), self._labels("overlap", id)
        return OverlapRequest.run(text, labels, reference, reference_id, options)
