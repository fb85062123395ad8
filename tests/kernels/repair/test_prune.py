from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_tadoc.kernels.repair import batch_repair
from polars_tadoc.kernels.repair import prune as prune_module
from polars_tadoc.kernels.repair import reference as repair_reference
from polars_tadoc.kernels.repair.prune import by_first_use, prune
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.kernels.traverse import reference as traverse_reference
from polars_tadoc.model.grammar import Grammar
from tests.handmade import cut, flatten, unflatten, words
from tests.strategies import sequences


@pytest.fixture
def tiny_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut everywhere, so that rows lie across stretches."""
    even_chunks = prune_module.even_chunks
    monkeypatch.setattr(prune_module, "even_chunks", lambda size, smallest=1, each=1: even_chunks(size, 1, each))
    monkeypatch.setattr("polars_tadoc.runtime.parallel.thread_count", lambda: 3)


@pytest.mark.usefixtures("tiny_stretches")
@given(given_rows=sequences(), margin=st.integers(0, 20))
def test_matches_reference(given_rows: tuple[list[list[int]], int], margin: int) -> None:
    rows, vocabulary_size = given_rows
    rules = batch_repair.build(flatten(rows), vocabulary_size)
    pairs, sequences = list(zip(rules.left.tolist(), rules.right.tolist(), strict=True)), unflatten(rules.sequence)
    got = prune(rules, vocabulary_size, len(rows), margin)
    bodies = cut(got.symbols, got.rule_offsets)
    left = cut(got.roots, got.root_offsets)
    assert (bodies, got.level_offsets.tolist(), left) == repair_reference.prune(
        pairs, sequences, vocabulary_size, margin
    )


@pytest.mark.parametrize("rounds", [None, [0, 1, -1, 0]])
def test_uses_of_dropped_rules_in_other_tasks(rounds: list[int] | None) -> None:
    count = 4 * prune_module.RULES_PER_TASK
    left, right = np.zeros(count, np.uint32), np.zeros(count, np.uint32)
    left[1], left[-1] = 1, 2  # the last rule uses the second one, which uses the first one; others use the word only
    row = [1, 1, 1, count, count, *range(3, count)]  # twice: 5 uses of the first rule in all
    offsets = None if rounds is None else np.add(rounds, [0, 0, count, count])
    rules = batch_repair.BinaryRules(left, right, np.array([*row, SEPARATOR], np.uint32), offsets)
    got = prune(rules, 1, 1)
    assert cut(got.symbols, got.rule_offsets) == [[0, 0]]
    assert got.roots.tolist() == [1, 1, 1, 1, 0, 0, 1, 0, 0] + [0] * (2 * (count - 3))


@given(given_rows=sequences())
def test_gives_a_valid_grammar_of_the_rows(given_rows: tuple[list[list[int]], int]) -> None:
    rows, vocabulary_size = given_rows
    got = prune(batch_repair.build(flatten(rows), vocabulary_size), vocabulary_size, len(rows))
    grammar = Grammar(
        pa.array(words(vocabulary_size), pa.large_string()),
        got.rule_offsets,
        got.symbols,
        got.level_offsets,
        pa.array([], pa.large_string()),
        np.zeros(vocabulary_size + len(got.symbols), np.uint32),
        "words",
    )
    lengths = Grammar.from_arrow(grammar.to_arrow()).expansion_lengths.tolist()
    offsets, symbols = got.rule_offsets.tolist(), got.symbols.tolist()
    assert np.all(np.diff(got.rule_offsets.astype(np.int64)) >= 2)
    assert np.all(np.diff(got.level_offsets.astype(np.int64)) >= 1)
    expansions = [
        traverse_reference.expand(vocabulary_size + r, vocabulary_size, offsets, symbols)
        for r in range(len(offsets) - 1)
    ]
    assert lengths == [len(expansion) for expansion in expansions]
    left = cut(got.roots, got.root_offsets)
    assert [
        [word for s in row for word in traverse_reference.expand(s, vocabulary_size, offsets, symbols)] for row in left
    ] == rows


@given(given_rows=sequences(), margin=st.integers(0, 3))
def test_rules_by_first_use(given_rows: tuple[list[list[int]], int], margin: int) -> None:
    rows, size = given_rows
    pruned = prune(batch_repair.build(flatten(rows), size), size, len(rows), margin)
    bodies, offsets = cut(pruned.symbols, pruned.rule_offsets), pruned.level_offsets.tolist()
    met: list[int] = []

    def spell(symbol: int) -> None:
        if symbol >= size and symbol not in met:
            met.append(symbol)
            for inner in bodies[symbol - size]:
                spell(inner)

    for symbol in pruned.roots.tolist():
        spell(symbol)
    level = {size + rule: k for k, own in enumerate(pairwise(offsets)) for rule in range(*own)}
    order = sorted(level, key=lambda symbol: (level[symbol], met.index(symbol)))
    new = {word: word for word in range(size)} | {symbol: size + number for number, symbol in enumerate(order)}
    got = by_first_use(pruned, size)
    assert cut(got.symbols, got.rule_offsets) == [[new[s] for s in bodies[symbol - size]] for symbol in order]
    assert got.roots.tolist() == [new[symbol] for symbol in pruned.roots.tolist()]
    assert (got.level_offsets.tolist(), got.root_offsets.tolist()) == (offsets, pruned.root_offsets.tolist())


@given(given_rows=sequences())
def test_kept_rules_pay(given_rows: tuple[list[list[int]], int]) -> None:
    rows, vocabulary_size = given_rows
    got = prune(batch_repair.build(flatten(rows), vocabulary_size), vocabulary_size, len(rows))
    bodies, left = cut(got.symbols, got.rule_offsets), cut(got.roots, got.root_offsets)
    named = [s for symbols in (*bodies, *left) for s in symbols]
    for k, body in enumerate(bodies):
        used = named.count(vocabulary_size + k)
        assert used >= 1
        # the last pass may still lower a count by dropping a rule that named this one
        assert len(body) * used + 2 > len(body) + used or used < 2


def test_large_margin_drops_everything() -> None:
    rows = [[0, 1, 2, 0, 1, 2], [0, 1, 2]]
    got = prune(batch_repair.build(flatten(rows), 3), 3, 2, margin=1 << 40)
    assert (got.rule_offsets.tolist(), got.level_offsets.tolist()) == ([0], [0])
    assert cut(got.roots, got.root_offsets) == rows


@pytest.mark.parametrize("rows", [[], [[]], [[], []], [[0]], [[], [0], []]])
def test_without_rules(rows: list[list[int]]) -> None:
    got = prune(batch_repair.build(flatten(rows), 1), 1, len(rows))
    assert (got.rule_offsets.tolist(), got.symbols.tolist(), got.level_offsets.tolist()) == ([0], [], [0])
    assert cut(got.roots, got.root_offsets) == rows


@pytest.mark.usefixtures("tiny_stretches")
def test_rules_of_unknown_rounds() -> None:
    """Each rule may use the one before it, so that no two are handled at once."""
    rules = [(0, 1), *((k, 0) for k in range(2, 40))]
    left, right = (np.array(side, np.uint32) for side in zip(*rules, strict=True))
    rows = [[2 + k, 2 + k] for k in range(39)]
    stages = prune_module._stages(batch_repair.BinaryRules(left, right, flatten(rows)))
    assert [part.tolist() for part in stages] == [[0, 39], [0, 1]]
    got = prune(batch_repair.BinaryRules(left, right, flatten(rows)), 2, len(rows))
    bodies, roots = cut(got.symbols, got.rule_offsets), cut(got.roots, got.root_offsets)
    assert (bodies, got.level_offsets.tolist(), roots) == repair_reference.prune(rules, rows, 2)
