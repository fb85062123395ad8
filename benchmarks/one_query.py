r"""One query at a time: ``python -m benchmarks.one_query``.

Median and 99th percentile of the microseconds from a string to results, top 10, over 1,000 queries of two to four
words of random documents, each asked once: ``index.search`` (a frame), ``index.top`` (NumPy arrays) and tantivy
(parsed query to scores and addresses), in turns, with 1 and with 2 threads. Phrases are two adjacent words of a
document. The documents are those of docs_tldr, with the paragraphs of docs_peps and of the speeches; words are
lower-cased.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora

ROWS, PARAGRAPHS = ["docs_tldr"], ["docs_peps", "prose_speeches"]
DOCUMENTS = 58_000
QUERIES = 1000
K = 10


def documents() -> pl.Series:
    """Rows and paragraphs of the corpora, or of the samples in the tree."""
    if not corpora.SHARED.is_dir():
        return pl.concat([_paragraphs(corpora.load(name)[1]) for name in corpora.names([])]).rechunk()
    rows = [corpora.load(name)[1] for name in ROWS]
    return pl.concat([*rows, *(_paragraphs(corpora.load(name)[1]) for name in PARAGRAPHS)]).head(DOCUMENTS).rechunk()


def _paragraphs(text: pl.Series) -> pl.Series:
    pieces = text.str.replace_all("\r", "").str.split("\n\n").explode().str.strip_chars()
    return pieces.filter(pieces.str.len_bytes() > 0)


def draw(text: pl.Series) -> tuple[list[str], list[str]]:
    """Draw queries of two to four words, and phrases of two, from random documents."""
    random = np.random.default_rng(7)
    queries: list[str] = []
    phrases: list[str] = []
    words = text.str.to_lowercase().str.extract_all(r"\w+")
    while len(queries) < QUERIES:
        own = words[int(random.integers(len(words)))].to_list()
        size = int(random.integers(2, 5))
        if len(own) >= size:
            queries.append(" ".join(random.choice(own, size, replace=False)))
            at = int(random.integers(len(own) - size + 1))
            phrases.append(f'"{" ".join(own[at : at + size])}"')
    return queries, phrases


def tantivy_search(text: pl.Series) -> Callable[[str], Any] | None:
    """Index with tantivy; None where it is not installed."""
    try:
        import tantivy
    except ImportError:
        return None
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("body", stored=False)
    index = tantivy.Index(builder.build())
    writer = index.writer(num_threads=1)
    for body in text:
        writer.add_document(tantivy.Document(body=[body]))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    return lambda query: searcher.search(index.parse_query(query, ["body"]), K, count=False).hits


def microseconds(calls: dict[str, tuple[Callable[[str], Any], list[str]]], repeat: int) -> dict[str, list[float]]:
    """Ask each contender's queries one by one, contenders in turns; the first round warms up."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for round_ in range(repeat + 1):
        for name, (call, queries) in calls.items():
            for query in queries:
                start = time.perf_counter_ns()
                call(query)
                if round_:
                    taken[name].append((time.perf_counter_ns() - start) / 1000)
    return taken


def main() -> None:
    args = corpora.arguments(__doc__ or "").parse_args()
    print(f"machine: {corpora.machine()}")
    text = documents()
    queries, phrases = draw(text)
    index = tadoc.build_index(text.tadoc.compress(), lowercase=True)  # type: ignore[attr-defined]
    print(f"{index.documents:,} documents, {index.terms:,} terms, {index.postings:,} postings; k={K}")
    calls: dict[str, tuple[Callable[[str], Any], list[str]]] = {}
    for mode in ("or", "and"):
        calls[f"search, {mode}"] = (lambda query, mode=mode: index.search(query, K, mode=mode, engine="cpu"), queries)
        calls[f"top, {mode}"] = (lambda query, mode=mode: index.top(query, K, mode=mode, engine="cpu"), queries)
    calls["search, phrase"] = (lambda query: index.search(query, K, engine="cpu"), phrases)
    calls["top, phrase"] = (lambda query: index.top(query, K, engine="cpu"), phrases)
    peer = tantivy_search(text)
    if peer is not None:
        calls["tantivy, or"] = peer, queries
    for threads in (1, 2):
        with tadoc.Config(threads=threads):
            print(f"{threads} thread{'s' * (threads > 1)}:{'median':>22}{'p99':>9}  µs")
            for name, taken in microseconds(calls, args.repeat).items():
                print(f"  {name:18}{np.median(taken):11.1f}{np.percentile(taken, 99):9.1f}")


if __name__ == "__main__":
    main()
