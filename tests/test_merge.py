"""Sequences of several corpora joined, against dictionaries."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from polars_tadoc.kernels.cpu.lists import gather_lists
from polars_tadoc.kernels.cpu.merge import join_postings, sum_sequences


@st.composite
def counted(draw: st.DrawFn) -> tuple[list[tuple[list[int], dict[int, int]]], int, list[int]]:
    """Sequences, each with its rows and counts; their length; ranks."""
    words, n = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    sequence = st.lists(st.integers(0, words - 1), min_size=n, max_size=n)
    rows = st.dictionaries(st.integers(0, 6), st.sampled_from([1, 2, 1 << 40]), min_size=1, max_size=4)
    return draw(st.lists(st.tuples(sequence, rows), max_size=12)), n, draw(st.permutations(range(words)))


@given(made=counted(), min_count=st.integers(1, 4), top=st.one_of(st.none(), st.integers(0, 5)))
def test_sum_sequences(
    made: tuple[list[tuple[list[int], dict[int, int]]], int, list[int]], min_count: int, top: int | None
) -> None:
    given_, n, rank = made
    totals: dict[tuple[int, ...], int] = defaultdict(int)
    for sequence, rows in given_:
        totals[tuple(sequence)] += sum(rows.values())
    ordered = sorted(totals.items(), key=lambda item: (-item[1], [rank[word] for word in item[0]]))
    expected = [(list(sequence), count) for sequence, count in ordered if count >= min_count][:top]
    ids = np.array([sequence for sequence, _ in given_], np.uint32).reshape(-1, n)
    counts = np.array([sum(rows.values()) for _, rows in given_], np.uint64)
    got = sum_sequences(ids, counts, np.array(rank, np.uint32), min_count, top)
    assert list(zip(got[0].tolist(), got[1].tolist(), strict=True)) == expected


@given(made=counted(), min_count=st.integers(1, 4), top=st.one_of(st.none(), st.integers(0, 3)))
def test_join_postings(
    made: tuple[list[tuple[list[int], dict[int, int]]], int, list[int]], min_count: int, top: int | None
) -> None:
    given_, n, rank = made
    postings: dict[tuple[int, ...], dict[int, int]] = defaultdict(dict)
    for part, (sequence, rows) in enumerate(given_):  # corpora have no row in common
        postings[tuple(sequence)].update({10 * part + row: count for row, count in rows.items()})
    expected = [
        (list(sequence), sorted(postings[sequence].items(), key=lambda item: (-item[1], item[0]))[:top])
        for sequence in sorted(postings, key=lambda sequence: [rank[word] for word in sequence])
        if sum(postings[sequence].values()) >= min_count
    ]
    got, offsets, rows, counts = join_postings(
        np.array([sequence for sequence, _ in given_], np.uint32).reshape(-1, n),
        np.array([len(rows) for _, rows in given_], np.int64),
        np.array([10 * part + row for part, (_, rows) in enumerate(given_) for row in rows], np.uint32),
        np.array([count for _, rows in given_ for count in rows.values()], np.uint64),
        np.array(rank, np.uint32),
        min_count,
        top,
    )
    pairs = list(zip(rows.tolist(), counts.tolist(), strict=True))
    assert [(s, pairs[a:b]) for s, (a, b) in zip(got.tolist(), pairwise(offsets), strict=True)] == expected


@given(data=st.data(), given_=st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=6))
def test_gather_lists(data: st.DataObject, given_: list[list[int]]) -> None:
    order = data.draw(st.lists(st.integers(0, len(given_) - 1), max_size=8)) if given_ else []
    offsets = np.cumsum([0, *(len(values) for values in given_)])
    values = np.array([value for values in given_ for value in values], np.uint32)
    taken, gathered = gather_lists(offsets, values, np.array(order, np.uint32))
    assert [gathered[a:b].tolist() for a, b in pairwise(taken)] == [given_[k] for k in order]
