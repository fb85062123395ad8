"""Worker processes on one machine, one per GPU or per share of its cores, that run analytics over files."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

import polars as pl

from polars_tadoc.analytics.bm25_weights import BM25WeightsOnWorkers, BM25WeightsRequest, bm25_weights
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
from polars_tadoc.analytics.cleaning.sent_near import NearRequest
from polars_tadoc.analytics.cooccurrence import CooccurrenceOnWorkers, CooccurrenceRequest, cooccurrence
from polars_tadoc.analytics.inverted_index import InvertedIndexRequest, inverted_index
from polars_tadoc.analytics.ranked_inverted_index import RankedInvertedIndexRequest, ranked_inverted_index
from polars_tadoc.analytics.sequence_count import LengthsRequest, request_of, sequence_count, with_length
from polars_tadoc.analytics.sort import SortRequest, sort
from polars_tadoc.analytics.term_vector import TermVectorRequest, term_vector
from polars_tadoc.analytics.tfidf import TFIDFOnWorkers, TFIDFRequest, tfidf
from polars_tadoc.analytics.twig_filter import TwigFilterOnWorkers, TwigFilterRequest, twig_filter
from polars_tadoc.analytics.word_count import WordCountRequest, word_count
from polars_tadoc.compress.compress import Compression, CompressOnWorkers, compress
from polars_tadoc.config import EngineName, settings
from polars_tadoc.distributed import near_tasks, passage_tasks, worker_tasks
from polars_tadoc.distributed.compressing import compress_piece
from polars_tadoc.distributed.file_splits import Files
from polars_tadoc.distributed.passage_tasks import PassageJob, PassageRequest
from polars_tadoc.distributed.pool import Pool, Task
from polars_tadoc.engine.progress import STEPS, bar_of
from polars_tadoc.engine.visible_devices import device_problem, visible_devices
from polars_tadoc.errors import EngineUnavailableError
from polars_tadoc.execute.analytic import Analytic
from polars_tadoc.packed.scan import scan_packed
from polars_tadoc.records.spill_folder import SpillFolder, parent_folder
from polars_tadoc.runtime.arguments import require_integer, require_path
from polars_tadoc.runtime.documented import documented_by, with_imports
from polars_tadoc.runtime.process.writer_thread import apart
from polars_tadoc.storage.atomic_write import atomic_folder, require_empty
from polars_tadoc.storage.find import Source
from polars_tadoc.traversal.options import (
    CountOnWorkers,
    LengthsOnWorkers,
    RunOnWorkers,
    TopOnWorkers,
    require_memory_limit,
)
from polars_tadoc.twig.twig_set import TwigSet

SHARDS = 4
"""Shards per worker: enough that all are busy to the end and that one fits in memory."""

RANGE_RECORDS = 1 << 18
"""Minimum records per file of the result: below, distributing them does not pay off."""

BLOCK_RECORDS = 1 << 16
"""Records per block: at the ends of a range, at most one block of each shard is read in vain."""

SOURCE = """Parquet files, packed or of text: a file, a folder, a glob pattern, or a list of these."""

COLUMN = """The column; optional if the files are packed."""

LABELS = """Column whose values label rows; default: row numbers over all files."""

SLOTS = 3
"""Concurrent splits of a worker with a GPU: one is on the device, others are read, merged or written."""

MAX_WORKERS = 1024
"""Processes on one machine."""


@with_imports
class Workers:
    """Worker processes on this machine that compress and analyse Parquet files together.

    Each worker has a GPU or some of the cores. The input is divided into splits, a row group of packed rows or about
    128 MiB of text each, and each idle worker takes the next one. Partial results are sharded by word, so that merging
    and sorting them are distributed, too. Results equal those of one process, in the same order. If a worker is killed
    or runs out of memory, another one repeats its work.

    Workers copy the settings (``tadoc.Config``) at their start. Those with a GPU use it if the work repays the
    transfer, as with ``engine="auto"``, or always with ``Config(engine="gpu")``.

    Text in unpacked columns is tokenized as by default in ``compress``; if several calls read the same files, compress
    them first. Results are temporary files (``tadoc.Config(spill_folder=…)``), which are removed when the workers are
    closed: collect or sink them before.

    Parameters
    ----------
    gpus
        Number of workers with a GPU each, or "all" for one per visible GPU (``CUDA_VISIBLE_DEVICES``).
    cpus
        Number of workers without a GPU. Give either this or ``gpus``.
    threads
        CPU threads per worker; by default the worker's share of the cores.
    memory_limit
        Bytes, or a number with a unit ("2GB"), of partial results that each worker holds before it writes them to disk;
        by default a quarter of its share of the memory. In addition, a worker must hold one partition with its partial
        result; then a shard (1 / (4 x workers) of all partial results) about three times over; for an index with
        labels, all labels. If that is too much, make smaller partitions, or use ``tadoc.scan_packed`` with
        ``memory_limit=``, where no part of a result must fit.

    Raises
    ------
    EngineUnavailableError
        There are too few GPUs, or one cannot be used.
    TypeError, ValueError
        Neither or both of ``gpus`` and ``cpus`` are given, or an argument is out of range.
    WorkerLostError
        A worker could not be started.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder, tadoc.distributed.Workers(cpus=2) as workers:
    ...     (Path(folder) / "days").mkdir()
    ...     for day, text in enumerate(["to be or not to be", "to do is to be"]):
    ...         pl.DataFrame({"text": [text]}).write_parquet(Path(folder) / f"days/{day}.parquet")
    ...     packed = workers.compress(Path(folder) / "days", "text", Path(folder) / "packed")
    ...     packed.tadoc.decompress().collect().rows()
    ...     workers.word_count(Path(folder) / "packed", top=2).collect().rows()
    [('to be or not to be',), ('to do is to be',)]
    [('to', 4), ('be', 3)]

    """

    def __init__(
        self,
        *,
        gpus: int | str | None = None,
        cpus: int | None = None,
        threads: int | None = None,
        memory_limit: int | str | None = None,
    ) -> None:
        if (gpus is None) == (cpus is None):
            raise ValueError('Workers: give either gpus=2 (or gpus="all") or cpus=2')
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if gpus is None:
            devices = [""] * require_integer("cpus", cpus, 1, MAX_WORKERS)
            share = max(1, cores // len(devices))
        else:
            seen = visible_devices()
            count = len(seen) if gpus == "all" else require_integer("gpus", gpus, 1, MAX_WORKERS)
            if count > len(seen) or not seen:
                why = "" if seen else f": {device_problem()}"
                raise EngineUnavailableError(f"Workers: gpus={gpus!r}: {len(seen)} GPUs are visible{why}")
            devices, share = seen[:count], max(1, cores // len(seen))
        threads = share if threads is None else require_integer("threads", threads, 1, MAX_WORKERS)
        limit = require_memory_limit(memory_limit)
        self._room = _memory() // (4 * len(devices)) if limit is None else limit
        engine: EngineName = "cpu" if gpus is None else "gpu" if settings().engine == "gpu" else "auto"
        given = replace(settings(), threads=threads, engine=engine)
        environments = {
            f"worker {place}": {"CUDA_VISIBLE_DEVICES": device, "POLARS_MAX_THREADS": str(threads)}
            for place, device in enumerate(devices)
        }
        folder = SpillFolder("Workers", parent_folder())
        folder.path  # noqa: B018 - made now: an unusable folder raises before processes start
        self._pool = Pool(environments, given, 1 if gpus is None else SLOTS)
        self._folder = folder
        weakref.finalize(self, self._pool.abandon).atexit = False  # at exit they end with this process

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._pool)

    @apart
    def close(self) -> None:
        """End the processes and remove their files; results that were not collected are lost."""
        self._pool.close()
        self._folder.close()

    @documented_by(
        compress,
        source="Parquet files of text: a file, a folder, a glob pattern, or a list of these.",
        column="The String column; all other columns are kept.",
        target="The folder, which must not exist or be empty.",
    )
    @apart
    def compress(
        self, source: Source, column: str, target: str | os.PathLike[str], **options: Unpack[CompressOnWorkers]
    ) -> pl.LazyFrame:
        """Compress a column of Parquet files into a folder of packed files.

        File names follow the order of the rows, and the files do not depend on the number of workers. The folder
        appears only when it is complete.

        Returns
        -------
        LazyFrame
            ``tadoc.scan_packed(target)``.

        Raises
        ------
        FileNotFoundError
            The parent folder of ``target`` does not exist.
        FileExistsError
            ``target`` contains files.

        """
        Compression.from_arguments(**options)
        self._pool.require_open("compress")
        files = Files.find(source, column, "compress")
        target = Path(os.path.realpath(require_path("target", target, "compress")))
        if not target.parent.is_dir():
            raise FileNotFoundError(f"compress: folder {target.parent} does not exist; create it first")
        require_empty(target, "compress")
        with atomic_folder(target, "compress", lambda old: require_empty(old, "compress")) as folder:
            tasks = [
                Task(str(piece), (folder, number, files.of(piece), piece, options))
                for number, piece in enumerate(files.pieces or [files.nothing])
            ]
            with bar_of(files.row_count, "compress", by=STEPS):
                self._pool.run("compress", compress_piece, tasks)
        return scan_packed(target)

    @documented_by(word_count, source=SOURCE, column=COLUMN)
    def word_count(self, source: Source, column: str | None = None, **options: Unpack[TopOnWorkers]) -> pl.LazyFrame:
        """Count words.

        Returns
        -------
        LazyFrame
            ``word: String, count: UInt64``, by descending count, then word in code point order.

        """
        return self._answer(WordCountRequest.from_arguments(**options), source, column)

    @documented_by(sort, source=SOURCE, column=COLUMN)
    def sort(self, source: Source, column: str | None = None, **options: Unpack[CountOnWorkers]) -> pl.LazyFrame:
        """List words in code point order.

        Returns
        -------
        LazyFrame
            ``word: String, count: UInt64``, by word in code point order.

        """
        return self._answer(SortRequest.from_arguments(**options), source, column)

    @documented_by(inverted_index, source=SOURCE, column=COLUMN, id=LABELS)
    def inverted_index(
        self, source: Source, column: str | None = None, *, id: str | None = None, **options: Unpack[CountOnWorkers]
    ) -> pl.LazyFrame:
        """List the rows that contain each word.

        Returns
        -------
        LazyFrame
            ``word: String, documents: List(id)``, by word in code point order; documents ascending.

        """
        return self._answer(InvertedIndexRequest.from_arguments(**options), source, column, id)

    @documented_by(term_vector, source=SOURCE, column=COLUMN, id=LABELS)
    def term_vector(
        self, source: Source, column: str | None = None, *, id: str | None = None, **options: Unpack[TopOnWorkers]
    ) -> pl.LazyFrame:
        """Count the words of each row.

        Returns
        -------
        LazyFrame
            ``id, word: String, count: UInt64``, in row order, each row's words by descending count, then word.

        """
        return self._answer(TermVectorRequest.from_arguments(**options), source, column, id)

    @documented_by(sequence_count, source=SOURCE, column=COLUMN)
    def sequence_count(
        self, source: Source, column: str | None = None, **options: Unpack[LengthsOnWorkers]
    ) -> pl.LazyFrame:
        """Count the sequences of n words; each of several lengths by itself.

        Returns
        -------
        LazyFrame
            ``sequence: List(String), count: UInt64``, by descending count, then in code point order; with several
            lengths after a column ``n: UInt32``, in the order of ``n``.

        """
        request = request_of(**options)
        if not isinstance(request, LengthsRequest):
            return self._answer(request, source, column)
        return pl.concat([with_length(one.n, self._answer(one, source, column)) for one in request.each])

    @documented_by(ranked_inverted_index, source=SOURCE, column=COLUMN, id=LABELS)
    def ranked_inverted_index(
        self, source: Source, column: str | None = None, *, id: str | None = None, **options: Unpack[RunOnWorkers]
    ) -> pl.LazyFrame:
        """List the rows that contain each sequence of n words, by descending count.

        Returns
        -------
        LazyFrame
            ``sequence: List(String), documents: List(Struct{id, count: UInt64})``; by words in code point order,
            documents by descending count, then in row order.

        """
        return self._answer(RankedInvertedIndexRequest.from_arguments(**options), source, column, id)

    @documented_by(cooccurrence, source=SOURCE, column=COLUMN)
    def cooccurrence(
        self, source: Source, column: str | None = None, **options: Unpack[CooccurrenceOnWorkers]
    ) -> pl.LazyFrame:
        """Count the pairs of words within a window.

        Returns
        -------
        LazyFrame
            ``word: String, other: String, count: UInt64``, by descending count, then in code point order.

        """
        return self._answer(CooccurrenceRequest.from_arguments(**options), source, column)

    @documented_by(bm25_weights, source=SOURCE, column=COLUMN, id=LABELS)
    def bm25_weights(
        self,
        source: Source,
        column: str | None = None,
        *,
        id: str | None = None,
        **options: Unpack[BM25WeightsOnWorkers],
    ) -> pl.LazyFrame:
        """Weigh each row's words by BM25.

        Returns
        -------
        LazyFrame
            ``id, word: String, weight: Float64``, in row order, words in the order of
            :func:`polars_tadoc.bm25_weights`.

        """
        return self._answer(BM25WeightsRequest.from_arguments(**options), source, column, id)

    @documented_by(tfidf, source=SOURCE, column=COLUMN, id=LABELS)
    def tfidf(
        self, source: Source, column: str | None = None, *, id: str | None = None, **options: Unpack[TFIDFOnWorkers]
    ) -> pl.LazyFrame:
        """Weigh each row's words by TF-IDF.

        Returns
        -------
        LazyFrame
            ``id, word: String, weight: Float64``, in row order, words in the order of :func:`polars_tadoc.tfidf`.

        """
        return self._answer(TFIDFRequest.from_arguments(**options), source, column, id)

    @documented_by(twig_filter, source=SOURCE, column=COLUMN, id=LABELS)
    def twig_filter(
        self,
        source: Source,
        column: str | None = None,
        queries: Mapping[str, str] | TwigSet | None = None,
        *,
        id: str | None = None,
        **options: Unpack[TwigFilterOnWorkers],
    ) -> pl.LazyFrame:
        """Find the XPath queries that each row's XML document matches.

        Returns
        -------
        LazyFrame
            ``id, query: String``, in row order, each row's queries in the order of the set.

        """
        request = TwigFilterRequest.of_frame(column, queries, **options)
        return self._answer(request, source, column, id)

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


def _memory() -> int:
    """Return the bytes of memory of this machine."""
    if not hasattr(os, "sysconf"):
        return 8 << 30
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
