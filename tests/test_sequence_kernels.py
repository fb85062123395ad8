"""Sequences and pairs on rules, on each engine, against their plain-Python definitions."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_tadoc.engine import choose
from polars_tadoc.kernels import reference_analytics as reference
from polars_tadoc.kernels.rules import Rules

STRATEGIES = ("top_down", "bottom_up")
Made = tuple[int, list[list[int]], list[int], list[list[int]]]


@st.composite
def made_rules(draw: st.DrawFn) -> Made:
    """Terminals, bodies in level order (some empty, some of one symbol), level offsets, documents."""
    terminals = draw(st.integers(1, 5))
    bodies: list[list[int]] = []
    level_offsets = [0]
    for width in draw(st.lists(st.integers(1, 3), max_size=6)):
        symbols = st.integers(0, terminals + len(bodies) - 1)
        bodies += draw(st.lists(st.lists(symbols, max_size=5), min_size=width, max_size=width))
        level_offsets.append(len(bodies))
    symbols = st.integers(0, terminals + len(bodies) - 1)
    rows = draw(st.lists(st.lists(symbols, max_size=6), max_size=5))
    return terminals, bodies, level_offsets, rows


limits = {
    "min_count": st.one_of(st.just(1), st.integers(-1, 9)),
    "top": st.one_of(st.none(), st.integers(0, 9)),
}


class Case:
    """Rules and documents, for kernels and for their definitions."""

    def __init__(self, made: Made, rank: list[int] | None = None) -> None:
        self.terminals, bodies, levels, rows = made
        self.rank = rank
        self.rule_offsets = np.cumsum([0, *map(len, bodies)])
        self.symbols = np.array([s for body in bodies for s in body], np.uint32)
        self.root_offsets = np.cumsum([0, *map(len, rows)])
        self.roots = np.array([s for row in rows for s in row], np.uint32)
        lengths: list[int] = []
        for body in bodies:
            lengths.append(sum(1 if s < self.terminals else lengths[s - self.terminals] for s in body))
        self.lengths = np.array(lengths, np.uint64)
        self.level_offsets = np.array(levels, np.int64)

    @property
    def rows(self) -> list[list[int]]:
        arrays = (self.rule_offsets, self.symbols, self.root_offsets, self.roots)
        return reference.expand_documents(self.terminals, *(array.tolist() for array in arrays))

    def run(self, engine: str, name: str, *arguments: Any, **options: Any) -> list[Any]:
        """Results of a kernel of an engine, in host memory."""
        kernels = choose(engine, 0).kernels
        load = kernels.load_array
        rules = Rules(
            self.terminals, load(self.rule_offsets), load(self.symbols), self.level_offsets, load(self.lengths)
        )
        rank = None if self.rank is None else load(np.array(self.rank, np.uint32))
        size, strategy = arguments
        got = getattr(kernels, name)(rules, load(self.root_offsets), load(self.roots), size, rank, strategy, **options)
        return [kernels.to_host(array) for array in got]

    def counted(self, engine: str, name: str, size: int, strategy: str, **options: Any) -> list[Any]:
        words, counts = self.run(engine, name, size, strategy, **options)
        assert (words.dtype, counts.dtype) == (np.uint32, np.uint64)
        assert words.shape == (len(counts), 2 if name == "pair_counts" else size)
        return list(zip(map(tuple, words.tolist()), counts.tolist(), strict=True))

    def postings(self, engine: str, n: int, strategy: str, **options: Any) -> list[Any]:
        words, offsets, documents, counts = self.run(engine, "sequence_postings", n, strategy, **options)
        assert [array.dtype for array in (words, offsets, documents, counts)] == [
            np.uint32,
            np.int64,
            np.uint32,
            np.uint64,
        ]
        assert words.shape == (len(offsets) - 1, n)
        lists = [
            list(zip(documents[a:b].tolist(), counts[a:b].tolist(), strict=True)) for a, b in pairwise(offsets.tolist())
        ]
        return list(zip(map(tuple, words.tolist()), lists, strict=True))


def drawn(made: Made, data: st.DataObject) -> Case:
    return Case(made, data.draw(st.one_of(st.none(), st.permutations(range(made[0])))))


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(made=made_rules(), n=st.integers(1, 9), data=st.data(), **limits)
def test_sequence_counts(engine: str, strategy: str, made: Made, n: int, data: Any, **options: Any) -> None:
    case = drawn(made, data)
    expected = reference.sequence_counts(case.rows, n, case.rank, **options)
    assert case.counted(engine, "sequence_counts", n, strategy, **options) == expected


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(made=made_rules(), n=st.integers(1, 9), data=st.data(), **limits)
def test_sequence_postings(engine: str, strategy: str, made: Made, n: int, data: Any, **options: Any) -> None:
    case = drawn(made, data)
    expected = reference.sequence_postings(case.rows, n, case.rank, **options)
    assert case.postings(engine, n, strategy, **options) == expected


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(
    made=made_rules(),
    window=st.one_of(st.integers(1, 9), st.sampled_from([64, 1000, 1 << 40])),
    data=st.data(),
    **limits,
)
def test_pair_counts(engine: str, strategy: str, made: Made, window: int, data: Any, **options: Any) -> None:
    case = drawn(made, data)
    expected = reference.pair_counts(case.rows, window, case.rank, **options)
    assert case.counted(engine, "pair_counts", window, strategy, **options) == expected
