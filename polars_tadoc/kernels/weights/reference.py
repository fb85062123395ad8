"""Plain-Python definition of the weights of words in documents; both engines agree to a relative error of 1e-14.

Documents are lists of (terminal, count), as returned by
:func:`polars_tadoc.kernels.traverse.analytics_reference.terms_by_document`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from polars_tadoc.kernels.traverse.analytics_reference import Counted


def document_frequencies(documents: Sequence[Counted], terminals: int) -> list[int]:
    """Count the documents that contain each terminal.

    Examples
    --------
    >>> document_frequencies([[(0, 2), (1, 1)], [(0, 5)]], 3)
    [2, 1, 0]

    """
    frequencies = [0] * terminals
    for document in documents:
        for terminal, _ in document:
            frequencies[terminal] += 1
    return frequencies


def weigh_bm25(
    documents: Sequence[Counted], weights: Sequence[float], norms: Sequence[float], bases: Sequence[float] | None = None
) -> list[list[float]]:
    """Weigh terms by ``weight * count / (count + norm) + base``: weights and bases by terminal, norms by document.

    Examples
    --------
    >>> weigh_bm25([[(0, 2), (1, 1)], []], [3.0, 4.0], [1.0, 7.0])
    [[2.0, 2.0], []]

    """
    return [
        [
            weights[terminal] * (count / (count + norm)) + (0.0 if bases is None else bases[terminal])
            for terminal, count in document
        ]
        for document, norm in zip(documents, norms, strict=True)
    ]


def weigh_tfidf(
    documents: Sequence[Counted], idf: Sequence[float] | None, sublinear: bool, norm: str | None
) -> list[list[float]]:
    """Weigh terms by their count times ``idf`` (by terminal; None: 1), with documents scaled to norm 1.

    ``sublinear`` replaces the count by ``1 + ln(count)``; ``norm`` is "l1", "l2" or None. A document whose weights are
    all zero stays unchanged.

    Examples
    --------
    >>> weigh_tfidf([[(0, 3), (1, 2)]], [1.0, 2.0], sublinear=False, norm="l2")
    [[0.6, 0.8]]

    """
    weighed = []
    for document in documents:
        own = [
            (1.0 + math.log(count) if sublinear else float(count)) * (1.0 if idf is None else idf[terminal])
            for terminal, count in document
        ]
        size = 1.0
        if norm == "l1":
            size = math.fsum(abs(weight) for weight in own)
        elif norm == "l2":
            size = math.sqrt(math.fsum(weight * weight for weight in own))
        weighed.append([weight / size for weight in own] if size else own)
    return weighed


def top_weights(
    documents: Sequence[Counted], weights: Sequence[Sequence[float]], rank: Sequence[int] | None, top: int
) -> list[list[tuple[int, float]]]:
    """Keep each document's ``top`` terminals by descending weight, then rank.

    Examples
    --------
    >>> top_weights([[(0, 1), (1, 1), (2, 4)]], [[0.5, 0.5, 0.7]], None, 2)
    [[(2, 0.7), (0, 0.5)]]

    """
    return [
        sorted(
            ((terminal, weight) for (terminal, _), weight in zip(document, own, strict=True)),
            key=lambda item: (-item[1], item[0] if rank is None else rank[item[0]]),
        )[:top]
        for document, own in zip(documents, weights, strict=True)
    ]
