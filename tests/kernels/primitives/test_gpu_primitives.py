from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_tadoc.engine.cuda import device_problem
from polars_tadoc.kernels.primitives import primitives_cuda as primitives
from polars_tadoc.kernels.primitives import reference

pytestmark = pytest.mark.skipif(device_problem() is not None, reason=str(device_problem()))

EDGES = sorted(
    {
        *(0, 1, 2, 31, 32, 33, 10_000),
        *(tile + change for tile in (primitives.SORT_TILE, primitives.SCAN_TILE) for change in (-1, 0, 1)),
    }
)
numbers = st.integers(0, 2**64 - 1) | st.integers(0, 3)


def on_device(values: Any, dtype: Any) -> Any:
    import cupy

    return cupy.asarray(np.array(values, dtype))


def skewed(size: int, most: int) -> Any:
    return (np.random.default_rng(size).zipf(1.3, size) % most).astype(np.uint64)


@given(
    pairs=st.lists(st.tuples(numbers, numbers), max_size=100),
    first_bit=st.integers(0, 63),
    bits=st.integers(0, 64),
    wide_keys=st.booleans(),
    value_type=st.sampled_from([None, np.uint32, np.uint64]),
    overwrite=st.booleans(),
)
def test_radix_sort_matches_reference(
    pairs: list[tuple[int, int]], first_bit: int, bits: int, wide_keys: bool, value_type: Any, overwrite: bool
) -> None:
    key_bits = 64 if wide_keys else 32
    first_bit %= key_bits
    keys = [key % 2**key_bits for key, _ in pairs]
    values = [value % (2**32 if value_type is np.uint32 else 2**64) for _, value in pairs]
    expected = reference.radix_sort(keys, values, first_bit, min(bits, key_bits - first_bit))
    given_keys = on_device(keys, np.uint64 if wide_keys else np.uint32)
    if value_type is None:
        got = primitives.radix_sort(given_keys, None, bits, first_bit, overwrite)
        assert got.get().tolist() == expected[0]
    else:
        got = primitives.radix_sort(given_keys, on_device(values, value_type), bits, first_bit, overwrite)
        assert (got[0].get().tolist(), got[1].get().tolist()) == expected
        assert got[1].dtype == value_type
    if not overwrite:
        assert given_keys.get().tolist() == keys


@pytest.mark.parametrize("size", EDGES)
@pytest.mark.parametrize("bits", [1, 8, 9, 17, 64])
def test_radix_sort_at_the_edges_of_tiles(size: int, bits: int) -> None:
    keys = skewed(size, 1 << 20) << np.uint64(3)
    order = np.argsort(keys >> np.uint64(3) & np.uint64((1 << bits) - 1), kind="stable")
    sorted_keys, places = primitives.radix_sort(
        on_device(keys, np.uint64), on_device(np.arange(size), np.uint32), bits, first_bit=3
    )
    assert np.array_equal(places.get(), order)
    assert np.array_equal(sorted_keys.get(), keys[order])


def test_radix_sort_of_many_keys() -> None:
    for keys in (skewed(3_000_000, 1 << 17), np.zeros(1_000_000, np.uint64), np.arange(1_000_000)[::-1]):
        order = np.argsort(keys, kind="stable")
        _, places = primitives.radix_sort(on_device(keys, np.uint32), on_device(np.arange(len(keys)), np.uint64), 32)
        assert np.array_equal(places.get(), order)


@given(st.lists(st.tuples(st.integers(0, 3), numbers), max_size=100))
def test_sum_runs_matches_reference(pairs: list[tuple[int, int]]) -> None:
    keys, weights = [key for key, _ in pairs], [weight for _, weight in pairs]
    for dtype in (np.uint32, np.uint64):
        run_keys, sums = primitives.sum_runs(on_device(keys, dtype), on_device(weights, np.uint64))
        assert run_keys.dtype == dtype
        assert (run_keys.get().tolist(), sums.get().tolist()) == reference.sum_runs(keys, weights)


@pytest.mark.parametrize("size", EDGES)
@pytest.mark.parametrize("most", [1, 50, 1 << 40])
def test_sum_runs_at_the_edges_of_tiles(size: int, most: int) -> None:
    keys = np.sort(skewed(size, most))
    weights = np.random.default_rng(1).integers(0, 2**63, size).astype(np.uint64)
    run_keys, sums = primitives.sum_runs(on_device(keys, np.uint64), on_device(weights, np.uint64))
    expected = reference.sum_runs(keys.tolist(), weights.tolist())
    assert (run_keys.get().tolist(), sums.get().tolist()) == expected


@given(st.lists(st.tuples(numbers, st.booleans()), max_size=100))
def test_compact_matches_reference(pairs: list[tuple[int, bool]]) -> None:
    values, keep = [value for value, _ in pairs], [kept for _, kept in pairs]
    got = primitives.compact(on_device(values, np.uint64), on_device(keep, np.bool_))
    assert got.get().tolist() == reference.compact(values, keep)


@pytest.mark.parametrize("size", EDGES)
def test_compact_at_the_edges_of_tiles(size: int) -> None:
    values = np.arange(size, dtype=np.uint32)
    for keep in (skewed(size, 3) == 1, np.ones(size, bool), np.zeros(size, bool)):
        got = primitives.compact(on_device(values, np.uint32), on_device(keep, np.uint8))
        assert np.array_equal(got.get(), values[keep])


@given(st.lists(st.integers(0, 2**55), max_size=100))
def test_exclusive_scan_matches_reference(values: list[int]) -> None:
    assert primitives.exclusive_scan(on_device(values, np.uint64)).get().tolist() == reference.exclusive_scan(values)


@pytest.mark.parametrize("size", [*EDGES, 3_000_000])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.int64, np.uint64])
def test_exclusive_scan_at_the_edges_of_tiles(size: int, dtype: Any) -> None:
    values = skewed(size, 200).astype(dtype)
    sums = primitives.exclusive_scan(on_device(values, dtype))
    assert sums.dtype == np.int64
    assert np.array_equal(sums.get(), np.concatenate([[0], np.cumsum(values.astype(np.int64))]))


segment_lengths = st.lists(st.sampled_from([0, 0, 0, 1, 2, 7, 40]), max_size=60)


@given(segment_lengths, st.randoms(use_true_random=False))
def test_segments_match_reference(lengths: list[int], random: Any) -> None:
    offsets = reference.exclusive_scan(lengths)
    values = [random.randrange(2**64) for _ in range(offsets[-1])]
    device_offsets = on_device(offsets, np.int64)
    assert primitives.segmented_sum(
        on_device(values, np.uint64), device_offsets
    ).get().tolist() == reference.segmented_sum(values, offsets)
    owners = reference.expand(offsets)
    assert primitives.expand(device_offsets).get().tolist() == owners
    assert primitives.expand(device_offsets, len(values)).get().tolist() == owners


@pytest.mark.parametrize(
    "lengths",
    [[100_000], [0] * 5_000 + [3] + [0] * 5_000 + [1], [1] * 10_000, [0, 5_000] * 4, [*range(200)]],
    ids=["one", "mostly empty", "ones", "every other", "growing"],
)
def test_uneven_segments(lengths: list[int]) -> None:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    values = np.arange(offsets[-1], dtype=np.uint32)
    expected = reference.segmented_sum(values.tolist(), offsets.tolist())
    device_offsets = on_device(offsets, np.int64)
    assert primitives.segmented_sum(on_device(values, np.uint32), device_offsets).get().tolist() == expected
    assert np.array_equal(primitives.expand(device_offsets).get(), np.repeat(np.arange(len(lengths)), lengths))
