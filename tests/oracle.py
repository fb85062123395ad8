"""The analytics in plain Python over the words of each row: what every public call is held to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import polars as pl

SINGLE = r"[\p{Han}\p{Hiragana}\p{Katakana}ーｰ&&\w&&\P{M}]"

Words = list[str]
Documents = Sequence[Words | None]
"""Each row's words; None for a null row."""
Key = TypeVar("Key", bound=Hashable)


def tokenize(rows: Iterable[str | None]) -> list[Words | None]:
    """The documented rule as one regex for Polars: a Han or kana character with its marks, or a run of others."""
    text = pl.Series(list(rows), dtype=pl.String)
    found: list[Words | None] = text.str.extract_all(rf"{SINGLE}\p{{M}}*|[\w--{SINGLE}]+").to_list()
    return found


def normalise(documents: Documents, image: Callable[[str], str | None]) -> list[Words | None]:
    """Map each word; one that maps to None or to nothing is left out, and its neighbours become adjacent."""
    return [None if words is None else [to for word in words if (to := image(word))] for words in documents]


def word_count(documents: Documents, top: int | None = None, min_count: int = 1) -> list[tuple[str, int]]:
    return _ranked(Counter(word for _, words in _numbered(documents) for word in words), top, min_count)


def sort(documents: Documents, min_count: int = 1) -> list[tuple[str, int]]:
    return sorted(word_count(documents, min_count=min_count))


def inverted_index(
    documents: Documents, labels: Sequence[Any] | None = None, min_count: int = 1
) -> list[tuple[str, list[Any]]]:
    index: dict[str, list[Any]] = {}
    for row, words in _numbered(documents):
        for word in set(words):
            index.setdefault(word, []).append(_label(row, labels))
    return sorted((item for item in index.items() if len(item[1]) >= min_count), key=lambda item: item[0])


def term_vector(
    documents: Documents, labels: Sequence[Any] | None = None, top: int | None = None, min_count: int = 1
) -> list[tuple[Any, str, int]]:
    return [
        (_label(row, labels), word, count)
        for row, words in _numbered(documents)
        for word, count in _ranked(Counter(words), top, min_count)
    ]


def sequence_count(
    documents: Documents, n: int = 3, top: int | None = None, min_count: int = 1
) -> list[tuple[list[str], int]]:
    counts = Counter(sequence for _, words in _numbered(documents) for sequence in sequences(words, n))
    return [(list(sequence), count) for sequence, count in _ranked(counts, top, min_count)]


def ranked_inverted_index(
    documents: Documents,
    labels: Sequence[Any] | None = None,
    n: int = 3,
    top: int | None = None,
    min_count: int = 1,
) -> list[tuple[list[str], list[dict[str, Any]]]]:
    index: dict[tuple[str, ...], Counter[int]] = {}
    for row, words in _numbered(documents):
        for sequence in sequences(words, n):
            index.setdefault(sequence, Counter())[row] += 1
    return [
        (list(sequence), [{"id": _label(row, labels), "count": count} for row, count in _ranked(index[sequence], top)])
        for sequence in sorted(index)
        if index[sequence].total() >= min_count
    ]


def cooccurrence(
    documents: Documents, window: int = 5, top: int | None = None, min_count: int = 1
) -> list[tuple[str, str, int]]:
    counts: Counter[tuple[str, str]] = Counter()
    for _, words in _numbered(documents):
        for place, word in enumerate(words):
            for other in words[place + 1 : place + window + 1]:
                counts[min(word, other), max(word, other)] += 1
    return [(word, other, count) for (word, other), count in _ranked(counts, top, min_count)]


def sequences(words: Words, n: int) -> list[tuple[str, ...]]:
    """Each run of n words."""
    return [tuple(words[place : place + n]) for place in range(len(words) - n + 1)]


def _numbered(documents: Documents) -> list[tuple[int, Words]]:
    return [(row, words) for row, words in enumerate(documents) if words is not None]


def _label(row: int, labels: Sequence[Any] | None) -> Any:
    return row if labels is None else labels[row]


def _ranked(counts: Counter[Key], top: int | None = None, min_count: int = 1) -> list[tuple[Key, int]]:
    """By count falling, then ascending."""
    chosen = [item for item in counts.items() if item[1] >= min_count]
    return sorted(chosen, key=lambda item: (-item[1], item[0]))[:top]
