"""Inverted indexes by group of rows, all groups in one pass: the expressions in ``group_by`` and ``over``.

The rows of all groups are indexed together; then the rows of each word or sequence are split by group.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from polars_tadoc.analytics import inverted_index, ranked_inverted_index
from polars_tadoc.analytics.by_group import Groups
from polars_tadoc.execute.aggregation import Part
from polars_tadoc.execute.analytic import Analytic
from polars_tadoc.execute.stages import Stages
from polars_tadoc.model.arrow_results import from_arrow, lists, sequence_series, to_arrow
from polars_tadoc.model.column import rows_of_lists
from polars_tadoc.records.labelled_results import INDEX, Labels, require_label_type
from polars_tadoc.runtime.array_types import Bools, Int64, UInt32, array_dataclass
from polars_tadoc.runtime.io_source import at_work

LABEL = "label of a TADOC row"
"""Field name of the labels in lists of structs."""


@array_dataclass
class Shares:
    """The rows of each word or sequence, split by group."""

    groups: Int64
    numbers: Int64
    """``groups``, ``numbers``: int64, ascending: group and number of each list's word or sequence."""
    offsets: Int64
    """int64, lists + 1."""
    rows: UInt32
    """uint32: rows of the column."""
    order: Int64
    """int64: original position of each row."""

    @classmethod
    def of(cls, groups: Groups, numbers: Int64, rows: npt.NDArray[Any]) -> Shares:
        """Split rows by group; rows of one number and group keep their order."""
        owners = np.searchsorted(groups.offsets, rows.astype(np.int64), side="right") - 1
        keys = owners << 32 | numbers
        order = np.argsort(keys, kind="stable")
        keys, rows = keys[order], rows[order]
        firsts = np.flatnonzero(np.diff(keys, prepend=-1))
        found = keys[firsts]
        return cls(found >> 32, found & 0xFFFFFFFF, np.append(firsts, len(keys)), rows.astype(np.uint32), order)

    def keep(self, kept: Bools, most: int | None = None) -> Shares:
        """Drop lists, and rows beyond ``most`` in each list."""
        sizes = np.diff(self.offsets)
        within = np.repeat(kept, sizes)
        if most is not None:
            within &= np.arange(len(self.rows)) - np.repeat(self.offsets[:-1], sizes) < most
        sums = np.append(0, np.cumsum(within))[self.offsets]
        offsets = np.append(0, np.cumsum(np.diff(sums)[kept]))
        return Shares(self.groups[kept], self.numbers[kept], offsets, self.rows[within], self.order[within])


@dataclass(frozen=True)
class _IndexRequest(ABC, Generic[Part]):
    """The checked arguments of an index by group."""

    analytic: Analytic[Part, Any]

    @at_work()
    def run_lists(self, imploded: pl.Series) -> pl.Series:
        """Index each list of rows, numbered within the list; returns one list of structs per list."""
        groups = Groups.of_lists(imploded, self.analytic.name)
        return self._run(groups, Labels(None))

    @at_work()
    def run_labelled(self, imploded: pl.Series) -> pl.Series:
        """Do the same for lists of structs of a row and its label."""
        rows, offsets = rows_of_lists(imploded)
        column, labels = rows.struct.unnest()
        require_label_type(labels.name, labels.dtype, self.analytic.name)
        groups = Groups.of_rows(column.alias(imploded.name), self.analytic.name)
        return self._run(Groups(groups.column, offsets), Labels.of(groups.column, labels, self.analytic.name))

    def _run(self, groups: Groups, labels: Labels) -> pl.Series:
        every = self.analytic.without_limits()
        found = every.merge([Stages(every).all(groups.column)])
        shares, columns = self._share(found, groups, labels)
        sizes = np.bincount(shares.groups, minlength=len(groups.offsets) - 1)
        structs: Any = pl.DataFrame(columns).to_struct().to_arrow(compat_level=pl.CompatLevel.newest())
        made = from_arrow(groups.column.name, lists(np.append(0, np.cumsum(sizes)), structs))
        dtype = pl.List(pl.Struct({column.name: column.dtype for column in columns}))
        return made if made.dtype == dtype else made.cast(dtype)

    @abstractmethod
    def _share(self, found: Part, groups: Groups, labels: Labels) -> tuple[Shares, list[pl.Series]]:
        """Split the index by group, and return the result's columns."""


def _labels(labels: Labels, groups: Groups, shares: Shares) -> pa.Array:
    if labels.values is not None:
        return labels.arrow(shares.rows)
    within = shares.rows - np.repeat(groups.offsets[shares.groups], np.diff(shares.offsets))
    return labels.arrow(within.astype(np.uint32))


class InvertedIndex(_IndexRequest[inverted_index.Postings]):
    """The rows of each group that contain each word."""

    def _share(self, found: inverted_index.Postings, groups: Groups, labels: Labels) -> tuple[Shares, list[pl.Series]]:
        analytic: Any = self.analytic
        ranks = np.repeat(found.words.rank.astype(np.int64), np.diff(found.offsets))
        shares = Shares.of(groups, ranks, found.rows)
        if analytic.min_count > 1:
            shares = shares.keep(np.diff(shares.offsets) >= analytic.min_count)
        words = found.words.take(found.words.by_rank[shares.numbers])
        documents = from_arrow("documents", lists(shares.offsets, _labels(labels, groups, shares)))
        return shares, [words, labels.typed(documents)]


class RankedInvertedIndex(_IndexRequest[ranked_inverted_index.Postings]):
    """The rows of each group that contain each sequence, by descending count."""

    def _share(
        self, found: ranked_inverted_index.Postings, groups: Groups, labels: Labels
    ) -> tuple[Shares, list[pl.Series]]:
        analytic: Any = self.analytic
        shares = Shares.of(groups, np.repeat(np.arange(len(found.ids)), np.diff(found.offsets)), found.rows)
        if analytic.min_count > 1 or analytic.top is not None:
            sums = np.append(np.uint64(0), np.cumsum(found.counts[shares.order]))[shares.offsets]
            shares = shares.keep(np.diff(sums) >= np.uint64(analytic.min_count), analytic.top)
        fields = [_labels(labels, groups, shares), to_arrow(found.counts[shares.order])]
        documents = from_arrow("documents", lists(shares.offsets, pa.StructArray.from_arrays(fields, ["id", "count"])))
        return shares, [sequence_series(found.words, found.ids[shares.numbers]), labels.typed_counts(documents)]


def label_dtype(id: pl.Expr | None) -> pl.DataTypeExpr:
    """Return the type of the labels in a plan."""
    return INDEX.to_dtype_expr() if id is None else pl.dtype_of(id)


def index_dtype(id: pl.Expr | None) -> pl.DataTypeExpr:
    """Return the type of :class:`InvertedIndex`'s result."""
    documents = label_dtype(id).wrap_in_list()
    return pl.struct_with_fields({"word": pl.String, "documents": documents}).wrap_in_list()


def ranked_dtype(id: pl.Expr | None) -> pl.DataTypeExpr:
    """Return the type of :class:`RankedInvertedIndex`'s result."""
    documents = pl.struct_with_fields({"id": label_dtype(id), "count": pl.UInt64}).wrap_in_list()
    return pl.struct_with_fields({"sequence": pl.List(pl.String), "documents": documents}).wrap_in_list()
