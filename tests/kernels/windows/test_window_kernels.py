"""Windows and passages on each engine, against plain Python."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_tadoc.engine.choose import choose
from polars_tadoc.errors import EngineUnavailableError
from polars_tadoc.kernels.host.passages import matches, runs
from polars_tadoc.kernels.host.passages.windows import fingerprints_of
from polars_tadoc.kernels.windows import passages_cpu, reference
from polars_tadoc.kernels.windows.reference import NONE
from polars_tadoc.kernels.windows.windows_cpu import ALL_BITS

Documents = list[list[int]]
MASKS = [ALL_BITS, 0b1111, 0]
"""Bits of fingerprints: with few of them, different windows have equal ones."""


@st.composite
def documents(draw: st.DrawFn) -> Documents:
    """Documents that repeat themselves and one another, some of them periodic."""
    some = st.lists(st.integers(0, 3), max_size=40)
    unit = st.lists(st.integers(0, 2), max_size=4)
    periodic = st.builds(lambda words, times: words * times, unit, st.integers(1, 20))
    pool = draw(st.lists(some | periodic, min_size=1, max_size=4))
    made = draw(st.lists(st.sampled_from(pool), max_size=8))
    return [words[draw(st.integers(0, 3)) :] for words in made]


class Case:
    """Documents laid out in the memory of an engine."""

    def __init__(self, engine: str, rows: Documents, length: int, mask: int = ALL_BITS) -> None:
        self.kernels = choose(engine, 0).kernels
        self.rows, self.length, self.mask = rows, length, mask
        self.starts = starts_of(rows, 1)
        self.words = self.lay(np.arange(4, dtype=np.uint32))

    def lay(self, image: Any) -> Any:
        """Lay out even and odd documents as two parts, and leave empty ones out."""
        load, parts = self.kernels.load_array, []
        for parity in (0, 1):
            own = [number for number, row in enumerate(self.rows) if row and number % 2 == parity]
            some = [self.rows[number] for number in own]
            ids = np.array([word for row in some for word in row], np.uint32)
            parts.append((load(starts_of(some, 0)), load(ids), image, np.array(own, np.int64)))
        return self.kernels.lay_words(self.starts, parts)

    def host(self, array: Any) -> list[int]:
        return self.kernels.to_host(array).tolist()  # type: ignore[no-any-return]

    @property
    def windows(self) -> tuple[Any, Any]:
        return self.kernels.find_windows(self.words, self.starts, self.length, self.mask)

    @property
    def expected(self) -> tuple[list[int], dict[int, int]]:
        """First place by place, and the count of each."""
        firsts, counts = reference.windows(self.rows, self.length)
        amounts = {first: count for own in zip(firsts, counts, strict=True) for first, count in zip(*own, strict=True)}
        return reference.first_places(self.rows, self.length), amounts


def starts_of(rows: Documents, spare: int) -> Any:
    return np.array(list(accumulate((len(row) + spare for row in rows), initial=0)), np.int64)


@given(rows=documents(), image=st.permutations(range(4)))
def test_lay_words(engine: str, rows: Documents, image: list[int]) -> None:
    case = Case(engine, rows, 1)
    assert case.host(case.lay(np.array(image, np.uint32))) == reference.lay_words(rows, image)


@given(rows=documents(), image=st.permutations(range(4)))
def test_map_words(engine: str, rows: Documents, image: list[int]) -> None:
    case = Case(engine, rows, 1)
    mapped = case.kernels.map_words(case.words, np.array(image, np.uint32))
    assert case.host(mapped) == reference.lay_words(rows, image)


@given(rows=documents(), length=st.integers(1, 7), mask=st.sampled_from(MASKS))
def test_find_windows(engine: str, rows: Documents, length: int, mask: int) -> None:
    case = Case(engine, rows, length, mask)
    first, counts = case.windows
    places, amounts = case.expected
    assert case.host(first) == places
    found = case.host(counts)
    assert {place: found[place] for place in amounts} == amounts


@given(
    rows=documents(),
    others=documents(),
    length=st.integers(1, 7),
    seed=st.integers(0, (1 << 128) - 1),
    least=st.sampled_from([1, 8]),
)
def test_find_known(engine: str, rows: Documents, others: Documents, length: int, seed: int, least: int) -> None:
    """Also words that the reference lacks; on the CPU with and without a look at grams first."""
    known, case, drawn = Case("cpu", others, length), Case(engine, rows, length), fingerprints_of(seed, length)
    first, _ = known.windows
    slots, bits = np.zeros(1 << (2 * len(first)).bit_length(), np.uint64), np.zeros(64, np.uint64)
    matches.fill_table(known.words, known.starts, length, *drawn, first, slots, bits)
    table: Any = tuple(map(case.kernels.load_array, (slots, bits, known.words, first)))
    words = case.lay(np.array([0, 1, 2, matches.UNKNOWN], np.uint32))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passages_cpu, "LEAST_FILTERED", least)
        patch.setattr(passages_cpu, "MORE_WORDS", 0)
        found = case.kernels.find_known(words, case.starts, drawn, length, table)
    foreign = [[-1 if word == 3 else word for word in row] for row in rows]
    assert case.host(found) == reference.known(foreign, others, length)


def hits(case: Case, kind: int, min_count: int) -> list[bool]:
    """Whether the window at each place is one of a kind."""
    (places, amounts), found = case.expected, list[bool]()
    for start, row in zip(case.starts.tolist(), case.rows, strict=False):
        for at in range(start, start + len(row) + 1):
            place = places[at]
            if kind == runs.EARLIER_ROW:
                found.append(place < start)
            elif kind == runs.KNOWN:
                found.append(place != NONE)
            else:
                found.append(place != NONE and amounts[place] >= min_count and (kind, place) != (runs.LATER, at))
    return found


KINDS = st.sampled_from([runs.REPEATED, runs.LATER, runs.EARLIER_ROW, runs.KNOWN])


@given(rows=documents(), length=st.integers(1, 7), kind=KINDS, min_count=st.integers(1, 4))
def test_find_runs(engine: str, rows: Documents, length: int, kind: int, min_count: int) -> None:
    case = Case(engine, rows, length)
    found = case.kernels.find_runs(case.starts, length, kind, min_count, *case.windows)
    assert [one.dtype for one in found] == [np.int64] * 3
    assert list(zip(*found, strict=True)) == reference.passages(rows, length, hits(case, kind, min_count))


@given(rows=documents(), length=st.integers(1, 7), min_count=st.integers(1, 4))
def test_describe_runs(engine: str, rows: Documents, length: int, min_count: int) -> None:
    case = Case(engine, rows, length)
    passages = reference.passages(rows, length, hits(case, runs.REPEATED, min_count))
    begins, ends = (np.array([one[place] for one in passages], np.int64) for place in (1, 2))
    copies, are_first = case.kernels.describe_runs(begins, ends, length, *case.windows)
    assert (copies.dtype, are_first.dtype) == (np.uint32, np.bool_)
    places, amounts = case.expected
    inside = [range(a, b - length + 1) for _, a, b in passages]
    assert copies.tolist() == [max(amounts[places[at]] for at in own) for own in inside]
    assert are_first.tolist() == [all(places[at] == at for at in own) for own in inside]


@given(rows=documents(), length=st.integers(1, 7), kind=KINDS)
def test_count_covered(engine: str, rows: Documents, length: int, kind: int) -> None:
    case = Case(engine, rows, length)
    covered = [0] * len(rows)
    for row, begin, end in reference.passages(rows, length, hits(case, kind, 2)):
        covered[row] += end - begin
    found = case.kernels.count_covered(case.starts, length, kind, *case.windows)
    assert (found.dtype, found.tolist()) == (np.int64, covered)


@pytest.mark.parametrize("length", [1, 50, 300])
def test_many_windows(engine: str, length: int) -> None:
    """Enough words for many blocks of threads, of texts that are copies, periodic or new."""
    pick = np.random.default_rng(length)
    page = pick.integers(0, 4, 6000).tolist()
    rows: Documents = [page[a:b] for a, b in (sorted(pick.integers(0, 6000, 2).tolist()) for _ in range(9))]
    rows += [[], [0] * 3000, [0, 1, 2] * 1500, pick.integers(0, 4, 3000).tolist(), [], page]
    case = Case(engine, rows, length)
    first, counts = case.windows
    expected, amounts = case.expected
    assert case.host(first) == expected
    found = case.host(counts)
    assert {place: found[place] for place in amounts} == amounts
    passages = list(zip(*case.kernels.find_runs(case.starts, length, 0, 2, first, counts), strict=True))
    marks = np.array(hits(case, runs.REPEATED, 2))
    assert sum(end - begin for _, begin, end in passages) == np.count_nonzero(
        np.convolve(marks, np.ones(length, np.int64))[: len(marks)]
    )


def test_a_device_that_computes_wrongly_is_said(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fingerprints that are equal again and again are no accident."""
    if engine == "cpu":  # which groups such windows by their words
        case = Case(engine, [[0, 1, 2, 3]], 2, mask=0)
        assert case.host(case.windows[0]) == [0, 1, 2, NONE, NONE]
        return
    monkeypatch.setattr("polars_tadoc.kernels.windows.windows_cuda.ALL_BITS", 0)
    with pytest.raises(EngineUnavailableError, match="the device computes wrongly"):
        Case(engine, [[0, 1, 2, 3]], 2, mask=0).windows  # noqa: B018
