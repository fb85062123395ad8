"""Words of rows by their number: the same as cutting the text into words and taking some."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal, assert_series_equal

import polars_tadoc as tadoc
from polars_tadoc.errors import InvalidGrammarError, LimitExceededError, NotCompressedError
from polars_tadoc.kernels.host.rows import reference as reference_rows
from polars_tadoc.kernels.repair import reference as repair_reference
from polars_tadoc.kernels.tokenize import reference as tokenize_reference
from polars_tadoc.kernels.traverse import reference as traverse_reference
from polars_tadoc.rows import extract as extract_module
from polars_tadoc.rows.cut import cut_words
from tests import handmade
from tests.kernels.tokenize.test_tokenize import without_unassigned
from tests.strategies import columns, grammars

TOKENIZERS = ["words", "whitespace", re.compile("[a-z]+|,")]
MOST = (1 << 63) - 1

assigned = columns.map(without_unassigned)  # of younger characters Python may not know what they are
numbers = st.one_of(st.integers(-12, 12), st.sampled_from([-MOST - 1, -MOST, MOST, 1 << 40, -(1 << 40)]))
lengths = st.one_of(st.none(), st.integers(0, 12), st.sampled_from([MOST, 1 << 40]))


def expected(
    rows: list[str | None],
    tokenizer: str | re.Pattern[str],
    offsets: list[int | None],
    lengths: list[int | None],
    lossless: bool = True,
) -> list[str | None]:
    """By the definition, on the text."""
    found: list[str | None] = []
    for text, offset, length in zip(rows, offsets, lengths, strict=True):
        if text is None or offset is None:
            found.append(None)
            continue
        words, gaps = tokenize_reference.tokenize(text, tokenizer)
        found.append(reference_rows.extract(words, gaps if lossless else [" "] * len(gaps), offset, length))
    return found


@given(
    rows=assigned,
    tokenizer=st.sampled_from(TOKENIZERS),
    lossless=st.booleans(),
    rows_per_grammar=st.sampled_from([1, 3, 1 << 20]),
    threads=st.sampled_from([1, 2]),
    data=st.data(),
)
def test_takes_words_of_the_text(
    rows: list[str | None],
    tokenizer: str | re.Pattern[str],
    lossless: bool,
    rows_per_grammar: int,
    threads: int,
    data: st.DataObject,
) -> None:
    offsets = data.draw(st.lists(st.one_of(st.none(), numbers), min_size=len(rows), max_size=len(rows)))
    sizes = data.draw(st.lists(lengths, min_size=len(rows), max_size=len(rows)))
    text = pl.Series("text", rows, dtype=pl.String)
    with tadoc.Config(threads=threads):
        column = tadoc.compress(text, tokenizer=tokenizer, lossless=lossless, rows_per_grammar=rows_per_grammar)
        got = tadoc.extract(column, pl.Series(offsets, dtype=pl.Int64), pl.Series(sizes, dtype=pl.Int64))
        assert got.name == "text"
        assert got.dtype == pl.String
        assert got.to_list() == expected(rows, tokenizer, offsets, sizes, lossless)


@given(rows=assigned, tokenizer=st.sampled_from(TOKENIZERS), offset=numbers, length=lengths)
def test_one_offset_for_all_rows(
    rows: list[str | None], tokenizer: str | re.Pattern[str], offset: int, length: int | None
) -> None:
    column = tadoc.compress(pl.Series("text", rows, dtype=pl.String), tokenizer=tokenizer)
    one: list[Any] = [offset] * len(rows), [length] * len(rows)
    assert tadoc.extract(column, offset, length).to_list() == expected(rows, tokenizer, *one)
    assert tadoc.extract(column, pl.Series([offset]), length).to_list() == expected(rows, tokenizer, *one)


@given(text=assigned.filter(bool), data=st.data(), threads=st.sampled_from([1, 2]))
def test_many_offsets_of_one_row(text: list[str | None], data: st.DataObject, threads: int) -> None:
    offsets = data.draw(st.lists(st.one_of(st.none(), numbers), max_size=40))
    sizes = data.draw(st.lists(lengths, min_size=len(offsets), max_size=len(offsets)))
    column = tadoc.compress(pl.Series("text", text, dtype=pl.String)).slice(len(text) - 1)
    with tadoc.Config(threads=threads):
        got = tadoc.extract(column, pl.Series(offsets, dtype=pl.Int64), pl.Series(sizes, dtype=pl.Int64))
    assert got.to_list() == expected(text[-1:] * len(offsets), "words", offsets, sizes)


def test_one_word_after_another_is_the_text() -> None:
    text = "to be, or  not to be; to be, or  not " * 3000
    words, gaps = tokenize_reference.tokenize(text, "words")
    column = tadoc.compress(pl.Series([text, "to be"]))
    places = list(range(len(words)))
    random.Random(1).shuffle(places)
    for threads in (1, 2):
        with tadoc.Config(threads=threads):
            got = tadoc.extract(column[:1], pl.Series(places), 2).to_list()
            assert got == [(words[k] + gaps[k + 1] + words[k + 1] if k + 1 < len(words) else words[k]) for k in places]


@given(rows=assigned, n=st.one_of(numbers, st.just(0)), rows_per_grammar=st.sampled_from([2, 1 << 20]))
def test_head_and_tail(rows: list[str | None], n: int, rows_per_grammar: int) -> None:
    column = tadoc.compress(pl.Series("text", rows, dtype=pl.String), rows_per_grammar=rows_per_grammar)
    first = expected(rows, "words", [0] * len(rows), [n] * len(rows))
    last = expected(rows, "words", [-n] * len(rows), [None if n else 0] * len(rows))
    assert tadoc.head(column, n).to_list() == first
    assert tadoc.tail(column, n).to_list() == last


def test_head_and_tail_are_those_of_strings() -> None:
    """With words of one character, without gaps, words are characters."""
    text = pl.Series("text", ["abcdef", "ab", "", None, "abcdef", "abcdef"])
    column = tadoc.compress(text, tokenizer=re.compile("[a-z]"))
    n = pl.Series([2, -1, 3, 1, None, 0])
    for given_n in (n, 0, 2, -2, 9, -9, MOST, -MOST - 1):
        assert_series_equal(tadoc.head(column, given_n), text.str.head(given_n))
        assert_series_equal(tadoc.tail(column, given_n), text.str.tail(given_n))
    assert_series_equal(tadoc.head(column), text.str.head(5))
    assert_series_equal(tadoc.tail(column), text.str.tail(5))
    for offset in (0, 1, -2, -8, 9, -MOST - 1, MOST, pl.Series([0, -3, 1, 2, None, -7])):
        for length in (None, 0, 3, MOST, pl.Series([None, 1, 2, 3, 4, 3])):
            assert_series_equal(tadoc.extract(column, offset, length), text.str.slice(offset, length))
    assert tadoc.head(column[:1], n).to_list() == ["ab", "abcde", "abc", "a", None, ""]
    assert tadoc.tail(column[:1], n).to_list() == ["ef", "bcdef", "def", "f", None, ""]
    with pytest.raises(
        ValueError, match="head: series must have as many rows as the column, or one; got column has 2, n has 6"
    ):
        tadoc.head(column[:2], n)


TEXT = [
    *("to be, or not to be", None, "", " ", "the  cat\r\nsat", "日本語 テキスト", "a" * 300, "x\x00y", "to be"),
    *(f"line {i % 5}: the cat sat on the mat, part {i}" for i in range(40)),
    *([None, "to be, or not to be"] * 3),
]
ROW_OPERATIONS: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
    "as it is": lambda df: df,
    "filter": lambda df: df.filter(pl.col("id") % 2 == 1),
    "filter to nothing": lambda df: df.filter(pl.lit(False)),
    "only nulls": lambda df: df.filter(pl.col("text").is_null()),
    "slice of a slice": lambda df: df.slice(3, 20).slice(5, 7),
    "shuffle": lambda df: df.sample(fraction=1, seed=1, shuffle=True),
    "sample with replacement": lambda df: df.sample(200, with_replacement=True, seed=2),
    "concat": lambda df: pl.concat([df.tail(9), df, df.slice(2, 5)]),
    "chunks": lambda df: pl.concat([df.head(7), df.tail(7)], rechunk=False),
    "join": lambda df: df.join(df.select("id").filter(pl.col("id") % 3 > 0), on="id", how="right"),
}


@pytest.mark.parametrize("rows_per_grammar", [1 << 20, 7])
@pytest.mark.parametrize("operation", ROW_OPERATIONS)
def test_rows_of_any_frame(operation: str, rows_per_grammar: int) -> None:
    plain = pl.DataFrame({"text": TEXT}).with_row_index("id").with_columns(at=pl.col("id").cast(pl.Int64) % 11 - 5)
    compressed = plain.tadoc.compress("text", rows_per_grammar=rows_per_grammar)
    rows, column = ROW_OPERATIONS[operation](plain), ROW_OPERATIONS[operation](compressed)
    got = tadoc.extract(column["text"], column["at"], 3).to_list()
    assert got == expected(rows["text"].to_list(), "words", rows["at"].to_list(), [3] * len(rows))
    assert tadoc.head(column["text"], 1 << 40).to_list() == expected(
        rows["text"].to_list(), "words", [0] * len(rows), [None] * len(rows)
    )


INTEGERS = [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.UInt128]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_of_any_type(dtype: type[pl.DataType]) -> None:
    column = tadoc.compress(pl.Series(["a b c d", "e f", None, "g h i"]))
    numbers = pl.Series([1, None, 0, 2], dtype=dtype)
    assert tadoc.extract(column, numbers).to_list() == ["b c d", None, None, "i"]
    assert tadoc.extract(column, 0, numbers).to_list() == ["a", "e f", None, "g h"]
    assert tadoc.tail(column, numbers).to_list() == ["d", None, None, "h i"]


def test_integers_beyond_64_bits() -> None:
    column = tadoc.compress(pl.Series(["a b c d"] * 2))
    assert tadoc.extract(column, 1, pl.Series([(1 << 64) - 1, 2], dtype=pl.UInt64)).to_list() == ["b c d", "b c"]
    assert tadoc.extract(column, pl.Series([(1 << 64) - 1, 2], dtype=pl.UInt64)).to_list() == ["", "c d"]
    assert tadoc.extract(column, pl.Series([-(1 << 100), 1 << 100], dtype=pl.Int128)).to_list() == ["a b c d", ""]
    assert tadoc.extract(column, -(1 << 100)).to_list() == ["a b c d"] * 2
    assert tadoc.extract(column, -4, 1 << 100).to_list() == ["a b c d"] * 2
    assert tadoc.tail(column, 1 << 100).to_list() == ["a b c d"] * 2
    assert tadoc.tail(column, -(1 << 100)).to_list() == ["", ""]


@pytest.mark.parametrize("dtype", [pl.UInt64, pl.Int128, pl.UInt128], ids=str)
def test_lengths_beyond_63_bits_are_to_the_end(dtype: type[pl.DataType]) -> None:
    text = pl.Series(["abcd"] * 2)
    column = tadoc.compress(text, tokenizer=re.compile("[a-z]"))
    first = -MOST - 1
    for length in (MOST + 1, (1 << 64) - 1):
        assert tadoc.extract(column, first, length).to_list() == text.str.slice(first, length).to_list() == ["abcd"] * 2
        assert tadoc.extract(column, first, pl.Series([length, MOST], dtype=dtype)).to_list() == ["abcd", "abc"]
    assert tadoc.extract(column, first, MOST).to_list() == text.str.slice(first, MOST).to_list() == ["abc"] * 2


def test_no_rows() -> None:
    column = tadoc.compress(pl.Series("text", ["a b", None]))
    nothing = pl.Series("text", [], dtype=pl.String)
    assert_series_equal(tadoc.extract(column.clear(), 1, 2), nothing)
    assert_series_equal(tadoc.extract(column.clear(), pl.Series([], dtype=pl.Int8)), nothing)
    assert_series_equal(tadoc.extract(column[:1], pl.Series([], dtype=pl.Int8)), nothing)
    assert_series_equal(tadoc.extract(column[1:], pl.Series([], dtype=pl.Int8)), nothing)
    assert tadoc.extract(column[1:], pl.Series([1, 2])).to_list() == [None, None]
    assert tadoc.extract(column, pl.Series([None], dtype=pl.Int64)).to_list() == [None, None]
    assert tadoc.extract(column, pl.Series([None, None])).to_list() == [None, None]
    assert tadoc.extract(column[:1], pl.Series([None, 1])).to_list() == [None, "b"]


class TestArguments:
    COLUMN = tadoc.compress(pl.Series("text", ["a b", "c"]))

    @pytest.mark.parametrize(
        "wrong", [1.0, "1", True, [1], np.array(1), np.bool_(1), pl.Series([True, False]), None, pl.col("x")]
    )
    def test_no_integers(self, wrong: object) -> None:
        for call, argument in ((tadoc.extract, "offset"), (tadoc.head, "n"), (tadoc.tail, "n")):
            with pytest.raises(TypeError, match=rf"^{call.__name__}: {argument} must be .*integer"):
                call(self.COLUMN, wrong)  # type: ignore[operator]
        if wrong is not None:
            with pytest.raises(TypeError, match=r"^extract: length must be .*integer"):
                tadoc.extract(self.COLUMN, 0, wrong)  # type: ignore[arg-type]

    def test_series_of_other_types(self) -> None:
        message = r"offset must be integers, not Float64; cast it first: .cast\(pl.Int64\)"
        with pytest.raises(TypeError, match=message):
            tadoc.extract(self.COLUMN, pl.Series([1.0, 2.0]))
        with pytest.raises(TypeError, match="length must be integers, not String"):
            tadoc.extract(self.COLUMN, 0, pl.Series(["1", "2"]))

    def test_lengths_below_zero(self) -> None:
        with pytest.raises(ValueError, match="extract: length must not be negative; got -1"):
            tadoc.extract(self.COLUMN, 0, -1)
        with pytest.raises(ValueError, match="extract: length must not be negative; got -3"):
            tadoc.extract(self.COLUMN, 0, pl.Series([1, -3]))

    def test_series_of_other_lengths(self) -> None:
        with pytest.raises(ValueError, match=r"^extract: .* column has 2, offset has 3"):
            tadoc.extract(self.COLUMN, pl.Series([1, 2, 3]))
        with pytest.raises(ValueError, match="offset has 3, length has 2"):
            tadoc.extract(self.COLUMN[:1], pl.Series([1, 2, 3]), pl.Series([1, 2]))
        with pytest.raises(ValueError, match="column has 2, offset has 0"):
            tadoc.extract(self.COLUMN, pl.Series([], dtype=pl.Int64))

    def test_no_compressed_column(self) -> None:
        for call in (tadoc.extract, tadoc.head, tadoc.tail):
            with pytest.raises(NotCompressedError, match=f'^{call.__name__}: column "text" is Int64'):
                call(pl.Series("text", [1]), 1)  # type: ignore[operator]
            with pytest.raises(TypeError, match="takes a Polars Series, not str"):
                call("text", 1)  # type: ignore[operator]


@given(grammar=grammars(), data=st.data())
def test_cuts_are_the_fewest_symbols(
    grammar: tuple[int, list[list[int]], list[int], list[list[int]]], data: st.DataObject
) -> None:
    size, bodies, levels, rows = grammar
    gaps = [", ", "é", ""]
    keys = size + sum(map(len, bodies))
    predicted = data.draw(st.lists(st.integers(0, len(gaps)), min_size=keys, max_size=keys))
    made = handmade.grammar(handmade.words(size), bodies, levels, gaps, predicted)
    offsets, symbols = made.rule_offsets.tolist(), made.symbols.tolist()
    codes, streams = [], []
    for row in rows:
        own = [predicted[key] for key in repair_reference.gap_keys(row, size, offsets, symbols)] if row else []
        words = reference_rows.token_count(row, size, offsets, symbols)
        changed = data.draw(st.lists(st.integers(0, len(gaps)), min_size=words + 1, max_size=words + 1))
        kept = data.draw(st.lists(st.booleans(), min_size=words + 1, max_size=words + 1))
        true = [c if k else p for c, k, p in zip(changed, kept, [0, *own, 0], strict=False)] if words else [0]
        codes.append(true)
        streams.append(repair_reference.encode_predicted_gaps(true, own))
    column = handmade.column(made, rows, streams)
    assert tadoc.token_count(column).to_list() == [len(true) - 1 for true in codes]
    cuts = [
        (document, first, stop)
        for document, true in enumerate(codes)
        for first, stop in sorted(
            data.draw(st.lists(st.tuples(st.integers(0, len(true)), st.integers(0, 40)), max_size=6))
        )
        if first <= stop
    ]
    if not rows or not cuts:
        return
    corpus = tadoc.column.split(column)[0]
    documents, firsts, stops = (np.array(values, np.int64) for values in zip(*cuts, strict=True))
    got = cut_words(corpus, np.arange(len(cuts)), documents, firsts, stops)
    texts = tadoc.decompress(handmade.column(made, handmade.cut(got.roots, got.root_offsets), got.gaps.to_list()))
    strings = [" ", *gaps]
    for k, (document, first, stop) in enumerate(cuts):
        words = len(codes[document]) - 1
        stop = min(stop, words)
        first = min(first, stop)
        cover = reference_rows.cover(rows[document], size, offsets, symbols, first, stop)
        assert got.roots[got.root_offsets[k] : got.root_offsets[k + 1]].tolist() == cover
        ids = [w for symbol in rows[document] for w in traverse_reference.expand(symbol, size, offsets, symbols)]
        text = "".join((strings[codes[document][w]] if w > first else "") + f"w{ids[w]}" for w in range(first, stop))
        assert texts[k] == text


class TestDamage:
    GRAMMAR = handmade.grammar(["a", "b"], [[0, 1], [2, 2]], gaps=[", ", "é"], predicted_gaps=[0, 1, 0, 2, 0, 1])

    @given(gaps=st.binary(max_size=30), symbols=st.lists(st.integers(0, 3), max_size=4), first=st.integers(0, 16))
    def test_any_gap_stream(self, gaps: bytes, symbols: list[int], first: int) -> None:
        column = handmade.column(self.GRAMMAR, [symbols], [gaps])
        try:
            text = tadoc.decompress(column)[0]
        except InvalidGrammarError:
            text = None
        for length in (0, 1, 3, None):
            try:
                got = tadoc.extract(column, first, length)[0]
            except InvalidGrammarError as error:
                assert text is None  # what decompresses can be taken apart
                assert re.search("row 0: its gaps (end inside a number|have a code)", str(error))  # noqa: PT017
                continue
            assert text is None or got in text

    @pytest.mark.parametrize(
        ("gaps", "message"),
        [
            (b"\x02", "its gaps end inside a number"),
            (b"\x02\x80", "its gaps end inside a number"),
            (b"\x80", "its gaps end inside a number"),
            (b"\x81\x80\x80\x80\x80\x00\x01", "its gaps end inside a number"),
            (b"\x02\x03", "its gaps have a code that the grammar lacks"),
            (b"\x00\x01\x00\x01\x00\x7f", "its gaps have a code that the grammar lacks"),
        ],
    )
    def test_is_told_where_it_is_read(self, gaps: bytes, message: str) -> None:
        column = handmade.column(self.GRAMMAR, [[3, 3], [3, 3], [3, 3]], [b"", gaps, b""])
        with pytest.raises(InvalidGrammarError, match=f"row 1: {message}: the data is damaged"):
            tadoc.extract(column, 1, 3)
        with pytest.raises(InvalidGrammarError, match=f"row 0: {message}: the data is damaged"):
            tadoc.extract(column[1:2], pl.Series([1, 0, 1]), 3)
        with pytest.raises(InvalidGrammarError):
            tadoc.decompress(column)

    def test_symbols_that_are_not_there(self) -> None:
        for call in (tadoc.token_count, tadoc.head, tadoc.tail):
            with pytest.raises(InvalidGrammarError, match="a row has symbol 4, but there are only 4"):
                call(handmade.column(self.GRAMMAR, [[4]]))
            with pytest.raises(InvalidGrammarError, match="grammar"):
                call(handmade.column("junk", [[0]]))

    def test_rows_that_stand_for_too_much_give_what_is_asked(self) -> None:
        grammar = handmade.grammar(["a", "b"], [[0, 1], *([k, k] for k in range(2, 32))])
        column = handmade.column(grammar, [[32, 32, 0], [0]])
        assert tadoc.token_count(column).to_list() == [(1 << 32) + 1, 1]
        assert tadoc.extract(column, (1 << 32) - 3, 9).to_list() == ["b a b a", ""]
        assert tadoc.extract(column, -3, 2).to_list() == ["a b", ""]
        assert tadoc.tail(column, 3).to_list() == ["a b a", "a"]
        with pytest.raises(LimitExceededError, match=r"^extract: the rows expand to more than 268,435,456 words"):
            tadoc.extract(column, 1)
        with pytest.raises(LimitExceededError, match=r"^tail: the rows"):
            tadoc.tail(column, -1)
        with pytest.raises(LimitExceededError, match=r"^head: the rows"):
            tadoc.head(column, -1)
        with tadoc.Config(expansion_limit=1 << 39), pytest.raises(LimitExceededError, match="head: row 0 expands to"):
            tadoc.head(column, -1)

    def test_words_that_64_bits_do_not_count(self) -> None:
        with tadoc.Config(expansion_limit=1 << 56):
            grammar = handmade.grammar(["a"], [[k, k] for k in range(56)])
            column = handmade.column(grammar, [[56] * 100])
            assert tadoc.extract(column, 90 << 56, 2).to_list() == ["a a"]
            assert tadoc.extract(column, -1 << 56, 2).to_list() == ["a a"]
            with pytest.raises(LimitExceededError, match="more words than 64 bits can count"):
                tadoc.extract(pl.concat([column, column]), 1, 2)

    def test_the_limit_holds_for_all_rows(self) -> None:
        column = pl.concat([tadoc.compress(pl.Series([text])) for text in ("a b c", "d e f")])
        with tadoc.Config(expansion_limit=4):
            assert tadoc.head(column, 2).to_list() == ["a b", "d e"]
        with tadoc.Config(expansion_limit=3), pytest.raises(LimitExceededError, match="more than 3 words"):
            tadoc.head(column, 2)


class TestShapes:
    def test_a_deep_chain(self) -> None:
        depth = 3000
        bodies = [[0, 1], *([2 + k, k % 3 // 2] for k in range(depth - 1))]
        predicted = [k % 3 for k in range(2 + 2 * depth)]
        grammar = handmade.grammar(["a", "b"], bodies, gaps=[", ", "-"], predicted_gaps=predicted)
        column = handmade.column(grammar, [[1 + depth], [0, 1 + depth, 1 + depth]])
        text = tadoc.decompress(column)
        for row, words in enumerate(tadoc.token_count(column).to_list()):
            cut = tokenize_reference.tokenize(text[row], "words")
            assert len(cut[0]) == words
            places = [*range(20), *range(depth - 9, depth + 9), words - 1, -3]
            got = tadoc.extract(column[row : row + 1], pl.Series(places), 5).to_list()
            assert got == [reference_rows.extract(*cut, place, 5) for place in places]
        assert tadoc.extract(column, 7).to_list() == [
            reference_rows.extract(*tokenize_reference.tokenize(row, "words"), 7, None) for row in text
        ]

    def test_a_long_rule(self) -> None:
        size = 100_000
        body = [k % 7 for k in range(size)]
        codes = [k % 3 for k in range(7 + size)]
        grammar = handmade.grammar(handmade.words(7), [body], gaps=[", ", "-"], predicted_gaps=codes)
        column = handmade.column(grammar, [[0, 7, 1]], [bytes([5, 2, 60_000 % 128, 1])])
        cut = tokenize_reference.tokenize(tadoc.decompress(column)[0], "words")
        assert len(cut[0]) == size + 2
        places = [0, 1, 5, 6, 7, 60, 70, 50_000, size - 1, size, size + 1, size + 2]
        for length in (1, 20, None):  # without an end each takes more bytes for gaps than the row has
            got = tadoc.extract(column, pl.Series(places), length).to_list()
            assert got == [reference_rows.extract(*cut, place, length) for place in places]

    def test_rows_of_many_gaps_of_all_sizes(self) -> None:
        """Streams whose numbers take one byte, two and three."""
        chance = random.Random(3)
        gaps = ["," * (1 + k) for k in range(300)]
        rows = []
        for many in (1, 2, 40, 300, 3000):
            words = [f"w{chance.randrange(500)}" for _ in range(many)]
            between = [" " if chance.random() < 0.7 else chance.choice(gaps[: chance.choice([3, 300])]) for _ in words]
            rows.append("".join(map("".join, zip(words, between, strict=True))))
        rows += ["x " * many + ";" + "y " * many for many in (100, 200, 20_000)]
        column = tadoc.compress(pl.Series(rows))
        cut = [tokenize_reference.tokenize(row, "words") for row in rows]
        for _ in range(200):
            offsets = [chance.randrange(-len(words) - 2, len(words) + 2) for words, _ in cut]
            got = tadoc.extract(column, pl.Series(offsets), 10).to_list()
            assert got == [reference_rows.extract(*own, at, 10) for own, at in zip(cut, offsets, strict=True)]


FRAME = pl.DataFrame(
    {
        "group": [1, 2, 1, 2, 3, 3],
        "text": ["a b c d e", "b c", "c d e f", None, "e f g", ""],
        "at": [0, 1, -2, 0, None, 1],
        "size": [1, 2, None, 1, 1, 0],
    }
)
ARGUMENTS: dict[str, tuple[Any, Any]] = {
    "integers": (1, 2),
    "a negative integer": (-2, None),
    "the name of a column": ("at", None),
    "columns": (pl.col("at"), pl.col("size")),
    "an integer and a column": (1, "size"),
    "a literal": (pl.lit(1), 2),
    "a null literal": (pl.lit(None), 2),
    "a computed column": (pl.col("at") + pl.col("group") - 2, 2),
    "a value of the group": (pl.col("group").first(), "size"),
    "an order of the group": (pl.col("at").sort(), 1),
    "the number of rows": (pl.len() - 2, pl.len()),
    "a value of all rows": (pl.col("at").max(), pl.col("size").min()),
}
CONTEXTS: dict[str, Callable[[pl.LazyFrame, pl.Expr], pl.LazyFrame]] = {
    "select": lambda lf, e: lf.select(e, "group"),
    "with_columns": lambda lf, e: lf.with_columns(e),
    "filter": lambda lf, e: lf.filter(e.str.len_chars() > 1).select("group"),
    "agg": lambda lf, e: lf.group_by("group", maintain_order=True).agg(e),
    "first in agg": lambda lf, e: lf.group_by("group", maintain_order=True).agg(e.first()),
    "over": lambda lf, e: lf.select(e.over("group")),
    "when": lambda lf, e: lf.select(pl.when(pl.col("group") > 1).then(e).otherwise(pl.lit("-"))),
    "sort_by": lambda lf, e: lf.sort(e, "group").select("group"),
    "of the filtered": lambda lf, e: lf.filter(pl.col("group") < 3).select(e),
}


@pytest.mark.parametrize("arguments", ARGUMENTS)
@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("run", ["in memory", "streaming"])
def test_in_every_context(arguments: str, context: str, run: str) -> None:
    offset, length = ARGUMENTS[arguments]

    def words_of_strings(offset: Any, length: Any) -> pl.Expr:
        return pl.col("text").str.split(" ").list.slice(offset, length).list.join(" ")

    def collect(lf: pl.LazyFrame) -> pl.DataFrame:
        return lf.collect(engine="streaming" if run == "streaming" else "in-memory")

    compressed = FRAME.tadoc.compress("text", rows_per_grammar=4).lazy()
    run_in = CONTEXTS[context]
    got = collect(run_in(compressed, pl.col("text").tadoc.extract(offset, length)))
    expected = words_of_strings(offset, length)
    if isinstance(offset, str | pl.Expr):
        column = pl.col(offset) if isinstance(offset, str) else offset
        expected = pl.when(column.is_not_null()).then(expected)  # of lists a null offset is 0
    assert_frame_equal(got, collect(run_in(FRAME.lazy(), expected)))


@pytest.mark.parametrize("n", [1, "n", pl.lit(1), pl.len(), pl.col("n").first(), pl.col("n").max() - 1], ids=str)
@pytest.mark.parametrize("call", ["extract", "head", "tail"])
def test_one_call_takes_all_groups(call: str, n: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[int] = []
    write = extract_module.write_texts

    def counted(corpora: Any, name: str, size: int, call: str) -> pl.Series:
        rows.append(size)
        return write(corpora, name, size, call)

    monkeypatch.setattr(extract_module, "write_texts", counted)
    df = pl.DataFrame(
        {"group": [k % 50 for k in range(200)], "row": range(200), "n": 2, "text": "a b c d"}
    ).tadoc.compress("text")
    expression = getattr(pl.col("text").tadoc, call)(n)
    for run in (
        lambda: df.group_by("group").agg(expression),
        lambda: df.lazy().group_by("group").agg(expression.get(0)).collect(engine="streaming"),
        lambda: df.select(expression.over("group")),
        lambda: df.group_by("group").agg(pl.when(pl.col("n") > 1).then(expression)),
        lambda: df.group_by("group").agg(expression.filter(pl.col("row") < 100)),
    ):
        rows.clear()
        run()
        assert sum(rows) == 200
        assert len(rows) < 10
    if not isinstance(n, str):  # one row of each group is one call too
        first = getattr(pl.col("text").first().tadoc, call)(n)
        rows.clear()
        df.group_by("group").agg(first)
        assert rows == [50]


def test_one_row_is_cut_at_many_places_in_plans() -> None:
    df = pl.DataFrame({"text": ["a b c", "d e f"]}).tadoc.compress("text")
    first = pl.col("text").first().tadoc.extract(pl.int_range(3), 1)
    assert df.select(first).to_series().to_list() == ["a", "b", "c"]
    assert df.head(1).select(pl.col("text").tadoc.extract(pl.int_range(3), 1)).to_series().to_list() == ["a", "b", "c"]
    assert df.group_by(pl.lit(1)).agg(first)["text"].to_list() == [["a", "b", "c"]]


@pytest.mark.parametrize("n", [2, -1, "at", pl.col("at") + 1, pl.lit(None)], ids=str)
def test_head_and_tail_in_contexts(n: int | str | pl.Expr) -> None:
    plain = FRAME.with_columns(pl.col("text").str.replace_all(" ", ""))
    column = plain.with_columns(pl.col("text").tadoc.compress(tokenizer=re.compile("[a-z]"))).lazy()
    for run_in in CONTEXTS.values():
        for engine in ("in-memory", "streaming"):
            for call in ("head", "tail"):
                got = run_in(column, getattr(pl.col("text").tadoc, call)(n)).collect(engine=engine)
                wanted = run_in(plain.lazy(), getattr(pl.col("text").str, call)(n)).collect(engine=engine)
                assert_frame_equal(got, wanted)


def test_series_and_numpy_integers_are_arguments() -> None:
    df = FRAME.tadoc.compress("text")
    text, column = pl.col("text").tadoc, df["text"]
    at, size = df["at"], df["size"]
    assert df.select(text.extract(at, size)).equals(df.select(text.extract("at", "size")))
    assert df.select(text.head(at)).equals(df.select(text.head("at")))
    assert df.select(text.tail(at)).equals(df.select(text.tail("at")))
    assert tadoc.extract(column, np.int64(1), np.uint8(2)).equals(tadoc.extract(column, 1, 2))
    assert df.select(text.tail(np.int32(-1)))["text"].equals(tadoc.tail(column, -1))
    with pytest.raises(ValueError, match="head: series must have as many rows as the column, or one; got column has 6"):
        df.select(text.head(at.head(2)))


def test_arguments_of_expressions() -> None:
    text = pl.col("text").tadoc
    for wrong in (1.0, True, [1]):
        with pytest.raises(TypeError, match=r"^extract: offset must be an integer"):
            text.extract(wrong)
        with pytest.raises(TypeError, match=r"^head: n must be an integer"):
            text.head(wrong)
    for call in (text.extract, text.head, text.tail):
        with pytest.raises(TypeError, match=r"must be an integer or integers by row, not None$"):
            call(None)
    with pytest.raises(ValueError, match="length must not be negative; got -1"):
        text.extract("at", -1)
    df = FRAME.tadoc.compress("text")
    with pytest.raises(TypeError, match="offset must be integers, not Float64"):
        df.select(text.extract(pl.col("at") / 2))
    with pytest.raises(ValueError, match="length must not be negative; got -2"):
        df.select(text.extract(0, "at"))
    with pytest.raises(NotCompressedError, match=r"^extract: "):
        FRAME.select(pl.col("text").str.len_bytes().tadoc.extract(0))
    assert df.lazy().select(text.extract("at"), a=text.head(), b=text.tail()).collect_schema() == {
        "text": pl.String,
        "a": pl.String,
        "b": pl.String,
    }


@pytest.mark.parametrize("name", ["logs_dmesg", "versioned_longhorn", "docs_peps"])
def test_corpora(corpus: Callable[[str], pl.DataFrame], name: str) -> None:
    text = corpus(name)["text"].head(300)
    column = tadoc.compress(text)
    words = tadoc.token_count(column)
    whole = tadoc.extract(column, 0).to_list()
    assert all(own in row for own, row in zip(whole, text.to_list(), strict=True))
    chance = random.Random(4)
    for share in (0.0, 0.3, 0.8, 1.0):
        cut = (words * share).cast(pl.Int64)
        pieces = tadoc.head(column, cut), tadoc.extract(column, cut, 10), tadoc.extract(column, cut + 10)
        for row, (own, first, middle, last) in enumerate(zip(whole, *(p.to_list() for p in pieces), strict=True)):
            at = 0
            for piece in (first, middle, last):
                at = own.index(piece, at) + len(piece)
            assert at == len(own), row
    rows = [chance.randrange(len(text)) for _ in range(20)]
    tokens = [tokenize_reference.tokenize(text[row], "words") for row in rows]
    for _ in range(20):
        offsets = [chance.randrange(-len(own[0]), len(own[0]) + 1) for own in tokens]
        got = tadoc.extract(column.gather(rows), pl.Series(offsets), 10).to_list()
        assert got == [reference_rows.extract(*own, at, 10) for own, at in zip(tokens, offsets, strict=True)]


def test_offsets_are_those_of_rows() -> None:
    """Rows that the offsets belong to, where several grammars stand mixed and some rows are null."""
    text = [None if k % 5 == 4 else f"a{k} b{k} c{k % 3} d" for k in range(60)]
    column = tadoc.compress(pl.Series(text), rows_per_grammar=10).gather([k * 7 % 60 for k in range(60)])
    texts = [text[k * 7 % 60] for k in range(60)]
    got = tadoc.extract(column, pl.Series([k % 4 for k in range(60)]), 1).to_list()
    assert got == [None if own is None else own.split()[k % 4] for k, own in enumerate(texts)]
