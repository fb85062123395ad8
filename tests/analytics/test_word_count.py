"""Word counts against ``collections.Counter`` over the words of the text."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.kernels.tokenize import reference
from tests import handmade, oracle
from tests.analytic_cases import STRATEGIES, strategies
from tests.strategies import columns

SCHEMA = {"word": pl.String, "count": pl.UInt64}


def words_of(rows: Iterable[str | None]) -> list[str]:
    return [word for row in oracle.tokenize(rows) for word in row or ()]


def expected(words: Iterable[str | None], top: int | None = None, min_count: int = 1) -> list[tuple[str, int]]:
    return oracle.word_count([list(words)], top, min_count)


@given(rows=columns)
def test_counts(engine: str, rows: list[str | None]) -> None:
    df = pl.DataFrame({"text": rows}, schema={"text": pl.String}).tadoc.compress("text")
    got = df.tadoc.word_count("text", engine=engine)
    assert got.schema == SCHEMA
    assert got.rows() == expected(words_of(rows))


@given(
    rows=columns,
    rows_per_grammar=st.integers(1, 5),
    keep=st.lists(st.booleans(), min_size=12, max_size=12),
    top=st.one_of(st.none(), st.integers(0, 9)),
    min_count=st.integers(0, 3),
    strategy=strategies,
)
def test_filtered_rows_of_many_grammars(
    engine: str,
    rows: list[str | None],
    rows_per_grammar: int,
    keep: list[bool],
    top: int | None,
    min_count: int,
    strategy: str,
) -> None:
    compressed = tadoc.compress(pl.Series(rows, dtype=pl.String), rows_per_grammar=rows_per_grammar)
    left = compressed.filter(pl.Series(keep[: len(rows)], dtype=pl.Boolean))
    got = left.tadoc.word_count(top=top, min_count=min_count, strategy=strategy, engine=engine)
    kept = [row for row, is_kept in zip(rows, keep, strict=False) if is_kept]
    assert got.schema == SCHEMA
    assert got.rows() == expected(words_of(kept), top, min_count)


@given(
    rows=columns,
    lowercase=st.booleans(),
    stopwords=st.one_of(st.none(), st.lists(st.sampled_from(["the", "The", "a", "日", "STRASSE", "straße", "", "x"]))),
    normalize=st.sampled_from([None, "upper", "first", "short", "none"]),
)
def test_normalised(
    engine: str, rows: list[str | None], lowercase: bool, stopwords: list[str] | None, normalize: str | None
) -> None:
    element = pl.element()
    expression, function = {
        None: (None, lambda word: word),
        "upper": (element.str.to_uppercase(), str.upper),
        "first": (element.str.head(1), lambda word: word[:1]),
        "short": (pl.when(element.str.len_chars() < 3).then(element), lambda word: word if len(word) < 3 else None),
        "none": (pl.when(element == "no such word").then(element), lambda word: None),
    }[normalize]
    rows = [row and re.sub(r"[^ -~日本かéßΑΣ\n]", " ", row) for row in rows]
    images = [function(word) for word in words_of(rows)]
    stop = set(stopwords or ())
    if lowercase:
        images = [image and image.lower() for image in images]
        stop = {word.lower() for word in stop}
    compressed = tadoc.compress(pl.Series(rows, dtype=pl.String), rows_per_grammar=4)
    got = compressed.tadoc.word_count(
        normalize=expression, lowercase=lowercase, stopwords=stopwords, engine=engine, min_count=1
    )
    assert got.schema == SCHEMA
    assert got.rows() == expected(image for image in images if image and image not in stop)


@pytest.mark.parametrize("tokenizer", ["whitespace", re.compile("[a-z]+", re.IGNORECASE)])
def test_other_tokenizers(engine: str, tokenizer: str | re.Pattern[str]) -> None:
    rows = ["The cat, the CAT!", "the cat,  the", None, "x 1 2"]
    got = tadoc.compress(pl.Series(rows), tokenizer=tokenizer).tadoc.word_count(engine=engine)
    words = [w for row in rows if row for w in reference.tokenize(row, tokenizer)[0]]
    assert got.rows() == expected(words)


def test_ties_are_in_code_point_order(engine: str) -> None:
    words = ["é", "z", "a", "Z", "日", "𝒳", "\uffdc", "aa", "ab", "_", "1"]
    column = tadoc.compress(pl.Series([" ".join(reversed(words))]))
    assert column.tadoc.word_count(engine=engine)["word"].to_list() == sorted(words)
    assert column.tadoc.word_count(engine=engine, top=3)["word"].to_list() == sorted(words)[:3]
    both = pl.concat([column, tadoc.compress(pl.Series([" ".join(words)]))])
    assert both.tadoc.word_count(engine=engine, top=5)["word"].to_list() == sorted(words)[:5]


def test_top_cuts_through_ties(engine: str) -> None:
    rows = [" ".join(f"w{i:03}" for i in range(200)), "w150 w150 w007"]
    for column in (tadoc.compress(pl.Series(rows)), tadoc.compress(pl.Series(rows), rows_per_grammar=1)):
        for top in (0, 1, 2, 3, 57, 199, 200, 201, 10**6):
            assert column.tadoc.word_count(engine=engine, top=top).rows() == expected(words_of(rows), top)
        assert column.tadoc.word_count(engine=engine, min_count=2, top=1).rows() == [("w150", 3)]
        assert column.tadoc.word_count(engine=engine, min_count=4).rows() == []


@pytest.mark.parametrize("rows", [[], [None], [None, None], ["", None], [" ", "..."]], ids=repr)
@pytest.mark.parametrize(
    "arguments", [{}, {"top": 3}, {"lowercase": True}, {"normalize": pl.element()}, {"stopwords": []}]
)
def test_nothing_to_count(engine: str, rows: list[str | None], arguments: dict[str, object]) -> None:
    df = pl.DataFrame({"text": rows}, schema={"text": pl.String}).tadoc.compress("text")
    for frame in (df, pl.concat([df, df], rechunk=False), df.clear()):
        got = frame.tadoc.word_count(engine=engine, **arguments)
        assert got.schema == SCHEMA
        assert got.rows() == []
        lazy = frame.lazy().tadoc.word_count(engine=engine, **arguments)
        assert lazy.collect_schema() == SCHEMA
        assert lazy.collect().schema == SCHEMA


@pytest.mark.parametrize("rows_per_grammar", [100, 1])
@pytest.mark.parametrize("arguments", [{}, {"top": 1}, {"lowercase": True}, {"min_count": 9}])
def test_arrow_types(engine: str, rows_per_grammar: int, arguments: dict[str, object]) -> None:
    for rows in (["a b A", "b c"], [None], []):
        column = tadoc.compress(pl.Series(rows, dtype=pl.String), rows_per_grammar=rows_per_grammar)
        table = tadoc.word_count(column, engine=engine, **arguments)  # type: ignore[arg-type]
        assert isinstance(table, pa.Table)
        assert table.column_names == ["word", "count"]
        word, count = table.schema.types
        assert pa.types.is_dictionary(word)
        assert word.value_type == pa.large_string()
        assert count == pa.uint64()
        table.validate(full=True)
        assert [(r["word"], r["count"]) for r in table.to_pylist()] == column.tadoc.word_count(
            engine=engine, **arguments
        ).rows()


def test_counts_beyond_32_bits(engine: str) -> None:
    """2^33 words per rule and several rows of it: counts pass 2^32 and 2^35, nothing is expanded."""
    chain = [[0, 0], *([k + 3, k + 3] for k in range(32))]  # rule 3 = a a, rule 35 = 2^33 times a
    grammar = handmade.grammar(["a", "b", "c"], [*chain, [3 + 31, 1]])
    with tadoc.Config(expansion_limit=1 << 40):
        assert grammar.expansion_lengths.tolist()[-2:] == [1 << 33, (1 << 32) + 1]
        column = handmade.column(grammar, [[35] * 5, [36, 36], [2, 1, 2, 2], None])
        for strategy in STRATEGIES:
            got = column.tadoc.word_count(strategy=strategy, engine=engine).rows()
            assert got == [("a", (5 << 33) + (2 << 32)), ("b", 3), ("c", 3)]
        assert column.tadoc.word_count(engine=engine, lowercase=True, top=1).rows() == got[:1]
        again = pl.concat([column, handmade.column(handmade.grammar(["b", "z"]), [[0, 1]])])
        assert again.tadoc.word_count(engine=engine).rows() == [got[0], ("b", 4), ("c", 3), ("z", 1)]
        assert column.tadoc.info()["words"].item() == sum(count for _, count in got)


def test_counts_that_would_wrap_are_refused(engine: str) -> None:
    with tadoc.Config(expansion_limit=1 << 56):
        column = handmade.column(handmade.grammar(["a"], [[k, k] for k in range(56)]), [[56]] * 256)
        with pytest.raises(LimitExceededError, match="more words than 64 bits can count"):
            column.tadoc.word_count(engine=engine)
        assert column.head(127).tadoc.word_count(engine=engine).rows() == [("a", 127 << 56)]


def test_a_rule_over_the_limit_is_refused(engine: str) -> None:
    grammar = handmade.grammar(["a"], [[k, k] for k in range(60)])
    with pytest.raises(LimitExceededError, match="expansion_limit"):
        handmade.column(grammar, [[60]]).tadoc.word_count(engine=engine)


def test_words_in_any_order_from_outside(engine: str) -> None:
    """Another program need not number words by frequency."""
    column = handmade.column(handmade.grammar(["b", "c", "a", "unused"], [[1, 2]]), [[0, 4, 4], [1]])
    assert column.tadoc.word_count(engine=engine).rows() == [("c", 3), ("a", 2), ("b", 1)]


def test_all_calls_agree(engine: str) -> None:
    rows = ["The cat saw the dog", None, "a dog ran", "THE END"] * 5
    df = pl.DataFrame({"text": rows, "n": range(20)}).tadoc.compress("text", rows_per_grammar=6)
    arguments = {
        "top": 4,
        "min_count": 2,
        "normalize": pl.element().str.strip_suffix("s"),
        "lowercase": True,
        "stopwords": iter(["a"]),
        "engine": engine,
    }
    stop = ["a"]
    frame = df.tadoc.word_count("text", **{**arguments, "stopwords": stop})
    assert len(frame) == 4
    for other in (
        df.tadoc.word_count(**{**arguments, "stopwords": iter(stop)}),
        df.lazy().tadoc.word_count("text", **{**arguments, "stopwords": iter(stop)}).collect(),
        df.lazy().tadoc.word_count(**{**arguments, "stopwords": frozenset(stop)}).collect(),
        df["text"].tadoc.word_count(**{**arguments, "stopwords": set(stop)}),
        pl.from_arrow(tadoc.word_count(df["text"], **{**arguments, "stopwords": tuple(stop)})).cast(SCHEMA),
    ):
        assert frame.equals(other)


def test_a_lazy_call_collected_twice_gives_the_same(engine: str) -> None:
    lf = pl.LazyFrame({"text": ["a b", "b c"]}).tadoc.compress("text")
    counts = lf.tadoc.word_count(stopwords=(word for word in ["c"]), engine=engine)
    assert counts.collect().rows() == counts.collect().rows() == [("b", 2), ("a", 1)]


class TestArguments:
    COLUMN = handmade.column(handmade.grammar(["a", "b"]), [[0, 1]])

    def test_stopwords_as_series_or_array(self) -> None:
        for stopwords in (pl.Series(["a"]), np.array(["a"]), np.array(["a", "z"]), pl.Series([], dtype=pl.String)):
            got = tadoc.word_count(self.COLUMN, stopwords=stopwords)
            assert got["word"].to_pylist() == [word for word in ("a", "b") if word not in list(stopwords)]

    def test_top(self) -> None:
        with pytest.raises(ValueError, match="top=-1 must be at least 0"):
            tadoc.word_count(self.COLUMN, top=-1)

    def test_strategy(self) -> None:
        with pytest.raises(ValueError, match='strategy=\'sideways\': use "auto", "top_down" or "bottom_up"'):
            tadoc.word_count(self.COLUMN, strategy="sideways")

    @pytest.mark.parametrize("stopwords", ["the", "a b"])
    def test_stopwords_as_one_string(self, stopwords: str) -> None:
        for call in (
            lambda: tadoc.word_count(self.COLUMN, stopwords=stopwords),
            lambda: self.COLUMN.to_frame().lazy().tadoc.word_count(stopwords=stopwords).collect(),
        ):
            with pytest.raises(TypeError, match=rf'is one string; pass a list of words: \["{stopwords}"\]'):
                call()

    @pytest.mark.parametrize("lowercase", ["yes", 1, None])
    def test_lowercase_that_is_no_bool(self, lowercase: object) -> None:
        for call in (
            lambda: tadoc.word_count(self.COLUMN, lowercase=lowercase),  # type: ignore[arg-type]
            lambda: self.COLUMN.to_frame().lazy().tadoc.term_vector(lowercase=lowercase),  # type: ignore[attr-defined]
            lambda: tadoc.count_phrase(self.COLUMN, "a", lowercase=lowercase),  # type: ignore[arg-type]
            lambda: pl.col("text").tadoc.bm25("a", lowercase=lowercase),  # type: ignore[attr-defined]
            lambda: tadoc.build_index(self.COLUMN, lowercase=lowercase),  # type: ignore[arg-type]
        ):
            with pytest.raises(TypeError, match=rf"lowercase={lowercase!r} must be True or False"):
                call()

    @pytest.mark.parametrize("normalize", ["lowercase", str.lower, pl.Series(["a"])])
    def test_normalize_that_is_no_expression(self, normalize: object) -> None:
        with pytest.raises(TypeError, match=r"normalize is .*, not a Polars expression"):
            tadoc.word_count(self.COLUMN, normalize=normalize)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        "normalize",
        [
            pl.element().str.len_bytes(),
            pl.element().str.split("x"),
            pl.element().filter(pl.element() == "a"),
            pl.element().first(),
            pl.element().is_null(),
        ],
    )
    def test_normalize_that_gives_something_else(self, normalize: pl.Expr) -> None:
        with pytest.raises(ValueError, match="it must give one String"):
            tadoc.word_count(self.COLUMN, normalize=normalize)

    @pytest.mark.parametrize(
        ("normalize", "read"),
        [
            (pl.col("k").str.to_lowercase(), '"k"'),
            (pl.element() + pl.col("k") + pl.col("l"), '"k", "l"'),
            (pl.all().str.head(1), "several columns"),
            (pl.col("a", "b"), "several columns"),
        ],
    )
    def test_normalize_over_columns(self, normalize: pl.Expr, read: str) -> None:
        for call in (
            lambda: tadoc.word_count(self.COLUMN, normalize=normalize),
            lambda: self.COLUMN.to_frame().lazy().tadoc.term_vector(normalize=normalize),
            lambda: pl.col("text").tadoc.sequence_count(normalize=normalize),
        ):
            with pytest.raises(ValueError, match=rf"^normalize reads {read} of a frame.*; write pl.element\(\)"):
                call()

    def test_normalize_to_one_word(self) -> None:
        got = tadoc.word_count(self.COLUMN, normalize=pl.lit("same"))
        assert got.to_pylist() == [{"word": "same", "count": 2}]


def test_counts_beyond_64_bits_over_several_grammars() -> None:
    """Each grammar's counts fit, their sum does not: an error, not a count that wrapped."""
    with tadoc.Config(expansion_limit=1 << 56):
        grammars = [handmade.grammar(["a", other], [[0, 0], *([k + 2, k + 2] for k in range(55))]) for other in "bcd"]
        rows = [[57]] * 100  # the last rule: 2^56 words
        column = pl.concat([handmade.column(grammar, rows) for grammar in grammars])
        for call in (tadoc.word_count, tadoc.sort, tadoc.sequence_count, tadoc.cooccurrence, tadoc.term_vector):
            with pytest.raises(LimitExceededError, match="than 64 bits can count"):
                call(column)
        assert tadoc.word_count(column.head(100))["count"].to_pylist() == [100 << 56]
