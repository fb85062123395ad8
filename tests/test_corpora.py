"""Real text, one compression each: the text comes back, and counts are those of Polars' own regex engine."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from tests.test_word_count import SINGLE

NAMES = [
    "logs_dmesg",
    "versioned_longhorn",
    "docs_peps",
    "prose_books",
    "multi_react",
    "multi_cldr_annotations",
    "logs_elastic",
    "wiki_enwiki_markup",
]


@pytest.fixture(scope="module", params=NAMES)
def frames(request: pytest.FixtureRequest, corpus: Callable[[str], pl.DataFrame]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A corpus as it is and compressed, in several grammars where it has many rows."""
    plain = corpus(request.param).select("doc_id", "text")
    return plain, plain.tadoc.compress("text", rows_per_grammar=40_000)


def counts(text: pl.Series) -> pl.DataFrame:
    """Counts by regex; where a character stands alone by the documented rule."""
    has_single = text.str.contains(SINGLE).any()
    words = text.str.extract_all(rf"{SINGLE}\p{{M}}*|[\w--{SINGLE}]+" if has_single else r"\w+")
    found = words.explode(empty_as_null=False).drop_nulls().value_counts(name="count")
    return found.select(word=found.columns[0], count=pl.col("count").cast(pl.UInt64)).sort(
        ["count", "word"], descending=[True, False]
    )


def test_round_trip(frames: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    plain, compressed = frames
    assert compressed.tadoc.decompress("text").equals(plain)


def test_word_count(frames: tuple[pl.DataFrame, pl.DataFrame], engine: str) -> None:
    plain, compressed = frames
    expected = counts(plain["text"])
    assert compressed.tadoc.word_count("text", engine=engine).equals(expected)
    assert compressed.tadoc.word_count("text", top=100, engine=engine).equals(expected.head(100))


def test_word_count_of_some_rows(frames: tuple[pl.DataFrame, pl.DataFrame], engine: str) -> None:
    plain, compressed = (df.filter(pl.col("doc_id") % 10 == 3) for df in frames)
    assert compressed.tadoc.word_count("text", engine=engine).equals(counts(plain["text"]))
    assert compressed.tadoc.decompress("text").equals(plain)


def test_it_is_smaller(frames: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    plain, compressed = frames
    info = compressed.tadoc.info("text").row(0, named=True)
    assert info["rows"] == len(plain)
    assert info["text_bytes"] == plain["text"].str.len_bytes().sum()
    assert info["symbols"] < info["words"]
    assert info["ratio"] > 1
