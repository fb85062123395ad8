from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_tadoc.engine.cuda import device_problem
from polars_tadoc.kernels.repair import batch_repair as rules_on_host
from polars_tadoc.kernels.repair import batch_repair_cuda as batch_repair
from polars_tadoc.kernels.repair import prune as on_host
from polars_tadoc.kernels.repair import prune_cuda as prune
from polars_tadoc.kernels.repair import reference
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, tokenize
from tests.handmade import SEPARATOR, cut, flatten
from tests.strategies import sequences

pytestmark = pytest.mark.skipif(device_problem() is not None, reason=str(device_problem()))


def pruned(
    sequence: npt.NDArray[np.uint32], vocabulary_size: int, margin: int = on_host.MARGIN
) -> on_host.LevelledRules:
    import cupy

    rows = int((sequence == SEPARATOR).sum())
    return prune.prune(
        batch_repair.build(cupy.asarray(sequence), vocabulary_size), vocabulary_size, rows, margin
    ).to_host()


def check(sequence: npt.NDArray[np.uint32], vocabulary_size: int, margin: int = on_host.MARGIN) -> int:
    """Compare with the host's grammar; returns how many rules it has."""
    got = pruned(sequence, vocabulary_size, margin)
    rules = rules_on_host.build(sequence.copy(), vocabulary_size)
    expected = on_host.prune(rules, vocabulary_size, int((sequence == SEPARATOR).sum()), margin)
    for field in ("rule_offsets", "symbols", "level_offsets", "root_offsets", "roots"):
        here, there = getattr(got, field), getattr(expected, field)
        assert here.dtype == there.dtype
        assert np.array_equal(here, there), field
    return len(got.rule_offsets) - 1


@given(given_rows=sequences(), margin=st.integers(0, 20))
def test_matches_reference(given_rows: tuple[list[list[int]], int], margin: int) -> None:
    rows, vocabulary_size = given_rows
    got = pruned(flatten(rows), vocabulary_size, margin)
    expected = reference.prune(*reference.batch_repair(rows, vocabulary_size), vocabulary_size, margin)
    assert (
        cut(got.symbols, got.rule_offsets),
        got.level_offsets.tolist(),
        cut(got.roots, got.root_offsets),
    ) == expected


@pytest.mark.parametrize("margin", [0, 1, 7, 1 << 40, -5])
@pytest.mark.parametrize("size", [batch_repair.TILE - 1, batch_repair.TILE, 100_000])
def test_margins(size: int, margin: int) -> None:
    random = np.random.default_rng(size)
    sequence = (random.zipf(1.3, size) - 1).clip(max=999).astype(np.uint32)
    sequence[random.integers(0, size, 300)] = SEPARATOR
    sequence[-1] = SEPARATOR
    rules = check(sequence, 1000, margin)
    assert (rules == 0) == (margin == 1 << 40)


def test_a_long_run_of_one_word() -> None:
    sequence = np.zeros(10_000_000, np.uint32)
    sequence[-1] = SEPARATOR
    check(sequence, 1)


def test_long_inlined_bodies() -> None:
    """All rules of a document that stands there twice are used once, but for the one that covers it."""
    document = np.arange(1 << 18, dtype=np.uint32)
    document[-1] = SEPARATOR
    assert check(np.tile(document, 2), 1 << 18) == 1
    assert check(np.tile(document, 2), 1 << 18, margin=1 << 40) == 0


def test_equal_rows() -> None:
    row = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, SEPARATOR], np.uint32)
    check(np.tile(row, 100_000), 10)


@pytest.mark.parametrize("rows", [[], [[]], [[], []], [[0]], [[], [0], []], [[]] * 10_000, [[0], []] * 5_000])
def test_without_rules(rows: list[list[int]]) -> None:
    assert check(flatten(rows), 1) == 0


@pytest.mark.parametrize("name", ["multi_react", "docs_peps", "logs_dmesg"])
def test_real_corpora(corpus: Callable[[str], pl.DataFrame], name: str) -> None:
    tokens = tokenize(corpus(name)["text"].rechunk(), Tokenizer("words"))
    for margin in (0, 1, 4):
        assert check(tokens.sequence, len(tokens.vocabulary), margin) > 100
