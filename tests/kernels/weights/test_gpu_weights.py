"""What is the device's own in weighing terms: shares of blocks, sums across them, documents sorted in pieces."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_tadoc.engine import cpu, cuda
from polars_tadoc.engine.cuda import device_problem
from polars_tadoc.kernels.weights import weights_cuda as weights
from tests.engine.test_gpu_memory import random_documents

pytestmark = pytest.mark.skipif(device_problem() is not None, reason=str(device_problem()))

TILE, PIECE, FAN = weights.TILE, weights.PIECE, weights.FAN
SHAPES = {
    "one": [1],
    "one long": [3 * TILE + 5],
    "long in which many tiles lie": [5, 20 * TILE, 7],
    "documents and postings fill a tile but for one": [TILE - 2],
    "documents and postings fill a tile": [TILE - 1],
    "documents and postings are one more than a tile": [TILE],
    "a document begins with a tile": [TILE - 1, 3, TILE - 4, TILE - 1],
    "tiles of ends alone": [7] + [0] * (3 * TILE) + [9] + [0] * (2 * TILE + 1),
    "empty ones first and last": [0] * 40 + [1, 0, 2] * 50 + [0] * 40,
    "of one posting": [1] * (2 * TILE + 1),
    "around pieces": [PIECE - 1, PIECE, PIECE + 1, 1, 2 * PIECE, 2 * PIECE + 1, 0, 3 * PIECE - 1],
    "pieces that begin anywhere": [700, 900, 1023, 5, 1024, 1, 2047, 2048, 1],
    "more pieces than are merged at a time": [3, (FAN + 2) * PIECE + 3, (FAN * 2 + 1) * PIECE - 1, 4],
}
shapes = pytest.mark.parametrize("lengths", SHAPES.values(), ids=list(SHAPES))


class Drawn:
    """Postings of documents of given lengths, on the device and in host memory."""

    def __init__(self, lengths: list[int], most: int = 1 << 20) -> None:
        random = np.random.default_rng(len(lengths))
        self.offsets = np.cumsum([0, *lengths]).astype(np.int64)
        self.size = max(*lengths, 7000)
        self.terminals = np.concatenate([np.arange(0), *(random.permutation(self.size)[:n] for n in lengths)]).astype(
            np.uint32
        )
        self.counts = np.minimum(random.zipf(1.3, len(self.terminals)), most).astype(np.uint64)
        load = cuda.load_array
        self.given = load(self.offsets), load(self.terminals), load(self.counts)
        self.idf = random.lognormal(0, 1, self.size)
        self.norms = random.lognormal(3, 1, len(lengths))
        self.owners = np.repeat(np.arange(len(lengths)), lengths)


def best(
    offsets: npt.NDArray[np.int64], terminals: Any, weighed: Any, rank: Any, top: int
) -> tuple[list[int], list[int], list[float]]:
    """The heaviest of each document, by NumPy's sort."""
    kept = [0]
    chosen: list[int] = []
    for first, stop in pairwise(offsets.tolist()):
        own = np.lexsort((rank[terminals[first:stop]], -weighed[first:stop]))[:top] + first
        chosen.extend(own.tolist())
        kept.append(len(chosen))
    return kept, terminals[chosen].tolist(), weighed[chosen].tolist()


def check_top(drawn: Drawn, weighed: Any, rank: Any, top: int) -> None:
    got = cuda.top_weights(
        *drawn.given[:2], cuda.load_array(weighed), None if rank is None else cuda.load_array(rank), top
    )
    order = np.arange(drawn.size) if rank is None else rank
    expected = best(drawn.offsets, drawn.terminals, weighed, order, top)
    assert tuple(cuda.to_host(array).tolist() for array in got) == expected


@shapes
def test_bm25_has_the_same_bits(lengths: list[int]) -> None:
    """Counts up to the last bit: those beyond 2^53 are rounded once."""
    drawn = Drawn(lengths)
    drawn.counts[::3] = np.random.default_rng(1).integers(1, 1 << 64, len(drawn.counts[::3]), np.uint64)
    drawn.given = (*drawn.given[:2], cuda.load_array(drawn.counts))
    counts = drawn.counts.astype(np.float64)
    expected = drawn.idf[drawn.terminals] * (counts / (counts + drawn.norms[drawn.owners]))
    idf, norms = cuda.load_array(drawn.idf), cuda.load_array(drawn.norms)
    got = cuda.weigh_bm25(*drawn.given, idf, norms, None)
    assert np.array_equal(cuda.to_host(got), expected)
    bases = -drawn.idf[::-1] / 3
    got = cuda.weigh_bm25(*drawn.given, idf, norms, cuda.load_array(bases))
    assert np.array_equal(cuda.to_host(got), expected + bases[drawn.terminals])


@shapes
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_sums_across_blocks(lengths: list[int], norm: str) -> None:
    drawn = Drawn(lengths)
    idf = cuda.load_array(drawn.idf)
    for sublinear in (False, True):
        terms = (1 + np.log(drawn.counts) if sublinear else drawn.counts.astype(np.float64)) * drawn.idf[
            drawn.terminals
        ]
        sums = np.zeros(len(lengths), np.longdouble)
        np.add.at(sums, drawn.owners, np.square(terms.astype(np.longdouble)) if norm == "l2" else terms)
        sizes = np.sqrt(sums) if norm == "l2" else sums
        first = cuda.to_host(cuda.weigh_tfidf(*drawn.given, idf, sublinear, norm))
        np.testing.assert_allclose(first, (terms / sizes[drawn.owners]).astype(np.float64), rtol=1e-14, atol=0)
        again = cuda.to_host(cuda.weigh_tfidf(*drawn.given, idf, sublinear, norm))
        assert first.tobytes() == again.tobytes()


def test_documents_of_zeros_stay() -> None:
    """In one block and across many."""
    drawn = Drawn([3, 2 * TILE, 4, 30 * TILE, 1])
    idf = np.ones(drawn.size)
    idf[drawn.terminals[drawn.owners % 2 == 1]] = 0
    got = cuda.to_host(cuda.weigh_tfidf(*drawn.given, cuda.load_array(idf), False, "l2"))
    zeros = idf[drawn.terminals] == 0
    assert zeros.any()
    assert np.array_equal(got == 0, zeros)
    assert np.isfinite(got).all()


@shapes
def test_lengths_and_frequencies(lengths: list[int]) -> None:
    drawn = Drawn(lengths)
    drawn.counts[::2] += np.uint64(1 << 40)
    got = cuda.document_lengths(drawn.given[0], cuda.load_array(drawn.counts))
    expected = np.zeros(len(lengths), np.uint64)
    np.add.at(expected, drawn.owners, drawn.counts)
    assert np.array_equal(cuda.to_host(got), expected)
    frequencies = cuda.to_host(cuda.document_frequencies(drawn.given[1], drawn.size))
    assert np.array_equal(frequencies, np.bincount(drawn.terminals, minlength=drawn.size))


@shapes
@pytest.mark.parametrize("ties", [False, True])
def test_top_across_pieces(lengths: list[int], ties: bool) -> None:
    """Few of each piece, half of one, all of it, more than all pieces that are merged at a time, everything."""
    drawn, random = Drawn(lengths), np.random.default_rng(2)
    weighed = random.normal(0, 1, len(drawn.terminals))
    if ties:
        weighed = np.where(random.random(len(weighed)) < 0.5, -0.0, np.round(weighed))
    rank = random.permutation(drawn.size).astype(np.uint32)
    for top in (1, 10, PIECE // 2, PIECE, PIECE + 1, FAN * PIECE + 1, 1 << 62):
        check_top(drawn, weighed, rank, top)
    check_top(drawn, weighed, None, 1)


@given(
    lengths=st.lists(st.integers(0, 90) | st.integers(PIECE - 3, PIECE + 3), min_size=1, max_size=12),
    top=st.integers(1, 2 * PIECE),
    values=st.integers(1, 5),
)
def test_any_lengths(lengths: list[int], top: int, values: int) -> None:
    drawn = Drawn(lengths)
    weighed = np.random.default_rng(top).integers(0, values, len(drawn.terminals)).astype(np.float64)
    check_top(drawn, weighed, None, top)


def test_more_terminals_than_a_block_has_slots_for() -> None:
    """Each posting of a terminal of its own, and one terminal in all documents."""
    terminals = np.concatenate([np.arange(300_000), np.zeros(200_000, np.int64)]).astype(np.uint32)
    got = cuda.to_host(cuda.document_frequencies(cuda.load_array(terminals), 300_001))
    assert np.array_equal(got, np.bincount(terminals, minlength=300_001))


@pytest.mark.parametrize("strategy", ["top_down", "bottom_up"])
def test_terms_from_tables_that_stay(strategy: str) -> None:
    """The second call finds tables, the third one keeps them: all give the same."""
    rules, root_offsets, roots, host, host_offsets, host_roots = random_documents(7)
    rank = np.random.default_rng(3).permutation(host.terminals).astype(np.uint32)
    for order in (None, rank):
        expected = cpu.terms_by_document(host, host_offsets, host_roots, strategy, order)
        for _ in range(3):
            loaded = None if order is None else cuda.load_array(order)
            got = cuda.terms_by_document(rules, root_offsets, roots, strategy, loaded)
            for here, there in zip(got, list(expected), strict=True):
                assert np.array_equal(cuda.to_host(here), there)


def test_millions_of_postings_in_one_document() -> None:
    """Ten documents, of which one has all postings but a few."""
    drawn = Drawn([3, 1, 0, 3_000_000, 5, 0, 2, 900, 1, 1])
    counts = drawn.counts.astype(np.float64)
    idf = cuda.load_array(drawn.idf)
    weighed = cuda.weigh_bm25(*drawn.given, idf, cuda.load_array(drawn.norms), None)
    expected = drawn.idf[drawn.terminals] * (counts / (counts + drawn.norms[drawn.owners]))
    assert np.array_equal(cuda.to_host(weighed), expected)
    check_top(drawn, expected, None, 100)
    check_top(drawn, np.floor(expected), None, 1 << 40)
    terms = (counts * drawn.idf[drawn.terminals]).astype(np.longdouble)
    sums = np.zeros(10, np.longdouble)
    np.add.at(sums, drawn.owners, terms)
    got = cuda.to_host(cuda.weigh_tfidf(*drawn.given, idf, False, "l1"))
    np.testing.assert_allclose(got, (terms / sums[drawn.owners]).astype(np.float64), rtol=1e-14, atol=0)
