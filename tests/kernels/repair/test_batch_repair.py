from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.kernels.repair import batch_repair, equal_rows_cpu, pairs_cpu, reference
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, tokenize
from polars_tadoc.runtime.parallel import even_chunks, weighted_chunks
from tests.handmade import flatten, unflatten
from tests.strategies import sequences


@pytest.fixture
def tiny_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut everywhere, so that pairs lie on seams between threads, and into as many buckets as there can be."""
    monkeypatch.setattr(batch_repair, "POSITIONS_PER_TASK", 1)
    monkeypatch.setattr(batch_repair, "POSITIONS_PER_BUCKET", 1)
    monkeypatch.setattr(batch_repair, "POSITIONS_PER_THREAD", 1)
    monkeypatch.setattr(batch_repair, "FEWEST_TO_SPREAD", 1)
    monkeypatch.setattr(batch_repair, "weighted_chunks", lambda weights: weighted_chunks(weights, 1))
    monkeypatch.setattr(batch_repair, "even_chunks", lambda size: even_chunks(size, 1))


def build(
    rows: list[list[int]], vocabulary_size: int, threads: int, share: tuple[int, int] = (1, 2)
) -> tuple[list[tuple[int, int]], list[list[int]]]:
    with tadoc.Config(threads=threads):
        rules = batch_repair.build(flatten(rows), vocabulary_size, lambda number, alive: None, *share)
    return list(zip(rules.left.tolist(), rules.right.tolist(), strict=True)), unflatten(rules.sequence)


def expanded(rules: list[tuple[int, int]], rows: list[list[int]], vocabulary_size: int) -> list[list[int]]:
    expansions: list[list[int]] = [[word] for word in range(vocabulary_size)]
    for left, right in rules:
        expansions.append(expansions[left] + expansions[right])
    return [[word for symbol in row for word in expansions[symbol]] for row in rows]


@pytest.mark.usefixtures("tiny_chunks")
@pytest.mark.parametrize("threads", [1, 2, 5])
@given(given_rows=sequences())
def test_matches_reference(threads: int, given_rows: tuple[list[list[int]], int]) -> None:
    rows, vocabulary_size = given_rows
    got = build(rows, vocabulary_size, threads)
    assert got == reference.batch_repair(rows, vocabulary_size)
    assert expanded(*got, vocabulary_size) == rows


@pytest.mark.usefixtures("tiny_chunks")
@given(given_rows=sequences(), share=st.sampled_from([(7, 8), (1, 1), (1, 3)]))
def test_matches_reference_with_other_shares(given_rows: tuple[list[list[int]], int], share: tuple[int, int]) -> None:
    rows, vocabulary_size = given_rows
    assert build(rows, vocabulary_size, 2, share) == reference.batch_repair(rows, vocabulary_size, *share)


@pytest.mark.usefixtures("tiny_chunks")
@given(given_rows=sequences(), copies=st.lists(st.integers(0, 3), max_size=40))
def test_matches_reference_where_rows_repeat(given_rows: tuple[list[list[int]], int], copies: list[int]) -> None:
    rows, vocabulary_size = given_rows
    rows = rows + [rows[k % len(rows)] for k in copies if rows]
    for least in (-1.0, batch_repair.MIN_SAVED):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(batch_repair, "MIN_SAVED", least)
            for threads in (2, batch_repair.FEWEST_TO_COPY):
                assert build(rows, vocabulary_size, threads) == reference.batch_repair(rows, vocabulary_size)


@pytest.mark.usefixtures("tiny_chunks")
@pytest.mark.parametrize("margin", [1, 2, 5])
@given(given_rows=sequences(), copies=st.lists(st.integers(0, 3), max_size=40), run=st.integers(0, 12))
def test_matches_reference_in_regions(
    margin: int, given_rows: tuple[list[list[int]], int], copies: list[int], run: int
) -> None:
    """Rounds over regions only, from the first on, with and without weights; runs may be longer than a margin."""
    rows, vocabulary_size = given_rows
    rows = [*rows, [0] * run, [0] * run + [1 % vocabulary_size] + [0] * (run // 2)] if vocabulary_size else rows
    rows = rows + [rows[k % len(rows)] for k in copies if rows]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"FEWEST_SPARSE": 0, "SPARSE": 1, "MARGIN": margin}.items():
            patch.setattr(batch_repair, name, value)
        for least in (-1.0, batch_repair.MIN_SAVED):
            patch.setattr(batch_repair, "MIN_SAVED", least)
            for threads in (1, batch_repair.FEWEST_TO_COPY):
                assert build(rows, vocabulary_size, threads) == reference.batch_repair(rows, vocabulary_size)


def test_regions_in_few_alive_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(11)
    rows = [random.integers(0, 40, 50).tolist() for _ in range(300)]
    for sparse, margin in ((2, 3), (4, 1), (8, 4), (16, 32)):
        for name, value in {"FEWEST_SPARSE": 0, "SPARSE": sparse, "MARGIN": margin}.items():
            monkeypatch.setattr(batch_repair, name, value)
        assert build(rows, 40, 2) == reference.batch_repair(rows, 40)


@pytest.mark.parametrize("times", [1, 2, 127, 128, 129, 255, 256, 257, 511, 512, 1100])
def test_many_equal_rows(times: int) -> None:
    """Weights with one class, of several, and of powers of two."""
    rows = [[0, 1, 2, 0, 1], *[[0, 1, 0, 1, 3, 1, 2]] * times, [], [1, 2], *[[1, 3]] * (times // 2), []]
    assert build(rows, 4, 2) == reference.batch_repair(rows, 4)


@given(st.lists(st.integers(0, 5), max_size=3000))
def test_weights_of_equal_rows_sum_to_their_number(numbers: list[int]) -> None:
    first = np.array([numbers.index(number) for number in numbers], np.int64)
    classes = np.empty(len(first), np.uint8)
    equal_rows_cpu.classify(first, classes)
    for number in set(numbers):
        own = classes[np.array(numbers) == number]
        assert own[0] != equal_rows_cpu.DROPPED
        kept = own[own != equal_rows_cpu.DROPPED]
        assert sum(int(equal_rows_cpu.weight_of(int(c))) for c in kept) == numbers.count(number)


def test_rows_with_equal_hashes_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equal_rows_cpu, "hash_rows", lambda sequence, starts, hashes: hashes.fill(7))
    rows = [[0, 1], [0, 2], [0, 1], [0, 2], [0, 1, 2], [0, 1], []]
    assert build(rows, 3, 2) == reference.batch_repair(rows, 3)


@pytest.mark.usefixtures("tiny_chunks")
@pytest.mark.parametrize("more", [0, 1 << 15, 1 << 17, 1 << 25])
@given(given_rows=sequences())
def test_keys_of_32_and_64_bits_and_full_counts(more: int, given_rows: tuple[list[list[int]], int]) -> None:
    """Words with large ids need keys of more bits; counts that do not fit are read from the table."""
    rows = [[word + more for word in row] for row in given_rows[0]]
    size = given_rows[1] + more
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_repair, "FEWEST_ENTRY_BITS", 29)
        patch.setattr(batch_repair, "MOST_ENTRY_BITS", 29)  # counts from 3 on
        for threads in (2, batch_repair.FEWEST_TO_COPY):
            assert build(rows, size, threads) == reference.batch_repair(rows, size)


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("buckets", [1, 1 << 10])
@pytest.mark.usefixtures("tiny_chunks")
def test_matches_reference_in_few_or_many_buckets(threads: int, buckets: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Buckets' tables grow, threads meet often."""
    monkeypatch.setattr(pairs_cpu, "BUCKETS", buckets)
    random = np.random.default_rng(7)
    rows = [random.zipf(1.4, 60).clip(max=300).tolist() for _ in range(500)]
    rows = [[word - 1 for word in row] for row in rows] + rows[:30] + rows[:30]
    assert sum(map(len, rows)) > 1 << 14
    got = build([[w % 300 for w in row] for row in rows], 300, threads)
    assert got == reference.batch_repair([[w % 300 for w in row] for row in rows], 300)


@pytest.mark.parametrize("length", range(20))
def test_runs_of_one_word(length: int) -> None:
    for rows in ([[0] * length], [[0] * length] * 2, [[1], [0] * length, [1]]):
        got = build(rows, 2, 1)
        assert got == reference.batch_repair(rows, 2)
        assert expanded(*got, 2) == rows


@pytest.mark.parametrize("size", [*range(1, 20), 63, 64, 65, 127, 128, 129])
@pytest.mark.usefixtures("tiny_chunks")
def test_sizes_around_a_block(size: int) -> None:
    row = [(i * i // 3) % 3 for i in range(size)]
    for rows in ([row], [row, row], [row[: size // 2], row[size // 2 :]]):
        for threads in (1, 2, 3):
            assert build(rows, 3, threads) == reference.batch_repair(rows, 3)


@given(given_rows=sequences())
def test_pairs_do_not_cross_rows(given_rows: tuple[list[list[int]], int]) -> None:
    rows, vocabulary_size = given_rows
    # every row ends in a word of its own: pairs that crossed would repeat with it
    ends = [[*row, vocabulary_size + i] for i, row in enumerate(rows)] * 2
    size = vocabulary_size + len(rows)
    rules, left = build([row for pair in zip(ends, [[0]] * len(ends), strict=True) for row in pair], size, 1)
    assert left[1::2] == [[0]] * len(ends)
    for rule in expanded(rules, [[size + k] for k in range(len(rules))], size):
        assert not any(word >= vocabulary_size for word in rule[:-1])


@given(given_rows=sequences())
def test_rules_name_older_symbols_and_are_all_used(given_rows: tuple[list[list[int]], int]) -> None:
    rows, vocabulary_size = given_rows
    rules, left = build(rows, vocabulary_size, 1)
    named = [s for symbols in (*rules, *left) for s in symbols]
    assert all(left_ < vocabulary_size + k > right for k, (left_, right) in enumerate(rules))
    # a rule may lose a use to a rule that covers it, never all of them
    assert {vocabulary_size + k for k in range(len(rules))} <= set(named)


def test_duplicated_rows_take_few_rounds() -> None:
    random = np.random.default_rng(3)
    row = random.integers(0, 5000, 2000).tolist()
    rounds: list[int] = []
    batch_repair.build(flatten([row] * 8), 5000, lambda number, alive: rounds.append(alive))
    assert len(rounds) < 40
    assert rounds == sorted(rounds, reverse=True)


def test_real_corpus_is_lossless_and_deterministic(corpus: Callable[[str], pl.DataFrame]) -> None:
    text = corpus("multi_react")["text"].rechunk()
    tokens = tokenize(text, Tokenizer("words"))
    size = len(tokens.vocabulary)
    results = []
    for threads in (1, 2, 3):
        with tadoc.Config(threads=threads):
            results.append(batch_repair.build(tokens.sequence.copy(), size))
    first = results[0]
    for other in results[1:]:
        assert np.array_equal(other.left, first.left)
        assert np.array_equal(other.right, first.right)
        assert np.array_equal(other.sequence, first.sequence)
    rules = list(zip(first.left.tolist(), first.right.tolist(), strict=True))
    rows = expanded(rules, unflatten(first.sequence), size)
    assert np.array_equal(flatten(rows), tokens.sequence)


@given(given_rows=sequences())
def test_equal_rows_get_equal_symbols(given_rows: tuple[list[list[int]], int]) -> None:
    rows, vocabulary_size = given_rows
    rules, compressed = build([*rows, *rows[::-1]], vocabulary_size, 1)
    assert compressed[: len(rows)] == compressed[len(rows) :][::-1]
    assert len(set(rules)) == len(rules)  # no pair is a rule twice
