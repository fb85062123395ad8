"""The table of words that all threads share, and its caches."""

from __future__ import annotations

import random
from collections import Counter
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.kernels.tokenize import shared_words_cpu as shared
from polars_tadoc.kernels.tokenize import tokenizer as stage
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, tokenize
from tests.kernels.tokenize.test_tables import alike

words = st.one_of(
    st.text("abc", min_size=1, max_size=20),
    st.integers(0, 2000).map(str),
    st.integers(0, 40).map(lambda k: f"the_same_sixteen_bytes_and_{k}"),
    st.tuples(st.sampled_from([0, 31, 63]), st.integers(0, 40)).map(lambda one: alike(one[0])[one[1]].decode()),
)


def assert_numbered(rows: list[list[str]], threads: int, bits: int = shared.MOST_BITS, piece: int = 64) -> None:
    """Compare vocabulary and ids with a counter's; caches have ``2 ** bits`` places."""
    expected = Counter(word for row in rows for word in row)
    vocabulary = sorted(expected, key=lambda word: (-expected[word], word.encode()))
    with (
        tadoc.Config(threads=threads),
        patch.object(stage, "PIECE_BYTES", piece),
        patch.object(stage, "MOST_PIECE_BYTES", piece),
        patch.multiple(shared, FEWEST_BITS=bits, MOST_BITS=bits),
    ):
        tokens = tokenize(pl.Series([" ".join(row) for row in rows], dtype=pl.String), Tokenizer("words"))
    assert tokens.vocabulary.to_pylist() == vocabulary
    ids = {word: own for own, word in enumerate(vocabulary)}
    assert tokens.sequence.tolist() == [one for row in rows for one in (*(ids[word] for word in row), SEPARATOR)]


@given(rows=st.lists(st.lists(words, max_size=40), max_size=12), threads=st.integers(1, 5), bits=st.integers(1, 8))
def test_ids_are_by_count_whatever_the_caches_hold(rows: list[list[str]], threads: int, bits: int) -> None:
    assert_numbered(rows, threads, bits)


@pytest.mark.parametrize("threads", [1, 2, 16])
def test_the_table_grows_while_threads_insert(threads: int) -> None:
    some = [f"{'x' * (k % 23)}{k}" for k in range(30_000)]
    rows = [[*some[k : k + 40], "often", some[k // 2]] for k in range(0, len(some), 40)]
    assert_numbered(rows, threads, bits=4)
    text = pl.Series([" ".join(row) for row in rows])
    with patch.object(shared.SharedWords, "grow", autospec=True, side_effect=shared.SharedWords.grow) as grown:
        with tadoc.Config(threads=threads):
            tokenize(text, Tokenizer("words"))
        assert grown.call_count >= (threads == 1)


def test_threads_that_insert_the_same_words_at_once() -> None:
    drawn = random.Random(7)
    some = [f"word{k}" if k % 3 else f"word_of_more_than_sixteen_bytes_{k}" for k in range(1500)]
    for _ in range(5):
        rows = [drawn.sample(some, len(some)) for _ in range(16)]
        assert_numbered(rows, threads=16, bits=3, piece=1 << 14)


def test_strings_with_almost_equal_hashes() -> None:
    """Their places follow each other, from the end of the table to its start."""
    rows = [[one.decode() for one in alike(home)[:500]] for home in (63, 0, 63)]
    assert_numbered(rows, threads=3, bits=2)


def test_a_table_that_grows_keeps_its_strings() -> None:
    table = shared.SharedWords(0, 1)
    places = len(table.shared.slots)
    assert int(table.shared.counts[0]) == 1  # the empty string
    table.grow()
    assert len(table.shared.slots) == 2 * places
    assert np.count_nonzero(table.shared.slots) == 1
    vocabulary, ids = table.number()
    assert len(vocabulary) == 0
    assert len(ids) == 1
