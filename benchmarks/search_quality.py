"""How good rankings are by relevance judgements, ours beside bm25s': nDCG@10 and MAP on three small collections.

Both get the same words: runs of word characters, lower-cased; no stop words, no stemming. Documents without any word
of a query are not ranked, and equal scores stand in the order of documents, in both. nDCG takes grades of relevance as
gains; MAP is over the whole ranking, of queries that have a relevant document.

    python -m benchmarks.search_quality
"""

from __future__ import annotations

import argparse

import bm25s
import numpy as np
import polars as pl

from benchmarks.corpora import SHARED, machine
from polars_tadoc.scoring.bm25 import IDFS

COLLECTIONS = ["cranfield", "cisi", "vaswani"]

Rankings = list[list[int]]
Judgements = list[dict[int, int]]


def words(text: pl.Series) -> list[list[str]]:
    return text.str.to_lowercase().str.extract_all(r"\w+").to_list()


def ours(text: pl.Series, queries: pl.Series, scoring: str) -> Rankings:
    index = text.tadoc.compress().tadoc.build_index(lowercase=True)
    found = index.search(queries, len(text), scoring=scoring)
    lists = dict(found.group_by("query").agg("id").iter_rows())
    return [lists.get(number, []) for number in range(len(queries))]


def theirs(text: pl.Series, queries: pl.Series, scoring: str) -> Rankings:
    documents = words(text)
    index = bm25s.BM25(method=scoring)
    index.index(documents, show_progress=False)
    holding = [frozenset(own) for own in documents]
    rankings = []
    for query in words(queries):
        scores = index.get_scores(query)
        order = np.lexsort((np.arange(len(scores)), -scores))
        rankings.append([document for document in order.tolist() if not holding[document].isdisjoint(query)])
    return rankings


def ndcg(rankings: Rankings, judged: Judgements, k: int = 10) -> float:
    """Discounted gain of the first k documents, as a share of the best there could be; mean over judged queries."""

    def gain(grades: list[int]) -> float:
        return sum(grade / np.log2(place + 2) for place, grade in enumerate(grades[:k]))

    return float(
        np.mean(
            [
                gain([grades.get(document, 0) for document in ranking]) / gain(sorted(grades.values(), reverse=True))
                for ranking, grades in zip(rankings, judged, strict=True)
                if grades
            ]
        )
    )


def mean_average_precision(rankings: Rankings, judged: Judgements) -> float:
    """Precision at each relevant document, 0 for those not ranked; mean over relevant documents, then queries."""
    values = []
    for ranking, grades in zip(rankings, judged, strict=True):
        if grades:
            places = [place for place, document in enumerate(ranking, 1) if document in grades]
            values.append(sum(hit / place for hit, place in enumerate(places, 1)) / len(grades))
    return float(np.mean(values))


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    print(machine())
    print(f"{'collection':12} {'scoring':10} {'nDCG@10':>8} {'bm25s':>8} {'MAP':>8} {'bm25s':>8}  equal")
    for name in COLLECTIONS:
        documents, queries, relevant = (
            pl.read_parquet(SHARED / f"ir_{name}_{part}.parquet") for part in ("docs", "queries", "qrels")
        )
        graded = {
            query: dict(zip(*own, strict=True))
            for query, *own in relevant.filter(pl.col("relevance") > 0)
            .group_by("query_id")
            .agg("doc_id", "relevance")
            .iter_rows()
        }
        judged = [graded.get(query, {}) for query in queries["query_id"]]
        text = queries["text"].str.replace_all('"', " ")  # bm25s has no phrases
        assert documents["doc_id"].to_list() == list(range(len(documents)))
        for scoring in [name for name in IDFS if name != "wakatsuki"]:  # which bm25s has not
            both = [rank(documents["text"], text, scoring) for rank in (ours, theirs)]
            values = [measure(own, judged) for measure in (ndcg, mean_average_precision) for own in both]
            same = np.mean([one[:10] == other[:10] for one, other in zip(*both, strict=True)])
            print(f"{name:12} {scoring:10}", *(f"{value:8.4f}" for value in values), f" {same:.1%} of top tens")


if __name__ == "__main__":
    main()
