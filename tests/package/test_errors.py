"""Each wrong call gives a message that says what was wrong, where, and what to do."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import polars_tadoc as tadoc
from polars_tadoc.errors import (
    TEXT_CALLS,
    ColumnMissingError,
    DeviceMemoryError,
    EngineUnavailableError,
    InvalidDictionaryError,
    InvalidGrammarError,
    InvalidPassageSetError,
    LimitExceededError,
    NotCompressedError,
    TadocError,
    nearest,
)
from polars_tadoc.sklearn import TadocVectorizer

PLAIN = pl.DataFrame({"text": ["a b"], "year": [1]})
ONE = PLAIN.tadoc.compress("text")
TWO = ONE.with_columns(abstract="text")
CALLS: dict[str, Callable[..., Any]] = {
    "word_count": lambda f, *c: f.tadoc.word_count(*c),
    "info": lambda f, *c: f.tadoc.info(*c),
    "decompress": lambda f, *c: f.tadoc.decompress(*c),
}


@pytest.fixture(params=["eager", "lazy"])
def lazily(request: pytest.FixtureRequest) -> Callable[[pl.DataFrame], Any]:
    return (lambda df: df.lazy()) if request.param == "lazy" else (lambda df: df)


@pytest.mark.parametrize("call", CALLS)
class TestColumns:
    """A lazy call speaks up when it is made, not when it is collected."""

    def test_string_column(self, call: str, lazily: Any) -> None:
        if call in TEXT_CALLS:
            return assert_frame_equal(*(CALLS[call](df.lazy(), "text").collect() for df in (PLAIN, ONE)))
        with pytest.raises(NotCompressedError) as caught:
            CALLS[call](lazily(PLAIN), "text")
        mend = 'compress it first: df.with_columns(pl.col("text").tadoc.compress())'
        mend = "it is text already" if call == "decompress" else mend
        assert str(caught.value) == f'{call}: column "text" is String, not a TADOC column; {mend}'

    def test_a_lost_type_tag(self, call: str, lazily: Any) -> None:
        lost = tadoc.as_storage(tadoc.compress(pl.Series("text", ["a b"]))).struct.unnest()
        lost = lost.with_columns(pl.col("grammar").cast(pl.String).cast(pl.Categorical)).to_struct("text").to_frame()
        with pytest.raises(NotCompressedError, match=r"type was lost on the way: restore it with tadoc\.as_text\(df\)"):
            CALLS[call](lazily(lost), "text")
        assert tadoc.as_text(lost).tadoc.decompress().item() == "a b"

    def test_a_lost_type_of_nulls(self, call: str, lazily: Any) -> None:
        nulls = pl.DataFrame({"text": pl.Series([None, None], dtype=pl.String)}).tadoc.compress("text")
        lost = nulls.select(pl.col("text").reverse())
        assert not tadoc.is_tadoc(lost.schema["text"])
        with pytest.raises(NotCompressedError, match=r"type was lost on the way: restore it with tadoc\.as_text\(df\)"):
            CALLS[call](lazily(lost), "text")
        assert tadoc.as_text(lost).tadoc.decompress()["text"].to_list() == [None, None]

    def test_lists_of_rows(self, call: str, lazily: Any) -> None:
        lists = ONE.group_by("year").agg("text")
        with pytest.raises(NotCompressedError, match=r"explode it, or .*list\.eval\(pl\.element\(\)\.tadoc…\)"):
            CALLS[call](lazily(lists), "text")
        assert lists.select(pl.col("text").list.eval(pl.element().tadoc.head(1))).item().to_list() == ["a"]

    def test_a_column_by_expression(self, call: str, lazily: Any) -> None:
        with pytest.raises(TypeError, match="name the column by a string"):
            CALLS[call](lazily(ONE), pl.col("text"))

    def test_number_column(self, call: str, lazily: Any) -> None:
        with pytest.raises(
            NotCompressedError, match=f'^{call}: column "year" is Int64.*(only String columns|neither String)'
        ):
            CALLS[call](lazily(ONE), "year")

    def test_misspelt(self, call: str, lazily: Any) -> None:
        with pytest.raises(ColumnMissingError) as caught:
            CALLS[call](lazily(ONE), "txt")
        assert str(caught.value) == f'{call}: there is no column "txt"; did you mean "text"?'

    def test_nothing_near(self, call: str, lazily: Any) -> None:
        with pytest.raises(ColumnMissingError, match=r'there is no column "zzzz"; the columns are "text", "year"$'):
            CALLS[call](lazily(ONE), "zzzz")

    def test_no_columns_at_all(self, call: str, lazily: Any) -> None:
        with pytest.raises(ColumnMissingError, match="the frame has no columns"):
            CALLS[call](lazily(pl.DataFrame()), "text")

    def test_many_columns_are_not_all_listed(self, call: str, lazily: Any) -> None:
        wide = pl.DataFrame({f"c{i}": [i] for i in range(50)})
        with pytest.raises(ColumnMissingError, match=r'"c7", …$'):
            CALLS[call](lazily(wide), "zzzz")

    def test_none_named_and_none_there(self, call: str, lazily: Any) -> None:
        with pytest.raises(
            NotCompressedError, match=f"^{call}: the frame has no TADOC column; (compress one first|name the column)"
        ):
            CALLS[call](lazily(PLAIN))

    def test_none_named_and_several_there(self, call: str, lazily: Any) -> None:
        with pytest.raises(NotCompressedError, match=f"^{call}: name one of the compressed columns 'text', 'abstract'"):
            CALLS[call](lazily(TWO))


def test_compress_of_a_missing_column(lazily: Any) -> None:
    with pytest.raises(ColumnMissingError, match='compress: there is no column "txt"; did you mean "text"'):
        lazily(PLAIN).tadoc.compress("txt")


@pytest.mark.parametrize("call", [tadoc.word_count, tadoc.info], ids=["word_count", "info"])
def test_functions_name_themselves(call: Any) -> None:
    with pytest.raises(NotCompressedError, match=f'^{call.__name__}: column "year" is Int64'):
        call(PLAIN["year"])


def test_decompress_names_itself() -> None:
    with pytest.raises(NotCompressedError, match=r'^decompress: column "text" is String'):
        tadoc.decompress(PLAIN["text"])


def test_errors_in_expressions_keep_their_class() -> None:
    with pytest.raises(NotCompressedError, match='column "text" is String'):
        PLAIN.select(pl.col("text").tadoc.decompress())
    with pytest.raises(TypeError, match='column "year" is Int64'):
        PLAIN.lazy().select(pl.col("year").tadoc.compress()).collect()
    with pytest.raises(ValueError, match="tokenizer='nonsense'"):
        PLAIN.select(pl.col("text").tadoc.compress(tokenizer="nonsense"))


@pytest.mark.parametrize("name", ["cuda", "GPU", "", 3])
def test_unknown_engine(name: Any) -> None:
    with pytest.raises(ValueError, match='use "auto", "cpu" or "gpu"'):
        tadoc.word_count(ONE["text"], engine=name)
    with pytest.raises(ValueError, match='use "auto", "cpu" or "gpu"'):
        ONE.lazy().tadoc.word_count(engine=name).collect()


@pytest.mark.skipif("gpu" in tadoc.testing.engines(), reason="there is a GPU here")
class TestWithoutGpu:
    def test_gpu_never_falls_back_silently(self) -> None:
        for call in (
            lambda: tadoc.word_count(ONE["text"], engine="gpu"),
            lambda: ONE.tadoc.word_count(engine="gpu"),
            lambda: ONE.lazy().tadoc.word_count(engine="gpu").collect(),
            lambda: ONE.clear().tadoc.word_count(engine="gpu"),
        ):
            with pytest.raises(EngineUnavailableError, match='engine="gpu": '):
                call()

    def test_gpu_by_default_never_falls_back_silently(self) -> None:
        with tadoc.Config(engine="gpu"), pytest.raises(EngineUnavailableError, match='engine="gpu": '):
            ONE.tadoc.word_count()
        with tadoc.Config(engine="gpu"):
            assert ONE.tadoc.word_count(engine="cpu").rows() == [("a", 1), ("b", 1)]

    def test_auto_falls_back(self) -> None:
        assert ONE.tadoc.word_count(engine="auto").rows() == [("a", 1), ("b", 1)]


def test_hierarchy() -> None:
    for error, builtin in (
        (NotCompressedError, TypeError),
        (ColumnMissingError, KeyError),
        (InvalidGrammarError, ValueError),
        (InvalidDictionaryError, ValueError),
        (InvalidPassageSetError, ValueError),
        (LimitExceededError, ValueError),
        (EngineUnavailableError, RuntimeError),
        (DeviceMemoryError, EngineUnavailableError),
    ):
        assert issubclass(error, TadocError)
        assert issubclass(error, builtin)


@pytest.mark.parametrize("call", [tadoc.word_count, tadoc.info, tadoc.decompress, tadoc.compress])
@pytest.mark.parametrize("value", [ONE, ONE.lazy(), ["a b"], "text", pl.col("text")], ids=lambda v: type(v).__name__)
def test_what_is_no_series(call: Any, value: object) -> None:
    with pytest.raises(TypeError, match="Series"):
        call(value)


@pytest.mark.parametrize("value", [ONE, ONE.lazy(), ["a b"], "text", pl.col("text")], ids=lambda v: type(v).__name__)
def test_like_what_is_no_series(value: Any) -> None:
    with pytest.raises(TypeError) as caught:
        tadoc.compress(PLAIN["text"], like=value)
    assert str(caught.value).startswith('compress: like= takes a compressed Series, such as df["text"], not ')


@pytest.mark.parametrize("option", ["lossless", "progress"])
@pytest.mark.parametrize("value", ["no", 0, 1.0])
def test_switches_are_bools(option: str, value: Any, lazily: Any) -> None:
    with pytest.raises(TypeError, match=f"^{option}={value!r} must be True or False$"):
        lazily(PLAIN).tadoc.compress("text", **{option: value})


@pytest.mark.parametrize("value", [True, 1.5, "7"])
def test_rows_per_grammar_is_an_integer(value: Any, lazily: Any) -> None:
    with pytest.raises(ValueError, match=f"^rows_per_grammar={value!r} must be an integer of at least 1$"):
        lazily(PLAIN).tadoc.compress("text", rows_per_grammar=value)


def public_calls() -> list[str]:
    """Functions that take a compressed column, or a String one, first."""
    calls = [name for name in tadoc.__all__ if callable(getattr(tadoc, name)) and name.islower() and name != "explain"]
    return [
        name
        for name in calls
        if next(iter(inspect.signature(getattr(tadoc, name)).parameters), None) in ("column", "text")
    ]


@pytest.mark.parametrize("call", public_calls())
@pytest.mark.parametrize("wrong", [ONE, pl.col("text")], ids=["frame", "expression"])
def test_what_is_advised_is_there(call: str, wrong: Any) -> None:
    given: dict[str, Any] = {"extract": {"offset": 0}, "sequence_count": {"n": 2}, "cooccurrence": {"window": 2}}
    given |= {"count_phrase": {"phrase": "a"}, "contains_phrase": {"phrase": "a"}, "contains_any": {"phrases": ["a"]}}
    given |= {name: {"pattern": "a"} for name in ("contains", "count_matches", "find", "extract_all")}
    given |= {"bm25": {"query": "a"}, "twig_filter": {"queries": {"a": "//a"}}}
    given |= {name: {"reference": pl.Series(["a"])} for name in ("overlap", "overlap_share", "overlaps")}
    given |= {name: {"phrase": "a"} for name in ("concordance", "positions")}
    with pytest.raises(TypeError, match=f"^{call} takes a Polars Series, not (DataFrame|Expr); ") as caught:
        getattr(tadoc, call)(wrong, **given.get(call, {}))
    advised = re.findall(r'(df|pl\.col\("text"\))\.tadoc\.(\w+)\(', str(caught.value))
    assert advised
    for of, name in advised:
        assert hasattr(ONE.tadoc if of == "df" else pl.col("text").tadoc, name)
    if isinstance(wrong, pl.Expr) and hasattr(pl.col("text").tadoc, call):
        assert advised == [('pl.col("text")', call)]


TEXTS = pl.DataFrame({"text": ["to be", "to do"]}).tadoc.compress("text")


MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "a row's call on a frame": (
        lambda: ONE.tadoc.count_phrase("text", "a"),
        'DataFrame.tadoc has no count_phrase; write pl.col("text").tadoc.count_phrase(…)',
    ),
    "a plan's call on a frame": (
        lambda: ONE.tadoc.sink_parquet("a.parquet"),
        "DataFrame.tadoc has no sink_parquet; write df.lazy().tadoc.sink_parquet(…)",
    ),
    "a frame's call on a plan": (
        lambda: ONE.lazy().tadoc.build_index("text"),
        "LazyFrame.tadoc has no build_index; write lf.collect().tadoc.build_index(…)",
    ),
    "a frame's call on an expression": (
        lambda: pl.col("text").tadoc.near_duplicates(),
        "Expr.tadoc has no near_duplicates; write df.tadoc.near_duplicates(…)",
    ),
    "a plan's call on a series": (
        lambda: ONE["text"].tadoc.sink_packed("a.parquet"),
        "Series.tadoc has no sink_packed; write series.to_frame().lazy().tadoc.sink_packed(…)",
    ),
    "another spelling": (
        lambda: ONE.tadoc.wordcount("text"),
        "DataFrame.tadoc has no wordcount; did you mean word_count?",
    ),
    "a call that is nowhere": (lambda: ONE.tadoc.zzz(), "DataFrame.tadoc has no zzz"),
    "a pandas series": (
        lambda: tadoc.word_count(PLAIN["text"].to_pandas()),  # type: ignore[arg-type]
        "word_count takes a Polars Series, not pandas.Series; convert it: pl.from_pandas(…)",
    ),
    "a frame of passages": (
        lambda: tadoc.PassageSet(ONE),  # type: ignore[arg-type]
        'PassageSet takes a Polars Series, not DataFrame; pass df["text"]',
    ),
    "a frame to explain": (
        lambda: tadoc.explain(ONE, "word_count"),  # type: ignore[arg-type]
        'explain takes a Polars Series, not DataFrame; pass df["text"]',
    ),
    "a frame as reference": (
        lambda: ONE.tadoc.overlap("text", ONE),
        "overlap: reference is DataFrame, not a Series of texts or a PassageSet; pass a column of it: "
        'reference["text"]',
    ),
    "a list as reference": (
        lambda: ONE.tadoc.overlap("text", ["a"]),
        "overlap: reference is list, not a Series of texts or a PassageSet; write pl.Series([…])",
    ),
    "a frame of stop words": (
        lambda: ONE.tadoc.word_count("text", stopwords=ONE),
        'stopwords is a DataFrame, not a list of words; pass a column of it: frame["word"]',
    ),
    "a path as index": (
        lambda: ONE.tadoc.append_to("a.index", "text"),
        "append_to: index is str, not an Index; build_index or load_index(path) gives one",
    ),
    "a phrase without its column": (
        lambda: ONE.tadoc.concordance("to be"),
        'concordance: the phrase is missing after the column; write concordance("text", phrase), or, if one column is '
        "compressed, concordance(phrase=phrase)",
    ),
    "packed rows": (
        lambda: TEXTS.tadoc.pack().tadoc.word_count("text"),
        'word_count: column "text" is packed, not a TADOC column; read the file by tadoc.scan_packed(path), or unpack '
        'the rows: df.tadoc.unpack("text")',
    ),
    "packed rows without a name": (
        lambda: TEXTS.tadoc.pack().tadoc.word_count(),
        'word_count: column "text" is packed, not a TADOC column; read the file by tadoc.scan_packed(path), or unpack '
        'the rows: df.tadoc.unpack("text")',
    ),
    "a frame of documents": (
        lambda: TadocVectorizer().fit(PLAIN.to_pandas()),
        'TadocVectorizer: documents are a DataFrame; pass one of its columns: frame["text"]',
    ),
    "one length of n-grams": (
        lambda: TadocVectorizer(ngram_range=2).fit(["to be"]),  # type: ignore[arg-type]
        "TadocVectorizer: ngram_range=2: give (least, most) with 1 <= least <= most",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_frequent_mistakes_are_told_what_to_write(mistake: str) -> None:
    call, said = MISTAKES[mistake]
    with pytest.raises((TypeError, ValueError, AttributeError)) as caught:
        call()
    assert str(caught.value) == said


TAKES_A_PATH: dict[str, Callable[[Any], object]] = {
    "write_packed": lambda path: TEXTS.tadoc.write_packed(path),
    "sink_packed": lambda path: TEXTS.lazy().tadoc.sink_packed(path),
    "sink_parquet": lambda path: TEXTS.lazy().tadoc.word_count("text").tadoc.sink_parquet(path),
    "sink_index": lambda path: TEXTS.lazy().tadoc.sink_index(path),
    "save": lambda path: tadoc.build_index(TEXTS["text"]).save(path),
    "load_index": tadoc.load_index,
    "Dictionary.save": lambda path: tadoc.Dictionary.from_words(pl.Series(["to"])).save(path),
    "Dictionary.load": tadoc.Dictionary.load,
    "TwigSet.save": lambda path: tadoc.TwigSet({"a": "//a"}).save(path),
    "TwigSet.load": tadoc.TwigSet.load,
}


@pytest.mark.parametrize("call", TAKES_A_PATH)
def test_what_is_no_path_of_this_machine(call: str) -> None:
    with pytest.raises(ValueError, match=rf'^{call}: path="ftp://bucket/a"(: unknown scheme| is an address)'):
        TAKES_A_PATH[call]("ftp://bucket/a")
    with pytest.raises(TypeError, match=rf"^{call}: path is int, not a path: a str or an os\.PathLike"):
        TAKES_A_PATH[call](5)


HALF = "\ud800"
"""Half of a character: Python's strings may have it, UTF-8 and Polars may not."""


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda df: df.select(pl.col("text").tadoc.eq(HALF)), "eq: other"),
        (lambda df: df["text"].tadoc.eq(HALF), "eq: other"),
        (lambda df: df.lazy().select(pl.col("text").tadoc.eq(HALF)).collect(), "eq: other"),
        (lambda df: df.tadoc.word_count("text", stopwords=[HALF]), r"stopwords: '\\ud800'"),
        (lambda df: df.select(pl.col("text").tadoc.contains_any(["a", HALF])), r"contains_any: phrases\[1\]"),
        (lambda df: df.select(pl.col("text").tadoc.bm25(HALF)), "bm25: query"),
        (lambda df: df.tadoc.build_index("text").search([HALF]), "search: query 0"),
    ],
)
def test_half_a_character(call: Callable[[pl.DataFrame], Any], said: str) -> None:
    df = pl.DataFrame({"text": ["to be", "or not"]}).tadoc.compress("text")
    with pytest.raises(ValueError, match=rf"^{said} is not text: surrogates not allowed"):
        call(df)


def test_normalize_that_fails_on_a_word() -> None:
    words = [*(str(number) for number in range(1_000)), "seven", *map(str, range(1_000))]
    df = pl.DataFrame({"text": [" ".join(words)]}).tadoc.compress("text")
    numbers = pl.element().cast(pl.Int64).cast(pl.String)
    for call in (df.tadoc.word_count, df.tadoc.build_index, df.tadoc.term_vector):
        with pytest.raises(
            ValueError, match=rf"^{call.__name__}: column \"text\": normalize fails on the word 'seven': .*strict=False"
        ):
            call("text", normalize=numbers)
    assert df.tadoc.word_count("text", normalize=pl.element().cast(pl.Int64, strict=False).cast(pl.String)).height


NUMBERS = pl.element().cast(pl.Int64).cast(pl.String)


@pytest.mark.parametrize(
    ("said", "call"),
    {
        'word_count: column "text": ': lambda bad, _: bad["text"].tadoc.word_count(normalize=NUMBERS),
        "word_count: ": lambda bad, _: bad.lazy().tadoc.word_count("text", normalize=NUMBERS).collect(),
        'count_phrase: column "text": ': lambda bad, _: tadoc.count_phrase(bad["text"], "three", normalize=NUMBERS),
        'bm25: column "text": ': lambda bad, _: tadoc.bm25(bad["text"], "three", normalize=NUMBERS),
        'append: column "text": ': lambda bad, index: index.append(bad["text"]),
        "search: ": lambda _, index: index.search("three"),
        "top: ": lambda _, index: index.top("three"),
        "explain: ": lambda _, index: index.explain("three", 1),
        "snippets: ": lambda _, index: index.snippets(index.search("1"), "three"),
    }.items(),
)
@pytest.mark.parametrize("is_saved", [False, True])
def test_normalize_that_fails_names_its_call(
    said: str, call: Callable[[pl.DataFrame, tadoc.Index], Any], is_saved: bool, tmp_path: Path
) -> None:
    good, bad = (pl.DataFrame({"text": [text, "4 5"]}).tadoc.compress("text") for text in ("1 2", "1 three"))
    index = good.tadoc.build_index("text", normalize=NUMBERS)
    if is_saved:
        index.save(tmp_path / "index")
        index = tadoc.load_index(tmp_path / "index")
    with pytest.raises(ValueError, match="^" + re.escape(said)) as told:
        call(bad, index)
    assert "normalize fails on the word 'three': " in str(told.value)
    assert str(told.value).count(said) == 1


def test_far_names_are_not_suggested_beside_a_close_one() -> None:
    assert nearest("lenght", ["engine", "length", "min_count"]) == ["length"]
    assert nearest("stopword", ["top", "stopwords"]) == ["stopwords"]
    assert nearest("texts", ["text", "text2"]) == ["text", "text2"]
    assert nearest("zzz", ["text"]) == []
