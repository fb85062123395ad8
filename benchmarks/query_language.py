r"""Queries with syntax: ``python -m benchmarks.query_language``.

By class of query, medians over rounds, contenders in turns, one thread: microseconds of ``index.top`` and of
``index.count`` for each query alone, of ``index.search`` for a query in a batch of all, and of tantivy's Python API
(parsing and searching, top 10) for each query alone; then ratios, ours to tantivy's. Queries are drawn from the
documents of ``benchmarks.one_query``. "words" is also asked with ``syntax="plain"``: the ratio is what it costs to look
for syntax. "or of ..." are the exact queries of the words that a pattern was expanded to, joined by "or".
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora, one_query
from polars_tadoc.index.query.expand import alike, matching

QUERIES = 300
K = 10


def drawn(text: pl.Series, index: tadoc.Index) -> dict[str, list[str]]:
    """Queries by class."""
    own = one_query.draw(text)
    words, phrases = own["words"][:QUERIES], own["phrases"][:QUERIES]
    pairs = [query.split()[:2] for query in words]
    random = np.random.default_rng(3)
    prefixes = [f"{max(pair, key=len)[:4]}*" for pair in pairs]
    swapped = []
    for pair in pairs:
        word = max(pair, key=len)
        at = int(random.integers(max(len(word) - 1, 1)))
        swapped.append(word[:at] + word[at : at + 2][::-1] + word[at + 2 :])
    return {
        "words": words,
        "+a +b": [f"+{a} +{b}" for a, b in pairs],
        "a AND b": [f"{a} AND {b}" for a, b in pairs],
        "a OR b": [f"{a} OR {b}" for a, b in pairs],
        "a -b": [f"{a} -{b}" for a, b in pairs],
        "(a OR b) AND c": [f"({a} OR {b}) AND {c[0]}" for (a, b), c in zip(pairs, reversed(pairs), strict=True)],
        '"phrase"': phrases,
        '"phrase"~2': [f"{phrase}~2" for phrase in phrases],
        "prefix*": prefixes,
        "or of prefix*": [" ".join(word for word, _ in matching(index, prefix)) for prefix in prefixes],
        "fuzzy~1": [f"{word}~1" for word in swapped],
        "or of fuzzy~1": [" ".join(own for own, _, _ in alike(index, word, 1)) or "zz" for word in swapped],
    }


def tantivy_calls(text: pl.Series, queries: dict[str, list[str]]) -> dict[str, Callable[[str], Any]]:
    """One call per class that tantivy's parser reads alike; fuzzy words and prefixes are made without its parser."""
    try:
        import tantivy
    except ImportError:
        return {}
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("body", stored=False)
    schema = builder.build()
    index = tantivy.Index(schema)
    writer = index.writer(num_threads=1)
    for body in text:
        writer.add_document(tantivy.Document(body=[body]))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()

    def parsed(query: str) -> Any:
        return searcher.search(index.parse_query(query, ["body"]), K, count=False).hits

    def fuzzy(query: str) -> Any:
        own = tantivy.Query.fuzzy_term_query(schema, "body", query.split("~")[0], 1, True, False)
        return searcher.search(own, K, count=False).hits

    def prefix(query: str) -> Any:
        own = tantivy.Query.regex_query(schema, "body", query.replace("*", ".*"))
        return searcher.search(own, K, count=False).hits

    special = {"fuzzy~1": fuzzy, "prefix*": prefix}
    return {name: special.get(name, parsed) for name in queries}


def main() -> None:
    args = corpora.arguments(__doc__ or "").parse_args()
    print(f"machine: {corpora.machine()}")
    text = one_query.documents()
    index = tadoc.build_index(text.tadoc.compress(), lowercase=True)  # type: ignore[attr-defined]
    print(f"{index.documents:,} documents, {index.terms:,} terms, {index.postings:,} postings; k={K}, one thread")
    queries = drawn(text, index)
    peer = tantivy_calls(text, queries)
    taken: dict[tuple[str, str], list[float]] = {}
    with tadoc.Config(threads=1):
        for _ in range(args.repeat + 1):
            for name, own in queries.items():
                calls: dict[str, Callable[[str], Any]] = {
                    "top": partial(index.top, k=K, engine="cpu"),
                    "plain top": partial(index.top, k=K, engine="cpu", syntax="plain"),
                    "count": index.count,
                }
                if name in peer:
                    calls["tantivy"] = peer[name]
                for what, call in calls.items():
                    start = time.perf_counter()
                    for query in own:
                        call(query)
                    taken.setdefault((name, what), []).append((time.perf_counter() - start) / len(own))
                for syntax in ("lenient", "plain"):
                    start = time.perf_counter()
                    index.search(own, K, engine="cpu", syntax=syntax)
                    what = "batch" if syntax == "lenient" else "plain batch"
                    taken.setdefault((name, what), []).append((time.perf_counter() - start) / len(own))
    micros = {key: 1e6 * float(np.median(rounds[1:])) for key, rounds in taken.items()}
    print(
        f"{'µs a query':18}{'top':>10}{'count':>10}{'batch':>10}{'tantivy':>10}{'top/tantivy':>13}{'batch/tantivy':>15}"
    )
    ratios: list[tuple[float, float]] = []
    for name in queries:
        top, count, batch = (micros[name, what] for what in ("top", "count", "batch"))
        line = f"{name:18}{top:10.1f}{count:10.1f}{batch:10.1f}"
        if name in peer:
            other = micros[name, "tantivy"]
            ratios.append((top / other, batch / other))
            line += f"{other:10.1f}{top / other:13.2f}{batch / other:15.2f}"
        print(line)
    if ratios:
        means = np.exp(np.log(ratios).mean(axis=0))
        print(f"{'geometric mean':58}{means[0]:13.2f}{means[1]:15.2f}")
    for what in ("top", "batch"):
        pairs = zip(taken["words", what][1:], taken["words", f"plain {what}"][1:], strict=True)
        print(f"words, {what}: lenient to plain, paired median {np.median([a / b for a, b in pairs]):.3f}")
    for what in ("prefix*", "fuzzy~1"):
        pairs = zip(taken[what, "top"][1:], taken[f"or of {what}", "top"][1:], strict=True)
        print(f"{what}: to the exact query of its words, paired median {np.median([a / b for a, b in pairs]):.2f}")


if __name__ == "__main__":
    main()
