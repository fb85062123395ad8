"""Analytics on the compressed form against the same on uncompressed word ids: ``python -m benchmarks.word_ids``.

The baseline is as well made as ours: Numba on as many threads, words as frequency-ranked uint32 ids with document
offsets, in memory; first occurrences are kept without a branch, indices are unsigned, the terminals of a document leave
a bitmap in the order of their ranks and are counted into place, postings are one counting sort. Results have the same
arrays and types, and are compared first. Times are in ms, the ratio is baseline / the better of both strategies.

Ours reads tables of rules that are kept with the grammar from the first call on; "anew" is top-down with these tables
made in each call, as a first call makes them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.side_by_side import median_ms, ratio, times
from polars_tadoc.engine import cpu
from polars_tadoc.kernels.documents.order_cpu import COUNTERS, FEW, order_documents
from polars_tadoc.kernels.traverse.expand_words_cpu import expand_words
from polars_tadoc.kernels.traverse.kept_tables_cpu import kept
from polars_tadoc.model.column import split
from polars_tadoc.runtime.parallel import even_chunks, map_parallel, weighted_chunks

UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
Int64 = npt.NDArray[np.int64]
STRATEGIES = ("top_down", "bottom_up")


@nb.njit(nogil=True, cache=True)
def histogram(words: UInt32, even: UInt64, odd: UInt64) -> None:
    """Count words in two tables in turn: a frequent one does not wait for itself."""
    for i in range(0, len(words) - 1, 2):
        even[words[i]] += nb.uint64(1)
        odd[words[i + 1]] += nb.uint64(1)
    if len(words) % 2:
        even[words[len(words) - 1]] += nb.uint64(1)


def word_counts(size: int, words: UInt32) -> UInt64:
    """Count each word."""

    def count(chunk: tuple[int, int]) -> UInt64:
        even, odd = np.zeros(size, np.uint64), np.zeros(size, np.uint64)
        histogram(words[chunk[0] : chunk[1]], even, odd)
        return even + odd

    parts = map_parallel(count, even_chunks(len(words), max(1 << 16, size)))
    return sum(parts[1:], parts[0])


@nb.njit(nogil=True, cache=True)
def list_words(offsets: Int64, words: UInt32, first: int, stop: int, seen: UInt32, sizes: Int64, found: UInt32) -> Any:
    """Write each document's distinct words, in no order; returns how many."""
    at = nb.uint64(0)
    for d in range(first, stop):
        start, number = at, nb.uint32(d + 1)
        for i in range(nb.uint64(offsets[d]), nb.uint64(offsets[d + 1])):
            word = words[i]
            found[at] = word
            at += nb.uint64(seen[word] != number)
            seen[word] = number
        sizes[d] = nb.int64(at - start)
    return nb.int64(at)


@nb.njit(nogil=True, cache=True)
def count_words(
    offsets: Int64,
    words: UInt32,
    first: int,
    stop: int,
    weights: UInt32,
    sizes: Int64,
    found: UInt32,
    counts: UInt32,
) -> Any:
    """Write each document's distinct words and counts, in no order; returns how many."""
    at = nb.uint64(0)
    for d in range(first, stop):
        start = at
        for i in range(nb.uint64(offsets[d]), nb.uint64(offsets[d + 1])):
            word = words[i]
            found[at] = word
            at += nb.uint64(weights[word] == 0)
            weights[word] += nb.uint32(1)
        for k in range(start, at):
            counts[k] = weights[found[k]]
            weights[found[k]] = 0
        sizes[d] = nb.int64(at - start)
    return nb.int64(at)


@nb.njit(nogil=True, cache=True)
def widen(found: UInt32, counts: UInt32, at: int, terminals: UInt32, wide: UInt64) -> None:
    """Copy one thread's part of a result to its place."""
    for k in range(nb.uint64(len(found))):
        terminals[nb.uint64(at) + k] = found[k]
        wide[nb.uint64(at) + k] = counts[k]


@nb.njit(nogil=True, cache=True)
def tally(found: UInt32, cursors: Int64) -> None:
    """Count the documents of each word."""
    for k in range(nb.uint64(len(found))):
        cursors[found[k]] += 1


@nb.njit(nogil=True, cache=True)
def scatter(sizes: Int64, first: int, stop: int, found: UInt32, cursors: Int64, documents: UInt32) -> None:
    """Append documents to their words' postings."""
    start = nb.uint64(0)
    for d in range(first, stop):
        end = start + nb.uint64(sizes[d])
        for k in range(start, end):
            at = nb.uint64(cursors[found[k]])
            cursors[found[k]] += 1
            documents[at] = d
        start = end


def _starts(sizes: Int64) -> Int64:
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def term_vector(size: int, offsets: Int64, words: UInt32, rank: UInt32) -> tuple[Int64, UInt32, UInt64]:
    """Count each document's words."""
    by_rank = np.empty(size, np.uint32)
    by_rank[rank] = np.arange(size, dtype=np.uint32)
    sizes = np.empty(len(offsets) - 1, np.int64)

    def count(chunk: tuple[int, int]) -> tuple[UInt32, UInt32]:
        room = int(offsets[chunk[1]] - offsets[chunk[0]]) + 1
        found, counts = np.empty(room, np.uint32), np.empty(room, np.uint32)
        n = count_words(offsets, words, *chunk, np.zeros(size, np.uint32), sizes, found, counts)
        order_documents(
            sizes,
            *chunk,
            0,
            found,
            counts,
            rank,
            by_rank,
            np.zeros((size >> 6) + 1, np.uint64),
            np.zeros((size >> 12) + 1, np.uint64),
            np.empty(FEW, np.int64),
            np.empty(size + FEW, np.uint32),
            np.empty(size + FEW, np.uint32),
            np.empty(COUNTERS, np.int64),
        )
        return found[:n], counts[:n]

    parts = map_parallel(count, weighted_chunks(offsets))
    places = _starts(np.array([len(found) for found, _ in parts]))
    terminals, wide = np.empty(places[-1], np.uint32), np.empty(places[-1], np.uint64)
    map_parallel(
        lambda item: widen(*item[0], item[1], terminals, wide), list(zip(parts, places[:-1].tolist(), strict=True))
    )
    return _starts(sizes), terminals, wide


def inverted_index(size: int, offsets: Int64, words: UInt32) -> tuple[Int64, UInt32]:
    """List the documents of each word."""
    sizes = np.empty(len(offsets) - 1, np.int64)
    chunks = weighted_chunks(offsets)

    def listed(chunk: tuple[int, int]) -> tuple[UInt32, Int64]:
        found = np.empty(int(offsets[chunk[1]] - offsets[chunk[0]]) + 1, np.uint32)
        found = found[: list_words(offsets, words, *chunk, np.zeros(size, np.uint32), sizes, found)]
        cursors = np.zeros(size, np.int64)
        tally(found, cursors)
        return found, cursors

    parts = map_parallel(listed, chunks)
    starts = _starts(sum(cursors for _, cursors in parts))
    before = starts[:-1].copy()
    for _, cursors in parts:
        before, cursors[:] = before + cursors, before
    documents = np.empty(starts[-1], np.uint32)
    map_parallel(lambda item: scatter(sizes, *item[0], *item[1], documents), list(zip(chunks, parts, strict=True)))
    return starts, documents


def same(ours: Any, baseline: Any) -> bool:
    """Compare results, arrays and types."""
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(ours, baseline, strict=True))


def contenders(given: str) -> tuple[str, dict[str, dict[str, Callable[[], Any]]]]:
    """Load a corpus; for each analytic, both strategies and the baseline."""
    name, text = corpora.load(given)
    (corpus,) = split(text.tadoc.compress())
    rules, rank = cpu.load_rules(corpus.grammar), corpus.grammar.words.rank
    size, root_offsets, roots = rules.terminals, corpus.root_offsets, corpus.roots
    offsets, words = expand_words(rules, root_offsets, roots)
    by_rank = np.argsort(rank)

    def in_order(counts: UInt64) -> Any:
        counts = counts[by_rank]
        return by_rank[counts > 0], counts[counts > 0]

    ours: dict[str, Callable[[str], Any]] = {
        "word_count": lambda strategy: (cpu.terminal_counts(rules, roots, strategy),),
        "sort": lambda strategy: in_order(cpu.terminal_counts(rules, roots, strategy)),
        "inverted_index": lambda strategy: cpu.count_by_terminal(rules, root_offsets, roots, strategy, False)[:2],
        "term_vector": lambda strategy: cpu.count_by_document(rules, root_offsets, roots, strategy, rank),
    }
    baseline: dict[str, Callable[[], Any]] = {
        "word_count": lambda: (word_counts(size, words),),
        "sort": lambda: in_order(word_counts(size, words)),
        "inverted_index": lambda: inverted_index(size, offsets, words),
        "term_vector": lambda: term_vector(size, offsets, words, rank),
    }
    return name, {
        analytic: {
            **{strategy: lambda run=run, strategy=strategy: run(strategy) for strategy in STRATEGIES},
            "baseline": baseline[analytic],
        }
        for analytic, run in ours.items()
    }


def anew(run: Callable[[], object]) -> Callable[[], object]:
    """The same without tables that were kept."""

    def run_anew() -> object:
        kept.clear()
        return run()

    return run_anew


def main() -> None:
    args = corpora.arguments(__doc__ or "").parse_args()
    print(f"machine: {corpora.machine()}")
    print(f"{'corpus':22}{'analytic':16}{'top_down':>10}{'bottom_up':>10}{'anew':>10}{'baseline':>10}{'ratio':>7}")
    tadoc.Config.set(engine="cpu")
    for given in corpora.names(args.corpora):
        name, analytics = contenders(given)
        for analytic, runs in analytics.items():
            expected = runs["baseline"]()
            for strategy in STRATEGIES:
                if not same(runs[strategy](), expected):
                    raise SystemExit(f"{name}: {analytic} {strategy} gives other results than the baseline")
            taken = times(runs, args.repeat)
            taken |= times({"anew": anew(runs["top_down"])}, args.repeat)
            better = min(STRATEGIES, key=lambda strategy: median_ms(taken, strategy))
            print(f"{name:22}{analytic:16}", end="")
            print(
                "".join(f"{median_ms(taken, contender):10.2f}" for contender in (*STRATEGIES, "anew", "baseline")),
                end="",
            )
            print(f"{ratio(taken, 'baseline', better):7.2f}", flush=True)


if __name__ == "__main__":
    main()
