"""Plain-Python definition of the analytics' kernels: expands rows and counts their words.

Every engine and strategy must return the same results. ``rows`` are the documents' words (ids); ``rank`` gives the
order of words, by default that of ids.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from polars_tadoc.kernels.traverse.reference import expand

Rows = list[list[int]]
Counted = list[tuple[int, int]]


def expand_documents(
    terminals: int,
    rule_offsets: Sequence[int],
    symbols: Sequence[int],
    root_offsets: Sequence[int],
    roots: Sequence[int],
) -> Rows:
    """Expand each document.

    Examples
    --------
    >>> expand_documents(2, [0, 2], [0, 1], [0, 2, 3], [2, 2, 0])
    [[0, 1, 0, 1], [0]]

    """
    return [
        [word for symbol in roots[first:stop] for word in expand(symbol, terminals, rule_offsets, symbols)]
        for first, stop in pairwise(root_offsets)
    ]


def terminal_counts(rows: Rows, terminals: int) -> list[int]:
    """Count each terminal over all documents.

    Examples
    --------
    >>> terminal_counts([[0, 1, 0], [0]], 3)
    [3, 1, 0]

    """
    counts = Counter(word for row in rows for word in row)
    return [counts[word] for word in range(terminals)]


def count_by_document(
    rows: Rows, rank: Sequence[int] | None = None, min_count: int = 1, top: int | None = None
) -> list[Counted]:
    """Count each document's terminals, by descending count, then rank; at most ``top`` per document.

    Examples
    --------
    >>> count_by_document([[0, 1, 0], []])
    [[(0, 2), (1, 1)], []]

    """
    return [
        sorted(
            ((word, count) for word, count in Counter(row).items() if count >= min_count),
            key=lambda item: (-item[1], item[0] if rank is None else rank[item[0]]),
        )[:top]
        for row in rows
    ]


def terms_by_document(rows: Rows, rank: Sequence[int] | None = None) -> list[Counted]:
    """Count each document's terminals, by rank.

    Examples
    --------
    >>> terms_by_document([[1, 0, 1], []])
    [[(0, 1), (1, 2)], []]

    """
    return [sorted(Counter(row).items(), key=lambda item: item[0] if rank is None else rank[item[0]]) for row in rows]


def count_by_terminal(rows: Rows, terminals: int) -> list[Counted]:
    """List the documents that contain each terminal, ascending, with counts.

    Examples
    --------
    >>> count_by_terminal([[0, 1, 0], [0]], 2)
    [[(0, 2), (1, 1)], [(0, 1)]]

    """
    postings: list[Counted] = [[] for _ in range(terminals)]
    for document, row in enumerate(rows):
        for word, count in Counter(row).items():
            postings[word].append((document, count))
    return postings


def sequences_of(row: list[int], n: int) -> list[tuple[int, ...]]:
    """Return all sequences of n consecutive words of a document.

    Examples
    --------
    >>> sequences_of([0, 1, 0], 2)
    [(0, 1), (1, 0)]

    """
    return [tuple(row[i : i + n]) for i in range(len(row) - n + 1)]


def sequence_counts(
    rows: Rows, n: int, rank: Sequence[int] | None = None, min_count: int = 1, top: int | None = None
) -> list[tuple[tuple[int, ...], int]]:
    """Count sequences of n words; by descending count, then the words' ranks.

    Examples
    --------
    >>> sequence_counts([[0, 1, 0, 1], [1]], 2)
    [((0, 1), 2), ((1, 0), 1)]

    """
    counts = Counter(sequence for row in rows for sequence in sequences_of(row, n))
    return _ranked(counts, rank, min_count, top)


def sequence_postings(
    rows: Rows, n: int, rank: Sequence[int] | None = None, min_count: int = 1, top: int | None = None
) -> list[tuple[tuple[int, ...], Counted]]:
    """List the documents of each sequence of n words: by descending count, then ascending; at most ``top`` each.

    Sequences are ordered by their words' ranks. Those with a total count below ``min_count`` are dropped.

    Examples
    --------
    >>> sequence_postings([[0, 1], [0, 1, 0, 1]], 2)
    [((0, 1), [(1, 2), (0, 1)]), ((1, 0), [(1, 1)])]

    """
    postings: dict[tuple[int, ...], Counted] = {}
    for document, row in enumerate(rows):
        for sequence, count in Counter(sequences_of(row, n)).items():
            postings.setdefault(sequence, []).append((document, count))
    return [
        (sequence, sorted(postings[sequence], key=lambda item: (-item[1], item[0]))[:top])
        for sequence in sorted(postings, key=lambda sequence: _ranks(sequence, rank))
        if sum(count for _, count in postings[sequence]) >= min_count
    ]


def pair_counts(
    rows: Rows, window: int, rank: Sequence[int] | None = None, min_count: int = 1, top: int | None = None
) -> list[tuple[tuple[int, ...], int]]:
    """Count the pairs of words at most ``window`` words apart, the word of lower rank first.

    Each pair of positions i < j with j - i <= window in one document counts once. By descending count, then rank.

    Examples
    --------
    >>> pair_counts([[1, 0, 1]], window=1)
    [((0, 1), 2)]
    >>> pair_counts([[1, 0, 1]], window=2)
    [((0, 1), 2), ((1, 1), 1)]

    """
    counts: Counter[tuple[int, ...]] = Counter()
    for row in rows:
        for i in range(len(row)):
            for j in range(i + 1, min(i + window, len(row) - 1) + 1):
                counts[tuple(sorted((row[i], row[j]), key=lambda word: word if rank is None else rank[word]))] += 1
    return _ranked(counts, rank, min_count, top)


def _ranked(
    counts: Counter[tuple[int, ...]], rank: Sequence[int] | None, min_count: int, top: int | None
) -> list[tuple[tuple[int, ...], int]]:
    chosen = [item for item in counts.items() if item[1] >= min_count]
    return sorted(chosen, key=lambda item: (-item[1], _ranks(item[0], rank)))[:top]


def _ranks(words: tuple[int, ...], rank: Sequence[int] | None) -> tuple[int, ...]:
    return words if rank is None else tuple(rank[word] for word in words)
