"""Search two hundred years of presidential speeches, four sentences at a time."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import polars as pl

import polars_tadoc as tadoc

DATA = Path(__file__).parent / "data"
STOPWORDS = ["a", "an", "and", "are", "as", "be", "by", "for", "in", "is", "it", "of", "on", "or", "that", "the", "to"]


def passages() -> pl.DataFrame:
    """Split speeches into passages of four sentences, and compress them."""
    sentences = pl.col("text").str.extract_all(r"(?:[^.!?]+[.!?]){1,4}")
    speeches = pl.read_parquet(DATA / "speeches.parquet").with_columns(sentences)
    return speeches.explode("text").with_row_index("passage").tadoc.compress("text")


def main() -> None:
    """Run the tour."""
    df = passages()
    pl.Config.set_fmt_str_lengths(110)

    print("# Build an index from the compressed column, without decompressing it.")
    index = df.tadoc.build_index("text", id="passage", stopwords=STOPWORDS, metadata=["year"])
    print(index)

    print("\n# One query, or a column of queries: the best passages for each, joined to their metadata.")
    queries = pl.Series("asked", ["war with Mexico", "peace treaty with Spain", "the economy and jobs"])
    found = index.search(queries, k=2)
    asked = queries.to_frame().with_row_index("query")
    known = df.select(pl.col("passage").alias("id"), "year", "speaker")
    print(asked.join(found, on="query").join(known, on="id").drop("query").sort("asked", "rank"))

    print("\n# All words must occur, the phrase exactly, and only since 1950.")
    query = '"health care" insurance'
    recent = index.search(query, k=3, mode="and", filter=pl.col("year") >= 1950)
    print(index.snippets(recent, query, words=14).join(known, on="id").select("year", "speaker", "snippet"))

    print("\n# Why the first one?")
    print(index.explain(query, recent["id"][0]))

    print("\n# Scores are also an expression: here over the passages of each decade.")
    score = pl.col("text").tadoc.bm25("jobs", lowercase=True)
    decades = df.with_columns((pl.col("year") // 10 * 10).alias("decade"))
    scored = decades.with_columns(score.over("decade").alias("score"))
    passages_found = pl.col("score").gt(0).sum().alias("passages")
    print(scored.group_by("decade").agg(passages_found).sort("passages", descending=True).head(3))

    print("\n# Add and delete documents; a saved index is mapped into memory.")
    with tempfile.TemporaryDirectory() as folder:
        index.delete(recent["id"].head(1)).save(f"{folder}/speeches")
        loaded = tadoc.load_index(f"{folder}/speeches")
        print(loaded)
        batch = [word for word in df.tadoc.word_count("text", lowercase=True, top=2000)["word"] if word.isalpha()]
        started = time.perf_counter()
        answers = loaded.search(batch)
        print(f"{len(batch):,} queries, {len(answers):,} results in {1e3 * (time.perf_counter() - started):.0f} ms")


if __name__ == "__main__":
    main()
