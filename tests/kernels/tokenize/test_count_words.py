"""Counts of the words of text, which hold no sequence of them."""

from __future__ import annotations

import re
import tracemalloc
from collections import Counter
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import given

import polars_tadoc as tadoc
from polars_tadoc.engine.choose import choose
from polars_tadoc.kernels.tokenize import count_words_cpu, reference, tokenizer
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from tests.kernels.tokenize.test_tokenize import without_unassigned
from tests.strategies import columns


def assert_counts(rows: list[str | None], given_: str | re.Pattern[str], engine: str = "cpu") -> None:
    kernels = choose(engine, 0).kernels
    words, counts = kernels.count_text_words(pl.Series("text", rows, dtype=pl.String), Tokenizer.from_argument(given_))
    expected = Counter(word for row in rows if row is not None for word in reference.tokenize(row, given_)[0])
    assert words.to_pylist() == sorted(expected, key=str.encode)
    host = kernels.to_host(counts)
    assert host.dtype == np.uint64
    assert dict(zip(words.to_pylist(), host.tolist(), strict=True)) == dict(expected)


@pytest.mark.parametrize("tokenizer", ["words", "whitespace"])
@given(rows=columns.map(without_unassigned))
def test_counts_the_words_of_all_rows(engine: str, tokenizer: str, rows: list[str | None]) -> None:
    assert_counts(rows, tokenizer, engine)


@given(rows=columns)
def test_matches_of_a_regex_block_by_block(rows: list[str | None]) -> None:
    with patch.object(count_words_cpu, "MATCHED_BYTES", 1):
        assert_counts(rows, re.compile("[a-z]+|,"))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_tables_grow_in_the_middle_of_a_row(threads: int) -> None:
    """Counting goes on behind the last word counted: after a character that stands alone, and its marks, too."""
    one = " ".join(f"w{k} é{k}x 中\u0301文{k}" for k in range(9000))
    rows = [one, None, "", one + " end", *map(str, range(20_000)), "y" * 40 + " " + "y" * 41]
    with tadoc.Config(threads=threads), patch.object(tokenizer, "PIECE_BYTES", 1 << 15):
        for given_ in ("words", "whitespace", re.compile(r"\S+")):
            assert_counts(rows, given_)


@given(rows=columns)
def test_tables_are_merged_now_and_then(rows: list[str | None]) -> None:
    with tadoc.Config(threads=3), patch.object(count_words_cpu, "HELD", 2), patch.object(tokenizer, "PIECE_BYTES", 1):
        assert_counts(rows, "words")


def test_holds_no_sequence_of_words() -> None:
    text = pl.Series("text", ["to be or not to be " * 1000] * 500)  # 9.5 MB: a sequence would take 12 MB
    count_words_cpu.count_text_words(text, Tokenizer("words"))
    tracemalloc.start()
    try:
        count_words_cpu.count_text_words(text, Tokenizer("words"))
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
