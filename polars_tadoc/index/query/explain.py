"""Explains a score by its parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from polars_tadoc.index.collection import Collection
from polars_tadoc.index.documents import find
from polars_tadoc.index.query.phrases import Unit
from polars_tadoc.index.query.plan import Plan, plan
from polars_tadoc.index.query.prepared import norms_of
from polars_tadoc.index.query.request import as_texts, require_syntax
from polars_tadoc.kernels.postings.decode_cpu import decode_lists
from polars_tadoc.scoring.bm25 import Scoring, contribution

SCHEMA = {
    "word": pl.String,
    "count": pl.UInt32,
    "document_frequency": pl.UInt32,
    "idf": pl.Float64,
    "weight": pl.Float32,
    "score": pl.Float32,
}


def explain(index: Collection, query: object, id: Any, scoring: Scoring, mode: str, syntax: str) -> pl.DataFrame:
    """Answer :meth:`polars_tadoc.index.index.Index.explain`."""
    if not isinstance(query, str):
        raise TypeError(f"explain: query must be a string, not {type(query).__name__}")
    if mode not in ("or", "and"):
        raise ValueError(f'mode={mode!r}: use "and" or "or"')
    document = _document_of(index, id)
    planned = plan(index, as_texts(query, "explain"), scoring, "explain", mode, require_syntax(syntax))
    number = int(np.searchsorted(np.cumsum([segment.size for segment in index.segments]), document, side="right"))
    segment = index.segments[number]
    local = document - sum(other.size for other in index.segments[:number])
    norm = norms_of(index, segment.lengths[local : local + 1], scoring)[0]
    counts = _counts(index, planned, number, local)
    names = planned.names()
    rows: list[tuple[Any, ...]] = []
    for item, weight, count in zip(planned.items.tolist(), planned.weights, counts, strict=True):
        frequency = int(planned.frequencies[item])
        idf = float(scoring.idf(index.documents, [frequency])[0]) if frequency else None
        score = float(contribution(weight, count, norm)) if count else 0.0
        if names[item].words:
            rows.append((_shown(names[item]), count, frequency, idf, float(weight), score))
    if planned.bases is not None and any(counts):
        rows.append((None, None, None, None, None, float(planned.bases[0])))
    return pl.DataFrame(rows, SCHEMA, orient="row")


def _shown(unit: Unit) -> str:
    return f"{unit.field}:{_shown_words(unit)}" if unit.field else _shown_words(unit)


def _shown_words(unit: Unit) -> str:
    if len(unit.words) == 1:
        return unit.words[0]
    if not unit.is_ordered:
        return f" NEAR/{unit.slop} ".join(unit.words)
    return f'"{" ".join(unit.words)}"' + (f"~{unit.slop}" if unit.slop else "")


def _counts(index: Collection, planned: Plan, number: int, local: int) -> list[int]:
    """Count each word and phrase of the only query in a document of a segment."""
    postings, extra = index.segments[number].postings, planned.extra[number]
    lists = planned.numbers[number][planned.items]
    own = len(postings.frequencies)
    coded = lists[(lists >= 0) & (lists < own)]
    offsets, documents, counts = decode_lists(postings, coded.astype(np.uint32))
    found, decoded = [], 0
    for chosen in lists.tolist():
        if chosen < 0:
            found.append(0)
        elif chosen < own:
            part = slice(int(offsets[decoded]), int(offsets[decoded + 1]))
            found.append(_count(documents[part], counts[part], local))
            decoded += 1
        else:
            assert extra is not None
            part = slice(int(extra.offsets[chosen - own]), int(extra.offsets[chosen - own + 1]))
            found.append(_count(extra.documents[part], extra.counts[part], local))
    return found


def _count(documents: Any, counts: Any, document: int) -> int:
    place = int(np.searchsorted(documents, document))
    return int(counts[place]) if place < len(documents) and documents[place] == document else 0


def _document_of(index: Collection, id: Any) -> int:
    """Return the number of the only document with an id."""
    _, documents = find(index.stored, index.live, [id], "explain")
    if len(documents) > 1:
        raise ValueError(f"explain: {len(documents):,} documents have id {id!r}; explain needs a unique id")
    return int(documents[0])
