"""Sequences and pairs on rules, on each engine, against their plain-Python definitions."""

from __future__ import annotations

import subprocess
import sys
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.engine import cpu
from polars_tadoc.engine.choose import choose
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.kernels.keys.key_numbers_cpu import dense_ids
from polars_tadoc.kernels.keys.key_order_cpu import Counted, in_result_order, sum_in_result_order
from polars_tadoc.kernels.sequences import bodies_cpu as bodies
from polars_tadoc.kernels.sequences import expanded_documents_cpu as expanded_documents
from polars_tadoc.kernels.sequences import owned_windows_cpu as owned_windows
from polars_tadoc.kernels.sequences import word_pairs_cpu as word_pairs
from polars_tadoc.kernels.traverse import analytics_reference as reference
from polars_tadoc.kernels.traverse.rules import Rules
from tests import handmade
from tests.handmade import cut

STRATEGIES = ("top_down", "bottom_up")
Made = tuple[int, list[list[int]], list[int], list[list[int]]]


@st.composite
def made_rules(draw: st.DrawFn) -> Made:
    """Terminals, bodies in level order (some empty, some of one symbol), level offsets, documents."""
    terminals = draw(st.integers(1, 5))
    bodies: list[list[int]] = []
    level_offsets = [0]
    for width in draw(st.lists(st.integers(1, 3), max_size=6)):
        symbols = st.integers(0, terminals + len(bodies) - 1)
        bodies += draw(st.lists(st.lists(symbols, max_size=5), min_size=width, max_size=width))
        level_offsets.append(len(bodies))
    symbols = st.integers(0, terminals + len(bodies) - 1)
    rows = draw(st.lists(st.lists(symbols, max_size=6), max_size=5))
    return terminals, bodies, level_offsets, rows


limits = {
    "min_count": st.one_of(st.just(1), st.integers(-1, 9)),
    "top": st.one_of(st.none(), st.integers(0, 9)),
}


class Case:
    """Rules and documents, for kernels and for their definitions."""

    def __init__(self, made: Made, rank: list[int] | None = None) -> None:
        self.terminals, bodies, levels, rows = made
        self.rank = rank
        self.rule_offsets = np.cumsum([0, *map(len, bodies)])
        self.symbols = np.array([s for body in bodies for s in body], np.uint32)
        self.root_offsets = np.cumsum([0, *map(len, rows)])
        self.roots = np.array([s for row in rows for s in row], np.uint32)
        lengths: list[int] = []
        for body in bodies:
            lengths.append(sum(1 if s < self.terminals else lengths[s - self.terminals] for s in body))
        self.lengths = np.array(lengths, np.uint64)
        self.level_offsets = np.array(levels, np.int64)

    @property
    def rows(self) -> list[list[int]]:
        """The documents' words; deep rules would be too much for recursion."""
        bodies = cut(self.symbols, self.rule_offsets)
        rows = []
        for row in cut(self.roots, self.root_offsets):
            words, waiting = [], row[::-1]
            while waiting:
                symbol = waiting.pop()
                if symbol < self.terminals:
                    words.append(symbol)
                else:
                    waiting += reversed(bodies[symbol - self.terminals])
            rows.append(words)
        return rows

    def loaded(self, engine: str) -> Rules:
        load = choose(engine, 0).kernels.load_array
        return Rules(
            self.terminals, load(self.rule_offsets), load(self.symbols), self.level_offsets, load(self.lengths)
        )

    def expand(self, engine: str) -> list[Any]:
        """Where each document's words start, and the words, in host memory."""
        kernels = choose(engine, 0).kernels
        documents = kernels.load_array(self.root_offsets), kernels.load_array(self.roots)
        return [kernels.to_host(array) for array in kernels.expand_words(self.loaded(engine), *documents)]

    def run(self, engine: str, name: str, *arguments: Any, **options: Any) -> list[Any]:
        """Results of a kernel of an engine, in host memory."""
        kernels = choose(engine, 0).kernels
        load, rules = kernels.load_array, self.loaded(engine)
        rank = None if self.rank is None else load(np.array(self.rank, np.uint32))
        size, strategy = arguments
        got = getattr(kernels, name)(rules, load(self.root_offsets), load(self.roots), size, rank, strategy, **options)
        return [tuple(map(kernels.to_host, one)) if isinstance(one, tuple) else kernels.to_host(one) for one in got]

    def counted(self, engine: str, name: str, size: int, strategy: str, **options: Any) -> list[Any]:
        words, counts = self.run(engine, name, size, strategy, **options)
        assert (words.dtype, counts.dtype) == (np.uint32, np.uint64)
        assert words.shape == (len(counts), 2 if name == "pair_counts" else size)
        return list(zip(map(tuple, words.tolist()), counts.tolist(), strict=True))

    def counted_each(self, engine: str, lengths: list[int], strategy: str, **options: Any) -> list[Any]:
        parts = self.run(engine, "sequence_counts_of_lengths", lengths, strategy, **options)
        assert [(words.dtype, words.shape) for words, _ in parts] == [
            (np.uint32, (len(counts), n)) for n, (_, counts) in zip(lengths, parts, strict=True)
        ]
        return [list(zip(map(tuple, words.tolist()), counts.tolist(), strict=True)) for words, counts in parts]

    def postings(self, engine: str, n: int, strategy: str, **options: Any) -> list[Any]:
        words, offsets, documents, counts = self.run(engine, "sequence_postings", n, strategy, **options)
        assert [array.dtype for array in (words, offsets, documents, counts)] == [
            np.uint32,
            np.int64,
            np.uint32,
            np.uint64,
        ]
        assert words.shape == (len(offsets) - 1, n)
        lists = [
            list(zip(documents[a:b].tolist(), counts[a:b].tolist(), strict=True)) for a, b in pairwise(offsets.tolist())
        ]
        return list(zip(map(tuple, words.tolist()), lists, strict=True))


@st.composite
def plain_rows(draw: st.DrawFn) -> Made:
    """Documents of words alone, some empty or shorter than a window."""
    terminals = draw(st.integers(1, 40))
    rows = draw(st.lists(st.lists(st.integers(0, terminals - 1), max_size=30), max_size=6))
    return terminals, [], [0], rows


def drawn(made: Made, data: st.DataObject) -> Case:
    return Case(made, data.draw(st.one_of(st.none(), st.permutations(range(made[0])))))


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(made=made_rules(), n=st.integers(1, 9), data=st.data(), **limits)
def test_sequence_counts(engine: str, strategy: str, made: Made, n: int, data: Any, **options: Any) -> None:
    case = drawn(made, data)
    expected = reference.sequence_counts(case.rows, n, case.rank, **options)
    assert case.counted(engine, "sequence_counts", n, strategy, **options) == expected


lengths_of_sequences = st.lists(st.integers(1, 9), min_size=1, max_size=4, unique=True)


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(made=made_rules() | plain_rows(), lengths=lengths_of_sequences, data=st.data(), **limits)
def test_sequence_counts_of_lengths(
    engine: str, strategy: str, made: Made, lengths: list[int], data: Any, **options: Any
) -> None:
    case = drawn(made, data)
    expected = [reference.sequence_counts(case.rows, n, case.rank, **options) for n in lengths]
    with patch.object(bodies, "MOST_ENDS", data.draw(st.sampled_from([0, 8, 1 << 20]))):
        assert case.counted_each(engine, lengths, strategy, **options) == expected


@given(made=plain_rows(), size=st.integers(1, 20), data=st.data(), **limits)
def test_documents_without_rules(engine: str, made: Made, size: int, data: Any, **options: Any) -> None:
    case = drawn(made, data)
    given_ = (case.rows, size, case.rank)
    expected = reference.sequence_counts(*given_, **options)
    assert case.counted(engine, "sequence_counts", size, "top_down", **options) == expected
    expected_postings = reference.sequence_postings(*given_, **options)
    assert case.postings(engine, size, "top_down", **options) == expected_postings
    assert case.counted(engine, "pair_counts", size, "top_down", **options) == reference.pair_counts(*given_, **options)


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(made=made_rules(), n=st.integers(1, 9), data=st.data(), **limits)
def test_sequence_postings(engine: str, strategy: str, made: Made, n: int, data: Any, **options: Any) -> None:
    case = drawn(made, data)
    expected = reference.sequence_postings(case.rows, n, case.rank, **options)
    assert case.postings(engine, n, strategy, **options) == expected


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(
    made=made_rules(),
    window=st.one_of(st.integers(1, 9), st.sampled_from([64, 1000, 1 << 40])),
    data=st.data(),
    **limits,
)
def test_pair_counts(engine: str, strategy: str, made: Made, window: int, data: Any, **options: Any) -> None:
    case = drawn(made, data)
    expected = reference.pair_counts(case.rows, window, case.rank, **options)
    assert case.counted(engine, "pair_counts", window, strategy, **options) == expected


def test_nothing_to_count(engine: str) -> None:
    for made in (
        (3, [], [0], []),
        (3, [], [0], [[], []]),
        (1, [[]], [0, 1], [[1], []]),
        (2, [[0, 1]], [0, 1], [[], [0]]),
    ):
        case = Case(made)
        for strategy in STRATEGIES:
            for n in (2, 5, 40, 1 << 40):
                assert case.counted(engine, "sequence_counts", n, strategy) == []
                assert case.postings(engine, n, strategy) == []
            assert case.counted(engine, "pair_counts", 5, strategy) == []


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(made=made_rules(), size=st.integers(1, 9), batch=st.integers(1, 9), data=st.data())
def test_some_windows_at_a_time(strategy: str, made: Made, size: int, batch: int, data: st.DataObject) -> None:
    """Bodies cut into pieces and few keys counted at a time make no difference."""
    case = drawn(made, data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owned_windows, "BATCH", batch)
        patch.setattr(owned_windows, "DISTINCT", batch)
        patch.setattr(owned_windows, "SMALLEST", 1)
        assert case.counted("cpu", "pair_counts", size, strategy) == reference.pair_counts(case.rows, size, case.rank)
        expected = reference.sequence_counts(case.rows, size, case.rank)
        assert case.counted("cpu", "sequence_counts", size, strategy) == expected
        expected = reference.sequence_postings(case.rows, size, case.rank)
        assert case.postings("cpu", size, strategy) == expected


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(
    made=made_rules(),
    window=st.integers(1, 9),
    batch=st.sampled_from([1, 3, 1 << 20]),
    hot=st.integers(1, 3),
    data=st.data(),
)
def test_pairs_of_hot_words(strategy: str, made: Made, window: int, batch: int, hot: int, data: st.DataObject) -> None:
    """Some words, or all, are hot; pairs of those are counted aside."""
    case = drawn(made, data)
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in (
            (word_pairs, "MIN_HOT", 0),
            (word_pairs, "HOT", hot),
            (owned_windows, "BATCH", batch),
            (owned_windows, "DISTINCT", batch),
            (owned_windows, "SMALLEST", 1),
        ):
            patch.setattr(module, name, value)
        expected = reference.pair_counts(case.rows, window, case.rank)
        assert case.counted("cpu", "pair_counts", window, strategy) == expected


MANY_PAIRS = """
import resource
import sys

import numpy as np
import polars as pl

import polars_tadoc as tadoc

random = np.random.default_rng(1)
words = [f"w{k}" for k in range(3000)]
rows = [" ".join(words[k] for k in (3000 * random.random(20_000) ** 4).astype(int)) for _ in range(50)]
column = tadoc.compress(pl.Series(rows))
with tadoc.Config(threads=1, engine="cpu"):
    column.head(1).tadoc.cooccurrence(window=2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    got = column.tadoc.cooccurrence(window=64)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert got["count"].sum() == 50 * (64 * 20_000 - 65 * 32)
print((peak - before) * (1 if sys.platform == "darwin" else 1024))
"""


@pytest.mark.slow
def test_memory_of_many_pairs() -> None:
    """64 million pairs, of which few are distinct: less than one number for each of them."""
    pytest.importorskip("resource")
    done = subprocess.run([sys.executable, "-c", MANY_PAIRS], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 8 * 64_000_000


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rules_of_no_document_do_not_widen_windows(strategy: str) -> None:
    """A rule of 2^40 words that no document holds: windows are as long as documents at most."""
    bodies = [[0, 1], *([k + 2, k + 2] for k in range(39))]
    case = Case((2, bodies, list(range(41)), [[2, 0], [1, 2, 2]]))
    for size in (5, 1 << 39):
        assert case.counted("cpu", "pair_counts", size, strategy) == reference.pair_counts(case.rows, 5)
        assert case.counted("cpu", "sequence_counts", size, strategy) == reference.sequence_counts(case.rows, size)


@pytest.mark.parametrize("mostly", [0, expanded_documents.MOSTLY, 2])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_windows_longer_than_two_keys(
    engine: str, strategy: str, mostly: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Terminals of 23 bits: two to a key, six columns at n = 12; documents expanded always, or not, or never."""
    monkeypatch.setattr(expanded_documents, "MOSTLY", mostly)
    terminals = 5_000_000
    random = np.random.default_rng(3)
    few = np.append(random.integers(1 << 22, terminals, 30), [0, terminals - 1]).tolist()
    bodies = [random.choice(few, 7).tolist() for _ in range(6)]
    bodies += [[terminals + i, few[i], terminals + i + 1] for i in range(5)] + [[terminals + 8] * 3]
    rows = [[terminals + i, few[i], terminals + 11] for i in range(6)] + [few, few[:11]]
    case = Case((terminals, bodies, [0, 6, 11, 12], rows))
    plain = case.rows
    for n in (2, 3, 5, 8, 12):
        expected = reference.sequence_counts(plain, n)
        assert case.counted(engine, "sequence_counts", n, strategy) == expected
        assert case.postings(engine, n, strategy) == reference.sequence_postings(plain, n)
    assert case.counted(engine, "pair_counts", 9, strategy) == reference.pair_counts(plain, 9)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_counts_beyond_32_bits(engine: str, strategy: str) -> None:
    """A rule of 3 * 2^40 words: 2^40 times three words."""
    levels = 41
    bodies = [[0, 1, 2], *([3 + k, 3 + k] for k in range(levels - 1))]
    case = Case((3, bodies, list(range(levels + 1)), [[3 + levels - 1], [1, 2], [3 + levels - 2]]))
    times = (1 << 40) + (1 << 39)
    got = case.counted(engine, "sequence_counts", 2, strategy)
    assert got == [((1, 2), times + 1), ((0, 1), times), ((2, 0), times - 2)]
    assert case.counted(engine, "sequence_counts", 4, strategy, top=2) == [
        ((0, 1, 2, 0), times - 2),
        ((1, 2, 0, 1), times - 2),
    ]
    assert case.postings(engine, 2, strategy, min_count=times + 1) == [((1, 2), [(0, 1 << 40), (2, 1 << 39), (1, 1)])]
    assert case.counted(engine, "pair_counts", 2, strategy, top=1) == [((1, 2), 2 * times - 2 + 1)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_deep_and_long_rules(engine: str, strategy: str) -> None:
    depth = 3000
    chain = [[0, 1], *([2 + k, k % 2] for k in range(depth))]
    case = Case((2, chain, list(range(depth + 2)), [[2 + depth, 0], [1]]))
    long = Case((7, [[i * i % 7 for i in range(100_000)], [7, 7]], [0, 1, 2], [[8], [7]]))
    for made in (case, long):
        plain = made.rows
        assert made.counted(engine, "sequence_counts", 3, strategy) == reference.sequence_counts(plain, 3)
        assert made.postings(engine, 3, strategy) == reference.sequence_postings(plain, 3)
        assert made.counted(engine, "pair_counts", 3, strategy) == reference.pair_counts(plain, 3)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_many_documents(engine: str, strategy: str) -> None:
    """Enough for several threads, buckets and ranges; most rules have no weight; words are out of order."""
    random = np.random.default_rng(5)
    terminals, rules = 5000, 2000
    skewed = (terminals * random.random((rules, 4)) ** 4).astype(int).tolist()
    deeper = (terminals + rules * random.random((rules, 3)) ** 2).astype(int).tolist()
    symbols = np.append(np.arange(terminals), np.arange(terminals, terminals + 2 * rules, 3))
    rows = [random.choice(symbols, size).tolist() for size in random.integers(0, 60, 1500)]
    case = Case((terminals, skewed + deeper, [0, rules, 2 * rules], rows), random.permutation(terminals).tolist())
    plain = case.rows
    for n, options in ((1, {}), (2, {"top": 70_000}), (3, {}), (5, {"min_count": 2}), (6, {"top": 1000})):
        expected = reference.sequence_counts(plain, n, case.rank, **options)
        assert case.counted(engine, "sequence_counts", n, strategy, **options) == expected
    expected = reference.sequence_postings(plain, 2, case.rank, top=3)
    assert case.postings(engine, 2, strategy, top=3) == expected
    expected = reference.pair_counts(plain, 3, case.rank)
    assert case.counted(engine, "pair_counts", 3, strategy) == expected


@pytest.mark.parametrize("size", [0, 1, 1000, 300_000])
@pytest.mark.parametrize("distinct", [1, 7, 5_000, 1 << 62])
def test_keys_are_counted_and_ordered(size: int, distinct: int) -> None:
    random = np.random.default_rng(size)
    plain = (distinct * random.random(size) ** 3).astype(np.uint64)
    heavy = random.integers(0, distinct, size // 3).astype(np.uint64)
    weights = random.choice(np.array([1, 2, 70, 1 << 40], np.uint64), len(heavy))
    keys, inverse = np.unique(np.concatenate([plain, heavy]), return_inverse=True)
    counts = np.zeros(len(keys), np.uint64)
    np.add.at(counts, inverse, np.concatenate([np.ones(size, np.uint64), weights]))
    order = np.lexsort((keys, ~counts))
    parts = [(heavy[own], weights[own], None) for own in np.array_split(np.arange(len(heavy)), 3)]
    parts += [(part, None, None) for part in np.array_split(plain, 4)]
    spaced = np.concatenate([plain, np.full(3, (1 << 64) - 1, np.uint64), plain])
    shares = [(0, len(plain)), (len(plain) + 3, 2 * len(plain) + 3)]
    twice = sum_in_result_order([(spaced, None, shares), (heavy, weights, None), (heavy, weights, None)], bits=63)
    assert np.array_equal(twice[0], keys[order])
    assert np.array_equal(twice[1], 2 * counts[order])
    mixed = random.permutation(len(keys))
    counted = Counted.of(keys[mixed], counts[mixed])
    for min_count, top in ((1, None), (2, None), (65, None), (1, 0), (1, 3), (2, 2000), (1, 40_000), (1, 1 << 40)):
        kept = order[counts[order] >= min_count][:top]
        for got, sums in (in_result_order(counted, min_count, top), sum_in_result_order(parts, min_count, top)):
            assert np.array_equal(got, keys[kept])
            assert np.array_equal(sums, counts[kept])
    ids, found = dense_ids(np.concatenate([plain, heavy]))
    assert np.array_equal(found, keys)
    assert np.array_equal(ids, inverse)


def test_room_is_checked_before_memory_is_taken() -> None:
    """The ends of nested rules for very long runs, and the pairs of a wide window that would all get ids."""
    rules = cpu.load_rules(handmade.grammar(["a", "b"], [[0, 1], *([k + 2, k + 2] for k in range(25))]))
    offsets, roots = np.array([0, 1]), np.array([27], np.uint32)
    with tadoc.Config(expansion_limit=1 << 26):
        with pytest.raises(LimitExceededError, match="the first and last words of rules take"):
            cpu.sequence_counts(rules, offsets, roots, 1 << 24, None, "top_down")
        with pytest.raises(LimitExceededError, match="that span symbols take"):
            cpu.pair_counts(rules, offsets, roots, 4000, None, "bottom_up")
        words, counts = cpu.sequence_counts(rules, offsets, roots, 3, None, "bottom_up")
    assert words.tolist() == [[0, 1, 0], [1, 0, 1]]
    assert counts.tolist() == [(1 << 25) - 1, (1 << 25) - 1]
