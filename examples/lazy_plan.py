"""Text analytics as nodes of a lazy plan: which data the plan reads, which it skips, and what runs once."""

from __future__ import annotations

import tempfile
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq

import polars_tadoc as tadoc  # noqa: F401 - registers the .tadoc namespaces

DATA = Path(__file__).parent / "data"
STOPWORDS = ["a", "and", "by", "for", "in", "is", "it", "of", "on", "our", "s", "that", "the", "this", "to", "we"]


def column_bytes(path: Path) -> dict[str, int]:
    """Bytes of each column in a Parquet file."""
    metadata = pq.read_metadata(path)
    sizes: dict[str, int] = {}
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(number)
            name = chunk.path_in_schema.split(".")[0]
            sizes[name] = sizes.get(name, 0) + chunk.total_compressed_size
    return sizes


def main() -> None:
    """Run the tour."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "speeches.parquet"

        print("# A plan compresses while it writes; it holds only a few blocks of rows.")
        speeches = pl.scan_parquet(DATA / "speeches.parquet").with_columns(original=pl.col("text"))
        speeches.tadoc.compress("text").tadoc.sink_parquet(path)
        print("bytes by column:", ", ".join(f"{name} {size:,}" for name, size in column_bytes(path).items()))

        print("\n# A filter and a count: the scan reads two of the five columns, the filter runs inside it.")
        scan = pl.scan_parquet(path)
        counts = scan.filter(pl.col("year") >= 2000).tadoc.word_count(
            "text", lowercase=True, stopwords=STOPWORDS, top=5
        )
        print(counts.explain())
        print("its schema is known before anything runs:", dict(counts.collect_schema()))
        print(counts.collect())

        print("\n# Later operations are part of the same plan; a part that is used twice runs once.")
        recent = scan.filter(pl.col("year") >= 1945).tadoc.term_vector("text", id="speaker", lowercase=True)
        said = recent.filter(pl.col("word").is_in(["freedom", "jobs"])).group_by("id", "word").agg(pl.sum("count"))
        most = said.group_by("word").agg(pl.max("count"))
        print(said.join(most, on=["word", "count"], how="semi").sort("word").collect())

        print("\n# Counts by group are expressions: each decade's words, all groups in one pass.")
        decade = (pl.col("year") // 10 * 10).alias("decade")
        words = pl.col("text").tadoc.word_count(lowercase=True, stopwords=[*STOPWORDS, "be", "have"], top=2)
        by_decade = scan.filter(pl.col("kind") == "inaugural").group_by(decade).agg(words)
        print(by_decade.explode("text").unnest("text").sort("decade", "count", descending=True).head(6).collect())

        print("\n# Decompress last: only the remaining rows are decompressed.")
        symbols = pl.col("text").ext.storage().struct.field("symbols")
        short = scan.filter(pl.col("kind") == "inaugural").sort(symbols.list.len())
        print(short.select("year", "speaker", "text").head(1).tadoc.decompress("text").collect())


if __name__ == "__main__":
    main()
