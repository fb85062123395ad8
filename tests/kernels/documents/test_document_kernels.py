"""Terminals counted in total, by document and by terminal, against plain Python over expanded rows."""

from __future__ import annotations

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
from polars_tadoc.kernels.documents import classes_cpu as classes
from polars_tadoc.kernels.traverse import analytics_reference as reference
from polars_tadoc.kernels.traverse import results_cpu as results
from polars_tadoc.kernels.traverse import tables_cpu as tables
from polars_tadoc.kernels.traverse.rules import Rules
from tests import handmade
from tests.strategies import grammars

STRATEGIES = ["top_down", "bottom_up"]
Rows = Sequence[Sequence[int]]


class Case:
    """Documents over a grammar, resident with an engine, and what they expand to."""

    def __init__(
        self,
        engine: str,
        terminals: int,
        bodies: Rows,
        rows: Rows,
        level_offsets: Sequence[int] | None = None,
        rank: Sequence[int] | None = None,
        expand: bool = True,
    ) -> None:
        self.kernels: Kernels = choose(engine, 0).kernels
        grammar = handmade.grammar(handmade.words(terminals), bodies, level_offsets)
        self.rules: Rules = self.kernels.load_rules(grammar)
        self.terminals = terminals
        offsets = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
        roots = np.array([symbol for row in rows for symbol in row], np.uint32)
        self.root_offsets, self.roots = self.to_engine(offsets), self.to_engine(roots)
        self.rank = rank
        if expand:
            self.expanded = reference.expand_documents(
                terminals, grammar.rule_offsets.tolist(), grammar.symbols.tolist(), offsets.tolist(), roots.tolist()
            )

    def to_engine(self, array: Any) -> Any:
        return array if self.kernels.name == "cpu" else __import__("cupy").asarray(array)

    def host(self, array: Any) -> list[int]:
        return [int(x) for x in self.kernels.to_host(array)]

    def lists(self, offsets: Any, keys: Any, counts: Any) -> list[list[tuple[int, int]]]:
        pairs = list(zip(self.host(keys), self.host(counts), strict=True))
        return [pairs[a:b] for a, b in pairwise(self.host(offsets))]

    def by_document(self, strategy: str, min_count: int = 1, top: int | None = None) -> list[list[tuple[int, int]]]:
        rank = None if self.rank is None else self.to_engine(np.array(self.rank, np.uint32))
        offsets, terminals, counts = self.kernels.count_by_document(
            self.rules, self.root_offsets, self.roots, strategy, rank, min_count, top
        )
        assert (offsets.dtype, terminals.dtype, counts.dtype) == (np.int64, np.uint32, np.uint64)
        return self.lists(offsets, terminals, counts)

    def by_terminal(self, strategy: str) -> list[list[tuple[int, int]]]:
        offsets, documents, counts = self.kernels.count_by_terminal(
            self.rules, self.root_offsets, self.roots, strategy, True
        )
        assert (offsets.dtype, documents.dtype, counts.dtype) == (np.int64, np.uint32, np.uint64)
        plain = self.kernels.count_by_terminal(self.rules, self.root_offsets, self.roots, strategy, False)
        assert plain[2] is None
        assert self.host(plain[0]) == self.host(offsets)
        assert self.host(plain[1]) == self.host(documents)
        return self.lists(offsets, documents, counts)

    def check(self, strategy: str, min_count: int = 1, top: int | None = None) -> None:
        """Hold every routine to the reference."""
        totals = self.kernels.terminal_counts(self.rules, self.roots, strategy)
        assert totals.dtype == np.uint64
        assert self.host(totals) == reference.terminal_counts(self.expanded, self.terminals)
        expected = reference.count_by_document(self.expanded, self.rank, min_count, top)
        assert self.by_document(strategy, min_count, top) == expected
        assert self.by_terminal(strategy) == reference.count_by_terminal(self.expanded, self.terminals)


@given(
    made=grammars(),
    data=st.data(),
    min_count=st.integers(-1, 4),
    top=st.one_of(st.none(), st.integers(0, 4)),
    short=st.sampled_from([1, 4, tables.SHORT]),
    long=st.sampled_from([0, results.LONG, 1 << 40]),
    many=st.sampled_from([0, results.MANY]),
)
def test_any_grammar(
    engine: str, made: Any, data: st.DataObject, min_count: int, top: int | None, short: int, long: int, many: int
) -> None:
    terminals, bodies, level_offsets, rows = made
    rank = data.draw(st.one_of(st.none(), st.permutations(range(terminals))))
    case = Case(engine, terminals, bodies, rows * data.draw(st.integers(1, 3)), level_offsets, rank)
    # rules of a small grammar wait for one another too; none, some or all of its documents are long
    with patch.object(tables, "SHORT", short), patch.multiple(results, LONG=long, MANY=many, RANGE_BITS=3):
        for strategy in STRATEGIES:
            case.check(strategy, min_count, top)


@given(
    made=grammars(),
    repeat=st.integers(1, 20),
    min_count=st.integers(-1, 4) | st.just(1 << 64),
    top=st.one_of(st.none(), st.integers(-1, 4), st.just(1 << 64)),
    many=st.sampled_from([0, results.MANY]),
)
def test_ranked_by_terminal(made: Any, repeat: int, min_count: int, top: int | None, many: int) -> None:
    terminals, bodies, level_offsets, rows = made
    case = Case("cpu", terminals, bodies, rows * repeat, level_offsets)
    expected = {
        terminal: sorted(own, key=lambda one: -one[1])[: None if top is None else max(top, 0)]
        for terminal, own in enumerate(reference.count_by_terminal(case.expanded, terminals))
        if sum(count for _, count in own) >= max(min_count, 1)
    }
    with patch.multiple(results, MANY=many, RANGE_BITS=3):
        for strategy in STRATEGIES:
            kept, offsets, documents, counts = results.rank_by_terminal(
                case.rules, case.root_offsets, case.roots, strategy, min_count, top
            )
            assert (offsets.dtype, documents.dtype, counts.dtype) == (np.int64, np.uint32, np.uint64)
            assert (list(range(terminals)) if kept is None else kept.tolist()) == list(expected)
            assert case.lists(offsets, documents, counts) == list(expected.values())


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("terminals", "bodies", "rows"),
    [
        (1, [], []),
        (1, [], [[]]),
        (3, [], [[], [0, 2, 0], [], [1]]),
        (2, [[0, 1], [2, 2]], [[], [], [3]]),
        (2, [[0, 0]], [[2]]),
    ],
    ids=["no documents", "one empty document", "no rules", "empty documents first", "one symbol"],
)
def test_few(engine: str, strategy: str, terminals: int, bodies: Rows, rows: Rows) -> None:
    Case(engine, terminals, bodies, rows).check(strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("size", [15, 16, 17, 63, 64, 65, 127, 128, 129, 4095, 4096, 4097])
def test_sizes_around_blocks(engine: str, strategy: str, size: int) -> None:
    """Distinct terminals of a document, rules and ranks around the widths that kernels work in."""
    random = np.random.default_rng(size)
    bodies = [[i, (i * 7 + 1) % size] for i in range(size)]
    rows = [[*range(size), *range(size, 2 * size)], list(range(size)), [*range(size, 2 * size), 0, 0]]
    case = Case(engine, size, bodies, rows, [0, size], random.permutation(size).tolist())
    case.check(strategy)
    case.check(strategy, min_count=2, top=size - 1)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_one_long_rule(engine: str, strategy: str) -> None:
    body = [i % 70 for i in range(100_000)]
    Case(engine, 70, [body, [70, 70, 3]], [[71], [70, 71, 5], [4]]).check(strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_deep_grammar(engine: str, strategy: str) -> None:
    depth = 3000
    bodies = [[0, 1], *([5 + k, k % 5] for k in range(depth))]
    rows = [[5 + depth, 0], [5 + depth // 2], [], [6, 2, 5]]
    case = Case(engine, 5, bodies, rows, expand=False)
    words = [[w] for w in range(5)] + [[0, 1, *(k % 5 for k in range(level))] for level in range(depth + 1)]
    case.expanded = [[word for symbol in row for word in words[symbol]] for row in rows]
    case.check(strategy)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_large_counts_of_many_terminals(engine: str, strategy: str) -> None:
    """More of them than are put in order one by one, with counts of one byte and of two, and equal ones."""
    random = np.random.default_rng(2)
    counts = random.integers(1, 900, 200)
    row = random.permutation(np.repeat(np.arange(200), counts)).tolist()
    case = Case(engine, 200, [[1, 2], [200, 3]], [row, row[:40_000]], None, random.permutation(200).tolist())
    case.check(strategy)
    case.check(strategy, min_count=300, top=50)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("long", [0, 1 << 40])
def test_counts_beyond_32_bits(engine: str, strategy: str, long: int) -> None:
    chain = [[0, 0], *([k + 2, k + 2] for k in range(1, 33))]  # terminals 0 to 2, rules 3 on
    with tadoc.Config(expansion_limit=1 << 40), patch.object(results, "LONG", long):
        case = Case(engine, 3, chain, [[3 + 32, 1], [3 + 31, 2, 2], [3 + 32, 1]], None, [2, 1, 0], expand=False)
        most = 1 << 33
        assert case.host(case.kernels.terminal_counts(case.rules, case.roots, strategy)) == [most * 5 // 2, 2, 2]
        assert case.by_document(strategy) == [[(0, most), (1, 1)], [(0, most // 2), (2, 2)], [(0, most), (1, 1)]]
        assert case.by_document(strategy, min_count=most) == [[(0, most)], [], [(0, most)]]
        assert case.by_document(strategy, min_count=1 << 64) == [[], [], []]
        assert case.by_terminal(strategy) == [[(0, most), (1, most // 2), (2, most)], [(0, 1), (2, 1)], [(1, 2)]]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_empty_bodies(engine: str, strategy: str) -> None:
    """A morphism that deletes words may leave rules of nothing."""
    case = Case(engine, 2, [[0, 1], [0, 0], [3, 2]], [[3, 4], [3], [2, 0]])
    offsets = case.to_engine(np.array([0, 2, 2, 4], np.int64))
    symbols = case.to_engine(np.array([0, 1, 3, 2], np.uint32))
    lengths = case.to_engine(np.array([2, 0, 2], np.uint64))
    case.rules = Rules(2, offsets, symbols, np.array([0, 1, 2, 3], np.int64), lengths)
    case.expanded = [[0, 1], [], [0, 1, 0]]
    case.check(strategy)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("threads", "numbered", "many"),
    [(1, 0, results.MANY), (2, results.NUMBERED, 0), (5, results.NUMBERED, results.MANY)],
)
def test_many_documents_on_threads(engine: str, strategy: str, threads: int, numbered: int, many: int) -> None:
    """More documents and results than one thread or one arena takes, some of them equal, some huge."""
    random = np.random.default_rng(threads)
    bodies = [random.integers(0, 3000 + k, random.integers(2, 12)).tolist() for k in range(800)]
    rows = [random.integers(0, 3800, size).tolist() for size in random.integers(0, 12, 4000)]
    rows += [random.integers(0, 3800, 20_000).tolist() for _ in range(3)] + rows[:500]
    with tadoc.Config(threads=threads), patch.multiple(results, ARENA=5000, NUMBERED=numbered, MANY=many):
        Case(engine, 3000, bodies, rows, None, random.permutation(3000).tolist()).check(strategy)


@given(rows=st.lists(st.lists(st.integers(0, 3), max_size=18), max_size=60), data=st.data())
def test_classes_are_of_equal_documents(rows: list[list[int]], data: st.DataObject) -> None:
    """Whatever the key of the hash, only equal documents share a class."""
    key = data.draw(st.integers(0, 2**64 - 1))
    offsets = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
    roots = np.array([s for row in rows for s in row], np.uint32)
    with patch.object(classes, "_KEY", np.uint64(key)):
        got = classes.classes_of(offsets, roots, 4)
    assert [rows[member] for member in got.members[got.of].tolist()] == rows
    first = [got.of.tolist().index(c) for c in range(len(got.members))]
    assert first == got.members.tolist()
