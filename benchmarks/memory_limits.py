"""Measures the peak memory of calls under ``memory_limit=``, each in a process of its own.

The files are packed (``lf.tadoc.sink_packed``); results go to a Parquet file. The peak is the largest resident set
(``VmHWM``) of the process, Python, Polars and kernels included; it should be at most the limit and 0.3 GB.

Examples
--------
::

    python -m benchmarks.memory_limits all.tadoc.parquet --limits 300MB 1GB --threads 2 16

"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

import polars_tadoc as tadoc
from benchmarks.corpora import machine
from polars_tadoc.traversal.options import require_memory_limit

ALLOWED = 300_000_000
"""Bytes that a process may hold beyond the limit."""

CALLS: dict[str, Callable[[Any, str], pl.LazyFrame]] = {
    "word_count": lambda scan, limit: scan.word_count("text", memory_limit=limit),
    "sort": lambda scan, limit: scan.sort("text", memory_limit=limit),
    "inverted_index": lambda scan, limit: scan.inverted_index("text", memory_limit=limit),
    "term_vector": lambda scan, limit: scan.term_vector("text", memory_limit=limit),
    "sequence_count": lambda scan, limit: scan.sequence_count("text", n=3, memory_limit=limit),
    "sequence_count_5": lambda scan, limit: scan.sequence_count("text", n=5, memory_limit=limit),
    "ranked_inverted_index": lambda scan, limit: scan.ranked_inverted_index("text", n=3, memory_limit=limit),
    "cooccurrence": lambda scan, limit: scan.cooccurrence("text", memory_limit=limit),
    "tfidf": lambda scan, limit: scan.tfidf("text", memory_limit=limit),
    "bm25_weights": lambda scan, limit: scan.bm25_weights("text", memory_limit=limit),
}


def peak() -> int:
    """Largest resident set of this process so far, in bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


def measure(path: str, call: str, limit: str) -> None:
    """Run a call in this process and print its seconds, rows, and peaks before and after it."""
    tadoc.Config.set(threads=pl.thread_pool_size())
    before = peak()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        sink = Path(folder) / "result.parquet"
        try:
            CALLS[call](tadoc.scan_packed(path).tadoc, limit).tadoc.sink_parquet(sink)
            rows = f"{pl.scan_parquet(sink).select(pl.len()).collect().item():,}"
        except tadoc.errors.LimitExceededError as error:
            rows = f"refused: {error}"
    print(f"{time.perf_counter() - start:.1f}|{rows}|{before}|{peak()}")


def main() -> None:
    """Print a line for each call, limit and number of threads."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", help="packed files")
    parser.add_argument("--calls", nargs="+", default=list(CALLS), choices=list(CALLS))
    parser.add_argument("--limits", nargs="+", default=["300MB", "1GB"])
    parser.add_argument("--threads", nargs="+", default=[str(os.cpu_count())])
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        measure(given.path, given.calls[0], given.limits[0])
        return
    print(machine())
    print(f"{'call':24}{'limit':>8}{'threads':>9}{'seconds':>9}{'start':>9}{'peak':>9}{'beyond':>9}  rows")
    for call in given.calls:
        for limit in given.limits:
            for threads in given.threads:
                own = ["--measure", "--calls", call, "--limits", limit]
                command = [sys.executable, "-m", "benchmarks.memory_limits", given.path, *own]
                environment = {**os.environ, "POLARS_MAX_THREADS": threads, "NUMBA_NUM_THREADS": threads}
                done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
                if done.returncode:
                    print(f"{call:24}{limit:>8}{threads:>9}  failed: {done.stderr.strip().splitlines()[-1]}")
                    continue
                seconds, rows, before, after = done.stdout.strip().splitlines()[-1].split("|")
                beyond = int(after) - int(require_memory_limit(limit) or 0)
                mark = "" if beyond <= ALLOWED else "  PASSES THE LIMIT"
                sizes = "".join(f"{int(size) / 1e6:>6,.0f} MB" for size in (before, after, beyond))
                print(f"{call:24}{limit:>8}{threads:>9}{seconds:>9}{sizes}  {rows}{mark}", flush=True)


if __name__ == "__main__":
    main()
