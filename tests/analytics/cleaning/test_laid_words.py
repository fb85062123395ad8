"""The words of all rows in one array, for both ways to expand rules."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.analytics.cleaning import laid_words
from polars_tadoc.kernels.host.passages.layout import SEPARATOR

ROWS = st.lists(st.none() | st.lists(st.sampled_from("abcd"), max_size=60).map(" ".join), min_size=1, max_size=30)


@given(rows=ROWS, per_grammar=st.integers(1, 30), are_short_listed=st.booleans(), threads=st.integers(1, 3))
def test_words_of_rules(rows: list[str | None], per_grammar: int, are_short_listed: bool, threads: int) -> None:
    """Rows of several grammars, null and empty ones between them."""
    text = pl.Series("text", rows, pl.String)
    column = text.tadoc.compress(rows_per_grammar=per_grammar)
    column = pl.concat([column[len(rows) // 2 :], column[: len(rows) // 2]])  # rows of grammars take turns
    order = [*range(len(rows) // 2, len(rows)), *range(len(rows) // 2)]
    with pytest.MonkeyPatch.context() as patch, tadoc.Config(threads=threads):
        patch.setattr(laid_words, "FEW_SYMBOLS", 0 if are_short_listed else 1 << 30)
        patch.setattr("polars_tadoc.runtime.parallel.weighted_chunks.__defaults__", (1,))
        laid = laid_words.lay_out(column, "test")
    words = laid.vocabulary.strings.to_pylist()
    found = [
        [words[word] for word in laid.words[begin : end - 1]]
        for begin, end in zip(laid.starts, laid.starts[1:], strict=False)
    ]
    assert found == [(rows[row] or "").split() for row in order]
    assert (laid.words[laid.starts[1:] - 1] == SEPARATOR).all()
    assert laid.valid.tolist() == [rows[row] is not None for row in order]
