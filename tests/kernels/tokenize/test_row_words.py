"""Words of text by their number: where a plain cut into words and gaps finds them."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_tadoc.kernels.tokenize import reference
from polars_tadoc.kernels.tokenize.row_words import count_row_words, find_row_words
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer

pieces = st.lists(
    st.sampled_from(["a", "word", "é", "中", "文\u0301", "\u0301", " ", ", ", "x" * 70, "\0"]), max_size=60
)
numbers = st.integers(0, 70)


@pytest.mark.parametrize(
    "given_", ["words", "whitespace", re.compile("[a-z]+|,")], ids=["words", "whitespace", "regex"]
)
@given(
    rows=st.lists(pieces.map("".join), min_size=1, max_size=4), cuts=st.lists(st.tuples(numbers, numbers), max_size=8)
)
def test_finds_what_a_plain_cut_finds(
    given_: str | re.Pattern[str], rows: list[str], cuts: list[tuple[int, int]]
) -> None:
    text, tokenizer = pl.Series("text", rows), Tokenizer.from_argument(given_)
    cut = [reference.tokenize(row, given_) for row in rows]
    assert count_row_words(text, tokenizer).tolist() == [len(words) for words, _ in cut]
    asked = [(row, first, first + size) for row in range(len(rows)) for first, size in sorted(cuts)]
    documents, firsts, stops = (np.array([own[place] for own in asked], np.int64) for place in range(3))
    starts, ends = find_row_words(text, tokenizer, documents, firsts, stops)
    for (row, first, stop), start, end in zip(asked, starts.tolist(), ends.tolist(), strict=True):
        words, gaps = cut[row]
        kept = words[first:stop]
        inner = "".join(gap + word for gap, word in zip(["", *gaps[first + 1 :]], kept, strict=False))
        assert rows[row].encode()[start:end].decode() == inner
