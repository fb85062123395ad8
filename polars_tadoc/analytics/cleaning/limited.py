"""Passages in plans under a memory limit."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from polars_tadoc.analytics.cleaning.drop_repeats import Cuts, DropRepeatsRequest
from polars_tadoc.analytics.cleaning.hits import PARTS
from polars_tadoc.analytics.cleaning.kept_words import parts_of
from polars_tadoc.analytics.cleaning.overlap import OverlapRequest
from polars_tadoc.analytics.cleaning.passages import Passages, PassageSearch
from polars_tadoc.analytics.cleaning.repeats import RepeatsRequest
from polars_tadoc.engine.progress import bar_of, counted
from polars_tadoc.execute.labels import KeptLabels
from polars_tadoc.execute.plan import add_source, checkpointed_question
from polars_tadoc.execute.windows import Window, windows_of
from polars_tadoc.records import Checkpoint
from polars_tadoc.records.labelled_results import Labels
from polars_tadoc.runtime.array_types import Int64
from polars_tadoc.runtime.io_source import batches

READ = "rows read"
"""The unit of a call's progress bar; ``drop_repeats`` reads its rows twice."""


@dataclass(frozen=True, eq=False)
class LimitedPlan:
    """A column of a plan that is read under a memory limit."""

    plan: pl.LazyFrame
    column: str
    labels: str | None
    limit: int
    checkpoint: Path | None = None

    def node(
        self, request: object, call: str, schema: pl.Schema, frames: Callable[[], Iterator[pl.DataFrame]]
    ) -> pl.LazyFrame:
        """Return the plan of a result.

        Raises
        ------
        ValueError
            There is a checkpoint, and the plan does more than select documents of a packed scan, or the scan skips
            unreadable partitions.

        """
        if self.checkpoint is not None:
            checkpointed_question(self.plan, self.column, self._others, call)
        key = (id(self.plan), request, self.column, self.labels, self.limit, self.checkpoint)

        def shown() -> Iterator[pl.DataFrame]:
            with bar_of(None, call):
                yield from frames()

        return add_source(key, shown, self.limit, call, schema)

    @property
    def _others(self) -> list[str]:
        return [] if self.labels is None else [self.labels]

    def windows(self) -> Iterator[Window]:
        """Yield the rows in parts whose words fit."""
        found = windows_of(self.plan, self.column, self._others, self.limit)
        for window in counted(found, READ, lambda window: window.height, are_read=True):
            yield from parts_of(window, self.limit)

    def passages(self, search: PassageSearch, kept: KeptLabels) -> Iterator[Passages]:
        """Yield the passages of all rows, block by block; keeps the labels of rows."""
        opened = None
        if self.checkpoint is not None:
            asked = {**search.asked, **checkpointed_question(self.plan, self.column, self._others, search.call).asked}
            opened = Checkpoint(self.checkpoint, asked, search.call, PARTS)

        def read() -> Iterator[Window]:
            for window in self.windows():
                kept.keep(window.frame)
                yield window

        return search.stream(read(), self.limit, opened)


def repeats(request: RepeatsRequest, plan: LimitedPlan, schema: pl.Schema) -> pl.LazyFrame:
    """Return the plan of :meth:`polars_tadoc.namespaces.lazyframe.TadocLazyFrame.repeats`."""

    def frames() -> Iterator[pl.DataFrame]:
        search = PassageSearch.of(request)
        with KeptLabels(plan.labels, request.name, plan.limit) as kept:
            for found in plan.passages(search, kept):
                yield found.frame(kept.all())

    return plan.node(request, request.name, schema, frames)


def overlap(request: OverlapRequest, plan: LimitedPlan, schema: pl.Schema) -> pl.LazyFrame:
    """Return the plan of :meth:`polars_tadoc.namespaces.lazyframe.TadocLazyFrame.overlap`."""

    def frames() -> Iterator[pl.DataFrame]:
        for window in plan.windows():
            labels = Labels(None) if plan.labels is None else Labels(window.frame[plan.labels], window.first)
            yield request.frame_of(window, plan.column, labels)

    return plan.node(request, "overlap", schema, frames)


def drop_repeats(request: DropRepeatsRequest, plan: LimitedPlan, schema: pl.Schema) -> pl.LazyFrame:
    """Return the plan of :meth:`polars_tadoc.namespaces.lazyframe.TadocLazyFrame.drop_repeats`, read twice."""

    def frames() -> Iterator[pl.DataFrame]:
        search = PassageSearch.of(request)
        with (
            KeptLabels(None, search.call, plan.limit) as kept,
            closing(_Dropped(plan.passages(search, kept))) as dropped,
        ):
            yield schema.to_frame()
            for frame in counted(batches(plan.plan), READ, lambda frame: frame.height, are_read=True):
                cuts, are_kept = dropped.next(frame.height, request.share)
                yield request.without(frame, plan.column, cuts, are_kept)
            dropped.require_end()

    request.require_shortable(schema[plan.column], plan.column)
    return plan.node(request, "drop_repeats", schema, frames)


class _Dropped:
    """The passages to drop from rows that are read again, in order."""

    def __init__(self, found: Iterator[Passages]) -> None:
        self._found = found
        self._row = self._known = 0
        self._waiting: list[Passages] = []

    def next(self, rows: int, share: float) -> tuple[Cuts, pl.Series]:
        """Return the intervals of words of the next rows, and which of them have less than a share in such."""
        first, self._row = self._row, self._row + rows
        while self._known < self._row:
            one = next(self._found, None)
            if one is None:
                raise _changed(self._known)
            self._waiting.append(one)
            self._known = one.stop
        found, are_kept = list[Int64](), np.ones(rows, np.bool_)
        for one in self._waiting:
            inside = (one.rows >= first) & (one.rows < self._row)
            found.append(np.stack([one.rows[inside] - first, one.begins[inside], one.ends[inside]]))
            goes = one.shares >= share
            a, b = max(first, one.first), min(self._row, one.stop)
            are_kept[a - first : b - first] = ~goes[a - one.first : b - one.first]
        self._waiting = [one for one in self._waiting if one.stop > self._row]
        return Cuts(*np.concatenate([np.zeros((3, 0), np.int64), *found], axis=1)), pl.Series(are_kept)

    def require_end(self) -> None:
        """Raise ``ValueError`` if the plan had more rows when it ran first."""
        rest = sum(len(one.words) for one in self._found)
        if self._known + rest > self._row:
            raise _changed(self._known + rest)

    def close(self) -> None:
        """Remove temporary files."""
        if isinstance(self._found, Generator):
            self._found.close()


def _changed(rows: int) -> ValueError:
    return ValueError(
        f"drop_repeats: the plan had {rows:,} rows when it ran first, and another number when it ran again; write its "
        "rows to a file first, and scan that"
    )
