"""Gathers records, in memory while they fit and else in sorted runs on disk, and gives them merged."""

from __future__ import annotations

import time
from collections.abc import Iterator, Set
from contextlib import AbstractContextManager, closing, contextmanager
from types import TracebackType

import numpy as np

from polars_tadoc.records.batches import Rows, cut
from polars_tadoc.records.checkpoint import RUN, Checkpoint
from polars_tadoc.records.count_order import ByCount
from polars_tadoc.records.key_ranges import Range
from polars_tadoc.records.packed_records import Packed, merge
from polars_tadoc.records.records import Layout, Records
from polars_tadoc.records.run_merge import MAX_RUNS, InMemory, Merging, Run, merge_runs
from polars_tadoc.records.spill_folder import SpillFolder
from polars_tadoc.runtime.free_memory import give_back_memory

GATHERED_SHARE = 4
"""Records that were merged in memory take at most such a share of the room; merging them takes three times as much."""

FRESH_SHARE = 4
"""Records wait for merging until they take such a share of what may be gathered: few merges, each of much."""

ORDER_SHARE = 4
"""Records to be put in the order of counts take at most such a share of the room."""

BATCH = 1 << 20
"""Records that are given at a time."""

CHECKPOINT_SECONDS = 60.0
"""What was found since is written to a checkpoint after so long, so that no more is lost."""


class Spill:
    """Records of any size, merged in bounded memory.

    Parameters
    ----------
    layout
        What the records mean.
    room
        Bytes that may be held in memory.
    call
        What messages begin with.
    checkpoint
        Where runs are kept; None: in a temporary folder, removed in the end. Small results never touch the disk.

    """

    def __init__(self, layout: Layout, room: int, call: str = "spill", checkpoint: Checkpoint | None = None) -> None:
        self._layout, self._room, self._call, self._checkpoint = layout, room, call, checkpoint
        self._folder = SpillFolder(call, None if checkpoint is None else checkpoint.path)
        self._gathered: Packed | None = None
        self._fresh: list[Records] = []
        self._fresh_bytes = 0
        self._runs: list[Run] = []
        self._number = 0
        self._finished: list[int] = []
        self._is_between = True
        """Whether all that was added is of finished partitions."""
        self._is_committed = True
        self._committed_at = time.monotonic()
        if checkpoint is not None:
            self._runs = [self._run(name) for name in checkpoint.runs]
            self._number = max((int(name[len(RUN) :]) for name in checkpoint.runs), default=0)

    @property
    def covered(self) -> Set[int]:
        """Partitions that need not be read: the checkpoint has what they hold."""
        return frozenset() if self._checkpoint is None else self._checkpoint.covered

    def add(self, records: Records) -> None:
        """Take sorted records.

        Raises
        ------
        DiskFullError
            They do not fit in memory, and no more can be written.

        """
        self._is_between = False
        self._fresh.append(records)
        self._fresh_bytes += records.nbytes
        most = self._room // GATHERED_SHARE
        if self._fresh_bytes >= most // FRESH_SHARE:
            self._gather()
            # with a checkpoint rather between two partitions than within one, so that a run holds whole ones
            if self._nbytes > (most if self._checkpoint is None else most + most // FRESH_SHARE):
                self._write()

    def finish(self, *partitions: int) -> None:
        """Say that all records of partitions were added; only a checkpoint wants to know.

        What was added is then of finished partitions and nothing else: those whose records come merged finish at once.

        Raises
        ------
        DiskFullError
            No more can be written.

        """
        self._finished += partitions
        self._is_between = True
        if self._checkpoint is None:
            return
        is_late = time.monotonic() - self._committed_at >= CHECKPOINT_SECONDS
        if not self._is_committed or is_late or self._nbytes > self._room // GATHERED_SHARE:
            self._commit()

    @property
    def _nbytes(self) -> int:
        return self._fresh_bytes + (0 if self._gathered is None else self._gathered.nbytes)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Change what is in memory: no checkpoint gets what an error, or Ctrl-C, leaves half done."""
        is_between, self._is_between = self._is_between, False
        yield
        self._is_between = is_between  # not after an error

    def _gather(self) -> None:
        """Merge what was added since."""
        if self._fresh:
            parts: list[Records | Packed] = [*self._fresh]
            if self._gathered is not None:
                parts.insert(0, self._gathered)
            with self._changing():
                self._gathered = merge(self._layout, parts)
                self._fresh, self._fresh_bytes = [], 0

    def _run(self, name: str) -> Run:
        folder = self._folder.path if self._checkpoint is None else self._checkpoint.path
        return Run(folder / name, self._layout, self._room)

    def _next_run(self) -> Run:
        self._number += 1
        return self._run(f"{RUN}{self._number:06}")

    def _writing(self) -> AbstractContextManager[None]:
        return self._folder.writing() if self._checkpoint is None else self._checkpoint.writing()

    def _write(self) -> None:
        """Make a run of what was gathered."""
        self._gather()
        packed = self._gathered
        if packed is None:
            return
        run = self._next_run()
        with self._writing():
            run.write(packed)
        with self._changing():
            self._runs.append(run)
            self._gathered = None
            self._is_committed = False
        give_back_memory(self._room // GATHERED_SHARE)

    def _commit(self) -> None:
        """Write what was gathered, and tell the checkpoint which partitions its runs hold."""
        assert self._checkpoint is not None
        self._write()
        self._checkpoint.commit([run.stem.name for run in self._runs], self._finished)
        self._finished = []
        self._is_committed, self._committed_at = True, time.monotonic()

    def merged(self, min_count: int = 1, top: int | None = None, batch: int = BATCH) -> Iterator[Records]:
        """Give all records, each key once.

        Parameters
        ----------
        min_count
            Leave out records counted less often, where each makes a row of the result.
        top
            At most so many, where they come by count.
        batch
            About so many at a time.

        Yields
        ------
        Records
            Where ``Layout.by_count``: by count falling, equal ones in key order. Else in key order, and records that
            agree in ``Layout.group`` columns in one batch; with ``Layout.documents`` each batch has the rows of its
            stretch. ``words`` is one array for all batches where all words fit in memory, and else those that occur.

        Raises
        ------
        DiskFullError
            Merging needs more room on disk.
        LimitExceededError
            One row of the result does not fit in memory, or there are more words than 32 bits number.
        InvalidRecordsError
            Files of a checkpoint are damaged.

        """
        if self._checkpoint is not None:
            assert self._is_between, "a partition was not finished"
            self._commit()
        if self._runs:
            self._write()
            self._reduce()
        self._gather()
        if self._runs:
            with closing(Merging(self._layout, self._runs, self._room, self._folder, self._call)) as merging:
                yield from self._batches(merging, min_count, top, batch)
        elif self._gathered is not None:
            yield from self._batches(InMemory(self._layout, self._gathered), min_count, top, batch)

    def _batches(self, found: InMemory | Merging, min_count: int, top: int | None, batch: int) -> Iterator[Records]:
        ranges = found.ranges()
        if self._layout.group == len(self._layout.columns) and min_count > 1:
            ranges = (_frequent(one, min_count) for one in ranges)
        if self._layout.by_count:
            order = ByCount(found.form, top, self._room // ORDER_SHARE, self._folder)
            for one in ranges:
                assert one.counts is not None
                order.add(one.keys, one.counts)
            for keys, counts in order.read(batch):
                for first in range(0, len(counts), batch):
                    words, numbers = found.unpack(keys[:, first : first + batch])
                    yield Records(words, numbers, counts[first : first + batch])
            return
        rows = Rows(found.rows()) if self._layout.documents else None
        mask = found.form.first_limb_mask(self._layout.group)
        for keys, totals, below in cut(ranges, mask, batch):
            words, numbers = found.unpack(keys)
            if rows is not None:
                row = None if below is None else int(below) >> found.form.shift[0]
                yield Records(words, numbers, totals, *rows.take(row))
            elif len(numbers):
                yield Records(words, numbers, totals)

    def _reduce(self) -> None:
        """Merge runs with others until few enough are left to be read at once."""
        while len(self._runs) > MAX_RUNS:
            run, old = self._next_run(), self._runs[:MAX_RUNS]
            with self._writing():
                merge_runs(self._layout, old, run, self._room, self._folder, self._call)
            self._runs = [*self._runs[MAX_RUNS:], run]
            if self._checkpoint is not None:
                self._checkpoint.commit([one.stem.name for one in self._runs])
            for one in old:
                one.remove()

    def close(self) -> None:
        """Remove temporary files; a checkpoint stays."""
        self._folder.close()
        if self._checkpoint is not None:
            self._checkpoint.close()

    def __enter__(self) -> Spill:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            # what is in memory, too, need not be found again, unless it cannot be written
            if kind is not None and not issubclass(kind, OSError) and self._checkpoint is not None and self._is_between:
                self._commit()
        finally:
            self.close()


def _frequent(one: Range, min_count: int) -> Range:
    assert one.counts is not None
    kept = one.counts >= np.uint64(min_count)
    return Range(one.keys[:, kept], one.counts[kept], one.below)
