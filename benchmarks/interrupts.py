"""How long Ctrl-C takes: from SIGINT to KeyboardInterrupt in every long call, at moments drawn at random.

``python -m benchmarks.interrupts`` reads all texts of the corpora folder as one column (446 MB) and starts a process
for each call. It runs the call once, then interrupts it at ``--moments`` moments, and prints the worst and the median
time to ``KeyboardInterrupt``, how many interrupts were not told once, and the CPU seconds that the process spent in the
half second after the worst one: threads that were left behind.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora

SETTLE = 0.5
"""Seconds of wall time in which CPU time must not grow afterwards."""

FROM_TEXT = {
    "compress": lambda text, to: tadoc.compress(text),
    "compress(xml)": lambda text, to: tadoc.compress(text, tokenizer="xml"),
    "compress(sequitur)": lambda text, to: tadoc.compress(text, method="sequitur"),
    "compress(like)": lambda text, to: tadoc.compress(text, like=tadoc.compress(text.head(1000))),
    "lazy compress, collect": lambda text, to: text.to_frame("text").lazy().tadoc.compress("text").collect(),
    "compress, sink_packed": lambda text, to: (
        text.to_frame("text").lazy().tadoc.compress("text").tadoc.sink_packed(to / "p.parquet")
    ),
    "compress, sink_index": lambda text, to: (
        text.to_frame("text").lazy().tadoc.compress("text").tadoc.sink_index(to / "index", overwrite=True)
    ),
}
FROM_COLUMN = {
    "decompress": lambda df, to: tadoc.decompress(df["text"]),
    "word_count": lambda df, to: df.tadoc.word_count("text"),
    "sequence_count(n=3)": lambda df, to: df.tadoc.sequence_count("text", n=3, min_count=2),
    "inverted_index": lambda df, to: df.tadoc.inverted_index("text"),
    "term_vector": lambda df, to: df.tadoc.term_vector("text"),
    "ranked_inverted_index(n=2)": lambda df, to: df.tadoc.ranked_inverted_index("text", n=2),
    "cooccurrence": lambda df, to: df.tadoc.cooccurrence("text", window=3, min_count=5),
    "tfidf": lambda df, to: df.tadoc.tfidf("text", top=5),
    "bm25_weights": lambda df, to: df.tadoc.bm25_weights("text", top=5),
    "build_index": lambda df, to: df.tadoc.build_index("text"),
    "recompress": lambda df, to: tadoc.recompress(df["text"]),
    "Dictionary.from_words": lambda df, to: tadoc.Dictionary.from_words(df.tadoc.word_count("text")["word"]),
    "contains_phrase": lambda df, to: df.select(pl.col("text").tadoc.contains_phrase("of the")),
}
FROM_PACKED = {
    "packed sequence_count(n=5, memory_limit)": lambda path, to: (
        pl_scan(path).tadoc.sequence_count("text", n=5, memory_limit="1GB").collect()
    ),
    "packed ranked, sink_parquet": lambda path, to: (
        pl_scan(path).tadoc.ranked_inverted_index("text", n=2, memory_limit="1GB").tadoc.sink_parquet(to / "r.parquet")
    ),
}


def pl_scan(path: Path) -> pl.LazyFrame:
    """Scan a packed file."""
    return tadoc.scan_packed(path)


def texts(names: list[str]) -> pl.Series:
    """Read columns ``text`` as one; without names, of every file of the corpora folder."""
    if names:
        return pl.concat([corpora.load(name)[1] for name in names]).rechunk().alias("text")
    found = []
    for path in sorted(corpora.SHARED.glob("*.parquet")):
        plan = pl.scan_parquet(path)
        if not path.stem.endswith(("queries", "qrels")) and plan.collect_schema().get("text") == pl.String:
            found.append(plan.select("text").collect()["text"])
    return pl.concat(found).rechunk()


def measure(call: Callable[[Any, Path], object], given: Any, moments: int, most: float) -> dict[str, Any]:
    """Run a call once, then interrupt it at moments within the time that it took, or within ``most`` seconds."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        call(given, Path(folder))
        took = time.perf_counter() - start
    waited: list[float] = []
    left, wrong = 0.0, 0
    draw = random.Random(1)
    for _ in range(moments):
        gc.collect()
        sent: list[float] = []

        def interrupt(sent: list[float] = sent) -> None:
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

        told = 0
        with tempfile.TemporaryDirectory() as folder:
            timer = threading.Timer(draw.uniform(0, min(took, most) * 0.95), interrupt)
            timer.start()
            try:
                try:
                    call(given, Path(folder))
                    timer.join()  # the call ended before: the interrupt comes now
                except KeyboardInterrupt:
                    waited.append(time.perf_counter() - sent[0])
                    told += 1
                for _ in range(50):
                    time.sleep(0.001)
            except KeyboardInterrupt:
                told += 1
            wrong += told != 1
            before = time.process_time()
            time.sleep(SETTLE)
            left = max(left, time.process_time() - before)
        timer.join()
    return {"took": took, "waited": waited, "left": left, "wrong": wrong}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*")
    parser.add_argument("--moments", type=int, default=8)
    parser.add_argument("--most", type=float, default=60, help="seconds from a call's begin within which moments lie")
    parser.add_argument("--call", action="append", help="only calls whose name holds this")
    parser.add_argument("--run", nargs=3, metavar=("CALL", "FILE", "RESULT"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    calls = {**FROM_TEXT, **FROM_COLUMN, **FROM_PACKED}
    if given.run:
        name, path, result = given.run[0], Path(given.run[1]), Path(given.run[2])
        data: Any = path
        if name not in FROM_PACKED:
            data = pl.read_parquet(path)
            data = data["text"] if name in FROM_TEXT else data
        result.write_text(json.dumps(measure(calls[name], data, given.moments, given.most)))
        return
    with tempfile.TemporaryDirectory() as folder:
        text = texts(given.corpora)
        print(f"{corpora.machine()}; {text.str.len_bytes().sum() / 1e6:.0f} MB, {len(text):,} rows")
        files = {kind: Path(folder) / f"{kind}.parquet" for kind in ("text", "column", "packed")}
        wanted = [name for name in calls if not given.call or any(part in name for part in given.call)]
        text.to_frame("text").write_parquet(files["text"])
        if any(name in FROM_COLUMN for name in wanted):
            tadoc.compress(text).to_frame("text").write_parquet(files["column"])
        if any(name in FROM_PACKED for name in wanted):
            text.to_frame("text").lazy().tadoc.compress("text").tadoc.sink_packed(files["packed"])
        del text
        print(f"{'call':42} {'whole':>8} {'median':>8} {'worst':>8} {'told wrong':>11} {'CPU after':>10}")
        for name in wanted:
            kind = "text" if name in FROM_TEXT else "column" if name in FROM_COLUMN else "packed"
            result = Path(folder) / "result.json"
            command = [sys.executable, "-m", "benchmarks.interrupts", "--run", name, str(files[kind]), str(result)]
            subprocess.run([*command, "--moments", str(given.moments), "--most", str(given.most)], check=True)
            found = json.loads(result.read_text())
            waited = found["waited"] or [0.0]
            print(
                f"{name:42} {found['took']:6.1f} s {statistics.median(waited):6.2f} s {max(waited):6.2f} s "
                f"{found['wrong']:>11} {found['left']:8.2f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
