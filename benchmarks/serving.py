"""How many queries a second can be served within half a second: by the GPU, by the CPU, by both.

    python -m benchmarks.serving --measure table.json [--engine gpu] [--documents 25200000]
    python -m benchmarks.serving --fit table.json …
    python -m benchmarks.serving --simulate table.json
    python -m benchmarks.serving --serve [--engine gpu] [--device-cache 1000000000]
    python -m benchmarks.serving --burst or [--engine gpu]

``--measure`` times the queries of ``benchmarks.gov2`` one by one and in batches, on one CPU thread and on the GPU, and
in larger batches as a server's threads run them, on all CPU threads. ``--fit`` fits what the scheduler predicts by to
such a table and prints it for ``polars_tadoc/index/costs.py``. ``--simulate`` lets the scheduler that the server uses
serve queries that come at random (a Poisson process), where each takes as long as it was measured to: the largest rate
at which at most 1 % come later than the deadline or are given up, as in section 9 of Ding et al., WWW 2009. "Better"
gives each query to the engine that is predicted to be faster, and nobody steals. ``--serve`` looks for the same rates
on the real server, on this machine. ``--burst`` asks many queries at once, by each engine and by both, in turns.
"""

from __future__ import annotations

import argparse
import heapq
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

import polars_tadoc as tadoc
from benchmarks import corpora, gov2
from benchmarks.strategies import Measured, fit
from polars_tadoc.config import one_thread, thread_count
from polars_tadoc.engine.choose import choose
from polars_tadoc.index.documents import Documents
from polars_tadoc.index.index import Index
from polars_tadoc.index.query.analyzer import Analyzer
from polars_tadoc.index.query.costs import BATCH_SECONDS, COSTS, CROWDING, OVERHEADS, features_of, predict, together
from polars_tadoc.index.query.find import find
from polars_tadoc.index.query.plan import plan
from polars_tadoc.index.query.request import Request
from polars_tadoc.index.query.results import as_frame
from polars_tadoc.index.segment import Segment
from polars_tadoc.index.serve.scheduler import Scheduler, Traits
from polars_tadoc.kernels.postings.coded import PFORDELTA, Queries
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.vocabulary import Vocabulary

DEADLINE = 0.5
LATE = 0.01
"""Share of queries that may be late."""
GROUP, LARGE = 16, 160
"""Queries of batches that are measured: on one CPU thread, and on all."""

Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]
SCORING = Request.of(gov2.K, "or", "lucene", *gov2.K1_AND_B, 0.5).scoring


def make_index(collection: gov2.Collection) -> tuple[Index, list[str]]:
    """Return an index of the collection, whose words are the numbers of lists, and the queries as texts."""
    names = [f"w{number:06d}" for number in range(len(collection.postings.frequencies))]
    segment = Segment(Vocabulary(pa.array(names, pa.large_string())), collection.postings, collection.lengths)
    ids = pl.Series("id", np.arange(segment.size, dtype=np.uint32))
    index = Index((segment,), Analyzer(Tokenizer("words")), Documents(ids, False, segment.size), "pfordelta")
    offsets, lists = collection.queries.offsets, collection.queries.lists
    return index, [" ".join(names[t] for t in lists[start:stop]) for start, stop in pairwise(offsets.tolist())]


def run(index: Index, texts: list[str], mode: str, engine: str) -> Callable[[], pl.DataFrame]:
    """Prepare a batch as a server does; what is returned does what a server's thread does."""
    planned = plan(index, pl.Series(texts), SCORING, "submit")
    request = Request(gov2.K, mode, SCORING)
    resolved = choose(engine, 0)
    return lambda: as_frame(index.stored, find(index, planned, request, [None], resolved))


def clock(call: Callable[[], object], repeat: int = 2) -> float:
    """Return the seconds of a call, the best of some."""
    taken = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return min(taken)


def measure(index: Index, collection: gov2.Collection, texts: list[str], engines: list[str]) -> dict[str, Any]:
    """Time every query on every engine; seconds."""
    queries = collection.queries
    frequencies = [
        collection.postings.frequencies[queries.lists[start:stop]].tolist()
        for start, stop in pairwise(queries.offsets.tolist())
    ]
    table: dict[str, Any] = {"documents": index.documents, "threads": thread_count(), "frequencies": frequencies}
    table["machine"] = corpora.machine()
    for mode in ("and", "or"):
        for engine in engines:
            calls = [run(index, [text], mode, engine) for text in texts]
            for call in calls[:20]:
                call()
            with one_thread():
                alone = [clock(call) for call in calls]
            row: dict[str, Any] = {"alone": alone}
            groups = [texts[first : first + GROUP] for first in range(0, len(texts), GROUP)]
            with one_thread():
                row["groups"] = [clock(run(index, group, mode, engine)) for group in groups]
            row["large"] = [
                clock(run(index, texts[first : first + LARGE], mode, engine)) for first in range(0, len(texts), LARGE)
            ]
            row["crowded"] = thread_count() * sum(row["large"]) / sum(row["groups"]) if engine == "cpu" else 1.0
            table[f"{engine} {mode}"] = row
            together = 1e3 * sum(row["groups"]) / len(texts)
            print(
                f"{engine} {mode}: {1e3 * statistics.fmean(alone):.3f} ms alone, {together:.3f} "
                f"in batches of {GROUP}, {1e3 * sum(row['large']) / len(texts):.3f} of {LARGE} on all threads, "
                f"{row['crowded']:.2f} times as long while all threads are busy",
                flush=True,
            )
    if "gpu" in engines:
        table["moved"] = moving(index, collection.queries)
        print(f"{table['moved']:.3f} ns for a byte that is brought to the device", flush=True)
    return table


def moving(index: Index, queries: Queries) -> float:
    """Return the nanoseconds that a byte takes to the device when lists are brought there one by one."""
    segment = index.segments[0]
    cache = choose("gpu", 0).kernels.resident_postings(segment.postings, segment.nbytes // 4)
    moved, taken = 0, 0.0
    for number in range(len(queries.offsets) - 1):
        query = gov2.one(queries, number)
        missing = query.lists[~cache.is_resident(query.lists)]
        start = time.perf_counter()
        list(cache.bring(query))
        if len(missing):
            taken += time.perf_counter() - start
            moved += int(segment.postings.frequencies[missing].sum(dtype=np.int64))
    return 1e9 * taken / (moved * segment.nbytes / segment.posting_count)


TERMS = {
    "and": ["calls", "queries", "lists", "candidates", "blocks"],
    "or": ["calls", "queries", "lists", "postings", "shorter", "spread"],
}
"""Features that costs are fitted to."""


def fit_costs(tables: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, float]]:
    """Return costs and overheads fitted to tables; prints how far off they are."""
    costs: dict[str, Any] = {}
    overheads: dict[str, list[float]] = {}
    for engine, (mode, terms) in product(("cpu", "gpu"), TERMS.items()):
        if any(f"{engine} {mode}" not in table for table in tables):
            continue
        measured = [case for table in tables for case in cases(table, engine, mode, terms)]
        fitted = fit(measured, mode, terms)
        ratios = [sum(fitted.get(t, 0) * q[t] for t in terms) / (1e6 * taken[mode]) for q, taken in measured]
        print(f"{engine} {mode}: off by {statistics.median(max(r, 1 / r) for r in ratios):.2f} times in the median")
        overheads.setdefault(engine, []).append(1e-9 * fitted.pop("calls", 0.0))
        costs.setdefault(engine, {})[mode] = fitted
    for engine in costs:
        costs[engine]["all"] = {"moved": float(f"{tables[-1]['moved']:.3g}")} if engine == "gpu" else {}
    return costs, {engine: float(f"{statistics.fmean(seconds):.2g}") for engine, seconds in overheads.items()}


def cases(table: dict[str, Any], engine: str, mode: str, terms: list[str]) -> Measured:
    """Return features and milliseconds of queries that ran alone, and in batches, which count as much."""
    row = table[f"{engine} {mode}"]
    arrays = features_of(*lists_of(table), table["documents"])[mode]
    features = [
        {**{term: float(own[query]) for term, own in arrays.items()}, "calls": 1.0}
        for query in range(len(table["frequencies"]))
    ]
    measured: Measured = [(own, {mode: 1e3 * seconds}) for own, seconds in zip(features, row["alone"], strict=True)]
    for number, seconds in enumerate(row["groups"]):
        group = features[number * GROUP : (number + 1) * GROUP]
        sums = {term: sum(own[term] for own in group) for term in terms}
        measured += len(group) * [({**sums, "calls": 1.0}, {mode: 1e3 * seconds})]
    return measured


def lists_of(table: dict[str, Any]) -> tuple[Int64, Int64]:
    """Return the lists' frequencies of all queries, and where each query's start."""
    sizes = table["frequencies"]
    return np.cumsum([0, *map(len, sizes)]), np.array([size for own in sizes for size in own], np.int64)


@dataclass(frozen=True)
class Times:
    """Seconds by query and engine, on one CPU thread, measured and predicted, beside what a batch takes anyway."""

    measured: dict[str, Float64]
    predicted: list[dict[str, float]]
    threads: int


def times_of(table: dict[str, Any], mode: str) -> Times:
    """Take a mode's times from a table: what a query adds to a batch is its share of the batches measured."""
    documents, measured = table["documents"], {}
    lists = lists_of(table)
    for engine in ("cpu", "gpu"):
        if mode == "and_or":
            few = together(*lists, documents) < gov2.K
            first, second = (times_of(table, one).measured[engine] for one in ("and", "or"))
            measured[engine] = first + few * second
            continue
        row = table[f"{engine} {mode}"]
        alone = np.array(row["alone"])
        shares = np.empty(len(alone))
        for number, seconds in enumerate(row["groups"]):
            own = slice(number * GROUP, (number + 1) * GROUP)
            shares[own] = max(seconds - OVERHEADS[engine], 1e-6) * alone[own] / alone[own].sum()
        measured[engine] = shares
    both = [predict(engine, mode, *lists, documents, gov2.K).tolist() for engine in measured]
    predicted = [dict(zip(measured, seconds, strict=True)) for seconds in zip(*both, strict=True)]
    return Times(measured, predicted, table["threads"])


POLICIES = ("gpu", "cpu", "better", "both")
_MAX_ARRIVALS = 150_000


def share_late(times_: Times, policy: str, rate: float, seconds: float = 3.0, seed: int = 1) -> float:
    """Serve a stream of queries by the measured times; return the share that is late or given up."""
    random = np.random.default_rng(seed)
    count = min(max(200, int(rate * seconds)), _MAX_ARRIVALS)
    arrivals = np.cumsum(random.exponential(1 / rate, count)).tolist()
    chosen = random.integers(0, len(times_.predicted), count).tolist()
    threads = times_.threads if policy == "cpu" else max(1, times_.threads - 2)
    traits = {
        "cpu": Traits(threads / CROWDING if threads > 1 else 1.0, OVERHEADS["cpu"], BATCH_SECONDS["cpu"]),
        "gpu": Traits(1.0, OVERHEADS["gpu"], BATCH_SECONDS["gpu"]),
    }
    engines = [policy] if policy in traits else ["cpu", "gpu"]
    if policy == "both":
        schedulers = dict.fromkeys(engines, Scheduler[int](traits))
    else:
        schedulers = {engine: Scheduler[int]({engine: traits[engine]}) for engine in engines}
    idle = dict.fromkeys(engines, True)
    ends: list[tuple[float, str]] = []
    late = 0

    def feed(now: float) -> int:
        missed, again = 0, True
        while again:
            again = False
            for engine in engines:
                while idle[engine]:
                    work = schedulers[engine].take(engine, now)
                    missed += len(work.missed)
                    again |= work.moved > 0
                    if not work.keys:
                        break
                    idle[engine] = False
                    own = [float(times_.measured[engine][chosen[query]]) for query in work.keys]
                    end = now + traits[engine].lasts(sum(own), max(own))
                    missed += sum(end > arrivals[query] + DEADLINE for query in work.keys)
                    heapq.heappush(ends, (end, engine))
        return missed

    for number, now in enumerate(arrivals):
        while ends and ends[0][0] <= now:
            end, engine = heapq.heappop(ends)
            idle[engine] = True
            late += feed(end)
        predicted = times_.predicted[chosen[number]]
        best = min(engines, key=lambda engine: OVERHEADS[engine] + predicted[engine] / traits[engine].threads)
        schedulers[best].add(number, predicted, now + DEADLINE)
        late += feed(now)
    while ends:
        end, engine = heapq.heappop(ends)
        idle[engine] = True
        late += feed(end)
    return late / count


def sustained(late: Callable[[float], float], start: float, precision: float = 0.03, growth: float = 2.0) -> float:
    """Return the largest rate at which few enough are late, by growing and halving."""
    low, high = 0.0, start
    while late(high) <= LATE:
        low, high = high, growth * high
    while high - low > precision * high and high > 1:
        middle = (low + high) / 2
        low, high = (middle, high) if late(middle) <= LATE else (low, middle)
    return low


def simulate(table: dict[str, Any]) -> None:
    """Print the sustained rates of all policies."""
    print(f"simulated, {table['threads']} CPU threads and a GPU: queries a second, at most 1 % beyond {DEADLINE} s")
    print(f"{'':8}" + "".join(f"{policy:>10}" for policy in POLICIES))
    for mode in gov2.PAPER:
        times_ = times_of(table, mode)
        rates = [sustained(lambda rate, p=policy: share_late(times_, p, rate), 100.0) for policy in POLICIES]  # type: ignore[misc] # noqa: B023
        print(f"{mode:8}" + "".join(f"{rate:10.0f}" for rate in rates), flush=True)


def served_late(index: Index, texts: list[str], mode: str, engine: str, rate: float, seconds: float) -> float:
    """Ask a real server at a rate; return the share that is late or given up."""
    random = np.random.default_rng(int(rate))
    arrivals = np.cumsum(random.exponential(1 / rate, max(50, int(rate * seconds))))
    chosen = random.integers(0, len(texts), len(arrivals))
    k1, b = gov2.K1_AND_B
    with index.serve(k=gov2.K, mode=mode, deadline=DEADLINE, engine=engine, k1=k1, b=b) as server:
        start = time.perf_counter()
        for arrival, query in zip(arrivals, chosen, strict=True):
            ahead = arrival - (time.perf_counter() - start)
            if ahead > 0:
                time.sleep(ahead)
            server.submit(texts[query])
        behind = time.perf_counter() - start - arrivals[-1]
    done = server.statistics()
    share = (done.late + done.missed) / len(arrivals)
    print(
        f"  {engine} {mode} at {rate:.0f}/s: {100 * share:.2f} % late; {done.answered}, stolen {done.stolen}, "
        f"p50 {1e3 * done.latency['p50']:.1f} ms, p99 {1e3 * done.latency['p99']:.1f} ms, asked {behind:.2f} s late",
        flush=True,
    )
    return 1.0 if behind > DEADLINE else share


def serve(
    index: Index, texts: list[str], mode: str, engines: list[str], threads: int, args: argparse.Namespace
) -> None:
    """Print the sustained rates of the real server."""
    for engine in [*engines[::-1], "auto"] if len(engines) > 1 else engines:
        with tadoc.Config(threads=threads):
            rate = sustained(
                lambda rate, e=engine: served_late(index, texts, mode, e, rate, args.seconds),  # type: ignore[misc]
                *(args.start, 0.05, 1.5),
            )
            print(f"served by {engine}, {thread_count()} CPU threads, {mode}: {rate:.0f} queries/s", flush=True)


def burst(index: Index, texts: list[str], mode: str, engines: list[str], count: int, rounds: int = 5) -> None:
    """Print the rates at which queries that are all asked at once are answered, by engines in turns."""
    contenders = [*engines, "auto"] if len(engines) > 1 else engines
    chosen = [texts[number] for number in np.random.default_rng(1).integers(0, len(texts), count)]
    k1, b = gov2.K1_AND_B
    rates: dict[str, list[float]] = {engine: [] for engine in contenders}
    for _, engine in product(range(rounds), contenders):
        with index.serve(k=gov2.K, mode=mode, engine=engine, k1=k1, b=b) as server:
            start = time.perf_counter()
            futures = [server.submit(query) for query in chosen]
            for future in futures:
                future.exception()
            rates[engine].append(count / (time.perf_counter() - start))
        print(f"  {engine} {mode}: {rates[engine][-1]:.0f}/s; {server.statistics().answered}", flush=True)
    median = {engine: statistics.median(own) for engine, own in rates.items()}
    best = max(median[engine] for engine in engines)
    shown = ", ".join(f"{engine} {rate:.0f}" for engine, rate in median.items())
    print(f"{mode}, {count} at once, queries/s: {shown}; auto by the better: {median.get('auto', best) / best:.3f}")


def main() -> None:
    parser = gov2.arguments(__doc__ or "")
    parser.add_argument("--measure", type=Path, help="write a table of times")
    parser.add_argument("--fit", type=Path, nargs="+", help="fit costs to tables, and use them in what follows")
    parser.add_argument("--simulate", type=Path, help="serve by the times of a table")
    parser.add_argument("--serve", nargs="*", choices=list(gov2.PAPER), help="modes to serve on this machine")
    parser.add_argument("--burst", nargs="*", choices=list(gov2.PAPER), help="modes of queries asked at once")
    parser.add_argument("--asked", type=int, default=20_000, help="queries of --burst")
    parser.add_argument("--serve-after", nargs="*", choices=list(gov2.PAPER), help="modes to serve after measuring")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each try of --serve")
    parser.add_argument("--start", type=float, default=400.0, help="queries a second that --serve tries first")
    parser.add_argument("--threads", type=int, nargs="+", default=[0], help="of the CPU that serve; 0 is one a core")
    parser.add_argument("--device-cache", type=int, help="bytes of the device's cache")
    args = parser.parse_args()
    if args.device_cache:
        tadoc.Config.set(device_cache_bytes=args.device_cache)
    engines = ["cpu", "gpu"][: 1 + (args.engine == "gpu")]
    if args.measure or args.serve or args.serve_after or args.burst:
        gov2.make_collection(1000, 2, PFORDELTA, args.seed)  # compiles
        collection = gov2.make_collection(args.documents, args.queries, PFORDELTA, args.seed)
        print(corpora.machine(), gov2.describe(collection), sep="\n", flush=True)
        index, texts = make_index(collection)
    for mode, threads in product(args.serve or [], args.threads):
        serve(index, texts, mode, engines, threads, args)
    for mode in args.burst or []:
        burst(index, texts, mode, engines, args.asked)
    if args.measure:
        args.measure.write_text(json.dumps(measure(index, collection, texts, engines)))
    for mode in args.serve_after or []:
        serve(index, texts, mode, engines, args.threads[0], args)
    if args.fit:
        costs, overheads = fit_costs([json.loads(path.read_text()) for path in args.fit])
        COSTS.update(costs)
        OVERHEADS.update(overheads)
        print(f"COSTS = {json.dumps(costs, indent=4)}\nOVERHEADS = {json.dumps(overheads)}")
        rows = [row for row in (json.loads(path.read_text()).get("cpu or") for path in args.fit) if "large" in row]
        print(f"CROWDING = {statistics.fmean(row['crowded'] for row in rows):.2f}" if rows else "")
    if args.simulate:
        simulate(json.loads(args.simulate.read_text()))


if __name__ == "__main__":
    main()
