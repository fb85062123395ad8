"""Device memory that counting takes, and that counting in batches gives the same."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest

import polars_tadoc as tadoc
from polars_tadoc.engine import cpu, cuda
from polars_tadoc.engine.cuda import device_problem
from polars_tadoc.kernels.documents import document_keys_cuda as document_keys
from polars_tadoc.kernels.documents import documents_cuda as documents
from polars_tadoc.kernels.documents import marked_documents_cuda as marked_documents
from polars_tadoc.kernels.documents import postings_cuda as postings
from polars_tadoc.kernels.documents import vectors_cuda as vectors
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.runtime import device

pytestmark = pytest.mark.skipif(device_problem() is not None, reason=str(device_problem()))

STRATEGIES = ["top_down", "bottom_up"]
FLOOR = 32 << 20
"""Bytes below which nothing matters."""


@pytest.fixture(autouse=True)
def _device_of_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls have the least work space: a large device gives them more."""
    monkeypatch.setattr(device, "WORK_SHARE", 1 << 60)


def test_work_space_grows_with_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    assert device.work_space(1 << 20) == 1 << 20
    monkeypatch.setattr(device, "WORK_SHARE", 64)
    assert device.work_space(1) == device.device_memory() // 64
    assert device.work_space(1 << 60) == 1 << 60


@contextmanager
def peak_memory() -> Iterator[list[int]]:
    """Yield a list that ends up with the most bytes that were allocated at a time, beside those before."""
    import cupy

    class Hook(cupy.cuda.MemoryHook):  # type: ignore[misc, name-defined]
        name = "peak"

        def __init__(self) -> None:
            self.held = self.most = 0
            self.sizes: dict[int, int] = {}

        def malloc_postprocess(self, **told: Any) -> None:
            self.sizes[told["mem_ptr"]] = told["mem_size"]
            self.held += told["mem_size"]
            self.most = max(self.most, self.held)

        def free_postprocess(self, **told: Any) -> None:
            self.held -= self.sizes.pop(told["mem_ptr"], 0)

    peak: list[int] = []
    hook = Hook()
    with hook:
        yield peak
    peak.append(hook.most)


def nbytes(*arrays: Any) -> int:
    return sum(int(array.nbytes) for array in arrays if array is not None)


@pytest.mark.parametrize("name", ["prose_books", "logs_dmesg", "versioned_longhorn", "docs_peps"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_peak(corpus: Callable[[str], pl.DataFrame], name: str, strategy: str) -> None:
    """At most 1.5 times grammar, rows and result, with all tables that stay with the rules after some calls."""
    (held,) = tadoc.column.split(tadoc.compress(corpus(name)["text"], lossless=False))
    rules, roots = cuda.load_rules(held.grammar), cuda.load_symbols(held.roots)
    root_offsets = cuda.load_array(held.root_offsets)
    given = nbytes(rules, roots, root_offsets)
    calls: dict[str, Callable[[Rules], tuple[Any, ...]]] = {
        "terminal_counts": lambda some: (cuda.terminal_counts(some, roots, strategy),),
        "count_by_document": lambda some: cuda.count_by_document(some, root_offsets, roots, strategy),
        "terms_by_document": lambda some: cuda.terms_by_document(some, root_offsets, roots, strategy),
        "count_by_terminal": lambda some: cuda.count_by_terminal(some, root_offsets, roots, strategy, counted=False),
        "counted": lambda some: cuda.count_by_terminal(some, root_offsets, roots, strategy, counted=True),
    }
    for call, run in calls.items():
        run(rules)  # compiles, which takes memory that is not an array's
        again = dataclasses.replace(rules)
        with peak_memory() as peak:
            result = max(nbytes(*run(again)) for _ in range(3))
        print(f"{name} {strategy} {call}: {peak[0]:,} bytes for {given:,} given and {result:,} of result")
        assert given + peak[0] <= 1.5 * (given + result) + FLOOR, call


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_more_than_is_sorted_at_once(strategy: str) -> None:
    """Keys of distinct documents fit into the scratch memory, those of all of them do not."""
    random = np.random.default_rng(0)
    terminals, count, length, rows = 5000, 600, 1000, 3500
    symbols = np.concatenate([random.permutation(terminals)[:length] for _ in range(count)]).astype(np.uint32)
    rule_offsets, levels = np.arange(0, len(symbols) + 1, length), np.array([0, count])
    lengths = np.full(count, length, np.uint64)
    host = Rules(terminals, rule_offsets, symbols, levels, lengths)
    load = cuda.load_array
    rules = Rules(terminals, load(rule_offsets), load(symbols), levels, load(lengths))
    roots = random.integers(terminals, terminals + count, rows).astype(np.uint32)
    root_offsets = np.arange(rows + 1)
    given = nbytes(rules, root_offsets, roots)
    for counted in (False, True):
        with peak_memory() as peak:
            got = cuda.count_by_terminal(rules, load(root_offsets), load(roots), strategy, counted=counted)
            result = nbytes(*got)
        assert peak[0] <= 1.5 * (given + result) + FLOOR
        expected = cpu.count_by_terminal(host, root_offsets, roots, strategy, counted)
        for here, there in zip(got[: 2 + counted], expected[: 2 + counted], strict=True):
            assert np.array_equal(cuda.to_host(here), there)


def random_documents(seed: int) -> tuple[Rules, Any, Any, Rules, Any, Any]:
    """Documents over rules of which many are equal, some empty and a few long, on the device and in host memory."""
    random = np.random.default_rng(seed)
    terminals, rules = 3000, 400
    bodies = [random.integers(0, terminals + rule, random.integers(0, 9)) for rule in range(rules)]
    lengths = np.zeros(rules, np.uint64)
    for rule, body in enumerate(bodies):
        lengths[rule] = sum(1 if s < terminals else int(lengths[s - terminals]) for s in body.tolist())
    rows = [random.integers(0, terminals + rules, size) for size in random.integers(0, 6, 600)]
    rows += [random.integers(0, terminals + rules, 9000), *rows[:200], np.array([terminals + rules - 1])]
    rows += [np.array([terminals + rules - 1]), np.zeros(0, np.int64)]
    rule_offsets = np.cumsum([0, *(len(body) for body in bodies)]).astype(np.int64)
    symbols = np.concatenate(bodies).astype(np.uint32)
    root_offsets = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
    roots = np.concatenate(rows).astype(np.uint32)
    levels = np.arange(rules + 1, dtype=np.int64)
    load = cuda.load_array
    return (
        *(Rules(terminals, load(rule_offsets), load(symbols), levels, load(lengths)), load(root_offsets), load(roots)),
        *(Rules(terminals, rule_offsets, symbols, levels, lengths), root_offsets, roots),
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("scratch", [1 << 12, 1 << 16, 1 << 19])
@pytest.mark.parametrize("shared", [2, 16])
def test_batches(monkeypatch: pytest.MonkeyPatch, strategy: str, scratch: int, shared: int) -> None:
    """Little scratch memory takes documents in batches, little shared memory counts in global memory."""
    monkeypatch.setattr(document_keys, "SCRATCH", scratch)
    classes = document_keys.Class
    few = (
        classes(32, 8, 8, 20),
        classes(64, 16, 16, 50),
        classes(64, 64, 32, 400),
        classes(64, shared << 7, 1 << 7, 3000),
    )
    monkeypatch.setattr(document_keys, "_TOP_DOWN", few)
    monkeypatch.setattr(
        document_keys,
        "_BOTTOM_UP",
        (classes(32, 32), classes(32, 1 << 8), classes(64, 1 << 9), classes(64, shared << 7)),
    )
    monkeypatch.setattr(document_keys, "_HOT", shared << 4)
    monkeypatch.setattr(document_keys, "_MIN_ROWS", 0)
    monkeypatch.setattr(document_keys, "_FEW", 1 << 14 if shared == 2 else 0)
    monkeypatch.setattr(document_keys, "_MARKED", 0 if shared == 2 else 1 << 18)
    monkeypatch.setattr(postings, "MAX_BITS", 0)
    monkeypatch.setattr(vectors, "MAX_BITS", 0)
    rules, root_offsets, roots, host, host_offsets, host_roots = random_documents(scratch)
    rank = np.random.default_rng(0).permutation(host.terminals).astype(np.uint32)
    for min_count, top in ((1, None), (2, None), (1, 3)):
        got = cuda.count_by_document(rules, root_offsets, roots, strategy, cuda.load_array(rank), min_count, top)
        expected = cpu.count_by_document(host, host_offsets, host_roots, strategy, rank, min_count, top)
        for here, there in zip(got, expected, strict=True):
            assert np.array_equal(cuda.to_host(here), there)
    terms = cuda.terms_by_document(rules, root_offsets, roots, strategy, cuda.load_array(rank))
    expected_terms = cpu.terms_by_document(host, host_offsets, host_roots, strategy, rank)
    for here, there in zip(terms, expected_terms, strict=True):
        assert np.array_equal(cuda.to_host(here), there)
    for counted in (True, False):
        got = cuda.count_by_terminal(rules, root_offsets, roots, strategy, counted=counted)
        expected = cpu.count_by_terminal(host, host_offsets, host_roots, strategy, counted)
        for here, there in zip(got[: 2 + counted], expected[: 2 + counted], strict=True):
            assert np.array_equal(cuda.to_host(here), there)


@pytest.mark.parametrize(("long", "held"), [(513, 40), (513, 1 << 12), (1 << 12, 1 << 12)])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_bitmaps(monkeypatch: pytest.MonkeyPatch, strategy: str, long: int, held: int) -> None:
    """Documents marked by one block and by many, equal ones, counts in shared and in global memory."""
    monkeypatch.setattr(marked_documents, "_LONG", long)
    monkeypatch.setattr(marked_documents, "_LARGE", 4)
    monkeypatch.setattr(vectors, "_HELD", held)
    monkeypatch.setattr(vectors, "_HOT", held)
    # what counts otherwise has no room: it would fail
    monkeypatch.setattr(documents, "Work", None)
    rules, root_offsets, roots, host, host_offsets, host_roots = random_documents(long + held)
    rank = np.random.default_rng(1).permutation(host.terminals).astype(np.uint32)
    got = cuda.count_by_terminal(rules, root_offsets, roots, strategy, counted=False)
    expected = cpu.count_by_terminal(host, host_offsets, host_roots, strategy, False)
    for here, there in zip(got[:2], expected[:2], strict=True):
        assert np.array_equal(cuda.to_host(here), there)
    if strategy == "top_down":
        return
    for order in (None, rank):
        loaded = None if order is None else cuda.load_array(order)
        terms = cuda.terms_by_document(rules, root_offsets, roots, strategy, loaded)
        expected_terms = cpu.terms_by_document(host, host_offsets, host_roots, strategy, order)
        for here, there in zip(terms, expected_terms, strict=True):
            assert np.array_equal(cuda.to_host(here), there)
        for top in (None, 3):
            vector = cuda.count_by_document(rules, root_offsets, roots, strategy, loaded, 1, top)
            expected_vector = cpu.count_by_document(host, host_offsets, host_roots, strategy, order, 1, top)
            for here, there in zip(vector, expected_vector, strict=True):
                assert np.array_equal(cuda.to_host(here), there)


def test_bitmaps_of_high_counts() -> None:
    """Counts that share the first bin, and those that no 32 bits may hold."""
    random = np.random.default_rng(0)
    terminals = 700
    bodies = [np.repeat(random.permutation(terminals), random.integers(1, 700, terminals)) for _ in range(2)]
    symbols = np.concatenate([*bodies, np.full(1 << 14, terminals)]).astype(np.uint32)
    rule_offsets = np.cumsum([0, *(len(body) for body in bodies), 1 << 14]).astype(np.int64)
    lengths = np.diff(rule_offsets).astype(np.uint64)
    lengths[2] = lengths[0] << np.uint64(14)
    levels, load = np.array([0, 2, 3]), cuda.load_array
    host = Rules(terminals, rule_offsets, symbols, levels, lengths)
    rules = Rules(terminals, load(rule_offsets), load(symbols), levels, load(lengths))
    for rows in ([[terminals], [terminals, terminals + 1, 5], [7]], [[terminals + 2, 0], [terminals + 2] * 600]):
        roots = np.concatenate(rows).astype(np.uint32)
        root_offsets = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
        for top in (None, 90):
            for _ in range(2):
                got = cuda.count_by_document(rules, load(root_offsets), load(roots), "bottom_up", None, 1, top)
            expected = cpu.count_by_document(host, root_offsets, roots, "bottom_up", None, 1, top)
            for here, there in zip(got, expected, strict=True):
                assert np.array_equal(cuda.to_host(here), there)
        terms = cuda.terms_by_document(rules, load(root_offsets), load(roots), "bottom_up")
        expected = cpu.terms_by_document(host, root_offsets, roots, "bottom_up", None)
        for here, there in zip(terms, expected, strict=True):
            assert np.array_equal(cuda.to_host(here), there)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_document_beyond_the_scratch_memory(monkeypatch: pytest.MonkeyPatch, strategy: str) -> None:
    monkeypatch.setattr(document_keys, "SCRATCH", 1 << 10)
    rules, _, _, host, _, _ = random_documents(2)
    everything = np.arange(host.terminals + host.rule_count, dtype=np.uint32)
    offsets = np.array([0, len(everything)], np.int64)
    got = cuda.count_by_terminal(rules, cuda.load_array(offsets), cuda.load_array(everything), strategy, counted=True)
    expected = cpu.count_by_terminal(host, offsets, everything, strategy, True)
    vectors = cuda.count_by_document(rules, cuda.load_array(offsets), cuda.load_array(everything), strategy)
    expected_vectors = cpu.count_by_document(host, offsets, everything, strategy, None)
    for here, there in zip((*got, *vectors), (*expected, *expected_vectors), strict=True):
        assert np.array_equal(cuda.to_host(here), there)


def test_equal_documents_are_counted_once() -> None:
    """Thousands of rows of one symbol need no more scratch memory than one."""
    rules, _, _, host, _, _ = random_documents(1)
    symbol = host.terminals + int(np.argmax(host.lengths))
    times = 20_000
    roots = cuda.load_array(np.full(times, symbol, np.uint32))
    offsets, terminals, counts = cuda.count_by_document(
        rules, cuda.load_array(np.arange(times + 1, dtype=np.int64)), roots, "bottom_up"
    )
    one = cpu.count_by_document(host, np.array([0, 1]), np.array([symbol], np.uint32), "bottom_up", None)
    before = cuda.to_host(offsets)
    assert (np.diff(before) == len(one[1])).all()
    for first, stop in list(pairwise(before.tolist()))[:: times // 5]:
        assert np.array_equal(cuda.to_host(terminals[first:stop]), one[1])
        assert np.array_equal(cuda.to_host(counts[first:stop]), one[2])
