"""Spark on this machine: what a partition costs beside its work, and how much text a core answers over.

``python -m benchmarks.spark`` writes near copies of the corpora (:mod:`benchmarks.near_copies`) as Parquet, starts
Spark with as many workers as asked for, and after a first call that starts these, prints

- the overhead of a partition: how much longer a word count takes for each partition more, where each has one short row;
- text a second of each call, over text and over what ``compress`` has made of it, with all that Spark adds;
- the cores that a terabyte of text needs to be answered over in an hour at this rate.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks import corpora
from benchmarks.near_copies import NearCopies, base
from polars_tadoc.distributed import spark

FEW, MANY = 8, 72
"""Partitions whose times are compared."""


def seconds(call: Callable[[], Any], repeat: int) -> float:
    """Median time of a call."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def write(folder: Path, names: list[str], megabytes: float, files: int) -> int:
    """Write text in so many files; returns its bytes."""
    copies = NearCopies(base(names))
    count = max(1, round(megabytes * 1e6 / copies.nbytes))
    text = pl.concat([copies.copy(number) for number in range(count)])
    each = -(-len(text) // files)
    frame = pl.DataFrame({"id": pl.int_range(len(text), eager=True), "text": text})
    for place in range(files):
        frame.slice(place * each, each).write_parquet(folder / f"part-{place:03d}.parquet", row_group_size=each)
    return int(text.str.len_bytes().sum())


def start(workers: int, folder: Path) -> Any:
    """Start Spark."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    options = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "4g",
        "spark.executorEnv.POLARS_MAX_THREADS": "1",
        "spark.local.dir": str(folder),
        "spark.log.level": "OFF",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
        "spark.sql.files.maxPartitionBytes": "1g",
        "spark.sql.shuffle.partitions": str(2 * workers),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    os.environ["POLARS_MAX_THREADS"] = "1"  # workers of a local Spark have the environment of this process
    builder = SparkSession.builder.master(f"local[{workers}]")
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def overhead(session: Any, call: Callable[[Any], Any], repeat: int) -> float:
    """Seconds for each partition more."""
    times = []
    for partitions in (FEW, MANY):
        df = session.range(0, partitions, 1, partitions).selectExpr("'to be or not to be' AS text")
        times.append(seconds(lambda df=df: call(df).count(), repeat))  # type: ignore[misc]
    return (times[1] - times[0]) / (MANY - FEW)


def calls(text: Any, compressed: Any) -> dict[str, Callable[[], Any]]:
    """What is timed: each call's rows are counted, so that all of them are made."""
    made: dict[str, Callable[[], Any]] = {}
    for kind, df in (("text", text), ("compressed", compressed)):
        made[f"word_count, {kind}"] = lambda df=df: spark.word_count(df, "text").count()
        made[f"sequence_count n=3, {kind}"] = lambda df=df: spark.sequence_count(df, "text").count()
        made[f"term_vector, {kind}"] = lambda df=df: spark.term_vector(df, "text", id="id").count()
        made[f"inverted_index, {kind}"] = lambda df=df: spark.inverted_index(df, "text", id="id").count()
        made[f"bm25_weights, {kind}"] = lambda df=df: spark.bm25_weights(df, "text", id="id").count()
    return made


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description="overhead and throughput on a Spark of this machine")
    parser.add_argument("corpora", nargs="*", help="Parquet files with a column text, or shared corpora")
    parser.add_argument("--megabytes", type=float, default=400.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--files", type=int, default=8, help="partitions of the text")
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "text").mkdir()
        size = write(folder / "text", corpora.names(given.corpora), given.megabytes, given.files)
        session = start(given.workers, folder)
        try:
            text = session.read.parquet(str(folder / "text"))
            print(corpora.machine())
            print(
                f"Spark {session.version}, {given.workers} workers; {size / 1e6:,.0f} MB of text in {given.files} files"
            )
            begun = time.perf_counter()
            spark.word_count(text.limit(10), "text").collect()
            print(f"first call, which starts the workers: {time.perf_counter() - begun:.1f} s")
            more = overhead(session, lambda df: spark.word_count(df, "text"), given.repeat)
            least = overhead(session, lambda df: df.mapInArrow(lambda batches: batches, "text string"), given.repeat)
            print(
                f"overhead of a partition: {1e3 * more:.0f} ms; {1e3 * least:.0f} ms where Python only passes rows on"
            )
            report(session, text, folder, size, given)
        finally:
            session.stop()


def report(session: Any, text: Any, folder: Path, size: int, given: argparse.Namespace) -> None:
    """Time and print all calls."""
    target = str(folder / "compressed")
    begun = time.perf_counter()
    spark.compress(text, "text").write.parquet(target)
    line("compress", size, time.perf_counter() - begun, given.workers)
    compressed = session.read.parquet(target)
    stored = sum(path.stat().st_size for path in Path(target).glob("*.parquet"))
    print(f"  {stored / 1e6:,.0f} MB, {size / stored:.1f} times smaller; {compressed.count()} cells")
    for name, call in calls(text, compressed).items():
        line(name, size, seconds(call, given.repeat), given.workers)


def line(name: str, size: int, took: float, workers: int) -> None:
    """Print what a call took, and what a terabyte would."""
    rate = size / 1e6 / took / workers
    print(f"{name:<32}{took:8.2f} s{rate:10.1f} MB/s a core{1e6 / 3600 / rate:10.1f} cores for 1 TB in an hour")


if __name__ == "__main__":
    main()
