"""How good rankings are by relevance judgements, beside bm25s and tantivy: nDCG@10 and MAP on three small collections.

All get the same words: runs of word characters, lower-cased; first without stop words and stemming, then with
``analyzer="english"``: the same stop words and stems (Snowball), bm25s by PyStemmer, tantivy by its own stemmer, whose
"english" is of an older Snowball. Documents without any word of a query are not ranked, and equal scores are in the
order of documents, in ours and in bm25s. nDCG takes grades of relevance as gains; MAP is over the whole ranking, of
queries that have a relevant document. tantivy has one scoring (BM25 with k1 1.2 and b 0.75), which the last rows of the
second table give ours, too; it counts a word that a query repeats once, and rounds lengths of documents to one byte.

    python -m benchmarks.search_quality
"""

from __future__ import annotations

import argparse

import bm25s
import numpy as np
import polars as pl
import Stemmer
import tantivy

import polars_tadoc as tadoc
from benchmarks.corpora import SHARED, machine

COLLECTIONS = ["cranfield", "cisi", "vaswani"]
SCORINGS = ["robertson", "lucene", "atire", "bm25+", "bm25l"]
"""Those of bm25s."""

Rankings = list[list[int]]
Judgements = list[dict[int, int]]


def words(text: pl.Series, analyzer: str | None) -> list[list[str]]:
    plain = text.str.to_lowercase().str.extract_all(r"\w+").to_list()
    if analyzer is None:
        return plain
    stop, stemmer = frozenset(tadoc.stop_words(analyzer)), Stemmer.Stemmer(analyzer)
    return [stemmer.stemWords([word for word in own if word not in stop]) for own in plain]


def ours(text: pl.Series, queries: pl.Series, scoring: str, analyzer: str | None = None, k1: float = 1.5) -> Rankings:
    index = text.tadoc.compress().tadoc.build_index(analyzer=analyzer)
    found = index.search(queries, len(text), scoring=scoring, k1=k1, syntax="plain")
    lists = dict(found.group_by("query").agg("id").iter_rows())
    return [lists.get(number, []) for number in range(len(queries))]


def theirs(text: pl.Series, queries: pl.Series, scoring: str, analyzer: str | None = None) -> Rankings:
    documents = words(text, analyzer)
    index = bm25s.BM25(method=scoring)
    index.index(documents, show_progress=False)
    holding = [frozenset(own) for own in documents]
    rankings = []
    for query in words(queries, analyzer):
        scores = index.get_scores(query)
        order = np.lexsort((np.arange(len(scores)), -scores))
        rankings.append([document for document in order.tolist() if not holding[document].isdisjoint(query)])
    return rankings


def of_tantivy(text: pl.Series, queries: pl.Series, analyzer: str) -> Rankings:
    schema = tantivy.SchemaBuilder()
    schema.add_unsigned_field("number", stored=True)
    schema.add_text_field("text", tokenizer_name="own")
    index = tantivy.Index(schema.build())
    steps = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.regex(r"\w+")).filter(tantivy.Filter.lowercase())
    steps = steps.filter(tantivy.Filter.custom_stopword(tadoc.stop_words(analyzer)))
    index.register_tokenizer("own", steps.filter(tantivy.Filter.stemmer(analyzer)).build())
    writer = index.writer(num_threads=1)
    for number, own in enumerate(text.to_list()):
        writer.add_document(tantivy.Document(number=number, text=own))
    writer.commit()
    index.reload()
    searcher, rankings = index.searcher(), []
    for own in queries.str.to_lowercase().str.extract_all(r"\w+").to_list():
        query, _ = index.parse_query_lenient(" ".join(own), ["text"])
        hits = searcher.search(query, len(text)).hits
        rankings.append([searcher.doc(address)["number"][0] for _, address in hits])
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
    print(f"{'collection':12} {'scoring':10} {'words':8} {'nDCG@10':>8} {'peer':>8} {'MAP':>8} {'peer':>8}  equal")
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

        def show(kind: str, both: list[Rankings]) -> None:
            values = [measure(own, judged) for measure in (ndcg, mean_average_precision) for own in both]  # noqa: B023
            same = np.mean([one[:10] == other[:10] for one, other in zip(*both, strict=True)])
            print(f"{name:12} {kind:19}", *(f"{value:8.4f}" for value in values), f" {same:.1%} of top tens")  # noqa: B023

        for analyzer in (None, "english"):
            for scoring in SCORINGS:
                both = [rank(documents["text"], text, scoring, analyzer) for rank in (ours, theirs)]
                show(f"{scoring:10} {analyzer or 'plain'}", both)
        both = [ours(documents["text"], text, "lucene", "english", 1.2), of_tantivy(documents["text"], text, "english")]
        show("tantivy    english", both)


if __name__ == "__main__":
    main()
