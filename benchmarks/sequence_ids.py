r"""Sequences and pairs against Numba on uncompressed word ids, two threads: ``python -m benchmarks.sequence_ids``.

The contender has the documents' words as 32-bit ids, expanded beforehand, and takes every window of them: the same
packing of keys, the same sorting, the same order of results, so that what differs is the number of windows and how they
are made. Results are compared first. ``--each-n`` names one corpus whose sequences are counted for n from 1 to 8.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numba as nb
import numpy as np

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.side_by_side import median_ms, ratio, times
from polars_tadoc.engine import cpu
from polars_tadoc.kernels.keys import key_forms_cpu as key_forms
from polars_tadoc.kernels.keys import key_numbers_cpu as key_numbers
from polars_tadoc.kernels.keys import key_order_cpu as key_order
from polars_tadoc.kernels.keys import posting_order_cpu as posting_order
from polars_tadoc.kernels.sequences import sequences_cpu as sequences
from polars_tadoc.kernels.sequences import word_pairs_cpu as word_pairs
from polars_tadoc.model.column import split
from polars_tadoc.runtime.parallel import even_chunks, map_parallel, weighted_chunks

STANDARD = [*corpora.STANDARD, "logs_elastic", "versioned_powershell"]
WINDOW = 5
_1 = np.uint64(1)


@nb.njit(nogil=True, cache=True)
def expand(terminals: int, rule_offsets: Any, symbols: Any, starts: Any, roots: Any, words: Any, ids: Any) -> None:
    """Write each rule's words, then the documents'."""
    for r in range(len(rule_offsets) - 1):
        at = starts[r]
        for i in range(rule_offsets[r], rule_offsets[r + 1]):
            s = nb.int64(symbols[i])
            if s < terminals:
                words[at] = s
                at += 1
            else:
                for k in range(starts[s - terminals], starts[s - terminals + 1]):
                    words[at] = words[k]
                    at += 1
    at = 0
    for i in range(len(roots)):
        s = nb.int64(roots[i])
        if s < terminals:
            ids[at] = s
            at += 1
        else:
            for k in range(starts[s - terminals], starts[s - terminals + 1]):
                ids[at] = words[k]
                at += 1


@nb.njit(nogil=True, cache=True)
def histogram(ids: Any, first: int, stop: int, counts: Any) -> None:
    for i in range(nb.uint64(first), nb.uint64(stop)):
        counts[ids[i]] += _1


@nb.njit(nogil=True, cache=True)
def write_windows(
    ids: Any, offsets: Any, rank: Any, n: int, bits: int, mask: int, places: Any, first: int, stop: int, out: Any
) -> None:
    """Write the runs of n words of documents as packed ranks."""
    for d in range(nb.uint64(first), nb.uint64(stop)):
        if places[d] == places[d + _1]:
            continue
        packed = nb.uint64(0)
        start = nb.uint64(offsets[d])
        for i in range(nb.uint64(n - 1)):
            packed = (packed << nb.uint64(bits)) | nb.uint64(rank[ids[start + i]])
        start += nb.uint64(n - 1) - nb.uint64(places[d])
        for at in range(nb.uint64(places[d]), nb.uint64(places[d + _1])):
            packed = (packed << nb.uint64(bits)) | nb.uint64(rank[ids[start + at]])
            out[at] = packed & nb.uint64(mask)


@nb.njit(nogil=True, cache=True)
def spread_windows(ids: Any, before: Any, starts: Any, bits: int, places: Any, first: int, stop: int, out: Any) -> None:
    """Write the runs of words of documents as packed ids of shorter runs that begin at ``starts`` in them."""
    for d in range(nb.uint64(first), nb.uint64(stop)):
        ahead = nb.uint64(before[d] - places[d])
        for at in range(nb.uint64(places[d]), nb.uint64(places[d + _1])):
            packed = nb.uint64(0)
            for start in starts:
                packed = (packed << nb.uint64(bits)) | nb.uint64(ids[at + ahead + nb.uint64(start)])
            out[at] = packed


@nb.njit(nogil=True, cache=True)
def write_pairs(
    ids: Any, offsets: Any, ranks: Any, window: int, bits: int, places: Any, first: int, stop: int, out: Any, hot: Any
) -> Any:
    """Write the pairs of words of documents as packed ranks, the lower first, but count those of two hot words."""
    below = nb.uint64(word_pairs.HOT)
    mask = (_1 << below) - _1
    at = nb.uint64(places[first])
    for d in range(nb.uint64(first), nb.uint64(stop)):
        start, near = nb.uint64(offsets[d]), nb.uint64(window)
        for i in range(start, nb.uint64(offsets[d + _1])):
            word = nb.uint64(ranks[ids[i]])
            for j in range(i - min(near, i - start), i):
                other = nb.uint64(ranks[ids[j]])
                low, high = min(word, other), max(word, other)
                out[at] = low >> below << nb.uint64(bits) | high >> below
                low, high = low & mask, high & mask
                hot[low << below | high] += nb.uint32(1)
                at += nb.uint64(low == 0) | nb.uint64(high == 0)
    return nb.int64(at)


@nb.njit(nogil=True, cache=True)
def scatter_documents(window_ids: Any, before: Any, first: int, stop: int, places: Any, documents: Any) -> None:
    """List the documents of each window, one for each time that it occurs."""
    for d in range(nb.uint64(first), nb.uint64(stop)):
        for i in range(nb.uint64(before[d]), nb.uint64(before[d + _1])):
            at = nb.uint64(places[window_ids[i]])
            places[window_ids[i]] = at + _1
            documents[at] = d


@nb.njit(nogil=True, cache=True)
def sum_runs(starts: Any, listed: Any, first: int, stop: int, documents: Any, counts: Any, sizes: Any) -> None:
    """Sum equal documents of each window up, in place."""
    for w in range(nb.uint64(first), nb.uint64(stop)):
        start = nb.uint64(starts[w])
        out = start - _1
        for i in range(start, nb.uint64(starts[w + _1])):
            if i == start or listed[i] != documents[out]:
                out += _1
                documents[out] = listed[i]
                counts[out] = 0
            counts[out] += _1
        sizes[w] = nb.int64(out + _1 - start)


@nb.njit(nogil=True, cache=True)
def compact(
    starts: Any, offsets: Any, first: int, stop: int, documents: Any, counts: Any, to: Any, to_counts: Any
) -> None:
    for w in range(nb.uint64(first), nb.uint64(stop)):
        at, start = nb.uint64(offsets[w]), nb.uint64(starts[w])
        for i in range(nb.uint64(offsets[w + _1]) - at):
            to[at + i] = documents[start + i]
            to_counts[at + i] = counts[start + i]


def before(sizes: Any) -> Any:
    return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])


class Plain:
    """Documents as word ids."""

    def __init__(self, corpus: tadoc.Corpus) -> None:
        grammar = corpus.grammar
        lengths = np.concatenate(
            [np.ones(grammar.vocabulary_size, np.int64), grammar.expansion_lengths.astype(np.int64)]
        )
        starts = before(lengths[grammar.vocabulary_size :])
        word_offsets = before(lengths[corpus.roots])
        self.offsets = word_offsets[corpus.root_offsets]
        self.ids = np.empty(word_offsets[-1], np.uint32)
        words = np.empty(starts[-1], np.uint32)
        expand(
            grammar.vocabulary_size,
            grammar.rule_offsets.astype(np.int64),
            grammar.symbols,
            starts,
            corpus.roots,
            words,
            self.ids,
        )
        self.rank = grammar.words.rank
        self.bits = max(1, (grammar.vocabulary_size - 1).bit_length())

    def windows(self, n: int) -> tuple[Any, key_forms.Form, Any]:
        """Every window's key, their form, and the windows before each document."""
        places = before(np.maximum(0, np.diff(self.offsets) - n + 1))
        out = np.empty(places[-1], np.uint64)
        if n * self.bits <= 64:
            form: key_forms.Form = key_forms.Ranks(n, self.bits)
            mask = np.uint64((1 << form.width) - 1)
            read: tuple[Any, ...] = (self.ids, self.offsets, self.rank, n, self.bits, mask, places)
            map_parallel(partial(apply, write_windows, read, (out,)), weighted_chunks(places))
            return out, form, places
        windows, part, starts = self.windows(-(-n // 3))
        while True:
            ids, distinct = key_numbers.dense_ids(windows)
            form = key_forms.Spread.of(key_forms.Numbered(distinct, part), n)
            if form.width <= 64:
                break
            words = min(-(-n // 2), 64 // form.part.width * form.part.words)
            part = key_forms.Spread.of(form.part, words)
            shorter = before(np.maximum(0, np.diff(self.offsets) - words + 1))
            windows = np.empty(shorter[-1], np.uint64)
            read = (ids, starts, np.array(part.starts), part.part.width, shorter)
            map_parallel(partial(apply, spread_windows, read, (windows,)), weighted_chunks(shorter))
            starts = shorter
        read = (ids, starts, np.array(form.starts), form.part.width, places)
        map_parallel(partial(apply, spread_windows, read, (out,)), weighted_chunks(places))
        return out, form, places

    def sequence_counts(self, n: int) -> tuple[Any, Any]:
        """Count the runs of n words."""
        if n == 1:
            chunks = even_chunks(len(self.ids))
            counts = np.zeros((len(chunks), len(self.rank)), np.uint64)
            map_parallel(lambda k: histogram(self.ids, *chunks[k], counts[k]), range(len(chunks)))
            counted = key_order.Counted.of(self.rank.astype(np.uint64), counts.sum(axis=0))
            return sequences._chosen(counted, key_forms.Ranks(1, self.bits), self.rank, 1, None)
        windows, form, _ = self.windows(n)
        keys, totals = key_order.sum_in_result_order([(windows, None, None)], bits=form.width)
        return key_forms.words_of(keys, form, self.rank), totals

    def pair_counts(self, window: int) -> tuple[Any, Any]:
        """Count the pairs of words at most ``window`` apart."""
        lengths = np.diff(self.offsets)
        near = np.minimum(lengths, window)
        places = before(near * (near - 1) // 2 + (lengths - near) * window)
        pairs = np.empty(places[-1], np.uint64)
        hot, ranks = word_pairs.hot_words(self.rank)
        read = (self.ids, self.offsets, ranks, window, self.bits, places)
        chunks = weighted_chunks(places)
        counters = np.zeros((len(chunks), 1 << 2 * word_pairs.HOT), np.uint32)
        ends = map_parallel(lambda k: write_pairs(*read, *chunks[k], pairs, counters[k]), range(len(chunks)))
        shares = [(int(places[first]), end) for (first, _), end in zip(chunks, ends, strict=True)]
        counted = word_pairs.hot_pairs(hot, self.bits, counters.sum(axis=0, dtype=np.uint64))
        form = key_forms.Ranks(2, self.bits)
        keys, totals = key_order.sum_in_result_order([(pairs, None, shares), (*counted, None)], bits=form.width)
        return key_forms.words_of(keys, form, self.rank), totals

    def sequence_postings(self, n: int) -> tuple[Any, Any, Any, Any]:
        """List the documents of each run of n words: windows are sorted by id, which leaves documents ascending."""
        windows, form, places = self.windows(n)
        ids, distinct = key_numbers.dense_ids(windows)
        chunks = weighted_chunks(places)
        counts = np.zeros((len(chunks), len(distinct)), np.uint64)
        map_parallel(lambda k: histogram(ids, *places[list(chunks[k])], counts[k]), range(len(chunks)))
        starts = before(counts.sum(axis=0))
        shares = starts[:-1] + (np.cumsum(counts, axis=0) - counts).astype(np.int64)
        listed = np.empty(len(ids), np.uint32)
        map_parallel(lambda k: scatter_documents(ids, places, *chunks[k], shares[k], listed), range(len(chunks)))
        documents, times_held = np.empty(len(ids), np.uint32), np.empty(len(ids), np.uint64)
        sizes = np.zeros(len(distinct), np.int64)
        map_parallel(
            partial(apply, sum_runs, (starts, listed), (documents, times_held, sizes)), weighted_chunks(starts)
        )
        offsets = before(sizes)
        packed, packed_counts = np.empty(offsets[-1], np.uint32), np.empty(offsets[-1], np.uint64)
        map_parallel(
            partial(apply, compact, (starts, offsets), (documents, times_held, packed, packed_counts)),
            weighted_chunks(offsets),
        )
        _, *postings = posting_order.rank_postings(offsets, packed, packed_counts, 1, None)
        return key_forms.words_of(distinct, form, self.rank), *postings


def apply(kernel: Callable[..., None], read: tuple[Any, ...], written: tuple[Any, ...], chunk: tuple[int, int]) -> None:
    kernel(*read, *chunk, *written)


def measure(name: str, ours: Callable[[], Any], plain: Callable[[], Any], repeat: int) -> None:
    """Compare the results of both, time them in turn and print."""
    for a, b in zip(ours(), plain(), strict=True):
        if not np.array_equal(a, b):
            raise SystemExit(f"{name}: the results differ")
    taken = times({"ours": ours, "plain": plain}, repeat)
    print(
        f"{name:44}{median_ms(taken, 'ours'):10.1f}{median_ms(taken, 'plain'):10.1f}"
        f"{ratio(taken, 'plain', 'ours'):8.2f}",
        flush=True,
    )


def main() -> None:
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--each-n", default="docs_peps", help="corpus whose sequences are counted for n from 1 to 8")
    parser.add_argument("--strategy", default="top_down", choices=["top_down", "bottom_up"])
    args = parser.parse_args()
    print(f"machine: {corpora.machine()}; {args.strategy}")
    print(f"{'corpus':24}{'analytic':20}{'ours ms':>10}{'ids ms':>10}{'x ids':>8}")
    tadoc.Config.set(engine="cpu")
    for given in corpora.names(args.corpora or STANDARD):
        name, text = corpora.load(given)
        corpus = split(text.tadoc.compress())[0]
        plain, rules, rank = Plain(corpus), cpu.load_rules(corpus.grammar), corpus.grammar.words.rank
        read = (rules, corpus.root_offsets, corpus.roots)

        def run(analytic: str, size: int, read: Any = read, rank: Any = rank) -> Callable[[], Any]:
            return lambda: getattr(cpu, analytic)(*read, size, rank, args.strategy)

        def run_plain(analytic: str, size: int, plain: Plain = plain) -> Callable[[], Any]:
            return lambda: getattr(plain, analytic)(size)

        cases = [("sequence_counts", n) for n in (range(1, 9) if name == args.each_n else (1, 2, 3, 5))]
        for analytic, size in [*cases, ("sequence_postings", 3), ("pair_counts", WINDOW)]:
            measure(f"{name:24}{analytic} {size}", run(analytic, size), run_plain(analytic, size), args.repeat)


if __name__ == "__main__":
    main()
