"""Predicted gaps: the definition, and every kind of gap back again."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.kernels.repair import gaps
from polars_tadoc.kernels.repair import reference as repair_reference
from polars_tadoc.kernels.repair.gaps import predict_gaps
from polars_tadoc.kernels.repair.prune import LevelledRules
from polars_tadoc.kernels.tokenize.tokenizer import Tokens
from polars_tadoc.kernels.traverse import reference as traverse_reference
from tests import handmade
from tests.strategies import grammars

GAPS = [", ", "\n", " - ", "", "  "]


@st.composite
def gapped(draw: st.DrawFn) -> tuple[int, LevelledRules, list[list[int]]]:
    """A grammar with rows, and each row's words + 1 gap codes, 0 for the assumed one."""
    vocabulary_size, bodies, level_offsets, rows = draw(grammars())
    rows = draw(st.lists(st.sampled_from(rows), max_size=8)) if rows else rows
    rules = levelled(bodies, level_offsets, rows)
    often = draw(st.lists(st.integers(0, len(GAPS)), min_size=1, max_size=3))  # some codes prevail
    codes = []
    for row in rows:
        words = sum(
            len(traverse_reference.expand(s, vocabulary_size, rules.rule_offsets.tolist(), rules.symbols.tolist()))
            for s in row
        )
        code = st.one_of(st.sampled_from(often), st.integers(0, len(GAPS)))
        codes.append(draw(st.lists(code, min_size=min(words, 60) + 1, max_size=min(words, 60) + 1)))
        codes[-1] += [codes[-1][i % len(codes[-1])] for i in range(words + 1 - len(codes[-1]))]
    return vocabulary_size, rules, codes


def levelled(bodies: list[list[int]], level_offsets: list[int], rows: list[list[int]]) -> LevelledRules:
    made = handmade.grammar([], bodies, level_offsets)
    return LevelledRules(
        made.rule_offsets,
        made.symbols,
        made.level_offsets,
        np.cumsum([0, *(len(row) for row in rows)]),
        np.array([s for row in rows for s in row], np.uint32),
    )


def listed(codes: list[list[int]]) -> tuple[Any, Any]:
    """The tokenizer's form of the rows' gaps: varint pairs with gap ids."""
    data = bytearray()
    ends = [0]
    for row in codes:
        passed = 0
        for code in row:
            if code == 0:
                passed += 1
            else:
                data += bytes([passed]) if passed < 0x80 else bytes([passed & 0x7F | 0x80, passed >> 7])
                data.append(code - 1)
                passed = 0
        ends.append(len(data))
    return np.array(ends), np.frombuffer(bytes(data), np.uint8)


@pytest.fixture(autouse=True)
def many_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaps, "GAPS_PER_BUCKET", 4)


def predict(vocabulary_size: int, rules: LevelledRules, codes: list[list[int]], threads: int) -> tuple[Any, Any, Any]:
    with tadoc.Config(threads=threads):
        offsets, data = listed(codes)
        size = sum(max(len(row), 1) for row in codes)
        vocabulary = pa.array(handmade.words(vocabulary_size), pa.large_string())
        tokens = Tokens(vocabulary, pa.array(GAPS, pa.large_string()), np.empty(size, np.uint32), offsets, data)
        return predict_gaps(tokens, rules)


def row_symbols(rules: LevelledRules) -> list[list[int]]:
    return handmade.cut(rules.roots, rules.root_offsets)


@pytest.mark.parametrize("item_bits", [gaps.ITEM_BITS, 4])
@given(made=gapped(), threads=st.sampled_from([1, 2]))
def test_as_defined(item_bits: int, made: tuple[int, LevelledRules, list[list[int]]], threads: int) -> None:
    vocabulary_size, rules, codes = made
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gaps, "ITEM_BITS", item_bits)  # with 4, most grammars have items of 64 bits
        patch.setattr(gaps, "MOST_BUCKET_BITS", 2)
        predicted_gaps, offsets, encoded = predict(vocabulary_size, rules, codes, threads)
    body = (vocabulary_size, rules.rule_offsets.tolist(), rules.symbols.tolist())
    rows = row_symbols(rules)
    predicted = repair_reference.predict_gaps(rows, codes, *body)
    assert predicted_gaps.tolist() == predicted
    for row, row_codes, (first, stop) in zip(rows, codes, pairwise(offsets), strict=True):
        expected = [predicted[key] for key in repair_reference.gap_keys(row, *body)]
        data = encoded[first:stop].tobytes()
        assert data == repair_reference.encode_predicted_gaps(row_codes, expected)
        inside = [[" ", *GAPS][code] for code in row_codes]
        outside = ["", *GAPS]
        assert repair_reference.decode_predicted_gaps(data, expected if row else None, GAPS) == (
            [outside[row_codes[0]], *inside[1:-1], outside[row_codes[-1]]] if row else [outside[row_codes[0]]]
        )


def test_any_number_of_threads_gives_the_same_column() -> None:
    random = Random(1)
    words, gaps = ["the", "cat", "sat", "on", "a", "mat"], [" ", " ", ", ", "\n", "  ", "-", "\t"]
    lines = [[(random.choice(words), random.choice(gaps)) for _ in range(30)] for _ in range(20)]
    rows = [
        "".join(word + (gap if random.random() < 0.9 else random.choice(gaps)) for word, gap in random.choice(lines))
        for _ in range(6000)
    ]
    text = pl.Series("text", rows)
    columns = []
    for threads in (1, 2, 3):
        with tadoc.Config(threads=threads):
            columns.append(tadoc.compress(text))
            assert tadoc.decompress(columns[-1]).equals(text)
            assert tadoc.info(columns[-1])["text_bytes"].to_list() == [sum(len(row) for row in rows)]
    for field in ("symbols", "gaps"):
        assert columns[0].ext.storage().struct.field(field).equals(columns[1].ext.storage().struct.field(field))
        assert columns[0].ext.storage().struct.field(field).equals(columns[2].ext.storage().struct.field(field))
    (corpus,) = tadoc.column.split(columns[0])
    assert corpus.grammar.predicted_gaps.any()
