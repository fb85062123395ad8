"""Device memory that sequences and pairs of words take, and that counting them in batches gives the same."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from polars_tadoc.kernels import cpu, cuda
from polars_tadoc.kernels.cuda import device_problem, key_ranges
from polars_tadoc.kernels.rules import Rules
from tests.test_gpu_memory import FLOOR, nbytes, peak_memory

pytestmark = pytest.mark.skipif(device_problem() is not None, reason=str(device_problem()))

CALLS = [("sequence_counts", 2), ("sequence_counts", 3), ("sequence_counts", 5), ("pair_counts", 4)]


@cache
def documents(words: int, terminals: int) -> tuple[Rules, Any, Any, Any]:
    """Rules over pairs of frequent words, documents of skewed words and rules, a rank; in host memory."""
    random = np.random.default_rng(words)
    pairs = random.integers(0, 40, (terminals, 2)).astype(np.uint32)
    symbols = (terminals ** random.random(2 * words)).astype(np.uint32)  # every power of two as often
    roots = np.where(random.random(2 * words) < 0.2, terminals + symbols, symbols).astype(np.uint32)[:words]
    offsets = np.arange(0, 2 * terminals + 1, 2)
    lengths = np.full(terminals, 2, np.uint64)
    rules = Rules(terminals, offsets, pairs.ravel(), np.array([0, terminals]), lengths)
    return rules, np.linspace(0, words, 50).astype(np.int64), roots, random.permutation(terminals).astype(np.uint32)


def on_device(rules: Rules, *arrays: Any) -> tuple[Any, ...]:
    loaded = (cuda.load_array(array) for array in (rules.rule_offsets, rules.symbols, rules.lengths))
    rule_offsets, symbols, lengths = loaded
    return Rules(rules.terminals, rule_offsets, symbols, rules.level_offsets, lengths), *map(cuda.load_array, arrays)


@pytest.mark.parametrize(("call", "size"), CALLS)
def test_peak(call: str, size: int) -> None:
    """At most 1.5 times rules, rows and result: less than all windows would take at once."""
    rules, root_offsets, roots, rank = on_device(*documents(6_000_000, 1000))
    given = nbytes(rules.rule_offsets, rules.symbols, rules.lengths, root_offsets, roots, rank)
    getattr(cuda, call)(rules, root_offsets, roots, size, rank, "top_down")  # compiles
    with peak_memory() as peak:
        result = nbytes(*getattr(cuda, call)(rules, root_offsets, roots, size, rank, "top_down"))
    print(f"{call} {size}: {peak[0]:,} bytes for {given:,} given and {result:,} of result")
    assert given + peak[0] <= 1.5 * (given + result) + FLOOR


@pytest.mark.parametrize(("call", "size"), CALLS)
@pytest.mark.parametrize(("min_count", "top"), [(1, None), (3, None), (1, 100)])
def test_batches(monkeypatch: pytest.MonkeyPatch, call: str, size: int, min_count: int, top: int | None) -> None:
    monkeypatch.setattr(key_ranges, "WORKING_MEMORY", 0)
    monkeypatch.setattr(key_ranges, "LEAST_MEMORY", 1 << 18)
    monkeypatch.setattr(key_ranges, "EXPECTED", 0.0)
    host = documents(200_000, 1000)
    rules, root_offsets, roots, rank = host
    expected = getattr(cpu, call)(rules, root_offsets, roots, size, rank, "top_down", min_count, top)
    on = on_device(*host)
    got = getattr(cuda, call)(*on[:3], size, on[3], "top_down", min_count, top)
    for array, right in zip(got, expected, strict=True):
        np.testing.assert_array_equal(cuda.to_host(array), right)
