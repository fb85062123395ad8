r"""One query at a time: ``python -m benchmarks.one_query``.

Median and 99th percentile of the microseconds from a string to results, top 10, over 1,000 queries of two to four
words of random documents: ``index.search`` (a frame), ``index.top`` (NumPy arrays) and tantivy (parsed query to scores
and addresses), in turns, with 1 and with 2 threads. Queries are drawn twice: without bm25s' English stop words, as in
``benchmarks.search``, and from all words. Phrases are two to four adjacent words of a document. The documents are those
of docs_tldr, with the first paragraphs of docs_peps; words are lower-cased. On a machine that others share, the last
column tells more: the median over queries of each query's fastest round.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora

ROWS, PARAGRAPHS = ["docs_tldr"], ["docs_peps"]
DOCUMENTS = 58_000
QUERIES = 1000
K = 10


def documents() -> pl.Series:
    """Rows and paragraphs of the corpora, or of the samples in the tree."""
    if not corpora.SHARED.is_dir():
        return pl.concat([paragraphs(corpora.load(name)[1]) for name in corpora.names([])]).rechunk()
    rows = [corpora.load(name)[1] for name in ROWS]
    return pl.concat([*rows, *(paragraphs(corpora.load(name)[1]) for name in PARAGRAPHS)]).head(DOCUMENTS).rechunk()


def paragraphs(text: pl.Series) -> pl.Series:
    """Cut texts at empty lines."""
    pieces = text.str.replace_all("\r", "").str.split("\n\n").explode().str.strip_chars()
    return pieces.filter(pieces.str.len_bytes() > 0)


def draw(text: pl.Series) -> dict[str, list[str]]:
    """Draw queries of two to four words, with and without stop words, and phrases, from random documents."""
    from bm25s.stopwords import STOPWORDS_EN  # type: ignore[import-untyped]

    random = np.random.default_rng(7)
    drawn: dict[str, list[str]] = {"words": [], "all words": [], "phrases": []}
    words = text.str.to_lowercase().str.extract_all(r"\w+")
    while len(drawn["words"]) < QUERIES:
        own = words[int(random.integers(len(words)))].to_list()
        size = int(random.integers(2, 5))
        rare = [word for word in own if word not in STOPWORDS_EN]
        if len(rare) >= size:
            drawn["words"].append(" ".join(random.choice(rare, size, replace=False)))
            drawn["all words"].append(" ".join(random.choice(own, size, replace=False)))
            at = int(random.integers(len(own) - size + 1))
            drawn["phrases"].append(f'"{" ".join(own[at : at + size])}"')
    return drawn


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


def microseconds(calls: dict[str, tuple[Callable[[str], Any], list[str]]], repeat: int) -> dict[str, Any]:
    """Ask each contender's queries one by one, contenders in turns; the first round warms up."""
    taken: dict[str, Any] = {name: np.zeros((repeat, len(queries))) for name, (_, queries) in calls.items()}
    for round_ in range(-1, repeat):
        for name, (call, queries) in calls.items():
            for number, query in enumerate(queries):
                start = time.perf_counter_ns()
                call(query)
                taken[name][round_, number] = (time.perf_counter_ns() - start) / 1000
    return taken


def main() -> None:
    args = corpora.arguments(__doc__ or "").parse_args()
    print(f"machine: {corpora.machine()}")
    text = documents()
    drawn = draw(text)
    index = tadoc.build_index(text.tadoc.compress(), lowercase=True)  # type: ignore[attr-defined]
    print(f"{index.documents:,} documents, {index.terms:,} terms, {index.postings:,} postings; k={K}")
    calls: dict[str, tuple[Callable[[str], Any], list[str]]] = {}
    for what, queries in drawn.items():
        for mode in ("or",) if what == "phrases" else ("or", "and"):
            calls[f"{what}, {mode}: search"] = partial(index.search, k=K, mode=mode, engine="cpu"), queries
            calls[f"{what}, {mode}: top"] = partial(index.top, k=K, mode=mode, engine="cpu"), queries
    peer = tantivy_search(text)
    if peer is not None:
        calls |= {f"{what}, or: tantivy": (peer, queries) for what, queries in drawn.items()}
    for threads in (1, 2):
        with tadoc.Config(threads=threads):
            print(f"{threads} thread{'s' * (threads > 1)}, µs:{'median':>22}{'p99':>10}{'fastest':>10}")
            for name, taken in microseconds(calls, args.repeat).items():
                fastest = np.median(taken.min(axis=0))
                print(f"  {name:22}{np.median(taken):10.1f}{np.percentile(taken, 99):10.1f}{fastest:10.1f}")


if __name__ == "__main__":
    main()
