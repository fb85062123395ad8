"""Batch RePair's grammars are held to those of exact RePair."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given

from polars_tadoc.kernels.repair import batch_repair
from polars_tadoc.kernels.repair.batch_repair import BinaryRules
from polars_tadoc.kernels.repair.prune import prune
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, Tokens, tokenize
from tests import ROOT, exact_repair
from tests.handmade import flatten, unflatten
from tests.strategies import sequences

SAMPLES = sorted((ROOT / "examples" / "data").glob("*.parquet"))


@cache
def tokens_of(sample: Path) -> Tokens:
    text = pl.read_parquet(sample, columns=["text"])["text"].rechunk()
    return tokenize(text, Tokenizer("whitespace"), lossless=False)


@cache
def exact_of(sample: Path) -> BinaryRules:
    tokens = tokens_of(sample)
    return exact_repair.build(tokens.sequence, len(tokens.vocabulary))


def batch_of(sample: Path) -> BinaryRules:
    tokens = tokens_of(sample)
    return batch_repair.build(tokens.sequence.copy(), len(tokens.vocabulary))


def rows_of(sample: Path) -> int:
    return len(tokens_of(sample).gap_offsets) - 1


def size(rules: BinaryRules, rows: int) -> int:
    return 2 * len(rules.left) + len(rules.sequence) - rows


def pruned_size(rules: BinaryRules, sample: Path) -> int:
    levelled = prune(rules, len(tokens_of(sample).vocabulary), rows_of(sample))
    return len(levelled.symbols) + len(levelled.roots)


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_within_5_percent_of_exact(sample: Path) -> None:
    exact, batch = exact_of(sample), batch_of(sample)
    rows = rows_of(sample)
    assert 0.95 * size(exact, rows) < size(batch, rows) < 1.05 * size(exact, rows)
    assert 0.95 * pruned_size(exact, sample) < pruned_size(batch, sample) < 1.05 * pruned_size(exact, sample)


def naive(rows: list[list[int]], vocabulary_size: int) -> tuple[list[tuple[int, int]], list[list[int]]]:
    """Exact RePair as it is defined: count everything again for each rule."""
    rules: list[tuple[int, int]] = []
    while True:
        counts: Counter[tuple[int, int]] = Counter()
        for row in rows:
            blocked: dict[tuple[int, int], int] = {}
            for i, pair in enumerate(pairwise(row)):
                if blocked.get(pair, -1) != i:
                    counts[pair] += 1
                    blocked[pair] = i + 1
        pair = min(counts, key=lambda pair: (-counts[pair], pair), default=None)
        if pair is None or counts[pair] < 2:
            return rules, rows
        rule = vocabulary_size + len(rules)
        rules.append(pair)
        rows = [replaced(row, pair, rule) for row in rows]


def replaced(row: list[int], pair: tuple[int, int], rule: int) -> list[int]:
    out, i = [], 0
    while i < len(row):
        found = tuple(row[i : i + 2]) == pair
        out.append(rule if found else row[i])
        i += 1 + found
    return out


@given(given_rows=sequences())
def test_exact_repair_does_what_is_defined(given_rows: tuple[list[list[int]], int]) -> None:
    rows, vocabulary_size = given_rows
    got = exact_repair.build(flatten(rows), vocabulary_size)
    pairs = list(zip(got.left.tolist(), got.right.tolist(), strict=True))
    assert (pairs, unflatten(got.sequence)) == naive(rows, vocabulary_size)


def test_exact_repair_of_nothing() -> None:
    got = exact_repair.build(np.zeros(0, np.uint32), 0)
    assert (len(got.left), len(got.right), len(got.sequence)) == (0, 0, 0)
