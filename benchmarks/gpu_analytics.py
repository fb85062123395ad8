"""Times the analytics on grammars against the same on uncompressed word ids, on one GPU, and against our own CPU.

``python -m benchmarks.gpu_analytics [corpora …] [--repeat 30] [--columns folder] [--out times.json]``: a table for
each corpus; names joined by ``+`` are one corpus. Both sides are resident on the device: grammar and rows here; there
the words (numbered by falling frequency) with their documents, packed into 32 bits, which is all that a histogram and
a radix sort read.
Results are checked to be equal. Device times are medians between events and include what the host does after it has
waited for a size; inputs are copied so often that a run finds none of its own in the level 2 cache ("cold"), "warm"
is one copy over and over. Bottom-up, tables stay with the rules from the second call on; "once" is the time of a call
that makes them and keeps none. CPU times are medians on the host's clock with one thread, two and one for each core.
The geometric mean over the analytics is of the better strategy's cold time against the better one on the CPU.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.gpu_word_count import Device, time_histogram
from polars_tadoc.config import thread_count
from polars_tadoc.engine import cpu, cuda
from polars_tadoc.kernels.documents import document_keys_cuda as document_keys
from polars_tadoc.kernels.primitives import primitives_cuda as primitives
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, tokenize
from polars_tadoc.kernels.traverse import tables_cuda as tables
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.runtime.device import with_headers

CORPORA = ("logs_dmesg", "versioned_longhorn", "docs_peps", "prose_books")
STRATEGIES = ("top_down", "bottom_up")
THREADS = (1, 2, 0)
"""Of the CPU; 0 is one for each core."""
ROOT = Path(__file__).resolve().parents[1]


class Uncompressed:
    """Inverted index and term vector by radix sort over words with their documents."""

    def __init__(self, words: np.ndarray, document_offsets: np.ndarray, vocabulary: int) -> None:
        import cupy

        self.vocabulary, self.documents = vocabulary, len(document_offsets) - 1
        self.word_bits, self.document_bits = (vocabulary - 1).bit_length(), (self.documents - 1).bit_length()
        if self.word_bits + self.document_bits > 32:
            raise SystemExit("words and documents do not fit into 32 bits")
        self.count_bits = int(np.diff(document_offsets).max()).bit_length()
        owners = np.repeat(np.arange(self.documents, dtype=np.uint32), np.diff(document_offsets))
        self.keys = cupy.asarray(words << np.uint32(self.document_bits) | owners)
        text = (ROOT / "benchmarks" / "uncompressed.cu").read_text("utf-8")
        self.module = cupy.RawModule(code=with_headers(text), options=("-std=c++17",))

    def launch(self, kernel: str, items: int, *arguments: Any) -> None:
        """Launch a kernel with one thread for each item."""
        self.module.get_function(kernel)((-(-items // 256),), (256,), arguments)

    def runs(self, keys: Any) -> tuple[Any, Any]:
        """Return each word's documents in order, and where their runs start."""
        import cupy

        keys = primitives.radix_sort(keys, None, self.word_bits, self.document_bits)
        tiles = -(-len(keys) // 4096)
        sums = cupy.empty(tiles + 1, np.uint64)
        sums.data.memset_async(0xFF, 8 * tiles)
        sums[tiles:].data.memset_async(0, 8)
        run_keys, run_starts = cupy.empty_like(keys), cupy.empty_like(keys)
        self.module.get_function("find_runs")(
            (tiles,), (256,), (keys, np.uint64(len(keys)), sums, sums[tiles:], run_keys, run_starts)
        )
        runs = int(sums[tiles - 1 : tiles].get()[0]) & ((1 << 62) - 1)  # synchronize!
        return run_keys[:runs], run_starts[:runs]

    def inverted_index(self, keys: Any) -> tuple[Any, Any]:
        """Return where each word's documents begin, and the documents."""
        import cupy

        run_keys, _ = self.runs(keys)
        documents, offsets = cupy.empty_like(run_keys), cupy.empty(self.vocabulary + 1, np.int64)
        runs, groups = np.uint32(len(run_keys)), np.uint32(self.vocabulary)
        mask = np.uint32((1 << self.document_bits) - 1)
        self.launch("write_postings", len(run_keys), run_keys, runs, mask, documents)
        self.launch("word_offsets", self.vocabulary + 1, run_keys, runs, np.uint32(self.document_bits), groups, offsets)
        return offsets, documents

    def term_vector(self, keys: Any) -> tuple[Any, Any, Any]:
        """Return where each document's words begin, the words by count falling, and their counts."""
        import cupy

        run_keys, run_starts = self.runs(keys)
        runs = np.uint32(len(run_keys))
        bits = (np.uint32(self.word_bits), np.uint32(self.count_bits))
        ordered = cupy.empty(len(run_keys), np.uint64)
        self.launch(
            *("order_vectors", len(run_keys), run_keys, run_starts, runs, np.uint64(len(keys))),
            *(np.uint32(self.document_bits), *bits, ordered),
        )
        ordered = primitives.radix_sort(
            ordered, None, self.word_bits + self.count_bits + self.document_bits, overwrite=True
        )
        words, counts = cupy.empty_like(run_keys), cupy.empty(len(run_keys), np.uint64)
        offsets = cupy.empty(self.documents + 1, np.int64)
        shift = np.uint32(self.word_bits + self.count_bits)
        self.launch("write_vectors", len(run_keys), ordered, runs, *bits, words, counts)
        self.launch("document_offsets", self.documents + 1, ordered, runs, shift, np.uint32(self.documents), offsets)
        return offsets, words, counts


def load(names: list[str], columns: Path | None) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return a corpus, its words and where each document's begin."""
    text = pl.concat([corpora.load(name)[1] for name in names]).rechunk()
    kept = None if columns is None else columns / f"{'+'.join(names)}.parquet"
    if kept is not None and kept.exists():
        column = pl.read_parquet(kept)["text"]
    else:
        column = tadoc.compress(text, lossless=False)
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            column.alias("text").to_frame().write_parquet(kept)
    (corpus,) = tadoc.column.split(column)
    sequence = tokenize(text, Tokenizer.from_argument("words"), lossless=False).sequence
    ends = np.flatnonzero(sequence == SEPARATOR)
    return corpus, sequence[sequence != SEPARATOR], np.concatenate([[0], ends - np.arange(len(ends))])


def wall(run: Callable[[], Any], repeat: int = 3) -> float:
    """Median seconds on the host's clock, after a first run that may compile."""
    run()
    taken = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def check(label: str, got: tuple[Any, ...], expected: tuple[Any, ...]) -> None:
    for place, (here, there) in enumerate(zip(got, expected, strict=True)):
        if not np.array_equal(cuda.to_host(here), there if isinstance(there, np.ndarray) else cuda.to_host(there)):
            raise SystemExit(f"{label}: WRONG, array {place}")


def copied(rules: Rules) -> Rules:
    return Rules(
        rules.terminals, rules.rule_offsets.copy(), rules.symbols.copy(), rules.level_offsets, rules.lengths.copy()
    )


def measure(device: Device, names: list[str], repeat: int, columns: Path | None) -> dict[str, Any]:
    import cupy

    corpus, words, document_offsets = load(names, columns)
    grammar = corpus.grammar
    host = cpu.load_rules(grammar)
    rules = cuda.load_rules(grammar)
    root_offsets, roots = cuda.load_array(corpus.root_offsets), cuda.load_symbols(corpus.roots)
    plain = Uncompressed(words, document_offsets, host.terminals)
    ids = cupy.asarray(words)

    expected_counts = np.bincount(words, minlength=host.terminals).astype(np.uint64)
    index, vector = plain.inverted_index(plain.keys), plain.term_vector(plain.keys)
    for strategy in STRATEGIES:
        check(f"{names} {strategy} counts", (cuda.terminal_counts(rules, roots, strategy),), (expected_counts,))
        postings = cuda.count_by_terminal(rules, root_offsets, roots, strategy, counted=False)
        check(f"{names} {strategy} inverted index", postings[:2], index)
        vectors = cuda.count_by_document(rules, root_offsets, roots, strategy)
        check(f"{names} {strategy} term vector", vectors, vector)
        on_host = cpu.count_by_document(host, corpus.root_offsets, corpus.roots, strategy, None)
        check(f"{names} {strategy} term vector of the CPU", vector, on_host)

    grammar_bytes = rules.nbytes + roots.nbytes + root_offsets.nbytes
    own = [
        (copied(rules), cuda.load_grammar(grammar), root_offsets.copy(), roots.copy())
        for _ in range(device.copies(grammar_bytes))
    ]
    theirs = [plain.keys.copy() for _ in range(device.copies(plain.keys.nbytes))]
    result: dict[str, Any] = {
        "corpus": "+".join(names),
        "documents": len(corpus.root_offsets) - 1,
        "words": len(words),
        "vocabulary": host.terminals,
        "rules": host.rule_count,
        "levels": len(host.level_offsets) - 1,
        "body_symbols": len(host.symbols),
        "roots": len(corpus.roots),
        "ratio": (len(host.symbols) + len(corpus.roots)) / len(words),
        "pairs": len(index[1]),
        "tables": int(tables.make_tables(rules).sizes.sum()),
        "table_room": len(tables.make_tables(rules).terminals),
        "table_entries": int(document_keys.Work(rules, tables.make_tables(rules), root_offsets, roots).entries.sum()),
    }
    calls: dict[str, tuple[dict[str, Callable[..., Any]], Callable[..., Any] | None, dict[str, Callable[[], Any]]]] = {
        "word_count": (
            {"top_down": lambda r, g, o, s: cuda.top_down_weights(g, s)},
            None,
            {"top_down": lambda: cpu.top_down_weights(grammar, corpus.roots)},
        ),
        "inverted_index": (
            {s: lambda r, g, o, q, s=s: cuda.count_by_terminal(r, o, q, s, counted=False) for s in STRATEGIES},
            plain.inverted_index,
            {
                s: lambda s=s: cpu.count_by_terminal(host, corpus.root_offsets, corpus.roots, s, False)
                for s in STRATEGIES
            },
        ),
        "term_vector": (
            {s: lambda r, g, o, q, s=s: cuda.count_by_document(r, o, q, s) for s in STRATEGIES},
            plain.term_vector,
            {
                s: lambda s=s: cpu.count_by_document(host, corpus.root_offsets, corpus.roots, s, None)
                for s in STRATEGIES
            },
        ),
    }
    for name, (ways, baseline, on_cpu) in calls.items():
        timed: dict[str, Any] = {"gpu": {}, "cpu": {}}
        for strategy, call in ways.items():
            for _ in range(2):  # tables stay from the second call on
                for some in own:
                    call(*some)
            timed["gpu"][strategy] = {
                "cold": device.seconds([lambda c=c, call=call: call(*c) for c in own], repeat),
                "warm": device.seconds([lambda call=call: call(*own[0])], repeat),
            }
            if strategy == "bottom_up":
                timed["gpu"][strategy]["once"] = device.seconds(
                    [lambda call=call: call(dataclasses.replace(rules), *own[0][1:])], repeat
                )
        if baseline is None:
            histogram = time_histogram(device, ids, host.terminals, expected_counts)
            timed["uncompressed"] = {"cold": histogram["seconds"], "warm": histogram["warm"]}
        else:
            timed["uncompressed"] = {
                "cold": device.seconds([lambda c=c, b=baseline: b(c) for c in theirs], repeat),
                "warm": device.seconds([lambda b=baseline: b(theirs[0])], repeat),
            }
        for strategy, run in on_cpu.items():
            timed["cpu"][strategy] = {}
            for threads in THREADS:
                with tadoc.Config(threads=threads):
                    timed["cpu"][strategy][threads] = wall(run)
        result[name] = timed
    return result


def report(result: dict[str, Any], analytics: list[str]) -> None:
    print(
        f"{result['corpus']}: symbols/words {result['ratio']:.3f}; "
        + ", ".join(f"{value:,} {key}" for key, value in result.items() if isinstance(value, int))
    )
    print(
        f"  {'ms, cold/warm':15} {'top-down':>15} {'bottom-up':>15} {'once':>7} {'uncompressed':>15} {'ratio':>11}"
        f" {'CPU of 1':>9} {'2':>9} {'all':>9}   GPU/CPU of all"
    )
    ratios = []
    for name in analytics:
        timed = result[name]
        pairs = {way: f"{1e3 * t['cold']:.3f}/{1e3 * t['warm']:.3f}" for way, t in timed["gpu"].items()}
        gpu = {kind: min(t[kind] for t in timed["gpu"].values()) for kind in ("cold", "warm")}
        once = timed["gpu"].get("bottom_up", {}).get("once")
        plain = timed["uncompressed"]
        on_cpu = {threads: min(t[threads] for t in timed["cpu"].values()) for threads in THREADS}
        ratios.append({threads: seconds / gpu["cold"] for threads, seconds in on_cpu.items()})
        print(
            f"  {name:15} {pairs['top_down']:>15} {pairs.get('bottom_up', ''):>15} "
            f"{'' if once is None else f'{1e3 * once:.3f}':>7} "
            f"{1e3 * plain['cold']:>9.3f}/{1e3 * plain['warm']:.3f} "
            f"{plain['cold'] / gpu['cold']:>5.2f}/{plain['warm'] / gpu['warm']:.2f} "
            + " ".join(f"{1e3 * on_cpu[threads]:>9.1f}" for threads in THREADS)
            + f"   {ratios[-1][0]:.1f}x"
        )
    means = {t: statistics.geometric_mean(r[t] for r in ratios) for t in THREADS}
    print(
        f"  GPU against our own CPU, geometric mean: {means[1]:.1f}x one thread, {means[2]:.1f}x two, "
        f"{means[0]:.1f}x one for each core"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*", default=[*CORPORA, "+".join(CORPORA)])
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--columns", type=Path, help="folder where compressed columns are kept for the next time")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    device = Device()
    print(device.name, f"{device.bandwidth / 1e12:.2f} TB/s, {thread_count()} cores")
    results = []
    for names in args.corpora:
        results.append(measure(device, names.split("+"), args.repeat, args.columns))
        report(results[-1], ["word_count", "inverted_index", "term_vector"])
        if args.out:
            args.out.write_text(json.dumps(results, indent=1), "utf-8")


if __name__ == "__main__":
    main()
