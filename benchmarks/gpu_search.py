r"""Ranked queries and decoding on a GPU: ``python -m benchmarks.gpu_search [--out times.json]``.

Decoding: documents and counts of one list, postings per second, for lists of 2^16 to 2^26. Queries: a batch of 10,000
of 2 to 4 words over a real collection, top 10, any word and all words, beside our own CPU kernel on one thread in the
same run: the time of the device (between CUDA events, queries resident; where all words are needed, the host's
planning in between counts), and the whole call from queries in host memory to results in host memory. Single queries
over 25 million documents: lists of 3.7 million postings together, as long as GOV2's on average. Results are compared
bit by bit before anything is timed; times are medians.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import cupy
import numpy as np

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.search import Collection, passages
from polars_tadoc.engine import cpu, cuda
from polars_tadoc.kernels.postings import coded_postings_cuda as coded_postings
from polars_tadoc.kernels.postings import encode_cpu as coding
from polars_tadoc.kernels.postings.coded import BLOCK, PFORDELTA, RICE, Postings, Queries
from polars_tadoc.kernels.primitives.primitives_cuda import exclusive_scan
from polars_tadoc.runtime.device import with_headers

CODECS = {"pfordelta": PFORDELTA, "rice": RICE}
LENGTHS = [1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26]
MEAN_GAP = 8
QUERIES = 10_000
K = 10
DELAY_NS = 1_000_000
LARGE = 25_000_000
LARGE_LISTS = [100_000, 400_000, 1_000_000, 2_200_000]


@cache
def _delay() -> Any:
    text = (corpora.ROOT / "benchmarks" / "histogram.cu").read_text("utf-8")
    return cupy.RawModule(code=with_headers(text), options=("-std=c++17",)).get_function("delay")


def device_seconds(call: Callable[[], Any], repeat: int) -> float:
    """Median seconds between events around a call; what the call launches waits in the queue before they start."""
    pairs = []
    for _ in range(repeat + 2):
        pair = cupy.cuda.Event(), cupy.cuda.Event()
        _delay()((1,), (1,), (np.uint64(DELAY_NS),))
        pair[0].record()
        call()
        pair[1].record()
        pairs.append(pair)
    cupy.cuda.get_current_stream().synchronize()
    return statistics.median(cupy.cuda.get_elapsed_time(*pair) for pair in pairs[2:]) / 1e3


def wall_seconds(call: Callable[[], Any], repeat: int) -> float:
    """Median seconds of the host's clock; the call waits for its result."""
    taken = []
    for _ in range(repeat + 1):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[1:])


def random_list(random: np.random.Generator, size: int, mean_gap: float) -> Any:
    """Documents of a list, with gaps as random documents have them."""
    return (np.cumsum(random.geometric(1 / mean_gap, size)) - 1).astype(np.uint32)


def decode(codec: str, size: int, repeat: int) -> dict[str, Any]:
    """Time the decoding of one list."""
    random = np.random.default_rng(size)
    documents = random_list(random, size, MEAN_GAP)
    counts = random.geometric(0.6, size).astype(np.uint32)
    postings = coding.encode(CODECS[codec], int(documents[-1]) + 1, np.array([0, size], np.int64), documents, counts)
    resident = cuda.load_postings(postings)
    _, got, got_counts = cuda.decode_lists(resident, np.zeros(1, np.uint32))
    np.testing.assert_array_equal(cuda.to_host(got), documents)
    np.testing.assert_array_equal(cuda.to_host(got_counts), counts)
    numbers = cupy.zeros(1, np.uint32)
    offsets = exclusive_scan(cupy.asarray(np.array([size], np.uint32)))
    blocks = exclusive_scan(cupy.asarray(np.array([-(-size // BLOCK)], np.uint32)))

    def together() -> None:  # several decodings to one pair of events, so that the gaps between launches do not count
        for _ in range(10):
            coded_postings.decode_into(resident, numbers, offsets, blocks, got, got_counts)

    seconds = device_seconds(together, repeat) / 10
    nbytes = sum(array.nbytes for stream in (postings.gaps, postings.counts) for array in stream)
    return {"codec": codec, "postings": size, "seconds": seconds, "per_second": size / seconds, "bytes": nbytes}


def draw_queries(collection: Collection, evenly: bool) -> list[list[int]]:
    """Draw queries of 2 to 4 distinct words: those of a random document, or of the vocabulary."""
    random = np.random.default_rng(7)
    words, documents = collection.words["number"].to_numpy(), collection.words["document"].to_numpy()
    starts = np.searchsorted(documents, np.arange(collection.documents + 1))
    chosen: list[list[int]] = []
    while len(chosen) < QUERIES:
        size = int(random.integers(2, 5))
        document = int(random.integers(collection.documents))
        held = words[starts[document] : starts[document + 1]]
        own = {int(word) for word in (random.integers(0, len(collection.vocabulary), 8) if evenly else held)}
        if len(own) >= size:
            chosen.append([int(word) for word in random.permutation(sorted(own))[:size]])
    return chosen


def on_device(queries: Queries) -> Queries:
    return Queries(*map(cupy.asarray, queries))


def to_host(result: Any) -> Any:
    return tuple(map(cuda.to_host, result))


def search_batch(
    label: str, postings: Postings, norms: Any, queries: Queries, bounds: Any, require_all: bool, repeat: int
) -> dict[str, Any]:
    """Time a batch on the CPU, on the device, and from host to host."""
    resident, resident_norms = cuda.load_postings(postings), cuda.load_array(norms)
    there = on_device(queries)
    expected = cpu.search(postings, norms, None, queries, K, require_all)
    for one, other in zip(
        expected, to_host(cuda.search(resident, resident_norms, None, queries, K, require_all)), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    count = len(queries.offsets) - 1
    with tadoc.Config(threads=1):
        on_cpu = wall_seconds(lambda: cpu.search(postings, norms, bounds, queries, K, require_all), 3)
    return {
        "queries": label,
        "mode": "AND" if require_all else "OR",
        "count": count,
        "cpu": on_cpu / count,
        "device": device_seconds(lambda: cuda.search(resident, resident_norms, None, there, K, require_all), repeat)
        / count,
        "whole": wall_seconds(
            lambda: to_host(cuda.search(resident, resident_norms, None, queries, K, require_all)), repeat
        )
        / count,
    }


def collection_rows(name: str, repeat: int) -> Iterator[dict[str, Any]]:
    """Time batches over a collection."""
    collection = Collection(passages(*corpora.load(name)))
    offsets, documents, counts = collection.lists
    for codec in CODECS:
        postings = coding.encode(CODECS[codec], collection.documents, offsets, documents, counts)
        bounds = cpu.block_bounds(postings, collection.norms)
        np.testing.assert_array_equal(
            bounds, cuda.to_host(cuda.block_bounds(cuda.load_postings(postings), cuda.load_array(collection.norms)))
        )
        for evenly in (False, True):
            drawn = draw_queries(collection, evenly)
            mean = np.mean([sum(collection.frequencies[word] for word in query) for query in drawn])
            kind = "vocabulary" if evenly else "documents"
            label = f"{name}, {collection.documents:,} documents, words of {kind}, {mean:,.0f} postings, {codec}"
            for require_all in (False, True):
                queries = collection.coded(drawn)
                read = None if require_all else bounds
                yield search_batch(label, postings, collection.norms, queries, read, require_all, repeat)


def large_rows(repeat: int) -> Iterator[dict[str, Any]]:
    """Time single queries over very many documents."""
    random = np.random.default_rng(1)
    held = [random_list(random, size, LARGE / size) for size in LARGE_LISTS]
    held = [documents[documents < LARGE] for documents in held]
    offsets = np.cumsum([0, *map(len, held)]).astype(np.int64)
    counts = random.geometric(0.6, int(offsets[-1])).astype(np.uint32)
    norms = (0.4 + random.random(LARGE)).astype(np.float32)
    queries = Queries(
        np.array([0, len(held)], np.int64), np.arange(len(held), dtype=np.uint32), np.array([7, 5, 4, 3], np.float32)
    )
    for codec in CODECS:
        postings = coding.encode(CODECS[codec], LARGE, offsets, np.concatenate(held), counts)
        bounds = cpu.block_bounds(postings, norms)
        for require_all in (False, True):
            label = f"one, {LARGE:,} documents, {int(offsets[-1]):,} postings, {codec}"
            read = None if require_all else bounds
            yield search_batch(label, postings, norms, queries, read, require_all, repeat)


def report(row: dict[str, Any]) -> None:
    if "codec" in row:
        print(
            f"{row['codec']:10} 2^{row['postings'].bit_length() - 1}  {row['seconds'] * 1e6:9.1f} us  "
            f"{row['per_second'] / 1e9:7.1f} G postings/s  {8 * row['bytes'] / row['postings']:5.2f} bits each"
        )
        return
    print(f"{row['queries']}, {row['mode']}:")
    for what in ("cpu", "device", "whole"):
        print(
            f"    {what:6} {row[what] * row['count'] * 1e3:9.3f} ms  {1 / row[what]:12,.0f} queries/s  "
            f"{row['cpu'] / row[what]:7.1f} x CPU"
        )


def main() -> None:
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--out", type=Path, help="where the times go as JSON")
    args = parser.parse_args()
    name = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.Device().id)["name"].decode()
    print(f"machine: {name}; {corpora.machine()}")
    rows = []
    given = args.corpora or ["prose_books"]
    for row in chain(
        (decode(codec, size, args.repeat) for codec in CODECS for size in LENGTHS),
        (row for corpus in given for row in collection_rows(corpus, args.repeat)),
        large_rows(args.repeat),
    ):
        rows.append(row)
        report(row)
    if args.out:
        args.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
