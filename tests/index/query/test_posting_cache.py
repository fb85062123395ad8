from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.engine.choose import CPU, choose
from polars_tadoc.index.query import find as find_module
from polars_tadoc.index.query.prepared import Prepared
from polars_tadoc.kernels.postings.coded import BLOCK, PFORDELTA, RICE, Postings, Queries, Stream
from polars_tadoc.kernels.postings.encode_cpu import encode
from polars_tadoc.kernels.postings.posting_cache_cuda import Arena, PostingCache
from polars_tadoc.kernels.search.reference import decode_list, search

DOCUMENTS = 3000


def some_postings(codec: int, lists: int = 40, seed: int = 1) -> Postings:
    """Lists of one posting up to several blocks, with exceptions."""
    random = np.random.default_rng(seed)
    sizes = [1, BLOCK, BLOCK + 1, 2 * BLOCK, *random.integers(1, 400, lists - 4)]
    documents = [np.sort(random.choice(DOCUMENTS, size, replace=False)).astype(np.uint32) for size in sizes]
    counts = random.geometric(0.4, sum(sizes)).astype(np.uint32)
    counts[random.random(len(counts)) < 0.02] = 1 << 20
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return encode(codec, DOCUMENTS, offsets, np.concatenate(documents), counts)


def batch(*queries: list[int]) -> Queries:
    offsets = np.concatenate([[0], np.cumsum([len(query) for query in queries])]).astype(np.int64)
    lists = np.array([number for query in queries for number in query], np.uint32)
    return Queries(offsets, lists, np.linspace(0.5, 2.0, len(lists)).astype(np.float32))


def distinct_bytes(postings: Postings) -> int:
    """Bytes of all arrays, those that overlap once."""
    parts = [part for part in postings if isinstance(part, np.ndarray)]
    parts += [part for stream in postings if isinstance(stream, Stream) for part in stream]
    spans = sorted({(at := part.__array_interface__["data"][0], at + part.nbytes) for part in parts if part.nbytes})
    total, end = 0, 0
    for start, stop in spans:
        total += max(0, stop - max(start, end))
        end = max(end, stop)
    return total


budgets = st.integers(0, 40_000)
batches = st.lists(st.lists(st.lists(st.integers(0, 39), max_size=5, unique=True), max_size=6), max_size=6)


@pytest.mark.parametrize("codec", [PFORDELTA, RICE])
@given(budgets, batches)
def test_lists_are_the_same_wherever_they_stand(codec: int, budget: int, given_batches: list[list[list[int]]]) -> None:
    postings = some_postings(codec)
    cache = PostingCache(postings, budget, np)
    assert distinct_bytes(cache._arrays.postings) <= max(budget, cache.nbytes)
    assert cache.nbytes <= max(budget, 200)
    for queries in given_batches:
        seen = 0
        for there, part in cache.bring(batch(*queries)):
            own = batch(*queries).weights
            for place, (start, stop) in enumerate(pairwise(part.offsets.tolist())):
                query = queries[seen + place]
                assert [decode_list(there, n) for n in part.lists[start:stop]] == [
                    decode_list(postings, n) for n in query
                ]
            assert np.isin(part.weights, own).all()
            seen += len(part.offsets) - 1
        assert seen == len(queries)


@pytest.mark.parametrize("codec", [PFORDELTA, RICE])
@pytest.mark.parametrize("budget", [0, 3_000, 12_000, 1 << 20])
def test_results_are_the_same_under_any_budget(codec: int, budget: int) -> None:
    postings = some_postings(codec)
    norms = np.linspace(0.3, 2.5, DOCUMENTS).astype(np.float32)
    cache = PostingCache(postings, budget, np)
    random = np.random.default_rng(3)
    for _ in range(3):
        queries = batch(*[random.choice(40, random.integers(0, 4), replace=False).tolist() for _ in range(8)])
        expected = search(postings, norms, queries, 5, False)
        got = [search(there, norms, part, 5, False) for there, part in cache.bring(queries)]
        for mine, whole in zip(zip(*got, strict=True), expected, strict=True):
            np.testing.assert_array_equal(np.concatenate(mine), whole)


def test_the_lists_read_last_stay() -> None:
    postings = some_postings(PFORDELTA)
    cache = PostingCache(postings, 1 << 13, np)
    for number in [5, 6, 7, 5, *range(8, 40)]:
        list(cache.bring(batch([5])))
        list(cache.bring(batch([number])))
        assert cache.is_resident(np.array([5, number])).all()
    assert not cache.is_resident(np.arange(40)).all()
    assert len(cache) == cache.is_resident(np.arange(40)).sum()


def test_a_query_beyond_the_budget_keeps_nothing() -> None:
    postings = some_postings(PFORDELTA)
    cache = PostingCache(postings, 200, np)
    ((there, part),) = cache.bring(batch([7, 9]))
    assert [decode_list(there, n) for n in part.lists] == [decode_list(postings, n) for n in (7, 9)]
    assert len(cache) == 0


def test_plain_lists_stand_behind_the_coded_ones() -> None:
    postings = some_postings(PFORDELTA)
    for budget in (0, 1 << 20):
        cache = PostingCache(postings, budget, np)
        ((there, part),) = cache.bring(batch([42, 3, 40]))
        assert part.lists[[0, 2]].tolist() == [len(there.frequencies) + 2, len(there.frequencies)]
        assert decode_list(there, part.lists[1]) == decode_list(postings, 3)


@given(st.integers(0, 60), st.lists(st.tuples(st.booleans(), st.integers(0, 25)), max_size=60))
def test_an_arena_gives_no_unit_twice_and_loses_none(size: int, steps: list[tuple[bool, int]]) -> None:
    arena = Arena(size)
    taken: dict[int, int] = {}
    for is_free, number in steps:
        if is_free and taken:
            start = sorted(taken)[number % len(taken)]
            arena.free(start, taken.pop(start))
        elif number:
            found = arena.allocate(number)
            units = {u for begin, length in taken.items() for u in range(begin, begin + length)}
            free = "".join(".x"[u in units] for u in range(size))
            assert (found is None) == ("." * number not in free)
            if found is not None:
                assert not units & set(range(found, found + number))
                assert found + number <= size
                taken[found] = number
    for start, length in taken.items():
        arena.free(start, length)
    assert arena.allocate(size) == 0


def test_search_is_the_same_with_a_small_cache(engine: str) -> None:
    kernels: Any = choose(engine, 0).kernels
    arrays = __import__("cupy") if engine == "gpu" else np
    for codec in (PFORDELTA, RICE):
        postings = some_postings(codec)
        norms = np.linspace(0.3, 2.5, DOCUMENTS).astype(np.float32)
        there_norms = kernels.load_array(norms)
        random = np.random.default_rng(5)
        for budget in (0, 5_000, 20_000, 1 << 20):
            cache = PostingCache(postings, budget, arrays)
            for require_all in (False, True, False):
                queries = batch(*[random.choice(40, random.integers(0, 4), replace=False).tolist() for _ in range(30)])
                expected = search(postings, norms, queries, 5, require_all)
                got = [
                    [*map(kernels.to_host, kernels.search(there, there_norms, None, part, 5, require_all))]
                    for there, part in cache.bring(queries)
                ]
                for mine, whole in zip(zip(*got, strict=True), expected, strict=True):
                    np.testing.assert_array_equal(np.concatenate(mine), whole)


@pytest.mark.parametrize("device_cache_bytes", [0, 3_000, 40_000, 1 << 30])
def test_an_index_finds_the_same_under_any_budget(engine: str, device_cache_bytes: int) -> None:
    random = np.random.default_rng(7)
    texts = [" ".join(f"w{word}" for word in random.zipf(1.3, 30) % 200) for _ in range(400)]
    index = tadoc.build_index(pl.Series("text", texts).tadoc.compress())
    index = index.append(pl.Series("text", texts[:100]).tadoc.compress()).delete([3, 450])
    queries = [" ".join(f"w{word}" for word in random.integers(0, 210, 3)) for _ in range(60)] + ["", '"w1 w2"']
    for mode in ("and", "or", "and_or"):
        expected = index.search(queries, mode=mode, engine="cpu")
        with tadoc.Config(device_cache_bytes=device_cache_bytes):
            assert index.search(queries, mode=mode, engine=engine).equals(expected)
            assert index.search(queries[::-1], mode=mode, engine=engine).height == expected.height


def test_a_search_that_fails_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    index = tadoc.build_index(pl.Series("text", ["to be or not to be", "to do"]).tadoc.compress())
    cache = PostingCache(index.segments[0].postings, 1 << 20, np)
    prepared = find_module.prepare_segment

    def prepare(*arguments: Any) -> Prepared:
        return replace(prepared(*arguments), postings=cache)

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("no luck")

    monkeypatch.setattr(find_module, "prepare_segment", prepare)
    expected = index.search(["to be", "do"], engine="cpu")
    kernels: Any = CPU.kernels
    with monkeypatch.context() as patched:
        patched.setattr(kernels, "search", fail)
        with pytest.raises(RuntimeError, match="no luck") as failed:
            index.search(["to be", "do"], engine="cpu")
    assert index.search(["to be", "do"], engine="cpu").equals(expected)
    assert failed.value.__traceback__ is not None  # it was held all the time
