"""BM25 in plain Python over the words of documents: as Kamphuis et al. (ECIR 2020) and Wakatsuki et al. write it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import polars as pl

KAMPHUIS = ["robertson", "lucene", "atire", "bm25l", "bm25+"]
SCORINGS = [*KAMPHUIS, "wakatsuki"]
MODES = ["or", "and", "and_or"]

Words = Sequence[str]


def idf(scoring: str, documents: int, frequency: int) -> float:
    n, df = documents, frequency
    return {
        "robertson": math.log(max(1.0, (n - df + 0.5) / (df + 0.5))),
        "lucene": math.log(1 + (n - df + 0.5) / (df + 0.5)),
        "atire": math.log(n / df),
        "bm25l": math.log((n + 1) / (df + 0.5)),
        "bm25+": math.log((n + 1) / df),
        "wakatsuki": math.log((n + 0.5) / (df + 0.5)),
    }[scoring]


def part(scoring: str, tf: int, length: int, average: float, k1: float, b: float, delta: float) -> float:
    norm = 1 - b + b * length / average
    if tf == 0:
        return {"bm25+": delta, "bm25l": (k1 + 1) * delta / (k1 + delta) if delta else 0.0}.get(scoring, 0.0)
    if scoring in ("robertson", "lucene"):
        return tf / (k1 * norm + tf)
    if scoring in ("atire", "wakatsuki"):
        return tf * (k1 + 1) / (tf + k1 * norm)
    if scoring == "bm25+":
        return tf * (k1 + 1) / (tf + k1 * norm) + delta
    if norm == 0 or k1 == delta == 0:  # as tf / norm without bound
        return k1 + 1
    return (k1 + 1) * (tf / norm + delta) / (k1 + tf / norm + delta)


def scores(
    documents: Sequence[Words],
    query: Words,
    scoring: str = "lucene",
    k1: float = 1.5,
    b: float = 0.75,
    delta: float = 0.5,
    require_all: bool = False,
    base: bool = True,
) -> dict[int, float]:
    """Score each document that holds any of the words, or all; with or without what every document gets."""
    counts = [Counter(words) for words in documents]
    average = sum(map(len, documents)) / max(len(documents), 1)
    known = [word for word in query if any(word in own for own in counts)]
    found = {}
    for number, own in enumerate(counts):
        wanted = all if require_all else any
        if query and known and wanted(word in own for word in (query if require_all else known)):
            length = len(documents[number])
            least = 0.0 if base else part(scoring, 0, length, average, k1, b, delta)
            found[number] = sum(
                idf(scoring, len(documents), sum(word in other for other in counts))
                * (part(scoring, own[word], length, average, k1, b, delta) - least)
                for word in known
            )
    return found


def check(
    got: pl.DataFrame,
    documents: Sequence[Words],
    queries: Sequence[Words],
    k: int,
    mode: str = "or",
    allowed: Sequence[bool] | None = None,
    **constants: float | str,
) -> None:
    """Hold a result to the oracle; documents whose scores differ by rounding only may take each other's place.

    Documents are ranked by their scores without what every document gets.
    """
    has_base = constants.get("scoring") in ("bm25l", "bm25+")
    assert got.schema == {"query": pl.UInt32, "rank": pl.UInt32, "id": got.schema["id"], "score": pl.Float32}
    assert got["query"].is_sorted()
    for number, query in enumerate(queries):
        part = got.filter(query=number)
        expected = _allowed(scores(documents, query, require_all=mode != "or", **constants), allowed)  # type: ignore[arg-type]
        if mode == "and_or" and len(expected) < k:
            expected = _allowed(scores(documents, query, **constants), allowed)  # type: ignore[arg-type]
        before = scores(documents, query, base=False, **constants)  # type: ignore[arg-type]
        best = sorted(expected.values(), reverse=True)[:k]
        rows = part.select("id", "score").rows()
        assert part["rank"].to_list() == list(range(1, len(best) + 1)), (number, query)
        assert len({document for document, _ in rows}) == len(rows)
        assert rows == sorted(rows, key=lambda row: (-row[1], 0 if has_base else row[0]))
        highest = sorted((before[document] for document in expected), reverse=True)
        for (document, score), wanted, own in zip(rows, best, highest, strict=False):
            assert math.isclose(before[document], own, rel_tol=1e-4, abs_tol=1e-12), (number, query, document)
            assert math.isclose(score, wanted, rel_tol=1e-5, abs_tol=1e-5), (number, query)
            assert math.isclose(score, expected[document], rel_tol=1e-5, abs_tol=1e-5), (number, query, document)


def _allowed(found: dict[int, float], allowed: Sequence[bool] | None) -> dict[int, float]:
    return {document: score for document, score in found.items() if allowed is None or allowed[document]}
