"""Dictionaries as tries: every engine's look-ups against plain Python, and against sorted lists."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_tadoc.config import own_threads
from polars_tadoc.engine.choose import choose
from polars_tadoc.kernels.trie import reference as reference_trie
from polars_tadoc.kernels.trie import trie_cpu as cpu
from polars_tadoc.kernels.trie import trie_words_cpu as trie_words
from polars_tadoc.kernels.trie.arrays import DTYPES, Trie, problem

PADDING = 32


def joined(words: Sequence[bytes]) -> tuple[Any, Any]:
    """Offsets and bytes of words, with spare ones behind."""
    offsets = np.cumsum([0, *(len(word) for word in words)]).astype(np.int64)
    return offsets, np.frombuffer(b"".join(words) + bytes(PADDING), np.uint8)


def built(words: Sequence[bytes]) -> Trie:
    offsets, data = joined(words)
    trie = cpu.build_trie(offsets, data)
    assert problem(trie) is None
    assert trie.words == len(words)
    return trie


def looked_up(engine: str, trie: Trie, words: Sequence[bytes]) -> list[int]:
    kernels = choose(engine, 0).kernels
    offsets, data = joined(words)
    if engine == "gpu":
        cupy: Any = __import__("cupy")
        spans = cupy.asarray(offsets.astype(np.uint32))
        return [
            int(x) for x in kernels.look_up(kernels.load_trie(trie), cupy.asarray(data), spans[:-1], spans[1:]).get()
        ]
    return [int(x) for x in kernels.look_up(trie, data, offsets[:-1], offsets[1:])]


def spelled(engine: str, trie: Trie, ids: Sequence[int]) -> list[bytes]:
    kernels = choose(engine, 0).kernels
    numbers = kernels.load_symbols(np.array(ids, np.uint32))
    offsets, data = (kernels.to_host(array) for array in kernels.spell(kernels.load_trie(trie), numbers))
    text = data.tobytes()
    return [text[start:stop] for start, stop in pairwise(offsets.tolist())]


def hold(engine: str, words: Sequence[bytes], others: Sequence[bytes] = ()) -> Trie:
    """Hold all calls to what sorted lists say."""
    trie = built(words)
    ids = looked_up(engine, trie, words)
    assert sorted(ids) == list(range(len(words)))
    known = set(words)
    strangers = [other for other in others if other not in known]
    assert looked_up(engine, trie, strangers) == [len(words)] * len(strangers)
    assert spelled(engine, trie, ids) == list(words)
    return trie


def hold_prefixes(trie: Trie, words: Sequence[bytes], texts: Sequence[bytes]) -> None:
    ids = looked_up("cpu", trie, words)
    word_of = dict(zip(ids, words, strict=True))
    for text in texts:
        shortest_first = [text[:size] for size in range(1, len(text) + 1) if text[:size] in set(words)]
        assert [word_of[int(i)] for i in cpu.common_prefixes(trie, text)] == shortest_first
        below = [word for word in words if word.startswith(text)]
        assert [word_of[int(i)] for i in cpu.with_prefix(trie, text, len(words))] == below
        assert [word_of[int(i)] for i in cpu.with_prefix(trie, text, 2)] == below[:2]


def ascending(words: Any) -> list[bytes]:
    return sorted({word for word in words if word})


few_letters = st.text("abé", min_size=1, max_size=9).map(str.encode)
any_text = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), min_size=1, max_size=12)
long_ones = st.builds(lambda part, times, end: part * times + end, few_letters, st.integers(1, 60), few_letters)
vocabularies = st.lists(few_letters | any_text.map(str.encode) | long_ones, max_size=60).map(ascending)


@given(words=vocabularies, others=st.lists(few_letters | any_text.map(str.encode), max_size=10))
def test_any_words(engine: str, words: list[bytes], others: list[bytes]) -> None:
    trie = hold(engine, words, others)
    hold_prefixes(trie, words, [b"", b"a", *others, *words[:4]])


@given(words=vocabularies, others=st.lists(few_letters, max_size=5))
def test_plain_python_reads_the_same(words: list[bytes], others: list[bytes]) -> None:
    trie = built(words)
    ids = looked_up("cpu", trie, words)
    assert [reference_trie.look_up(trie, word) for word in words] == ids
    assert [reference_trie.spell(trie, number) for number in ids] == words
    assert reference_trie.spell(trie, len(words)) == b""
    for text in others:
        assert reference_trie.look_up(trie, text) == looked_up("cpu", trie, [text])[0]
        assert reference_trie.common_prefixes(trie, text) == cpu.common_prefixes(trie, text).tolist()
        assert reference_trie.with_prefix(trie, text, 3) == cpu.with_prefix(trie, text, 3).tolist()


HOSTILE = {
    "none": [],
    "one": [b"a"],
    "one long": [b"x" * 20_000],
    "a shared start of thousands of bytes": [b"ab" * 4_000 + bytes([last]) for last in range(1, 256)],
    "a chain": [b"a" * size for size in range(1, 3_001)],
    "a chain and its branches": [b"a" * size + end for size in range(300) for end in (b"a", b"b", b"c" * 30)],
    "branches of every byte": [bytes([a, b]) for a in range(1, 256) for b in range(1, 256)],
    "branches of every byte, deep": [
        b"q" * 9 + bytes([a]) + b"r" * 11 + bytes([b]) for a in range(1, 256) for b in (1, 9)
    ],
    "emoji": [(chr(0x1F300 + a) + chr(0x1F600 + b)).encode() for a in range(80) for b in range(60)],
    "ideographs": [(chr(0x4E00 + a) + chr(0x3042 + b)).encode() for a in range(0, 20_000, 97) for b in range(40)],
    "all but the last byte": [b"the same words with another end " + bytes([a]) for a in range(1, 256)],
    "a block": [bytes([1 + i]) for i in range(128)],
    "a block and one": [bytes([1 + i]) for i in range(129)],
    "70,000 words": [b"%x" % (i * 2_654_435_761 % 2**32) for i in range(70_000)],
    "70,000 words of one length": [b"%07d" % (i * 7) for i in range(70_000)],
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_words(engine: str, name: str) -> None:
    words = ascending(HOSTILE[name])
    others = [word + b"!" for word in words[:100]] + [word[:-1] for word in words[-100:]] + [b"", b"\xff" * 9, b"\0"]
    trie = hold(engine, words, others)
    hold_prefixes(trie, words, [b"", b"a", b"ab" * 3_000, b"!", *words[:2], *words[-2:]] if len(words) < 10_000 else [])


@pytest.mark.parametrize("name", HOSTILE)
def test_words_below_a_prefix_of_many(name: str) -> None:
    words = ascending(HOSTILE[name])
    trie = built(words)
    ids = cpu.with_prefix(trie, b"", len(words))
    assert spelled("cpu", trie, ids.tolist()) == words


def test_the_same_words_give_the_same_arrays() -> None:
    words = ascending(HOSTILE["70,000 words"])
    with own_threads(1):
        alone = built(words)
    for name, first, second in zip(Trie._fields, alone, built(words), strict=True):
        assert np.array_equal(first, second), name


@pytest.mark.parametrize("count", [0, 1, trie_words.LANES - 1, trie_words.LANES, trie_words.LANES + 1, 20_000])
def test_any_number_of_tokens_at_once(engine: str, count: int) -> None:
    words = ascending(b"%d" % number for number in range(0, 3_000, 3))
    trie = built(words)
    ids = dict(zip(words, looked_up("cpu", trie, words), strict=True))
    tokens = [b"%d" % (number * 7 % 4_000) if number % 11 else b"" for number in range(count)]
    assert looked_up(engine, trie, tokens) == [ids.get(token, len(words)) for token in tokens]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([b"b", b"a"], "word 1"),
        ([b"a", b"a"], "word 1"),
        ([b"", b"a"], "word 0"),
        ([b"ab", b"a"], "word 1"),
        ([b"a\0"], "zero byte"),
    ],
)
def test_words_that_are_no_dictionary(words: list[bytes], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cpu.build_trie(*joined(words))


def test_sizes_that_do_not_fit() -> None:
    trie = built([b"a", b"ab", b"ac" * 9])
    for name in DTYPES:
        array = getattr(trie, name)
        if name not in ("codes", "phrases"):
            assert name in str(problem(trie._replace(**{name: array[:-1]})))
        assert name in str(problem(trie._replace(**{name: array.astype(np.int8)})))
        assert problem(trie._replace(**{name: array.reshape(1, -1)})) is not None
    for numbers in ({"words": 9}, {"edges": -1}, {"inner": 90}, {"longest": -1}, {"edges": 2**32}):
        assert problem(trie._replace(**numbers)) is not None


def _reads(engine: str, trie: Trie, words: Sequence[bytes]) -> None:
    """Read a trie in all ways; what comes out may be wrong, but there is no more of it than there can be."""
    assert all(number <= trie.words for number in looked_up(engine, trie, words))
    texts = spelled(engine, trie, range(min(trie.words + 2, 300)))
    assert all(len(text) <= trie.longest for text in texts)
    for text in words[:3]:
        assert len(cpu.common_prefixes(trie, text)) <= trie.words
        assert len(cpu.with_prefix(trie, text[:1], trie.words)) <= trie.words
    assert len(cpu.with_prefix(trie, b"", trie.words)) <= trie.words


@given(data=st.data(), seed=st.integers(0, 2**32))
def test_damaged_arrays_are_read_within_their_bounds(engine: str, data: st.DataObject, seed: int) -> None:
    name = data.draw(st.sampled_from(["few", "one long", "emoji", "a chain and its branches", "all but the last byte"]))
    words = ascending(HOSTILE.get(name, [b"to", b"be", b"tomorrow", b"tomato", b"bee", b"or", b"oracle"]))
    trie, random = built(words), np.random.default_rng(seed)
    damaged = {}
    for field in data.draw(st.sets(st.sampled_from(sorted(DTYPES)), min_size=1)):
        array = getattr(trie, field).copy()
        noise = np.frombuffer(random.bytes(array.nbytes), array.dtype)
        if data.draw(st.booleans()):
            array[:] = noise
        else:
            places = random.integers(0, len(array), 1 + len(array) // 50)
            array[places] ^= noise[places]
        array.flags.writeable = False
        damaged[field] = array
    assert problem(trie._replace(**damaged)) is None
    _reads(engine, trie._replace(**damaged), words[:200])
