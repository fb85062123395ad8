"""The results of the kernels of passages, in plain Python."""

from __future__ import annotations

from collections.abc import Sequence

NONE = 0xFFFFFFFF
"""A separator, and the place of no window."""


def windows(documents: Sequence[Sequence[int]], length: int) -> tuple[list[list[int]], list[list[int]]]:
    """Return by document and window the place of its first occurrence, and its number of occurrences.

    Places count the words of all documents and one separator after each.
    """
    places: dict[tuple[int, ...], list[int]] = {}
    of: list[list[list[int]]] = []
    start = 0
    for words in documents:
        own = [places.setdefault(tuple(words[at : at + length]), []) for at in range(max(len(words) - length + 1, 0))]
        for at, found in enumerate(own):
            found.append(start + at)
        of.append(own)
        start += len(words) + 1
    firsts = [[found[0] for found in own] for own in of]
    return firsts, [[len(found) for found in own] for own in of]


def lay_words(documents: Sequence[Sequence[int]], image: Sequence[int]) -> list[int]:
    """Return the images of all words, and a separator after each document."""
    return [word for words in documents for word in [*(image[one] for one in words), NONE]]


def first_places(documents: Sequence[Sequence[int]], length: int) -> list[int]:
    """Return the place of the first occurrence of the window at each place, or ``NONE``."""
    return _by_place(documents, windows(documents, length)[0])


def known(documents: Sequence[Sequence[int]], reference: Sequence[Sequence[int]], length: int) -> list[int]:
    """Return the first place in a reference of the window at each place, or ``NONE``."""
    places: dict[tuple[int, ...], int] = {}
    start = 0
    for words in reference:
        for at in range(len(words) - length + 1):
            places.setdefault(tuple(words[at : at + length]), start + at)
        start += len(words) + 1
    found = [
        [places.get(tuple(words[at : at + length]), NONE) for at in range(len(words) - length + 1)]
        for words in documents
    ]
    return _by_place(documents, found)


def _by_place(documents: Sequence[Sequence[int]], found: Sequence[Sequence[int]]) -> list[int]:
    """Return a number by place, given those of windows; ``NONE`` where no window begins."""
    return [
        place
        for words, own in zip(documents, found, strict=True)
        for place in [*own, *[NONE] * (len(words) + 1 - len(own))]
    ]


def passages(documents: Sequence[Sequence[int]], length: int, hits: Sequence[bool]) -> list[tuple[int, int, int]]:
    """Return document, first place and end of each maximal run of words inside windows that are hit, by place."""
    found = []
    start = 0
    for document, words in enumerate(documents):
        inside = [any(hits[start + max(at - length + 1, 0) : start + at + 1]) for at in range(len(words))]
        edges = [at for at in range(len(words) + 1) if [False, *inside, False][at] != [False, *inside, False][at + 1]]
        found += [(document, start + a, start + b) for a, b in zip(edges[::2], edges[1::2], strict=True)]
        start += len(words) + 1
    return found
