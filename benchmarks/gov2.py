"""Times AND and OR over an index of 25 million documents whose lists are as long as those of GOV2 (Ding et al., 2009).

    python -m benchmarks.gov2 [--documents 25200000] [--queries 1000] [--engine gpu] [--out times.json]

The lists are made, not read: GOV2 cannot be passed on. The word of rank r stands in C / (r + 20) documents (Zipf's law
with Mandelbrot's offset), and a query names it in proportion to 1 / (r + 20); a query has two, three or four words
(40, 35 and 25 %: 2.85 on average, like TREC's efficiency topics). C is such that the lists of a query have 3.7 million
postings on average, the paper's figure, for 25.2 million documents; for fewer, in proportion. Gaps are geometric:
documents hold words independently of one another and of their numbers, which is the worst case for gaps and for AND.
Counts are geometric, too, 2 on average; lengths of documents are log-normal. Only the lists that queries name are made.

Every mode is timed one query at a time, as in the paper, and as one batch. The results of some queries are compared
with sums by NumPy over the decoded lists before anything is timed.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

import polars_tadoc as tadoc
from benchmarks import corpora
from polars_tadoc.engine import cpu
from polars_tadoc.engine.choose import choose
from polars_tadoc.kernels.postings.coded import PFORDELTA, RICE, Postings, Queries
from polars_tadoc.kernels.postings.encode_cpu import encode
from polars_tadoc.runtime.parallel import map_parallel

DOCUMENTS = 25_200_000
POSTINGS = 3_700_000
"""Postings in a query's lists on average, in the paper."""
PAPER = {"and": 7.66, "or": 29.31, "and_or": 9.98}
"""Milliseconds per query that the paper gives, on a GeForce 8800 GTS."""
K = 10

_RANKS = 100_000
_MANDELBROT = 20
_TERMS = ([2, 3, 4], [0.40, 0.35, 0.25])
_MAX_COMMON = 0.6  # of the documents hold any one word, at most
_MEAN_LENGTH = 900
K1_AND_B = (1.5, 0.75)

Int64 = npt.NDArray[np.int64]
UInt32 = npt.NDArray[np.uint32]


class Collection(NamedTuple):
    """An index and queries to it, in host memory."""

    postings: Postings
    lengths: UInt32
    norms: npt.NDArray[np.float32]
    queries: Queries


def draw(documents: int, queries: int, seed: int) -> tuple[Int64, Int64, Int64]:
    """Draw queries; return words that they name, how many documents hold each, and each query's, by its place."""
    random = np.random.default_rng(seed)
    chances = 1 / (_MANDELBROT + np.arange(1, _RANKS + 1))
    sizes = random.choice(_TERMS[0], size=queries, p=_TERMS[1])
    running = np.cumsum(chances)
    named = np.empty((queries, max(_TERMS[0])), np.int64)
    for query, size in enumerate(sizes):
        words: set[int] = set()
        while len(words) < size:
            words.add(min(int(np.searchsorted(running, random.random() * running[-1])), _RANKS - 1))
        named[query] = -1
        named[query, :size] = sorted(words, reverse=True)  # the rarest first
    postings = (chances[named] * (named >= 0)).sum(axis=1).mean()
    scale = POSTINGS * documents / DOCUMENTS / postings
    ranks, places = np.unique(named[named >= 0], return_inverse=True)
    wanted = np.minimum(np.ceil(scale * chances[ranks]), _MAX_COMMON * documents).astype(np.int64)
    named[named >= 0] = places
    return ranks, wanted, named


@nb.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _next(state: Any) -> Any:
    """Advance a generator of random 64-bit numbers (splitmix64)."""
    state = state + nb.uint64(0x9E3779B97F4A7C15)
    z = state
    z = (z ^ (z >> nb.uint64(30))) * nb.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> nb.uint64(27))) * nb.uint64(0x94D049BB133111EB)
    return state, z ^ (z >> nb.uint64(31))


@nb.njit(nogil=True, cache=True)  # type: ignore[untyped-decorator]
def _draw_list(seed: int, documents: int, wanted: int, start: int, numbers: UInt32, counts: UInt32, write: bool) -> int:
    """Draw one list and return its length; the same seed gives the same list."""
    state = nb.uint64(seed) * nb.uint64(0xD1342543DE82EF95) + nb.uint64(1)
    scale = 1.0 / math.log1p(-wanted / documents)
    size, document = 0, -1
    while True:
        state, bits = _next(state)
        uniform = (nb.float64(bits >> nb.uint64(11)) + 0.5) * (1.0 / 9007199254740992.0)
        document += 1 + nb.int64(min(math.log(uniform) * scale, 4e9))
        if document >= documents:
            return size
        if write:
            numbers[start + size] = document
            bits = bits & nb.uint64(0x3FF)  # not in the gap
            count = 1
            while bits & nb.uint64(1):
                count += 1
                bits >>= nb.uint64(1)
            counts[start + size] = count
        size += 1


def make_collection(documents: int, queries: int, codec: int, seed: int) -> Collection:
    """Make the lists and the queries; the same arguments give the same ones."""
    ranks, wanted, named = draw(documents, queries, seed)
    places = sorted(range(len(ranks)), key=lambda place: -int(wanted[place]))  # the longest first: threads end alike
    sizes = np.zeros(len(ranks), np.int64)
    none = np.zeros(0, np.uint32)

    def measure(place: int) -> None:
        sizes[place] = _draw_list(seed + int(ranks[place]), documents, wanted[place], 0, none, none, False)

    map_parallel(measure, places)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    numbers, counts = np.empty(offsets[-1], np.uint32), np.empty(offsets[-1], np.uint32)

    def write(place: int) -> None:
        _draw_list(seed + int(ranks[place]), documents, wanted[place], offsets[place], numbers, counts, True)

    map_parallel(write, places)
    lengths = np.random.default_rng(seed).lognormal(math.log(_MEAN_LENGTH) - 0.5, 1.0, documents).astype(np.uint32)
    k1, b = K1_AND_B
    norms = (k1 * (1 - b + b * lengths / lengths.mean())).astype(np.float32)
    return Collection(
        encode(codec, documents, offsets, numbers, counts), lengths, norms, make_queries(named, sizes, documents)
    )


def make_queries(named: Int64, sizes: Int64, documents: int) -> Queries:
    """Weigh the words of queries by Lucene's form of BM25, the shortest list of each first."""
    idf = np.log1p((documents - sizes + 0.5) / (sizes + 0.5)).astype(np.float32)
    lists = [
        sorted((place for place in query if place >= 0), key=lambda place: (sizes[place], place)) for query in named
    ]
    flat = np.array([place for query in lists for place in query], np.uint32)
    return Queries(np.concatenate([[0], np.cumsum([len(query) for query in lists])]).astype(np.int64), flat, idf[flat])


class Side:
    """One engine with the index resident."""

    def __init__(self, kernels: Any, collection: Collection) -> None:
        self.kernels = kernels
        self.postings = kernels.load_postings(collection.postings)
        self.norms = kernels.load_array(collection.norms)
        self.bounds = kernels.block_bounds(self.postings, self.norms)

    def search(self, queries: Queries, require_all: bool) -> list[Any]:
        """Answer queries that stand in host memory; the results stand there, too."""
        loaded = Queries(*map(self.kernels.load_array, queries))
        bounds = None if require_all else self.bounds
        results = self.kernels.search(self.postings, self.norms, bounds, loaded, K, require_all)
        return [self.kernels.to_host(array) for array in results]

    def answer(self, queries: Queries, mode: str) -> list[Any]:
        """Answer queries in a mode; "and_or" is AND, then OR for those that have found fewer than ``K`` documents."""
        results = self.search(queries, mode != "or")
        few = np.flatnonzero(results[0] < K)
        if mode == "and_or" and len(few):
            for array, others in zip(results, self.search(select(queries, few), False), strict=True):
                array[few] = others
        return results


def select(queries: Queries, chosen: Int64) -> Queries:
    """Return the chosen queries."""
    sizes = np.diff(queries.offsets)[chosen]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    places = np.arange(offsets[-1]) + np.repeat(queries.offsets[chosen] - offsets[:-1], sizes)
    return Queries(offsets, queries.lists[places], queries.weights[places])


def one(queries: Queries, number: int) -> Queries:
    """Return one query as a batch."""
    first, last = queries.offsets[number], queries.offsets[number + 1]
    return Queries(np.array([0, last - first]), queries.lists[first:last], queries.weights[first:last])


def expected(collection: Collection, query: Queries, require_all: bool) -> tuple[UInt32, npt.NDArray[np.float32]]:
    """Answer one query by sums over all of its decoded lists."""
    offsets, documents, counts = cpu.decode_lists(collection.postings, query.lists)
    sums, held = np.zeros(len(collection.norms), np.float32), np.zeros(len(collection.norms), np.uint8)
    for i, weight in enumerate(query.weights):
        chosen = documents[offsets[i] : offsets[i + 1]]
        count = counts[offsets[i] : offsets[i + 1]].astype(np.float32)
        sums[chosen] += weight * (count / (count + collection.norms[chosen]))
        held[chosen] += 1
    found = np.flatnonzero(held == len(query.lists) if require_all else held)
    best = np.lexsort((found, -sums[found]))[:K] if len(found) else found
    return found[best].astype(np.uint32), sums[found[best]]


def check(side: Side, collection: Collection, count: int) -> None:
    """Compare the first queries' results with what is expected, to the last bit."""
    for number in range(count):
        query = one(collection.queries, number)
        for mode in ("and", "or"):
            found, documents, scores = (array[0] for array in side.answer(query, mode))
            documents_then, scores_then = expected(collection, query, mode == "and")
            same = np.array_equal(documents[:found], documents_then) and np.array_equal(scores[:found], scores_then)
            if not same or found != len(documents_then):
                raise SystemExit(f"{side.kernels.name}: query {number}, {mode}: WRONG")


def singly(side: Side, queries: Queries, mode: str, count: int) -> list[float]:
    """Time each of the first queries by itself, results in host memory; milliseconds, the better of two runs."""
    taken = []
    for number in range(count):
        query = one(queries, number)
        taken.append(min(_clock(lambda query=query: side.answer(query, mode)) for _ in range(2)))  # type: ignore[misc]
    return taken


def together(side: Side, queries: Queries, mode: str, repeat: int) -> float:
    """Time all queries as one batch; milliseconds per query, the median run's."""
    side.answer(queries, mode)
    return statistics.median(_clock(lambda: side.answer(queries, mode)) for _ in range(repeat)) / _size(queries)


def _clock(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return 1e3 * (time.perf_counter() - start)


def _size(queries: Queries) -> int:
    return len(queries.offsets) - 1


def decode_rate(side: Side, repeat: int) -> float:
    """Return 10^9 postings that are decoded in a second, documents and counts, of the longest lists."""
    host = side.kernels.to_host(side.postings.frequencies)
    longest = np.argsort(host)[::-1][:20].astype(np.uint32)
    lists = side.kernels.load_array(longest)

    def run() -> None:
        *_, counts = side.kernels.decode_lists(side.postings, lists)
        side.kernels.to_host(counts[:1])  # synchronize! the decoding is over

    run()
    return float(host[longest].sum(dtype=np.int64) / min(_clock(run) for _ in range(repeat)) / 1e6)


def describe(collection: Collection) -> str:
    """Say how large the index is."""
    postings, queries = collection.postings, collection.queries
    parts = [*postings.gaps, *postings.counts, postings.heads, postings.block_offsets, postings.frequencies]
    bits = 8 * sum(part.nbytes for part in parts)
    sizes = postings.frequencies.astype(np.int64)
    read = sizes[queries.lists].sum() / _size(queries)
    return (
        f"{postings.documents:,} documents, {len(sizes):,} lists, {sizes.sum():,} postings at {bits / sizes.sum():.2f} "
        f"bits; {_size(queries):,} queries of {len(queries.lists) / _size(queries):.2f} lists, {read:,.0f} postings"
    )


def arguments(description: str) -> argparse.ArgumentParser:
    """Parser with the options of the collection."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--codec", default="pfordelta", choices=["pfordelta", "rice"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", default="cpu", choices=["cpu", "gpu"], help="gpu: the GPU beside the CPU")
    parser.add_argument("--repeat", type=int, default=5, help="runs of a batch")
    parser.add_argument("--cpu-queries", type=int, default=100, help="queries that the CPU answers one by one")
    parser.add_argument("--out", type=Path, help="write all numbers as JSON")
    return parser


def main() -> None:
    args = arguments(__doc__ or "").parse_args()
    print(corpora.machine(), flush=True)
    make_collection(1000, 2, PFORDELTA, args.seed)  # compiles
    start = time.perf_counter()
    collection = make_collection(
        args.documents, args.queries, {"pfordelta": PFORDELTA, "rice": RICE}[args.codec], args.seed
    )
    print(f"{describe(collection)}; {args.codec}, made in {time.perf_counter() - start:.1f} s", flush=True)
    results: dict[str, Any] = {"collection": describe(collection), "machine": corpora.machine()}
    for name in ("cpu", "gpu")[: 1 + (args.engine == "gpu")]:
        start = time.perf_counter()
        side = Side(choose(name, 0).kernels, collection)
        check(side, collection, 5)
        print(f"{name}: loaded, 5 queries checked in {time.perf_counter() - start:.1f} s", flush=True)
        results[name] = measure(side, collection.queries, args)
    print(f"{'ms per query':30}" + "".join(f"{mode:>10}" for mode in PAPER))
    print(f"{'the paper':30}" + "".join(f"{ms:10.2f}" for ms in PAPER.values()))
    for name, rows in results.items():
        if isinstance(rows, dict):
            for row, by_mode in rows.items():
                print(f"{name + ' ' + row:30}" + "".join(f"{ms:10.4f}" for ms in by_mode.values()))
    if args.out:
        args.out.write_text(json.dumps(results, indent=1))


def measure(side: Side, queries: Queries, args: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Time one engine: milliseconds by row and mode."""
    rows: dict[str, dict[str, float]] = {}
    if side.kernels is cpu:
        with tadoc.Config(threads=1):
            print(f"cpu: {decode_rate(side, 3):.2f} G postings/s decoded by one thread", flush=True)
            rows["one by one, one thread"] = {
                mode: statistics.fmean(singly(side, queries, mode, min(args.cpu_queries, _size(queries))))
                for mode in PAPER
            }
    else:
        rows["one by one"] = {mode: statistics.fmean(singly(side, queries, mode, _size(queries))) for mode in PAPER}
    print(f"{side.kernels.name}: {decode_rate(side, 5):.2f} G postings/s decoded", flush=True)
    rows["in a batch"] = {mode: together(side, queries, mode, args.repeat) for mode in PAPER}
    return rows


if __name__ == "__main__":
    main()
