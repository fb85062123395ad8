"""Weights of plain String columns: what the compressed column gives, to the last bit."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.engine.choose import choose
from polars_tadoc.kernels.tokenize import reference
from polars_tadoc.kernels.tokenize import tokenizer as tokenize
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.model.word_map import Morphism
from polars_tadoc.traversal.text_source import TextSource, prepare_text
from tests.kernels.tokenize.test_tokenize import foreign
from tests.strategies import columns

LETTERS = re.compile("[a-zé]+|日")
TOKENIZERS: list[str | re.Pattern[str]] = ["words", "whitespace", LETTERS]
CALLS: dict[str, Callable[..., pa.Table]] = {
    "bm25": tadoc.bm25_weights,
    "bm25, wakatsuki": lambda column, **rest: tadoc.bm25_weights(column, scoring="wakatsuki", **rest),
    "bm25l": lambda column, **rest: tadoc.bm25_weights(column, scoring="bm25l", top=3, **rest),
    "tfidf": tadoc.tfidf,
    "tfidf, top": lambda column, **rest: tadoc.tfidf(column, sublinear_tf=True, norm=None, top=2, **rest),
}


def strings(rows: list[str | None]) -> pl.Series:
    return pl.Series("text", rows, pl.String)


def triples(table: pa.Table) -> list[tuple[int, str, float]]:
    return list(zip(*(table[name].to_pylist() for name in ("id", "word", "weight")), strict=True))


def host(source: TextSource, *arrays: Any) -> list[Any]:
    return [source.engine.kernels.to_host(array).tolist() for array in arrays]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=["words", "whitespace", "regex"])
@given(rows=columns, lowercase=st.booleans(), stopwords=st.sampled_from([None, ["the", "a"]]))
@settings(max_examples=20)
def test_string_column_has_the_weights_of_the_compressed_one(
    engine: str,
    call: str,
    tokenizer: str | re.Pattern[str],
    rows: list[str | None],
    lowercase: bool,
    stopwords: list[str] | None,
) -> None:
    text = strings(rows)
    options = {"engine": engine, "lowercase": lowercase, "stopwords": stopwords}
    plain = triples(CALLS[call](text, tokenizer=tokenizer, **options))
    assert plain == triples(CALLS[call](tadoc.compress(text, tokenizer=tokenizer), **options))


@pytest.mark.parametrize("weights", [None, tadoc.BM25(scoring="wakatsuki"), tadoc.TFIDF()])
@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=["words", "whitespace", "regex"])
@given(rows=columns)
@settings(max_examples=20)
def test_string_column_has_the_matrix_of_the_compressed_one(
    engine: str, tokenizer: str | re.Pattern[str], weights: Any, rows: list[str | None]
) -> None:
    text = strings(rows)
    plain, words = tadoc.to_csr(text, weights=weights, tokenizer=tokenizer, engine=engine)
    matrix, same = tadoc.to_csr(tadoc.compress(text, tokenizer=tokenizer), weights=weights, engine=engine)
    assert words.to_list() == same.to_list()
    assert (plain.shape, plain.dtype) == (matrix.shape, matrix.dtype)
    assert [getattr(plain, part).tolist() for part in ("indptr", "indices", "data")] == [
        getattr(matrix, part).tolist() for part in ("indptr", "indices", "data")
    ]


@pytest.mark.parametrize("call", ["bm25", "tfidf"])
@given(rows=columns, known=st.lists(st.sampled_from(["a", "b", "the", "日", "42", "zebra"]), min_size=1, unique=True))
@settings(max_examples=20)
def test_dictionary_keeps_its_words_as_in_the_compressed_column(
    engine: str, call: str, rows: list[str | None], known: list[str]
) -> None:
    text, dictionary = strings(rows), tadoc.Dictionary.from_words(pl.Series(known))
    for lowercase in (False, True):
        options = {"dictionary": dictionary, "lowercase": lowercase, "engine": engine}
        plain = triples(CALLS[call](text, **options))
        assert plain == triples(CALLS[call](tadoc.compress(text), **options))
        assert {word for _, word, _ in plain} <= set(known)


@pytest.mark.parametrize("piece_bytes", [1, 16, 100])
@given(rows=columns)
@settings(max_examples=20)
def test_pieces_and_threads_change_nothing(piece_bytes: int, rows: list[str | None]) -> None:
    text = strings([*rows, "the a " * 50, None])
    expected = triples(tadoc.bm25_weights(text, engine="cpu", stopwords=["b"]))
    with tadoc.Config(threads=3), patch.object(tokenize, "PIECE_BYTES", piece_bytes):
        assert triples(tadoc.bm25_weights(text, engine="cpu", stopwords=["b"])) == expected


def prepared(engine: str, rows: list[str | None], tokenizer: str = "words", **rest: Any) -> TextSource:
    return prepare_text(strings(rows), Tokenizer.from_argument(tokenizer), choose(engine, 0), **rest)


@pytest.mark.parametrize("tokenizer", ["words", "whitespace"])
@given(rows=columns)
def test_source_is_the_words_of_the_rows_that_are_there(engine: str, tokenizer: str, rows: list[str | None]) -> None:
    source = prepared(engine, rows, tokenizer)
    expected = [reference.tokenize(row, tokenizer)[0] for row in rows if row is not None]
    words = source.words.strings.to_pylist()
    offsets, ids, lengths = host(source, source.root_offsets, source.roots, source.lengths)
    assert words == sorted({word for row in expected for word in row}, key=str.encode)
    assert [[words[i] for i in ids[a:b]] for a, b in pairwise(offsets)] == expected
    assert lengths == [len(row) for row in expected]
    assert source.rows.tolist() == [place for place, row in enumerate(rows) if row is not None]
    assert (source.rules.terminals, source.rules.rule_count, source.rank) == (len(words), 0, None)


def test_words_become_others_or_none(engine: str) -> None:
    rows = ["To be, or NOT to be", None, "not", "to"]
    morphism = Morphism(lowercase=True, stopwords=frozenset(["to"]))
    source = prepared(engine, rows, morphism=morphism)
    assert source.words.strings.to_pylist() == ["be", "not", "or"]
    assert host(source, source.root_offsets, source.roots, source.lengths) == [[0, 4, 5, 5], [0, 2, 1, 0, 1], [4, 1, 0]]


def test_words_that_a_dictionary_lacks_count_to_lengths_only(engine: str) -> None:
    rows = ["To be, or NOT to be", None, "not", "to"]
    dictionary = tadoc.Dictionary.from_words(pl.Series(["zebra", "be", "to", "not"]))
    morphism = Morphism(lowercase=True, stopwords=frozenset(["to"]))
    source = prepared(engine, rows, morphism=morphism, dictionary=dictionary)
    assert source.words.strings.to_pylist() == ["be", "not"]
    assert host(source, source.root_offsets, source.roots, source.lengths) == [[0, 3, 4, 4], [0, 1, 0, 1], [4, 1, 0]]
    nothing = prepared(engine, ["x", "y x"], dictionary=dictionary)
    assert host(nothing, nothing.root_offsets, nothing.roots, nothing.lengths) == [[0, 0, 0], [], [1, 2]]


HARD: dict[str, list[str | None]] = {
    "no rows": [],
    "nulls": [None, None],
    "empty rows": ["", "", " "],
    "one word": ["a"],
    "one huge row": ["the quick brown fox, " * 200_000, "the"],
    "one word many times": ["a " * 300_000],
    "many words, each once": [" ".join(f"w{i}" for i in range(100_000)), "w5 w99999"],
    "many short rows": ["a b", None, "c", ""] * 20_000,
    "words longer than a slot": [" ".join(c * n for c in "ab" for n in (1, 7, 8, 9, 15, 16, 17, 31, 4_000))] * 2,
}


@pytest.mark.parametrize("kind", HARD)
def test_hard_columns(engine: str, kind: str) -> None:
    text = strings(HARD[kind])
    column = tadoc.compress(text)
    for call in ("bm25", "tfidf, top"):
        assert triples(CALLS[call](text, engine=engine)) == triples(CALLS[call](column, engine=engine))


@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=["words", "whitespace", "regex"])
@pytest.mark.parametrize("bad", [b"x\xed\xa0\x80y", b"\xff", b"\xc0\xaf", b"long enough to lie outside \x80"])
def test_refuses_what_is_not_utf8(engine: str, bad: bytes, tokenizer: str | re.Pattern[str]) -> None:
    text = foreign([b"fine", b"", bad, b"z"], pa.large_string())
    with pytest.raises(ValueError, match=r'column "body", row 2: not UTF-8 \('):
        tadoc.bm25_weights(text, tokenizer=tokenizer, engine=engine)


def test_weights_of_a_real_corpus(engine: str, corpus: Callable[[str], pl.DataFrame]) -> None:
    text = corpus("docs_peps")["text"]
    plain = tadoc.bm25_weights(text, engine=engine)
    compressed = tadoc.bm25_weights(tadoc.compress(text), engine=engine)
    assert plain["id"].equals(compressed["id"])
    assert np.array_equal(plain["weight"].to_numpy(), compressed["weight"].to_numpy())
    both = [pl.Series(pl.from_arrow(table["word"])).cast(pl.String) for table in (plain, compressed)]
    assert both[0].equals(both[1])
