"""The packed form and its files: ``python -m benchmarks.packed``.

First by corpus, in one grammar: speed of ``pack`` and ``unpack`` (*new*: payloads have to be made; *again*: they are
kept from the last time), of writing and scanning packed files, sizes of files, all with zstd. Row numbers stand beside
the text. Then what scans of a file of many partitions read: bytes as the kernel counts them (Linux). Last, with
``--megabytes``, memory of ``sink_packed`` and of a scan, growth over what was there when everything had been compiled,
each in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.compress import PeakMemory
from benchmarks.side_by_side import median_ms, times
from benchmarks.streaming import write_source
from polars_tadoc.model.grammar_cache import grammars
from polars_tadoc.packed.unpack import payloads

PARTITIONS = 50


def forget() -> None:
    """Forget grammars and payloads."""
    grammars.clear()
    payloads.clear()


def conversions(name: str, folder: Path, repeat: int) -> str:
    """Speed and sizes of one corpus."""
    name, text = corpora.load(name)
    plain = text.to_frame().with_row_index("row")
    df = plain.tadoc.compress("text")  # type: ignore[attr-defined]
    packed = df.tadoc.pack()
    files = {form: folder / f"{form}.parquet" for form in ("packed", "rows", "plain")}
    plain.write_parquet(files["plain"])

    def new(call: Callable[[], object]) -> Callable[[], object]:
        def run() -> object:
            forget()
            return call()

        return run

    taken = times(
        {
            "pack": lambda: df.tadoc.pack(),
            "unpack, again": lambda: packed.tadoc.unpack(),
            "unpack, new": new(lambda: packed.tadoc.unpack()),
            "write": lambda: df.tadoc.write_packed(files["packed"]),
            "write rows": lambda: df.write_parquet(files["rows"]),
            "scan, again": lambda: tadoc.scan_packed(files["packed"]).collect(),
            "scan, new": new(lambda: tadoc.scan_packed(files["packed"]).collect()),
            "scan rows": lambda: pl.scan_parquet(files["rows"]).collect(),
        },
        repeat,
    )
    if not tadoc.scan_packed(files["packed"]).collect().equals(df):
        raise SystemExit(f"{name}: the scan differs")
    megabytes = int(text.str.len_bytes().sum()) / 1e6
    speeds = [f"{megabytes / median_ms(taken, form):.2f}" for form in taken]
    sizes = [f"{file.stat().st_size / 1e6:.2f}" for file in files.values()]
    return " | ".join([name, f"{megabytes:.1f}", *speeds, *sizes])


def bytes_read() -> int:
    """Bytes that this process has read from files so far."""
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("rchar"):
            return int(line.split()[1])
    raise SystemExit("the kernel does not count bytes read")


def scans(name: str, folder: Path, repeat: int) -> None:
    """What scans of one file of many partitions read, and how long they take."""
    name, text = corpora.load(name)
    rows = len(text)
    size = -(-rows // PARTITIONS)
    file = folder / "partitions.parquet"
    df = pl.DataFrame({"row": range(rows), "text": text})
    df.lazy().tadoc.compress("text", rows_per_grammar=size).tadoc.sink_packed(file)  # type: ignore[attr-defined]
    lf = tadoc.scan_packed(file)
    row = pl.col("row")
    plans = {
        "all": lf,
        "row": lf.select("row"),
        "one partition by row": lf.filter(row.is_between(3 * size, 4 * size - 1)),
        "a row in a thousand": lf.filter(row % 1000 == 0),
        "none, not by statistics": lf.filter(row % 1000 == 1001),
        "first 10": lf.head(10),
        "word count of 1 partition": lf.filter(row < size).tadoc.word_count("text", top=10),  # type: ignore[attr-defined]
    }
    taken = times({what: plan.collect for what, plan in plans.items()}, repeat)
    print(f"\n{name}, {rows:,} rows in {PARTITIONS} partitions, file of {file.stat().st_size / 1e6:.2f} MB")
    print("scan | rows | ms | MB read")
    for what, plan in plans.items():
        before = bytes_read()
        height = plan.collect().height
        print(f"{what} | {height:,} | {median_ms(taken, what):.1f} | {(bytes_read() - before) / 1e6:.3f}")


def run(what: str, source: Path, target: Path) -> dict[str, float]:
    """Write or scan a packed file in this process."""

    def sink(lf: pl.LazyFrame) -> None:
        lf.tadoc.compress("text").tadoc.sink_packed(target)  # type: ignore[attr-defined]

    def scan(lf: pl.LazyFrame) -> None:
        for _ in lf.collect_batches(maintain_order=True):
            pass

    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder) / "first.parquet"
        pl.scan_parquet(source).head(1000).tadoc.compress("text").tadoc.sink_packed(first)  # type: ignore[attr-defined]
        scan(tadoc.scan_packed(first))
    with PeakMemory() as memory:
        start = time.perf_counter()
        if what == "sink":
            sink(pl.scan_parquet(source))
        else:
            scan(tadoc.scan_packed(target))
        seconds = time.perf_counter() - start
    return {"seconds": seconds, "memory": memory.most - memory.before}


def main() -> None:
    """Print the tables."""
    parser = corpora.arguments("the packed form and its files")
    parser.add_argument("--megabytes", type=int, nargs="*", default=[], help="sizes to measure memory at")
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        print(json.dumps(run(given.run[0], Path(given.run[1]), Path(given.run[2]))))
        return
    print(corpora.machine())
    print(
        "corpus | text MB | GB of text/s: pack | unpack, again | unpack, new | write | write rows | scan, again | "
        "scan, new | scan rows | MB: packed | rows | plain text"
    )
    with tempfile.TemporaryDirectory() as folder:
        names = corpora.names(given.corpora)
        for name in names:
            print(conversions(name, Path(folder), given.repeat), flush=True)
        scans(names[0], Path(folder), given.repeat)
        if given.megabytes:
            print("\ntext MB | what | MB/s | memory MB | file MB")
        for megabytes in given.megabytes:
            source, target = Path(folder) / "source.parquet", Path(folder) / "target.parquet"
            size = write_source(names[0], megabytes, source)
            for what in ("sink", "scan"):
                command = [sys.executable, "-m", "benchmarks.packed", "--run", what, str(source), str(target)]
                got = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
                speed, memory = size / 1e6 / got["seconds"], got["memory"] / 1e6
                print(f"{size / 1e6:.0f} | {what} | {speed:.0f} | {memory:.0f} | {target.stat().st_size / 1e6:.1f}")


if __name__ == "__main__":
    main()
