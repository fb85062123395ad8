"""Plain-Python definition of traversing rules; CPU and GPU kernels must return the same results.

Written for reading, not for speed: lists, dicts and big integers, no NumPy. Tests compare every fast kernel with these
functions on generated inputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise


def expand(symbol: int, vocabulary_size: int, rule_offsets: Sequence[int], symbols: Sequence[int]) -> list[int]:
    """List the words in a symbol's expansion."""
    if symbol < vocabulary_size:
        return [symbol]
    rule = symbol - vocabulary_size
    body = symbols[rule_offsets[rule] : rule_offsets[rule + 1]]
    return [word for s in body for word in expand(int(s), vocabulary_size, rule_offsets, symbols)]


def top_down_weights(
    vocabulary_size: int, rule_offsets: Sequence[int], symbols: Sequence[int], roots: Sequence[int]
) -> list[int]:
    """Count the words in the expansion of the roots, by word id.

    Examples
    --------
    >>> top_down_weights(2, [0, 2], [0, 1], [2, 2, 0])
    [3, 2]

    """
    expansions: list[Counter[int]] = [Counter({word: 1}) for word in range(vocabulary_size)]
    for first, stop in pairwise(rule_offsets):
        total: Counter[int] = Counter()
        for symbol in symbols[first:stop]:
            total.update(expansions[symbol])
        expansions.append(total)
    counts: Counter[int] = Counter()
    for symbol in roots:
        counts.update(expansions[symbol])
    return [counts[word] for word in range(vocabulary_size)]


def map_counts(counts: Sequence[int], image: Sequence[int], size: int) -> list[int]:
    """Sum counts by image; image 0xFFFFFFFF means none.

    Examples
    --------
    >>> map_counts([5, 3, 1], [0, 0xFFFFFFFF, 0], 1)
    [6]

    """
    sums = [0] * size
    for count, target in zip(counts, image, strict=True):
        if target != 0xFFFFFFFF:
            sums[target] += count
    return sums


def select(
    counts: Sequence[int], words: Sequence[str], min_count: int = 1, top: int | None = None
) -> tuple[list[int], list[int]]:
    """Select word ids and counts: by descending count, then code point order; words with count 0 are dropped.

    Examples
    --------
    >>> select([2, 0, 3, 2], ["b", "x", "c", "a"], top=2)
    ([2, 3], [3, 2])

    """
    ids = [w for w, count in enumerate(counts) if count >= max(min_count, 1)]
    ids = sorted(ids, key=lambda w: (-counts[w], words[w]))[:top]
    return ids, [counts[w] for w in ids]
