"""Plain-Python definition of the data-parallel primitives of the device's kernels."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, groupby, pairwise


def radix_sort(keys: Sequence[int], values: Sequence[int], first_bit: int, bits: int) -> tuple[list[int], list[int]]:
    """Sort by ``bits`` bits from ``first_bit`` on; stable.

    Examples
    --------
    >>> radix_sort([5, 4, 1], [0, 1, 2], first_bit=1, bits=2)
    ([1, 5, 4], [2, 0, 1])

    """
    order = sorted(range(len(keys)), key=lambda i: keys[i] >> first_bit & ((1 << bits) - 1))
    return [keys[i] for i in order], [values[i] for i in order]


def sum_runs(keys: Sequence[int], weights: Sequence[int]) -> tuple[list[int], list[int]]:
    """Sum the weights of adjacent equal keys, modulo 2^64.

    Examples
    --------
    >>> sum_runs([3, 3, 7], [1, 2, 4])
    ([3, 7], [3, 4])

    """
    runs = [
        (key, sum(weight for _, weight in run) % 2**64)
        for key, run in groupby(zip(keys, weights, strict=True), key=lambda pair: pair[0])
    ]
    return [key for key, _ in runs], [weight for _, weight in runs]


def compact(values: Sequence[int], keep: Sequence[bool]) -> list[int]:
    """Drop values that are not to be kept.

    Examples
    --------
    >>> compact([5, 6, 7], [True, False, True])
    [5, 7]

    """
    return [value for value, kept in zip(values, keep, strict=True) if kept]


def exclusive_scan(values: Sequence[int]) -> list[int]:
    """Return the prefix sums, and the total.

    Examples
    --------
    >>> exclusive_scan([3, 1, 2])
    [0, 3, 4, 6]

    """
    return [0, *accumulate(values)]


def segmented_sum(values: Sequence[int], offsets: Sequence[int]) -> list[int]:
    """Sum up each segment, modulo 2^64.

    Examples
    --------
    >>> segmented_sum([3, 1, 2], [0, 2, 2, 3])
    [4, 0, 2]

    """
    return [sum(values[first:stop]) % 2**64 for first, stop in pairwise(offsets)]


def expand(offsets: Sequence[int]) -> list[int]:
    """Return the segment of each position.

    Examples
    --------
    >>> expand([0, 2, 2, 3])
    [0, 0, 2]

    """
    return [segment for segment, (first, stop) in enumerate(pairwise(offsets)) for _ in range(stop - first)]
