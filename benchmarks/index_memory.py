"""Memory that a loaded index takes, as a multiple of its files: ``python -m benchmarks.index_memory NAME|FOLDER …``.

Each argument is a corpus, of which an index with its text is built, or the folder of a saved index. A fresh process
loads an index of two rows first, which brings the code into memory that any call needs, and then that one. Printed are
megabytes of the files and of the text among them, resident memory that loading adds (all of it, what is mapped from
files, and the most while it loads), the same as multiples of the files, and the peak of the whole process, Python and
libraries included. Text is not asked for. Linux alone tells resident memory.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.memory_limits import peak


def resident() -> tuple[int, int]:
    """Bytes of this process in memory: all, and those of files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    kinds = {name: 1024 * int(about.split()[0]) for name, about in (line.split(":") for line in lines if "Rss" in line)}
    return sum(kinds[name] for name in ("RssAnon", "RssFile", "RssShmem")), kinds["RssFile"]


def load(small: str, folder: str) -> None:
    """Load the small index and then the other one; print what the other one adds."""
    first = tadoc.load_index(small, verify="all")
    before = resident()
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    index = tadoc.load_index(folder, verify="all")
    added = [after - then for then, after in zip(before, resident(), strict=True)]
    print(*added, peak() - before[0], peak())
    del first, index


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", default=["versioned_cockroach"])
    parser.add_argument("--load", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.load:
        load(*given.load)
        return
    print(corpora.machine())
    sizes = f"{'resident MB':>12} {'of files':>9} {'times':>6} {'peak MB':>8} {'times':>6} {'process MB':>11}"
    print(f"{'index':24} {'MB':>7} {'text MB':>8} {sizes}")
    with tempfile.TemporaryDirectory() as scratch:
        small = Path(scratch) / "small"
        tadoc.build_index(pl.Series("text", ["to be or not to be", "to do"]).tadoc.compress()).save(small)
        for source in given.sources:
            folder = Path(source)
            if not folder.is_dir():
                name, text = corpora.load(source)
                folder = Path(scratch) / name
                tadoc.build_index(text.tadoc.compress()).save(folder)
            command = [sys.executable, "-m", "benchmarks.index_memory", "--load", str(small), str(folder)]
            for _ in range(2):  # the first may compile
                done = subprocess.run(command, check=True, capture_output=True, text=True)
            added, of_files, most, whole = map(int, done.stdout.split())
            size = sum(file.stat().st_size for file in os.scandir(folder))
            of_text = (folder / "text.parquet").stat().st_size
            print(
                f"{folder.name:24} {size / 1e6:7.1f} {of_text / 1e6:8.1f} {added / 1e6:12.1f} {of_files / 1e6:9.1f} "
                f"{added / size:6.2f} {most / 1e6:8.1f} {most / size:6.2f} {whole / 1e6:11.1f}"
            )


if __name__ == "__main__":
    main()
