"""What the kernels of passages compute, in plain Python."""

from __future__ import annotations

from collections.abc import Sequence


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
