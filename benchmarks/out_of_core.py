"""Analytics over packed files larger than memory: ``python -m benchmarks.out_of_core FOLDER``.

FOLDER holds what ``python -m benchmarks.near_copies FOLDER --packed`` wrote. Each call runs in a process of its own:
over the first files in memory, collected, and over all files under ``memory_limit=``, sunk to Parquet. Memory is the
most that the process had resident at any time, all of it; *of memory* is the time for each MB of text against that of
the run in memory. Before, each is run over one file, so that all kernels are compiled.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks import corpora, near_copies

CALLS: dict[str, dict[str, Any]] = {
    "word_count": {},
    "sequence_count": {"n": 3},
    "sort": {},
    "inverted_index": {},
    "term_vector": {},
    "ranked_inverted_index": {"n": 3},
    "cooccurrence": {},
    "bm25_weights": {},
    "tfidf": {},
}
IN_MEMORY = 8
"""Files that the run in memory reads."""


def run(call: str, paths: list[str], limit: str | None, target: str) -> dict[str, float]:
    """Run one call in this process."""
    import polars_tadoc as tadoc

    asked = {**CALLS[call], "memory_limit": limit}
    start = time.perf_counter()
    lf = getattr(tadoc.scan_packed(paths).tadoc, call)("text", **asked)  # type: ignore[attr-defined]
    if limit is None:
        rows = lf.collect().height
    else:
        lf.tadoc.sink_parquet(target)
        rows = pl.scan_parquet(target).select(pl.len()).collect().item()
    seconds = time.perf_counter() - start
    status = Path("/proc/self/status").read_text().splitlines()
    most = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    return {"seconds": seconds, "memory": most, "rows": rows}


def in_a_process(*arguments: str) -> dict[str, float] | str:
    """Run one call in a process of its own; what it said last where it failed."""
    command = [sys.executable, "-m", "benchmarks.out_of_core", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit status {done.returncode}"
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Print a line for each call."""
    parser = argparse.ArgumentParser(description="analytics over packed files larger than memory")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limit", default="2GB")
    parser.add_argument("--files", type=int, help="read only the first so many")
    parser.add_argument("--in-memory", type=int, default=IN_MEMORY, help="files that the run in memory reads")
    parser.add_argument("--calls", nargs="+", choices=list(CALLS), default=list(CALLS)[:2])
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    paths = sorted(str(path) for path in given.folder.glob("part-*.parquet"))[: given.files]
    if given.run:
        call, limit, target = given.run
        print(json.dumps(run(call, paths, None if limit == "none" else limit, target)))
        return
    size = near_copies.NearCopies(near_copies.base(corpora.names([]))).nbytes
    copies = max(1, near_copies.FILE_BYTES // size)
    text = [len(paths) * copies * size / 1e6, min(given.in_memory, len(paths)) * copies * size / 1e6]
    print(corpora.machine())
    packed = sum(Path(path).stat().st_size for path in paths) / 1e9
    print(f"{len(paths)} files, {text[0] / 1e3:.1f} GB of text, {packed:.2f} GB packed")
    print("call | files | limit | memory MB | s | MB/s | of memory | rows | result MB")
    for call in given.calls:
        for limit in ("none", "100MB"):  # so that all kernels are compiled
            with tempfile.TemporaryDirectory(dir=given.folder) as folder:
                in_a_process(
                    str(given.folder), "--files", "1", "--run", call, limit, str(Path(folder) / "result.parquet")
                )
        whole = 0.0
        runs = ((str(given.in_memory), "none", text[1]), (str(len(paths)), given.limit, text[0]))
        for files, limit, megabytes in runs:
            with tempfile.TemporaryDirectory(dir=given.folder) as folder:
                target = Path(folder) / "result.parquet"
                got = in_a_process(str(given.folder), "--files", files, "--run", call, limit, str(target))
                written = target.stat().st_size / 1e6 if target.exists() else 0.0
            if isinstance(got, str):
                print(" | ".join([call, files, limit, got[:300]]), flush=True)
                continue
            each = got["seconds"] / megabytes
            whole = whole or each
            cells = [call, files, limit, f"{got['memory'] / 1e6:.0f}", f"{got['seconds']:.1f}", f"{1 / each:.0f}"]
            print(" | ".join([*cells, f"{each / whole:.2f}", f"{got['rows']:,}", f"{written:.0f}"]), flush=True)


if __name__ == "__main__":
    main()
