"""Sets of integers as intervals, whose memory depends on the number of intervals only."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Set


class IntervalSet(Set[int]):
    """A set of integers, stored as disjoint intervals.

    Parameters
    ----------
    intervals
        First and last number of each interval, ascending.

    Raises
    ------
    ValueError
        They are not ascending.

    """

    def __init__(self, intervals: Iterable[tuple[int, int]] = ()) -> None:
        self.intervals = tuple(intervals)
        self._firsts = [first for first, _ in self.intervals]
        ends = [number for interval in self.intervals for number in interval]
        falls = any(first > last for first, last in self.intervals)
        if falls or any(last >= first for last, first in zip(ends[1::2], ends[2::2], strict=False)):
            raise ValueError("intervals are not in ascending order")

    def __contains__(self, number: object) -> bool:
        if not isinstance(number, int):
            return False
        place = bisect_right(self._firsts, number) - 1
        return place >= 0 and number <= self.intervals[place][1]

    def __iter__(self) -> Iterator[int]:
        return (number for first, last in self.intervals for number in range(first, last + 1))

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self.intervals)

    def also(self, numbers: Iterable[int]) -> IntervalSet:
        """Return the union with some numbers."""
        joined: list[tuple[int, int]] = []
        for first, last in sorted([*self.intervals, *((number, number) for number in numbers)]):
            if joined and first <= joined[-1][1] + 1:
                joined[-1] = joined[-1][0], max(last, joined[-1][1])
            else:
                joined.append((first, last))
        return IntervalSet(joined)
