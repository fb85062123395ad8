"""The device cuts text as the CPU does, bit for bit."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polars_tadoc.engine import cuda
from polars_tadoc.kernels.repair import batch_repair
from polars_tadoc.kernels.repair.gaps import predict_gaps
from polars_tadoc.kernels.repair.gaps_cuda import encode_gaps
from polars_tadoc.kernels.repair.gaps_cuda import predict_gaps as predict_gaps_on_device
from polars_tadoc.kernels.repair.prune import prune
from polars_tadoc.kernels.repair.prune_cuda import DeviceLevelledRules
from polars_tadoc.kernels.tokenize import intern_cuda as intern
from polars_tadoc.kernels.tokenize.tokenize_cuda import tokenize as tokenize_on_device
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, tokenize
from tests.strategies import columns, columns_without_nulls

pytestmark = pytest.mark.skipif(cuda.device_problem() is not None, reason=f"no device: {cuda.device_problem()}")

WORDS, WHITESPACE = Tokenizer("words"), Tokenizer("whitespace")


def assert_same(text: pl.Series, tokenizer: Tokenizer = WORDS) -> None:
    expected = tokenize(text, tokenizer)
    tokens = tokenize_on_device(text, tokenizer)
    assert tokens.gaps is not None
    offsets, data = encode_gaps(tokens.gaps)
    assert tokens.vocabulary.equals(expected.vocabulary)
    assert np.array_equal(tokens.sequence.get(), expected.sequence)
    ends = np.flatnonzero(expected.sequence == 0xFFFFFFFF) + 1
    assert np.array_equal(tokens.row_tokens.get(), [0, *ends])
    assert tokens.gaps.vocabulary.equals(expected.gap_vocabulary)
    assert np.array_equal(offsets.get(), expected.gap_offsets)
    assert np.array_equal(data.get(), expected.gap_data)
    for strings in (tokens.vocabulary, tokens.gaps.vocabulary):
        strings.validate(full=True)


def assert_same_predictions(text: pl.Series) -> None:
    import cupy

    tokens = tokenize(text, WORDS)
    size = len(tokens.vocabulary)
    rules = prune(batch_repair.build(tokens.sequence, size), size, len(text))
    codes, offsets, data = predict_gaps(tokens, rules)
    on_device = DeviceLevelledRules(
        cupy.asarray(rules.rule_offsets),
        cupy.asarray(rules.symbols),
        cupy.asarray(rules.level_offsets),
        cupy.asarray(rules.root_offsets),
        cupy.asarray(rules.roots),
    )
    noted = tokenize_on_device(text, WORDS).gaps
    assert noted is not None
    predicted = predict_gaps_on_device(noted, size, on_device)
    assert np.array_equal(predicted.codes.get(), codes)
    assert np.array_equal(predicted.offsets.get(), offsets)
    assert np.array_equal(predicted.data.get(), data)


def strings(rows: list[str | None]) -> pl.Series:
    return pl.Series("text", rows, pl.String)


@pytest.fixture
def colliding(request: pytest.FixtureRequest) -> Iterator[None]:
    standard = intern.hash_defines
    intern.hash_defines = (f"-DHASH_MASK={request.param}ull",)
    yield
    intern.hash_defines = standard


@pytest.mark.parametrize("tokenizer", [WORDS, WHITESPACE], ids=lambda tokenizer: tokenizer.name)
@given(rows=columns)
def test_texts_that_break_things(tokenizer: Tokenizer, rows: list[str | None]) -> None:
    assert_same(strings(rows), tokenizer)


@pytest.mark.parametrize("colliding", ["0", "0xFFFFFFFF", "0xFFFFFFFF00000000", "0x300000001"], indirect=True)
@pytest.mark.usefixtures("colliding")
@settings(max_examples=20)
@given(rows=columns)
def test_colliding_hashes_do_not_show(rows: list[str | None]) -> None:
    assert_same(strings(rows))


@given(
    st.lists(
        st.sampled_from(["日", "\u3099", "\ufe0f", "a", "\u200d", " ", "ー", "\n", "é", "\U000e0100"]), max_size=90
    ),
    st.integers(0, 40),
)
def test_marks_and_singles_across_bitmap_words(pieces: list[str], before: int) -> None:
    text = "x" * before + "".join(pieces)
    assert_same(strings([text, "".join(pieces), text[before:][:7]]))


@pytest.mark.parametrize("base", ["日", "a", "", " ", "a日", "日a", "\n"])
@pytest.mark.parametrize("marks", [31, 32, 33, 5000, 100_000])
def test_a_letter_after_many_marks(base: str, marks: int) -> None:
    text = base + "\u0301" * marks + "b c"
    assert_same(strings([text, "x", "\u0301" * marks + "b", "x日" + text, text + text]))


@pytest.mark.parametrize(("pattern", "flags"), [(r"[a-z]+", 0), (r"\S*", 0), (r"é+|日", 0), (r"", 0), (r"^.", re.M)])
@settings(max_examples=20)
@given(rows=columns_without_nulls)
def test_regex_matches(pattern: str, flags: int, rows: list[str]) -> None:
    assert_same(strings(rows), Tokenizer.from_argument(re.compile(pattern, flags)))


@settings(max_examples=30)
@given(st.lists(st.binary(max_size=6), max_size=60), st.randoms(use_true_random=False))
def test_refuses_what_is_not_utf_8_and_nothing_else(pieces: list[bytes], random_: random.Random) -> None:
    pool = [*pieces, b"ascii ", "é日😀".encode(), b"\xe6\x97", b"\xa5", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\x80"]
    rows = [b"".join(random_.choices(pool, k=random_.randrange(9))) for _ in range(5)]
    for row in [*rows, *pool]:
        text = pl.Series("text", pa.array([b"before", row, b"\x80"[:0]], pa.large_binary()).view(pa.large_string()))
        try:
            row.decode()
        except UnicodeDecodeError:
            with pytest.raises(ValueError, match="row 1: not UTF-8"):
                tokenize_on_device(text, WORDS)
        else:
            assert_same(text)


def test_empty_columns_and_rows() -> None:
    for rows in ([], [""], [None], ["", ""], [None, "a", None], ["a", "", "", "b", ""]):
        assert_same(strings(rows))
    assert_same(strings(["", None] * 500_000 + ["a"] + [""] * 100_000))


def test_rows_of_one_byte() -> None:
    assert_same(strings(list("ab, \n") * 40_000))


@pytest.mark.parametrize("unit", ["a ", "a", "日", "a, ", " ", "a\u0301"])
def test_one_word_over_and_over(unit: str) -> None:
    assert_same(strings([unit * 1_000_000, "b", unit * 1_000_001]))


def test_one_word_ten_million_times() -> None:
    assert_same(strings(["the " * 10_000_000]))


def test_long_words_that_start_alike() -> None:
    stem = "x" * 300_000
    assert_same(strings([f"{stem}{i % 7} {stem[: 7 * i]} {stem[: i % 50]}é " * 2 for i in range(30)]))
    assert_same(strings([f"{'-' * (i % 1500)}a" for i in range(4000)]))


def test_zero_bytes_order_by_length() -> None:
    zeros = (
        ["a" + "\0" * n for n in range(20)] + ["\0" * n + "a" for n in range(20)] + ["a" * 7 + "\0" * n for n in (0, 1)]
    )
    random.Random(1).shuffle(zeros)
    assert_same(strings([" ".join(zeros)]), WHITESPACE)


def test_more_ties_than_the_host_takes() -> None:
    # all counts equal, the first 14 bytes too
    rows = ["fourteen bytes" + " ".join(f"fourteen_bytes{i * 7919 % 40_000:x}" for i in range(40_000))]
    assert_same(strings(rows))


def test_tables_grow() -> None:
    row = " ".join(f"w{i}" for i in range(60_000)) + "".join(f"x{'.' * i}" for i in range(1, 1200))
    assert_same(strings([row, row]))


def test_slices_and_several_buffers() -> None:
    whole = pl.concat(
        [strings([f"row {i} of some length", "short", None, "tiny é"]) for i in range(300)], rechunk=False
    )
    assert_same(whole.slice(501, 77))
    assert_same(whole.gather(np.random.default_rng(3).permutation(len(whole))))


def test_lossy_keeps_no_gaps() -> None:
    tokens = tokenize_on_device(strings(["a,  b", "c"]), WORDS, lossless=False)
    assert tokens.gaps is None
    assert tokens.sequence.get().tolist() == [0, 1, 0xFFFFFFFF, 2, 0xFFFFFFFF]


@pytest.mark.parametrize("name", ["logs_dmesg", "versioned_longhorn", "docs_peps", "prose_books"])
@pytest.mark.parametrize("tokenizer", [WORDS, WHITESPACE], ids=lambda tokenizer: tokenizer.name)
def test_corpora(corpus: Callable[[str], pl.DataFrame], name: str, tokenizer: Tokenizer) -> None:
    assert_same(corpus(name)["text"], tokenizer)


@given(rows=columns)
def test_predicted_gaps(rows: list[str | None]) -> None:
    assert_same_predictions(strings([row and row * 3 for row in rows]))


def test_predicted_gaps_of_no_row_and_of_no_word() -> None:
    for rows in ([], [""], ["", None], [",,", "", " "]):
        assert_same_predictions(strings(rows))


def test_predicted_gaps_of_one_rule_and_one_gap() -> None:
    assert_same_predictions(strings(["a, " * 200_000, "a  " * 5 + "b"]))


@pytest.mark.parametrize("name", ["logs_dmesg", "versioned_longhorn", "docs_peps", "prose_books"])
def test_predicted_gaps_of_corpora(corpus: Callable[[str], pl.DataFrame], name: str) -> None:
    assert_same_predictions(corpus(name)["text"])
