"""Phrases in compressed columns, against plain Python over each row's words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from typing import Any
from unittest.mock import patch

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.compress.compress import named_tokenizer
from polars_tadoc.errors import InvalidGrammarError, LimitExceededError, NotCompressedError
from polars_tadoc.kernels.host.rows import phrases_reference as reference
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, tokenize
from polars_tadoc.kernels.traverse.reference import expand
from polars_tadoc.rows import phrases as phrases_module
from polars_tadoc.rows.phrases import contains_any, contains_phrase, count_phrase
from tests import handmade, oracle, strategies
from tests.analytic_cases import Case, cases
from tests.strategies import texts

Documents = Sequence[Sequence[str] | None]

OTHERS = ["zz", "b", "the cat sat"]
"""Phrases of which most are nowhere."""


def words_of(text: str, tokenizer: Tokenizer) -> list[str]:
    """A text's words by the tokenizer that cuts columns."""
    tokens = tokenize(pl.Series([text]), tokenizer, lossless=False)
    vocabulary = tokens.vocabulary.to_pylist()
    return [vocabulary[word] for word in tokens.sequence.tolist() if word != SEPARATOR]


def expected(documents: Documents, phrases: Sequence[Sequence[str]]) -> tuple[list[int | None], list[bool | None]]:
    """How often each row holds the first phrase, and whether it holds any; None for a null row."""
    rows = [[] if words is None else words for words in documents]
    counts, found = reference.count_phrase(rows, phrases[0]), reference.contains_any(rows, phrases)
    return (
        [None if words is None else count for words, count in zip(documents, counts, strict=True)],
        [None if words is None else own for words, own in zip(documents, found, strict=True)],
    )


def check(column: pl.Series, documents: Documents, phrases: Sequence[Sequence[str]], **arguments: Any) -> None:
    """All three calls against the definition; phrases are words of the rows as they were cut and normalised."""
    joined = [" ".join(phrase) for phrase in phrases]
    counts, any_of = expected(documents, phrases)
    _, first = expected(documents, phrases[:1])
    got = count_phrase(column, joined[0], **arguments)
    assert (got.to_list(), got.dtype, got.name) == (counts, pl.UInt64, column.name)
    got = contains_phrase(column, joined[0], **arguments)
    assert (got.to_list(), got.dtype, got.name) == (first, pl.Boolean, column.name)
    got = contains_any(column, joined, **arguments)
    assert (got.to_list(), got.dtype, got.name) == (any_of, pl.Boolean, column.name)


def drawn_phrases(data: st.DataObject, documents: Documents, known: Sequence[str] = ("a", "zz")) -> list[list[str]]:
    """Phrases that stand in a row, and some of words that do."""
    there = [words for words in documents if words]
    vocabulary = sorted(set(chain(known, *there)))
    of_words = st.lists(st.sampled_from(vocabulary), min_size=1, max_size=5)
    if not there:
        return data.draw(st.lists(of_words, min_size=1, max_size=3))

    def cut(words: Sequence[str], start: int, size: int) -> list[str]:
        start %= len(words)
        return list(words[start : start + size])

    of_rows = st.builds(cut, st.sampled_from(there), st.integers(0, 99), st.integers(1, 12))
    return data.draw(st.lists(st.one_of(of_rows, of_rows, of_words), min_size=1, max_size=4))


@given(case=cases(), data=st.data())
def test_columns(case: Case, data: Any) -> None:
    check(case.column, case.documents, drawn_phrases(data, case.documents))


@pytest.mark.parametrize("threads", [1, 2, 16])
@given(made=st.lists(cases(), min_size=1, max_size=3), data=st.data())
def test_grammars_side_by_side(threads: int, made: list[Case], data: Any) -> None:
    column = pl.concat([own.column.alias("text") for own in made])
    documents = list(chain.from_iterable(own.documents for own in made))
    phrases = drawn_phrases(data, documents)
    with tadoc.Config(threads=threads), patch.object(phrases_module, "TOGETHER", 0):
        check(column, documents, phrases)
        backwards = range(len(documents))[::-1]
        check(column.gather(backwards), documents[::-1], phrases)


ALIKE = pl.element().str.replace_many(["cat", "é"], ["dog", "e"])


@given(case=cases(), data=st.data(), lowercase=st.booleans(), normalize=st.booleans(), stop=st.booleans())
def test_normalised(case: Case, data: Any, lowercase: bool, normalize: bool, stop: bool) -> None:
    documents = case.documents
    arguments: dict[str, Any] = {}
    if normalize:
        arguments["normalize"] = ALIKE
        documents = oracle.normalise(documents, lambda word: word.replace("cat", "dog").replace("é", "e"))
    if lowercase:
        arguments["lowercase"] = True
        # Polars' lower case of single words, which knows no final sigma
        lower: Callable[[str], str] = lambda word: pl.Series([word]).str.to_lowercase()[0]  # noqa: E731
        documents = oracle.normalise(documents, lower)
    if stop:
        arguments["stopwords"] = ["the", "b", "日"]
        documents = oracle.normalise(documents, lambda word: None if word in ("the", "b", "日") else word)
    phrases = drawn_phrases(data, documents)
    phrases = [own for own in phrases if oracle.tokenize([" ".join(own)]) == [own]]  # a normalised word may be two
    if phrases and not (stop and any(set(own) <= {"the", "b", "日"} for own in phrases)):
        stopped = {"the", "b", "日"} if stop else set()
        counted = [[word for word in own if word not in stopped] for own in phrases]
        joined = [" ".join(own) for own in phrases]
        counts, any_of = expected(documents, counted)
        assert count_phrase(case.column, joined[0], **arguments).to_list() == counts
        assert contains_any(case.column, joined, **arguments).to_list() == any_of


@given(made=strategies.grammars(), data=st.data())
def test_handmade_grammars(made: Any, data: Any) -> None:
    size, bodies, level_offsets, rows = made
    grammar = handmade.grammar(handmade.words(size), bodies, level_offsets)
    documents = [
        [f"w{word}" for symbol in row for word in expand(symbol, size, grammar.rule_offsets, grammar.symbols)]
        for row in rows
    ]
    column = handmade.column(grammar, rows) if rows else handmade.column(grammar, [[0]]).head(0)
    phrases = drawn_phrases(data, documents, ["w0", "w1"])
    check(column, documents, phrases)
    stopped = data.draw(st.sampled_from(["w0", "w1"]))
    kept = [[word for word in own if word != stopped] for own in phrases]
    if all(kept):
        left = oracle.normalise(documents, lambda word: None if word == stopped else word)
        check(column, left, kept, stopwords=[stopped])


@given(phrases=st.lists(texts, min_size=1, max_size=3), data=st.data())
@pytest.mark.parametrize("name", ["words", "whitespace", re.compile("[a-z]+|[^a-z ]")])
def test_phrases_are_cut_as_text_is(name: Any, phrases: list[str], data: Any) -> None:
    others = data.draw(st.lists(texts, max_size=3))
    rows = [text + " " + other for text in phrases for other in [*others, ""]]
    column = tadoc.compress(pl.Series("text", rows), tokenizer=name)
    (corpus, *_) = tadoc.column.split(column)
    tokenizer = named_tokenizer(corpus.grammar)
    cut = [words_of(phrase, tokenizer) for phrase in phrases]
    documents = [words_of(row, tokenizer) for row in rows]
    if cut[0]:
        assert count_phrase(column, phrases[0]).to_list() == expected(documents, cut)[0]
    else:
        with pytest.raises(ValueError, match="has no word"):
            count_phrase(column, phrases[0])
    if all(own or phrase.strip() for own, phrase in zip(cut, phrases, strict=True)):
        found = expected(documents, kept)[1] if (kept := [own for own in cut if own]) else [False] * len(rows)
        assert contains_any(column, phrases).to_list() == found
    else:
        with pytest.raises(ValueError, match="has no word"):
            contains_any(column, phrases)


def test_phrases_of_xml_are_content_of_an_element() -> None:
    rows = ["<a>to be, <b>or not</b></a>", "<a>to be or, not</a>", None]
    column = tadoc.compress(pl.Series("xml", rows), tokenizer="xml")
    expected = {"to be,": [True, True, None], "be <b> or": [True, False, None], "or, not": [True, True, None]}
    for phrase, found in expected.items():
        assert contains_any(column, [phrase]).to_list() == found, phrase


def test_grammars_of_several_tokenizers() -> None:
    rows = ["to be, to-be", "a.b"]
    made = [tadoc.compress(pl.Series("text", rows), tokenizer=own) for own in ("words", "whitespace")]
    column = pl.concat([made[0].slice(0, 1), made[1], pl.Series("text", [None], tadoc.DTYPE), made[0].slice(1, 1)])
    assert count_phrase(column, "to be").to_list() == [2, 0, 0, None, 0]
    assert count_phrase(column, "a.b").to_list() == [0, 0, 1, None, 1]
    assert contains_any(column, ["a.b", "be, to-be"]).to_list() == [True, True, True, None, True]


def test_overlapping_matches_in_long_runs() -> None:
    sizes = [0, 1, 2, 3, 64, 65, 1000, 4097]
    column = tadoc.compress(pl.Series("text", ["a " * size + "b " + "a b " * size for size in sizes]))
    for length in (1, 2, 3, 63, 64, 65, 1000):
        counted = count_phrase(column, "a " * length).to_list()
        single = [size if length == 1 else 0 for size in sizes]
        assert counted == [max(0, size - length + 1) + own for size, own in zip(sizes, single, strict=True)]
        halves = count_phrase(column, "a b " * length).to_list()
        assert halves == [max(0, size + 2 - length) if size else 0 for size in sizes]


def chain_of(depth: int, left: bool) -> tadoc.Grammar:
    """Rule k is rule k - 1 and one more word, 1, on its other side; the lowest is of words 0 and 1."""
    bodies = [[0, 1] if left else [1, 0]]
    bodies += [[2 + k, 1] if left else [1, 2 + k] for k in range(depth - 1)]
    return handmade.grammar(["a", "b"], bodies)


@pytest.mark.parametrize("left", [True, False])
def test_deep_chain(left: bool) -> None:
    depth = 5000
    column = handmade.column(chain_of(depth, left), [[depth + 1, depth + 1, 0], [depth + 1]])
    for phrase, counts in {
        "b b b": [2 * (depth - 2), depth - 2],
        "a b": [2, 1] if left else [1, 0],
        "b a": [2, 0] if left else [2, 1],
        "b " * depth: [2, 1],
        "b " * (depth + 1): [0, 0],
        "a " + "b " * (depth - 1): [2, 1] if left else [1, 0],
    }.items():
        assert count_phrase(column, phrase).to_list() == counts, phrase[:20]
        assert contains_phrase(column, phrase).to_list() == [count > 0 for count in counts]


def test_one_rule_of_many_symbols_and_a_phrase_of_many_words() -> None:
    size = 100_000
    grammar = handmade.grammar(["a", "b"], [[0] * size, [0, 0, 1]])
    column = handmade.column(grammar, [[2], [2, 3, 2], [], [1, 0]])
    for length in (1, 2, 10_000, size, size + 1, size + 2, size + 3):
        counts = count_phrase(column, "a " * length).to_list()
        alone = max(0, size - length + 1)
        assert counts == [alone, max(0, size + 3 - length) + alone, 0, int(length == 1)], length
    assert contains_any(column, ["a " * (size + 2), "b a a b"]).to_list() == [False, True, False, False]
    assert count_phrase(column, "b " + "a " * 10_000, stopwords=["c"]).to_list() == [0, 1, 0, 0]


def test_many_phrases() -> None:
    rows = [f"w{i} w{i + 1} w{i + 2}" for i in range(0, 3000, 3)]
    column = tadoc.compress(pl.Series("text", rows))
    phrases = [f"w{i} w{i + 1}" for i in range(10_000)]
    assert contains_any(column, phrases).all()
    across = [f"w{i} w{i + 1}" for i in range(2, 3000, 3)]
    assert not contains_any(column, across).any()
    assert contains_any(column, [*across, "w4 w5"]).arg_true().to_list() == [1]
    assert not contains_any(column, []).any()


def test_deleted_words_between() -> None:
    column = tadoc.compress(pl.Series("text", ["to the the be", "to be the", "the", "the to"] * 3))
    assert count_phrase(column, "to be", stopwords=["the"]).to_list() == [1, 1, 0, 0] * 3
    assert count_phrase(column, "to the be", stopwords=["the"]).to_list() == [1, 1, 0, 0] * 3
    assert count_phrase(column, "To BE", lowercase=True).to_list() == [0, 1, 0, 0] * 3


def test_phrases_that_lose_their_words_are_nowhere() -> None:
    column = tadoc.compress(pl.Series("text", ["to the the be", None, "the", ""]))
    for lost in ("the", "The THE"):
        options: dict[str, Any] = {"lowercase": True, "stopwords": ["the"]}
        assert count_phrase(column, lost, **options).to_list() == [0, None, 0, 0]
        assert contains_phrase(column, lost, **options).to_list() == [False, None, False, False]
        assert contains_any(column, [lost, "To be"], **options).to_list() == [True, None, False, False]
        assert contains_any(column, [lost], **options).to_list() == [False, None, False, False]
    gone = pl.element().str.replace("the", "")
    assert contains_any(column, ["the", "be"], normalize=gone).to_list() == [True, None, False, False]


def test_a_phrase_without_words_for_one_of_several_tokenizers() -> None:
    made = [tadoc.compress(pl.Series("text", ["a --", "b"]), tokenizer=own) for own in ("words", "whitespace")]
    assert contains_any(pl.concat(made), ["--", "b"]).to_list() == [False, True, True, True]
    assert count_phrase(made[1], "--").to_list() == [1, 0]
    with pytest.raises(ValueError, match="count_phrase: the phrase '--' has no word"):
        count_phrase(pl.concat(made), "--")


def test_a_blank_phrase_is_one_where_blanks_are_words() -> None:
    column = tadoc.compress(pl.Series("text", ["a  b", "c"]), tokenizer=re.compile("."))
    assert count_phrase(column, " ").to_list() == [2, 0]
    assert contains_any(column, [" "]).to_list() == [True, False]


def test_no_rows_and_null_rows() -> None:
    column = tadoc.compress(pl.Series("text", ["a b", None, ""]))
    assert count_phrase(column.head(0), "a").to_list() == []
    assert count_phrase(column.slice(1, 1), "a").to_list() == [None]
    assert contains_any(column.slice(1, 1), ["a"]).to_list() == [None]
    assert count_phrase(column, "a b").to_list() == [1, None, 0]
    assert contains_phrase(column.reverse(), "b").to_list() == [False, None, True]


def test_counts_beyond_32_bits() -> None:
    bodies = [[0, 0], *([k, k] for k in range(1, 31))]
    column = handmade.column(handmade.grammar(["a"], bodies), [[31] * 8, [31]])
    assert count_phrase(column, "a a").to_list() == [8 * 2**31 - 1, 2**31 - 1]


def test_counts_beyond_64_bits_are_refused() -> None:
    with tadoc.Config(expansion_limit=1 << 56):
        bodies = [[0, 0], *([k, k] for k in range(1, 55))]
        column = handmade.column(handmade.grammar(["a"], bodies), [[55] * 512])
        with pytest.raises(LimitExceededError, match="64 bits"):
            count_phrase(column, "a")


def test_a_grammar_is_linked_once() -> None:
    from polars_tadoc.rows import matching

    column = tadoc.compress(pl.Series("text", ["once upon a time"] * 3))
    matching._links.clear()
    count_phrase(column, "upon a")
    assert len(matching._links) == 1
    held = matching._links.nbytes
    assert held > 0
    count_phrase(column, "a time")
    contains_any(column, ["a time"], lowercase=True)
    assert (len(matching._links), matching._links.nbytes) == (1, held)
    count_phrase(column, "a time", stopwords=["upon"])
    assert len(matching._links) == 1


def test_wrong_arguments() -> None:
    column = tadoc.compress(pl.Series("text", ["a b", None]))
    for wrong in (None, 3, b"a", ["a"]):
        with pytest.raises(TypeError, match="must be a string"):
            count_phrase(column, wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="list of strings"):
        contains_any(column, "a b")
    with pytest.raises(TypeError, match="list of strings"):
        contains_any(column, 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must be a string"):
        contains_any(column, ["a", None])  # type: ignore[list-item]
    for empty in ("", " ", " -- "):
        with pytest.raises(ValueError, match="has no word"):
            count_phrase(column, empty)
    for empty in ("", " "):
        with pytest.raises(ValueError, match="has no word"):
            contains_any(column, ["a", empty])
    assert contains_any(column, ["a", " -- "]).to_list() == [True, None]
    with pytest.raises(ValueError, match="not text"):
        contains_phrase(column, "\ud800")
    with pytest.raises(NotCompressedError):
        count_phrase(pl.Series([1]), "a")
    with pytest.raises(TypeError, match="takes a Polars Series"):
        count_phrase("a", "a")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="not a Polars expression"):
        count_phrase(column, "a", normalize="lower")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="one string"):
        contains_any(column, ["a"], stopwords="the")


@pytest.mark.parametrize("name", ["sentences", "regex:("])
def test_tokenizers_of_other_releases_are_refused(name: str) -> None:
    column = handmade.column(replace(handmade.grammar(["a"]), tokenizer=name), [[0]])
    with pytest.raises(InvalidGrammarError, match="count_phrase: the column: its tokenizer"):
        count_phrase(column, "a")


@pytest.mark.parametrize("tokenizer", ["words", "whitespace", re.compile("[a-z]+")])
def test_no_phrases(tokenizer: Any) -> None:
    column = tadoc.compress(pl.Series("text", ["a b", None, ""]), tokenizer=tokenizer)
    for arguments in ({}, {"lowercase": True}, {"stopwords": ["a"]}):
        assert contains_any(column, [], **arguments).to_list() == [False, None, False]
        assert contains_any(column, pl.Series(["b"]), **arguments).to_list() == [True, None, False]


def test_damaged_rows_are_refused() -> None:
    column = handmade.column(handmade.grammar(["a"]), [[0], [7]])
    with pytest.raises(InvalidGrammarError, match="symbol 7"):
        count_phrase(column, "a")


def test_kernels_are_compiled_once() -> None:
    from polars_tadoc.kernels.host.rows import phrases as kernels

    column = tadoc.compress(pl.Series("text", ["a b", "b c", ""]))
    for rows in (column, column.slice(2), column.slice(2, 0)):
        for arguments in ({}, {"lowercase": True}, {"stopwords": ["a"]}, {"stopwords": ["a", "b", "c"]}):
            assert contains_any(rows, ["b"], **arguments).len() == len(rows)
    for kernel in (kernels.match_rules, kernels.match_rows, kernels.find_rows, kernels.find_owners):
        assert len(kernel.signatures) <= 1, kernel


def test_threads_cut_rows_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    from polars_tadoc.rows import matching

    monkeypatch.setattr(matching, "CHUNK", 1)
    monkeypatch.setattr(matching, "SKIPPED", 1)
    rows = [" ".join("abc"[(i * j) % 3] for j in range(i % 17)) for i in range(300)]
    column = tadoc.compress(pl.Series("text", rows))
    documents = [row.split() for row in rows]
    for threads in (1, 2, 3, 8):
        with tadoc.Config(threads=threads):
            check(column, documents, [["a", "b"], ["c", "c", "a"]])
            check(column, documents, [["a", "a", "a"], ["b", "c"]])


def test_rows_of_a_bit_more_and_less_than_a_block_of_bits() -> None:
    for rows in (1, 63, 64, 65, 127, 128, 129):
        for every in (1, 5, 64):
            documents = [["a", "b"] if i % every == 0 else ["c"] for i in range(rows)]
            column = tadoc.compress(pl.Series("text", [" ".join(words) for words in documents]))
            check(column, documents, [["a", "b"]])


ROWS = ["to be or not to be", None, "be to be", "", "not to be", "To be to be"]
YEARS = [1, 2, 1, 2, 2, 1]
COUNTS = [2, None, 1, 0, 1, 1]
FOUND = [None if count is None else count > 0 for count in COUNTS]


@pytest.fixture(params=[1, 2, 100])
def df(request: pytest.FixtureRequest) -> pl.DataFrame:
    """Years and texts in as many grammars as it takes."""
    frame = pl.DataFrame({"year": YEARS, "text": ROWS})
    return frame.with_columns(tadoc.compress(frame["text"], rows_per_grammar=request.param))


COUNTED = pl.col("text").tadoc.count_phrase("to be")  # type: ignore[attr-defined]
HELD = pl.col("text").tadoc.contains_phrase("to be")  # type: ignore[attr-defined]
ANY = pl.col("text").tadoc.contains_any(["or not", "be to be"])  # type: ignore[attr-defined]


@pytest.mark.parametrize("engine_of_polars", ["in-memory", "streaming"])
def test_as_expressions(df: pl.DataFrame, engine_of_polars: Any) -> None:
    plan = df.lazy().select("year", count=COUNTED, held=HELD, any=ANY)
    assert plan.collect_schema() == {"year": pl.Int64, "count": pl.UInt64, "held": pl.Boolean, "any": pl.Boolean}
    got = plan.collect(engine=engine_of_polars)
    assert got.schema == plan.collect_schema()
    assert (got["count"].to_list(), got["held"].to_list()) == (COUNTS, FOUND)
    assert got["any"].to_list() == [True, None, True, False, False, True]
    more = df.lazy().with_columns(count=COUNTED).drop("text").collect(engine=engine_of_polars)
    assert more["count"].to_list() == COUNTS
    for condition in (HELD, COUNTED > 0):
        kept = df.lazy().filter(condition).select("year", pl.col("text").tadoc.decompress())  # type: ignore[attr-defined]
        assert kept.collect(engine=engine_of_polars).rows() == [
            (year, row) for year, row, found in zip(YEARS, ROWS, FOUND, strict=True) if found
        ]
    when = pl.when(pl.col("year") == 1).then(COUNTED).otherwise(pl.lit(7, pl.UInt64))
    chosen = df.lazy().select(when).collect(engine=engine_of_polars).to_series().to_list()
    assert chosen == [count if year == 1 else 7 for count, year in zip(COUNTS, YEARS, strict=True)]


@pytest.mark.parametrize("engine_of_polars", ["in-memory", "streaming"])
def test_in_groups_and_windows(df: pl.DataFrame, engine_of_polars: Any) -> None:
    by_year = {year: [own for own, of in zip(COUNTS, YEARS, strict=True) if of == year] for year in (1, 2)}
    groups = df.lazy().group_by("year", maintain_order=True).agg(lists=COUNTED, sum=COUNTED.sum(), any=HELD.any())
    got = groups.collect(engine=engine_of_polars)
    assert dict(zip(got["year"], got["lists"].to_list(), strict=True)) == by_year
    sums = {year: sum(count or 0 for count in own) for year, own in by_year.items()}
    assert dict(zip(got["year"], got["sum"], strict=True)) == sums
    assert got["any"].to_list() == [True, True]
    windows = df.lazy().select(sum=COUNTED.sum().over("year"), own=COUNTED.over("year"))
    assert windows.collect(engine=engine_of_polars).rows() == [
        (sums[year], count) for count, year in zip(COUNTS, YEARS, strict=True)
    ]
    held = df.lazy().group_by("year", maintain_order=True).agg(rows=pl.col("text").filter(HELD).len())
    assert held.collect(engine=engine_of_polars)["rows"].to_list() == [3, 1]


def test_series_and_functions_agree(df: pl.DataFrame) -> None:
    column = df["text"]
    options: dict[str, Any] = {"lowercase": True, "stopwords": ["or"], "normalize": pl.element().str.head(2)}
    for call in ("count_phrase", "contains_phrase", "contains_any"):
        for phrase, arguments in (("to be", {}), ("To be no", options)):
            own = [phrase, "zz"] if call == "contains_any" else phrase
            expected = getattr(tadoc, call)(column, own, **arguments)
            assert expected[0]
            assert getattr(column.tadoc, call)(own, **arguments).equals(expected)  # type: ignore[attr-defined]
            expression = getattr(pl.col("text").tadoc, call)(own, **arguments)  # type: ignore[attr-defined]
            assert df.select(expression)["text"].equals(expected)


def test_messages_show_no_column() -> None:
    column = tadoc.compress(pl.Series("text", ["a b"] * 50))
    for call in (count_phrase, contains_phrase, contains_any):
        with pytest.raises(TypeError, match=rf"^{call.__name__} takes a Polars Series, not str; pass df"):
            call("a b", column)  # type: ignore[arg-type]
    for call in (count_phrase, contains_phrase):
        with pytest.raises(
            TypeError, match=rf"^{call.__name__}: the phrases are Text.{{0,50}}, not String; cast them$"
        ):
            call(column, column)
        with pytest.raises(TypeError, match=rf"^{call.__name__}: phrase must be a string, not list$"):
            call(column, ["a"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^contains_any: phrases\[0\] must be a string, not dict$"):
        contains_any(column, column)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^contains_any: phrases\[1\] must be a string, not NoneType$"):
        contains_any(column, ["a", None])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="has no word") as raised:
        count_phrase(column, "-" * 1_000_000)
    assert len(str(raised.value)) < 200


def test_expressions_refuse_wrong_arguments_when_they_are_made() -> None:
    accessor = pl.col("text").tadoc  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="must be a string"):
        accessor.count_phrase(3)
    with pytest.raises(TypeError, match="list of strings"):
        accessor.contains_any("a")
    for empty in (lambda: accessor.count_phrase(""), lambda: accessor.contains_any(["a", ""])):
        with pytest.raises(ValueError, match="has no word: it is empty"):
            empty()
    with pytest.raises(TypeError, match="not a Polars expression"):
        accessor.contains_phrase("a", normalize="lower")


def test_errors_in_plans_say_what_is_wrong(df: pl.DataFrame) -> None:
    with pytest.raises(ValueError, match="has no word"):
        df.select(pl.col("text").tadoc.count_phrase("..."))  # type: ignore[attr-defined]
    with pytest.raises(NotCompressedError, match="count_phrase"):
        pl.DataFrame({"text": [1]}).select(COUNTED)


def test_calls_at_the_same_time() -> None:
    from polars_tadoc.rows import matching

    column = tadoc.compress(pl.Series("text", ["a b c a b", "c a", "b c a"] * 50))
    phrases = ["a b", "c a", "b c a", "a", "c c", "b"]
    alone = [count_phrase(column, phrase).to_list() for phrase in phrases]
    with ThreadPoolExecutor(6) as pool:
        for _ in range(20):
            found = list(pool.map(lambda phrase: count_phrase(column, phrase).to_list(), phrases))
            assert found == alone
    (key,) = [corpus.key for corpus in tadoc.column.split(column)]
    links = matching._links.get(key)
    assert links is not None
    assert len(links.spare) == 1  # what it is counted with
