"""Filters XML by twig queries on a GPU, against number of queries; MB/s of XML.

``python -m benchmarks.gpu_twigs --write FOLDER`` writes documents as DBLP's and queries drawn from them (it needs lxml
and the corpora), ``python -m benchmarks.gpu_twigs FOLDER`` runs on them, ``--draw times.json chart.svg`` draws what
``--out times.json`` kept. Batches of 500 and 1,000 documents of 25 kB as in Absalyamov et al. (ADMS 2013), queries of
10 nodes and 3 splits with ``*`` and ``//`` at 10 %.

Kernels are timed between CUDA events with events and twigs on the device; ``all`` is the clock's time from parsed
events in host memory to matches in host memory, transfers and all. ``cpu`` is ours on as many threads as said, on the
same machine, after it has seen these documents, ``fresh`` when it has not. Results are compared first. The breaking
point is the number of queries up to which a kernel keeps nine tenths of its best speed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora, line_chart
from polars_tadoc.engine.choose import CPU, GPU
from polars_tadoc.twig.events import parse_documents

BATCHES = [500, 1000]
SIZE = 25_000
COUNTS = [1 << power for power in range(5, 15)]
KEPT = 0.9
SLOW = 1.0
"""Seconds from which the CPU runs once."""


def write(folder: Path) -> None:
    """Write documents and queries."""
    from benchmarks import dblp
    from benchmarks.twig_queries import Sample, Shape

    folder.mkdir(parents=True, exist_ok=True)
    documents = dblp.documents(max(BATCHES), SIZE)
    pl.DataFrame({"text": documents}).write_parquet(folder / "documents.parquet", compression_level=19)
    drawn = Sample(documents[:60]).draw(COUNTS[-1], Shape(10, 3, 0.1, 0.1), seed=1)
    (folder / "queries.json").write_text(json.dumps(drawn.queries), "utf-8")


def measure(text: pl.Series, queries: dict[str, str], threads: int, repeat: int) -> dict[str, Any]:
    """Time all ways over some documents and queries; megabytes of XML a second."""
    import cupy

    from benchmarks.gpu_sequences import device_ms, wall_ms
    from polars_tadoc.engine import cuda
    from polars_tadoc.kernels.twigs.twigs_cuda import TWIG_KERNELS

    compiled = tadoc.TwigSet(queries)._compiled()
    start = time.perf_counter()
    parsed = parse_documents(text, compiled.alphabet, max_depth=10_000, max_bytes=1 << 30)
    parse = time.perf_counter() - start
    host, device = CPU.kernels.load_events(parsed.events), GPU.kernels.load_events(parsed.events)
    matchers = {kernel: cuda.TwigMatcher(compiled.twigs, kernel) for kernel in TWIG_KERNELS}
    with tadoc.Config(threads=threads):
        own = compiled.matcher(CPU)
        start = time.perf_counter()
        expected = own.match(host)
        fresh = time.perf_counter() - start
        rounds = 1 if fresh > SLOW else repeat
        warm = wall_ms(lambda: own.match(host), rounds)
    for kernel, matcher in matchers.items():
        if any(not bool((cupy.asnumpy(a) == b).all()) for a, b in zip(matcher.match(device), expected, strict=True)):
            raise SystemExit(f"{kernel}, {len(queries)} queries: WRONG")

    def whole() -> Any:
        return [array.get() for array in compiled.matcher(GPU).match(GPU.kernels.load_events(parsed.events))]

    size = int(text.str.len_bytes().sum())
    runs: dict[str, Callable[[], Any]] = {name: lambda m=m: m.match(device) for name, m in matchers.items()}
    taken = device_ms(runs, repeat)
    taken |= {"all": wall_ms(whole, repeat), "cpu": warm, "fresh": 1e3 * fresh, "parse": 1e3 * parse}
    taken["load"] = wall_ms(lambda: (GPU.kernels.load_events(parsed.events), cupy.cuda.Device().synchronize()), repeat)
    return {
        "documents": len(text),
        "queries": len(queries),
        "true": len(expected[1]) / len(text) / len(queries),
        **{name: size / 1e3 / ms for name, ms in taken.items()},
    }


def breaking_points(rows: list[dict[str, Any]], kernels: list[str]) -> dict[tuple[str, int], int]:
    """Find the number of queries up to which each kernel keeps its speed, by kernel and batch."""
    found = {}
    for kernel in kernels:
        for batch in BATCHES:
            speeds = {row["queries"]: row[kernel] for row in rows if row["documents"] == batch}
            least = KEPT * max(speeds.values())
            found[kernel, batch] = max(count for count, speed in speeds.items() if speed >= least)
    return found


def draw(rows: list[dict[str, Any]], kernels: list[str], title: str) -> str:
    """Draw throughput against number of queries."""
    points = breaking_points(rows, kernels)
    lines, marks = {}, {}
    for way in [*kernels, "all", "cpu"]:
        for batch in BATCHES if way in kernels else BATCHES[-1:]:
            label = f"{way}, {batch:,} documents"
            lines[label] = [(row["queries"], row[way]) for row in rows if row["documents"] == batch]
            if (way, batch) in points:
                marks[label] = points[way, batch]
    return line_chart.draw(title, "queries of 10 nodes", "MB/s", lines, marks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="write documents and queries")
    parser.add_argument("--draw", type=Path, nargs=2, metavar=("TIMES", "CHART"), help="draw kept times")
    parser.add_argument("--out", type=Path, help="keep times as JSON")
    parser.add_argument("--threads", type=int, default=min(2, len(os.sched_getaffinity(0))), help="of the CPU engine")
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    if args.write:
        return write(args.write)
    if args.draw:
        kept = json.loads(args.draw[0].read_text("utf-8"))
        args.draw[1].write_text(draw(kept["rows"], kept["kernels"], kept["title"]), "utf-8")
        return None
    import cupy

    from polars_tadoc.kernels.twigs.twigs_cuda import TWIG_KERNELS

    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"machine: {corpora.machine()}; {name}, CuPy {cupy.__version__}; CPU on {args.threads} threads; MB/s of XML")
    documents = pl.read_parquet(args.folder / "documents.parquet")["text"]
    queries = list(json.loads((args.folder / "queries.json").read_text("utf-8")).items())
    kernels, rows = list(TWIG_KERNELS), []
    measure(documents.head(20), dict(queries[:32]), args.threads, 1)  # compiled
    ways = [*kernels, "all", "load", "cpu", "fresh", "parse"]
    print(f"{'documents':>9}{'queries':>9}{'true':>6}" + "".join(f"{way:>12}" for way in ways) + "   times the CPU")
    for batch in BATCHES:
        for count in COUNTS:
            row = measure(documents.head(batch), dict(queries[:count]), args.threads, args.repeat)
            rows.append(row)
            ratios = ", ".join(f"{way} {row[way] / row['cpu']:.1f}" for way in [*kernels, "all"])
            print(f"{batch:9,}{count:9,}{row['true']:6.0%}" + "".join(f"{row[way]:12,.0f}" for way in ways), end="")
            print(f"   {ratios}", flush=True)
    for (kernel, batch), count in breaking_points(rows, kernels).items():
        print(f"breaking point: {kernel}, {batch:,} documents: {count:,} queries")
    mean = statistics.geometric_mean(row[kernels[0]] / row["cpu"] for row in rows)
    print(f"{kernels[0]}: {mean:.1f} times the CPU (geometric mean)")
    if args.out:
        kept = {"title": f"Twig queries over XML on one {name}", "kernels": kernels, "rows": rows}
        args.out.write_text(json.dumps(kept), "utf-8")
    return None


if __name__ == "__main__":
    main()
