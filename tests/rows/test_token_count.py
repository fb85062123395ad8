"""How many words each row has: as many as its text is cut into."""

from __future__ import annotations

import re
from collections.abc import Callable

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal, assert_series_equal

import polars_tadoc as tadoc
from polars_tadoc.errors import LimitExceededError, NotCompressedError
from polars_tadoc.kernels.host.rows import reference as reference_rows
from polars_tadoc.kernels.tokenize import reference
from tests import handmade
from tests.kernels.tokenize.test_tokenize import without_unassigned
from tests.strategies import columns, grammars

assigned = columns.map(without_unassigned)  # of younger characters Python may not know what they are


@given(
    rows=assigned,
    tokenizer=st.sampled_from(["words", "whitespace", re.compile("[a-z]+|,")]),
    lossless=st.booleans(),
    rows_per_grammar=st.sampled_from([1, 3, 1 << 20]),
)
def test_counts_the_words_of_the_text(
    rows: list[str | None], tokenizer: str | re.Pattern[str], lossless: bool, rows_per_grammar: int
) -> None:
    text = pl.Series("text", rows, dtype=pl.String)
    column = tadoc.compress(text, tokenizer=tokenizer, lossless=lossless, rows_per_grammar=rows_per_grammar)
    expected = [None if row is None else len(reference.tokenize(row, tokenizer)[0]) for row in rows]
    assert_series_equal(tadoc.token_count(column), pl.Series("text", expected, dtype=pl.UInt64))


@given(grammar=grammars())
def test_any_grammar(grammar: tuple[int, list[list[int]], list[int], list[list[int]]]) -> None:
    size, bodies, levels, rows = grammar
    made = handmade.grammar(handmade.words(size), bodies, levels)
    offsets, symbols = made.rule_offsets.tolist(), made.symbols.tolist()
    expected = [reference_rows.token_count(row, size, offsets, symbols) for row in rows]
    assert tadoc.token_count(handmade.column(made, rows)).to_list() == expected


def test_lengths_around_a_byte() -> None:
    bodies = [[0] * length for length in (253, 254, 255, 256, 257, 300)]
    made = handmade.grammar(["a"], bodies, [0, len(bodies)])
    column = handmade.column(made, [[1 + k] for k in range(len(bodies))] + [[*range(7)], []])
    assert tadoc.token_count(column).to_list() == [253, 254, 255, 256, 257, 300, 1576, 0]


def test_counts_beyond_32_bits() -> None:
    with tadoc.Config(expansion_limit=1 << 56):
        column = handmade.column(handmade.grammar(["a"], [[k, k] for k in range(56)]), [[56] * 100, [0], [56]])
        assert tadoc.token_count(column).to_list() == [100 << 56, 1, 1 << 56]
        with pytest.raises(LimitExceededError, match="more words than 64 bits can count"):
            tadoc.token_count(pl.concat([column, column]))


def test_a_deep_chain() -> None:
    depth = 3000
    made = handmade.grammar(["a", "b"], [[0, 1], *([2 + k, 0] for k in range(depth - 1))])
    assert tadoc.token_count(handmade.column(made, [[1 + depth], [2, 1]])).to_list() == [depth + 1, 3]


def test_another_type() -> None:
    with pytest.raises(NotCompressedError, match='token_count: column "text" is Int64'):
        tadoc.token_count(pl.Series("text", [1]))


FRAME = pl.DataFrame({"group": [1, 2, 1, 2, 3], "text": ["a b c d e", "b c", "c d e f", None, ""]})
CONTEXTS: dict[str, Callable[[pl.LazyFrame, pl.Expr], pl.LazyFrame]] = {
    "select": lambda lf, e: lf.select(e, "group"),
    "with_columns": lambda lf, e: lf.with_columns(e),
    "filter": lambda lf, e: lf.filter(e > 2).select("group"),
    "agg": lambda lf, e: lf.group_by("group", maintain_order=True).agg(e),
    "sum in agg": lambda lf, e: lf.group_by("group", maintain_order=True).agg(e.sum()),
    "over": lambda lf, e: lf.select(e.over("group"), share=e / e.sum().over("group")),
    "when": lambda lf, e: lf.select(pl.when(pl.col("group") > 1).then(e).otherwise(pl.lit(7, pl.UInt64))),
    "sort_by": lambda lf, e: lf.sort(e, "group").select("group"),
}


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("rows_per_grammar", [2, 100])
def test_in_every_context(context: str, engine: str, rows_per_grammar: int) -> None:
    words = pl.col("text").str.count_matches(r"\w").cast(pl.UInt64)
    run_in = CONTEXTS[context]
    compressed = FRAME.tadoc.compress("text", rows_per_grammar=rows_per_grammar).lazy()
    got = run_in(compressed, pl.col("text").tadoc.token_count())
    wanted = run_in(FRAME.lazy(), words)
    assert got.collect_schema() == wanted.collect_schema() or context == "with_columns"
    assert_frame_equal(got.collect(engine=engine), wanted.collect(engine=engine))
