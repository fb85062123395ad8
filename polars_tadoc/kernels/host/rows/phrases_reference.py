"""Plain-Python definition of the kernels that find phrases: rows are expanded, and each place looked at.

``rows`` are the documents' words, phrases are words too. No match goes from one row to the next; matches may overlap.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def count_phrase(rows: Sequence[Sequence[Hashable]], phrase: Sequence[Hashable]) -> list[int]:
    """Count the places of each document where the phrase begins.

    Examples
    --------
    >>> count_phrase([[0, 0, 0], [1, 0], []], [0, 0])
    [2, 0, 0]

    """
    size = len(phrase)
    return [sum(list(row[i : i + size]) == list(phrase) for i in range(len(row) - size + 1)) for row in rows]


def contains_any(rows: Sequence[Sequence[Hashable]], phrases: Sequence[Sequence[Hashable]]) -> list[bool]:
    """Tell which documents hold at least one of the phrases.

    Examples
    --------
    >>> contains_any([[0, 1], [1, 0], []], [[0, 1], [2]])
    [True, False, False]

    """
    counts = [count_phrase(rows, phrase) for phrase in phrases]
    return [any(own[document] for own in counts) for document in range(len(rows))]
