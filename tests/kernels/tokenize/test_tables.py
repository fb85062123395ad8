"""Tables of strings, and their merge by ranges of hashes."""

from __future__ import annotations

from collections import Counter
from functools import cache
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.kernels.tokenize import tables_cpu
from polars_tadoc.kernels.tokenize.common_numbers_cpu import CommonNumbers
from polars_tadoc.kernels.tokenize.tables_cpu import Interned, Merge, merge_tables, number
from polars_tadoc.kernels.tokenize.tokenize_cpu import hash_of


@cache
def alike(home: int) -> list[bytes]:
    """Return strings whose hashes have the same highest six bits: those of a 64th of all places."""
    found = [b"%08d" % k for k in range(45_000)]
    return [one for one in found if int(hash_of(int.from_bytes(one, "little"), 0, 8)) >> 58 == home]


def described(strings: list[bytes], kept: list[object]) -> np.ndarray:
    """Addresses and lengths of strings, which ``kept`` keeps alive."""
    data = np.frombuffer(b"".join(strings) + bytes(8), np.uint8)
    kept.append(data)
    lengths = np.array([len(one) for one in strings], np.uint64)
    return np.stack([np.uint64(data.ctypes.data) + np.cumsum(lengths) - lengths, lengths], axis=1).ravel()


def intern(table: Interned, strings: list[bytes], kept: list[object]) -> None:
    """Intern strings; room for more comes bit by bit."""
    for first in range(0, len(strings), 100):
        one = Merge(1)
        one._ranges[0] = table
        some = described(strings[first : first + 100], kept)
        order, ids = np.arange(len(some) // 2, dtype=np.uint32), np.empty(len(some) // 2, np.uint32)
        given = np.array([[some.ctypes.data, order.ctypes.data, ids.ctypes.data]], np.uint64)
        one.intern(0, given, np.array([[0, len(ids)]]))


def table_of(strings: list[bytes], kept: list[object]) -> Interned:
    """Return a table of strings."""
    table = Interned.of([])
    intern(table, strings, kept)
    return table


def assert_merged(parts: list[list[bytes]], threads: int = 3) -> None:
    """Compare the merge with counters, by many ranges and by one."""
    expected = Counter(string for part in parts for string in part)
    for few, each in ((0, 16), (1 << 30, 1 << 30)):
        kept: list[object] = []
        with (
            tadoc.Config(threads=threads),
            patch.object(tables_cpu, "FEW", few),
            patch.object(tables_cpu, "RANGE_STRINGS", each),
        ):
            merged, ids = merge_tables([table_of(part, kept) for part in parts])
            order = merged.order(by_count=False)
            raw = merged.copied(order)
            words = [bytes(raw.buffers()[2])[a:b] for a, b in zip(*offsets_of(raw), strict=True)]
            assert words == sorted(expected)
            assert dict(zip(words, merged.tallies[order].tolist(), strict=True)) == expected
            by_id = dict(zip(order.tolist(), words, strict=True))
            for part, own in zip(parts, ids, strict=True):
                assert [by_id[one] for one in own.tolist()] == list(dict.fromkeys(part))
            ranked = merged.order(by_count=True)
            assert [by_id[one] for one in ranked.tolist()] == sorted(expected, key=lambda w: (-expected[w], w))


def offsets_of(raw: object) -> tuple[list[int], list[int]]:
    ends = np.frombuffer(raw.buffers()[1], np.int64).tolist()  # type: ignore[attr-defined]
    return ends[:-1], ends[1:]


strings = st.one_of(
    st.binary(min_size=1, max_size=20),
    st.integers(0, 300).map(lambda k: b"%d" % k),
    st.integers(0, 40).map(lambda k: b"the same sixteen bytes and %d" % k),
    st.tuples(st.sampled_from([0, 1, 31, 63]), st.integers(0, 40)).map(lambda one: alike(one[0])[one[1]]),
)


@given(parts=st.lists(st.lists(strings, max_size=60), min_size=1, max_size=4))
def test_the_merge_of_any_tables(parts: list[list[bytes]]) -> None:
    assert_merged(parts)


@pytest.mark.parametrize("threads", [1, 2, 16])
@pytest.mark.parametrize("home", [0, 31, 63])
def test_strings_with_almost_equal_hashes(home: int, threads: int) -> None:
    """They are moved on over the places of other ranges, and from the end of a table to its start."""
    same, others = alike(home)[:650], [b"%d" % k for k in range(3000)]
    assert len(same) > 500  # two thirds of the places of the smallest table
    assert_merged([same, others, same[::-1] + others[:50], same[:20]], threads)


def test_a_table_doubles() -> None:
    """Whatever fills a table up: four times as many places for twice as many strings were 0.4 GB too much."""
    table, kept = Interned.of([]), []
    sizes = set()
    for first in range(0, 40_000, 100):
        intern(table, [b"%d" % k for k in range(first, first + 100)], kept)
        places = len(table.arrays.slots) // 4
        assert 2 * places > 3 * table.distinct or places == 1024
        assert places <= 3 * table.distinct + 1024
        sizes.add(places)
    assert sizes == {1 << k for k in range(10, 17)}


def test_strings_that_do_not_occur_are_dropped() -> None:
    """As the separator, and gaps that only occurred as defaults."""
    tables = [Interned.of([b" ", b""]) for _ in range(2)]
    tables[1].arrays.slots[3::4] = (tables[1].arrays.slots[2::4] & np.uint64(0xFFFFFFFF)) == 1  # one space
    strings, ids = number(tables)
    assert strings.to_pylist() == [" "]
    assert ids[1][0] == 0


@given(parts=st.lists(st.lists(strings, min_size=1, max_size=40), min_size=1, max_size=5), threads=st.integers(1, 3))
def test_common_numbers_of_tables_that_fill_up(parts: list[list[bytes]], threads: int) -> None:
    """Each string has one number, from its first time on; the first ones of the largest table are the first."""
    kept: list[object] = []
    tables = [Interned.of([b""]) for _ in range(threads)]
    met: list[dict[bytes, None]] = [{b"": None} for _ in tables]
    with tadoc.Config(threads=3):
        numbers, known = CommonNumbers(tables, 5), {b"": 0}
        for i, part in enumerate(parts):
            intern(tables[i % threads], part, kept)
            met[i % threads] |= dict.fromkeys(part)
            numbers.update()
            if i == 0:  # ids, not words: the separator has one
                assert sorted(numbers.maps[0][:5].tolist()) == list(range(min(5, len(met[0]))))
            for strings_, own in zip(met, numbers.maps, strict=True):
                assert len(strings_) == len(own)
                for string, number_ in zip(strings_, own.tolist(), strict=True):
                    assert known.setdefault(string, number_) == number_
            assert sorted(known.values()) == list(range(numbers.distinct))
        words, rank = numbers.ranked()
        data, (starts, ends) = bytes(words.buffers()[2] or b""), offsets_of(words)
        in_order = sorted(known.keys() - {b""})
        assert [data[a:b] for a, b in zip(starts, ends, strict=True)] == in_order
        assert [rank[known[one]] for one in in_order] == list(range(len(in_order)))


@pytest.mark.parametrize("threads", [1, 3])
@given(
    st.lists(st.text("ab\0\u00ff", max_size=3), max_size=40),
    st.sampled_from(["", "1234567", "12345678", "123456789012345", "1234567890123456", "12345678901234567890123"]),
    st.integers(1, 40),
)
def test_strings_that_begin_alike_are_in_order(threads: int, ends: list[str], start: str, many: int) -> None:
    strings = {(start + end + "x" * (k % many)).encode() for k, end in enumerate(ends)} - {b""}
    kept: list[object] = []
    with tadoc.Config(threads=threads), patch.object(tables_cpu, "FEW_ORDERED", 4):
        made, _ = number([table_of(sorted(strings), kept)], by_count=False)
    assert [one.as_py().encode() for one in made] == sorted(strings)
