"""Other ways to BM25 weights of every word in every document: what a user has on two cores without this package.

All give the paper's formula, but for bm25s, which has it not and gives Lucene's. Texts are words joined by single
spaces, so all but the regex cut them in the quickest way.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

K1, B = 1.5, 0.75
Weights = dict[int, dict[str, float]]


class Polars:
    """Explode the words, group, join; ``cut`` makes a list of words of a text."""

    def __init__(self, cut: Callable[[pl.Expr], pl.Expr]) -> None:
        self.cut = cut

    def __call__(self, text: pl.Series) -> pl.DataFrame:
        """Weigh the words of all documents."""
        words = text.to_frame("text").lazy().with_row_index("id").select("id", word=self.cut(pl.col("text")))
        lengths = words.select("id", length=pl.col("word").list.len())
        frequencies = words.explode("word").group_by("id", "word").agg(tf=pl.len())
        documents = frequencies.group_by("word").agg(df=pl.len())
        n, mean = len(text), lengths.select(pl.col("length").mean()).collect().item()
        idf = ((n + 0.5) / (pl.col("df") + 0.5)).log()
        norm = K1 * ((1 - B) + B * pl.col("length") / mean)
        return (
            frequencies.join(documents, on="word")
            .join(lengths, on="id")
            .select("id", "word", weight=idf * (K1 + 1) * pl.col("tf") / (pl.col("tf") + norm))
            .collect()
        )

    @staticmethod
    def sample(result: pl.DataFrame, documents: Sequence[int]) -> Weights:
        """Read the weights of some documents."""
        found: Weights = {document: {} for document in documents}
        for document, word, weight in result.filter(pl.col("id").is_in(documents)).iter_rows():
            found[document][word] = weight
        return found


class DuckDB:
    """The same as SQL, on the cores that there are for this process."""

    QUERY = f"""
        WITH cut AS (SELECT id, string_split(text, ' ') AS words FROM texts),
        lengths AS (SELECT id, len(words) AS length FROM cut),
        tf AS (SELECT id, word, count(*) AS tf FROM (SELECT id, unnest(words) AS word FROM cut) GROUP BY id, word),
        df AS (SELECT word, count(*) AS df FROM tf GROUP BY word),
        totals AS (SELECT count(*) AS n, avg(length) AS mean FROM lengths)
        SELECT tf.id, tf.word,
               ln((n + 0.5) / (df + 0.5)) * {K1 + 1} * tf / (tf + {K1} * ({1 - B} + {B} * length / mean)) AS weight
        FROM tf JOIN df USING (word) JOIN lengths USING (id) CROSS JOIN totals
    """

    def __init__(self) -> None:
        import duckdb

        self.connection = duckdb.connect()
        self.connection.execute(f"SET threads = {len(os.sched_getaffinity(0))}")

    def __call__(self, text: pl.Series) -> Any:
        """Weigh the words of all documents."""
        self.connection.register("texts", text.to_frame("text").with_row_index("id").to_arrow())
        return self.connection.sql(self.QUERY).to_arrow_table()

    @staticmethod
    def sample(result: Any, documents: Sequence[int]) -> Weights:
        """Read the weights of some documents."""
        return Polars.sample(pl.DataFrame(pl.from_arrow(result)), documents)


class ScikitLearn:
    """``CountVectorizer`` and the formula on its matrix."""

    def __init__(self) -> None:
        from sklearn.feature_extraction.text import CountVectorizer

        self.make = CountVectorizer

    def __call__(self, text: pl.Series) -> Any:
        """Weigh the words of all documents."""
        vectorizer = self.make(analyzer=lambda row: row.split(" "))
        counts = vectorizer.fit_transform(text.to_list())
        documents = np.bincount(counts.indices, minlength=counts.shape[1])
        lengths = np.asarray(counts.sum(axis=1)).ravel()
        norms = K1 * ((1 - B) + B * lengths / lengths.mean())
        tf = counts.data.astype(np.float64)
        idf = np.log((len(text) + 0.5) / (documents + 0.5))
        counts.data = idf[counts.indices] * (K1 + 1) * tf / (tf + np.repeat(norms, np.diff(counts.indptr)))
        return counts, vectorizer.get_feature_names_out()

    @staticmethod
    def sample(result: Any, documents: Sequence[int]) -> Weights:
        """Read the weights of some documents."""
        matrix, words = result
        return {
            document: {words[i]: float(x) for i, x in zip(row.indices, row.data, strict=True)}
            for document in documents
            for row in [matrix[document]]
        }


class BM25S:
    """bm25s, whose index is the matrix of weights; its formula is Lucene's."""

    def __init__(self) -> None:
        import bm25s

        self.module = bm25s

    def __call__(self, text: pl.Series) -> Any:
        """Weigh the words of all documents."""
        tokens = self.module.tokenize(
            text.to_list(), lower=False, token_pattern=r"[^ ]+", stopwords=None, show_progress=False
        )
        index = self.module.BM25(method="lucene", k1=K1, b=B, dtype="float64")
        index.index(tokens, show_progress=False)
        return index

    @staticmethod
    def sample(result: Any, documents: Sequence[int]) -> Weights:
        """Read the weights of some documents."""
        scores, words = result.scores, {i: word for word, i in result.vocab_dict.items()}
        found: Weights = {document: {} for document in documents}
        at = np.flatnonzero(np.isin(scores["indices"], documents))
        columns = np.searchsorted(scores["indptr"], at, side="right") - 1
        for i, column in zip(at.tolist(), columns.tolist(), strict=True):
            found[int(scores["indices"][i])][words[column]] = float(scores["data"][i])
        return found


class MapReduce:
    """Map, shuffle, reduce over dictionaries in as many processes as cores, as MapReduce is taught."""

    def __init__(self) -> None:
        self.workers = len(os.sched_getaffinity(0))
        self.pool = ProcessPoolExecutor(self.workers)

    def __call__(self, text: pl.Series) -> list[tuple[int, str, float]]:
        """Weigh the words of all documents."""
        rows = text.to_list()
        edges = [len(rows) * i // self.workers for i in range(self.workers + 1)]
        parts = [(first, rows[first:last]) for first, last in pairwise(edges)]
        mapped = list(self.pool.map(_map, parts, [self.workers] * self.workers))
        lengths = [length for own, _ in mapped for length in own]
        shuffled = [[pairs[reducer] for _, pairs in mapped] for reducer in range(self.workers)]
        reduced = self.pool.map(_reduce, shuffled, [lengths] * self.workers)
        return [item for part in reduced for item in part]

    @staticmethod
    def sample(result: list[tuple[int, str, float]], documents: Sequence[int]) -> Weights:
        """Read the weights of some documents."""
        found: Weights = {document: {} for document in documents}
        for document, word, weight in result:
            if document in found:
                found[document][word] = weight
        return found


def _map(part: tuple[int, list[str]], reducers: int) -> tuple[list[int], list[list[tuple[str, int, int]]]]:
    first, rows = part
    pairs: list[list[tuple[str, int, int]]] = [[] for _ in range(reducers)]
    lengths = []
    for document, row in enumerate(rows, first):
        words = row.split(" ")
        lengths.append(len(words))
        for word, tf in Counter(words).items():
            pairs[sum(word.encode()) % reducers].append((word, document, tf))
    return lengths, pairs


def _reduce(parts: list[list[tuple[str, int, int]]], lengths: list[int]) -> list[tuple[int, str, float]]:
    postings: dict[str, list[tuple[int, int]]] = {}
    for part in parts:
        for word, document, tf in part:
            postings.setdefault(word, []).append((document, tf))
    mean = sum(lengths) / len(lengths)
    weights = []
    for word, own in postings.items():
        weight = math.log((len(lengths) + 0.5) / (len(own) + 0.5)) * (K1 + 1)
        for document, tf in own:
            weights.append((document, word, weight * tf / (tf + K1 * ((1 - B) + B * lengths[document] / mean))))
    return weights


PEERS: dict[str, Callable[[], Any]] = {
    "Polars, split": lambda: Polars(lambda text: text.str.split(" ")),
    "Polars, extract_all": lambda: Polars(lambda text: text.str.extract_all(r"\w+")),
    "DuckDB": DuckDB,
    "scikit-learn": ScikitLearn,
    "bm25s": BM25S,
    "MapReduce, Python": MapReduce,
}


def available() -> dict[str, Any]:
    """Make the peers whose libraries are there; says which are not."""
    made = {}
    for name, make in PEERS.items():
        try:
            made[name] = make()
        except ImportError as error:
            print(f"{name} is left out: {error}")
    return made
