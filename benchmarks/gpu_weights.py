"""Times weights of words in documents on the GPU, by kernel, beside our own CPU and beside plain CuPy.

``python -m benchmarks.gpu_weights [corpus …] [--threads 2] [--megapostings 64] [--out times.json]``. Grammar and rows
are resident on either side; results are compared before anything is timed. The GPU's milliseconds are medians between
CUDA events around whole calls, the CPU's of the clock with so many threads. Terms of documents bottom-up are from
tables that stay with the rules from the second call on; "once" makes them and keeps none. *Transposed* are the
postings by word, sorted by document: another way to the same terms.

*Uncompressed* is CuPy alone on resident word ids with their documents: ``cupy.sort`` of packed keys, runs of equal
keys, ``bincount`` and elementwise arithmetic up to the BM25 weights; *ours* are the calls for the same from the rules.

Then each pass runs on the postings of all corpora, repeated until the level 2 cache holds few of them: gigabytes a
second of what it has to read and to write, beside those of a copy on the device.
"""

from __future__ import annotations

import dataclasses
import json
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
from polars_tadoc.kernels.primitives import primitives_cuda as primitives
from polars_tadoc.traversal.source import Source, prepare

TOP = 10
K1, B = 1.5, 0.75
Postings = tuple[Any, Any, Any]


class Passes:
    """The calls over postings, on one engine."""

    def __init__(self, kernels: Any, numbers: Any, postings: Postings, terminals: int) -> None:
        self.kernels, self.numbers, self.postings, self.terminals = kernels, numbers, postings, terminals
        self.frequencies = kernels.document_frequencies(postings[1], terminals)
        self.idf = numbers.log1p((len(postings[0]) - 1) / (self.frequencies + 1.0))
        lengths = kernels.document_lengths(postings[0], postings[2])
        self.norms = K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1.0))
        self.weighed = self.bm25()

    def bm25(self) -> Any:
        """BM25 weights by posting."""
        return self.kernels.weigh_bm25(*self.postings, self.idf, self.norms, None)

    def calls(self) -> dict[str, tuple[Callable[[], Any], float]]:
        """Calls, and bytes that each has to read and to write for a posting."""
        kernels, postings = self.kernels, self.postings
        return {
            "document_frequencies": (lambda: kernels.document_frequencies(postings[1], self.terminals), 4),
            "document_lengths": (lambda: kernels.document_lengths(postings[0], postings[2]), 8),
            "weigh_bm25": (self.bm25, 20),
            "weigh_tfidf, l2": (lambda: kernels.weigh_tfidf(*postings, self.idf, True, "l2"), 32),
            "weigh_tfidf, no norm": (lambda: kernels.weigh_tfidf(*postings, self.idf, False, None), 20),
            f"top_weights, {TOP}": (lambda: kernels.top_weights(*postings[:2], self.weighed, None, TOP), 12),
            "top_weights, all": (lambda: kernels.top_weights(*postings[:2], self.weighed, None, 1 << 62), 36),
        }


def transposed(given: Source, strategy: str) -> Postings:
    """Postings by word, sorted by document."""
    offsets, documents, counts = cuda.count_by_terminal(
        given.rules, given.root_offsets, given.roots, strategy, counted=True
    )
    terminals = primitives.expand(offsets, len(documents)).astype(np.uint64)
    bits = (len(given.root_offsets) - 2).bit_length()
    ordered, packed = primitives.radix_sort(documents, terminals << np.uint64(32) | counts, bits, overwrite=True)
    starts = cupy.searchsorted(ordered, cupy.arange(len(given.root_offsets), dtype=np.uint32))
    return starts, (packed >> np.uint64(32)).astype(np.uint32), packed & np.uint64(0xFFFFFFFF)


class Uncompressed:
    """BM25 weights from resident word ids and their documents, by CuPy alone."""

    def __init__(self, postings: Postings, terminals: int) -> None:
        offsets, words, counts = (cuda.to_host(array) for array in postings)
        self.documents, self.bits = len(offsets) - 1, np.uint64(max(terminals - 1, 1).bit_length())
        self.terminals = terminals
        owners = np.repeat(np.arange(self.documents), np.diff(offsets))
        keys = np.repeat(owners.astype(np.uint64) << self.bits | words, counts.astype(np.int64))
        order = np.random.default_rng(0).permutation(len(keys))  # a document's words, in no order
        self.keys = cupy.asarray(keys[order[np.argsort((keys >> self.bits)[order], kind="stable")]])

    def weigh(self) -> tuple[Any, Any, Any, Any]:
        """Documents, words, counts and weights by posting."""
        keys = cupy.sort(self.keys)
        heads = cupy.flatnonzero(cupy.concatenate([cupy.ones(1, bool), keys[1:] != keys[:-1]]))
        found = keys[heads]
        counts = cupy.diff(cupy.concatenate([heads, cupy.array([len(keys)])]))
        documents = (found >> self.bits).astype(np.int64)
        words = (found & np.uint64((1 << int(self.bits)) - 1)).astype(np.int64)
        lengths = cupy.bincount((keys >> self.bits).astype(np.int64), minlength=self.documents)
        frequencies = cupy.bincount(words, minlength=self.terminals)
        idf = cupy.log1p(self.documents / (frequencies + 1.0))
        norms = K1 * (1 - B + B * lengths / lengths.mean())
        return documents, words, counts, idf[words] * (counts / (counts + norms[documents]))


def same(name: str, got: Any, expected: Any, exact: bool = True) -> None:
    """Stop where the engines differ."""
    for here, there in zip(
        *((value if isinstance(value, tuple) else (value,)) for value in (got, expected)), strict=True
    ):
        left = cuda.to_host(here)
        if not (np.array_equal(left, there) if exact else np.allclose(left, there, rtol=1e-13, atol=0)):
            raise SystemExit(f"{name}: WRONG")


def measure(name: str, text: pl.Series, threads: int, repeat: int, cpu_repeat: int) -> tuple[dict[str, Any], Postings]:
    """Time all calls on one corpus."""
    (corpus,) = tadoc.column.split(tadoc.compress(text, lossless=False, engine="gpu"))
    given, host = prepare(corpus, choose("gpu", 0)), prepare(corpus, choose("cpu", 0))
    size = given.rules.terminals

    def terms(kernels: Any, source: Source, strategy: str, once: bool = False) -> Postings:
        rules = dataclasses.replace(source.rules) if once else source.rules
        return kernels.terms_by_document(rules, source.root_offsets, source.roots, strategy, source.rank)  # type: ignore[no-any-return]

    expected = terms(cpu, host, "bottom_up")
    for strategy in STRATEGIES:
        for once in (True, False, False):
            same("terms_by_document", terms(cuda, given, strategy, once), expected)
    postings = terms(cuda, given, "bottom_up")
    ours, theirs = Passes(cuda, cupy, postings, size), Passes(cpu, np, expected, size)
    theirs.idf, theirs.norms = cuda.to_host(ours.idf), cuda.to_host(ours.norms)  # logarithms differ in the last bit
    theirs.weighed = theirs.bm25()
    gpu_calls, cpu_calls = ours.calls(), theirs.calls()
    for call in gpu_calls:
        same(call, gpu_calls[call][0](), cpu_calls[call][0](), exact="tfidf" not in call)
    plain = Uncompressed(postings, size)
    unranked = cuda.terms_by_document(given.rules, given.root_offsets, given.roots, "bottom_up")
    same("transposed", transposed(given, "bottom_up"), tuple(map(cuda.to_host, unranked)))
    same("uncompressed", plain.weigh()[3], cuda.to_host(Passes(cuda, cupy, unranked, size).weighed), exact=False)

    def whole(kernels: Any, numbers: Any, source: Source, strategy: str) -> Any:
        return Passes(kernels, numbers, terms(kernels, source, strategy), size).weighed

    def vectors(strategy: str) -> Postings:
        return cuda.count_by_document(given.rules, given.root_offsets, given.roots, strategy, given.rank)

    words = int(expected[2].sum())
    print(
        f"{name}: {sum(text.str.len_bytes()) / 1e6:.1f} MB, {corpus.document_count:,} documents, {words:,} words, "
        f"{len(expected[1]):,} postings, {corpus.symbol_count:,} symbols; ms"
    )
    runs: dict[str, Callable[[], Any]] = {
        **{f"terms, {strategy}": partial(terms, cuda, given, strategy) for strategy in STRATEGIES},
        "terms, bottom_up once": partial(terms, cuda, given, "bottom_up", once=True),
        **{f"transposed, {strategy}": partial(transposed, given, strategy) for strategy in STRATEGIES},
        **{f"term_vector, {strategy}": partial(vectors, strategy) for strategy in STRATEGIES},
        **{call: run for call, (run, _) in gpu_calls.items()},
        **{f"ours, {strategy}": partial(whole, cuda, cupy, given, strategy) for strategy in STRATEGIES},
        "uncompressed": plain.weigh,
    }
    gpu = device_ms(runs, repeat)
    on_cpu: dict[str, Callable[[], Any]] = {
        **{f"terms, {strategy}": partial(terms, cpu, host, strategy) for strategy in STRATEGIES},
        **{call: run for call, (run, _) in cpu_calls.items()},
        **{f"ours, {strategy}": partial(whole, cpu, np, host, strategy) for strategy in STRATEGIES},
    }
    with tadoc.Config(threads=threads):
        taken = {call: wall_ms(run, cpu_repeat) for call, run in on_cpu.items()}
    for call in gpu:
        beside = f"{taken[call]:10.2f}  {taken[call] / gpu[call]:7.1f}x" if call in taken else ""
        print(f"  {call:26}{gpu[call]:9.3f}{beside}", flush=True)
    return {"corpus": name, "gpu": gpu, "cpu": taken}, tuple(map(cuda.to_host, postings))  # type: ignore[return-value]


def repeated(parts: list[Postings], most: int) -> Postings:
    """Postings of all corpora, again and again up to so many, on the device."""
    sizes = np.concatenate([np.diff(offsets) for offsets, _, _ in parts])
    words, counts = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
    times = max(1, most // len(words))
    offsets = np.concatenate([[0], np.cumsum(np.tile(sizes, times))])
    return cupy.asarray(offsets), cupy.tile(cupy.asarray(words), times), cupy.tile(cupy.asarray(counts), times)


def measure_large(postings: Postings, terminals: int, repeat: int) -> dict[str, Any]:
    """Time the passes on many postings."""
    size = len(postings[1])
    target = cupy.empty_like(postings[2])

    def copy() -> None:
        target[...] = postings[2]

    calls = {"copy": (copy, 16.0), **Passes(cuda, cupy, postings, terminals).calls()}
    gpu = device_ms({call: run for call, (run, _) in calls.items()}, repeat)
    print(f"all, repeated: {len(postings[0]) - 1:,} documents, {size:,} postings; ms, GB/s")
    for call, (_, bytes_) in calls.items():
        print(f"  {call:26}{gpu[call]:9.3f}{bytes_ * size / gpu[call] / 1e6:9.0f}", flush=True)
    return {"postings": size, "gpu": gpu}


def main() -> None:
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--cpu-repeat", type=int, default=3, help="runs on the CPU")
    parser.add_argument("--threads", type=int, default=2, help="of the CPU")
    parser.add_argument("--megapostings", type=int, default=64, help="postings of the large run, in millions")
    parser.add_argument("--out", type=Path, help="write all numbers as JSON")
    args = parser.parse_args()
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"machine: {corpora.machine()}; {device}, CuPy {cupy.__version__}")
    results, parts = [], []
    for given in corpora.names(args.corpora):
        result, postings = measure(*corpora.load(given), args.threads, args.repeat, args.cpu_repeat)
        results.append(result)
        parts.append(postings)
        cupy.get_default_memory_pool().free_all_blocks()
    terminals = 1 + max(int(words.max()) for _, words, _ in parts)
    results.append(measure_large(repeated(parts, args.megapostings * 1_000_000), terminals, args.repeat))
    if args.out:
        args.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
