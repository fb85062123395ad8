"""Words of a vocabulary by id."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_tadoc.config import Config
from polars_tadoc.kernels.host.records import gather_views as views
from polars_tadoc.model.arrow_results import sequence_series
from polars_tadoc.model.vocabulary import Vocabulary

WORDS = st.lists(st.text(max_size=30), min_size=1, max_size=30, unique=True)


@pytest.mark.parametrize("few", [0, views.FEW])
@given(words=WORDS, places=st.lists(st.integers(0, 1 << 30), max_size=60), skipped=st.integers(0, 5))
def test_take_gives_the_word_of_each_id(words: list[str], places: list[int], skipped: int, few: int) -> None:
    strings = pa.array([*["before"] * skipped, *words], pa.large_string()).slice(skipped)
    ids = np.array([place % len(words) for place in places], np.uint32)
    with patch.object(views, "FEW", few):
        assert Vocabulary(strings).take(ids).equals(pl.Series("word", [words[k] for k in ids], pl.String))
        assert Vocabulary(strings).views(ids[::2]).to_pylist() == [words[k] for k in ids[::2]]


@given(words=WORDS, n=st.integers(1, 4), count=st.integers(0, 20), seed=st.integers(0, 99))
def test_sequence_series_lists_the_words_of_each_row(words: list[str], n: int, count: int, seed: int) -> None:
    ids = np.random.default_rng(seed).integers(0, len(words), (count, n)).astype(np.uint32)
    expected = pl.Series("sequence", [[words[k] for k in row] for row in ids], pl.List(pl.String))
    assert sequence_series(Vocabulary(pa.array(words, pa.large_string())), ids).equals(expected)


def test_take_on_threads_gives_the_word_of_each_id() -> None:
    words = [f"word {k} {'x' * (k % 20)}" for k in range(1000)]
    vocabulary, ids = (
        Vocabulary(pa.array(words, pa.large_string())),
        np.random.default_rng(1).integers(0, 1000, 200_000),
    )
    taken = vocabulary.take(ids)
    del vocabulary  # the result holds the bytes
    with Config(threads=4), patch.object(views, "MAX_CHUNK", 1 << 10):
        again = Vocabulary(pa.array(words, pa.large_string())).take(ids)
    assert taken.equals(again)
    assert taken.equals(pl.Series("word", words).gather(ids))
