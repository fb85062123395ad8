"""Measures the peak memory of calls under ``memory_limit=``, each in a process of its own.

The files are packed (``lf.tadoc.sink_packed``); results go to a Parquet file. The peak is the largest resident set
(``VmHWM``) of the process, Python, Polars, kernels and, where it is imported, CuPy included; it should be at most the
limit and 0.3 GB. Each call is made on a few rows first, in another process, to compile kernels that are in no cache:
that takes some 100 MB, and wheels have their machine code. A line says for each call: limit, engine, threads, seconds,
resident before and at most, how much the peak is over the limit, whether that is ``under`` or ``OVER`` the 0.3 GB,
whether CuPy was imported, and the rows of the result or why the call was refused. With an engine other than "cpu" the
first line says what CuPy takes.

Examples
--------
::

    python -m benchmarks.memory_limits all.tadoc.parquet --limits 300MB 1GB --threads 2 16
    python -m benchmarks.memory_limits all.tadoc.parquet --limits 300MB 1GB --threads 16 --engines auto gpu

"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import get_args

import polars as pl

import polars_tadoc as tadoc
from benchmarks.corpora import machine
from polars_tadoc.config import EngineName
from polars_tadoc.traversal.options import require_memory_limit

ALLOWED = 300_000_000
"""Bytes that a process may hold beyond the limit."""

CALLS: dict[str, Callable[..., pl.LazyFrame]] = {
    "word_count": lambda scan, **given: scan.word_count("text", **given),
    "sort": lambda scan, **given: scan.sort("text", **given),
    "inverted_index": lambda scan, **given: scan.inverted_index("text", **given),
    "term_vector": lambda scan, **given: scan.term_vector("text", **given),
    "sequence_count": lambda scan, **given: scan.sequence_count("text", n=3, **given),
    "sequence_count_5": lambda scan, **given: scan.sequence_count("text", n=5, **given),
    "ranked_inverted_index": lambda scan, **given: scan.ranked_inverted_index("text", n=3, **given),
    "cooccurrence": lambda scan, **given: scan.cooccurrence("text", **given),
    "tfidf": lambda scan, **given: scan.tfidf("text", **given),
    "bm25_weights": lambda scan, **given: scan.bm25_weights("text", **given),
}


def peak() -> int:
    """Largest resident set of this process so far, in bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


def resident() -> int:
    """Resident set of this process, in bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return 1024 * int(line.split()[1])


def measure(path: str, call: str, limit: str, engine: str) -> None:
    """Run a call in this process and print its seconds, peaks before and after it, CuPy, and rows."""
    tadoc.Config.set(threads=pl.thread_pool_size())
    before = peak()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        sink = Path(folder) / "result.parquet"
        try:
            CALLS[call](tadoc.scan_packed(path).tadoc, memory_limit=limit, engine=engine).tadoc.sink_parquet(sink)
            rows = f"{pl.scan_parquet(sink).select(pl.len()).collect().item():,}"
        except tadoc.errors.TadocError as error:
            rows = f"refused: {type(error).__name__}: {error}"
    imported = "cupy" if "cupy" in sys.modules else "-"
    print(f"{time.perf_counter() - start:.1f}|{before}|{peak()}|{imported}|{rows}")


def measure_cupy() -> None:
    """Print what this process holds before and after CuPy is imported, a context made, and a kernel run."""
    sizes = [resident()]
    try:
        import cupy
    except ImportError:
        print("CuPy is not installed")
        return
    sizes.append(resident())
    cupy.zeros(1)
    sizes.append(resident())
    cupy.argsort(cupy.arange(1000)[::-1]).get()
    sizes.append(resident())
    steps = zip(("import", "context", "first kernels"), sizes[:-1], sizes[1:], strict=True)
    added = ", ".join(f"{name} {(after - before) / 1e6:,.0f} MB" for name, before, after in steps)
    print(f"CuPy {cupy.__version__}: {added}; peak {(peak() - sizes[0]) / 1e6:,.0f} MB")


def compile_kernels(call: str, engine: str, environment: dict[str, str]) -> None:
    """Make a call on a few rows in another process, under a limit so small that it spills."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "few.parquet"
        text = [f"the file {k % 97} is not {k * 7 % 1009} to be {k * 13 % 977}" for k in range(20_000)]
        pl.DataFrame({"text": text}).tadoc.compress("text", rows_per_grammar=2000).tadoc.write_packed(path)
        asked = ["--measure", "call", "--calls", call, "--limits", "20MB", "--engines", engine]
        command = [sys.executable, "-m", "benchmarks.memory_limits", str(path), *asked]
        subprocess.run(command, env=environment, capture_output=True, check=False)


def main() -> None:
    """Print a line for each call, limit, engine and number of threads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", help="packed files")
    parser.add_argument("--calls", nargs="+", default=list(CALLS), choices=list(CALLS))
    parser.add_argument("--limits", nargs="+", default=["300MB", "1GB"])
    parser.add_argument("--threads", nargs="+", default=[str(os.cpu_count())])
    parser.add_argument("--engines", nargs="+", default=["cpu"], choices=get_args(EngineName))
    parser.add_argument("--measure", choices=["call", "cupy"], help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure == "cupy":
        measure_cupy()
        return
    if given.measure:
        measure(given.path, given.calls[0], given.limits[0], given.engines[0])
        return
    print(machine())
    own = [sys.executable, "-m", "benchmarks.memory_limits", given.path]
    if given.engines != ["cpu"]:
        print(subprocess.run([*own, "--measure", "cupy"], capture_output=True, text=True, check=False).stdout.strip())
    columns = f"{'seconds':>9}{'start':>9}{'peak':>9}{'beyond':>9}  0.3 GB  CuPy  rows"
    print(f"{'call':24}{'limit':>8}{'engine':>7}{'threads':>8}{columns}")
    for call, limit, engine, threads in product(given.calls, given.limits, given.engines, given.threads):
        what = f"{call:24}{limit:>8}{engine:>7}{threads:>8}"
        asked = ["--measure", "call", "--calls", call, "--limits", limit, "--engines", engine]
        environment = {**os.environ, "POLARS_MAX_THREADS": threads, "NUMBA_NUM_THREADS": threads}
        compile_kernels(call, engine, environment)
        done = subprocess.run([*own, *asked], env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{what}  failed: {(done.stderr.strip().splitlines() or [done.returncode])[-1]}", flush=True)
            continue
        seconds, before, after, imported, rows = done.stdout.strip().splitlines()[-1].split("|", 4)
        beyond = int(after) - int(require_memory_limit(limit) or 0)
        mark = "under" if beyond <= ALLOWED else "OVER"
        sizes = "".join(f"{int(size) / 1e6:>6,.0f} MB" for size in (before, after, beyond))
        print(f"{what}{seconds:>9}{sizes}  {mark:6}  {imported:4}  {rows}", flush=True)


if __name__ == "__main__":
    main()
