"""What is the device's own in matching twigs: both kernels, columns, lanes of two words, levels beyond its stacks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_tadoc.engine import cpu, cuda
from polars_tadoc.engine.cuda import device_problem
from polars_tadoc.kernels.twigs import twigs_cuda as cuda_twigs
from polars_tadoc.kernels.twigs.arrays import CLOSE, OTHER, Events, Twigs
from polars_tadoc.kernels.twigs.reference import twig_matches
from tests.twig_strategies import Node, compile_twigs, make_events, twigs_and_events

pytestmark = pytest.mark.skipif(device_problem() is not None, reason=str(device_problem()))

kernels = pytest.mark.parametrize("kernel", cuda_twigs.TWIG_KERNELS)
lanes = pytest.mark.parametrize("wide", [1, 1 << 20], ids=["two words", "one word"])


@pytest.fixture
def patch() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


def matched(twigs: Twigs, events: Events, kernel: str) -> list[list[int]]:
    offsets, matches = (
        cuda.to_host(array) for array in cuda.TwigMatcher(twigs, kernel).match(cuda.load_events(events))
    )
    assert offsets.dtype == np.int64
    assert matches.dtype == np.uint32
    assert (offsets[0], offsets[-1]) == (0, len(matches))
    return [matches[start:stop].tolist() for start, stop in pairwise(offsets)]


def agree(twigs: Twigs, events: Events, kernel: str) -> int:
    """Hold a kernel to the CPU; return how many twigs match."""
    expected = cpu.TwigMatcher(twigs).match(events)
    given = cuda.TwigMatcher(twigs, kernel).match(cuda.load_events(events))
    for ours, theirs in zip(given, expected, strict=True):
        np.testing.assert_array_equal(cuda.to_host(ours), theirs)
    return len(expected[1])


def random_twig(random: np.random.Generator, size: int, symbols: int, reach: int = 4) -> Node:
    """Draw a twig of so many nodes, the larger its reach the shallower."""
    children: list[list[int]] = [[] for _ in range(size)]
    for node in range(1, size):
        children[random.integers(max(0, node - reach), node)].append(node)

    def build(node: int) -> Node:
        symbol = OTHER if random.random() < 0.3 else int(random.integers(2, symbols))
        return Node(symbol, bool(random.random() < 0.6), tuple(build(child) for child in children[node]))

    return build(0)


def random_document(random: np.random.Generator, length: int, symbols: int, closing: float = 0.5) -> list[int]:
    """Draw about so many events of one element."""
    events, opened = [2], 1
    for _ in range(length):
        if random.random() < closing and opened > 1:
            events.append(CLOSE)
            opened -= 1
        else:
            events.append(int(random.integers(1, symbols)))
            opened += 1
    return events + [CLOSE] * opened


@kernels
@lanes
@given(pair=twigs_and_events(), near=st.sampled_from([0, 1, 16]), most=st.sampled_from([1, 1 << 28]))
def test_equals_the_definition(kernel: str, wide: int, near: int, most: int, pair: tuple[Twigs, Events]) -> None:
    twigs, events = pair
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuda_twigs, "_WIDE", wide)
        patch.setattr(cuda_twigs, "_LEVELS", near)
        patch.setattr(cuda_twigs, "_NODE_LEVELS", near)
        patch.setattr(cuda_twigs, "_MAX_SPILLED", most)
        assert matched(twigs, events, kernel) == twig_matches(twigs, events)


@kernels
@lanes
@pytest.mark.parametrize("count", [1, 90, 300, 1500])
def test_many_twigs_are_in_several_columns(patch: pytest.MonkeyPatch, kernel: str, wide: int, count: int) -> None:
    patch.setattr(cuda_twigs, "_WIDE", wide)
    random = np.random.default_rng(count)
    sizes = random.choice([1, 3, 5, 10, 15], count)
    twigs = compile_twigs([random_twig(random, size, 12) for size in sizes], 12)
    documents = [random_document(random, size, 12) for size in (0, 1, 5, 31, 32, 33, 150, 400)]
    assert agree(twigs, make_events([*documents, [], documents[3]]), kernel) > 0


@kernels
def test_twigs_of_every_size(kernel: str) -> None:
    random = np.random.default_rng(7)
    sizes = [1, 31, 32, 33, 2, 63, 64, 65, 5, 66, 127, 128, 129, 40, 300, 3, 2100]
    twigs = [random_twig(random, size, 5, 4 + size // 20) for size in sizes]
    chains = [Node(2, True)]
    for _ in range(90):
        chains.append(Node(3, True, (chains[-1], Node(OTHER, True))))
    documents = [random_document(random, size, 5, 0.45) for size in (60, 700, 1500)]
    documents.append([2, *[3] * 130, 2, CLOSE, *[CLOSE] * 130, CLOSE])
    assert agree(compile_twigs([*twigs, chains[90], chains[40], chains[20]], 6), make_events(documents), kernel) > 3


@kernels
@pytest.mark.parametrize("depth", [15, 16, 17, 18, 63, 64, 65, 66, 67, 3000])
def test_deep_documents(patch: pytest.MonkeyPatch, kernel: str, depth: int) -> None:
    random = np.random.default_rng(depth)
    patch.setattr(cuda_twigs, "_MAX_SPILLED", 1 << 20)
    twigs = compile_twigs([random_twig(random, size, 5) for size in [1, 2, 3, 4, 8, 70, 5] * 7], 6)
    straight = [2, *random.integers(1, 5, depth - 1).tolist(), *[CLOSE] * depth]
    bushy = [2]
    for _ in range(depth - 1):  # a leaf before each level: all of them wait on the stack
        bushy += [3, CLOSE, int(random.integers(1, 5))]
    bushy += [CLOSE, 4] * 3 + [CLOSE] * depth if depth > 40 else [CLOSE] * depth
    assert agree(twigs, make_events([straight, bushy, [2, CLOSE]], depth % 2 == 0), kernel) > 10


@kernels
def test_leaves_that_come_again(kernel: str) -> None:
    twigs = compile_twigs([Node(2, True, (Node(3, False), Node(4, False))), Node(OTHER, False, (Node(3, True),))], 5)
    runs = [[2, *[3, CLOSE] * n, *[4, CLOSE] * (n % 3), *[3, CLOSE] * 2, CLOSE] for n in range(70)]
    nested = [2, *(event for run in runs for event in run), CLOSE]
    events = make_events([*runs, nested, [2, CLOSE], [3, CLOSE]])
    assert matched(twigs, events, kernel) == twig_matches(twigs, events)


@kernels
def test_many_symbols_need_no_dense_table(kernel: str) -> None:
    random = np.random.default_rng(3)
    symbols, attributes = 70_000, range(30_000, 40_000)
    named = random.integers(2, symbols, 3000)
    twigs = compile_twigs(
        [Node(OTHER, True, (Node(int(symbol), False), Node(OTHER, bool(symbol % 2)))) for symbol in named],
        symbols,
        attributes,
    )
    documents = []
    for _ in range(9):
        leaves = np.concatenate([random.choice(named, 60), random.integers(2, symbols, 20)])
        documents.append([5, *(event for leaf in leaves.tolist() for event in (leaf, CLOSE)), CLOSE])
    assert agree(twigs, make_events(documents, wide=True), kernel) > 500


@kernels
def test_a_large_batch_is_copied_by_several_threads_and_matched_in_parts(
    patch: pytest.MonkeyPatch, kernel: str
) -> None:
    patch.setattr(cuda_twigs, "_UPLOADED", 0)
    patch.setattr(cuda_twigs, "_MAX_FOUND", (8 * 32 + 4 * 40) * 70)
    patch.setattr(cuda_twigs, "_MAX_SPARE", 0)
    random = np.random.default_rng(5)
    twigs = compile_twigs([random_twig(random, 4, 6) for _ in range(40)], 6)
    assert agree(twigs, make_events([random_document(random, 50, 6) for _ in range(300)]), kernel) > 300


@kernels
def test_nothing_to_match(kernel: str) -> None:
    no_twigs, some = compile_twigs([], 3), compile_twigs([Node(2, False)], 3)
    assert matched(no_twigs, make_events([[2, CLOSE], []]), kernel) == [[], []]
    assert matched(some, make_events([]), kernel) == []
    assert matched(some, make_events([[], []]), kernel) == [[], []]
    assert matched(some, make_events([[], [2, CLOSE]]), kernel) == [[], [0]]


def test_a_matcher_can_be_used_for_both_widths_of_symbols() -> None:
    matcher = cuda.TwigMatcher(compile_twigs([Node(2, False)], 3))
    for wide in (False, True, False):
        offsets, matches = matcher.match(cuda.load_events(make_events([[2, CLOSE]], wide)))
        assert (offsets.tolist(), matches.tolist()) == ([0, 1], [0])


def test_unknown_kernels_are_refused() -> None:
    with pytest.raises(ValueError, match="kernel='dots': use 'bits' or 'nodes'"):
        cuda.TwigMatcher(compile_twigs([], 3), "dots")
