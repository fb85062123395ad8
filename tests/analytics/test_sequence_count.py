"""Runs of n words against ``collections.Counter`` over the words of each row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from tests import handmade, oracle
from tests.analytic_cases import COLUMN, STRATEGIES, Case, cases


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_deleted_words_make_their_neighbours_adjacent(engine: str, strategy: str) -> None:
    column = tadoc.compress(pl.Series(["cat and dog", "cat of the dog", "cat", "dog"] * 3))
    got = column.tadoc.sequence_count(n=2, stopwords=["and", "of", "the"], strategy=strategy, engine=engine)
    assert got.rows() == [(["cat", "dog"], 6)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_sequence_spans_two_rows(engine: str, strategy: str) -> None:
    column = tadoc.compress(pl.Series(["a b", "c d", "a b"]))
    assert column.tadoc.sequence_count(n=2, strategy=strategy, engine=engine).rows() == [
        (["a", "b"], 2),
        (["c", "d"], 1),
    ]
    assert column.tadoc.sequence_count(n=3, strategy=strategy, engine=engine).is_empty()


def test_one_word_at_a_time_is_the_word_count(engine: str) -> None:
    got = COLUMN.tadoc.sequence_count(n=1, engine=engine).explode("sequence").rename({"sequence": "word"})
    assert got.equals(COLUMN.tadoc.word_count(engine=engine))


def test_ties_are_in_the_order_of_the_words(engine: str) -> None:
    """Word by word, not as one string: "a" is less than "a!" and "ab", however it goes on."""
    column = tadoc.compress(pl.Series(["ab a", "a z", "a a", "𝒳 a", "\uffdc a", "é a"]), rows_per_grammar=4)
    got = column.tadoc.sequence_count(n=2, engine=engine)["sequence"].to_list()
    assert got == [["a", "a"], ["a", "z"], ["ab", "a"], ["é", "a"], ["\uffdc", "a"], ["𝒳", "a"]]


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 40, 1000])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_runs_of_one_word(engine: str, n: int, strategy: str) -> None:
    column = tadoc.compress(pl.Series(["a " * 8, "a " * 1000, "a"]))
    got = column.tadoc.sequence_count(n=n, strategy=strategy, engine=engine).rows()
    expected = sum(max(0, length - n + 1) for length in (8, 1000, 1))
    assert got == [(["a"] * n, expected)]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_counts_beyond_32_bits(engine: str, strategy: str) -> None:
    """2^40 words: no window is expanded, each is counted where two children meet."""
    grammar = handmade.grammar(["a", "b"], [[0, 1], *([k + 2, k + 2] for k in range(40))])
    with tadoc.Config(expansion_limit=1 << 42):
        column = handmade.column(grammar, [[42, 42], [0]])
        got = column.tadoc.sequence_count(n=3, strategy=strategy, engine=engine).rows()
    assert got == [(["a", "b", "a"], (1 << 41) - 1), (["b", "a", "b"], (1 << 41) - 1)]


@pytest.mark.parametrize("n", [3, 5, 8])
def test_many_words_do_not_share_a_key(engine: str, n: int) -> None:
    """So many words that no 64 bits hold a sequence of them."""
    words = [f"w{k * 7919 % 5000}" for k in range(5000)]
    column = tadoc.compress(pl.Series([" ".join(words)] * 2))
    got = column.tadoc.sequence_count(n=n, engine=engine)
    assert got.rows() == oracle.sequence_count([words] * 2, n)


def test_several_lengths() -> None:
    column = tadoc.compress(pl.Series("text", ["a b a b", None, "b a"]))
    frame = pl.concat(
        [
            column.tadoc.sequence_count(n=n, min_count=2).insert_column(0, pl.lit(n, pl.UInt32).alias("n"))
            for n in (3, 1, 2)
        ]
    )
    for found in (
        column.tadoc.sequence_count(n=[3, 1, 2], min_count=2),
        column.to_frame().tadoc.sequence_count(n=iter([3, 1, 2]), min_count=2),
    ):
        assert found.equals(frame)
    assert frame.rows() == [(1, ["a"], 3), (1, ["b"], 3), (2, ["a", "b"], 2), (2, ["b", "a"], 2)]
    assert tadoc.sequence_count(column, n=range(1, 3), min_count=2).to_pylist() == frame.to_dicts()
    for wrong in ([], [2, 2], [0]):
        with pytest.raises(ValueError, match="n="):
            tadoc.sequence_count(column, n=wrong)
    with pytest.raises(TypeError, match="n"):
        column.tadoc.sequence_count(n=[2.0])
    lazy = column.to_frame().lazy().tadoc.sequence_count("text", n=[3, 1, 2], min_count=2)
    assert lazy.collect().equals(frame)
    assert lazy.collect_schema() == frame.schema


def expected_lengths(documents: Any, lengths: list[int], **limits: Any) -> list[tuple[Any, ...]]:
    """The definition: each length by itself, in the order given."""
    return [(n, *row) for n in lengths for row in oracle.sequence_count(documents, n, **limits)]


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(
    case=cases(normalised=True),
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=4, unique=True),
    top=st.none() | st.integers(0, 5),
    min_count=st.integers(1, 3),
)
def test_lengths_by_definition(
    engine: str, strategy: str, case: Case, lengths: list[int], top: int | None, min_count: int
) -> None:
    limits: dict[str, Any] = {"top": top, "min_count": min_count}
    wanted = expected_lengths(case.documents, lengths, **limits)
    options = case.arguments | limits
    found = case.column.tadoc.sequence_count(n=lengths, strategy=strategy, engine=engine, **options)
    assert found.rows() == wanted
    assert found.schema == {"n": pl.UInt32(), "sequence": pl.List(pl.String()), "count": pl.UInt64()}
    text = case.column.tadoc.decompress()
    assert text.tadoc.sequence_count(n=lengths, engine=engine, **options).rows() == wanted
    assert tadoc.sequence_count(text, n=lengths, engine=engine, **options).num_rows == len(wanted)


@given(case=cases(), lengths=st.lists(st.integers(1, 5), min_size=1, max_size=3, unique=True))
def test_lengths_by_group_and_in_plans(engine: str, case: Case, lengths: list[int]) -> None:
    places = range(len(case.column))
    lf = pl.LazyFrame([case.column.alias("text"), pl.Series("half", [place % 2 for place in places], pl.Int64)])
    counts = pl.col("text").tadoc.sequence_count(n=lengths, top=3, engine=engine)
    by_group = lf.group_by("half").agg(counts).collect()
    for half, found in by_group.rows():
        own = [words for place, words in enumerate(case.documents) if place % 2 == half]
        assert [tuple(one.values()) for one in found] == expected_lengths(own, lengths, top=3)
    assert by_group.schema == lf.group_by("half").agg(counts).collect_schema()
    wanted = expected_lengths(case.documents, lengths)
    assert lf.tadoc.sequence_count("text", n=iter(lengths)).collect().rows() == wanted
    limited = lf.tadoc.sequence_count("text", n=lengths, memory_limit="1GB").collect()
    assert limited.rows() == wanted


def test_lengths_with_a_checkpoint(tmp_path: Path) -> None:
    df = pl.DataFrame({"text": ["a b a b", None, "b a"]}).tadoc.compress("text")
    df.tadoc.write_packed(tmp_path / "packed")
    for _ in range(2):
        plan = tadoc.scan_packed(tmp_path / "packed").tadoc.sequence_count(
            n=[2, 1], memory_limit="1GB", checkpoint=tmp_path / "parts"
        )
        assert plan.collect().rows() == expected_lengths([["a", "b", "a", "b"], None, ["b", "a"]], [2, 1])
    assert sorted(path.name for path in (tmp_path / "parts").iterdir()) == ["n=1", "n=2"]
    with pytest.raises(ValueError, match="checkpoint= is for calls with memory_limit="):
        df.lazy().tadoc.sequence_count(n=[2, 1], checkpoint=tmp_path / "parts")


@pytest.mark.parametrize("threads", [1, 2, 16])
def test_lengths_with_threads(threads: int) -> None:
    words = [f"w{k * k % 97}" for k in range(60_000)]
    column = tadoc.compress(pl.Series("text", [" ".join(words[k : k + 100]) for k in range(0, len(words), 100)]))
    documents = [words[k : k + 100] for k in range(0, len(words), 100)]
    with tadoc.Config(threads=threads):
        assert column.tadoc.sequence_count(n=range(1, 5), top=50).rows() == expected_lengths(
            documents, [1, 2, 3, 4], top=50
        )
