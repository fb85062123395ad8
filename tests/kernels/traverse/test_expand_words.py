"""Words of documents expanded on each engine, against plain Python."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from tests.kernels.documents.test_document_kernels import Case
from tests.kernels.sequences import test_sequence_kernels
from tests.kernels.sequences.test_sequence_kernels import made_rules, plain_rows
from tests.strategies import grammars


def check(case: Case) -> None:
    offsets, words = case.kernels.expand_words(case.rules, case.root_offsets, case.roots)
    assert (offsets.dtype, words.dtype) == (np.int64, np.uint32)
    found = case.host(words)
    assert [found[first:stop] for first, stop in pairwise(case.host(offsets))] == case.expanded


@given(made=grammars())
def test_any_grammar(engine: str, made: Any) -> None:
    terminals, bodies, level_offsets, rows = made
    check(Case(engine, terminals, bodies, rows, level_offsets))


@given(made=made_rules() | plain_rows())
def test_empty_bodies(engine: str, made: Any) -> None:
    case = test_sequence_kernels.Case(made)
    offsets, words = case.expand(engine)
    assert [words[first:stop].tolist() for first, stop in pairwise(offsets.tolist())] == case.rows


@pytest.mark.parametrize("depth", [1, 30, 2000])
def test_deep_rules(engine: str, depth: int) -> None:
    bodies = [[0, 1], *([1 + level, level % 2] for level in range(1, depth))]
    case = Case(engine, 2, bodies, [[depth + 1], [], [0, depth + 1]], list(range(depth + 1)), expand=False)
    row = [0, 1, *(level % 2 for level in range(1, depth))]
    case.expanded = [row, [], [0, *row]]
    check(case)
