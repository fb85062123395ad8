"""The device compresses as the CPU does, payload for payload and row for row."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.engine import cuda
from polars_tadoc.errors import EngineUnavailableError
from tests.strategies import columns
from tests.xml_strategies import glued, near_xml

pytestmark = pytest.mark.skipif(cuda.device_problem() is not None, reason=f"no device: {cuda.device_problem()}")


def assert_same(text: pl.Series, **options: Any) -> None:
    device, host = (tadoc.compress(text, engine=engine, **options) for engine in ("gpu", "cpu"))
    assert (
        device.ext.storage()
        .struct.field("grammar")
        .cast(pl.String)
        .equals(host.ext.storage().struct.field("grammar").cast(pl.String))
    )
    assert device.ext.storage().struct.field("symbols").equals(host.ext.storage().struct.field("symbols"))
    assert device.ext.storage().struct.field("gaps").equals(host.ext.storage().struct.field("gaps"))
    if options.get("lossless", True):
        assert tadoc.decompress(device).equals(text)


@pytest.mark.parametrize("tokenizer", ["words", "whitespace", re.compile("[a-z]+")])
@given(values=columns)
def test_matches_the_cpu(tokenizer: str | re.Pattern[str], values: list[str | None]) -> None:
    assert_same(pl.Series("text", values, pl.String), tokenizer=tokenizer)


@given(values=st.lists(st.one_of(st.none(), near_xml, glued), max_size=6))
def test_matches_the_cpu_on_xml(values: list[str | None]) -> None:
    assert_same(pl.Series("text", values, pl.String), tokenizer="xml")


@given(values=columns)
def test_matches_the_cpu_without_gaps_and_with_many_grammars(values: list[str | None]) -> None:
    assert_same(pl.Series("text", values, pl.String), lossless=False, rows_per_grammar=3)


@pytest.mark.parametrize("words", [100, 2000, 2060, 9000])
def test_matches_the_cpu_where_long_rows_repeat(words: int) -> None:
    """The body of a long rule is measured by all warps of a block."""
    drawn = np.random.default_rng(words)
    one, other = (
        "".join(f"{word}, " if word % 3 else f"{word} " for word in drawn.integers(0, words, words)) for _ in range(2)
    )
    text = pl.Series("text", [one, other, "between", other, one])
    assert_same(text)
    (corpus,) = tadoc.column.split(tadoc.compress(text, engine="cpu"))
    assert np.diff(corpus.grammar.rule_offsets).max() > 0.8 * words


@pytest.mark.parametrize("name", ["speeches", "peps"])
def test_matches_the_cpu_on_samples(name: str) -> None:
    assert_same(pl.read_parquet(f"examples/data/{name}.parquet")["text"])


@pytest.mark.parametrize("name", ["logs_dmesg", "versioned_powershell", "versioned_longhorn", "docs_peps"])
def test_matches_the_cpu_on_corpora(name: str, corpus: Callable[[str], pl.DataFrame]) -> None:
    assert_same(corpus(name)["text"])


@pytest.mark.parametrize("copies", [1, 4])
def test_recompress_matches_the_cpu(copies: int) -> None:
    """Rows that differ in a line repeat paragraphs."""
    text = pl.read_parquet("examples/data/peps.parquet")["text"]
    text = pl.concat([f"Version {copy}\n\n" + text for copy in range(copies)]).alias("text")
    column = tadoc.compress(text, rows_per_grammar=100)
    device, host = (tadoc.recompress(column, engine=engine) for engine in ("gpu", "cpu"))
    assert (
        device.ext.storage()
        .struct.field("grammar")
        .cast(pl.String)
        .equals(host.ext.storage().struct.field("grammar").cast(pl.String))
    )
    assert tadoc.decompress(device).equals(text)


def test_sequitur_is_refused() -> None:
    with pytest.raises(EngineUnavailableError, match="sequitur"):
        tadoc.compress(pl.Series(["a"]), method="sequitur", engine="gpu")


def test_auto_takes_the_device_for_large_text(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def compress(text: pl.Series, *arguments: Any, **options: Any) -> Any:
        sizes.append(len(text))
        return original(text, *arguments, **options)

    original = cuda.compress_rows
    monkeypatch.setattr(cuda, "compress_rows", compress)
    text = pl.Series("text", ["one two three four"] * 10)
    tadoc.compress(text)
    assert sizes == []
    monkeypatch.setattr(import_module("polars_tadoc.compress.compress"), "GPU_REPAYS_AT", 1)
    tadoc.compress(text)
    assert sizes == [10]
