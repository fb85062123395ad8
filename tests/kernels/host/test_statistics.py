"""Statistics that the choice of a traversal goes by, against plain Python over parse trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given

import polars_tadoc as tadoc
from polars_tadoc.engine.cpu import load_rules
from polars_tadoc.kernels.host.grammars.statistics import MOST, Statistics, corpus_statistics
from polars_tadoc.kernels.traverse.tables_cpu import SHORT
from tests import handmade
from tests.strategies import grammars


def measure(terminals: int, bodies: Any, rows: Any, level_offsets: Any = None) -> Statistics:
    rules = load_rules(handmade.grammar(handmade.words(terminals), bodies, level_offsets))
    offsets = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
    return corpus_statistics(rules, offsets, np.array([s for row in rows for s in row], np.uint32))


@given(made=grammars())
def test_statistics_of_few_documents_are_exact(made: Any) -> None:
    terminals, bodies, level_offsets, rows = made
    lengths, bounds, nodes = [1] * terminals, [1] * terminals, [0] * terminals
    for body in bodies:
        lengths.append(sum(lengths[s] for s in body))
        bounds.append(min(sum(bounds[s] for s in body), lengths[-1], terminals))
        nodes.append((lengths[-1] > SHORT) + sum(nodes[s] for s in body))
    got = measure(terminals, bodies, rows, level_offsets)
    assert (got.documents, got.roots, got.terminals) == (len(rows), sum(map(len, rows)), terminals)
    assert (got.rules, got.symbols) == (len(bodies), sum(map(len, bodies)))
    assert got.tables == sum(bounds[terminals:])
    assert got.pushed == sum(min(sum(nodes[s] for s in row), len(bodies)) for row in rows)
    assert got.merged == sum(bounds[s] for row in rows for s in row)
    assert got.found == sum(min(sum(bounds[s] for s in row), terminals) for row in rows)


def test_a_sample_stands_for_all_documents() -> None:
    bodies = [[0, 1, 2, 3, 4] * SHORT, [5, 5]]
    got = measure(5, bodies, [[6, 0]] * 5000 + [[6, 0] * 500] * 5000)
    assert got.merged == 5000 * 6 + 5000 * 500 * 6
    assert got.pushed == 10_000 * 2
    assert got.found == 10_000 * 5


def test_huge_rules_do_not_overflow() -> None:
    bodies = [[0, 0], *([k, k] for k in range(1, 40))]
    with tadoc.Config(expansion_limit=1 << 50):
        got = measure(1, bodies, [[40]])
    assert got.tables == 40
    assert 30 < got.pushed <= 40 < MOST
    assert got.merged == 1
