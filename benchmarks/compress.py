"""Compression end to end, its peak memory and sizes: ``python -m benchmarks.compress``.

Each corpus is measured in a process of its own (peak memory is the growth of resident memory over what it
was with the text loaded and the kernels compiled). Tokenizing (MB/s) and construction (million words/s) are
stages of the same runs. Sizes are Parquet files at zstd 9 and the columns'
Arrow bytes. With ``--one-row 1000`` each corpus becomes a single row of 1000 MB. Compressing and decompressing run on
the CPU; ``benchmarks.gpu_compress`` measures a GPU.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.stages import by_stage
from polars_tadoc.kernels.repair import batch_repair, compress_cpu
from polars_tadoc.runtime.arrow_memory import string_sizes
from polars_tadoc.runtime.free_memory import give_back_memory

STAGES = [(compress_cpu, "tokenize"), (batch_repair, "build")]


def resident_bytes() -> int:
    """Resident memory of this process."""
    try:
        pages = Path("/proc/self/statm").read_bytes().split()[1]
    except OSError:
        raise SystemExit("memory is measured on Linux only: there is no /proc/self/statm") from None
    return int(pages) * resource.getpagesize()


class PeakMemory:
    """Samples this process' resident bytes every millisecond."""

    def __enter__(self) -> PeakMemory:
        self.before = self.most = resident_bytes()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._stop.wait(0.001):
            self.most = max(self.most, resident_bytes())

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.most = max(self.most, resident_bytes())


def output_of(command: list[str]) -> str:
    """Standard output of a process; its messages are shown. Ends this process if it fails."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=corpora.ROOT)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[1:])} ended with status {done.returncode}")
    return done.stdout


def one_row(text: pl.Series, megabytes: int) -> pl.Series:
    """Join all rows, as often as it takes for so many megabytes."""
    joined = text.fill_null("").str.join("\n")
    size = int(string_sizes(joined)[0])
    return pl.concat([joined] * -(-megabytes * 1_000_000 // size)).str.join("\n").rechunk()


def measure(given: str, repeat: int, megabytes: int) -> dict[str, float | str]:
    """Compress one corpus several times in this process."""
    name, text = corpora.load(given)
    sample = text.head(max(1, int((text.str.len_bytes().cum_sum() < 1 << 20).sum())))
    tadoc.decompress(tadoc.compress(sample))  # compile, or load what was compiled, first
    if megabytes:
        text = one_row(text, megabytes)
        give_back_memory()  # of joining
    size = int(string_sizes(text).sum())
    with PeakMemory() as memory:
        column = tadoc.compress(text)
    runs = [by_stage(lambda: tadoc.compress(text), STAGES) for _ in range(repeat)]
    seconds = {stage: statistics.median(run[stage] for run in runs) for stage in runs[0]}
    back = []
    for _ in range(repeat):
        start = time.perf_counter()
        again = tadoc.decompress(column)
        back.append(time.perf_counter() - start)
    if not again.equals(text):
        raise SystemExit(f"{name}: decompressed text differs")
    info = tadoc.info(column).to_dicts()[0]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file.parquet"
        text.to_frame().write_parquet(path, compression_level=9)
        plain = path.stat().st_size
        column.to_frame().write_parquet(path, compression_level=9)
        packed = path.stat().st_size
    return {
        "corpus": name,
        "MB": size / 1e6,
        "words": info["words"],
        "MB/s": size / 1e6 / seconds["whole"],
        "best": size / 1e6 / min(run["whole"] for run in runs),
        "tokenize": size / 1e6 / seconds["compress_cpu.tokenize"],
        "build Mw/s": info["words"] / 1e6 / seconds["batch_repair.build"],
        "back MB/s": size / 1e6 / statistics.median(back),
        "peak/text": (memory.most - memory.before) / size,
        "symbols/words": info["symbols"] / info["words"],
        "levels": info["levels"],
        "Arrow ratio": info["ratio"],
        "Parquet/plain": packed / plain,
    }


def main() -> None:
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--one-row", type=int, default=0, metavar="MB", help="join the rows of a corpus into one")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        with tadoc.Config(engine="cpu"):  # the stages are those of the CPU
            print(json.dumps(measure(args.child, args.repeat, args.one_row)))
        return
    print(f"machine: {corpora.machine()}")
    header = False
    for given in corpora.names(args.corpora):
        command = [sys.executable, "-m", "benchmarks.compress", "--child", given, "--repeat", str(args.repeat)]
        row = json.loads(output_of([*command, "--one-row", str(args.one_row)]))
        if not header:
            print(f"{'corpus':22}" + "".join(f"{key:>15}" for key in list(row)[1:]))
            header = True
        print(f"{row.pop('corpus')[:21]:22}", end="")
        print("".join(f"{v:15.3f}" if isinstance(v, float) else f"{v:15,}" for v in row.values()), flush=True)


if __name__ == "__main__":
    main()
