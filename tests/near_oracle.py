"""Near duplicates in plain Python over each row's words, as the documentation defines them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from polars_tadoc.kernels.host.near.reference import ngrams
from tests.passages_oracle import Document

Pair = tuple[int, int, float]


def pairs(
    rows: Sequence[list[str] | None], ngram: int, threshold: float, is_proposed: Callable[[int, int], bool]
) -> list[Pair]:
    """Copies with their first row; of different rows, the pairs that are proposed and similar."""
    found, firsts = [], {}
    for row, words in enumerate(rows):
        if not words:
            continue
        first = firsts.setdefault(tuple(words), row)
        if first != row:
            found.append((first, row, 1.0))
            continue
        own = set(ngrams(words, ngram))
        for other in list(firsts.values())[:-1]:
            members = set(ngrams(rows[other] or [], ngram))
            similarity = len(own & members) / len(own | members)
            if similarity >= threshold and is_proposed(other, row):
                found.append((other, row, similarity))
    return sorted(found)


def groups(count: int, found: Sequence[Pair]) -> list[tuple[int, int, bool]]:
    """Each row, the first row of its component, and whether it is that one."""
    of = list(range(count))
    for one, other, _ in found:
        low, high = sorted((of[one], of[other]))
        of = [low if group == high else group for group in of]
    return [(row, group, group == row) for row, group in enumerate(of)]


def occurrences(document: Document, phrase: Sequence[str]) -> list[tuple[int, int]]:
    """First word and number of words of each occurrence, counted in the row's own words."""
    words = document or []
    size = len(phrase)
    found = [at for at in range(len(words) - size + 1) if [word for word, _ in words[at : at + size]] == list(phrase)]
    return [(words[at][1], words[at + size - 1][1] + 1 - words[at][1]) for at in found if size]
