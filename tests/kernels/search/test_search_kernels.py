"""The kernels of search, on each engine, against their plain-Python definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_tadoc.engine import cpu
from polars_tadoc.engine.choose import choose
from polars_tadoc.kernels.postings import encode_cpu as coding
from polars_tadoc.kernels.postings.coded import BLOCK, PFORDELTA, RICE, Lists, Postings, Queries
from polars_tadoc.kernels.search import reference as reference_search
from polars_tadoc.kernels.search.search_cpu import unknown_bounds

CODECS = pytest.mark.parametrize("codec", [PFORDELTA, RICE])
MODES = pytest.mark.parametrize("require_all", [False, True])


def concatenated(lists: list[Any]) -> tuple[Any, Any]:
    offsets = np.cumsum([0] + [len(one) for one in lists]).astype(np.int64)
    return offsets, np.concatenate([*lists, np.zeros(0, np.uint32)]).astype(np.uint32)


class Case:
    """A collection made from a seed: lists of the given sizes, some more for the batch, and queries."""

    def __init__(self, seed: int, codec: int, documents: int, sizes: list[int], extra: list[int]) -> None:
        self.random = np.random.default_rng(seed)
        self.documents = documents
        self.lists = [self.draw(size) for size in sizes]
        offsets, held = concatenated(self.lists)
        counts = self.counts(len(held))
        self.postings = coding.encode(codec, documents, offsets, held, counts)
        # few distinct norms make ties
        norms = self.random.random(documents) * 3
        self.norms = (norms if seed % 2 else np.round(norms)).astype(np.float32)
        self.more = [self.draw(size) for size in extra]
        offsets, held = concatenated(self.more)
        self.extra = Lists(offsets, held, self.counts(len(held))) if extra else None

    def draw(self, size: int) -> Any:
        """Draw documents, of all or of the first few: such a list ends long before the others do."""
        among = self.documents if self.random.random() < 0.6 else min(self.documents, size + 20)
        return np.sort(self.random.choice(among, min(size, among), replace=False)).astype(np.uint32)

    def counts(self, size: int) -> Any:
        most = [2, 4, 300, 1 << 32][int(self.random.integers(4))]
        return self.random.integers(1, most, size).astype(np.uint32)

    def queries(self, count: int) -> Queries:
        sizes = [len(one) for one in self.lists + self.more]
        chosen = []
        for _ in range(count):
            lists = self.random.choice(len(sizes), int(self.random.integers(0, min(len(sizes), 5) + 1)), replace=False)
            chosen.append(np.array(sorted(lists, key=lambda i: (sizes[i], i)), np.uint32))
        offsets, lists = concatenated(chosen)
        weights = self.random.random(len(lists)) * 6
        return Queries(
            offsets, lists, (weights if self.random.random() < 0.7 else np.round(weights)).astype(np.float32)
        )

    def check(
        self, engine: str, queries: Queries, k: int, require_all: bool, allowed: Any = None, bounded: bool = True
    ) -> None:
        expected = reference_search.search(self.postings, self.norms, queries, k, require_all, allowed, self.extra)
        for mine, its in zip(self.found(engine, queries, k, require_all, allowed, bounded), expected, strict=True):
            assert mine.dtype == its.dtype
            assert mine.shape == its.shape
            np.testing.assert_array_equal(mine.view(np.uint8), its.view(np.uint8))

    def found(
        self, engine: str, queries: Queries, k: int, require_all: bool, allowed: Any = None, bounded: bool = True
    ) -> list[Any]:
        kernels = choose(engine, 0).kernels
        load = kernels.load_array
        postings, norms = kernels.load_postings(self.postings), load(self.norms)
        found = kernels.search(
            postings,
            norms,
            kernels.block_bounds(postings, norms) if bounded else None,
            Queries(*(load(part) for part in queries)),
            k,
            require_all,
            None if allowed is None else load(allowed),
            None if self.extra is None else Lists(*(load(part) for part in self.extra)),
        )
        return [kernels.to_host(part) for part in found]


SIZES = st.sampled_from([1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 400, 1000])


@given(
    st.integers(0, 1 << 30),
    st.sampled_from([PFORDELTA, RICE]),
    st.sampled_from([1, 5, 64, 65, 300, 3000, 70_000, 200_000]),
    st.lists(SIZES, min_size=1, max_size=10),
    st.lists(SIZES, max_size=2),
    st.sampled_from([0, 1, 2, 10, 500]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_search(
    engine: str,
    seed: int,
    codec: int,
    documents: int,
    sizes: list[int],
    extra: list[int],
    k: int,
    require_all: bool,
    filtered: bool,
    bounded: bool,
) -> None:
    case = Case(seed, codec, documents, sizes, extra)
    allowed = case.random.integers(0, 1 << 32, documents // 32 + 1, dtype=np.uint32) if filtered else None
    case.check(engine, case.queries(4), k, require_all, allowed, bounded)


@CODECS
@MODES
@pytest.mark.parametrize("k", [1, 10, 4000])
def test_long_lists(engine: str, codec: int, require_all: bool, k: int) -> None:
    """Lists of several windows; short ones are scored, long ones looked up."""
    case = Case(3, codec, 150_000, [200, 2000, 3000, 5000, 6000], [])
    lists = np.array([0, 4, 0, 1, 4, 0, 1, 2, 3, 4, 4], np.uint32)
    weights = np.array([6, 1, 5, 4, 0.5, 5, 4, 3, 2, 1, 1], np.float32)
    case.check(engine, Queries(np.array([0, 2, 5, 10, 11], np.int64), lists, weights), k, require_all)


@CODECS
def test_a_list_that_ends_before_the_last_window(engine: str, codec: int) -> None:
    """Nothing is looked up behind its end, where the next list begins with just the documents that are looked for."""
    case = Case(11, codec, 80_000, [], [])
    near, far = np.arange(10), np.arange(70_000, 70_100)
    lists = [np.concatenate([near, far]), np.arange(3000), np.arange(70_000, 71_000)]
    offsets, held = concatenated(lists)
    case.postings = coding.encode(codec, case.documents, offsets, held, np.ones(len(held), np.uint32))
    case.norms = np.zeros(case.documents, np.float32)
    case.norms[near] = 0.1
    queries = Queries(np.array([0, 2], np.int64), np.array([0, 1], np.uint32), np.array([1, 1.2], np.float32))
    case.check(engine, queries, 10, False, bounded=False)
    assert case.found(engine, queries, 10, False)[1].tolist() == [near.tolist()]


@CODECS
@MODES
def test_lists_in_any_order(engine: str, codec: int, require_all: bool) -> None:
    """Another order than by size is that of the whole index, of which these are a part."""
    case = Case(5, codec, 3000, [1000, 20, 2000, 1], [100])
    lists = np.array([2, 1, 0, 4, 0, 1, 2, 4, 1, 3, 0], np.uint32)
    queries = Queries(np.array([0, 4, 7, 11], np.int64), lists, np.linspace(1, 3, 11).astype(np.float32))
    case.check(engine, queries, 10, require_all)


@MODES
def test_no_queries(engine: str, require_all: bool) -> None:
    case = Case(1, PFORDELTA, 100, [10], [])
    none = Queries(np.zeros(1, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.float32))
    case.check(engine, none, 10, require_all)
    case.check(engine, none._replace(offsets=np.zeros(4, np.int64)), 10, require_all)


@MODES
def test_weights_of_zero_find(engine: str, require_all: bool) -> None:
    case = Case(2, RICE, 500, [200, 300], [])
    queries = Queries(np.array([0, 2], np.int64), np.array([0, 1], np.uint32), np.zeros(2, np.float32))
    case.check(engine, queries, 20, require_all)


@CODECS
@MODES
def test_ten_thousand_lists(engine: str, codec: int, require_all: bool) -> None:
    case = Case(7, codec, 400, [3] * 9_999 + [400], [])
    lists = np.arange(10_000, dtype=np.uint32)
    weights = case.random.random(10_000).astype(np.float32)
    case.check(engine, Queries(np.array([0, 10_000], np.int64), lists, weights), 10, require_all)


def test_few_postings_of_very_many_documents() -> None:
    """What is allocated follows the postings; the norms alone are as long as the collection, and never touched."""
    documents = (1 << 32) - 2
    held = np.array([0, 5, 1 << 31, documents - 1, 5, documents - 1], np.uint32)
    postings = coding.encode(RICE, documents, np.array([0, 2, 4, 6], np.int64), held, np.ones(6, np.uint32))
    norms = np.zeros(documents, np.float32)
    queries = Queries(np.array([0, 3], np.int64), np.array([0, 1, 2], np.uint32), np.array([1, 2, 4], np.float32))
    for bounds in (None, cpu.block_bounds(postings, norms), unknown_bounds(postings)):
        found, best, scores = cpu.search(postings, norms, bounds, queries, 10, False)
        assert found.tolist() == [4]
        assert best[0, :4].tolist() == [documents - 1, 5, 1 << 31, 0]
        assert scores[0, :4].tolist() == [6, 5, 2, 1]


def test_bounds_are_the_largest_of_their_blocks(engine: str) -> None:
    case = Case(9, PFORDELTA, 5000, [1, 128, 129, 3000], [])
    kernels = choose(engine, 0).kernels
    bounds = kernels.to_host(kernels.block_bounds(kernels.load_postings(case.postings), kernels.load_array(case.norms)))
    expected = []
    for number in range(4):
        documents, counts = reference_search.decode_list(case.postings, number)
        added = [reference_search.contribution(1, c, case.norms[d]) for d, c in zip(documents, counts, strict=True)]
        expected += [max(added[i : i + BLOCK]) for i in range(0, len(added), BLOCK)]
    np.testing.assert_array_equal(bounds, np.array(expected, np.float32))


def test_bounds_are_computed_for_the_lists_that_are_searched() -> None:
    """With "and", not where the shortest list has so few blocks that no threshold is known in time."""
    case = Case(9, PFORDELTA, 5000, [1, 1280, 1290, 3000], [])
    known, first = cpu.block_bounds(case.postings, case.norms), case.postings.block_offsets
    queries = Queries(np.array([0, 1, 3], np.int64), np.array([1, 1, 2], np.uint32), np.ones(3, np.float32))
    for require_all in (False, True):
        bounds = unknown_bounds(case.postings)
        found = [
            cpu.search(case.postings, case.norms, own, queries, 10, require_all) for own in (bounds, bounds, known)
        ]
        for own in found[:2]:
            assert all(map(np.array_equal, own, found[2]))
        assert (np.delete(bounds, np.arange(first[1], first[3])) == 2).all()
        np.testing.assert_array_equal(bounds[first[1] : first[3]], known[first[1] : first[3]])


def damaged(postings: Postings, random: Any) -> Postings:
    """Postings of which bytes are random where no offset tells that they are."""

    def anything(array: Any) -> Any:
        if random.random() < 0.4:
            return array
        return random.integers(0, 256, array.nbytes, dtype=np.uint8).view(array.dtype)

    streams = [
        stream._replace(
            low=anything(stream.low),
            unary=anything(stream.unary),
            exception_places=anything(stream.exception_places),
            exception_highs=anything(stream.exception_highs),
        )
        for stream in (postings.gaps, postings.counts)
    ]
    return postings._replace(heads=anything(postings.heads), gaps=streams[0], counts=streams[1])


@pytest.mark.slow
@CODECS
@MODES
def test_damaged_postings_are_searched(engine: str, codec: int, require_all: bool) -> None:
    """What is found is wrong then, but of the collection, and what is searched next is right."""
    for seed in range(12):
        case = Case(seed, codec, [70, 3000, 200_000][seed % 3], [1, 100, 300, 1000, 2000], [50])
        queries, sound = case.queries(8), case.postings
        case.postings = damaged(sound, case.random)
        with np.errstate(all="ignore"):
            found, documents, _ = case.found(engine, queries, 10, require_all)
        assert found.max() <= 10
        assert documents.max() < case.documents
        case.postings = sound
        case.check(engine, queries, 10, require_all)
