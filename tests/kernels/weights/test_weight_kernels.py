"""Terms by document, BM25 and TF-IDF weights and the heaviest of them, against plain Python."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.engine.choose import choose
from polars_tadoc.engine.kernels import Kernels
from polars_tadoc.kernels.traverse import analytics_reference as reference_analytics
from polars_tadoc.kernels.traverse import results_cpu as results
from polars_tadoc.kernels.traverse import tables_cpu as tables
from polars_tadoc.kernels.traverse.analytics_reference import Counted
from polars_tadoc.kernels.weights import reference as reference_weights
from tests import handmade
from tests.strategies import grammars

STRATEGIES = ["top_down", "bottom_up"]
SIZES = [0, 1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 4097]
Rows = Sequence[Sequence[int]]


def kernels_of(engine: str) -> Kernels:
    return choose(engine, 0).kernels


def to_engine(kernels: Kernels, values: Any, dtype: Any) -> Any:
    return None if values is None else kernels.load_array(np.array(values, dtype))


class Postings:
    """Terms of documents as arrays of an engine."""

    def __init__(self, engine: str, documents: Sequence[Counted], terminals: int) -> None:
        self.kernels = kernels_of(engine)
        self.documents, self.size = documents, terminals
        pairs = [pair for document in documents for pair in document]
        self.host_offsets = np.cumsum([0, *(len(document) for document in documents)]).astype(np.int64)
        self.offsets = self.load(self.host_offsets, np.int64)
        self.terminals = self.load([terminal for terminal, _ in pairs], np.uint32)
        self.counts = self.load([count for _, count in pairs], np.uint64)

    def load(self, values: Any, dtype: Any = np.float64) -> Any:
        return to_engine(self.kernels, values, dtype)

    def lists(self, values: Any, offsets: Any = None) -> list[list[Any]]:
        offsets = self.host_offsets if offsets is None else self.kernels.to_host(offsets)
        flat = self.kernels.to_host(values).tolist()
        return [flat[a:b] for a, b in pairwise(offsets.tolist())]

    def bm25(self, weights: Any, norms: Any, bases: Any) -> list[list[float]]:
        weighed = self.kernels.weigh_bm25(
            self.offsets, self.terminals, self.counts, self.load(weights), self.load(norms), self.load(bases)
        )
        assert weighed.dtype == np.float64
        return self.lists(weighed)

    def tfidf(self, idf: Any, sublinear: bool, norm: str | None) -> list[list[float]]:
        weighed = self.kernels.weigh_tfidf(
            self.offsets, self.terminals, self.counts, self.load(idf), sublinear=sublinear, norm=norm
        )
        assert weighed.dtype == np.float64
        return self.lists(weighed)

    def top(self, weights: Sequence[Sequence[float]], rank: Any, top: int) -> list[list[tuple[int, float]]]:
        flat = self.load([weight for own in weights for weight in own])
        offsets, terminals, heaviest = self.kernels.top_weights(
            self.offsets, self.terminals, flat, self.load(rank, np.uint32), top
        )
        assert (offsets.dtype, terminals.dtype, heaviest.dtype) == (np.int64, np.uint32, np.float64)
        return [
            list(zip(own, values, strict=True))
            for own, values in zip(self.lists(terminals, offsets), self.lists(heaviest, offsets), strict=True)
        ]


def check_terms(engine: str, terminals: int, bodies: Rows, rows: Rows, levels: Any, rank: Any, strategy: str) -> None:
    kernels = kernels_of(engine)
    made = handmade.grammar(handmade.words(terminals), bodies, levels)
    offsets = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
    roots = np.array([symbol for row in rows for symbol in row], np.uint32)
    expanded = reference_analytics.expand_documents(
        terminals, made.rule_offsets.tolist(), made.symbols.tolist(), offsets.tolist(), roots.tolist()
    )
    found = kernels.terms_by_document(
        kernels.load_rules(made),
        kernels.load_array(offsets),
        kernels.load_symbols(roots),
        strategy,
        to_engine(kernels, rank, np.uint32),
    )
    assert [array.dtype for array in found] == [np.int64, np.uint32, np.uint64]
    starts, ids, counts = (kernels.to_host(array).tolist() for array in found)
    pairs = list(zip(ids, counts, strict=True))
    assert [pairs[a:b] for a, b in pairwise(starts)] == reference_analytics.terms_by_document(expanded, rank)
    lengths = kernels.document_lengths(found[0], found[2])
    assert lengths.dtype == np.uint64
    assert kernels.to_host(lengths).tolist() == [len(row) for row in expanded]


@given(
    made=grammars(),
    data=st.data(),
    short=st.sampled_from([1, 4, tables.SHORT]),
    long=st.sampled_from([0, results.LONG, 1 << 40]),
)
def test_terms_of_any_grammar(engine: str, made: Any, data: st.DataObject, short: int, long: int) -> None:
    terminals, bodies, levels, rows = made
    rank = data.draw(st.one_of(st.none(), st.permutations(range(terminals))))
    rows = rows * data.draw(st.integers(1, 3))
    with patch.object(tables, "SHORT", short), patch.object(results, "LONG", long):
        for strategy in STRATEGIES:
            check_terms(engine, terminals, bodies, rows, levels, rank, strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("terminals", "bodies", "rows"),
    [
        (1, [], []),
        (1, [], [[]]),
        (3, [], [[], [0, 2, 0], [], [1]]),
        (2, [[0, 1], [2, 2]], [[], [], [3]]),
        (2, [[0, 0]], [[2]]),
        (70, [[i % 70 for i in range(100_000)], [70, 70, 3]], [[71], [70, 71, 5], [4]]),
    ],
    ids=["no documents", "one empty document", "no rules", "empty documents first", "one symbol", "one long rule"],
)
def test_terms_of_few(engine: str, strategy: str, terminals: int, bodies: Rows, rows: Rows) -> None:
    check_terms(engine, terminals, bodies, rows, None, None, strategy)
    check_terms(engine, terminals, bodies, rows, None, list(range(terminals))[::-1], strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("size", [15, 16, 17, 63, 64, 65, 127, 128, 129, 4095, 4096, 4097])
def test_terms_around_blocks(engine: str, strategy: str, size: int) -> None:
    random = np.random.default_rng(size)
    bodies = [[i, (i * 7 + 1) % size] for i in range(size)]
    rows = [[*range(size), *range(size, 2 * size)], list(range(size))[::-1], [*range(size, 2 * size), 0, 0]]
    for rank in (None, random.permutation(size).tolist()):
        check_terms(engine, size, bodies, rows, [0, size], rank, strategy)
        check_terms(engine, size, [], rows[1:2], [0], rank, strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_terms_counted_beyond_32_bits(engine: str, strategy: str) -> None:
    """Each rule is twice the one before it: 2^40 words of one kind."""
    tadoc.Config.set(expansion_limit=1 << 41)
    kernels = kernels_of(engine)
    rules = kernels.load_rules(handmade.grammar(["a", "b"], [[0, 0], *([k + 1, k + 1] for k in range(1, 40))]))
    found = kernels.terms_by_document(
        rules,
        kernels.load_array(np.array([0, 2, 3])),
        kernels.load_symbols(np.array([41, 1, 0], np.uint32)),
        strategy,
        kernels.load_array(np.array([1, 0], np.uint32)),
    )
    starts, ids, counts = (kernels.to_host(array).tolist() for array in found)
    assert (starts, ids, counts) == ([0, 2, 3], [1, 0, 0], [1, 1 << 40, 1])
    assert kernels.to_host(kernels.document_lengths(found[0], found[2])).tolist() == [(1 << 40) + 1, 1]


counted = st.integers(1, 9).flatmap(
    lambda size: st.tuples(
        st.just(size),
        st.lists(
            st.dictionaries(
                st.integers(0, size - 1), st.one_of(st.integers(1, 4), st.integers(200, 300), st.integers(1, 1 << 62))
            ).map(lambda found: list(found.items())),
            max_size=8,
        ),
    )
)
"""Number of terminals, and documents with the terminals in any order."""
numbers = st.floats(0, 1e6)


@given(made=counted)
def test_document_frequencies(engine: str, made: tuple[int, list[Counted]]) -> None:
    size, documents = made
    postings = Postings(engine, documents, size)
    found = postings.kernels.document_frequencies(postings.terminals, size)
    assert found.dtype == np.uint64
    assert postings.kernels.to_host(found).tolist() == reference_weights.document_frequencies(documents, size)


def test_document_frequencies_of_many(engine: str) -> None:
    """More postings than one thread or block takes, most of them of one terminal."""
    kernels = kernels_of(engine)
    terminals = np.random.default_rng(0).integers(0, 1000, 1 << 20).astype(np.uint32)
    terminals[::2] = 7
    found = kernels.document_frequencies(kernels.load_symbols(terminals), 1001)
    assert kernels.to_host(found).tolist() == np.bincount(terminals, minlength=1001).tolist()


@given(made=counted, data=st.data())
def test_bm25(engine: str, made: tuple[int, list[Counted]], data: st.DataObject) -> None:
    """The same bits as plain Python's, which rounds once an operation, too."""
    size, documents = made
    weights, norms = (
        data.draw(st.lists(numbers, min_size=length, max_size=length)) for length in (size, len(documents))
    )
    bases = data.draw(st.one_of(st.none(), st.lists(numbers, min_size=size, max_size=size)))
    got = Postings(engine, documents, size).bm25(weights, norms, bases)
    assert got == reference_weights.weigh_bm25(documents, weights, norms, bases)


def some(documents: int, seed: int = 0) -> tuple[int, list[Counted]]:
    """Documents of very different lengths."""
    random = np.random.default_rng(seed)
    size = 5000
    lengths = np.minimum(random.lognormal(3, 2.5, documents).astype(int), size)
    return size, [
        [(int(t), int(c)) for t, c in zip(np.sort(random.choice(size, n, False)), random.zipf(1.5, n), strict=True)]
        for n in lengths
    ]


def close(got: Sequence[Sequence[float]], expected: Sequence[Sequence[float]]) -> None:
    assert [len(own) for own in got] == [len(own) for own in expected]
    for own, wanted in zip(got, expected, strict=True):
        assert all(math.isclose(a, b, rel_tol=1e-14) for a, b in zip(own, wanted, strict=True))


@given(
    made=counted, data=st.data(), sublinear=st.booleans(), norm=st.sampled_from([None, "l1", "l2"]), ones=st.booleans()
)
def test_tfidf(
    engine: str, made: tuple[int, list[Counted]], data: st.DataObject, sublinear: bool, norm: str | None, ones: bool
) -> None:
    size, documents = made
    idf = None if ones else data.draw(st.lists(st.floats(1e-3, 1e3) | st.just(0.0), min_size=size, max_size=size))
    got = Postings(engine, documents, size).tfidf(idf, sublinear, norm)
    close(got, reference_weights.weigh_tfidf(documents, idf, sublinear, norm))


@pytest.mark.parametrize("documents", SIZES)
def test_documents_of_very_different_lengths(engine: str, documents: int) -> None:
    size, made = some(documents)
    postings, random = Postings(engine, made, size), np.random.default_rng(1)
    weights, norms = random.lognormal(0, 1, size).tolist(), random.lognormal(0, 1, documents).tolist()
    expected = reference_weights.weigh_bm25(made, weights, norms)
    assert postings.bm25(weights, norms, None) == expected
    for norm in ("l1", "l2"):
        close(postings.tfidf(weights, True, norm), reference_weights.weigh_tfidf(made, weights, True, norm))
    assert postings.top(expected, None, 10) == reference_weights.top_weights(made, expected, None, 10)


@pytest.mark.parametrize("length", [size for size in SIZES if size])
@pytest.mark.parametrize("norm", [None, "l1", "l2"])
def test_one_document_around_blocks(engine: str, length: int, norm: str | None) -> None:
    document = [(terminal, 1 + terminal * terminal % 991) for terminal in range(length)]
    postings = Postings(engine, [[], document, [(0, 3)]], length)
    idf = [1.0 + 1 / (1 + terminal) for terminal in range(length)]
    for sublinear in (False, True):
        expected = reference_weights.weigh_tfidf(postings.documents, idf, sublinear, norm)
        close(postings.tfidf(idf, sublinear, norm), expected)
    rank = np.random.default_rng(length).permutation(length).tolist()
    weights = [[], [float(terminal % 7) for terminal in range(length)], [1.0]]
    for top in (0, 1, 10, length - 1, length, length + 1, 1 << 62):
        assert postings.top(weights, rank, top) == reference_weights.top_weights(postings.documents, weights, rank, top)


def test_a_sum_that_rounding_would_lose(engine: str) -> None:
    """A norm over two million small terms and one large one."""
    length = 1 << 21
    postings = Postings(engine, [[(0, 1 << 30), *((t, 1 + t % 3) for t in range(1, length))]], length)
    close(postings.tfidf(None, False, "l1"), reference_weights.weigh_tfidf(postings.documents, None, False, "l1"))


@given(made=counted, data=st.data())
def test_merge(engine: str, made: tuple[int, list[Counted]], data: st.DataObject) -> None:
    """Of terminals in the order of their images; those that become nothing stand anywhere."""
    size, documents = made
    gone = 0xFFFFFFFF
    image = data.draw(st.lists(st.integers(0, 3) | st.just(gone), min_size=size, max_size=size))
    documents = [sorted(document, key=lambda term: image[term[0]]) for document in documents]
    documents = [data.draw(st.sampled_from([document, document[::-1]])) for document in documents]
    expected = []
    for document in documents:
        sums: dict[int, int] = {}
        for terminal, count in document:
            sums[image[terminal]] = (sums.get(image[terminal], 0) + count) % (1 << 64)
        expected.append([(to, total) for to, total in sums.items() if to != gone])
    postings = Postings(engine, documents, size)
    offsets, images, counts = postings.kernels.merge_terms(
        postings.offsets, postings.terminals, postings.counts, postings.load(image, np.uint32)
    )
    assert [array.dtype for array in (offsets, images, counts)] == [np.int64, np.uint32, np.uint64]
    got = zip(postings.lists(images, offsets), postings.lists(counts, offsets), strict=True)
    assert [list(zip(*own, strict=True)) for own in got] == expected


@pytest.mark.parametrize("documents", SIZES)
def test_merge_of_very_different_documents(engine: str, documents: int) -> None:
    size, made = some(documents)
    postings = Postings(engine, made, size)
    image = np.arange(size, dtype=np.uint32) // 3
    image[::7] = 0xFFFFFFFF
    image[image % 50 == 0] = 0xFFFFFFFF
    found = postings.kernels.merge_terms(
        postings.offsets, postings.terminals, postings.counts, postings.load(image, np.uint32)
    )
    offsets, images, counts = (postings.kernels.to_host(array) for array in found)
    for number, document in enumerate(made):
        sums: dict[int, int] = {}
        for terminal, count in document:
            if image[terminal] != 0xFFFFFFFF:
                sums[int(image[terminal])] = sums.get(int(image[terminal]), 0) + count
        own = slice(offsets[number], offsets[number + 1])
        assert dict(zip(images[own].tolist(), counts[own].tolist(), strict=True)) == sums
    assert offsets[-1] == len(images) == len(counts)


@given(made=counted, data=st.data(), top=st.one_of(st.integers(0, 10), st.just(1 << 62)))
def test_top(engine: str, made: tuple[int, list[Counted]], data: st.DataObject, top: int) -> None:
    """Of few values, so that many are equal."""
    size, documents = made
    rank = data.draw(st.one_of(st.none(), st.permutations(range(size))))
    value = st.sampled_from([0.0, 0.5, 1.0, 1e300, 5e-324])
    weights = [data.draw(st.lists(value, min_size=len(own), max_size=len(own))) for own in documents]
    got = Postings(engine, documents, size).top(weights, rank, top)
    assert got == reference_weights.top_weights(documents, weights, rank, top)
