"""Plain-Python definitions of the search kernels; every engine must return the same results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polars_tadoc.kernels.postings.coded import BLOCK, RICE, Lists, Postings, Queries, Stream


def _bits(data: Any, start: int, width: int) -> int:
    """Read bits as a number, lowest bit first."""
    return sum((int(data[i >> 3]) >> (i & 7) & 1) << (i - start) for i in range(start, start + width))


def decode_block(stream: Stream, codec: int, number: int, block: int, place: int, size: int) -> list[int]:
    """Decode ``size`` values of list ``number`` from position ``place`` on, which is global block ``block``."""
    width = int(stream.widths[number])
    start = 8 * int(stream.low_offsets[number]) + place * width
    low = [_bits(stream.low, start + i * width, width) for i in range(size)]
    high = [0] * size
    if codec == RICE:
        bit = int(stream.unary_offsets[block])
        for i in range(size):
            while not _bits(stream.unary, bit, 1):
                high[i] += 1
                bit += 1
            bit += 1
    else:
        for e in range(int(stream.exception_offsets[block]), int(stream.exception_offsets[block + 1])):
            high[int(stream.exception_places[e])] = int(stream.exception_highs[e])
    return [one | other << width for one, other in zip(low, high, strict=True)]


def decode_list(postings: Postings, number: int) -> tuple[list[int], list[int]]:
    """Decode one list: its documents, and their counts."""
    documents: list[int] = []
    counts: list[int] = []
    size = int(postings.frequencies[number])
    for q, place in enumerate(range(0, size, BLOCK)):
        block, length = int(postings.block_offsets[number]) + q, min(BLOCK, size - place)
        document = int(postings.heads[block]) - 1
        for gap in decode_block(postings.gaps, postings.codec, number, block, place, length):
            document += gap + 1
            documents.append(document)
        counts += [1 + c for c in decode_block(postings.counts, postings.codec, number, block, place, length)]
    return documents, counts


def contribution(weight: Any, count: int, norm: Any) -> Any:
    """Return the contribution of one posting to a score, float32: every operation is rounded separately.

    The five BM25 formulas of Kamphuis et al. (ECIR 2020) have this form, with different weights and norms, plus a
    constant per query for all documents (:mod:`polars_tadoc.scoring.bm25`).
    """
    count32 = np.float32(count)
    return np.float32(weight) * (count32 / (count32 + np.float32(norm)))


def search(
    postings: Postings,
    norms: Any,
    queries: Queries,
    k: int,
    require_all: bool,
    allowed: Any = None,
    extra: Lists | None = None,
) -> tuple[Any, Any, Any]:
    """Return the best documents of each query.

    Parameters
    ----------
    postings
        The lists.
    norms
        float32 by document, at least 0: the constant in the denominator.
    queries
        Lists and weights.
    k
        Maximum number of documents per query.
    require_all
        Return documents in all of a query's lists; otherwise those in any.
    allowed
        uint32 bitmap, lowest bit first, of the documents that may be returned; None: all.
    extra
        Uncoded lists of this batch.

    Returns
    -------
    (int64 array, uint32 array, float32 array)
        Number of results by query, at most k; documents and scores, queries x k, by descending score, then by document;
        unused entries are 0. A query without lists has no results.

    """
    found = np.zeros(len(queries.offsets) - 1, np.int64)
    documents = np.zeros((len(found), k), np.uint32)
    scores = np.zeros((len(found), k), np.float32)
    for q in range(len(found)):
        chosen = range(int(queries.offsets[q]), int(queries.offsets[q + 1]))
        sums: dict[int, Any] = {}
        lists_of: dict[int, int] = {}
        for place in chosen:
            for document, count in zip(*_list(postings, extra, int(queries.lists[place])), strict=True):
                added = contribution(queries.weights[place], count, norms[document])
                sums[document] = np.float32(sums[document] + added) if document in sums else added
                lists_of[document] = lists_of.get(document, 0) + 1
        best = sorted(
            (-score, document)
            for document, score in sums.items()
            if _is_allowed(allowed, document) and (not require_all or lists_of[document] == len(chosen))
        )[:k]
        found[q] = len(best)
        documents[q, : len(best)] = [document for _, document in best]
        scores[q, : len(best)] = [-score for score, _ in best]
    return found, documents, scores


def _list(postings: Postings, extra: Lists | None, number: int) -> tuple[Sequence[int], Sequence[int]]:
    own = number - len(postings.frequencies)
    if own < 0:
        return decode_list(postings, number)
    assert extra is not None
    start, stop = int(extra.offsets[own]), int(extra.offsets[own + 1])
    return [int(d) for d in extra.documents[start:stop]], [int(c) for c in extra.counts[start:stop]]


def _is_allowed(allowed: Any, document: int) -> bool:
    return allowed is None or bool(int(allowed[document >> 5]) >> (document & 31) & 1)
