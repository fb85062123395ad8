"""Sequences of several corpora joined, against dictionaries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.kernels.host.records.sort_keys import merge_runs
from polars_tadoc.kernels.keys import key_order_cpu
from polars_tadoc.kernels.keys.key_order_cpu import sum_in_result_order
from polars_tadoc.kernels.keys.merge_cpu import join_postings, number_sequences, sum_sequences
from polars_tadoc.kernels.keys.posting_order_cpu import rank_postings
from polars_tadoc.kernels.primitives.lists import gather_lists
from polars_tadoc.runtime.arrow_memory import allocate, buffer_under

Ranks = npt.NDArray[np.uint32]
Made = tuple[list[tuple[list[int], dict[int, int]]], int, Ranks]

WIDE = (np.arange((1 << 21) + 3, dtype=np.uint32) * np.uint32(7)) % np.uint32((1 << 21) + 3)
"""Ranks of so many words that no three fit into 64 bits."""
WIDE_WORDS = [0, 1, 2, (1 << 20) + 1, (1 << 21) + 2]


@st.composite
def counted(draw: st.DrawFn, longest: int = 40) -> Made:
    """Sequences, many of which begin alike or are equal, each with its rows and counts; their length; ranks."""
    n, words = draw(st.integers(1, longest)), draw(st.integers(1, 5))
    wide = draw(st.booleans())
    pool = WIDE_WORDS[:words] if wide else list(range(words))
    word = st.sampled_from(pool)
    # a few words over and over, one place changed
    sequence = st.builds(
        lambda unit, place, other: [other if k == place else unit[k % len(unit)] for k in range(n)],
        st.lists(word, min_size=1, max_size=3),
        st.integers(0, n),
        word,
    )
    rows = st.dictionaries(st.integers(0, 6), st.sampled_from([1, 2, 1 << 40]), min_size=1, max_size=4)
    rank = WIDE if wide else np.array(draw(st.permutations(range(words))), np.uint32)
    return draw(st.lists(st.tuples(sequence, rows), max_size=12)), n, rank


@given(made=counted(), min_count=st.integers(1, 4), top=st.one_of(st.none(), st.integers(0, 5)))
def test_sum_sequences(made: Made, min_count: int, top: int | None) -> None:
    given_, n, rank = made
    totals: dict[tuple[int, ...], int] = defaultdict(int)
    for sequence, rows in given_:
        totals[tuple(sequence)] += sum(rows.values())
    ordered = sorted(totals.items(), key=lambda item: (-item[1], [rank[word] for word in item[0]]))
    expected = [(list(sequence), count) for sequence, count in ordered if count >= min_count][:top]
    ids = np.array([sequence for sequence, _ in given_], np.uint32).reshape(-1, n)
    counts = np.array([sum(rows.values()) for _, rows in given_], np.uint64)
    got = sum_sequences(ids, counts, rank, min_count, top)
    assert list(zip(got[0].tolist(), got[1].tolist(), strict=True)) == expected


@given(made=counted(), min_count=st.integers(1, 4), top=st.one_of(st.none(), st.integers(0, 3)))
def test_join_postings(made: Made, min_count: int, top: int | None) -> None:
    given_, n, rank = made
    postings: dict[tuple[int, ...], dict[int, int]] = defaultdict(dict)
    for part, (sequence, rows) in enumerate(given_):  # corpora have no row in common
        postings[tuple(sequence)].update({10 * part + row: count for row, count in rows.items()})
    expected = [
        (list(sequence), sorted(postings[sequence].items(), key=lambda item: (-item[1], item[0]))[:top])
        for sequence in sorted(postings, key=lambda sequence: [rank[word] for word in sequence])
        if sum(postings[sequence].values()) >= min_count
    ]
    lists = [
        (10 * part + row, count)
        for part, (_, rows) in enumerate(given_)
        for row, count in sorted(rows.items(), key=lambda item: (-item[1], item[0]))
    ]
    got, offsets, rows, counts = join_postings(
        np.array([sequence for sequence, _ in given_], np.uint32).reshape(-1, n),
        np.array([len(rows) for _, rows in given_], np.int64),
        np.array([row for row, _ in lists], np.uint32),
        np.array([count for _, count in lists], np.uint64),
        rank,
        min_count,
        top,
    )
    pairs = list(zip(rows.tolist(), counts.tolist(), strict=True))
    assert [(s, pairs[a:b]) for s, (a, b) in zip(got.tolist(), pairwise(offsets), strict=True)] == expected


@pytest.mark.parametrize("n", [1, 2, 3, 7, 999, 5000])
@pytest.mark.parametrize("words", [2, 1 << 16, 1 << 22])
def test_number_sequences(n: int, words: int) -> None:
    """Long ones that differ in one place, each there twice."""
    generator = np.random.default_rng(n)
    rank = generator.permutation(words).astype(np.uint32)
    sequences = np.tile(generator.integers(0, words, n, np.uint32), (60, 1))
    changed = np.arange(30)
    sequences[changed, generator.integers(0, n, 30)] = generator.integers(0, words, 30)
    sequences[30:] = sequences[generator.permutation(30)]
    ranked = [tuple(sequence) for sequence in rank[sequences].tolist()]
    distinct = sorted(set(ranked))
    places, numbers = number_sequences(sequences, rank)
    assert numbers.dtype == np.uint32
    assert [ranked[place] for place in places] == distinct
    assert [distinct[number] for number in numbers] == ranked


@pytest.mark.parametrize("n", [1, 2, 40, 1000])
def test_no_sequences(n: int) -> None:
    none, counts, rank = np.zeros((0, n), np.uint32), np.zeros(0, np.uint64), np.zeros(0, np.uint32)
    for ranks in (rank, WIDE):
        words, totals = sum_sequences(none, counts, ranks, top=3)
        assert words.shape == (0, n)
        assert totals.shape == (0,)
        words, offsets, rows, totals = join_postings(none, np.zeros(0, np.int64), rank, counts, ranks)
        assert words.shape == (0, n)
        assert offsets.tolist() == [0]
        assert len(rows) == len(totals) == 0


@given(data=st.data(), given_=st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=6))
def test_gather_lists(data: st.DataObject, given_: list[list[int]]) -> None:
    order = data.draw(st.lists(st.integers(0, len(given_) - 1), max_size=8)) if given_ else []
    offsets = np.cumsum([0, *(len(values) for values in given_)])
    values = np.array([value for values in given_ for value in values], np.uint32)
    taken, gathered = gather_lists(offsets, values, np.array(order, np.uint32))
    assert [gathered[a:b].tolist() for a, b in pairwise(taken)] == [given_[k] for k in order]


LARGEST = (1 << 64) - 1


@given(
    st.lists(st.dictionaries(st.integers(0, 9) | st.just(LARGEST), st.integers(1, 5)), min_size=1).filter(any),
    st.integers(0, 7),
)
def test_runs_are_merged_as_dictionaries_are(runs: list[dict[int, int]], least: int) -> None:
    """Any number of runs, empty ones too, and the largest key, which also marks the end of a run."""
    totals: dict[int, int] = defaultdict(int)
    for run in runs:
        for key, count in run.items():
            totals[key] += count
    arrays = [
        (np.array(sorted(run), np.uint64), np.array([run[key] for key in sorted(run)], np.uint64)) for run in runs
    ]
    keys, sums, stretches = merge_runs([(keys, counts) for keys, counts in arrays], least)
    made = [(key, count) for own in stretches for key, count in zip(keys[slice(*own)], sums[slice(*own)], strict=True)]
    assert made == sorted((key, count) for key, count in totals.items() if count >= least)


@pytest.mark.parametrize("top", [None, 0, 1, 20, 1 << 70])
@pytest.mark.parametrize("min_count", [0, 2, 400, 1 << 50])
def test_postings_are_sorted_and_cut(top: int | None, min_count: int) -> None:
    """Lists of all sizes, by several threads; most, few or no documents are kept, in Arrow's memory."""
    random = np.random.default_rng(3)
    sizes = random.integers(0, 40, 9_000)
    offsets = np.cumsum([0, *sizes])
    documents, counts = (allocate(offsets[-1], kind)[1] for kind in (np.uint32, np.uint64))
    documents[:], counts[:] = np.arange(len(documents)), random.integers(1, 500, len(counts)) ** 3
    lists = [list(zip(counts[a:b].tolist(), documents[a:b].tolist(), strict=True)) for a, b in pairwise(offsets)]
    expected = {k: own for k, own in enumerate(lists) if sum(count for count, _ in own) >= max(min_count, 1)}
    with tadoc.Config(threads=4):
        kept, made, rows, sums = rank_postings(offsets, documents, counts, min_count, top)
    assert (list(range(len(lists))) if kept is None else kept.tolist()) == list(expected)
    got = list(zip(sums.tolist(), rows.tolist(), strict=True))
    cut = [sorted(own, key=lambda one: -one[0])[:top] for own in expected.values()]
    assert [got[a:b] for a, b in pairwise(made.tolist())] == cut
    assert (made[-1], buffer_under(rows) is None) == (len(rows), len(rows) == 0)


def test_runs_of_one_range_each_are_merged_by_all_threads() -> None:
    """The runs of a batch follow each other: no single one shows how the keys lie."""
    keys = np.arange(400_000, dtype=np.uint64)
    counts = np.ones(100_000, np.uint64)
    runs = [
        (own[first : first + 100_000], counts)
        for own in (3 * keys, 3 * keys + np.uint64(1))
        for first in range(0, 400_000, 100_000)
    ]
    with tadoc.Config(threads=4):
        _, _, stretches = merge_runs(runs)
    sizes = [stop - first for first, stop in stretches]
    assert sum(sizes) == 800_000
    assert max(sizes) < 1.2 * 200_000


@pytest.mark.parametrize("top", [None, 0, 1, 1000, 1 << 40])
def test_many_batches_are_summed_in_one_room(top: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """More batches than are merged together; each is written where the one before was."""
    monkeypatch.setattr(key_order_cpu, "RUNS", 2)
    random = np.random.default_rng(1)
    drawn = [(40_000 * random.random(100_000) ** 3).astype(np.uint64) for _ in range(9)]
    written = np.empty(100_000, np.uint64)

    def batches() -> Iterator[key_order_cpu.Batch]:
        for own in drawn:
            written[:] = own
            yield written, None, None

    keys, counts = np.unique(np.concatenate(drawn), return_counts=True)
    order = np.lexsort((keys, -counts))[:top]
    with tadoc.Config(threads=3):
        got, sums = sum_in_result_order(batches(), 1, top)
    assert np.array_equal(got, keys[order])
    assert np.array_equal(sums, counts[order])
