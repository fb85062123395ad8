"""Real text, one compression each: the text comes back, and results are those of Polars' own expressions."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

import polars_tadoc as tadoc
from tests.oracle import SINGLE

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
    """A corpus as it is and compressed, in several grammars where it has many rows; the longest is cut."""
    plain = _within(8_000_000, corpus(request.param).select("doc_id", "text"))
    return plain, plain.tadoc.compress("text", rows_per_grammar=40_000)


def words_of(text: pl.Series) -> pl.Series:
    """Each row's words by regex; where a character stands alone by the documented rule."""
    has_single = text.str.contains(SINGLE).any()
    return text.str.extract_all(rf"{SINGLE}\p{{M}}*|[\w--{SINGLE}]+" if has_single else r"\w+")


def counts(text: pl.Series) -> pl.DataFrame:
    found = words_of(text).explode(empty_as_null=False).drop_nulls().value_counts(name="count")
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


@pytest.fixture(scope="module")
def occurrences(frames: tuple[pl.DataFrame, pl.DataFrame]) -> pl.LazyFrame:
    """Every word of some of the rows, with its row among them; its neighbours are the frame's next rows."""
    some = frames[0].filter(_some(frames[0]))
    row = pl.int_range(len(some), dtype=pl.get_index_type(), eager=True).alias("id")
    words = pl.DataFrame([row, words_of(some["text"]).alias("word")])
    return words.lazy().explode("word").drop_nulls().collect().lazy()


def _some(plain: pl.DataFrame) -> pl.Series:
    """Whether a row is among the first ones of every fourth, 2 MB of them."""
    size = pl.when(pl.col("doc_id") % 4 == 1).then(pl.col("text").str.len_bytes()).cast(pl.Int64)
    return plain.select(size.fill_null(0).cum_sum() - size < 2_000_000).to_series().fill_null(False)


def _within(size: int, frame: pl.DataFrame) -> pl.DataFrame:
    """The first rows of at most so many bytes of text, at least one."""
    before = pl.col("text").str.len_bytes().cum_sum().shift(fill_value=0)
    return frame.filter(before < size)


COUNT = pl.len().cast(pl.UInt64).alias("count")
SEQUENCE = ["first", "second", "third"]


def sequences(occurrences: pl.LazyFrame) -> pl.LazyFrame:
    """Runs of three words, each with its row."""
    word, row = pl.col("word"), pl.col("id")
    following = [word.shift(-place).alias(name) for place, name in enumerate(SEQUENCE)]
    return occurrences.select("id", *following, whole=row == row.shift(-2)).filter("whole").drop("whole")


def expected_sort(occurrences: pl.LazyFrame) -> pl.LazyFrame:
    return occurrences.group_by("word").agg(COUNT).sort("word")


def expected_inverted_index(occurrences: pl.LazyFrame) -> pl.LazyFrame:
    listed = occurrences.unique().sort("word", "id").group_by("word", maintain_order=True).agg("id")
    return listed.rename({"id": "documents"})


def expected_term_vector(occurrences: pl.LazyFrame) -> pl.LazyFrame:
    counted = occurrences.group_by("id", "word").agg(COUNT)
    return counted.sort("id", "count", "word", descending=[False, True, False])


def expected_sequence_count(occurrences: pl.LazyFrame) -> pl.LazyFrame:
    counted = sequences(occurrences).group_by(SEQUENCE).agg(COUNT)
    ordered = counted.sort("count", *SEQUENCE, descending=[True, False, False, False])
    return ordered.select(pl.concat_list(SEQUENCE).alias("sequence"), "count")


def expected_ranked_inverted_index(occurrences: pl.LazyFrame) -> pl.LazyFrame:
    counted = sequences(occurrences).group_by(*SEQUENCE, "id").agg(COUNT)
    ordered = counted.sort(*SEQUENCE, "count", "id", descending=[False, False, False, True, False])
    listed = ordered.group_by(SEQUENCE, maintain_order=True).agg(pl.struct("id", "count").alias("documents"))
    return listed.select(pl.concat_list(SEQUENCE).alias("sequence"), "documents")


def expected_cooccurrence(occurrences: pl.LazyFrame) -> pl.LazyFrame:
    word, row = pl.col("word"), pl.col("id")
    near = [
        occurrences.select("word", other=word.shift(-apart), whole=row == row.shift(-apart)).filter("whole")
        for apart in range(1, 6)
    ]
    pair = {"word": pl.min_horizontal("word", "other"), "other": pl.max_horizontal("word", "other")}
    counted = pl.concat(near).select(**pair).group_by("word", "other").agg(COUNT)
    return counted.sort("count", "word", "other", descending=[True, False, False])


EXPECTED = {
    "sort": expected_sort,
    "inverted_index": expected_inverted_index,
    "term_vector": expected_term_vector,
    "sequence_count": expected_sequence_count,
    "ranked_inverted_index": expected_ranked_inverted_index,
    "cooccurrence": expected_cooccurrence,
}


@pytest.mark.parametrize("analytic", EXPECTED)
def test_analytics(frames: tuple[pl.DataFrame, pl.DataFrame], occurrences: pl.LazyFrame, analytic: str) -> None:
    """Every engine, both ways down and up."""
    some = frames[1].filter(_some(frames[0]))
    expected = EXPECTED[analytic](occurrences).collect()
    for engine in tadoc.testing.engines():
        for strategy in ("top_down", "bottom_up"):
            got = getattr(some.tadoc, analytic)("text", strategy=strategy, engine=engine)
            assert got.equals(expected), (engine, strategy)
            assert got.schema == expected.schema
