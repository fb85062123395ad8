"""``Workers``: calls that clean a corpus."""

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
from polars_tadoc.analytics.cleaning.options import DropRepeatsOnWorkers, OverlapOnWorkers, RepeatsOnWorkers
from polars_tadoc.analytics.cleaning.overlap import OverlapRequest, overlap
from polars_tadoc.analytics.cleaning.overlap import schema as overlap_schema
from polars_tadoc.analytics.cleaning.passage_set import PassageSet
from polars_tadoc.analytics.cleaning.repeats import RepeatsRequest, repeats
from polars_tadoc.analytics.cleaning.repeats import schema as repeats_schema
from polars_tadoc.distributed.worker_runs import COLUMN, LABELS, SOURCE, WorkersBase
from polars_tadoc.runtime.documented import documented_by
from polars_tadoc.storage.find import Source


class WorkersCleaning(WorkersBase):
    """Calls that clean a corpus."""

    @documented_by(repeats, source=SOURCE, column=COLUMN, id=LABELS)
    def repeats(
        self, source: Source, column: str | None = None, *, id: str | None = None, **options: Unpack[RepeatsOnWorkers]
    ) -> pl.LazyFrame:
        """Find passages of at least ``length`` words that occur more than once, over all files.

        Splits are read three times. Temporary files have 8 bytes for each thirteenth word (with ``length=50``), and
        the words around passages.

        Returns
        -------
        LazyFrame
            ``id, offset, length: UInt32, copies: UInt64, first: Boolean``, in row order.

        """
        request = RepeatsRequest.from_arguments(**options)
        return self._passages(request, source, column, lambda _, label: repeats_schema(label), id)

    @documented_by(drop_repeats, source=SOURCE, column=COLUMN)
    def drop_repeats(
        self, source: Source, column: str | None = None, **options: Unpack[DropRepeatsOnWorkers]
    ) -> pl.LazyFrame:
        """Drop repeated passages, or whole rows that repeat others, over all files; all columns are kept.

        Returns
        -------
        LazyFrame
            The rows, in order; the column is compressed if the files are packed.

        """
        request = DropRepeatsRequest.from_arguments(**options)
        return self._passages(request, source, column, lambda columns, _: columns)

    @documented_by(overlap, source=SOURCE, column=COLUMN, id=LABELS)
    def overlap(
        self,
        source: Source,
        column: str | None = None,
        reference: pl.Series | PassageSet | None = None,
        *,
        id: str | None = None,
        reference_id: pl.Series | None = None,
        **options: Unpack[OverlapOnWorkers],
    ) -> pl.LazyFrame:
        """Find passages of at least ``length`` words that occur in a reference, too; each worker holds the reference.

        Returns
        -------
        LazyFrame
            ``id, offset, length: UInt32, reference, reference_offset: UInt32``, in row order.

        """
        request = OverlapRequest.of(reference, reference_id, options)
        other = None if reference_id is None else reference_id.dtype
        return self._passages(request, source, column, lambda _, label: overlap_schema(label, other), id)

    @documented_by(near_duplicates, source=SOURCE, column=COLUMN, id=LABELS)
    def near_duplicates(
        self,
        source: Source,
        column: str | None = None,
        *,
        id: str | None = None,
        **options: Unpack[NearDuplicatesOptions],
    ) -> pl.LazyFrame:
        """Find pairs of rows whose sets of n-grams of words are similar, over all files.

        Splits are read three times. One worker holds 8 bytes for each row that shares a band with another; rows that
        may be similar, directly or through others, are compared by one worker.

        Returns
        -------
        LazyFrame
            ``id, other, similarity: Float64``, the earlier row first, in order of both.

        """
        request: NearDuplicatesRequest = NearDuplicatesRequest.from_arguments(**options)
        return self._passages(request, source, column, lambda _, label: request.schema(label), id)

    @documented_by(duplicate_groups, source=SOURCE, column=COLUMN, id=LABELS)
    def duplicate_groups(
        self,
        source: Source,
        column: str | None = None,
        *,
        id: str | None = None,
        **options: Unpack[NearDuplicatesOptions],
    ) -> pl.LazyFrame:
        """Group rows that are copies or near duplicates, over all files; with the stages of :meth:`near_duplicates`.

        Returns
        -------
        LazyFrame
            ``id, group, keep: Boolean``, all rows in row order.

        """
        request: DuplicateGroupsRequest = DuplicateGroupsRequest.from_arguments(**options)
        return self._passages(request, source, column, lambda _, label: request.schema(label), id)
