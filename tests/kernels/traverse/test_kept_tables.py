"""Tables of rules are kept under a budget, as long as the rules live, whichever thread builds them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import polars_tadoc as tadoc
from polars_tadoc.engine.cpu import load_rules, terminal_counts
from polars_tadoc.kernels.traverse import kept_tables_cpu as kept
from polars_tadoc.kernels.traverse.rules import Rules
from tests import handmade

STRATEGIES = ["top_down", "bottom_up"]
ALL = np.array([12, 11, 0], np.uint32)


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    kept.kept.clear()
    yield
    kept.kept.clear()


def make_rules() -> Rules:
    return load_rules(handmade.grammar(handmade.words(10), [[0, 1, 2], [3, 3], [10, 11, 4]]))


def many_roots() -> Any:
    return np.concatenate([ALL, ALL])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_second_call_builds_nothing(strategy: str) -> None:
    rules = make_rules()
    first = kept.load_tables(rules, many_roots(), strategy)
    with patch.object(kept, "build_tables", side_effect=AssertionError):
        assert kept.load_tables(rules, ALL[:1], strategy) is first
    assert kept.kept.nbytes == first.nbytes


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_tables_are_dropped_with_their_rules(strategy: str) -> None:
    rules = make_rules()
    kept.load_tables(rules, many_roots(), strategy)
    assert len(kept.kept) == 1
    del rules
    gc.collect()
    assert (len(kept.kept), kept.kept.nbytes) == (0, 0)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nothing_above_the_budget_is_built_or_kept(strategy: str) -> None:
    rules = make_rules()
    with tadoc.Config(host_cache_bytes=40):
        tables = kept.load_tables(rules, np.array([11], np.uint32), strategy)
        assert len(kept.kept) == 0
        assert int(tables.starts[-1]) == 1  # rule 11 alone
    whole = kept.load_tables(rules, many_roots(), strategy)
    assert int(whole.starts[-1]) == 3 + 1 + 5
    other = make_rules()
    with tadoc.Config(host_cache_bytes=int(whole.nbytes * 3 // 2)):
        kept.load_tables(other, many_roots(), strategy)
        assert len(kept.kept) == 1
    assert kept.load_tables(rules, many_roots(), strategy) is not whole


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_lowered_budget_frees_tables(strategy: str) -> None:
    first, second = make_rules(), make_rules()
    sizes = [kept.load_tables(rules, many_roots(), strategy).nbytes for rules in (first, second)]
    assert kept.kept.nbytes == sum(sizes)
    budget = sizes[1]
    with tadoc.Config(host_cache_bytes=budget):
        tables = kept.load_tables(second, many_roots(), strategy)
        assert kept.kept.nbytes <= budget
        assert kept.load_tables(second, many_roots(), strategy) is tables
    with tadoc.Config(host_cache_bytes=budget - 1):
        kept.load_tables(second, many_roots(), strategy)
        assert kept.kept.nbytes == 0


def test_what_few_roots_reach_is_built_until_the_whole_is_cheaper() -> None:
    bodies = [[k, k + 1] for k in range(100)]
    rules = load_rules(handmade.grammar(handmade.words(101), bodies))
    roots = np.array([101, 150], np.uint32)
    expected = np.zeros(101, np.uint64)
    expected[[0, 1, 49, 50]] = 1
    kept_after = []
    for _ in range(60):
        assert terminal_counts(rules, roots, "bottom_up").tolist() == expected.tolist()
        kept_after.append(len(kept.kept))
    assert (kept_after[0], kept_after[-1]) == (0, 1)


def test_threads_share_what_one_builds() -> None:
    rules = make_rules()
    with patch.object(kept, "build_tables", side_effect=kept.build_tables) as built, ThreadPoolExecutor(8) as pool:
        tables = list(pool.map(lambda _: kept.load_tables(rules, many_roots(), "bottom_up"), range(64)))
    assert all(one is tables[0] for one in tables)
    assert built.call_count == 1
