"""A file compressed into another in a streaming plan: ``python -m benchmarks.streaming``.

The lines of each corpus are repeated to the wanted sizes; in each copy they come in another order, with other digits
and with a running number, so that no copy is another's. Each run is a process of its own; memory is the growth of
resident bytes over what it was when everything had been compiled. *frame* is ``lf.tadoc.compress("text")``,
*expression* ``lf.with_columns(pl.col("text").tadoc.compress())``, *plain* writes the strings as they are. Then the
written file is read back lazily and compared with its source.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq

from benchmarks import corpora
from benchmarks.compress import PeakMemory

STANDARD = ["logs_elastic", "docs_peps"]
ROW_GROUP = 100_000


def write_source(name: str, megabytes: int, path: Path) -> int:
    """Write distinct copies of a corpus' lines; returns the text's bytes."""
    lines = corpora.load(name)[1].str.split("\n").explode().drop_nulls()
    lines = lines.filter(lines.str.len_bytes() > 0)
    size = rows = copy = 0
    writer: pq.ParquetWriter | None = None
    held: list[pl.DataFrame] = []
    while size < megabytes * 1_000_000:
        digits = {str(d): str((d + copy) % 10) for d in range(10)}
        number = pl.int_range(rows, rows + len(lines), eager=True)
        copied = lines.shuffle(seed=copy).str.replace_many(digits)
        frame = pl.select(row=number, text=pl.format("{} {}", number, copied))
        held.append(frame)
        size += int(frame["text"].str.len_bytes().sum())
        rows += len(frame)
        copy += 1
        last = size >= megabytes * 1_000_000
        gathered = pl.concat(held)
        whole = gathered.height if last else gathered.height // ROW_GROUP * ROW_GROUP
        for at in range(0, whole, ROW_GROUP):
            table = gathered.slice(at, min(ROW_GROUP, whole - at)).to_arrow()
            writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
            writer.write_table(table)
        held = [gathered.slice(whole)]
    if writer is not None:
        writer.close()
    return size


def run(form: str, source: Path, target: Path) -> dict[str, float]:
    """Stream one file into the other in this process."""
    import polars_tadoc  # noqa: F401 - registers the namespace

    def sink(lf: pl.LazyFrame) -> None:
        if form == "frame":
            lf = lf.tadoc.compress("text")  # type: ignore[attr-defined]
        elif form == "expression":
            lf = lf.with_columns(pl.col("text").tadoc.compress())  # type: ignore[attr-defined]
        lf.sink_parquet(target)

    sink(pl.scan_parquet(source).head(1000))
    with PeakMemory() as memory:
        start = time.perf_counter()
        sink(pl.scan_parquet(source))
        seconds = time.perf_counter() - start
    return {"seconds": seconds, "memory": memory.most - memory.before}


def grammars_per_row_group(path: Path) -> float:
    """Mean number of grammars that a row group holds."""
    groups = pq.ParquetFile(path).num_row_groups
    held = pl.scan_parquet(path).select(pl.col("text").ext.storage().struct.field("grammar").to_physical())
    sizes = [pq.ParquetFile(path).metadata.row_group(i).num_rows for i in range(groups)]
    codes = held.collect().to_series()
    total = at = 0
    for size in sizes:
        total += codes.slice(at, size).drop_nulls().n_unique()
        at += size
    return total / groups


def require_equal(source: Path, target: Path) -> None:
    """Read the compressed file back lazily and compare every row, in order."""
    import polars_tadoc  # noqa: F401

    back = pl.scan_parquet(target).tadoc.decompress("text")  # type: ignore[attr-defined]
    batches = (lf.collect_batches(chunk_size=ROW_GROUP, maintain_order=True) for lf in (pl.scan_parquet(source), back))
    if not all(one.equals(other) for one, other in zip(*batches, strict=True)):
        raise SystemExit(f"{target.name}: the text read back differs")


def main() -> None:
    """Run every form at every size and print a table."""
    parser = argparse.ArgumentParser(description="compressing in a streaming plan")
    parser.add_argument("corpora", nargs="*", help="Parquet files with a column text, or shared corpora")
    parser.add_argument("--megabytes", type=int, nargs="+", default=[250, 1000])
    parser.add_argument("--run", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        print(json.dumps(run(given.run[0], Path(given.run[1]), Path(given.run[2]))))
        return
    print(corpora.machine())
    print("corpus | text MB | form | MB/s | memory MB | file MB | row groups | grammars per row group")
    with tempfile.TemporaryDirectory() as folder:
        for name in given.corpora or STANDARD:
            for megabytes in given.megabytes:
                source, target = Path(folder) / "source.parquet", Path(folder) / "target.parquet"
                size = write_source(name, megabytes, source)
                for form in ("plain", "frame", "expression"):
                    command = [sys.executable, "-m", "benchmarks.streaming", "--run", form, str(source), str(target)]
                    got = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
                    groups = pq.ParquetFile(target).num_row_groups
                    held = "" if form == "plain" else f"{grammars_per_row_group(target):.2f}"
                    if form != "plain":
                        require_equal(source, target)
                    cells = [
                        Path(name).stem,
                        f"{size / 1e6:.0f}",
                        form,
                        f"{size / 1e6 / got['seconds']:.0f}",
                        f"{got['memory'] / 1e6:.0f}",
                        f"{target.stat().st_size / 1e6:.1f}",
                        str(groups),
                        held,
                    ]
                    print(" | ".join(cells), flush=True)


if __name__ == "__main__":
    main()
