"""Compress, do anything a frame can do, decompress: the same as doing it to strings."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal, assert_series_equal

import polars_tadoc as tadoc
from polars_tadoc.errors import InvalidGrammarError, LimitExceededError, NotCompressedError, TadocError
from polars_tadoc.kernels.repair import reference as repair_reference
from polars_tadoc.kernels.tokenize import reference as tokenize_reference
from polars_tadoc.kernels.traverse import reference as traverse_reference
from tests import handmade
from tests.strategies import columns

ROWS = [
    *("to be, or not to be", None, "", " ", "the  cat\r\nsat", "日本語 テキスト", "a" * 300, "x\x00y", "to be"),
    *(f"line {i % 5}: the cat sat on the mat, part {i}" for i in range(40)),
    *([None, "to be, or not to be"] * 3),
]


@given(
    rows=columns,
    tokenizer=st.sampled_from(["words", "whitespace", re.compile("[a-z]+|,")]),
    threads=st.sampled_from([1, 2]),
)
def test_gives_back_the_text(rows: list[str | None], tokenizer: str | re.Pattern[str], threads: int) -> None:
    with tadoc.Config(threads=threads):
        compressed = tadoc.compress(pl.Series("text", rows, dtype=pl.String), tokenizer=tokenizer)
        assert compressed.dtype == tadoc.DTYPE
        assert_series_equal(tadoc.decompress(compressed), pl.Series("text", rows, dtype=pl.String))


@given(rows=columns, rows_per_grammar=st.integers(1, 4))
def test_gives_back_the_text_from_many_grammars(rows: list[str | None], rows_per_grammar: int) -> None:
    text = pl.Series("text", rows, dtype=pl.String)
    compressed = tadoc.compress(text, rows_per_grammar=rows_per_grammar)
    assert_series_equal(tadoc.decompress(compressed), text)
    backwards = list(range(len(rows)))[::-1]
    assert_series_equal(tadoc.decompress(compressed.gather(backwards)), text.gather(backwards))


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [None],
        [None, None, None],
        [""],
        ["", "", None],
        [" "],
        ["\n"],
        ["a"],
        ["a"] * 5000,
        ["the same line again and again, the same"] * 1000,
        ["a " * 5000],
        ["a" * 100_000],
        [" " * 100_000, ", " * 999],
        ["x" + "\n" * i for i in range(300)],
    ],
    ids=lambda rows: repr(rows)[:20],
)
@pytest.mark.parametrize("rows_per_grammar", [1 << 20, 2])
def test_edges(rows: list[str | None], rows_per_grammar: int) -> None:
    text = pl.Series("text", rows[:200] if rows_per_grammar == 2 else rows, dtype=pl.String)
    compressed = tadoc.compress(text, rows_per_grammar=rows_per_grammar)
    assert_series_equal(tadoc.decompress(compressed), text)


@pytest.fixture(scope="module", params=[1 << 20, 7], ids=["one grammar", "many grammars"])
def frames(request: pytest.FixtureRequest) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The frame as strings and compressed."""
    plain = pl.DataFrame({"text": ROWS}).with_row_index("id").with_columns(group=pl.col("id") % 3)
    return plain, plain.tadoc.compress("text", rows_per_grammar=request.param)


ROW_OPERATIONS: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "as it is": lambda df: df,
    "filter": lambda df: df.filter(pl.col("id") % 2 == 1),
    "filter to nothing": lambda df: df.filter(pl.lit(False)),
    "filter nulls": lambda df: df.filter(pl.col("text").is_not_null()),
    "sort": lambda df: df.sort("group", "id", descending=[True, False]),
    "reverse": lambda df: df.reverse(),
    "slice": lambda df: df.slice(3, 20),
    "slice of a slice": lambda df: df.slice(3, 20).slice(5, 7),
    "tail": lambda df: df.tail(3),
    "sample": lambda df: df.sample(30, seed=1, shuffle=True),
    "sample again and again": lambda df: df.sample(200, with_replacement=True, seed=2),
    "unique by key": lambda df: df.unique("group", keep="last", maintain_order=True),
    "concat with itself": lambda df: pl.concat([df, df.slice(4, 9)], rechunk=False),
    "concat, filtered": lambda df: pl.concat([df.slice(40), df], rechunk=False).filter(pl.col("id") % 3 != 0),
    "vstack": lambda df: df.vstack(df.reverse()),
    "gather every": lambda df: df.gather_every(4, 1),
    "inner join": lambda df: df.join(
        pl.DataFrame({"id": [5, 3, 3, 77]}, schema={"id": pl.UInt32}), on="id", maintain_order="left"
    ),
    "left join": lambda df: pl.DataFrame({"id": [5, 99, 0, 1]}, schema={"id": pl.UInt32}).join(
        df, on="id", how="left", maintain_order="left"
    ),
    "self join": lambda df: df.join(df.select("id", other="text"), on="id", maintain_order="left").select(
        "id", "group", text="other"
    ),
    "shift": lambda df: df.with_columns(pl.col("text").shift(2)),
    "when": lambda df: df.with_columns(pl.when(pl.col("id") > 4).then("text")),
    "first of group": lambda df: df.group_by("group", maintain_order=True).agg(
        pl.col("id").first(), pl.col("text").first()
    ),
    "agg and explode": lambda df: df.group_by("group", maintain_order=True).agg("id", "text").explode("id", "text"),
    "over": lambda df: df.with_columns(pl.col("text").sort_by("id", descending=True).over("group")),
    "rechunk": lambda df: pl.concat([df, df], rechunk=False).rechunk(),
    "clear": lambda df: df.clear(),
    "rename": lambda df: df.rename({"text": "other"}).rename({"other": "text"}),
    "lazy": lambda df: df.lazy().filter(pl.col("id") > 3).select("id", "text").collect(),
    "streaming": lambda df: df.lazy().filter(pl.col("id") > 3).collect(engine="streaming"),
    "diagonal": lambda df: pl.concat([df, df.select("id").head(2)], how="diagonal"),
    "unnest": lambda df: df.select("id", pl.struct("text", "group").alias("s")).unnest("s"),
    "implode": lambda df: df.select(pl.col("id").implode(), pl.col("text").implode()).explode("id", "text"),
    "unstructured": lambda df: df.select("id", pl.concat_list("text").alias("text")).explode("text"),
}


@pytest.mark.parametrize("name", ROW_OPERATIONS)
def test_after_frame_operations(frames: tuple[pl.DataFrame, pl.DataFrame], name: str) -> None:
    plain, compressed = frames
    operation = ROW_OPERATIONS[name]
    expected = operation(plain)
    result = operation(compressed)
    assert result.schema["text"] == tadoc.DTYPE
    assert_frame_equal(result.tadoc.decompress("text"), expected)
    assert_frame_equal(result.with_columns(pl.col("text").tadoc.decompress()), expected)
    assert_frame_equal(result.lazy().tadoc.decompress("text").collect(), expected)
    assert_series_equal(result["text"].tadoc.decompress(), expected["text"])


@given(rows=columns, seed=st.integers(0, 1000))
def test_any_rows_in_any_order(rows: list[str | None], seed: int) -> None:
    plain = pl.Series("text", rows, dtype=pl.String)
    parts = [tadoc.compress(plain), tadoc.compress(plain.reverse(), rows_per_grammar=3), tadoc.compress(plain.slice(1))]
    both = pl.concat(parts), pl.concat([plain, plain.reverse(), plain.slice(1)])
    places = [random.Random(seed).randrange(len(both[1])) for _ in range(20)] if len(both[1]) else []
    assert_series_equal(tadoc.decompress(both[0].gather(places)), both[1].gather(places))


def test_chunked_input() -> None:
    chunks = [pl.Series("text", ROWS[i : i + 5]) for i in range(0, len(ROWS), 5)]
    text = pl.concat(chunks, rechunk=False)
    assert text.n_chunks() > 1
    assert tadoc.decompress(tadoc.compress(text)).to_list() == ROWS
    assert tadoc.decompress(tadoc.compress(text.slice(7, 13))).to_list() == ROWS[7:20]


@given(rows=columns)
def test_lossy_gives_words_joined_by_spaces(rows: list[str | None]) -> None:
    known = [row and re.sub(r"[^ -~\n日本か]", "", row) for row in rows]
    compressed = tadoc.compress(pl.Series(known, dtype=pl.String), lossless=False)
    assert compressed.ext.storage().struct.field("gaps").null_count() == len(rows)
    expected = [None if row is None else " ".join(tokenize_reference.tokenize(row, "words")[0]) for row in known]
    assert tadoc.decompress(compressed).to_list() == expected


def test_only_the_named_column_changes() -> None:
    df = pl.DataFrame({"a": ["x y", "z"], "b": ["p, q", None], "c": [1, 2]})
    both = df.tadoc.compress("a").tadoc.compress("b")
    assert both.columns == ["a", "b", "c"]
    assert_frame_equal(both.tadoc.decompress("a").tadoc.decompress("b"), df)
    assert both.tadoc.decompress("b").schema == {"a": tadoc.DTYPE, "b": pl.String, "c": pl.Int64}


class TestDamage:
    GRAMMAR = handmade.grammar(["a", "b"], [[0, 1], [2, 2]], gaps=[", ", "é"])

    @pytest.mark.parametrize(
        ("symbols", "gaps", "text"),
        [
            ([0], b"", "a"),
            ([3, 0], b"", "a b a b a"),
            ([3], b"\x00\x02", "éa b a b"),
            ([3], b"\x01\x01", "a, b a b"),
            ([3], b"\x04\x02", "a b a bé"),
            ([3], b"\x00\x02\x00\x01\x00\x02\x00\x01\x00\x02", "éa, béa, bé"),
            ([3], b"\x01\x00", "a b a b"),
            ([3], b"\x81\x00\x81\x00", "a, b a b"),  # numbers longer than they need be
            ([], b"\x00\x01", ", "),
            ([], b"", ""),
        ],
    )
    def test_gap_streams(self, symbols: list[int], gaps: bytes, text: str) -> None:
        assert tadoc.decompress(handmade.column(self.GRAMMAR, [symbols], [gaps])).to_list() == [text]

    @pytest.mark.parametrize(
        ("symbols", "gaps", "message"),
        [
            ([3], b"\x80", "its gaps end inside a number"),
            ([3], b"\x00", "its gaps end inside a number"),
            ([3], b"\x00\x80", "its gaps end inside a number"),
            ([3], b"\x80\x80\x80\x80\x80\x00\x00", "its gaps end inside a number"),
            ([3], b"\x00\x00", "its gaps have a code that the grammar lacks"),
            ([3], b"\x04\x00", "its gaps have a code that the grammar lacks"),
            ([], b"\x00\x00", "its gaps have a code that the grammar lacks"),
            ([3], b"\x00\x03", "its gaps have a code that the grammar lacks"),
            ([3], b"\x00\xff\xff\xff\xff\x7f", "its gaps have a code that the grammar lacks"),
            ([3], b"\x05\x00", "its gaps continue after its last word"),
            ([3], b"\xff\xff\xff\xff\x7f\x00", "its gaps continue after its last word"),
            ([3], b"\x04\x01\x00\x01", "its gaps continue after its last word"),
            ([], b"\x01\x00", "its gaps continue after its last word"),
            ([], b"\x00\x01\x00\x01", "its gaps continue after its last word"),
        ],
    )
    def test_broken_gap_streams(self, symbols: list[int], gaps: bytes, message: str) -> None:
        damaged = handmade.column(self.GRAMMAR, [[0], symbols, [1]], [b"", gaps, b""])
        for call in (tadoc.decompress, tadoc.info):
            with pytest.raises(InvalidGrammarError, match=f"row 1: {message}"):
                call(damaged)  # type: ignore[operator]
        # the row is named by its place in the column that is there, nulls and other grammars included
        whole = pl.concat([tadoc.compress(pl.Series("text", [None, "x"])), damaged])
        with pytest.raises(InvalidGrammarError, match=f"row 3: {message}"):
            tadoc.decompress(whole)
        assert tadoc.word_count(damaged).num_rows == 2  # reads no gaps

    @given(gaps=st.binary(max_size=12), symbols=st.lists(st.integers(0, 3), max_size=4))
    def test_any_gap_stream(self, gaps: bytes, symbols: list[int]) -> None:
        grammar = handmade.grammar(["a", "b"], [[0, 1], [2, 2]], gaps=[", ", "é"], predicted_gaps=[0, 1, 0, 2, 0, 1])
        offsets, bodies = grammar.rule_offsets.tolist(), grammar.symbols.tolist()
        keys = repair_reference.gap_keys(symbols, 2, offsets, bodies)
        predicted = [int(grammar.predicted_gaps[key]) for key in keys] if symbols else None
        words = [
            grammar.vocabulary[word].as_py()
            for s in symbols
            for word in traverse_reference.expand(s, 2, offsets, bodies)
        ]
        column = handmade.column(grammar, [symbols], [gaps])
        try:
            expected = repair_reference.decode_predicted_gaps(gaps, predicted, grammar.gap_vocabulary.to_pylist())
        except ValueError:
            with pytest.raises(InvalidGrammarError):
                tadoc.decompress(column)
            return
        try:
            got = tadoc.decompress(column).to_list()
        except InvalidGrammarError:
            assert re.search(rb"[\x80-\xff]{5}", gaps), gaps  # numbers of more than five bytes are refused
            return
        assert got == [expected[0] + "".join(w + g for w, g in zip(words, expected[1:], strict=True))]

    @given(rows=st.lists(st.lists(st.integers(0, 0xFFFFFFFF), max_size=4), min_size=1, max_size=4))
    def test_any_symbols(self, rows: list[list[int]]) -> None:
        column = handmade.column(self.GRAMMAR, rows)
        if all(symbol < 4 for row in rows for symbol in row):
            assert len(tadoc.decompress(column)) == len(rows)
            return
        for call in (tadoc.decompress, tadoc.word_count, tadoc.info):
            with pytest.raises(
                InvalidGrammarError, match=r"a row has symbol \d+, but there are only 4 words and rules"
            ):
                call(column)  # type: ignore[operator]

    def test_rows_that_stand_for_too_much(self) -> None:
        grammar = handmade.grammar(["a"], [[k, k] for k in range(31)])
        column = handmade.column(grammar, [[31], [0]])
        with pytest.raises(LimitExceededError, match=r"more than 268,435,456 words .*expansion_limit"):
            tadoc.decompress(column)  # few symbols store them
        trusted = tadoc.Config(expansion_limit=1 << 36)
        with trusted, pytest.raises(LimitExceededError, match=r"more than 2,147,483,648 words .*expansion_limit"):
            tadoc.decompress(column)
        with tadoc.Config(expansion_limit=8):
            small = handmade.column(handmade.grammar(["a"], [[0, 0], [1, 1]]), [[2, 2]])
            assert tadoc.decompress(small).to_list() == ["a a a a a a a a"]
            for rows in ([[2, 2, 0]], [[2, 2], [0]], [[2], [2], [0]]):
                with pytest.raises(LimitExceededError, match="more than 8 words"):
                    tadoc.decompress(handmade.column(handmade.grammar(["a"], [[0, 0], [1, 1]]), rows))
        assert tadoc.word_count(column).to_pylist() == [{"word": "a", "count": (1 << 31) + 1}]

    def test_grammars_that_together_stand_for_too_much(self) -> None:
        rules = [handmade.grammar([word], [[k, k] for k in range(8)]) for word in "abcde"]
        column = pl.concat([handmade.column(grammar, [[8]]) for grammar in rules])  # 5 times 256 words
        with tadoc.Config(expansion_limit=1280):
            assert tadoc.decompress(column).str.split(" ").list.len().to_list() == [256] * 5
        with tadoc.Config(expansion_limit=1279):
            with pytest.raises(LimitExceededError, match="decompress: the rows expand to more than 1,279 words"):
                tadoc.decompress(column)
            assert tadoc.decompress(column.head(4)).len() == 4  # each call has its own

    def test_grammars_that_together_stand_for_too_many_bytes(self) -> None:
        words = [letter * 100 for letter in "abc"]
        column = pl.concat([handmade.column(handmade.grammar([word]), [[0] * 8]) for word in words])
        with tadoc.Config(expansion_limit=152):  # 2,432 bytes: 3 times 807 are 2,421
            assert tadoc.decompress(column).to_list() == [" ".join([word] * 8) for word in words]
        with tadoc.Config(expansion_limit=151), pytest.raises(LimitExceededError, match="words or 2,416 bytes"):
            tadoc.decompress(column)

    @pytest.mark.parametrize("threads", [1, 2])
    def test_bytes_are_summed_over_threads(self, threads: int) -> None:
        column = handmade.column(handmade.grammar(["x" * 20]), [[0] * 35_000] * 2)  # enough for a thread each
        size = 2 * (35_000 * 21 - 1)
        with tadoc.Config(threads=threads, expansion_limit=size // 16 + 1):
            assert tadoc.decompress(column).str.len_bytes().sum() == size
        with tadoc.Config(threads=threads, expansion_limit=size // 16), pytest.raises(LimitExceededError):
            tadoc.decompress(column)

    def test_a_row_that_no_string_can_hold(self) -> None:
        grammar = handmade.grammar(["x" * (1 << 20)], [[k, k] for k in range(12)])
        column = handmade.column(grammar, [[0], [12, 0]])
        assert column.tadoc.info()["words"].to_list() == [4098]
        trusted = tadoc.Config(expansion_limit=1 << 36)
        with trusted, pytest.raises(LimitExceededError, match=r"row 1 expands to 4,29\d,\d+,\d+ bytes"):
            tadoc.decompress(column)

    def test_gaps_that_stand_for_too_much(self) -> None:
        grammar = handmade.grammar(["a"], [[k, k] for k in range(20)], gaps=[" " * (1 << 20)])
        with pytest.raises(LimitExceededError):
            tadoc.decompress(handmade.column(grammar, [[20]], [b"\x00\x01" * (1 << 20)]))

    def test_null_symbols_in_a_row(self) -> None:
        column = handmade.column(self.GRAMMAR, [[0], [0, None]])
        for call in (tadoc.decompress, tadoc.word_count, tadoc.info):
            with pytest.raises(TadocError):
                call(column)  # type: ignore[operator]

    def test_null_fields(self) -> None:
        column = handmade.column(self.GRAMMAR, [[0], None, [1]])
        no_grammar = (
            column.ext.storage()
            .struct.unnest()
            .with_columns(pl.when(pl.int_range(pl.len()) != 2).then("grammar"))
            .to_struct("text")
        )
        assert tadoc.decompress(column).to_list() == ["a", None, "b"]
        assert tadoc.decompress(no_grammar).to_list() == ["a", None, None]
        assert tadoc.word_count(no_grammar).to_pylist() == [{"word": "a", "count": 1}]

    def test_categories_that_are_no_payloads(self) -> None:
        for text in ("", "junk", "TADOC", "TADOC2" + "0" * 48, "é" * 100):
            for call in (tadoc.decompress, tadoc.word_count, tadoc.info):
                with pytest.raises(InvalidGrammarError, match="grammar"):
                    call(handmade.column(text, [[0]]))  # type: ignore[operator]

    def test_another_type(self) -> None:
        with pytest.raises(NotCompressedError, match='column "text" is String'):
            tadoc.decompress(pl.Series("text", ["a"]))
