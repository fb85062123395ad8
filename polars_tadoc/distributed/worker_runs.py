"""How calls of workers run: stages of tasks, and the files of their results."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from polars_tadoc.analytics.cleaning.sent_near import NearRequest
from polars_tadoc.analytics.twig_filter import TwigFilterRequest
from polars_tadoc.distributed import near_tasks, passage_tasks, worker_tasks
from polars_tadoc.distributed.file_splits import Files
from polars_tadoc.distributed.passage_tasks import PassageJob, PassageRequest
from polars_tadoc.distributed.pool import Pool, Task
from polars_tadoc.engine.progress import STEPS, bar_of
from polars_tadoc.execute.analytic import Analytic
from polars_tadoc.records.spill_folder import SpillFolder
from polars_tadoc.runtime.process.writer_thread import apart
from polars_tadoc.storage.find import Source

SHARDS = 4
"""Shards per worker: enough that all are busy to the end and that one fits in memory."""


RANGE_RECORDS = 1 << 18
"""Minimum records per file of the result: below, distributing them does not pay off."""


BLOCK_RECORDS = 1 << 16
"""Records per block: at the ends of a range, at most one block of each shard is read without need."""


SOURCE = """Parquet files, packed or of text: a file, a folder, a glob pattern, or a list of these."""


COLUMN = """The column; optional if the files are packed."""


LABELS = """Column whose values label rows; default: row numbers over all files."""


class WorkersBase:
    """Runs the tasks of calls; parts of the interface, by topic, build on it."""

    _pool: Pool
    _folder: SpillFolder
    _room: int

    def __len__(self) -> int:
        return len(self._pool)

    @apart
    def _answer(
        self, analytic: Analytic[Any, Any], source: Source, column: str | None, id: str | None = None
    ) -> pl.LazyFrame:
        self._pool.require_open(analytic.name)
        files = Files.find(source, column, analytic.name)
        files.require_labels(id, analytic.name)
        if isinstance(analytic, TwigFilterRequest):
            analytic = replace(analytic, column=files.column)

        def results(folder: Path) -> list[Path]:
            shards = SHARDS * len(self)
            job = worker_tasks.Job(folder, analytic, files, id, shards, self._room, BLOCK_RECORDS)
            return self._results(job, job.save())

        return self._scan(analytic.name, files.row_count, results)

    @apart
    def _passages(
        self,
        request: PassageRequest | NearRequest,
        source: Source,
        column: str | None,
        schema: Callable[[pl.Schema, pl.DataType | None], pl.Schema],
        id: str | None = None,
    ) -> pl.LazyFrame:
        """Run a call about passages; ``schema`` gives its columns, given those of the files and the labels' type."""
        self._pool.require_open(request.name)
        files = Files.find(source, column, request.name)
        columns = schema(files.schema, files.require_labels(id, request.name))

        def results(folder: Path) -> list[Path]:
            job = PassageJob.of(folder, request, files, id, SHARDS * len(self))
            if not files.pieces:
                return [job.write(0, columns.to_frame())]
            return self._passage_results(job, job.save())

        return self._scan(request.name, files.row_count, results)

    def _passage_results(self, job: PassageJob, path: Path) -> list[Path]:
        """Run a call about passages; return the files of the result in order."""

        def run(function: Callable[..., Any], names: Sequence[object], arguments: Iterable[Any] | None = None) -> Any:
            given = [()] * len(names) if arguments is None else [(one,) for one in arguments]
            tasks = [
                Task(str(name), (path, number, *own))
                for number, (name, own) in enumerate(zip(names, given, strict=True))
            ]
            return self._pool.run(job.request.name, function, tasks)

        pieces, shards = job.files.pieces, [f"shard {shard} of {job.shards}" for shard in range(job.shards)]
        if isinstance(job.request, NearRequest):
            signed = run(near_tasks.sign, pieces)
            joined = run(near_tasks.join, shards, zip(*signed, strict=True))
            (components,) = run(near_tasks.assign, ["components"], [joined])
            sent = run(near_tasks.send, pieces, [components] * len(pieces))
            compared, candidates = zip(*run(near_tasks.compare_rows, shards, zip(*sent, strict=True)), strict=True)
            job.request.require_few(sum(candidates))
            parts = zip(*compared, strict=True)
            return run(near_tasks.finish, pieces, ((components, own) for own in parts))  # type: ignore[no-any-return]
        if job.grams is None:
            return run(passage_tasks.match, pieces)  # type: ignore[no-any-return]
        listed = run(passage_tasks.list_keys, pieces)
        shared = run(passage_tasks.share_keys, shards, zip(*listed, strict=True))
        sent = run(passage_tasks.send_stretches, pieces, [shared] * len(pieces))
        found = run(passage_tasks.find_windows, shards, zip(*sent, strict=True))
        return run(passage_tasks.finish, pieces, zip(*found, strict=True))  # type: ignore[no-any-return]

    def _scan(self, call: str, rows: int, run: Callable[[Path], list[Path]]) -> pl.LazyFrame:
        """Scan the files of a result of some rows, which are made in a folder; removes all others of it."""
        folder = Path(tempfile.mkdtemp(prefix=f"{call}-", dir=self._folder.path))
        results: list[Path] = []
        try:
            with self._folder.writing(), bar_of(rows, call, by=STEPS):
                results = run(folder)
        finally:
            with suppress(FileNotFoundError):  # the workers were closed
                for file in folder.iterdir():
                    if file not in results:
                        file.unlink()
                if not results:
                    folder.rmdir()
        return pl.scan_parquet(results, glob=False)

    def _results(self, job: worker_tasks.Job, path: Path) -> list[Path]:
        """Run an analytic; return the files of the result in order."""
        call, layout = job.analytic.name, job.analytic.layout
        pieces = [Task(str(piece), (path, number)) for number, piece in enumerate(job.files.pieces)]
        if layout.columns[0] == "row" and not layout.documents and pieces:
            return self._pool.run(call, worker_tasks.answer_piece, pieces)
        find = worker_tasks.find_frequencies if layout.documents else worker_tasks.find
        found: list[worker_tasks.Found] = self._pool.run(call, find, pieces, worker_tasks.hand_over)
        shared: dict[int, list[Path]] = {}
        for shard, file in (one for handed_over in found for one in handed_over.files):
            shared.setdefault(shard, []).append(file)
        merging = [
            Task(f"shard {shard} of {job.shards}", (path, shard, sorted(files)))
            for shard, files in sorted(shared.items())
        ]
        blocks = [block for own in self._pool.run(call, worker_tasks.merge_shard, merging) for block in own]
        if layout.documents and pieces:
            totals = sum(one.documents for one in found), sum(one.words for one in found)
            weighing = [Task(piece.name, (*piece.arguments, *totals, blocks)) for piece in pieces]
            return self._pool.run(call, worker_tasks.weigh_piece, weighing)
        records = sum(block.records for block in blocks)
        count = 1 if job.analytic.limits[1] is not None else max(1, min(job.shards, records // RANGE_RECORDS))
        tasks = [
            Task(f"part {number} of {count} of the result", (path, number, *interval))
            for number, interval in enumerate(worker_tasks.ranges(blocks, count))
        ]
        return self._pool.run(call, worker_tasks.order_range, tasks)
