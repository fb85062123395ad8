"""Counts of the sequences and pairs of words of text, of which only the ids of one block are held."""

from __future__ import annotations

import re
from collections import Counter
from unittest.mock import patch

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.kernels.host.sequences import hash_counts, text_sequences
from polars_tadoc.kernels.host.sequences.text_sequences import MAX_SPAN, count_text_pairs, count_text_sequences
from polars_tadoc.kernels.tokenize import reference, tokenizer
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer
from tests.kernels.tokenize.test_tokenize import without_unassigned
from tests.strategies import columns

TOKENIZERS = ("words", "whitespace", re.compile("[a-z]+|,"))
LONG = " ".join(f"w{k % 700} é{k % 90}x 中\u0301文{k % 11} a the of" for k in range(1200))


def sequences(words: list[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]


def pairs(words: list[str], window: int) -> list[tuple[str, ...]]:
    near = [(one, other) for i, one in enumerate(words) for other in words[i + 1 : i + 1 + window]]
    return [tuple(sorted(pair, key=str.encode)) for pair in near]


def assert_counts(
    rows: list[str | None], given_: str | re.Pattern[str], span: int, *, of_pairs: bool, min_count: int, top: int | None
) -> None:
    count, oracle = (count_text_pairs, pairs) if of_pairs else (count_text_sequences, sequences)
    expected = Counter(
        key for row in rows if row is not None for key in oracle(reference.tokenize(row, given_)[0], span)
    )
    ordered = sorted(expected.items(), key=lambda one: (-one[1], [word.encode() for word in one[0]]))
    kept = [(list(key), many) for key, many in ordered if many >= min_count][:top]
    text = pl.Series("text", rows, dtype=pl.String)
    found = count(text, Tokenizer.from_argument(given_), span, min_count, top)
    assert found is not None
    words, ids, counts = found
    strings = words.to_pylist()
    assert strings == sorted(strings, key=str.encode)
    assert [([strings[i] for i in row], many) for row, many in zip(ids.tolist(), counts.tolist(), strict=True)] == kept


@pytest.mark.parametrize("of_pairs", [False, True])
@given(
    rows=columns.map(without_unassigned),
    given_=st.sampled_from(TOKENIZERS),
    span=st.integers(1, 3),
    limits=st.sampled_from([(1, None), (2, None), (1, 2), (0, 5), (1, 0)]),
)
def test_counts_of_all_rows(
    of_pairs: bool,
    rows: list[str | None],
    given_: str | re.Pattern[str],
    span: int,
    limits: tuple[int, int | None],
) -> None:
    with patch.object(text_sequences, "PIECES", 1), patch.object(hash_counts, "HELD", 1):
        assert_counts(rows, given_, span, of_pairs=of_pairs, min_count=limits[0], top=limits[1])


@pytest.mark.parametrize(
    ("held", "threads", "of_pairs", "span"),
    [  # every pair of these, not all combinations
        (held, (1, 3)[(place + turn) % 2], of_pairs, span)
        for place, held in enumerate((1, 5000, 1 << 20))
        for turn, (of_pairs, span) in enumerate([(False, 1), (False, 3), (True, 2), (True, 5)])
    ],
)
def test_sequences_span_pieces_and_blocks_of_a_row_but_not_rows(
    held: int, threads: int, of_pairs: bool, span: int
) -> None:
    rows = [LONG, None, "", LONG + " end", *map(str, range(3000)), "y" * 90_000 + " " + "y" * 41, "a", "the a"]
    with (
        tadoc.Config(threads=threads),
        patch.object(tokenizer, "PIECE_BYTES", 1 << 12),
        patch.object(text_sequences, "PIECES", 2),
        patch.object(hash_counts, "HELD", held),
        patch.object(hash_counts, "PART", held),
    ):
        for given_ in TOKENIZERS:
            assert_counts(rows, given_, span, of_pairs=of_pairs, min_count=1, top=None)


def test_what_does_not_fit_64_bits_is_left_to_others() -> None:
    text, words = pl.Series("text", [LONG]), Tokenizer("words")
    assert count_text_sequences(text, words, 4, 1, None) is None
    assert count_text_pairs(text, words, MAX_SPAN + 1, 1, None) is None
    with patch.object(text_sequences, "MAX_BITS", 24):
        assert count_text_sequences(text, words, 3, 1, None) is None  # 801 words do not fit 8 bits
        assert count_text_sequences(text, words, 2, 1, None) is not None
        own = text.to_frame().tadoc.sequence_count("text", n=3)
    assert own.equals(text.to_frame().tadoc.compress("text").tadoc.sequence_count("text", n=3))


@pytest.mark.parametrize("call", ["sequence_count", "cooccurrence"])
def test_a_row_that_is_not_utf8_is_named(call: str) -> None:
    data = pa.array([b"to be", b"to \xff"], pa.large_binary()).buffers()
    text = pl.Series("body", pa.LargeStringArray.from_buffers(2, *data[1:]))
    with pytest.raises(ValueError, match=r'column "body", row 1: not UTF-8 \('):
        getattr(tadoc, call)(text, engine="cpu")
