"""Five minutes with polars_tadoc on two hundred years of presidential speeches: ``make demo``."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import polars as pl

import polars_tadoc as tadoc

DATA = Path(__file__).parent / "data"
STOPWORDS = [
    "a",
    "all",
    "and",
    "are",
    "as",
    "be",
    "by",
    "for",
    "have",
    "i",
    "in",
    "is",
    "it",
    "must",
    "not",
    "of",
    "on",
]
STOPWORDS += ["our", "s", "that", "the", "their", "they", "this", "to", "we", "which", "will", "with", "you"]


def main() -> None:
    """Run the tour."""
    started = time.perf_counter()
    speeches = pl.read_parquet(DATA / "speeches.parquet")

    print("# Compress a column. It stays a column: filter, sort, join and write it like any other.")
    df = speeches.with_columns(pl.col("text").tadoc.compress())
    print(
        df.select(
            "year", "speaker", tadoc.as_storage(df["text"]).struct.field("symbols").list.len().alias("symbols")
        ).head(3)
    )
    print(f"(the first call, Numba's compilation included, took {time.perf_counter() - started:.1f} s)\n")

    print("# What it holds.")
    print(df.tadoc.info("text"))

    print("\n# Count words on the compressed form: in all rows, or in filtered rows.")
    print(df.tadoc.word_count("text", top=5))
    print(df.filter(pl.col("year") > 2000).tadoc.word_count("text", lowercase=True, stopwords=STOPWORDS, top=8))

    print("\n# Normalise words with any expression; it runs once over the vocabulary.")
    letters = pl.element().str.to_lowercase().str.replace_all(r"[^a-z]", "")
    print(df.tadoc.word_count("text", normalize=letters, min_count=2000))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "speeches.parquet"
        df.write_parquet(path)
        print("\n# An ordinary Parquet file, and a lazy plan that reads what it needs.")
        plan = pl.scan_parquet(path).filter(pl.col("kind") == "inaugural").tadoc.word_count("text", top=3)
        print(plan.explain())
        print(plan.collect())

    print("\n# Decompressing returns every byte.")
    same = df.tadoc.decompress("text")["text"].equals(speeches["text"])
    print(f"decompressed text equals the original: {same}")
    if not same:
        raise SystemExit(1)

    print("\n# The error of a wrong call says what to do.")
    try:
        speeches.tadoc.info("text")
    except tadoc.errors.NotCompressedError as error:
        print(f"{type(error).__name__}: {error}")
    print(f"\ndone in {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
