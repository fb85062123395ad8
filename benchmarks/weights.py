r"""BM25 weights of every word in every document: ``python -m benchmarks.weights``.

The data of Wakatsuki et al. made again (:mod:`benchmarks.drawn_text`): from a String series in host memory to a table
of id, word and weight in host memory, transfers and all. Ours: on the String column, on it with a dictionary of the
whole vocabulary, and on the compressed column, whose compression is timed apart; on each engine that runs here. Peers
(:mod:`benchmarks.weights_peers`) run on all cores; MapReduce over Python's dictionaries on a share of the documents,
and its time is multiplied.

Contenders run in turn. Sampled documents must have the same words and weights (to 1e-9) everywhere.
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

import polars_tadoc as tadoc
from benchmarks import corpora, drawn_text, weights_peers
from benchmarks.weights_peers import K1, B, Weights
from polars_tadoc.analytics.bm25_weights import BM25WeightsRequest
from polars_tadoc.engine.choose import choose
from polars_tadoc.execute.terms import Terms
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.records.labelled_results import Labels
from polars_tadoc.traversal.text_source import prepare_text

SAMPLES = 20
FORMULA = {"scoring": "wakatsuki", "k1": K1, "b": B}


@dataclass(frozen=True)
class Contender:
    """One way to the weights."""

    run: Callable[[], Any]
    sample: Callable[[Any, Sequence[int]], Weights]
    scale: float = 1.0
    """By how much its time is multiplied: it runs on a share of the documents."""
    formula: str = "wakatsuki"


def sample_table(table: pa.Table, documents: Sequence[int]) -> Weights:
    """Read some documents of a result of ours, which is in the order of the documents."""
    found: Weights = {}
    ids = table["id"].to_numpy()
    for document in documents:
        first, last = np.searchsorted(ids, [document, document + 1])
        own = table.slice(first, last - first)
        found[document] = dict(zip(own["word"].to_pylist(), own["weight"].to_pylist(), strict=True))
    return found


@contextmanager
def on_threads(threads: int) -> Iterator[None]:
    """Keep this package on so many threads."""
    with tadoc.Config(threads=threads):
        yield


def ours(text: pl.Series, vocabulary: pl.Series, threads: int, compressed: bool) -> dict[str, Contender]:
    """Our ways, on each engine."""
    dictionary = tadoc.Dictionary.from_words(vocabulary)
    made: dict[str, Contender] = {}

    def add(name: str, column: pl.Series, threads: int, **options: Any) -> None:
        def run() -> pa.Table:
            with on_threads(threads):
                return tadoc.bm25_weights(column, **FORMULA, **options)

        made[name] = Contender(run, sample_table)

    column = None
    if compressed:
        start = time.perf_counter()
        column = tadoc.compress(text, lossless=False)
        print(f"compression, apart: {time.perf_counter() - start:.2f} s")
    for engine in tadoc.testing.engines():
        if engine == "cpu":
            add("cpu, text, 1 thread", text, 1, engine=engine)
        own = threads if engine == "cpu" else 0  # all cores copy what goes to a GPU and comes back
        add(f"{engine}, text", text, own, engine=engine)
        add(f"{engine}, text, dictionary", text, own, engine=engine, dictionary=dictionary)
        if column is not None:
            add(f"{engine}, compressed", column, own, engine=engine)
    return made


def theirs(text: pl.Series, share: float, names: Sequence[str]) -> dict[str, Contender]:
    """The peers that are there, of those whose names begin with one of some."""
    made = {}
    for name, peer in weights_peers.available().items():
        if not name.startswith(tuple(names)):
            continue
        part = text if not isinstance(peer, weights_peers.MapReduce) else text.head(max(1, int(share * len(text))))
        scale = len(text) / len(part)
        label = name if scale == 1 else f"{name}, {share:.0%} of rows x {scale:.0f}"
        formula = "lucene" if isinstance(peer, weights_peers.BM25S) else "wakatsuki"
        made[label] = Contender(lambda peer=peer, part=part: peer(part), peer.sample, scale, formula)
    return made


def check(text: pl.Series, contender: Contender, name: str, found: Weights) -> None:
    """Hold sampled documents to what this package gives on one thread of the CPU."""
    rows = text if contender.scale == 1 else text.head(round(len(text) / contender.scale))
    expected = _expected(rows, contender.formula, sorted(found))
    for document, own in expected.items():
        if own.keys() != found[document].keys() or not all(
            math.isclose(weight, found[document][word], rel_tol=1e-9, abs_tol=1e-12) for word, weight in own.items()
        ):
            raise SystemExit(f"{name}: document {document} has other weights")


_known: dict[tuple[int, str], Weights] = {}


def _expected(text: pl.Series, formula: str, documents: list[int]) -> Weights:
    """Weigh some documents by the formula as it is written, from counts that Polars makes."""
    if (len(text), formula) not in _known:
        own = [text[document].split(" ") for document in documents]
        wanted = {word for row in own for word in row}
        cut = text.str.split(" ")
        holding = cut.list.unique().explode().filter(cut.list.unique().explode().is_in(list(wanted)))
        frequencies = dict(holding.value_counts().iter_rows())
        n, mean = len(text), float(cut.list.len().mean())
        weights: Weights = {}
        for document, row in zip(documents, own, strict=True):
            norm = K1 * ((1 - B) + B * len(row) / mean)
            weights[document] = {}
            for word in set(row):
                tf, df = row.count(word), frequencies[word]
                idf = math.log((n + 0.5) / (df + 0.5)) * (K1 + 1)
                if formula == "lucene":
                    idf = math.log(1 + (n - df + 0.5) / (df + 0.5))
                weights[document][word] = idf * tf / (tf + norm)
        _known[len(text), formula] = weights
    return _known[len(text), formula]


def race(text: pl.Series, contenders: dict[str, Contender], rounds: int) -> dict[str, list[float]]:
    """Run contenders in turn; seconds of each."""
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for round_ in range(rounds):
        for name, contender in contenders.items():
            gc.collect()
            start = time.perf_counter()
            result = contender.run()
            taken[name].append((time.perf_counter() - start) * contender.scale)
            if round_ == 0:
                rows = round(len(text) / contender.scale)
                documents = np.linspace(0, rows - 1, min(SAMPLES, rows)).astype(int).tolist()
                check(text, contender, name, contender.sample(result, documents))
            del result
    return taken


def steps(text: pl.Series, threads: int, rounds: int) -> None:
    """Print where our time goes, step by step."""
    request = BM25WeightsRequest.from_arguments(**FORMULA)
    for name in tadoc.testing.engines():
        engine = choose(name, 0)
        taken: dict[str, list[float]] = {}
        for _ in range(rounds):
            with on_threads(threads if name == "cpu" else 0):
                clock = _Clock(taken, name)
                source = prepare_text(text, Tokenizer("words"), engine)
                clock.stop("cut and map")
                counted = engine.kernels.terms_by_document(
                    source.rules, source.root_offsets, source.roots, "top_down", source.rank
                )
                clock.stop("count")
                terms = Terms(engine, source.words, True, source.rows, *counted, source.lengths)
                result = request.result(terms, Labels(None))
                clock.stop("weigh")
                table = result.to_arrow()
                clock.stop("table")
                del source, counted, terms, result, table
        print(f"{name}, text, step by step: ", end="")
        print(", ".join(f"{step} {min(seconds):.3f} s" for step, seconds in taken.items()))


class _Clock:
    def __init__(self, taken: dict[str, list[float]], engine: str) -> None:
        self.taken, self.engine, self.start = taken, engine, time.perf_counter()

    def stop(self, step: str) -> None:
        if self.engine == "gpu":
            import cupy

            cupy.cuda.Device().synchronize()
        now = time.perf_counter()
        self.taken.setdefault(step, []).append(now - self.start)
        self.start = now


def report(taken: dict[str, list[float]], size: float) -> None:
    """Print seconds, and how many times each of ours is faster than each peer in the same round."""
    own = [name for name in taken if name.startswith(("cpu", "gpu"))]
    print(f"{'':44}{'min s':>9}{'median s':>10}{'MB/s':>8}")
    for name, seconds in taken.items():
        median = statistics.median(seconds)
        print(f"{name:44}{min(seconds):9.3f}{median:10.3f}{size / 1e6 / median:8.0f}")
    print("\ntimes faster (median over rounds):")
    for peer in taken:
        if peer not in own:
            ratios = [
                f"{name} {statistics.median(a / b for a, b in zip(taken[peer], taken[name], strict=True)):.1f}"
                for name in own
            ]
            print(f"  than {peer}: " + "; ".join(ratios))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100, help="size of the text (default: 100)")
    parser.add_argument(
        "--vocabulary", type=Path, help="Parquet file of benchmarks.drawn_text (default: the corpora's)"
    )
    parser.add_argument("--repeat", type=int, default=3, help="rounds; each runs every contender once (default: 3)")
    parser.add_argument(
        "--threads", type=int, default=len(os.sched_getaffinity(0)), help="CPU threads of our CPU engine"
    )
    parser.add_argument("--share", type=float, default=0.05, help="share of the rows for MapReduce (default: 0.05)")
    parser.add_argument("--peers", nargs="*", default=[""], help="what their names begin with (default: all)")
    parser.add_argument("--without-compressed", action="store_true", help="leave the compressed path out")
    args = parser.parse_args()
    words = drawn_text.vocabulary(args.vocabulary)
    print(f"machine: {corpora.machine()}; engines: {', '.join(tadoc.testing.engines())}; threads: {args.threads}")
    tiny = drawn_text.draw(words, 1, seed=1)
    for contender in (ours(tiny, words["word"], args.threads, True) | theirs(tiny, 1.0, args.peers)).values():
        contender.run()  # kernels are compiled
    text = drawn_text.draw(words, args.megabytes)
    size = int(text.str.len_bytes().sum())
    total = int(text.str.count_matches(" ").sum()) + len(text)
    print(f"{size / 1e6:.1f} MB, {len(text):,} documents, {total:,} words, drawn from {len(words):,}")
    contenders = ours(text, words["word"], args.threads, not args.without_compressed)
    contenders |= theirs(text, args.share, args.peers)
    report(race(text, contenders, args.repeat), size)
    steps(text, args.threads, args.repeat)


if __name__ == "__main__":
    main()
