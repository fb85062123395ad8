"""What presidents said together, and when: every analytic on two hundred years of speeches."""

from __future__ import annotations

from pathlib import Path

import polars as pl

import polars_tadoc as tadoc

DATA = Path(__file__).parent / "data"
STOPWORDS = ["a", "and", "by", "for", "in", "is", "it", "of", "on", "our", "s", "that", "the", "this", "to", "we"]


def main() -> None:
    """Run the tour."""
    df = pl.read_parquet(DATA / "speeches.parquet").tadoc.compress("text")

    print("# Phrases: runs of n words.")
    phrases = df.tadoc.sequence_count("text", n=4, lowercase=True, top=5)
    print(phrases.with_columns(pl.col("sequence").list.join(" ")))

    print("# Which speeches contain a phrase, by descending count.")
    numbered = df.with_row_index("speech")
    index = numbered.tadoc.ranked_inverted_index("text", id="speech", n=4, top=1, min_count=30)
    most = index.explode("documents").unnest("documents").sort("count", "id", descending=True).head(5)
    said = most.join(numbered, left_on="id", right_on="speech", maintain_order="left")
    print(said.select(pl.col("sequence").list.join(" "), "year", "speaker", "count"))

    print("# Words that are near each other.")
    print(df.tadoc.cooccurrence("text", window=3, lowercase=True, stopwords=STOPWORDS, top=5))

    print("# The years in which a word was said; words are in code point order.")
    index = df.tadoc.inverted_index("text", id="year", lowercase=True)
    print(index.filter(pl.col("word").is_in(["railroad", "telegraph", "internet"])))

    print("# What each speech is about: its most frequent words.")
    print(df.tail(2).tadoc.term_vector("text", id="speaker", lowercase=True, stopwords=STOPWORDS, top=3))

    print("# All words in order, of some rows.")
    print(df.filter(pl.col("year") < 1800).tadoc.sort("text", min_count=30))

    print("# By group: each century's most frequent words, all groups counted in one pass.")
    century = (pl.col("year") // 100 * 100).alias("century")
    words = pl.col("text").tadoc.word_count(lowercase=True, stopwords=STOPWORDS, top=3)
    print(df.group_by(century).agg(words).sort("century").explode("text").unnest("text"))

    print("# As a table for other programs: Arrow, words dictionary-encoded.")
    print(tadoc.sequence_count(df["text"], n=2, top=3).schema)


if __name__ == "__main__":
    main()
