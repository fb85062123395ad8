from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_tadoc.records.interval_set import IntervalSet

NUMBERS = st.sets(st.integers(0, 40))


@given(NUMBERS, NUMBERS)
def test_are_a_set(some: set[int], more: set[int]) -> None:
    found = IntervalSet().also(some).also(more)
    assert found == some | more
    assert list(found) == sorted(some | more)
    assert len(found) == len(some | more)
    assert [number for number in range(-1, 42) if number in found] == sorted(some | more)
    assert all(after[0] > before[1] + 1 for before, after in zip(found.intervals, found.intervals[1:], strict=False))
    assert IntervalSet(json.loads(json.dumps(found.intervals))) == found


def test_long_ones_take_no_memory() -> None:
    found = IntervalSet([(0, 10**18)])
    assert len(found) == 10**18 + 1
    assert 10**18 in found
    assert 10**18 + 1 not in found
    assert "0" not in found


@pytest.mark.parametrize("intervals", [[(3, 2)], [(0, 5), (5, 6)], [(4, 6), (0, 2)]])
def test_have_to_rise(intervals: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="not in ascending order"):
        IntervalSet(intervals)
