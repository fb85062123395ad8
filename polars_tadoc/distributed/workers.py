"""Worker processes on one machine, one per GPU or per share of its cores, that run analytics over files."""

from __future__ import annotations

import os
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Unpack

import polars as pl

from polars_tadoc.compress.compress import Compression, CompressOnWorkers, compress
from polars_tadoc.config import EngineName, settings
from polars_tadoc.distributed.compressing import compress_piece
from polars_tadoc.distributed.file_splits import Files
from polars_tadoc.distributed.pool import Pool, Task
from polars_tadoc.distributed.worker_cleaning import WorkersCleaning
from polars_tadoc.distributed.worker_counting import WorkersCounting
from polars_tadoc.engine.progress import STEPS, bar_of
from polars_tadoc.engine.visible_devices import device_problem, visible_devices
from polars_tadoc.errors import EngineUnavailableError
from polars_tadoc.packed.scan import scan_packed
from polars_tadoc.records.spill_folder import SpillFolder, parent_folder
from polars_tadoc.runtime.arguments import require_integer, require_path
from polars_tadoc.runtime.documented import documented_by, with_imports
from polars_tadoc.runtime.process.writer_thread import apart
from polars_tadoc.storage.atomic_write import atomic_folder, require_empty
from polars_tadoc.storage.find import Source
from polars_tadoc.traversal.options import (
    require_memory_limit,
)

SLOTS = 3
"""Concurrent splits of a worker with a GPU: one is on the device, others are read, merged or written."""

MAX_WORKERS = 1024
"""Processes on one machine."""


@with_imports
class Workers(WorkersCounting, WorkersCleaning):
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


def _memory() -> int:
    """Return the bytes of memory of this machine."""
    if not hasattr(os, "sysconf"):
        return 8 << 30
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
