"""Words of String columns and what each document holds of them, on every engine; ways to the host."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest.mock import patch

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.engine import cuda
from polars_tadoc.engine.choose import choose
from polars_tadoc.errors import EngineUnavailableError
from polars_tadoc.kernels.documents import text_terms_cuda as text_terms
from polars_tadoc.kernels.documents.text_terms_cpu import terms_of_text as terms_on_host
from polars_tadoc.kernels.primitives import to_arrow_cpu as spread
from polars_tadoc.kernels.primitives import to_arrow_cuda as download
from polars_tadoc.kernels.primitives.codes import DELETED, UNKNOWN
from polars_tadoc.kernels.tokenize import intern_cuda as intern
from polars_tadoc.kernels.tokenize import reference
from polars_tadoc.kernels.tokenize import tokenize_cuda as tokenize
from polars_tadoc.kernels.tokenize.number_words_cpu import Choice
from polars_tadoc.kernels.tokenize.number_words_cpu import number_words as number_on_host
from polars_tadoc.kernels.tokenize.number_words_cuda import number_words as number_on_device
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from polars_tadoc.kernels.traverse import analytics_reference as definitions
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.traversal.text_source import prepare_text
from tests import oracle
from tests.strategies import columns, columns_without_nulls

on_device = pytest.mark.skipif(cuda.device_problem() is not None, reason=f"no device: {cuda.device_problem()}")

NUMBER: dict[str, Callable[..., Any]] = {
    "cpu": lambda text, tokenizer, choice, mapping=None: number_on_host(text, tokenizer, choice),
    "gpu": number_on_device,
}
TERMS: dict[str, Callable[..., Any]] = {"cpu": terms_on_host, "gpu": text_terms.terms_of_text}
WORDS, WHITESPACE = Tokenizer("words"), Tokenizer("whitespace")
TOKENIZERS: list[tuple[Tokenizer, str | re.Pattern[str]]] = [
    (WORDS, "words"),
    (WHITESPACE, "whitespace"),
    (Tokenizer.from_argument(re.compile("[a-c]+|日")), re.compile("[a-c]+|日")),
]


def strings(rows: Sequence[str | None]) -> pl.Series:
    return pl.Series("text", rows, pl.String)


KEEP_ALL = Choice(lambda words: (Vocabulary(words), None))


def code_points(words: set[str]) -> list[str]:
    return sorted(words, key=str.encode)


def host(engine: str, *arrays: Any) -> list[Any]:
    return [choose(engine, 0).kernels.to_host(array) for array in arrays]


def assert_numbered(engine: str, rows: Sequence[str | None], expected: list[list[str]], *given: Any) -> None:
    numbered = NUMBER[engine](strings(rows), given[0], KEEP_ALL, *given[1:])
    words = numbered.words.strings.to_pylist()
    offsets, ids, lengths = host(engine, numbered.offsets, numbered.ids, numbered.lengths)
    assert (offsets.dtype, ids.dtype, lengths.dtype) == (np.int64, np.uint32, np.uint64)
    assert words == code_points({word for row in expected for word in row})
    assert [words[i] for i in ids] == [word for row in expected for word in row]
    assert offsets.tolist() == np.cumsum([0, *map(len, expected)]).tolist()
    assert lengths.tolist() == [len(row) for row in expected]


@pytest.fixture
def colliding(request: pytest.FixtureRequest) -> Iterator[None]:
    with patch.object(intern, "hash_defines", (f"-DHASH_MASK={request.param}ull",)):
        yield


@pytest.mark.parametrize("mapping", [None, "hash", "sort"])
@pytest.mark.parametrize(("tokenizer", "definition"), TOKENIZERS, ids=["words", "whitespace", "regex"])
@given(rows=columns)
def test_words_are_numbered_in_code_point_order(
    engine: str, tokenizer: Tokenizer, definition: str | re.Pattern[str], mapping: str | None, rows: list[str | None]
) -> None:
    expected = [reference.tokenize(row or "", definition)[0] for row in rows]
    if definition == "words":  # by the characters that Polars knows, which may be more than Python does
        expected = [words or [] for words in oracle.tokenize(rows)]
    assert_numbered(engine, rows, expected, tokenizer, mapping)


@on_device
@pytest.mark.parametrize("mapping", ["hash", "sort"])
@pytest.mark.parametrize("colliding", ["0", "0xFFFFFFFF", "0xFFFFFFFF00000000", "0x300000001"], indirect=True)
@pytest.mark.usefixtures("colliding")
@settings(max_examples=20)
@given(rows=columns_without_nulls)
def test_colliding_hashes_do_not_show(mapping: str, rows: list[str]) -> None:
    assert_numbered("gpu", rows, [reference.tokenize(row, "words")[0] for row in rows], WORDS, mapping)


@on_device
@pytest.mark.parametrize("colliding", ["0xFFFFFF", "0x8000000000000000"], indirect=True)
@pytest.mark.usefixtures("colliding")
def test_long_words_that_take_turns_in_the_order_of_their_hashes() -> None:
    stem = "x" * 150
    rows = [[f"{stem}{i % 3}", f"y{i % 5}", f"{stem[:8]}{i % 4}"] * 3 for i in range(300)]
    assert_numbered("gpu", [" ".join(row) for row in rows], rows, WORDS, "sort")


@pytest.mark.parametrize("mapping", ["hash", "sort"])
def test_no_row_no_word_and_one_huge_row(engine: str, mapping: str) -> None:
    for rows in ([], [""], [None, ""], [" ", ",,"], [None, "a", None], ["", "a b", "", "", "b"]):
        assert_numbered(engine, rows, [(row or "").replace(",", " ").split() for row in rows], WORDS, mapping)
    many = [f"w{i * 7919 % 30_011}" for i in range(200_000)]
    assert_numbered(engine, ["a", " ".join(many), ""], [["a"], many, []], WORDS, mapping)
    assert_numbered(engine, ["", None] * 50_000 + ["a"], [[]] * 100_000 + [["a"]], WORDS, mapping)


@pytest.mark.parametrize("mapping", ["hash", "sort"])
def test_words_left_out(engine: str, mapping: str) -> None:
    def choose_some(words: pa.LargeStringArray) -> tuple[Vocabulary, np.ndarray[Any, np.dtype[np.uint32]]]:
        assert words.to_pylist() == ["a", "b", "c", "d"]
        return Vocabulary(pa.array(["A", "D"], pa.large_string())), np.array([0, DELETED, UNKNOWN, 1], np.uint32)

    numbered = NUMBER[engine](strings(["a b c", "b", None, "c", "d d a c"]), WORDS, Choice(choose_some), mapping)
    offsets, ids, lengths = host(engine, numbered.offsets, numbered.ids, numbered.lengths)
    assert numbered.words.strings.to_pylist() == ["A", "D"]
    assert (offsets.tolist(), ids.tolist(), lengths.tolist()) == ([0, 1, 1, 1, 1, 4], [0, 1, 1, 0], [2, 0, 0, 1, 4])
    assert (offsets.dtype, ids.dtype, lengths.dtype) == (np.int64, np.uint32, np.uint64)


@on_device
def test_what_the_device_refuses() -> None:
    with pytest.raises(ValueError, match="mapping='tree': use 'hash' or 'sort'"):
        number_on_device(strings(["a"]), WORDS, KEEP_ALL, "tree")
    with (
        patch.object(tokenize, "_MAX_BYTES", 10),
        pytest.raises(EngineUnavailableError, match=r'9 bytes .* 32-bit positions; use engine="cpu", or fewer rows'),
    ):
        number_on_device(strings(["abcd efgh"]), WORDS, KEEP_ALL)
    binary = pa.array([b"a", b"\x80"], pa.large_binary()).view(pa.large_string())
    with pytest.raises(ValueError, match="row 1: not UTF-8"):
        number_on_device(pl.Series("text", binary), WORDS, KEEP_ALL)


def terms(
    engine: str, terminals: int, rows: Sequence[Sequence[int]], rank: Sequence[int] | None = None
) -> list[list[tuple[int, int]]]:
    load = choose(engine, 0).kernels.load_array
    offsets = load(np.cumsum([0, *map(len, rows)], dtype=np.int64))
    roots = load(np.concatenate([np.zeros(0, np.uint32), *(np.array(row, np.uint32) for row in rows)]))
    order = None if rank is None else load(np.array(rank, np.uint32))
    made = host(engine, *TERMS[engine](terminals, offsets, roots, order))
    assert [array.dtype for array in made] == [np.int64, np.uint32, np.uint64]
    starts, words, counts = (array.tolist() for array in made)
    pairs = list(zip(words, counts, strict=True))
    return [pairs[starts[i] : starts[i + 1]] for i in range(len(rows))]


@given(st.data(), st.integers(1, 40))
def test_terms_of_small_documents(engine: str, data: st.DataObject, terminals: int) -> None:
    rows = data.draw(st.lists(st.lists(st.integers(0, terminals - 1), max_size=80), max_size=8))
    rank = data.draw(st.none() | st.permutations(range(terminals)))
    assert terms(engine, terminals, rows, rank) == definitions.terms_by_document(rows, rank)


@given(st.data(), st.sampled_from([1, 3, 300]), st.sampled_from([(0, 0, 0, 0), (64, 64, 64, 64), (0, 64, 0, 128)]))
def test_terms_of_documents_that_are_sorted_together(
    engine: str, data: st.DataObject, terminals: int, limits: tuple[int, ...]
) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 1 << 30)))
    rows = [
        random.integers(0, terminals, size).tolist() for size in data.draw(st.lists(st.integers(0, 200), max_size=6))
    ]
    with patch.object(text_terms, "LIMITS", limits):
        assert terms(engine, terminals, rows) == definitions.terms_by_document(rows)


@pytest.mark.parametrize("terminals", [1, 2, 1000, 1 << 20, (1 << 32) - 2])
def test_terms_at_the_limits_of_the_ways_of_sorting(engine: str, terminals: int) -> None:
    if terminals > 1 << 20 and engine == "cpu":
        pytest.skip("the CPU has a counter for each terminal")
    random = np.random.default_rng(terminals)
    sizes = [0, 1, 31, 32, 33, *(limit + more for limit in text_terms.LIMITS for more in (-1, 0, 1)), 100_000, 3, 0]
    rows = [random.integers(0, terminals, size).tolist() for size in sizes]
    assert terms(engine, terminals, rows) == definitions.terms_by_document(rows)


def test_terms_of_no_documents_and_of_empty_ones(engine: str) -> None:
    assert terms(engine, 1, []) == []
    assert terms(engine, 0, [[], []]) == [[], []]
    rows: list[list[int]] = [[]] * 50_000 + [[1, 0, 1]] + [[]] * 50_000
    assert terms(engine, 2, rows) == definitions.terms_by_document(rows)


def test_arrays_come_to_arrow(engine: str) -> None:
    kernels = choose(engine, 0).kernels
    made = [
        np.arange(size, dtype=dtype)
        for size in (0, 1, 1000, (1 << 20) - 1, 1 << 20, 3 << 20)
        for dtype in (np.uint32, np.float64)
    ]
    arrays = kernels.to_arrow([kernels.load_array(array) for array in made])
    assert [array.type for array in arrays] == [pa.from_numpy_dtype(array.dtype) for array in made]
    for array, expected in zip(arrays, made, strict=True):
        array.validate(full=True)
        assert np.array_equal(array.to_numpy(), expected)
    assert kernels.to_arrow([]) == []


@on_device
def test_less_than_a_chunk_is_copied() -> None:
    import cupy

    made = np.random.default_rng(1).integers(0, 1 << 60, 5000).astype(np.uint64)
    for chunk in (8, 1000, 4096, 40_000):
        with patch.object(download, "_CHUNK", chunk), patch.object(download, "_SMALL_CHUNK", chunk):
            assert np.array_equal(download.to_arrow([cupy.asarray(made)])[0].to_numpy(), made)


@given(st.lists(st.integers(0, 5), max_size=30), st.sampled_from([np.uint32, np.uint64]))
def test_values_are_spread(sizes: list[int], dtype: type[np.unsignedinteger[Any]]) -> None:
    values = np.arange(10, 10 + len(sizes), dtype=dtype)
    made = spread.spread(values, np.cumsum([0, *sizes], dtype=np.int64))
    assert made.type == pa.from_numpy_dtype(values.dtype)
    assert made.to_pylist() == np.repeat(values, sizes).tolist()


def test_values_are_spread_by_several_threads() -> None:
    sizes = np.random.default_rng(2).integers(0, 1000, 3000)
    sizes[7], sizes[1000:2000] = 400_000, 0
    values = np.arange(3000, dtype=np.uint32)
    made = spread.spread(values, np.append(0, np.cumsum(sizes)))
    assert np.array_equal(made.to_numpy(), np.repeat(values, sizes))


@settings(max_examples=30)
@given(rows=columns, known=st.sets(st.sampled_from(["a", "b", "é", "日", "ab", "no such word", "x" * 100])))
def test_words_of_a_dictionary(engine: str, rows: list[str | None], known: set[str]) -> None:
    dictionary = tadoc.Dictionary.from_words(strings(sorted(known)))
    long = [f"{row or ''} {'x' * 100} ab" for row in rows]
    source = prepare_text(strings([*rows, *long]), WORDS, choose(engine, 0), dictionary=dictionary)
    cut = [reference.tokenize(row, "words")[0] for row in [*(row for row in rows if row is not None), *long]]
    kept = [[word for word in row if word in known] for row in cut]
    offsets, ids, lengths = host(engine, source.root_offsets, source.roots, source.lengths)
    words = source.words.strings.to_pylist()
    assert words == code_points({word for row in kept for word in row})
    assert [words[i] for i in ids] == [word for row in kept for word in row]
    assert offsets.tolist() == np.cumsum([0, *map(len, kept)]).tolist()
    assert lengths.tolist() == list(map(len, cut))
    assert (offsets.dtype, ids.dtype, lengths.dtype) == (np.int64, np.uint32, np.uint64)
