"""Analytics under ``memory_limit=`` against the same in memory: ``python -m benchmarks.streaming_analytics``.

A file of many partitions, no two alike: copies of a corpus whose digits and whose words of seven letters differ from
one to the next. It is written as compressed rows and as packed rows. Each run is a process of its own; memory is the
growth of resident bytes over what it was when everything had been compiled. *of memory* is the time against the run
in memory on the same file.
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
import pyarrow.parquet as pq

from benchmarks import corpora
from benchmarks.compress import PeakMemory

CALLS: dict[str, dict[str, Any]] = {
    "word_count": {},
    "sort": {},
    "inverted_index": {},
    "term_vector": {},
    "sequence_count": {"n": 3, "top": 1000},
    "ranked_inverted_index": {"n": 3},
    "cooccurrence": {"top": 1000},
}
FORMS = ("rows", "packed")


def write_text(name: str, megabytes: int, path: Path) -> tuple[int, int]:
    """Write distinct copies of a corpus, one for each row group; returns the text's bytes and a copy's rows."""
    text = corpora.load(name)[1].drop_nulls()
    size = copy = 0
    writer: pq.ParquetWriter | None = None
    while size < megabytes * 1_000_000:
        digits = {str(d): str((d + copy) % 10) for d in range(10)}
        edited = text.shuffle(seed=copy).str.replace_many(digits).str.replace_all(r"\b(\w{7})\b", f"${{1}}{copy % 7}")
        table = pl.DataFrame({"copy": [copy] * len(text), "text": edited}).to_arrow()
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table, row_group_size=len(text))
        size += int(edited.str.len_bytes().sum())
        copy += 1
    if writer is not None:
        writer.close()
    return size, len(text)


def run(form: str, call: str, path: Path, limit: str | None) -> dict[str, float]:
    """Run one call in this process."""
    import polars_tadoc as tadoc

    def answer(lf: pl.LazyFrame) -> int:
        asked = {**CALLS[call], "memory_limit": limit}
        counted: pl.DataFrame = getattr(lf.tadoc, call)("text", **asked).collect()  # type: ignore[attr-defined]
        return counted.height

    lf = tadoc.scan_packed(path) if form == "packed" else pl.scan_parquet(path)
    answer(lf.head(3))
    with PeakMemory() as memory:
        start = time.perf_counter()
        rows = answer(lf)
        seconds = time.perf_counter() - start
    return {"seconds": seconds, "memory": memory.most - memory.before, "rows": rows}


def in_a_process(*arguments: str) -> dict[str, float] | str:
    """Run one call in a process of its own; what it said last where it failed."""
    command = [sys.executable, "-m", "benchmarks.streaming_analytics", "--run", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip().splitlines()[-1]
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Print a line for each call, form and limit."""
    parser = argparse.ArgumentParser(description="analytics under a memory limit")
    parser.add_argument("corpora", nargs="*", help="Parquet files with a column text, or shared corpora")
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--limits", nargs="+", default=["2GB", "500MB"])
    parser.add_argument("--calls", nargs="+", choices=list(CALLS), default=list(CALLS))
    parser.add_argument("--run", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        form, call, path, limit = given.run
        print(json.dumps(run(form, call, Path(path), None if limit == "none" else limit)))
        return
    import polars_tadoc  # noqa: F401 - registers the namespace

    print(corpora.machine())
    with tempfile.TemporaryDirectory() as folder:
        for name in given.corpora or ["logs_dmesg", "docs_peps"]:
            text = Path(folder) / "text.parquet"
            paths = {form: Path(folder) / f"{form}.parquet" for form in FORMS}
            size, rows = write_text(name, given.megabytes, text)
            compressed = pl.scan_parquet(text).tadoc.compress("text", rows_per_grammar=rows)  # type: ignore[attr-defined]
            compressed.sink_parquet(paths["rows"], row_group_size=rows)
            pl.scan_parquet(paths["rows"]).tadoc.sink_packed(paths["packed"])  # type: ignore[attr-defined]
            sizes = ", ".join(f"{form} {path.stat().st_size / 1e6:.1f} MB" for form, path in paths.items())
            print(
                f"{Path(name).stem}: {size / 1e6:.0f} MB of text, {pq.ParquetFile(text).num_row_groups} copies, {sizes}"
            )
            print("call | form | limit | memory MB | s | MB/s | of memory | rows")
            for call in given.calls:
                for form, path in paths.items():
                    whole = 0.0
                    for limit in ("none", *given.limits):
                        got = in_a_process(form, call, str(path), limit)
                        if isinstance(got, str):
                            print(" | ".join([call, form, limit, got[:160]]), flush=True)
                            continue
                        whole = whole or got["seconds"]
                        cells = [call, form, limit, f"{got['memory'] / 1e6:.0f}", f"{got['seconds']:.2f}"]
                        cells += [f"{size / 1e6 / got['seconds']:.0f}", f"{got['seconds'] / whole:.2f}"]
                        print(" | ".join([*cells, f"{got['rows']:,}"]), flush=True)


if __name__ == "__main__":
    main()
