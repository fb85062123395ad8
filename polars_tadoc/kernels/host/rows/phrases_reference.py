"""Plain-Python definition of the kernels that find phrases: expands rows, and compares at each position.

``rows`` are the documents' words, and phrases are words. Matches do not cross rows, and may overlap.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def count_phrase(rows: Sequence[Sequence[Hashable]], phrase: Sequence[Hashable]) -> list[int]:
    """Count the positions of each document at which the phrase begins.

    Examples
    --------
    >>> count_phrase([[0, 0, 0], [1, 0], []], [0, 0])
    [2, 0, 0]

    """
    size = len(phrase)
    return [sum(list(row[i : i + size]) == list(phrase) for i in range(len(row) - size + 1)) for row in rows]


def contains_any(rows: Sequence[Sequence[Hashable]], phrases: Sequence[Sequence[Hashable]]) -> list[bool]:
    """Tell which documents contain at least one of the phrases.

    Examples
    --------
    >>> contains_any([[0, 1], [1, 0], []], [[0, 1], [2]])
    [True, False, False]

    """
    counts = [count_phrase(rows, phrase) for phrase in phrases]
    return [any(own[document] for own in counts) for document in range(len(rows))]


def count_near(
    rows: Sequence[Sequence[Hashable]], words: Sequence[Hashable], places: Sequence[int], slop: int
) -> list[int]:
    """Count in each document the shifts at which words with these places are complete.

    A word's shift is its position minus its place in the phrase: all shifts are equal where the phrase occurs literally
    (as in Lucene's sloppy phrases). A shift counts if a word has it, and every word has one that is at most ``slop``
    less. If all places are 0, words may be in any order, at most ``slop`` positions apart.

    Examples
    --------
    >>> count_near([["out", "of", "the", "memory"], ["memory", "of"]], ["of", "memory"], [0, 1], 1)
    [1, 0]
    >>> count_near([["out", "of", "the", "memory"], ["memory", "of"]], ["of", "memory"], [0, 0], 1)
    [0, 1]

    """
    found = []
    for row in rows:
        shifts = [
            {at - place for at, own in enumerate(row) if own == word} for word, place in zip(words, places, strict=True)
        ]
        found.append(
            sum(
                all(any(shift - slop <= other <= shift for other in own) for own in shifts)
                for shift in set().union(*shifts)
            )
        )
    return found
