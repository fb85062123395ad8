"""Documents made as Wakatsuki et al. made theirs: log-normal lengths, words drawn by frequency from a real vocabulary.

``python -m benchmarks.drawn_text vocabulary.parquet`` writes the vocabulary, the words of all corpora and how often
each occurs, for machines without the corpora.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

import polars_tadoc as tadoc
from benchmarks import corpora

MU, SIGMA = 6.0, 1.1
"""Of the logarithm of a document's words."""

PART = 1 << 22
"""Words joined at a time."""


def real_vocabulary() -> pl.DataFrame:
    """Words of all corpora, with the number of times each occurs, by falling number."""
    texts = [
        pl.read_parquet(path, columns=["text"])["text"]
        for path in sorted(corpora.SHARED.glob("*.parquet"))
        if "text" in pl.read_parquet_schema(path) and "queries" not in path.stem
    ]
    columns = [tadoc.compress(text, lossless=False) for text in texts]
    counted: pl.DataFrame = pl.concat(pl.from_arrow(tadoc.word_count(column)) for column in columns)  # type: ignore[type-var]
    return (
        counted.with_columns(pl.col("word").cast(pl.String))
        .group_by("word")
        .agg(pl.col("count").sum())
        .sort(["count", "word"], descending=[True, False])
    )


def vocabulary(path: Path | None) -> pl.DataFrame:
    """Read the vocabulary that was written, else make it."""
    return real_vocabulary() if path is None else pl.read_parquet(path)


def draw(words: pl.DataFrame, megabytes: int, seed: int = 0) -> pl.Series:
    """Make about so many megabytes of documents: words joined by single spaces."""
    random = np.random.default_rng(seed)
    counts = words["count"].to_numpy().astype(np.int64)
    pool = np.repeat(np.arange(len(counts), dtype=np.uint32), counts)  # each word as often as it occurs
    mean = float((words["word"].str.len_bytes().to_numpy() + 1.0) @ counts / counts.sum())
    total = int(megabytes * 1e6 / mean)
    enough = 2 + int(2 * total / np.exp(MU + SIGMA**2 / 2))
    lengths = np.maximum(random.lognormal(MU, SIGMA, enough), 1).astype(np.int64)
    ends = np.cumsum(lengths)
    ends = ends[: np.searchsorted(ends, total) + 1]
    strings = words["word"].to_arrow().cast(pa.large_string())
    spaced = (words["word"] + " ").to_arrow().cast(pa.large_string())
    pieces = pa.concat_arrays([spaced, strings])  # the last word of a document is one without a space
    parts, first = [], 0
    while first < len(ends):
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + PART)))
        own = ends[first:last] - before
        parts.append(_join(pieces, random.choice(pool, int(own[-1])), own, len(words)))
        first = last
    return pl.concat(parts).rechunk().alias("text")


def _join(
    pieces: pa.LargeStringArray, drawn: npt.NDArray[np.uint32], ends: npt.NDArray[np.int64], words: int
) -> pl.Series:
    places = drawn.astype(np.int64)
    places[ends - 1] += words
    joined = pieces.take(pa.array(places))
    starts = np.frombuffer(joined.buffers()[1], np.int64)[: len(joined) + 1]
    offsets = pa.array(np.append(0, starts[ends])).buffers()[1]
    return pl.Series(pl.from_arrow(pa.LargeStringArray.from_buffers(len(ends), offsets, joined.buffers()[2])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path, help="Parquet file to write")
    words = real_vocabulary()
    path = parser.parse_args().path
    words.write_parquet(path, compression="zstd", compression_level=19)
    print(f"{len(words):,} words, {words['count'].sum():,} occurrences, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
