"""Collects records, in memory or in sorted runs on disk, and yields them merged."""

from __future__ import annotations

import time
from collections.abc import Iterator, Set
from contextlib import AbstractContextManager, closing, contextmanager

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
"""Maximum share of the room for records merged in memory; merging takes three times as much."""

FRESH_SHARE = 4
"""Pending records are merged when they take this share of the room: few merges, each of many records."""

ORDER_SHARE = 4
"""Maximum share of the room for sorting records by count."""

BATCH = 1 << 20
"""Records per yielded batch."""

CHECKPOINT_SECONDS = 60.0
"""Seconds between writes to a checkpoint, which bound the work that can be lost."""


class Spill:
    """Any number of records, merged in bounded memory.

    Parameters
    ----------
    layout
        Layout of the records.
    room
        Maximum bytes in memory.
    call
        Prefix of messages.
    checkpoint
        Where runs are kept; None: a temporary folder that is removed at the end. Small results never touch the disk.

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
        """Whether all added records belong to finished partitions."""
        self._is_committed = True
        self._committed_at = time.monotonic()
        if checkpoint is not None:
            self._runs = [self._run(name) for name in checkpoint.runs]
            self._number = max((int(name[len(RUN) :]) for name in checkpoint.runs), default=0)

    @property
    def covered(self) -> Set[int]:
        """Partitions whose records are in the checkpoint and need not be read."""
        return frozenset() if self._checkpoint is None else self._checkpoint.covered

    def add(self, records: Records) -> None:
        """Add sorted records.

        Raises
        ------
        DiskFullError
            They do not fit in memory, and the disk is full.

        """
        self._is_between = False
        self._fresh.append(records)
        self._fresh_bytes += records.nbytes
        most = self._room // GATHERED_SHARE
        if self._fresh_bytes >= most // FRESH_SHARE:
            self._gather()
            # with a checkpoint preferably between partitions, so that a run has whole partitions
            if self._nbytes > (most if self._checkpoint is None else most + most // FRESH_SHARE):
                self._write()

    def finish(self, *partitions: int) -> None:
        """Mark partitions as finished: all their records were added. Only used by checkpoints.

        All added records must belong to finished partitions; partitions whose records arrive merged finish together.

        Raises
        ------
        DiskFullError
            The disk is full.

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
        """Guard changes in memory: no checkpoint stores what an error or Ctrl-C left half done."""
        is_between, self._is_between = self._is_between, False
        yield
        self._is_between = is_between  # skipped after an error

    def _gather(self) -> None:
        """Merge pending records."""
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
        """Write the merged records as a run."""
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
        """Write the merged records, and report the partitions of the runs to the checkpoint."""
        assert self._checkpoint is not None
        self._write()
        self._checkpoint.commit([run.stem.name for run in self._runs], self._finished)
        self._finished = []
        self._is_committed, self._committed_at = True, time.monotonic()

    def merged(self, min_count: int = 1, top: int | None = None, batch: int = BATCH) -> Iterator[Records]:
        """Yield all records, each key once.

        Parameters
        ----------
        min_count
            Minimum count of a record, if each record is a row of the result.
        top
            Maximum number of records, if they are sorted by count.
        batch
            Approximate records per batch.

        Yields
        ------
        Records
            With ``Layout.by_count``: by descending count, then by key. Otherwise by key; records that agree in the
            ``Layout.group`` columns are in one batch, and with ``Layout.documents`` each batch has the rows of its
            range. ``words`` is the same array in all batches if all words fit in memory, otherwise the words of the
            batch.

        Raises
        ------
        DiskFullError
            Merging needs more disk space.
        LimitExceededError
            One row of the result does not fit in memory, or there are more words than 32 bits can number.
        InvalidRecordsError
            A file of the checkpoint is damaged.

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
                    yield Records(words.strings, numbers, counts[first : first + batch], shared=words)
            return
        rows = Rows(found.rows()) if self._layout.documents else None
        mask = found.form.first_limb_mask(self._layout.group)
        for keys, totals, below in cut(ranges, mask, batch):
            words, numbers = found.unpack(keys)
            if rows is not None:
                row = None if below is None else int(below) >> found.form.shift[0]
                yield Records(words.strings, numbers, totals, *rows.take(row), shared=words)
            elif len(numbers):
                yield Records(words.strings, numbers, totals, shared=words)

    def _reduce(self) -> None:
        """Merge runs until few enough remain to be read together."""
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

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        try:
            # also save the records in memory, if they can be written
            if kind is not None and not issubclass(kind, OSError) and self._checkpoint is not None and self._is_between:
                self._commit()
        finally:
            self.close()


def _frequent(one: Range, min_count: int) -> Range:
    assert one.counts is not None
    kept = one.counts >= np.uint64(min_count)
    return Range(one.keys[:, kept], one.counts[kept], one.below)
