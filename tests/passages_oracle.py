"""Repeated, shared and new passages in plain Python over each row's words, as the documentation defines them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Document = list[tuple[str, int]] | None
"""Words after normalisation, each with its number among the row's own words; None for a null row."""
Key = tuple[str, ...]
Place = tuple[int, int]
"""Row, and number of a word after normalisation."""


def normalised(
    rows: Sequence[list[str] | None], image: Callable[[str], str | None] = lambda word: word
) -> list[Document]:
    """Map each word; one that maps to None or to nothing is dropped, and its neighbours become adjacent."""
    return [
        None if words is None else [(to, place) for place, word in enumerate(words) if (to := image(word))]
        for words in rows
    ]


def key(document: list[tuple[str, int]], at: int, length: int) -> Key:
    return tuple(word for word, _ in document[at : at + length])


def windows(documents: Sequence[Document], length: int) -> dict[Key, list[Place]]:
    """Places of each window of exactly ``length`` words, in row order."""
    found: dict[Key, list[Place]] = {}
    for row, document in enumerate(documents):
        for at in range(len(document or []) - length + 1):
            found.setdefault(key(document or [], at, length), []).append((row, at))
    return found


def covered(document: list[tuple[str, int]], length: int, hit: Callable[[int], bool]) -> list[bool]:
    """Whether each word lies in a window that is hit."""
    marks = [False] * len(document)
    for at in range(len(document) - length + 1):
        if hit(at):
            marks[at : at + length] = [True] * length
    return marks


def stretches(marks: Sequence[bool]) -> list[tuple[int, int]]:
    """Maximal runs of marks: first, and the one after the last."""
    edges = [i for i in range(len(marks) + 1) if (i > 0 and marks[i - 1]) != (i < len(marks) and marks[i])]
    return list(zip(edges[::2], edges[1::2], strict=True))


def repeats(documents: Sequence[Document], length: int, min_count: int = 2) -> list[tuple[int, int, int, int, bool]]:
    """Row, offset and length in the row's own words, copies, first."""
    places, found = windows(documents, length), []
    for row, document in enumerate(documents):
        words = document or []
        of = [places[key(words, at, length)] for at in range(len(words) - length + 1)]
        for start, stop in stretches(covered(words, length, lambda at, of=of: len(of[at]) >= min_count)):
            inside = range(start, stop - length + 1)
            offset = words[start][1]
            copies = max(len(of[at]) for at in inside)
            is_first = all(of[at][0] == (row, at) for at in inside)
            found.append((row, offset, words[stop - 1][1] + 1 - offset, copies, is_first))
    return found


def droppable(documents: Sequence[Document], length: int, keep: str = "first") -> list[list[bool] | None]:
    """Whether each word lies in a repeated window that is not the window's first occurrence, or in any."""
    places = windows(documents, length)

    def hit(row: int, words: list[tuple[str, int]], at: int) -> bool:
        of = places[key(words, at, length)]
        return len(of) >= 2 and (keep == "none" or of[0] != (row, at))

    return [
        None if words is None else covered(words, length, lambda at, row=row, words=words: hit(row, words, at))
        for row, words in enumerate(documents)
    ]


def repeated_share(documents: Sequence[Document], length: int) -> list[float | None]:
    return [_share(marks) for marks in droppable(documents, length, "none")]


def novelty(documents: Sequence[Document], length: int) -> list[float | None]:
    """Share of words in no window that occurred in an earlier row."""
    places = windows(documents, length)
    found: list[float | None] = []
    for row, words in enumerate(documents):
        marks = covered(
            words or [], length, lambda at, row=row, words=words: places[key(words or [], at, length)][0][0] < row
        )
        found.append(_share([not mark for mark in marks]) if words else None)
    return found


def cut(pieces: Sequence[str], marks: Sequence[bool]) -> str:
    """A text without the marked words.

    ``pieces`` are separator, word, separator, …, word, separator; of the two separators at a cut the one with more line
    breaks stays, of equal ones the first.
    """
    kept: list[str] = [pieces[0]]
    after_cut = False
    for word, separator, mark in zip(pieces[1::2], pieces[2::2], marks, strict=True):
        if mark and not after_cut:
            after_cut = True
            last = separator
        elif mark:
            last = separator
        else:
            if after_cut:
                kept[-1] = max(kept[-1], last, key=lambda gap: gap.count("\n"))
                after_cut = False
            kept += [word, separator]
    if after_cut:
        kept[-1] = max(kept[-1], last, key=lambda gap: gap.count("\n"))
    return "".join(kept)


def overlap(
    documents: Sequence[Document], reference: Sequence[Document], length: int
) -> list[tuple[int, int, int, int, int]]:
    """Row, offset, length, row of the reference, offset there: matches that no longer match of the row contains."""
    texts = [words or [] for words in reference]
    found = []
    for row, document in enumerate(documents):
        words, furthest = document or [], 0
        for start in range(len(words)):
            stop, place = start, None
            for other, text in enumerate(texts):
                for at in range(len(text)):
                    same = 0
                    while (
                        start + same < len(words)
                        and at + same < len(text)
                        and words[start + same][0] == text[at + same][0]
                    ):
                        same += 1
                    if start + same > stop:
                        stop, place = start + same, (other, text[at][1])
            if place is not None and stop - start >= length and stop > furthest:
                offset = words[start][1]
                found.append((row, offset, words[stop - 1][1] + 1 - offset, *place))
                furthest = stop
    return found


def overlap_share(documents: Sequence[Document], reference: Sequence[Document], length: int) -> list[float | None]:
    """Share of words in a window that the reference has."""
    known = windows(reference, length)
    return [
        None
        if words is None
        else _share(covered(words, length, lambda at, words=words: key(words, at, length) in known))
        for words in documents
    ]


def _share(marks: Sequence[Any] | None) -> float | None:
    return sum(marks) / len(marks) if marks else None
