"""Times the six analytics of TADOC on the GPU against our own CPU, on grammars that are resident on either side.

``python -m benchmarks.gpu_six [corpus …] [--threads 0] [--out times.json]``. Kernels alone, sequences of three words,
the better strategy of each side. Results are compared before anything is timed. The GPU's milliseconds are medians
between CUDA events around whole calls, the CPU's are medians of the clock with so many threads (0: one for each
core). What a call keeps with the grammar for the next one is kept on both sides. Last comes the geometric mean.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cupy
import numpy as np
import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.gpu_sequences import STRATEGIES, device_ms, wall_ms
from polars_tadoc.engine import cpu, cuda
from polars_tadoc.engine.choose import choose
from polars_tadoc.traversal.source import Source, prepare


def calls(kernels: Any, grammar: Any, given: Source, strategy: str) -> dict[str, Callable[[], Any]]:
    """The six, on one engine, by what the analytics themselves call."""
    rules, offsets, roots, rank = given.rules, given.root_offsets, given.roots, given.rank
    by_rank = kernels.load_array(np.argsort(given.words.rank).astype(np.int64))

    def counts() -> Any:
        if strategy == "top_down":
            return kernels.top_down_weights(grammar, roots)
        return kernels.terminal_counts(rules, roots, strategy)

    return {
        "word_count": lambda: (counts(),),
        "sort": lambda: (counts()[by_rank],),
        "inverted_index": lambda: kernels.count_by_terminal(rules, offsets, roots, strategy, counted=False)[:2],
        "term_vector": lambda: kernels.count_by_document(rules, offsets, roots, strategy, rank),
        "sequence_count": lambda: kernels.sequence_counts(rules, offsets, roots, 3, rank, strategy),
        "ranked_inverted_index": lambda: kernels.sequence_postings(rules, offsets, roots, 3, rank, strategy),
    }


def measure(name: str, text: pl.Series, threads: list[int], repeat: int, cpu_repeat: int) -> dict[str, Any]:
    """Time the six on one corpus."""
    (corpus,) = tadoc.column.split(tadoc.compress(text, lossless=False, engine="gpu"))
    source, host = prepare(corpus, choose("gpu", 0)), prepare(corpus, choose("cpu", 0))
    on_gpu = {strategy: calls(cuda, cuda.load_grammar(corpus.grammar), source, strategy) for strategy in STRATEGIES}
    on_cpu = {strategy: calls(cpu, corpus.grammar, host, strategy) for strategy in STRATEGIES}
    print(f"{name}: {sum(text.str.len_bytes()) / 1e6:.1f} MB, {corpus.document_count:,} documents; ms")
    print(
        f"  {'':22}{'top_down':>10}{'bottom_up':>10}" + "".join(f"{'CPU of ' + str(n or 'all'):>18}" for n in threads)
    )
    result: dict[str, Any] = {"corpus": name}
    ratios: dict[int, list[float]] = {n: [] for n in threads}
    for analytic in on_gpu["top_down"]:
        expected = on_cpu["top_down"][analytic]()
        for strategy in STRATEGIES:
            got = on_gpu[strategy][analytic]()
            if not all(np.array_equal(cuda.to_host(array), right) for array, right in zip(got, expected, strict=True)):
                raise SystemExit(f"{analytic} {strategy}: WRONG")
            del got
        gpu = device_ms({strategy: on_gpu[strategy][analytic] for strategy in STRATEGIES}, repeat)
        taken = {n: clock(partial(wall_ms, repeat=cpu_repeat), on_cpu, analytic, n) for n in threads}
        best = min(gpu.values())
        for n in threads:
            ratios[n].append(taken[n] / best)
        print(
            f"  {analytic:22}{gpu['top_down']:10.3f}{gpu['bottom_up']:10.3f}"
            + "".join(f"{taken[n]:9.1f} ({taken[n] / best:5.1f}x)" for n in threads),
            flush=True,
        )
        result[analytic] = {"gpu": gpu, "cpu": taken}
        cupy.get_default_memory_pool().free_all_blocks()
    means = {n: statistics.geometric_mean(ratios[n]) for n in threads}
    print("  geometric mean of the six: " + ", ".join(f"{means[n]:.1f}x of {n or 'all'} threads" for n in threads))
    return {**result, "mean": means}


def clock(
    timed: Callable[[Callable[[], Any]], float],
    on_cpu: dict[str, dict[str, Callable[[], Any]]],
    analytic: str,
    threads: int,
) -> float:
    """Return the better strategy's milliseconds on the CPU."""
    with tadoc.Config(threads=threads):
        return min(timed(on_cpu[strategy][analytic]) for strategy in STRATEGIES)


def main() -> None:
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--cpu-repeat", type=int, default=3, help="runs on the CPU")
    parser.add_argument("--threads", type=int, nargs="+", default=[0], help="of the CPU; 0 is one for each core")
    parser.add_argument("--out", type=Path, help="write all numbers as JSON")
    args = parser.parse_args()
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"machine: {corpora.machine()}; {device}, CuPy {cupy.__version__}")
    names = corpora.names(args.corpora)
    results = []
    for given in names if args.corpora else [*names, "+".join(names)]:
        name, text = corpora.load(given)
        results.append(measure(name, text, args.threads, args.repeat, args.cpu_repeat))
        if args.out:
            args.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
