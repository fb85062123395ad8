r"""Ranked queries: ``python -m benchmarks.search``.

Top-10 queries per second, OR and AND, beside bm25s (Numba backend, its fastest) and tantivy, all on one thread, and
the two-thread rate of ours. Every contender gets the words of our column, lower-cased, without bm25s' English stop
words. bm25s gets word numbers (its quickest form), tantivy parsed queries; ours is ``index.search`` of strings, as a
user calls it, from which ratios are taken, and the kernel by itself with word numbers.

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
from polars_tadoc.engine import cpu
from polars_tadoc.kernels.postings import encode_cpu as coding
from polars_tadoc.kernels.postings.coded import PFORDELTA, RICE, Queries

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

        self.documents = len(text)
        self.column = text.tadoc.compress()  # type: ignore[attr-defined]
        self.analysis: dict[str, Any] = {"lowercase": True, "stopwords": list(STOPWORDS_EN)}
        counted: Any = pl.from_arrow(tadoc.term_vector(self.column, **self.analysis))
        counted = counted.with_columns(pl.col("word").cast(pl.String))
        self.vocabulary = counted["word"].unique().sort()
        numbers = pl.DataFrame({"word": self.vocabulary, "number": np.arange(len(self.vocabulary), dtype=np.uint32)})
        counted = counted.join(numbers, on="word").select("number", pl.col("id").alias("document"), "count")
        counted = counted.sort("number", "document")
        repeated = counted["count"].to_numpy().astype(np.int64)
        self.words = pl.DataFrame(
            {name: np.repeat(counted[name].to_numpy(), repeated) for name in ("document", "number")}
        ).sort("document")
        lengths = np.bincount(self.words["document"].to_numpy(), minlength=self.documents)
        self.norms = (K1 * (1 - B + B * lengths / lengths.mean())).astype(np.float32)
        self.frequencies = np.bincount(counted["number"].to_numpy(), minlength=len(self.vocabulary))
        offsets = np.concatenate([[0], np.cumsum(self.frequencies)])
        self.lists = offsets, counted["document"].to_numpy(), repeated
        frequencies = self.frequencies.astype(np.float64)
        self.weights = np.log(1 + (self.documents - frequencies + 0.5) / (frequencies + 0.5)).astype(np.float32)

    def index(self, codec: str) -> tadoc.Index:
        """Build our index of the same words."""
        return tadoc.build_index(self.column, codec=codec, store=False, **self.analysis)

    def rows(self) -> list[list[int]]:
        """Word numbers of each document."""
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


def public_search(collection: Collection, queries: list[list[int]], codec: str, mode: str) -> Callable[[], Any]:
    """Return a call of ``index.search`` of strings."""
    index = collection.index(codec)
    strings = [" ".join(collection.vocabulary[word] for word in query) for query in queries]
    return lambda: index.search(strings, K, mode=mode, k1=K1, b=B, engine="cpu")


def seconds_alone(collection: Collection, queries: list[list[int]]) -> float:
    """Return the median seconds of a query that is asked by itself."""
    index, taken = collection.index("pfordelta"), []
    for query in [queries[0], *queries[:200]]:
        start = time.perf_counter()
        index.search(" ".join(collection.vocabulary[word] for word in query), K, k1=K1, b=B, engine="cpu")
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[1:])


def kernel_search(collection: Collection, queries: list[list[int]], codec: int, require_all: bool) -> Callable[[], Any]:
    """Return a call of the kernel by itself."""
    offsets, documents, counts = collection.lists
    postings = coding.encode(codec, collection.documents, offsets, documents, counts)
    bounds = None if require_all else cpu.block_bounds(postings, collection.norms)
    coded = collection.coded(queries)
    return lambda: cpu.search(postings, collection.norms, bounds, coded, K, require_all)


def require_equal_scores(ours: pl.DataFrame, theirs: Any) -> None:
    """Hold the scores of both to each other; documents of equal scores may be others."""
    expected = theirs[1][ours["query"].to_numpy(), ours["rank"].to_numpy() - 1]
    assert len(ours) == np.count_nonzero(theirs[1])
    np.testing.assert_allclose(ours["score"].to_numpy(), expected, rtol=1e-5)


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
        print(f"    a query by itself: {1e3 * seconds_alone(collection, queries):.2f} ms")
        bm25s_call, _ = bm25s_search(collection, queries)
        for require_all in (False, True):
            mode = "and" if require_all else "or"
            calls = {
                "pfordelta": public_search(collection, queries, "pfordelta", mode),
                "rice": public_search(collection, queries, "rice", mode),
                "pfordelta, kernel": kernel_search(collection, queries, PFORDELTA, require_all),
                "rice, kernel": kernel_search(collection, queries, RICE, require_all),
                "tantivy": tantivy_search(collection, queries, "+" if require_all else ""),
            }
            if not require_all:
                require_equal_scores(calls["pfordelta"](), bm25s_call())
                calls["bm25s"] = bm25s_call
            for own in ("pfordelta", "pfordelta, kernel"):
                calls[f"{own}, 2 threads"] = two_threads(calls[own])
            measured = rates(calls, repeat)
            for contender, rate in measured.items():
                ratio = measured["pfordelta"] / rate
                print(f"    {'AND' if require_all else 'OR ':3} {contender:28} {rate:10,.0f}/s  {ratio:6.2f}")


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
