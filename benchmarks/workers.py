"""Several workers against one: ``python -m benchmarks.workers FOLDER --gpus 1 2 4``, or ``--cpus 1 2``.

FOLDER holds what ``python -m benchmarks.near_copies FOLDER`` wrote. Its text is compressed to packed files, of which
words and trigrams are counted; the whole results are written, too. Workers are started and have answered each call over
a part of the text before: what that takes is told apart. Each worker has the same number of CPU threads, however many
there are. The results of all runs are compared, row by row and in their order, by a hash.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq

from benchmarks import corpora
from polars_tadoc.distributed import Workers
from polars_tadoc.distributed import workers as workers_module

CALLS: dict[str, dict[str, Any]] = {"word_count": {}, "sequence_count": {"n": 3}}
WARM_BYTES = {"gpus": 1 << 26, "cpus": 1 << 20}
"""Text of each file of the first calls: enough for a GPU to be used, and two such files are a piece."""


@contextmanager
def timed(times: dict[str, float], what: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    times[what] = times.get(what, 0.0) + time.perf_counter() - start


def text_bytes(paths: list[Path]) -> int:
    """Bytes of the text of files."""
    return int(pl.scan_parquet(paths).select(pl.col("text").str.len_bytes().cast(pl.Int64).sum()).collect().item())


def make_sample(path: Path, folder: Path, count: int, size: int) -> list[Path]:
    """Write a part of a file so often that each worker gets some."""
    rows = pq.ParquetFile(path).metadata.num_rows
    frame = pl.scan_parquet(path).head(max(1, int(rows * size / text_bytes([path])))).collect()
    for number in range(count):
        frame.write_parquet(folder / f"{number}.parquet", compression="lz4")
    return sorted(folder.iterdir())


def digest(result: pl.LazyFrame) -> tuple[int, int]:
    """Rows, and a hash of them and their order."""
    name = result.collect_schema().names()[0]
    key = pl.col(name) if name == "word" else pl.col(name).list.join(" ")
    hashes = (key.hash(1) ^ pl.col("count").hash(2)) + pl.col("row").hash(3)
    found = result.with_row_index("row").select(pl.len(), hashes.sum().alias("hash"))
    return found.collect(engine="streaming").row(0)


def run(workers: Workers, paths: list[Path], folder: Path) -> tuple[dict[str, float], dict[str, tuple[int, int]]]:
    """Compress, count words, count trigrams; returns seconds and what results were."""
    times: dict[str, float] = {}
    with timed(times, "compress"):
        workers.compress(paths, "text", folder / "packed")
    found = {}
    for call, arguments in CALLS.items():
        with timed(times, call):
            result = getattr(workers, call)(folder / "packed", **arguments)
        found[call] = digest(result)
    times["all"] = sum(times.values())
    return times, found


def main() -> None:
    """Print seconds for each number of workers, and how many times as fast that is as the fewest."""
    parser = argparse.ArgumentParser(description="several workers against one")
    parser.add_argument("folder", type=Path)
    kinds = parser.add_mutually_exclusive_group(required=True)
    kinds.add_argument("--gpus", type=int, nargs="+")
    kinds.add_argument("--cpus", type=int, nargs="+")
    parser.add_argument("--threads", type=int, help="of each worker; by default its share of the cores at the most")
    parser.add_argument("--memory-limit", help="of each worker, for what it has found")
    parser.add_argument("--slots", type=int, help="pieces that a worker is at, at the same time")
    parser.add_argument("--files", type=int, help="only so many")
    given = parser.parse_args()
    if given.slots:
        workers_module.SLOTS = given.slots
    paths = sorted(given.folder.glob("part-*.parquet"))[: given.files]
    kind, counts = ("gpus", given.gpus) if given.gpus else ("cpus", given.cpus)
    threads = given.threads or max(1, len(os.sched_getaffinity(0)) // max(counts))
    size = text_bytes(paths)
    print(corpora.machine())
    print(f"{len(paths)} files, {size / 1e9:.2f} GB of text; {threads} CPU threads for each worker", flush=True)
    runs: dict[int, dict[str, float]] = {}
    known: dict[str, tuple[int, int]] = {}
    for count in counts:
        with tempfile.TemporaryDirectory(dir=given.folder) as name:
            folder = Path(name)
            times: dict[str, float] = {}
            (folder / "sample").mkdir()
            sample = make_sample(paths[0], folder / "sample", 4 * count, WARM_BYTES[kind])
            with timed(times, "start"):
                workers = Workers(**{kind: count}, threads=threads, memory_limit=given.memory_limit)
            with workers:
                (folder / "first").mkdir()
                with timed(times, "first calls"):
                    run(workers, sample, folder / "first")
                runs[count], found = run(workers, paths, folder)
            packed = sum(file.stat().st_size for file in (folder / "packed").iterdir())
        known = known or found
        if found != known:
            raise SystemExit(f"results differ: {found}, not {known}")
        shown = "; ".join(f"{what} {seconds:.1f} s" for what, seconds in {**times, **runs[count]}.items())
        rate = size / 1e6 / runs[count]["all"]
        print(f"{count} {kind}: {shown}; {rate:,.0f} MB/s; packed {packed / 1e9:.2f} GB", flush=True)
    for call, (rows, _) in known.items():
        print(f"{call}: {rows:,} rows, the same in all runs")
    least = min(runs)
    for count in sorted(runs):
        ratios = (f"{what} {runs[least][what] / seconds:.2f}" for what, seconds in runs[count].items())
        print(f"{count} {kind} against {least}: {', '.join(ratios)}")


if __name__ == "__main__":
    main()
