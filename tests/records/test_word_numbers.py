"""Common numbers of the words of several vocabularies, and what is merged by them, against dictionaries."""

from __future__ import annotations

from collections import defaultdict
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.config import Config
from polars_tadoc.kernels.host.records import sort_words
from polars_tadoc.kernels.host.records.merge_counts import add_counts, join_lists, joined, renumber
from polars_tadoc.kernels.host.records.number_words import HASH_BITS, number_words
from polars_tadoc.kernels.host.records.sort_words import code_point_order
from polars_tadoc.model.column import split
from polars_tadoc.model.vocabulary import Vocabulary, _unified, unify

WORDS = st.text("ab\0é日\U0001f600", max_size=24) | st.integers(0, 40).map(lambda n: "0" * n + "1")
VOCABULARIES = st.lists(st.lists(WORDS, unique=True, max_size=30), max_size=5)


def strings(words: list[str], skipped: int = 0) -> pa.LargeStringArray:
    """Words that lie somewhere in a larger buffer."""
    return pa.array([*["before"] * skipped, *words], pa.large_string()).slice(skipped)


@pytest.mark.parametrize("large", [sort_words.LARGE, 2])
@given(words=st.lists(WORDS, unique=True, max_size=80), skipped=st.integers(0, 3))
def test_code_point_order(words: list[str], skipped: int, large: int) -> None:
    with patch.multiple(sort_words, LARGE=large):
        order = code_point_order(strings(words, skipped))
    assert order.dtype == np.uint32
    assert [words[k] for k in order] == sorted(words)  # Python compares code points


def test_many_words_that_begin_alike_are_in_code_point_order() -> None:
    rng = np.random.default_rng(1)
    words = [f"{'same beginning ' * (k % 3)}{k:032b}" for k in range(20_000)]
    rng.shuffle(words)
    with Config(threads=2):
        order = code_point_order(strings(words))
    assert [words[k] for k in order] == sorted(words)


@pytest.mark.parametrize("bits", [HASH_BITS, 1, 4])
@given(parts=VOCABULARIES, skipped=st.integers(0, 3))
def test_number_words(parts: list[list[str]], bits: int, skipped: int) -> None:
    """With few bits different words have the same hash: they are told apart by their bytes."""
    numbers: dict[str, int] = {}
    for word in (word for part in parts for word in part):
        numbers.setdefault(word, len(numbers))
    words, maps = number_words([strings(part, skipped) for part in parts], bits)
    words.validate(full=True)
    assert words.to_pylist() == list(numbers)
    assert [own.tolist() for own in maps] == [[numbers[word] for word in part] for part in parts]
    assert all(own.dtype == np.uint32 for own in maps)


def test_number_words_on_threads() -> None:
    rng = np.random.default_rng(1)
    parts = [[f"word {k}" for k in rng.permutation(60_000)[:40_000]] for _ in range(3)]
    numbers = {word: number for number, word in enumerate(dict.fromkeys(word for part in parts for word in part))}
    for threads in (1, 2, 5):
        with Config(threads=threads):
            words, maps = number_words([strings(part) for part in parts])
        assert words.to_pylist() == list(numbers)
        assert [own.tolist() for own in maps] == [[numbers[word] for word in part] for part in parts]


def test_the_numbering_of_cached_grammars_is_kept() -> None:
    texts = pl.Series("text", ["to be or not", "to do", "be not afraid", "afraid to be"])
    corpora = split(tadoc.compress(texts, rows_per_grammar=2))
    _unified.clear()
    words, maps = unify([corpus.grammar.words for corpus in corpora])
    assert len(_unified) == 1
    again = unify([corpus.grammar.words for corpus in split(tadoc.compress(texts, rows_per_grammar=2))])
    assert again[0] is words
    assert all(one is other for one, other in zip(again[1], maps, strict=True))
    unify([Vocabulary(corpus.grammar.vocabulary) for corpus in corpora])  # of which nobody knows the content
    assert len(_unified) == 1


def test_merges_of_merges_are_told_apart() -> None:
    """The words of (a b) c are those of a b c; the ids of their parts are not."""
    column = tadoc.compress(pl.Series("text", ["to be", "or not", "be afraid", "to do"]), rows_per_grammar=1)
    a, b, c, d = (corpus.grammar.words for corpus in split(column))
    _unified.clear()
    for parts in ([a, b, c, d], [unify([a, b])[0], c, d], [unify([a, b])[0], unify([c, d])[0]]):
        words, maps = unify(parts)
        assert sorted(words.strings.to_pylist()) == ["afraid", "be", "do", "not", "or", "to"]
        for part, own in zip(parts, maps, strict=True):
            assert words.strings.take(pa.array(own)).to_pylist() == part.strings.to_pylist()


COUNTED = st.lists(st.dictionaries(st.integers(0, 9), st.integers(0, 1 << 40), max_size=10), max_size=4)


@given(parts=COUNTED)
def test_add_counts(parts: list[dict[int, int]]) -> None:
    totals, expected = np.zeros(10, np.uint64), [0] * 10
    for part in parts:
        add_counts(np.array([*part.values()], np.uint64), np.array([*part], np.uint32), totals)
        for number, count in part.items():
            expected[number] += count
    assert totals.tolist() == expected


@given(parts=st.lists(st.tuples(st.permutations(range(6)), st.lists(st.integers(0, 5), max_size=9)), max_size=4))
def test_renumber(parts: list[tuple[list[int], list[int]]]) -> None:
    maps = [np.array(own, np.uint32) for own, _ in parts]
    made = renumber([np.array(ids, np.uint32) for _, ids in parts], maps)
    assert made.tolist() == [own[word] for own, ids in parts for word in ids]


@given(parts=st.lists(st.lists(st.integers(0, 9), max_size=9), max_size=4))
def test_joined(parts: list[list[int]]) -> None:
    made = joined(np.int64, [np.array(part, np.int64) for part in parts])
    assert made.dtype == np.int64
    assert made.tolist() == [number for part in parts for number in part]


@given(
    owners=st.lists(st.integers(0, 3), max_size=40),
    maps=st.lists(st.permutations(range(5)), min_size=4, max_size=4),
    in_turn=st.booleans(),
    data=st.data(),
)
def test_join_lists(owners: list[int], maps: list[list[int]], in_turn: bool, data: st.DataObject) -> None:
    """Rows of corpora come one after another, or take turns."""
    rows_of = [[row for row, own in enumerate(owners if in_turn else sorted(owners)) if own == k] for k in range(4)]
    expected: dict[int, list[int]] = defaultdict(list)
    offsets, values = [], []
    for own, rows in zip(maps, rows_of, strict=True):
        held = [[row for row in rows if data.draw(st.booleans())] for _ in own]
        for number, listed in zip(own, held, strict=True):
            expected[number] += listed
        offsets.append(np.cumsum([0, *map(len, held)], dtype=np.int64))
        values.append(np.array([row for listed in held for row in listed], np.uint32))
    starts, made = join_lists(5, [np.array(own, np.uint32) for own in maps], offsets, values)
    assert (starts.dtype, made.dtype) == (np.int64, np.uint32)
    for number in range(5):
        assert made[starts[number] : starts[number + 1]].tolist() == sorted(expected[number])


@given(words=st.lists(WORDS, unique=True, max_size=30))
def test_words_in_order(words: list[str]) -> None:
    vocabulary = Vocabulary(strings(words)).in_order
    assert vocabulary.strings.to_pylist() == sorted(words)
    assert vocabulary.rank.tolist() == vocabulary.by_rank.tolist() == list(range(len(words)))
    assert vocabulary.ascending.tolist() == [True] * max(0, len(words) - 1)
    assert vocabulary.in_order.strings.equals(vocabulary.strings)
