"""What only the kernels of search on a GPU can get wrong: parts of queries, memory, damaged postings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from polars_tadoc.engine import cpu, cuda
from polars_tadoc.engine.cuda import device_problem
from polars_tadoc.kernels.postings import decode_cpu as decoding
from polars_tadoc.kernels.postings import encode_cpu as coding
from polars_tadoc.kernels.postings.coded import PFORDELTA, RICE, Lists, Postings, Queries
from polars_tadoc.kernels.search import ranked_queries_cuda as ranked_queries

pytestmark = pytest.mark.skipif(device_problem() is not None, reason=str(device_problem()))

CODECS = pytest.mark.parametrize("codec", [PFORDELTA, RICE])


def random_lists(random: np.random.Generator, documents: int, sizes: list[int]) -> Lists:
    held = [np.sort(random.choice(documents, size, replace=False)) for size in sizes]
    counts = random.geometric(0.4, sum(sizes)).astype(np.uint32)
    counts[random.random(len(counts)) < 0.01] = 100_000
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Lists(offsets, np.concatenate(held).astype(np.uint32), counts)


def random_queries(random: np.random.Generator, sizes: list[int], count: int, most: int) -> Queries:
    chosen = [random.choice(len(sizes), random.integers(0, most + 1), replace=False) for _ in range(count)]
    lists = [number for query in chosen for number in sorted(query, key=lambda number: (sizes[number], number))]
    offsets = np.cumsum([0, *map(len, chosen)]).astype(np.int64)
    return Queries(offsets, np.array(lists, np.uint32), random.random(len(lists)).astype(np.float32) * 4)


def both(
    postings: Postings, norms: Any, queries: Queries, k: int, require_all: bool, allowed: Any = None
) -> tuple[Any, Any]:
    expected = cpu.search(postings, norms, None, queries, k, require_all, allowed)
    resident = cuda.load_postings(postings)
    found = cuda.search(resident, cuda.load_array(norms), None, queries, k, require_all, allowed)
    return expected, tuple(map(cuda.to_host, found))


def assert_same(expected: Any, found: Any) -> None:
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


@CODECS
@pytest.mark.parametrize("require_all", [False, True])
@pytest.mark.parametrize("k", [1, 10, 700, 3000])
def test_parts_of_queries(codec: int, require_all: bool, k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tiles, several turns, and few documents that are kept and not sorted."""
    random = np.random.default_rng(k)
    monkeypatch.setattr(ranked_queries, "_MIN_TILE", 512)
    monkeypatch.setattr(ranked_queries, "WORKING_MEMORY", 1 << 16)
    documents = 20_000
    sizes = [1, 127, 128, 129, 300, 2_000, 5_000, 15_000, 19_999, 20_000]
    offsets, *lists = random_lists(random, documents, sizes)
    postings = coding.encode(codec, documents, offsets, *lists)
    norms = random.random(documents).astype(np.float32)
    queries = random_queries(random, sizes, 12, 5)
    allowed = random.integers(0, 1 << 32, documents // 32, dtype=np.uint64).astype(np.uint32)
    assert_same(*both(postings, norms, queries, k, require_all))
    assert_same(*both(postings, norms, queries, k, require_all, allowed))


@pytest.mark.parametrize("require_all", [False, True])
@pytest.mark.parametrize("k", [1, 33, 1024, 1025])
def test_equal_scores_go_by_document(require_all: bool, k: int) -> None:
    documents = 30_000
    held = np.arange(0, documents, 2, dtype=np.uint32)
    offsets = np.array([0, len(held), 2 * len(held)], np.int64)
    postings = coding.encode(PFORDELTA, documents, offsets, np.tile(held, 2), np.ones(2 * len(held), np.uint32))
    queries = Queries(np.array([0, 2], np.int64), np.array([0, 1], np.uint32), np.array([1, 2], np.float32))
    expected, found = both(postings, np.ones(documents, np.float32), queries, k, require_all)
    assert_same(expected, found)
    assert found[1][0].tolist() == held[:k].tolist()


@pytest.mark.parametrize("require_all", [False, True])
def test_ten_thousand_lists_in_a_query(require_all: bool) -> None:
    random = np.random.default_rng(3)
    documents, lists = 500, 10_000
    sizes = [int(size) for size in np.sort(random.integers(1, 4, lists))]
    if require_all:
        sizes = [documents] * 300
    offsets, *parts = random_lists(random, documents, sizes)
    postings = coding.encode(PFORDELTA, documents, offsets, *parts)
    queries = Queries(
        np.array([0, 0, len(sizes)], np.int64),
        np.arange(len(sizes), dtype=np.uint32),
        random.random(len(sizes)).astype(np.float32),
    )
    assert_same(*both(postings, random.random(documents).astype(np.float32), queries, 10, require_all))


@CODECS
def test_documents_up_to_the_largest(codec: int) -> None:
    documents = 2**32 - 2
    held = [np.array([0, documents - 1], np.uint32), np.linspace(0, documents - 1, 1000).astype(np.uint32)]
    offsets = np.array([0, 2, 1002], np.int64)
    counts = np.full(1002, 2**32 - 1, np.uint32)
    if codec == RICE:
        counts[:] = 7
    postings = coding.encode(codec, documents, offsets, np.concatenate(held), counts)
    got = cuda.decode_lists(cuda.load_postings(postings), np.array([1, 0, 1], np.uint32))
    expected = decoding.decode_lists(postings, np.array([1, 0, 1], np.uint32))
    assert_same(expected, tuple(map(cuda.to_host, got)))


def damaged(postings: Postings, random: np.random.Generator) -> Postings:
    """Flip bytes of all that is not an offset."""

    def flip(array: Any) -> Any:
        array = array.copy()
        raw = array.view(np.uint8)
        if len(raw):
            raw[random.integers(0, len(raw), 1 + len(raw) // 20)] ^= random.integers(1, 256, dtype=np.uint8)
        return array

    def flip_stream(stream: Any) -> Any:
        fields = ("widths", "low", "exception_places", "exception_highs", "unary")
        return stream._replace(**{field: flip(getattr(stream, field)) for field in fields})

    return postings._replace(
        frequencies=flip(postings.frequencies) if random.random() < 0.5 else postings.frequencies | 0xFF0000,
        heads=flip(postings.heads),
        gaps=flip_stream(postings.gaps),
        counts=flip_stream(postings.counts),
    )


@CODECS
def test_damaged_postings_are_searched_without_harm(codec: int) -> None:
    random = np.random.default_rng(5)
    documents, sizes = 5_000, [1, 128, 700, 3_000, 5_000]
    offsets, *parts = random_lists(random, documents, sizes)
    postings = coding.encode(codec, documents, offsets, *parts)
    norms = cuda.load_array(np.ones(documents, np.float32))
    queries = random_queries(random, sizes, 20, 5)
    for _ in range(5):
        resident = cuda.load_postings(damaged(postings, random))
        cuda.to_host(cuda.decode_lists(resident, np.arange(len(sizes), dtype=np.uint32))[1])
        assert len(cuda.to_host(cuda.block_bounds(resident, norms))) == len(postings.heads)
        for require_all in (False, True):
            for k in (10, 2000):
                found, chosen, _ = cuda.search(resident, norms, None, queries, k, require_all)
                assert cuda.to_host(found).max() <= k
                assert cuda.to_host(chosen).max() < documents
    assert_same(
        cpu.search(postings, np.ones(documents, np.float32), None, queries, 10, False),
        tuple(map(cuda.to_host, cuda.search(cuda.load_postings(postings), norms, None, queries, 10, False))),
    )


def test_parts_raise_the_bar_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many parts of the same query at once: some end while others ask what they need to reach."""
    random = np.random.default_rng(8)
    documents, count = 20_000, 2_000
    monkeypatch.setattr(ranked_queries, "_cut", lambda *_: (-(-documents // 1024), 1024))
    sizes = [500, 2_000, 5_000, 15_000, 19_999, 20_000]
    offsets, *lists = random_lists(random, documents, sizes)
    postings = coding.encode(PFORDELTA, documents, offsets, *lists)
    queries = random_queries(random, sizes, count, 4)
    norms = random.random(documents).astype(np.float32)
    for require_all in (False, True):
        assert_same(*both(postings, norms, queries, 10, require_all))


@pytest.mark.parametrize("require_all", [False, True])
def test_few_queries_for_many_documents(require_all: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a query's parts would keep too much to be merged by one block, all that match are sorted."""
    random = np.random.default_rng(9)
    monkeypatch.setattr(ranked_queries, "_MAX_MERGED", 50)
    sizes = [100, 3_000, 9_000]
    offsets, *lists = random_lists(random, 10_000, sizes)
    postings = coding.encode(PFORDELTA, 10_000, offsets, *lists)
    queries = random_queries(random, sizes, 4, 3)
    assert_same(*both(postings, np.ones(10_000, np.float32), queries, 60, require_all))


def test_queries_of_few_postings_among_many_documents() -> None:
    """Accumulators in a table, with lists of one block, of none of the allowed documents, and plain ones."""
    random = np.random.default_rng(10)
    documents = 1_000_000
    sizes = [1, 1, 5, 128, 129, 600, 1_000]
    offsets, *lists = random_lists(random, documents, sizes)
    postings = coding.encode(PFORDELTA, documents, offsets, *lists)
    norms = random.random(documents).astype(np.float32)
    queries = random_queries(random, sizes, 300, 7)
    allowed = random.integers(0, 1 << 32, documents // 32, dtype=np.uint64).astype(np.uint32)
    for k in (1, 10, 1000):
        assert_same(*both(postings, norms, queries, k, False))
        assert_same(*both(postings, norms, queries, k, False, allowed))
