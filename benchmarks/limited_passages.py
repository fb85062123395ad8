"""Repeated passages of text larger than memory: ``python -m benchmarks.limited_passages --folder FOLDER``.

Writes Parquet files of near copies of real texts into FOLDER (see ``benchmarks.near_copies``; files that are there
stay), then runs ``repeats`` over a scan of them under a memory limit, into a Parquet file. Measures time, the processor
time of all threads, the peak of resident memory above that before the call, and the most that was on disk at a time.
Before, it runs over one row; afterwards over one file, with a limit and without, and compares the results.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora, near_copies
from benchmarks.text_files import status

ROW_GROUP = 8 << 20
"""Bytes of text of a row group, about: Polars holds some of them for each thread."""


def main() -> None:
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--gigabytes", type=float, default=4)
    parser.add_argument("--memory-limit", default="500MB")
    parser.add_argument("--length", type=int, default=50, help="words of a window")
    parser.add_argument("--edits", type=float, default=near_copies.EDITS, help="share of words that become others")
    args = parser.parse_args()
    names = corpora.names(args.corpora)
    paths = write(args.folder, names, args.gigabytes, args.edits)
    print(f"machine: {corpora.machine()}; limit {args.memory_limit}, windows of {args.length} words")
    asked = {"length": args.length, "memory_limit": args.memory_limit}
    one = pl.scan_parquet(paths[:1])
    one.head(1).tadoc.repeats("text", **asked).collect()  # kernels are loaded first
    size = pl.scan_parquet(paths).select(pl.col("text").str.len_bytes().sum()).collect(engine="streaming").item()
    with tempfile.TemporaryDirectory() as folder, tadoc.Config(spill_folder=folder), OnDisk(Path(folder)) as disk:
        target = args.folder / "passages.parquet"
        Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
        before, start, worked = status("VmRSS"), time.perf_counter(), time.process_time()
        pl.scan_parquet(paths).tadoc.repeats("text", **asked).tadoc.sink_parquet(target)
        took, worked = time.perf_counter() - start, time.process_time() - worked
        peak = status("VmHWM") - before
    rows = pl.scan_parquet(target).select(pl.len()).collect().item()
    print(f"{len(paths)} files, {size / 1e6:,.0f} MB of text, {rows:,} passages")
    print(f"{took:.1f} s, {size / 1e6 / took:.0f} MB/s")
    print(f"{worked:.1f} s of processor time, {size / 1e6 / worked:.0f} MB/s on one core")
    print(f"peak {peak / 1e6:.0f} MB above the {before / 1e6:.0f} MB before the call")
    print(f"at most {disk.most / 1e6:,.0f} MB on disk, {disk.most / size:.2f} times the text")
    if not one.tadoc.repeats("text", **asked).collect().equals(one.tadoc.repeats("text", length=args.length).collect()):
        raise SystemExit("other passages than without a limit")


def write(folder: Path, names: list[str], gigabytes: float, edits: float) -> list[Path]:
    """Write the files that are missing, in other processes: texts leave no memory behind."""
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
        size = pool.submit(_size, names, edits).result()
        numbers = range(max(1, round(gigabytes * 1e9 / size)))
        return list(pool.map(partial(_write_copy, folder, names, edits), numbers))


def _size(names: list[str], edits: float) -> int:
    return near_copies.NearCopies(near_copies.base(names), edits).nbytes


def _write_copy(folder: Path, names: list[str], edits: float, number: int) -> Path:
    path = folder / f"copy-{number:05d}.parquet"
    if not path.exists():
        (rows,) = near_copies.texts(names, edits, [number])
        group = max(1, round(len(rows) * ROW_GROUP / int(rows.str.len_bytes().sum())))
        rows.to_frame().write_parquet(path.with_suffix(".tmp"), compression="lz4", row_group_size=group)
        path.with_suffix(".tmp").rename(path)
    return path


class OnDisk:
    """Samples the bytes of a folder's files."""

    def __init__(self, folder: Path) -> None:
        self.most = 0
        self._folder, self._stop = folder, threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> OnDisk:
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._stop.wait(0.2):
            sizes = []
            for path in self._folder.rglob("*"):
                try:
                    sizes.append(path.stat().st_size if path.is_file() else 0)
                except FileNotFoundError:
                    continue
            self.most = max(self.most, sum(sizes))

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


if __name__ == "__main__":
    main()
