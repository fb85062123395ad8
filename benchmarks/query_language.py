r"""Queries with syntax: ``python -m benchmarks.query_language``.

The classes and commands of the search-benchmark-game (TOP_10, COUNT, TOP_10_COUNT), with queries drawn from the
documents of ``benchmarks.one_query``, contenders in turns, one thread. By class, microseconds, the mean over queries of
each query's fastest round: ``index.top``, ``index.count``, ``index.top(total=True)``, tantivy's Python API (parsing and
searching) for the same; and of ``index.search`` a query's share of the fastest batch of all. Then ratios, ours to
tantivy's, of TOP_10, COUNT, TOP_10_COUNT and of batches to tantivy's TOP_10. tantivy counts while it finds one
document. "words" is also asked with ``syntax="plain"``: the ratio is what it costs to look for syntax. "or of ..." are
the exact queries of the words that a pattern was expanded to, joined by "or".

``--queries FILE`` asks the queries of the game itself (its ``queries.txt``) instead, by class: the mean microseconds of
both, and the geometric mean over queries of the ratios; the last line is over all queries. ``--corpora`` names the
corpora whose paragraphs are the documents.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora, one_query
from polars_tadoc.index.query.expand import alike, matching

QUERIES = 1000
K = 10


def drawn(text: pl.Series, index: tadoc.Index) -> dict[str, list[str]]:
    """Queries by class."""
    own = one_query.draw(text)
    words, phrases = own["words"][:QUERIES], own["phrases"][:QUERIES]
    pairs = [query.split()[:2] for query in words]
    # tantivy drops words of 40 bytes and those without letters and digits, and refuses "-a" alone
    pairs = [own for own in pairs if all(len(word.encode()) < 40 and any(map(str.isalnum, word)) for word in own)]
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
        "+a +b of phrase": [" ".join(f"+{word}" for word in phrase.strip('"').split()) for phrase in phrases],
        '"phrase"~2': [f"{phrase}~2" for phrase in phrases],
        "prefix*": prefixes,
        "or of prefix*": [" ".join(word for word, _ in matching(index, prefix)) for prefix in prefixes],
        "fuzzy~1": [f"{word}~1" for word in swapped],
        "or of fuzzy~1": [" ".join(own for own, _, _ in alike(index, word, 1)) or "zz" for word in swapped],
    }


def game(path: str) -> dict[str, list[str]]:
    """Read the queries of the game by class."""
    found: dict[str, list[str]] = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        query = json.loads(line)
        kind = query["tags"][-1].replace("num_tokens_", "") if query["tags"] else "other"
        found.setdefault(kind, []).append(query["query"])
    return dict(sorted(found.items()))


def ask_game(index: tadoc.Index, text: pl.Series, path: str, repeat: int) -> None:
    """Print times and ratios of the game's queries."""
    queries = game(path)
    theirs = next(iter(tantivy_calls(text, {"": []}).values()))
    pairs: dict[str, tuple[Callable[[str], Any], Callable[[str], Any]]] = {
        "TOP_10": (partial(index.top, k=K, engine="cpu"), partial(theirs, k=K, counts=False)),
        "COUNT": (index.count, partial(theirs, k=1, counts=True)),
        "TOP_10_COUNT": (partial(index.top, k=K, total=True, engine="cpu"), partial(theirs, k=K, counts=True)),
    }
    taken: dict[tuple[str, str], list[Any]] = {}
    for _ in range(repeat + 1):
        for kind, own in queries.items():
            for command, calls in pairs.items():
                for call in calls:
                    taken.setdefault((kind, command), []).append([seconds(call, query) for query in own])
    print(f"{'':26}" + "".join(f"{name + ' µs':>16}{'theirs':>10}{'ratio':>8}" for name in pairs))
    totals: dict[str, list[float]] = {command: [] for command in pairs}
    for kind, own in queries.items():
        print(f"{kind:22}{len(own):4}", end="")
        for command in pairs:
            rounds = np.array(taken[kind, command])
            ours, other = rounds[2::2].min(axis=0), rounds[3::2].min(axis=0)
            ratios = np.log(ours / other)
            totals[command] += ratios.tolist()
            print(f"{1e6 * ours.mean():16.1f}{1e6 * other.mean():10.1f}{np.exp(ratios.mean()):8.2f}", end="")
        print()
    print(f"{'geometric mean':26}" + "".join(f"{np.exp(np.mean(own)):34.2f}" for own in totals.values()))


def paragraphs(names: Iterable[str]) -> pl.Series:
    """Return the paragraphs of corpora."""
    return pl.concat([one_query.paragraphs(corpora.load(name)[1]) for name in names]).rechunk()


def tantivy_calls(text: pl.Series, queries: dict[str, list[str]]) -> dict[str, Callable[[str, int, bool], Any]]:
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

    def parsed(query: str, k: int, counts: bool) -> Any:
        return searcher.search(index.parse_query(query, ["body"]), k, count=counts).hits

    def fuzzy(query: str, k: int, counts: bool) -> Any:
        own = tantivy.Query.fuzzy_term_query(schema, "body", query.split("~")[0], 1, True, False)
        return searcher.search(own, k, count=counts).hits

    def prefix(query: str, k: int, counts: bool) -> Any:
        own = tantivy.Query.regex_query(schema, "body", query.replace("*", ".*"))
        return searcher.search(own, k, count=counts).hits

    special = {"fuzzy~1": fuzzy, "prefix*": prefix}
    return {name: special.get(name, parsed) for name in queries}


def main() -> None:
    parser = corpora.arguments(__doc__ or "")
    parser.add_argument("--queries", help="file of the game's queries")
    args = parser.parse_args()
    print(f"machine: {corpora.machine()}")
    text = paragraphs(args.corpora) if args.corpora else one_query.documents()
    index = tadoc.build_index(text.tadoc.compress(), lowercase=True)  # type: ignore[attr-defined]
    print(f"{index.documents:,} documents, {index.terms:,} terms, {index.postings:,} postings; k={K}, one thread")
    if args.queries:
        with tadoc.Config(threads=1):
            ask_game(index, text, args.queries, args.repeat)
        return
    queries = drawn(text, index)
    peer = tantivy_calls(text, queries)
    taken: dict[tuple[str, str], list[Any]] = {}
    with tadoc.Config(threads=1):
        for _ in range(args.repeat + 1):
            for name, own in queries.items():
                calls: dict[str, Callable[[str], Any]] = {
                    "top": partial(index.top, k=K, engine="cpu"),
                    "plain top": partial(index.top, k=K, engine="cpu", syntax="plain"),
                    "count": index.count,
                    "top and count": partial(index.top, k=K, total=True, engine="cpu"),
                }
                if name in peer:
                    calls["their top"] = partial(peer[name], k=K, counts=False)
                    calls["their count"] = partial(peer[name], k=1, counts=True)
                    calls["their top and count"] = partial(peer[name], k=K, counts=True)
                for what, call in calls.items():
                    taken.setdefault((name, what), []).append([seconds(call, query) for query in own])
                for syntax in ("lenient", "plain"):
                    share = seconds(partial(index.search, k=K, engine="cpu", syntax=syntax), own) / len(own)
                    taken.setdefault((name, "batch" if syntax == "lenient" else "plain batch"), []).append(share)
    micros = {key: 1e6 * float(np.mean(np.min(rounds[1:], axis=0))) for key, rounds in taken.items()}
    columns = ["top", "count", "top and count", "batch", "their top", "their count", "their top and count"]
    ratios = ["TOP_10", "COUNT", "TOP_10_COUNT", "batch"]
    print(f"{'µs a query':16}" + "".join(f"{name:>20}" for name in columns) + "".join(f"{name:>14}" for name in ratios))
    found: list[list[float]] = []
    for name in queries:
        line = [micros[name, what] for what in columns if (name, what) in micros]
        print(f"{name:16}" + "".join(f"{own:20.1f}" for own in line), end="")
        if name in peer:
            top, count, both, batch, their_top, their_count, theirs = line
            found.append([top / their_top, count / their_count, both / theirs, batch / their_top])
            print("".join(f"{own:14.2f}" for own in found[-1]), end="")
        print()
    if found:
        means = np.exp(np.log(found).mean(axis=0))
        print(f"{'geometric mean':156}" + "".join(f"{own:14.2f}" for own in means))
    for what in ("top", "batch"):
        print(f"words, {what}: lenient to plain {micros['words', what] / micros['words', f'plain {what}']:.3f}")
    for what in ("prefix*", "fuzzy~1"):
        exact = micros[f"or of {what}", "top"]
        print(f"{what}: to the exact query of its words {micros[what, 'top'] / exact:.2f}")
    phrases = micros['"phrase"', "top"]
    print(f"phrases: to the intersection of their words {phrases / micros['+a +b of phrase', 'top']:.2f}")


def seconds(call: Callable[[Any], Any], given: Any) -> float:
    """Seconds of a call."""
    start = time.perf_counter()
    call(given)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
