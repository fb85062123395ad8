"""``lf.tadoc``: repeated, similar and shared passages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import polars as pl
import polars.selectors as cs

from polars_tadoc.analytics.cleaning import limited, limited_near
from polars_tadoc.analytics.cleaning.drop_repeats import DropRepeatsRequest
from polars_tadoc.analytics.cleaning.limited import LimitedPlan
from polars_tadoc.analytics.cleaning.near_duplicates import (
    DuplicateGroupsRequest,
    NearDuplicatesRequest,
)
from polars_tadoc.analytics.cleaning.overlap import OverlapRequest
from polars_tadoc.analytics.cleaning.overlap import schema as overlap_schema
from polars_tadoc.analytics.cleaning.passage_set import PassageSet
from polars_tadoc.analytics.cleaning.repeats import RepeatsRequest
from polars_tadoc.analytics.cleaning.repeats import schema as repeats_schema
from polars_tadoc.execute.columns import label_column, text_column
from polars_tadoc.execute.plan import read_columns
from polars_tadoc.namespaces.dataframe import TadocFrame
from polars_tadoc.namespaces.lazyframe.base import (
    DropRepeatsInPlans,
    NearDuplicatesInPlans,
    OverlapInPlans,
    PlanBase,
    RepeatsInPlans,
    documented,
    plan_options,
)
from polars_tadoc.runtime.io_source import as_asked, at_work


class PlanCleaning(PlanBase):
    """Repeated, similar and shared passages."""

    @documented(TadocFrame.repeats)
    def repeats(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[RepeatsInPlans]
    ) -> pl.LazyFrame:
        """Find passages of at least ``length`` words that occur more than once; only the column and ``id`` are read.

        Without ``memory_limit``, the column is held in memory while the plan runs. With it, the numbers of the words
        are written to disk; the distinct words must fit.

        Examples
        --------
        >>> lf = pl.LazyFrame({"text": ["to be or not to be", "whether to be or not"]})
        >>> lf.tadoc.repeats("text", length=3).collect().rows()
        [(0, 0, 4, 2, True), (1, 1, 4, 2, False)]

        """
        lf, call = self._lf, "repeats"
        limit, folder, own = plan_options(options, call)
        request = RepeatsRequest.from_arguments(**own)
        columns = lf.collect_schema()
        name = text_column(columns, column, call)
        labels = None if id is None else label_column(columns, id, call)
        schema = repeats_schema(None if labels is None else columns[labels])
        if limit is None:
            return read_columns(lf, request, name, labels, schema)
        return limited.repeats(request, LimitedPlan(lf, name, labels, limit, folder), schema)

    @documented(TadocFrame.near_duplicates)
    def near_duplicates(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[NearDuplicatesInPlans]
    ) -> pl.LazyFrame:
        """Find pairs of rows whose sets of n-grams are similar; only the column and ``id`` are read.

        Without ``memory_limit``, the column is held in memory while the plan runs. With it, the numbers of the words
        and the keys of signatures are written to disk; the distinct words, 64 bytes for each row, and rows that may be
        similar to one another must fit.

        Examples
        --------
        >>> lf = pl.LazyFrame({"text": ["to be or not to be", "to be or not to be that"]})
        >>> lf.tadoc.near_duplicates("text", ngram=2).collect().rows()
        [(0, 1, 0.8)]

        """
        return self._near(NearDuplicatesRequest, limited_near.near_duplicates, options, column, id)

    @documented(TadocFrame.duplicate_groups)
    def duplicate_groups(
        self, column: str | None = None, *, id: str | None = None, **options: Unpack[NearDuplicatesInPlans]
    ) -> pl.LazyFrame:
        """Group rows that are copies or near duplicates; only the column and ``id`` are read.

        Without ``memory_limit``, the column is held in memory while the plan runs. With it, the numbers of the words
        and the keys of signatures are written to disk; the distinct words, 64 bytes for each row, and rows that may be
        similar to one another must fit.

        Examples
        --------
        >>> lf = pl.LazyFrame({"text": ["to be or not to be", "to be or not to be that"]})
        >>> lf.tadoc.duplicate_groups("text", ngram=2).collect().rows()
        [(0, 0, True), (1, 0, False)]

        """
        return self._near(DuplicateGroupsRequest, limited_near.duplicate_groups, options, column, id)

    def _near(
        self,
        asked: type[Any],
        limited_by: Callable[..., pl.LazyFrame],
        options: Any,
        column: str | None,
        id: str | None,
    ) -> pl.LazyFrame:
        limit, _, own = plan_options(options, asked.name)
        request = asked.from_arguments(**own)
        if limit is None:
            return self._labelled(request, column, id)
        lf, columns = self._lf, self._lf.collect_schema()
        name = text_column(columns, column, request.name)
        labels = None if id is None else label_column(columns, id, request.name)
        schema = request.schema(None if labels is None else columns[labels])
        return limited_by(request, LimitedPlan(lf, name, labels, limit), schema)

    @documented(TadocFrame.drop_repeats)
    def drop_repeats(self, column: str | None = None, **options: Unpack[DropRepeatsInPlans]) -> pl.LazyFrame:
        """Drop repeated passages from a compressed column or text, or rows that repeat others.

        Without ``memory_limit``, the column is held in memory while the plan runs. With it, the plan runs twice, and
        must give the same rows both times.

        Examples
        --------
        >>> lf = pl.LazyFrame({"text": ["Use cookies? Yes. Leeks.", "Use cookies? Yes. Sow."]})
        >>> lf.tadoc.drop_repeats("text", length=3).collect().rows()
        [('Use cookies? Yes. Leeks.',), ('Sow.',)]

        """
        lf, call = self._lf, "drop_repeats"
        limit, folder, own = plan_options(options, call)
        request, schema = DropRepeatsRequest.from_arguments(**own), lf.collect_schema()
        name = text_column(schema, column, call)
        if limit is not None:
            return limited.drop_repeats(request, LimitedPlan(lf, name, None, limit, folder), schema)
        rows = cs.by_name(name).as_expr()
        if request.unit == "row":
            return lf.filter(rows.map_batches(at_work()(as_asked(request.kept_rows)), return_dtype=pl.Boolean))
        return lf.with_columns(rows.map_batches(at_work()(as_asked(request.cut)), return_dtype=pl.self_dtype()))

    @documented(TadocFrame.overlap)
    def overlap(
        self,
        column: str | None = None,
        reference: pl.Series | PassageSet | None = None,
        *,
        id: str | None = None,
        reference_id: pl.Series | None = None,
        **options: Unpack[OverlapInPlans],
    ) -> pl.LazyFrame:
        """Find passages of a compressed column or text that occur in a reference; only the column and ``id`` are read.

        The reference is read now and stays in memory. So does the column while the plan runs, unless there is a
        ``memory_limit``.

        Examples
        --------
        >>> lf = pl.LazyFrame({"text": ["how many eggs are in a dozen", "eggs"]})
        >>> lf.tadoc.overlap("text", pl.Series(["Say: how many eggs"]), length=3).collect().rows()
        [(0, 0, 3, 0, 1)]

        """
        lf, call = self._lf, "overlap"
        limit, _, own = plan_options(options, call)
        request = OverlapRequest.of(reference, reference_id, own)
        columns = lf.collect_schema()
        name = text_column(columns, column, call)
        labels = None if id is None else label_column(columns, id, call)
        types = (None if labels is None else columns[labels]), (None if reference_id is None else reference_id.dtype)
        schema = overlap_schema(*types)
        if limit is None:
            return read_columns(lf, request, name, labels, schema)
        return limited.overlap(request, LimitedPlan(lf, name, labels, limit), schema)
