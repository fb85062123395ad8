"""What a score is made of, and which document an id names."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from polars_tadoc.index.scoring import Scoring
from polars_tadoc.index.search import Batch, weigh
from polars_tadoc.kernels.cpu import decode_lists
from polars_tadoc.kernels.reference_search import contribution

if TYPE_CHECKING:
    from polars_tadoc.index.index import Index

Int64 = npt.NDArray[np.int64]

SCHEMA = {
    "word": pl.String,
    "count": pl.UInt32,
    "document_frequency": pl.UInt32,
    "idf": pl.Float64,
    "weight": pl.Float32,
    "score": pl.Float32,
}

MOST_COMPARED = 2_000
"""Ids that are compared with an unknown one letter by letter."""


def explain(index: Index, query: object, id: Any, scoring: Scoring) -> pl.DataFrame:
    """Answer :meth:`polars_tadoc.index.index.Index.explain`."""
    if not isinstance(query, str):
        raise TypeError(f"explain: query must be a string, not {type(query).__name__}")
    document = document_of(index, id)
    batch = weigh(index, pl.Series("query", [query]), scoring)
    number = int(np.searchsorted(np.cumsum([segment.size for segment in index.segments]), document, side="right"))
    segment = index.segments[number]
    local = document - sum(other.size for other in index.segments[:number])
    norm = scoring.norms(segment.lengths[local : local + 1], index.average_length)[0]
    counts = _counts(index, batch, number, local)
    names = batch.names()
    rows: list[tuple[Any, ...]] = []
    for item, weight, count in zip(batch.items.tolist(), batch.weights, counts, strict=True):
        frequency = int(batch.frequencies[item])
        idf = float(scoring.idf(index.documents, [frequency])[0]) if frequency else None
        score = float(contribution(weight, count, norm)) if count else 0.0
        rows.append((_shown(names[item]), count, frequency, idf, float(weight), score))
    if scoring.has_base and any(counts):
        rows.append((None, None, None, None, None, float(batch.bases[0])))
    return pl.DataFrame(rows, SCHEMA, orient="row")


def _shown(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f'"{" ".join(words)}"'


def _counts(index: Index, batch: Batch, number: int, local: int) -> list[int]:
    """How often a document of a segment holds each word or phrase of the only query."""
    postings, extra = index.segments[number].postings, batch.extra[number]
    lists = batch.numbers[number][batch.items]
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


def document_of(index: Index, id: Any, call: str = "explain") -> int:
    """Return the number of the document that an id names, among all that are stored.

    Raises
    ------
    TypeError
        The id is of another type than the index's.
    ValueError
        No document has it; the message names near ones. Or several have.

    """
    ids = index.stored.ids
    try:
        value = pl.Series("id", [id], ids.dtype)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        raise TypeError(f"{call}: the index's ids are {ids.dtype}; {id!r} is not one") from None
    same = ids.eq_missing(value.new_from_index(0, len(ids)))
    if index.live is not None:
        same &= pl.Series(index.live)
    places = same.arg_true()
    if len(places) == 0:
        near = _near(index.ids, value)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise ValueError(f"{call}: the index has no document with id {id!r}{hint}")
    if len(places) > 1:
        raise ValueError(f"{call}: {len(places):,} documents have id {id!r}; give them ids of their own")
    return int(places.item())


def _near(ids: pl.Series, value: pl.Series) -> list[Any]:
    """At most three ids like an unknown one."""
    if value.null_count() or not len(ids):
        return []
    if ids.dtype.is_integer():
        asked = value.item()
        below, above = ids.filter(ids < asked).max(), ids.filter(ids > asked).min()
        return [near for near in (below, above) if near is not None]
    if ids.dtype != pl.String:
        return []
    asked = value.item()
    frame = ids.drop_nulls().unique().to_frame("id").with_columns(length=pl.col("id").str.len_chars())
    like = frame.filter(
        (pl.col("length").cast(pl.Int64) - len(asked)).abs() <= 3,
        pl.col("id").str.starts_with(asked[:2]) | pl.col("id").str.ends_with(asked[-2:]),
    )
    closest = like["id"].sort().head(MOST_COMPARED).to_list() or frame["id"].sort().head(MOST_COMPARED).to_list()
    return difflib.get_close_matches(asked, closest, n=3, cutoff=0.5)
