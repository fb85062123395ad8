"""Dictionaries as succinct tries: bits a word by part, building, look-ups a second on one core.

Beside marisa-trie (its defaults) and a Python dict. Words of all corpora, and ten million runs of two and three of
their words. Tokens looked up are drawn by real frequency, and evenly from all words.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import marisa_trie
import numpy as np
import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.drawn_text import vocabulary
from polars_tadoc.config import own_threads
from polars_tadoc.kernels.trie import trie_cpu as cpu
from polars_tadoc.kernels.trie.arrays import Trie

PARTS = {
    "labels": ["labels"],
    "tails": ["codes", "phrases", "phrase_starts"],
    "structure": ["blocks", "code_ends", "inner_words", "inner_words_before"],
}
"""What the arrays are: bytes of words, the bytes that they share, and bit vectors with their directories."""


def runs_of_words(number: int) -> pl.DataFrame:
    """Pairs of adjacent words of all corpora, filled up with the most frequent runs of three."""
    found = pl.DataFrame(schema={"word": pl.String, "count": pl.UInt64})
    for n in (2, 3):
        parts = []
        for path in sorted(corpora.SHARED.glob("*.parquet")):
            if "text" in pl.read_parquet_schema(path) and "queries" not in path.stem:
                column = tadoc.compress(pl.read_parquet(path, columns=["text"])["text"], lossless=False)
                counted = pl.DataFrame(tadoc.sequence_count(column, n=n, top=number))
                parts.append(
                    counted.select(pl.col("sequence").cast(pl.List(pl.String)).list.join(" ").alias("word"), "count")
                )
        runs = pl.concat(parts).group_by("word").agg(pl.col("count").sum())
        runs = runs.sort(["count", "word"], descending=[True, False])
        found = pl.concat([found, runs.head(number - len(found))])
        if len(found) == number:
            break
    return found


def joined(words: pl.Series) -> tuple[Any, Any]:
    """Offsets and bytes of words."""
    array = words.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    offsets = np.frombuffer(array.buffers()[1], np.int64)[: len(words) + 1].copy()
    return offsets, np.concatenate([np.frombuffer(array.buffers()[2], np.uint8)[: offsets[-1]], np.zeros(8, np.uint8)])


def timed(call: Callable[[], Any]) -> float:
    """Seconds of processor time, of all threads together."""
    start = time.process_time()
    call()
    return time.process_time() - start


def speeds(trie: Trie, peer: Any, table: Any, tokens: pl.Series, ids: Any, repeat: int) -> dict[str, float]:
    """Million words a second on one core, by what looks them up or spells them."""
    offsets, data = joined(tokens)
    few = tokens.head(len(tokens) // 4).to_list()
    calls: dict[str, tuple[int, Callable[[], Any]]] = {
        "trie": (len(tokens), lambda: cpu.look_up(trie, data, offsets[:-1], offsets[1:])),
        "marisa-trie": (len(few), lambda: [peer[word] for word in few]),
        "dict": (len(few), lambda: [table[word] for word in few]),
        "spelled": (len(tokens), lambda: cpu.spell(trie, ids)),
    }
    times: dict[str, list[float]] = {call: [] for call in calls}
    with own_threads(1):
        assert (cpu.look_up(trie, data, offsets[:-1], offsets[1:]) == ids).all()
        assert cpu.spell(trie, ids)[1].tobytes() == data[: offsets[-1]].tobytes()
        for _ in range(repeat):
            for call, (_, run) in calls.items():
                times[call].append(timed(run))
    return {call: calls[call][0] / median(each) / 1e6 for call, each in times.items()}


def measure(name: str, counted: pl.DataFrame, tokens: int, repeat: int) -> None:
    """Print the table of one dictionary."""
    counted = counted.sort("word")
    words, count = counted["word"], len(counted)
    offsets, data = joined(words)
    cpu.build_trie(*joined(pl.Series(["a", "ab" * 9])))  # compiled
    start = time.perf_counter()
    trie: Trie = cpu.build_trie(offsets, data)
    seconds = time.perf_counter() - start
    ids = cpu.look_up(trie, data, offsets[:-1], offsets[1:])
    strings = words.to_list()
    start = time.perf_counter()
    peer = marisa_trie.Trie(strings)
    peer_seconds = time.perf_counter() - start
    table = dict(zip(strings, ids.tolist(), strict=True))
    bits = {part: sum(8 * getattr(trie, array).nbytes for array in arrays) / count for part, arrays in PARTS.items()}
    print(f"\n{name}: {count:,} words of {(offsets[-1] / count):.1f} bytes, {trie.edges / count:.3f} edges a word")
    print("  bits a word: " + ", ".join(f"{part} {value:.2f}" for part, value in bits.items()), end="; ")
    print(f"in all {8 * trie.nbytes / count:.2f}, marisa-trie {8 * len(peer.tobytes()) / count:.2f}")
    print(f"  built in {seconds:.1f} s, marisa-trie in {peer_seconds:.1f} s")
    random = np.random.default_rng(0)
    sums = np.cumsum(counted["count"].to_numpy().astype(np.float64))
    drawn = {
        "by frequency": np.searchsorted(sums, random.random(tokens) * sums[-1]),
        "evenly": random.integers(0, count, tokens),
    }
    for kind, chosen in drawn.items():
        rates = speeds(trie, peer, table, words.gather(chosen), ids[chosen], repeat)
        print(f"  M words/s, drawn {kind}: " + ", ".join(f"{call} {rate:.2f}" for call, rate in rates.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vocabulary", type=Path, help="written by benchmarks.drawn_text; made anew without")
    parser.add_argument("--ngrams", type=int, default=10_000_000, help="runs of words")
    parser.add_argument("--runs", type=Path, help="Parquet of word and count in place of runs of words")
    parser.add_argument("--tokens", type=int, default=4_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    print(corpora.machine())
    measure("words of all corpora", vocabulary(options.vocabulary), options.tokens, options.repeat)
    runs = runs_of_words(options.ngrams) if options.runs is None else pl.read_parquet(options.runs)
    measure("runs of words", runs, options.tokens, options.repeat)


if __name__ == "__main__":
    main()
