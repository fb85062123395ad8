"""Times sequences and pairs of words on the grammar against the same on uncompressed words, on one GPU.

``python -m benchmarks.gpu_sequences [corpus …] [--out times.json]``. The uncompressed contender has the ranks of all
words on the device, packs every window into a key, and sorts and adds up with the primitives that the compressed one
uses. Results are compared before anything is timed. Milliseconds are medians between CUDA events around a whole call,
contenders in turn; the CPU's are of the clock, on the same machine. ``peak`` is the most device memory in use during
a call of each strategy, rules and documents included, but for 32 MiB, over rules, documents and result.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import cupy
import numpy as np
import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from polars_tadoc.engine import cpu
from polars_tadoc.engine.choose import choose
from polars_tadoc.kernels.keys import keys_cuda as window_keys
from polars_tadoc.kernels.keys import plain_windows_cuda as plain_windows
from polars_tadoc.kernels.sequences import sequences_cuda as sequences
from polars_tadoc.kernels.sequences import window_counts_cuda as window_counts
from polars_tadoc.kernels.sequences import window_postings_cuda as window_postings
from polars_tadoc.kernels.sequences import windows_cuda as windows
from polars_tadoc.kernels.traverse.expand_words_cpu import expand_words
from polars_tadoc.model.kept_columns import split_and_keep
from polars_tadoc.runtime.device import with_headers
from polars_tadoc.traversal.selector import settle
from polars_tadoc.traversal.source import Source, prepare

STRATEGIES = ("top_down", "bottom_up")
ANALYTICS = {
    "sequence_counts": "sequence_count",
    "sequence_postings": "ranked_inverted_index",
    "pair_counts": "cooccurrence",
}
CALLS = [
    ("sequence_counts", 2),
    ("sequence_counts", 3),
    ("sequence_counts", 5),
    ("sequence_postings", 3),
    ("pair_counts", 5),
]


class Peak(cupy.cuda.memory_hook.MemoryHook):  # type: ignore[misc]
    """The most bytes in use at a time."""

    name = "peak"

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        self.held = self.most = 0

    def malloc_postprocess(self, **given: Any) -> None:
        """Count what was taken."""
        self.sizes[given["mem_ptr"]] = given["mem_size"]
        self.held += given["mem_size"]
        self.most = max(self.most, self.held)

    def free_postprocess(self, **given: Any) -> None:
        """Count what was given back."""
        self.held -= self.sizes.pop(given["mem_ptr"], 0)


class Words:
    """The ranks of all words on the device, and where documents start."""

    def __init__(self, host: Source) -> None:
        offsets, words = expand_words(host.rules, host.root_offsets, host.roots)
        starts = np.zeros(len(words) + 32, np.uint8)
        starts[offsets] = 1
        rank = host.rank
        self.ranks = cupy.asarray(rank[words])
        self.starts = cupy.asarray(np.packbits(starts, bitorder="little")[: len(starts) // 32 * 4].view(np.uint32))
        self.documents = cupy.asarray(np.repeat(np.arange(len(offsets) - 1, dtype=np.uint32), np.diff(offsets)))
        self.terminals = len(rank)
        if self.terminals & (self.terminals - 1) == 0:
            raise SystemExit("a vocabulary of a power of two leaves no key for what is no window")

    def _launch(self, kernel: str, *arguments: Any) -> None:
        pack(kernel)(
            (-(-len(self.ranks) // 256),), (256,), (self.ranks, self.starts, np.uint64(len(self.ranks)), *arguments)
        )

    def _windows(self, n: int) -> tuple[Any, Any]:
        packing = window_keys.pack(windows.Kind("windows", n, n - 1), self.terminals, 1)
        keys = cupy.empty((packing.columns, len(self.ranks)), np.uint64)
        sizes = (n, packing.bits, packing.per_column, packing.columns, packing.spare)
        self._launch("pack_windows", *(np.uint32(size) for size in sizes), keys)
        return keys, packing

    def sequence_counts(self, n: int, rank: Any) -> tuple[Any, Any]:
        """Count the runs of n words."""
        return counted(*self._windows(n), rank)

    def pair_counts(self, window: int, rank: Any) -> tuple[Any, Any]:
        """Count the pairs of words at most so many words apart."""
        packing = window_keys.pack(windows.Kind("pairs", 2, window), self.terminals, 1)
        keys = cupy.empty((1, window * len(self.ranks)), np.uint64)
        self._launch("pack_pairs", *(np.uint32(size) for size in (window, packing.bits, packing.spare)), keys)
        return counted(keys, packing, rank)

    def sequence_postings(self, n: int, rank: Any) -> tuple[Any, Any, Any, Any]:
        """Sort windows with their documents, add up equal ones, put each list in order."""
        keys, packing = self._windows(n)
        given = [keys, self.documents.copy()]
        del keys
        distinct, offsets, lists, documents, sums = plain_windows.list_keys(packing, given)
        if int(distinct[0, -1]) == (1 << packing.sorted_bits(0)[0]) - 1:  # of what is no window
            there = int(offsets[-2])
            distinct, offsets = cupy.ascontiguousarray(distinct[:, :-1]), offsets[:-1]
            lists, documents, sums = lists[:there], documents[:there], sums[:there]
        window_postings.order_lists(lists, distinct.shape[1], documents, sums)
        words = window_keys.read_keys(distinct, packing, None, window_keys.words_by_rank(rank))
        return words, offsets, documents, sums


def pack(kernel: str) -> Any:
    """A kernel of ``word_runs.cu``."""
    if kernel not in _kernels:
        text = Path(__file__).with_name("word_runs.cu").read_text("utf-8")
        _kernels[kernel] = cupy.RawModule(code=with_headers(text), options=("-std=c++17",)).get_function(kernel)
    return _kernels[kernel]


_kernels: dict[str, Any] = {}


def counted(keys: Any, packing: Any, rank: Any) -> tuple[Any, Any]:
    """Sort, add up, leave out what is no window, order by count."""
    columns = [keys]
    del keys
    keys, sums = window_keys.sum_entries(columns, packing)
    nothing = (1 << packing.per_column * packing.bits) - 1
    if int(keys[0, -1]) & nothing == nothing:
        keys, sums = cupy.ascontiguousarray(keys[:, :-1]), sums[:-1]
    found = [(keys, sums)]
    del keys, sums
    return window_counts.ranked(found, packing, rank, None)


def device_ms(runs: Mapping[str, Callable[[], Any]], repeat: int) -> dict[str, float]:
    """Median milliseconds between events around each run, in turn."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for round_ in range(repeat + 1):
        for name, run in runs.items():
            start, stop = cupy.cuda.Event(), cupy.cuda.Event()
            start.record()
            run()
            stop.record()
            stop.synchronize()
            if round_:
                taken[name].append(cupy.cuda.get_elapsed_time(start, stop))
    return {name: statistics.median(values) for name, values in taken.items()}


def nbytes(arrays: Any) -> int:
    """Bytes of arrays."""
    return sum(int(array.nbytes) for array in arrays)


def wall_ms(run: Callable[[], Any], repeat: int) -> float:
    """Median milliseconds of the clock, after one run more."""
    run()
    taken = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return 1e3 * statistics.median(taken)


def measure(name: str, text: pl.Series, repeat: int, cpu_repeat: int) -> list[dict[str, Any]]:
    """Time every call on one corpus."""
    column = tadoc.compress(text, lossless=False, engine="gpu")
    (corpus,) = split_and_keep(column, column)
    source, host = prepare(corpus, choose("gpu", 0)), prepare(corpus, choose("cpu", 0))
    words = Words(host)
    print(
        f"{name}: {len(words.ranks):,} words, {corpus.symbol_count / len(words.ranks):.3f} symbols/word, "
        f"vocabulary {words.terminals:,}, rules {source.rules.rule_count:,}, documents {corpus.document_count:,}"
    )
    return [{"corpus": name, **measure_call(source, host, words, *call, repeat, cpu_repeat)} for call in CALLS]


def measure_call(
    source: Source, host: Source, words: Words, call: str, size: int, repeat: int, cpu_repeat: int
) -> dict[str, Any]:
    """Compare the results of one call, then time it."""

    def run(kernels: Any, given: Source, strategy: str) -> Any:
        return getattr(kernels, call)(given.rules, given.root_offsets, given.roots, size, given.rank, strategy)

    chosen, strategy = settle("auto", source, ANALYTICS[call], size)
    told = "words" if chosen is not source else strategy
    runs = {
        "top_down": partial(run, sequences, source, "top_down"),
        "bottom_up": partial(run, sequences, source, "bottom_up"),
        "auto": partial(run, sequences, chosen, strategy),
        "plain": partial(getattr(words, call), size, source.rank),
    }
    expected = [array.get() for array in runs["plain"]()]
    rules = source.rules
    given = nbytes((rules.rule_offsets, rules.symbols, rules.lengths, source.root_offsets, source.roots, source.rank))
    result = nbytes(expected)
    peaks = {}
    for strategy in STRATEGIES:
        with Peak() as peak:
            got = runs[strategy]()
        peaks[strategy] = (given + peak.most - (32 << 20)) / (given + result)
        if not all(np.array_equal(array.get(), right) for array, right in zip(got, expected, strict=True)):
            raise SystemExit(f"{call} {size} {strategy}: WRONG")
        del got
    times = device_ms(runs, repeat)
    if chosen is not source:  # words are numbered by rank there
        expected[0] = source.rank.get()[expected[0]]
    if not all(np.array_equal(array.get(), right) for array, right in zip(runs["auto"](), expected, strict=True)):
        raise SystemExit(f"{call} {size} auto: WRONG")
    best = times["auto"]
    on_cpu = [wall_ms(partial(run, cpu, host, strategy), cpu_repeat) for strategy in STRATEGIES if cpu_repeat]
    print(
        f"  {call:18}{size:2}{len(expected[0]):>10,} rows  top_down {times['top_down']:8.2f}  "
        f"bottom_up {times['bottom_up']:8.2f}  auto {times['auto']:8.2f} ({told})  "
        f"plain {times['plain']:8.2f} ({times['plain'] / best:5.2f} times)  "
        f"cpu {min(on_cpu, default=0):8.1f} ({min(on_cpu, default=0) / best:6.1f} times)  "
        f"peak {peaks['top_down']:.2f} {peaks['bottom_up']:.2f}",
        flush=True,
    )
    cupy.get_default_memory_pool().free_all_blocks()
    return {"call": call, "size": size, "rows": len(expected[0]), **times, "cpu": on_cpu, "peak": peaks}


def main() -> None:
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--cpu-repeat", type=int, default=3, help="runs on the CPU; 0 for none")
    parser.add_argument("--out", type=Path, help="write all numbers as JSON")
    args = parser.parse_args()
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"machine: {corpora.machine()}; {device}, CuPy {cupy.__version__}; times in ms")
    names = corpora.names(args.corpora)
    results = []
    for given in names if args.corpora else [*names, "+".join(names)]:
        results += measure(*corpora.load(given), args.repeat, args.cpu_repeat)
        if args.out:
            args.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
