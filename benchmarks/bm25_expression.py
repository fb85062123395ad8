"""One query over a column without an index: ``python -m benchmarks.bm25_expression``.

``tadoc.bm25`` on the compressed column beside the same scores from the text: Polars counting each word by a regex
(``str.count_matches``) and all words for the rows' lengths, bm25s tokenizing and indexing the texts before the query,
and, for comparison, bm25s with the index made beforehand and ``Index.search`` of this package. All lower-case
words, which are runs of letters, digits and underscores; the largest difference between ours and counted scores is
printed. (bm25s cuts a few words otherwise, such as "4½d", by Python's regexes.) Long texts are cut into paragraphs.
Contenders take turns.
"""

from __future__ import annotations

import math
import re
import statistics
import time
from collections.abc import Callable
from functools import partial

import bm25s
import numpy as np
import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora

CORPORA = ["logs_elastic", "prose_books"]
Call = Callable[[], np.ndarray]


def paragraphs(texts: pl.Series) -> pl.Series:
    """Texts cut at blank lines, where they are long."""
    if texts.str.len_bytes().mean() < 10_000:
        return texts
    return (
        texts.str.replace_all("\r\n", "\n", literal=True)
        .str.split("\n\n")
        .explode()
        .str.strip_chars()
        .to_frame("text")
        .filter(pl.col("text") != "")["text"]
    )


def by_tadoc(column: pl.Series, query: str) -> np.ndarray:
    """Scores of the compressed column."""
    return tadoc.bm25(column, query, lowercase=True).to_numpy()


def by_index(index: tadoc.Index, query: str) -> np.ndarray:
    """The best ten scores, of an index made beforehand."""
    return index.search(query)["score"].to_numpy()


def by_polars(texts: pl.Series, query: str) -> np.ndarray:
    """Lucene's form of BM25 from counts of matches."""
    length = pl.col("text").str.count_matches(r"\w+").cast(pl.Float64)
    score = pl.lit(0.0)
    for word in query.split():
        count = pl.col("text").str.count_matches(rf"(?i)\b{re.escape(word)}\b").cast(pl.Float64)
        frequency = (count > 0).sum()
        idf = ((pl.len() - frequency + 0.5) / (frequency + 0.5) + 1).log()
        score += idf * count / (count + 1.5 * (0.25 + 0.75 * length / length.mean()))
    return texts.to_frame("text").select(score).to_series().to_numpy()


def tokens(texts: list[str]) -> list[list[str]]:
    """Words as all contenders take them."""
    return bm25s.tokenize(
        texts, token_pattern=r"(?u)\w+", stopwords=None, return_ids=False, show_progress=False, lower=True
    )


def by_bm25s(texts: list[str], query: str) -> np.ndarray:
    """Scores after tokenizing and indexing."""
    retriever = bm25s.BM25(method="lucene")
    retriever.index(
        bm25s.tokenize(texts, token_pattern=r"(?u)\w+", stopwords=None, show_progress=False), show_progress=False
    )
    return retriever.get_scores(query.split())


def queries(column: pl.Series) -> dict[str, str]:
    """Words that are frequent, of middling frequency and rare, and two such together."""
    words = tadoc.word_count(column, lowercase=True).column("word").to_pylist()
    words = [word for word in words if re.fullmatch("[a-z]{3,}", word)]
    places = {"frequent": 20, "middling": int(math.sqrt(len(words))) * 2, "rare": len(words) // 2}
    chosen = {kind: words[place] for kind, place in places.items()}
    chosen["three words"] = " ".join(chosen.values())
    chosen["ten words"] = " ".join(words[50:550:50])
    return chosen


def measure(calls: dict[str, tuple[Call, int]], rounds: int) -> dict[str, float]:
    """Median milliseconds of each; those with a limit take part in so many rounds only."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds):
        for name, (call, most) in calls.items():
            if number < most:
                start = time.perf_counter()
                call()
                taken[name].append(1e3 * (time.perf_counter() - start))
    return {name: statistics.median(times) for name, times in taken.items()}


def main() -> None:
    """Print a line for each corpus and query."""
    options = corpora.arguments(__doc__ or "").parse_args()
    print(corpora.machine())
    for given in options.corpora or CORPORA:
        name, texts = corpora.load(given)
        texts = paragraphs(texts)
        column = tadoc.compress(texts)
        index = tadoc.build_index(column, lowercase=True)
        listed = texts.to_list()
        ready = bm25s.BM25(method="lucene")
        ready.index(tokens(listed), show_progress=False)
        print(f"{name}: {len(texts):,} rows; milliseconds, and how many times as long as tadoc.bm25")
        for kind, query in queries(column).items():
            ours = partial(by_tadoc, column, query)
            calls: dict[str, tuple[Call, int]] = {
                "tadoc.bm25": (ours, options.repeat),
                "count_matches": (partial(by_polars, texts, query), 2),
                "bm25s, all": (partial(by_bm25s, listed, query), 1),
                "bm25s, query": (partial(ready.get_scores, query.split()), options.repeat),
                "index.search": (partial(by_index, index, query), options.repeat),
            }
            scores = ours()
            apart = np.abs(scores - by_polars(texts, query)).max()
            times = measure(calls, options.repeat)
            base = times["tadoc.bm25"]
            shown = ", ".join(f"{other} {taken:.1f} ({taken / base:.2f})" for other, taken in times.items())
            rows = f"{np.count_nonzero(scores):7,} rows"
            print(f"  {kind:12} {rows}: {shown}; scores differ from counted ones by at most {apart:.1e}")


if __name__ == "__main__":
    main()
