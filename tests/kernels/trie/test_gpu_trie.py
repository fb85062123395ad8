"""Dictionaries on the device: what tokens are looked up in, and the trie itself."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polars_tadoc.engine import cuda
from polars_tadoc.kernels.primitives.upload_cuda import PADDING
from polars_tadoc.kernels.trie import trie_cpu as cpu
from polars_tadoc.kernels.trie import trie_cuda as trie
from polars_tadoc.kernels.trie import word_rows_cuda as word_rows
from polars_tadoc.kernels.trie import word_table_cuda as word_table

pytestmark = pytest.mark.skipif(cuda.device_problem() is not None, reason=f"no device: {cuda.device_problem()}")

LENGTHS = [1, 2, 3, 7, 8, 9, 12, 16, 63, 64, 65, 66, 72, 255, 256, 257, 300, 700]
words = st.lists(
    st.one_of(
        st.binary(min_size=1, max_size=12),
        st.text("abé日", min_size=1, max_size=90).map(str.encode),
        st.builds(
            lambda stem, n, end: stem * n + end, st.sampled_from([b"x", b"ab"]), st.integers(0, 200), st.binary()
        ),
    )
    .map(lambda word: word.replace(b"\0", b"0"))
    .filter(bool),
    max_size=60,
    unique=True,
)


@pytest.fixture
def colliding(request: pytest.FixtureRequest) -> Iterator[None]:
    standard = word_table.hash_defines
    word_table.hash_defines = (f"-DHASH_MASK={request.param}ull",)
    yield
    word_table.hash_defines = standard


def packed(strings: Sequence[bytes]) -> tuple[Any, Any]:
    """Offsets and bytes, in host memory."""
    offsets = np.zeros(len(strings) + 1, np.int64)
    np.cumsum([len(string) for string in strings], out=offsets[1:])
    return offsets, np.frombuffer(b"".join(strings) + bytes(PADDING), np.uint8)


def on_device(strings: Sequence[bytes]) -> tuple[Any, Any, Any]:
    """Text, starts and stops."""
    import cupy

    offsets, data = packed(strings)
    places = cupy.asarray(offsets.astype(np.uint32))
    return cupy.asarray(data), places[:-1], places[1:]


def near(strings: Sequence[bytes], random_: random.Random, count: int = 400) -> list[bytes]:
    """Draw words, and what is nearly one: cut short, with a zero or another byte behind, the last byte another."""
    drawn = [random_.choice(strings) if strings else b"" for _ in range(count)]
    ends = [lambda w: w, lambda w: w[:-1], lambda w: w + b"\0", lambda w: w + b"a", lambda w: w[:-1] + b"\x7f"]
    return [random_.choice(ends)(word) for word in drawn] + [b"", b"\0", b"q" * 5000]


def look_up_table(strings: Sequence[bytes], tokens: Sequence[bytes]) -> list[int]:
    import cupy

    table = word_table.make_table(*map(cupy.asarray, packed(strings)))
    assert table is not None
    return word_table.find_words(table, *on_device(tokens)).tolist()  # type: ignore[no-any-return]


def expected(strings: Sequence[bytes], tokens: Sequence[bytes]) -> list[int]:
    number = {word: i for i, word in enumerate(strings)}
    return [number.get(token, len(strings)) for token in tokens]


@given(words, st.randoms(use_true_random=False))
def test_a_table_has_its_words_and_no_others(strings: list[bytes], random_: random.Random) -> None:
    tokens = near(strings, random_)
    assert look_up_table(strings, tokens) == expected(strings, tokens)


@pytest.mark.parametrize("colliding", ["0", "0xFFFFFFFF", "0x300000001"], indirect=True)
@pytest.mark.usefixtures("colliding")
@settings(max_examples=15)
@given(words, st.randoms(use_true_random=False))
def test_colliding_hashes_do_not_show(strings: list[bytes], random_: random.Random) -> None:
    tokens = near(strings, random_)
    assert look_up_table(strings, tokens) == expected(strings, tokens)


def test_words_of_all_lengths_and_a_full_block() -> None:
    random_ = random.Random(5)
    strings = list({bytes(random_.choices(b"abcdefgh", k=random_.choice(LENGTHS))) for _ in range(2000)})
    tokens = near(strings, random_, 20_000)
    assert look_up_table(strings, tokens) == expected(strings, tokens)


@pytest.mark.parametrize("small_parts", [False, True])
def test_rows_of_any_column(small_parts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if small_parts:
        monkeypatch.setattr(word_rows, "_MAX_BYTES", 100)
    random_ = random.Random(7)
    rows = ["".join(random_.choices("abé日", k=random_.choice([0, 1, 3, 5, 12, 13, 20, 90]))) for _ in range(500)]
    whole = pl.Series(rows)
    several = pl.concat([whole, whole.slice(100, 50)], rechunk=False)
    for series in (whole, several, several.slice(33, 7), whole.filter(pl.Series([True, False] * 250)), whole.head(0)):
        got: list[str] = []
        for text, starts, stops in word_rows.upload_words(series):
            held = text.get().tobytes()
            got += [held[a:b].decode() for a, b in zip(starts.tolist(), stops.tolist(), strict=True)]
        assert got == series.to_list()


def built(strings: Sequence[bytes]) -> Any:
    return cpu.build_trie(*packed(sorted(strings)))


def ids_on_cpu(made: Any, tokens: Sequence[bytes]) -> list[int]:
    offsets, data = packed(tokens)
    return cpu.look_up(made, data, offsets[:-1], offsets[1:]).tolist()  # type: ignore[no-any-return]


def spelled(found: tuple[Any, Any]) -> list[bytes]:
    offsets, data = found
    held = data.get().tobytes()
    assert len(held) == int(offsets[-1])
    return [held[a:b] for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]


def assert_same(strings: Sequence[bytes], tokens: Sequence[bytes]) -> None:
    """Ids as on the CPU, by table and by walks; words of ids, copied and by walks."""
    import cupy

    made = built(strings)
    resident = cuda.load_trie(made)
    assert resident.table is not None
    walking = trie.ResidentTrie(resident.trie, None)
    expected_ids = ids_on_cpu(made, tokens)
    for one in (resident, walking):
        assert cuda.look_up(one, *on_device(tokens)).tolist() == expected_ids
    for chunk in (1, 32, 45):
        assert trie.walk_words(resident.trie, *on_device(tokens), chunk=chunk).tolist() == expected_ids
    word = dict(zip(ids_on_cpu(made, list(strings)), strings, strict=True))
    assert len(word) == len(strings)
    ids = [*expected_ids, *word, len(strings), 0xFFFFFFFF]
    for one in (resident, walking):
        got = spelled(cuda.spell(one, cupy.asarray(np.array(ids, np.uint32))))
        assert got == [word.get(id_, b"") for id_ in ids]


@pytest.mark.parametrize("known_starts", [0, 2, 1 << 16])
@settings(max_examples=25)
@given(words, st.randoms(use_true_random=False))
def test_a_trie_has_its_words_and_no_others(known_starts: int, strings: list[bytes], random_: random.Random) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trie, "_KNOWN_STARTS", known_starts)
        assert_same(strings, near(strings, random_))


def test_no_words_and_no_tokens() -> None:
    assert_same([], [b"", b"a"])
    assert_same([b"a"], [])


def test_wide_groups_deep_ways_and_long_words() -> None:
    random_ = random.Random(3)
    every = [bytes([byte]) for byte in range(1, 256)]
    wide = [
        *every,
        *(a + b for a in every[40:140] for b in every[::3]),
        *(a + b"q" + b for a in every for b in every[:9]),
    ]
    deep = [b"x" * n for n in range(1, 3000)]
    long = [bytes(random_.choices(b"abc", k=20_000)) * 5 + bytes([97 + n]) for n in range(4)]
    for strings in (wide, deep, [*long, b"a", b"b"], [*wide, *long, *(b"z" + word for word in deep[::50])]):
        distinct = list(dict.fromkeys(strings))
        assert_same(distinct, near(distinct, random_, 300))


def test_many_blocks() -> None:
    random_ = random.Random(4)
    strings = list({bytes(random_.choices(b"etaoins", k=random_.randrange(1, 12))) for _ in range(30_000)})
    assert_same(strings, near(strings, random_, 20_000))


@pytest.mark.parametrize("colliding", ["0"], indirect=True)
@pytest.mark.usefixtures("colliding")
def test_words_that_can_have_no_table_are_walked_to() -> None:
    strings = [b"%d" % n for n in range(3000)]
    resident = cuda.load_trie(built(strings))
    assert resident.table is None
    tokens = near(strings, random.Random(6))
    assert cuda.look_up(resident, *on_device(tokens)).tolist() == ids_on_cpu(built(strings), tokens)


@settings(max_examples=40)
@given(words, st.randoms(use_true_random=False), st.integers(1, 400))
def test_damaged_arrays_are_never_read_beyond(strings: list[bytes], random_: random.Random, changes: int) -> None:
    import cupy

    made = built(strings)
    arrays = [array.copy() for array in made.arrays]
    for _ in range(changes):
        held = random_.choice(arrays).view(np.uint8)
        if len(held):
            held[random_.randrange(len(held))] = random_.randrange(256)
    resident = cuda.load_trie(type(made)(*made[:4], *arrays))
    tokens = on_device(near(strings, random_))
    assert max(cuda.look_up(resident, *tokens).tolist()) <= made.words
    assert max(trie.walk_words(resident.trie, *tokens).tolist()) <= made.words
    ids = cupy.arange(made.words + 1, dtype=np.uint32)
    assert all(len(word) <= made.longest for word in spelled(cuda.spell(trie.ResidentTrie(resident.trie, None), ids)))


def test_rows_are_looked_up() -> None:
    strings = ["a", "ab", "日本", "a word of more than twelve bytes"]
    resident = cuda.load_trie(built([string.encode() for string in strings]))
    series = pl.Series([*strings, None, "", "b", strings[3] + "x"])
    found = cuda.look_up_rows(resident, series).tolist()
    assert sorted(found[:4]) == [0, 1, 2, 3]
    assert found[5:] == [4, 4, 4]
    assert cuda.look_up_rows(resident, series.head(0)).tolist() == []
