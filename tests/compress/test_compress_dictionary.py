"""Columns compressed with a dictionary: their words' ids, and results that are the same as without one."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.model import payload
from polars_tadoc.model.vocabulary import Vocabulary, common_start, unify
from tests import oracle
from tests.analytic_cases import STRATEGIES
from tests.strategies import columns

Rows = list[str | None]

NEVER = ["never", "nevermore", "zz zz", "日本 語", "\n", ",", "a b", "neve", "é" * 300]
"""Words that no row holds, some of which no tokenizer makes."""

TEXT = pl.Series("text", ["the cat saw the dog", None, "the dog, the cat", "", "a cat SAW a mouse"] * 3)


def dictionary(*words: str) -> tadoc.Dictionary:
    return tadoc.Dictionary.from_words(pl.Series("word", words, pl.String))


CATS = dictionary("dog", "unicorn", "cat", "the", "mouse")


@st.composite
def cases(draw: st.DrawFn) -> tuple[Rows, tadoc.Dictionary]:
    """Rows, and a dictionary of some of their words and of others."""
    rows = draw(columns)
    own = sorted({word for words in oracle.tokenize(rows) if words for word in words})
    kept = draw(st.sets(st.sampled_from(own))) if own else set()
    words = [word for word in kept | draw(st.sets(st.sampled_from(NEVER))) if "\0" not in word]
    return rows, dictionary(*words)


def analytics(column: pl.Series, engine: str, strategy: str = "auto", **arguments: Any) -> list[Any]:
    """What every call on a column gives."""
    shared: dict[str, Any] = {"engine": engine, "strategy": strategy, **arguments}
    tables = [
        tadoc.word_count(column, engine=engine, **arguments),
        tadoc.word_count(column, engine=engine, top=2, **arguments),
        tadoc.sort(column, engine=engine, **arguments),
        tadoc.inverted_index(column, **shared),
        tadoc.term_vector(column, **shared),
        tadoc.sequence_count(column, n=2, **shared),
        tadoc.ranked_inverted_index(column, n=3, **shared),
        tadoc.cooccurrence(column, window=2, **shared),
    ]
    index = tadoc.build_index(column, **arguments)
    rows = [
        tadoc.token_count(column),
        tadoc.head(column, 2),
        tadoc.count_phrase(column, "the cat", **arguments),
        tadoc.contains_any(column, ["b", "never", "the dog"], **arguments),
        tadoc.bm25(column, "the cat never", **arguments),
    ]
    found = index.search(["a cat", "never the", "b"])
    return [
        *(pl.DataFrame(table).rows() for table in tables),
        *(row.to_list() for row in rows),
        found.rows(),
        index.terms,
    ]


@given(cases(), st.integers(1, 6), st.sampled_from(["words", "whitespace"]))
def test_the_vocabulary_begins_with_the_dictionary(
    engine: str, case: tuple[Rows, tadoc.Dictionary], rows_per_grammar: int, tokenizer: str
) -> None:
    rows, words = case
    text = pl.Series("text", rows, pl.String)
    arguments: dict[str, Any] = {"rows_per_grammar": rows_per_grammar, "tokenizer": tokenizer, "engine": engine}
    column = tadoc.compress(text, dictionary=words, **arguments)
    assert tadoc.decompress(column).to_list() == rows
    plain, corpora = tadoc.column.split(tadoc.compress(text, **arguments)), tadoc.column.split(column)
    assume(len(corpora) == len(plain))  # with a dictionary, rows without words may have the grammar of others
    for corpus, without in zip(corpora, plain, strict=True):
        strings, own = corpus.grammar.vocabulary.to_pylist(), without.grammar.vocabulary.to_pylist()
        assert strings[: len(words)] == words.words(pl.int_range(len(words), eager=True)).to_list()
        assert strings[len(words) :] == [word for word in own if word not in words]
        new = {word: place for place, word in enumerate(strings)}
        ids = np.array([new[word] for word in own], np.int64)
        renamed = np.append(ids, np.arange(without.grammar.rule_count) + len(strings))
        assert corpus.roots.tolist() == renamed[without.roots].tolist()
        assert corpus.grammar.symbols.tolist() == renamed[without.grammar.symbols].tolist()
        payload.decode(payload.encode(corpus.grammar))  # which checks all of it


@given(cases(), st.integers(1, 6), st.sampled_from(STRATEGIES), st.booleans())
def test_every_call_gives_the_same(
    engine: str, case: tuple[Rows, tadoc.Dictionary], rows_per_grammar: int, strategy: str, lowercase: bool
) -> None:
    rows, words = case
    text = pl.Series("text", rows, pl.String)
    arguments: dict[str, Any] = {"lowercase": True, "stopwords": ["the", "never"]} if lowercase else {}
    results = [
        analytics(tadoc.compress(text, rows_per_grammar=rows_per_grammar, **given), engine, strategy, **arguments)
        for given in ({}, {"dictionary": words})
    ]
    assert results[0] == results[1]


@given(cases())
def test_filtered_rows_give_the_same(engine: str, case: tuple[Rows, tadoc.Dictionary]) -> None:
    rows, words = case
    text = pl.Series("text", rows, pl.String)
    kept = pl.Series([row % 3 != 1 for row in range(len(rows))], dtype=pl.Boolean)
    column = tadoc.compress(text, dictionary=words).filter(kept)
    assert analytics(column, engine) == analytics(tadoc.compress(text.filter(kept)), engine)


def test_matrices_have_columns_for_words_that_occur(engine: str) -> None:
    pytest.importorskip("scipy")
    column = tadoc.compress(TEXT, dictionary=CATS, rows_per_grammar=4)
    (counts, words), (expected, same) = tadoc.to_csr(column, engine=engine), tadoc.to_csr(tadoc.compress(TEXT))
    assert words.to_list() == same.to_list()
    assert counts.toarray().tolist() == expected.toarray().tolist()


def test_ids_are_the_same_in_every_frame(engine: str) -> None:
    parts = [TEXT, pl.Series("text", ["mouse dog zebra", "ant"]), pl.Series("text", [None, ""], pl.String)]
    corpora = [
        corpus
        for part in parts
        for corpus in tadoc.column.split(tadoc.compress(part, dictionary=CATS, rows_per_grammar=4, engine=engine))
    ]
    assert len(corpora) == 6
    starts = [corpus.grammar.vocabulary.slice(0, len(CATS)).to_pylist() for corpus in corpora]
    assert all(start == starts[0] for start in starts)
    assert CATS.ids(pl.Series(starts[0])).to_list() == list(range(5))
    assert common_start([corpus.grammar.words for corpus in corpora]) == len(CATS)


def test_every_way_to_call() -> None:
    frame = TEXT.to_frame()
    expected = payloads(tadoc.compress(TEXT, dictionary=CATS, rows_per_grammar=4))
    assert len(expected) == 4
    lazy = frame.lazy()
    for made in (
        frame.tadoc.compress("text", dictionary=CATS, rows_per_grammar=4),
        lazy.tadoc.compress("text", dictionary=CATS, rows_per_grammar=4).collect(),
        TEXT.tadoc.compress(dictionary=CATS, rows_per_grammar=4).to_frame(),
        frame.with_columns(pl.col("text").tadoc.compress(dictionary=CATS, rows_per_grammar=4)),
    ):
        assert payloads(made["text"]) == expected
    in_a_plan = lazy.with_columns(pl.col("text").tadoc.compress(dictionary=CATS, rows_per_grammar=4)).collect()["text"]
    assert tadoc.decompress(in_a_plan).to_list() == TEXT.to_list()  # Polars may cut the rows for its threads
    starts = [corpus.grammar.vocabulary.slice(0, len(CATS)) for corpus in tadoc.column.split(in_a_plan)]
    assert all(start.equals(starts[0]) and start.to_pylist() == CATS.vocabulary.series.to_list() for start in starts)


def counts(column: pl.Series, engine: str | None = None) -> list[tuple[str, int]]:
    return pl.DataFrame(tadoc.word_count(column, engine=engine)).rows()


def payloads(column: pl.Series) -> list[str]:
    return (
        column.ext.storage().struct.field("grammar").cast(pl.String).unique(maintain_order=True).drop_nulls().to_list()
    )


def test_sequitur_and_lossy() -> None:
    for arguments in ({"method": "sequitur"}, {"lossless": False}):
        column = tadoc.compress(TEXT, dictionary=CATS, **arguments)
        assert counts(column) == counts(tadoc.compress(TEXT))
    assert tadoc.decompress(column)[2] == "the dog the cat"


def test_an_empty_dictionary_changes_nothing() -> None:
    assert payloads(tadoc.compress(TEXT, dictionary=dictionary())) == payloads(tadoc.compress(TEXT))


@pytest.mark.parametrize("rows", [[], [None], ["", None], ["unicorn"], ["zebra"], ["..."]])
def test_few_words(rows: Rows, engine: str) -> None:
    column = tadoc.compress(pl.Series("text", rows, pl.String), dictionary=CATS)
    assert tadoc.decompress(column).to_list() == rows
    expected = Counter(word for words in oracle.tokenize(rows) if words for word in words)
    assert dict(counts(column, engine)) == expected


def test_words_longer_than_any_other(engine: str) -> None:
    rows: Rows = ["x" * 70_000 + " cat " + "é" * 40_000]
    words = dictionary("x" * 70_000, "cat", "é" * 39_999)
    column = tadoc.compress(pl.Series(rows), dictionary=words, engine=engine)
    assert tadoc.decompress(column).to_list() == rows
    assert tadoc.column.split(column)[0].grammar.vocabulary_size == 4


def test_recompressed_columns_hold_what_occurs() -> None:
    column = tadoc.recompress(tadoc.compress(TEXT, dictionary=CATS, rows_per_grammar=4))
    assert payloads(column) == payloads(tadoc.compress(TEXT))


def test_rows_are_appended_to_such_a_column() -> None:
    more = pl.Series("text", ["the cat saw the dog", "an emu"] * 40)
    before = tadoc.compress(TEXT, dictionary=CATS)
    appended = tadoc.compress(more, like=before)
    both = pl.concat([before, appended])
    assert tadoc.decompress(both).to_list() == [*TEXT.to_list(), *more.to_list()]
    assert counts(both) == counts(tadoc.compress(pl.concat([TEXT, more])))


def test_packed_rows_and_files(tmp_path: Path) -> None:
    frame = TEXT.to_frame().with_row_index("row").tadoc.compress("text", dictionary=CATS, rows_per_grammar=7)
    expected = frame.tadoc.word_count("text").rows()
    assert frame.tadoc.pack("text").tadoc.unpack().tadoc.decompress()["text"].to_list() == TEXT.to_list()
    frame.tadoc.write_packed(tmp_path / "packed.parquet", "text")
    packed = tadoc.scan_packed(tmp_path / "packed.parquet")
    assert packed.tadoc.word_count("text").collect().rows() == expected
    assert packed.tadoc.word_count("text", memory_limit="1 MB").collect().rows() == expected
    frame.write_parquet(tmp_path / "plain.parquet")
    assert payloads(pl.read_parquet(tmp_path / "plain.parquet")["text"]) == payloads(frame["text"])


def test_info_counts_the_dictionary() -> None:
    column = tadoc.compress(TEXT, dictionary=CATS)
    described, plain = (tadoc.info(one).to_dicts()[0] for one in (column, tadoc.compress(TEXT)))
    assert plain["vocabulary"] == 7
    assert described["vocabulary"] == 8  # with "unicorn"
    assert {**described, "vocabulary": 7}.items() >= {key: plain[key] for key in ("words", "rules", "symbols")}.items()


def test_plans_are_pickled_with_the_dictionary() -> None:
    expression = pl.col("text").tadoc.compress(dictionary=pickle.loads(pickle.dumps(CATS)))
    assert payloads(TEXT.to_frame().select(expression)["text"]) == payloads(tadoc.compress(TEXT, dictionary=CATS))


class TestWrongArguments:
    def test_like_and_dictionary(self) -> None:
        for call in (
            lambda: tadoc.compress(TEXT, like=tadoc.compress(TEXT), dictionary=CATS),
            lambda: TEXT.to_frame().lazy().tadoc.compress("text", like=tadoc.compress(TEXT), dictionary=CATS),
        ):
            with pytest.raises(ValueError, match=r"^compress: like= .* dictionary= .*; use only one"):
                call()

    @pytest.mark.parametrize("wrong", [["a"], pl.Series(["a"]), "words.dictionary", CATS.trie])
    def test_no_dictionary(self, wrong: Any) -> None:
        with pytest.raises(TypeError, match=r"takes a tadoc\.Dictionary, not .*tadoc\.Dictionary\.from_words\(words\)"):
            pl.DataFrame(TEXT).tadoc.compress("text", dictionary=wrong)


class TestUnify:
    """One vocabulary of several: by first appearance, whatever they share."""

    @staticmethod
    def vocabulary(words: list[str]) -> Vocabulary:
        return Vocabulary(pa.array(["sliced", *words], pa.large_string()).slice(1))

    @given(
        st.lists(st.text(max_size=3), unique=True, max_size=40),
        st.lists(st.tuples(st.integers(0, 40), st.lists(st.text(max_size=3), unique=True, max_size=5)), max_size=4),
    )
    def test_against_dictionaries(self, shared: list[str], parts: list[tuple[int, list[str]]]) -> None:
        words = [list(dict.fromkeys([*shared[:kept], *own])) for kept, own in parts]
        unified, ids = unify([self.vocabulary(own) for own in words])
        numbers: dict[str, int] = {}
        for own in words:
            for word in own:
                numbers.setdefault(word, len(numbers))
        assert unified.strings.to_pylist() == list(numbers)
        assert [own.tolist() for own in ids] == [[numbers[word] for word in own] for own in words]
        assert all(own.dtype == np.uint32 for own in ids)

    @pytest.mark.parametrize("size", [1, 255, 256, 257, 1279, 1280, 1281, 6000])
    @pytest.mark.parametrize("change", ["byte", "length", "end", "none"])
    def test_where_they_part(self, size: int, change: str) -> None:
        words = [f"word {number}" for number in range(size)]
        for place in {0, size // 2, size - 1}:
            other = words.copy()
            other[place] = {"byte": "W", "length": "longer ", "end": "", "none": ""}[change] + words[place][
                change == "byte" :
            ]
            if change == "end":
                other = other[:place]
            expected = size if change == "none" else place
            assert common_start([self.vocabulary(words), self.vocabulary(other), self.vocabulary(words)]) == expected

    def test_empty_words_of_made_up_grammars(self) -> None:
        one, other = self.vocabulary(["a", "", "b"]), self.vocabulary(["a", "", "c"])
        assert common_start([one, other]) == 2
        assert common_start([]) == 0
        assert common_start([self.vocabulary([]), one]) == 0
