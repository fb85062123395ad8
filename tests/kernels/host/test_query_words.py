"""The words of queries are told apart and found among terms, against dicts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from polars_tadoc.kernels.host.rows.query_words import (
    UNKNOWN,
    copy_words,
    fill_keys,
    find_terms,
    number_words,
    word_keys,
)
from polars_tadoc.model.vocabulary import Vocabulary

pieces = st.lists(st.sampled_from([b"", b"a", b"ab", b"\x00", b"\xff", b"common prefix", "日本".encode()]), max_size=4)
strings = pieces.map(b"".join) | st.binary(max_size=20)


def spans_of(words: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Words in one piece of memory that ends with the last one."""
    ends = np.cumsum([0, *map(len, words)])
    return np.frombuffer(b"".join(words), np.uint8), np.stack([ends[:-1], ends[1:]], axis=1).reshape(-1)


@given(words=st.lists(strings, max_size=40))
def test_number_words(words: list[bytes]) -> None:
    data, spans = spans_of(words)
    numbers, firsts = np.empty(len(words), np.int64), np.empty(len(words), np.int64)
    slots = np.full(1 << (2 * len(words) + 1).bit_length(), -1, np.int64)
    distinct = number_words(data, spans, slots, numbers, firsts)
    expected = {word: number for number, word in enumerate(dict.fromkeys(words))}
    assert distinct == len(expected)
    assert numbers.tolist() == [expected[word] for word in words]
    assert [words[first] for first in firsts[:distinct]] == list(expected)
    chosen = firsts[:distinct][::-1].copy()
    offsets = np.append(0, np.cumsum([len(words[place]) for place in chosen])).astype(np.int64)
    copied = np.empty(offsets[-1], np.uint8)
    copy_words(data, spans, chosen, offsets, copied)
    assert copied.tobytes() == b"".join(words[place] for place in chosen)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ["a", "a\x00", "a\x00\x00", "prefix of eight", "prefix of nine", "prefix o", "prefix", "é" * 9, "é" * 8]
)


@given(terms=st.sets(texts, max_size=40), words=st.lists(texts, max_size=20))
def test_find_terms(terms: set[str], words: list[str]) -> None:
    ascending = sorted(terms, key=str.encode)
    vocabulary = Vocabulary(pa.array(ascending, pa.large_string()))
    keys = np.empty(len(ascending), np.uint64)
    fill_keys(vocabulary.offsets, vocabulary.data, keys)
    assert (keys[1:] >= keys[:-1]).all()
    data, spans = spans_of([word.encode() for word in words])
    own = np.empty(len(words), np.uint64)
    word_keys(data, spans, own)
    for order in (np.arange(len(words)), np.argsort(own)):
        numbers = np.empty(len(words), np.int64)
        find_terms(data, spans, order, vocabulary.offsets, vocabulary.data, keys, numbers)
        assert numbers.tolist() == [ascending.index(word) if word in terms else UNKNOWN for word in words]
