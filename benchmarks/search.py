r"""Ranked queries: ``python -m benchmarks.search``.

Top-10 queries per second, OR and AND, beside bm25s (Numba backend, its fastest) and tantivy, all on one thread, and
the two-thread rate of ours. Every contender gets the same words: lower-cased, without bm25s' English stop words. bm25s
gets word numbers (its quickest form), tantivy parsed queries, ours both the postings and word numbers (the kernel by
itself) and, as a user would call it, strings.

Two sets of queries of 2 to 4 distinct words: words of random documents, as frequent as they are in them, and words
drawn evenly from the vocabulary. Contenders take turns; printed are medians.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from polars_tadoc.kernels import cpu
from polars_tadoc.kernels.cpu import coding
from polars_tadoc.kernels.postings import PFORDELTA, RICE, Queries

CORPORA = ["prose_books", "docs_tldr", "logs_elastic", "xml_acl_papers"]
QUERIES = 1000
K = 10
K1, B = 1.5, 0.75


def passages(name: str, text: pl.Series) -> pl.Series:
    """Rows to be searched: books are cut into paragraphs, tags are stripped."""
    if name == "prose_books":
        pieces = text.str.replace_all("\r", "").str.split("\n\n").explode().str.strip_chars()
        return pieces.filter(pieces.str.len_bytes() > 0)
    return text.str.replace_all(r"<[^>]*>", " ") if name.startswith("xml_") else text


class Collection:
    """Word numbers by document, as each contender wants them."""

    def __init__(self, text: pl.Series) -> None:
        from bm25s.stopwords import STOPWORDS_EN  # type: ignore[import-untyped]

        rows = pl.DataFrame({"document": np.arange(len(text), dtype=np.uint32), "word": text.str.to_lowercase()})
        words = rows.with_columns(pl.col("word").str.extract_all(r"\w\w+")).explode("word").drop_nulls()
        words = words.filter(~pl.col("word").is_in(list(STOPWORDS_EN)))
        self.documents = len(text)
        self.vocabulary = words["word"].unique().sort()
        numbers = pl.DataFrame({"word": self.vocabulary, "number": np.arange(len(self.vocabulary), dtype=np.uint32)})
        self.words = words.join(numbers, on="word", maintain_order="left").select("document", "number")
        lengths = np.bincount(self.words["document"].to_numpy(), minlength=self.documents)
        self.norms = (K1 * (1 - B + B * lengths / lengths.mean())).astype(np.float32)
        counted = self.words.group_by("number", "document").len().sort("number", "document")
        self.frequencies = np.bincount(counted["number"].to_numpy(), minlength=len(self.vocabulary))
        offsets = np.concatenate([[0], np.cumsum(self.frequencies)])
        self.lists = offsets, counted["document"].to_numpy(), counted["len"].to_numpy()
        frequencies = self.frequencies.astype(np.float64)
        self.weights = np.log(1 + (self.documents - frequencies + 0.5) / (frequencies + 0.5)).astype(np.float32)

    def rows(self) -> list[list[int]]:
        """Word numbers of each document, in order."""
        by_row = self.words.group_by("document").agg("number")
        held: list[list[int]] = [[] for _ in range(self.documents)]
        for document, numbers in by_row.iter_rows():
            held[document] = numbers
        return held

    def queries(self, evenly: bool) -> list[list[int]]:
        """Draw queries."""
        random = np.random.default_rng(7)
        words, documents = self.words["number"].to_numpy(), self.words["document"].to_numpy()
        starts = np.searchsorted(documents, np.arange(self.documents + 1))
        chosen: list[list[int]] = []
        while len(chosen) < QUERIES:
            size = int(random.integers(2, 5))
            if evenly:
                own = random.choice(len(self.vocabulary), size, replace=False)
            else:
                document = int(random.integers(self.documents))
                held = np.unique(words[starts[document] : starts[document + 1]])
                if len(held) < size:
                    continue
                own = random.choice(held, size, replace=False)
            chosen.append([int(word) for word in own])
        return chosen

    def coded(self, queries: list[list[int]]) -> Queries:
        """Return queries as the kernels take them."""
        ordered = [sorted(query, key=lambda word: (self.frequencies[word], word)) for query in queries]
        offsets = np.concatenate([[0], np.cumsum([len(query) for query in ordered])]).astype(np.int64)
        lists = np.array([word for query in ordered for word in query], np.uint32)
        return Queries(offsets, lists, self.weights[lists])


def bm25s_search(collection: Collection, queries: list[list[int]]) -> tuple[Callable[[], Any], Any]:
    """Index with bm25s, and return a call that runs all queries."""
    import bm25s  # type: ignore[import-untyped]

    model = bm25s.BM25(method="lucene", k1=K1, b=B, backend="numba")
    vocabulary = {str(number): number for number in range(len(collection.vocabulary))}
    model.index((collection.rows(), vocabulary), show_progress=False)
    return lambda: model.retrieve(queries, k=K, show_progress=False, n_threads=1), model


def tantivy_search(collection: Collection, queries: list[list[int]], operator: str) -> Callable[[], Any]:
    """Index with tantivy, and return a call that runs all queries, parsed before."""
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("body", stored=False, tokenizer_name="whitespace")
    index = tantivy.Index(builder.build())
    writer = index.writer(num_threads=1)
    for row in collection.rows():
        writer.add_document(tantivy.Document(body=[" ".join(f"w{number}" for number in row)]))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    searcher = index.searcher()
    parsed = [index.parse_query(" ".join(f"{operator}w{number}" for number in query), ["body"]) for query in queries]
    return lambda: [searcher.search(query, K, count=False) for query in parsed]


def kernel_search(collection: Collection, queries: list[list[int]], codec: int, require_all: bool) -> Callable[[], Any]:
    """Return a call of the kernel by itself."""
    offsets, documents, counts = collection.lists
    postings = coding.encode(codec, collection.documents, offsets, documents, counts)
    bounds = None if require_all else cpu.block_bounds(postings, collection.norms)
    coded = collection.coded(queries)
    return lambda: cpu.search(postings, collection.norms, bounds, coded, K, require_all)


def require_equal_scores(collection: Collection, ours: Any, theirs: Any) -> None:
    """Hold the scores of both to each other; documents of equal scores may be others."""
    found, _, scores = ours
    for q in range(len(found)):
        expected = theirs[1][q][: found[q]]
        np.testing.assert_allclose(scores[q, : found[q]], expected, rtol=1e-5)


def rates(calls: dict[str, Callable[[], Any]], repeat: int) -> dict[str, float]:
    """Queries per second of each, in turns."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeat + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            taken[name].append(time.perf_counter() - start)
    return {name: QUERIES / statistics.median(times[1:]) for name, times in taken.items()}


def run(name: str, text: pl.Series, repeat: int) -> None:
    collection = Collection(passages(name, text))
    print(f"{name}: {collection.documents:,} documents, {len(collection.lists[1]):,} postings")
    for evenly in (False, True):
        queries = collection.queries(evenly)
        mean = np.mean([sum(collection.frequencies[word] for word in query) for query in queries])
        print(f"  words {'of the vocabulary' if evenly else 'of documents'}: {mean:,.0f} postings a query")
        bm25s_call, _ = bm25s_search(collection, queries)
        for require_all in (False, True):
            calls = {
                "pfordelta": kernel_search(collection, queries, PFORDELTA, require_all),
                "rice": kernel_search(collection, queries, RICE, require_all),
                "tantivy": tantivy_search(collection, queries, "+" if require_all else ""),
            }
            if not require_all:
                require_equal_scores(collection, calls["pfordelta"](), bm25s_call())
                calls["bm25s"] = bm25s_call
            for codec in ("pfordelta", "rice"):
                calls[f"{codec}, 2 threads"] = two_threads(calls[codec])
            measured = rates(calls, repeat)
            for contender, rate in measured.items():
                ratio = measured["pfordelta"] / rate
                print(f"    {'AND' if require_all else 'OR ':3} {contender:20} {rate:10,.0f}/s  {ratio:6.2f}")


def two_threads(call: Callable[[], Any]) -> Callable[[], Any]:
    def twice() -> Any:
        with tadoc.Config(threads=2):
            return call()

    return twice


def main() -> None:
    args = corpora.arguments(__doc__ or "").parse_args()
    print(f"machine: {corpora.machine()}")
    with tadoc.Config(threads=1):
        for given in args.corpora or CORPORA:
            run(*corpora.load(given), args.repeat)


if __name__ == "__main__":
    main()
