"""The words of queries are told apart and found among terms, against dicts."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import polars as pl
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from polars_tadoc.kernels.host.rows.query_words import (
    UNKNOWN,
    analyze_words,
    fill_keys,
    find_lists,
    find_terms,
    lower_words,
    number_words,
    weigh_words,
    word_keys,
)
from polars_tadoc.kernels.tokenize import characters
from polars_tadoc.model.vocabulary import Vocabulary
from polars_tadoc.model.word_map import MAX_CASED, lower_case_table

pieces = st.lists(st.sampled_from([b"", b"a", b"ab", b"\x00", b"\xff", b"common prefix", "日本".encode()]), max_size=4)
strings = pieces.map(b"".join) | st.binary(max_size=20)


def spans_of(words: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Words in one piece of memory that ends with the last one."""
    ends = np.cumsum([0, *map(len, words)])
    return np.frombuffer(b"".join(words), np.uint8), np.stack([ends[:-1], ends[1:]], axis=1).reshape(-1)


@given(words=st.lists(strings, max_size=40))
def test_number_words(words: list[bytes]) -> None:
    data, spans = spans_of(words)
    numbers, own = np.empty(len(words), np.int64), np.empty(2 * len(words), np.int64)
    slots = np.empty(1 << (2 * len(words) + 1).bit_length(), np.int64)
    distinct = number_words(data, spans, slots, numbers, own)
    expected = {word: number for number, word in enumerate(dict.fromkeys(words))}
    assert distinct == len(expected)
    assert numbers.tolist() == [expected[word] for word in words]
    pairs = own[: 2 * distinct].reshape(-1, 2)
    assert [data[start:stop].tobytes() for start, stop in pairs] == list(expected)


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
        frequencies = np.arange(len(ascending), dtype=np.uint32) + np.uint32(1 << 31)
        totals, again = np.arange(len(words)), np.empty(len(words), np.int64)
        find_lists(data, spans, order, vocabulary.offsets, vocabulary.data, keys, frequencies, again, totals)
        assert again.tolist() == numbers.tolist()
        assert totals.tolist() == [
            i + (int(frequencies[number]) if number != UNKNOWN else 0) for i, number in enumerate(numbers.tolist())
        ]


@given(
    queries=st.lists(st.text(st.sampled_from("aBc zZé日_-9@[`{ÉЖⰀ𐐀Σẞ\u212a"), max_size=20), max_size=5),
    stop=st.sets(st.sampled_from(["", "a", "B", "b", "bc", "é", "zz"])),
    maps=st.booleans(),
    lowers=st.booleans(),
    any_script=st.booleans(),
)
def test_analyze_words(queries: list[str], stop: set[str], maps: bool, lowers: bool, any_script: bool) -> None:
    """Against a regular expression and Python's lower()."""
    data, spans = spans_of([query.encode() for query in queries])
    ends = np.append(spans[::2], len(data)).astype(np.int64)
    stops = Vocabulary(pa.array(sorted(stop, key=str.encode), pa.large_string()))
    keys = np.empty(len(stop), np.uint64)
    fill_keys(stops.offsets, stops.data, keys)
    classes = characters.classes("words")
    size = len(data)
    lowered, room, words = np.empty(size, np.uint8), np.empty(6 * size + 10, np.int64), np.empty(size, np.int64)
    offsets, distinct = np.empty(len(ends), np.int64), np.empty(2 * size, np.int64)
    table = lower_case_table() if any_script else np.zeros(0, np.uint32)
    count, found, is_mapped = analyze_words(
        data, ends, classes.page_of, classes.pages, int(classes.firsts), int(classes.widths), maps, lowers,
        stops.offsets, stops.data, keys, table, lowered, room, words, offsets, distinct,
    )  # fmt: skip
    text = "".join(queries)
    assert is_mapped == (maps and (not lowers or text.isascii() or (any_script and not set(text) & set("Σẞ\u212a"))))
    cut = [re.findall(r"日|\w+?(?=日|\W|$)", query) for query in queries]
    if is_mapped:
        cut = [[word.lower() if lowers else word for word in own] for own in cut]
    names = [lowered[start:end].tobytes().decode() for start, end in distinct[: 2 * found].reshape(-1, 2)]
    assert names == list(dict.fromkeys(word for own in cut for word in own))
    left = [[word for word in own if word not in stop] for own in cut] if is_mapped else cut
    assert count == sum(map(len, left))
    assert [[names[word] for word in words[a:b]] for a, b in pairwise(offsets)] == left


def test_lower_words() -> None:
    """Every character of every length, against what Polars makes of it."""
    texts = [chr(code) for code in range(MAX_CASED + 2) if not 0xD800 <= code < 0xE000]
    images = pl.Series(texts).str.to_lowercase().to_list()
    table = lower_case_table()
    for text, image in zip(texts, images, strict=True):
        data = np.frombuffer(text.encode(), np.uint8).copy()
        is_alone = lower_words(data, table)
        assert is_alone == (len(image.encode()) == len(data) and text != "Σ" and len(image) == 1)
        if is_alone:
            assert data.tobytes().decode() == image


@given(data=st.data(), names=st.lists(texts, max_size=30, unique=True), phrases=st.integers(0, 3), based=st.booleans())
def test_weigh_words(data: st.DataObject, names: list[str], phrases: int, based: bool) -> None:
    """Against sorting by a key and adding up in Python."""
    known = len(names) + phrases
    one = st.lists(st.integers(0, known - 1), max_size=40) if known else st.just([])
    queries = data.draw(st.lists(one, max_size=4))
    few = st.lists(st.integers(0, 3), min_size=known, max_size=known)
    reals = st.lists(st.floats(0, 10), min_size=known, max_size=known)
    frequencies, weights, bases = data.draw(few), data.draw(reals), data.draw(reals)
    places = data.draw(st.permutations(range(known)))
    encoded, spans = spans_of([name.encode() for name in names])

    def term(word: int) -> tuple[bool, bytes, int]:
        return word >= len(names), names[word].encode() if word < len(names) else b"", word

    expected, sums = [], []
    for query in queries:
        distinct = sorted(set(query), key=lambda word: (frequencies[word], term(word)))
        worth = [query.count(word) * weights[places[word]] for word in distinct]
        expected.append(list(zip(distinct, np.array(worth, np.float32).tolist(), strict=True)))
        total = 0.0
        for word in sorted(set(query), key=term):
            total += query.count(word) * bases[places[word]]
        sums.append(np.float32(total) if based and known else np.float32(7))
    flat = np.array([word for query in queries for word in query], np.int64)
    offsets = np.append(0, np.cumsum([len(query) for query in queries])).astype(np.int64)
    at, entries, own = np.empty(len(offsets), np.int64), np.empty(len(flat), np.int64), np.empty(len(flat), np.float32)
    totals = np.full(len(queries), 7, np.float32)
    given_bases = np.array(bases if based else [], np.float64)
    numbers = np.array(frequencies, np.int64)
    count = weigh_words(
        offsets, flat, encoded, spans, numbers, np.array(weights, np.float64), given_bases, np.array(places, np.int64),
        at, entries, own, totals,
    )  # fmt: skip
    assert count == at[-1]
    got = [list(zip(entries[a:b].tolist(), own[a:b].tolist(), strict=True)) for a, b in pairwise(at)]
    assert got == expected
    assert totals.tolist() == np.array(sums, np.float32).tolist()
