r"""Word count against plain Polars and DuckDB on the strings, warm and cold: ``python -m benchmarks.word_count``.

Warm: text and compressed column in memory, the grammar decoded before. Cold: from a Parquet file (written
with Polars' defaults, in the page cache) to the result, the grammar cache emptied before each run. All
contenders count the same words, runs of Unicode word characters; the counts are compared first.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb
import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.side_by_side import median_ms, ratio, times
from polars_tadoc.model.grammar_cache import grammars

POLARS_WORDS = pl.col("text").str.extract_all(r"\w+").explode().alias("word")
RE2_WORD = r"[\pL\pM\p{Nd}\p{Nl}\p{Pc}]+"  # RE2's \w is ASCII
DUCKDB_QUERY = """
    SELECT word, count(*) AS count FROM (SELECT unnest(regexp_extract_all(text, '{}')) AS word FROM {}) GROUP BY 1
"""


def with_polars(lf: pl.LazyFrame) -> pl.DataFrame:
    counts = lf.select(POLARS_WORDS).drop_nulls().group_by("word").agg(pl.len().alias("count"))
    return counts.collect(engine="streaming")


def check(ours: pl.DataFrame, polars: pl.DataFrame, duck: pl.DataFrame, name: str) -> None:
    """Stop if a contender counts something else."""
    expected = ours.sort("word")["count"]
    for peer, counted in {"Polars": polars, "DuckDB": duck}.items():
        if not expected.equals(counted.sort("word")["count"].cast(pl.UInt64)):
            raise SystemExit(f"{name}: {peer} counts other words")


def main() -> None:
    parser = corpora.arguments(__doc__ or "")
    args = parser.parse_args()
    print(f"machine: {corpora.machine()}, DuckDB {duckdb.__version__}; engine cpu")
    print(f"{'corpus':22}{'MB':>6} | {'warm ms':>8}{'Polars':>9}{'DuckDB':>9}{'x Pol':>7}{'x Duck':>7}", end="")
    print(f" | {'cold ms':>8}{'Polars':>9}{'DuckDB':>9}{'x Pol':>7}{'x Duck':>7}")
    tadoc.Config.set(engine="cpu")
    for given in corpora.names(args.corpora):
        name, text = corpora.load(given)
        plain = text.to_frame("text")
        packed = plain.tadoc.compress("text")
        connection = duckdb.connect()
        connection.register("source", plain.to_arrow())
        connection.execute("CREATE TABLE texts AS SELECT text FROM source")
        # Han and kana are single words for us and parts of words for the others: rows with them are not compared
        shared = pl.col("text").str.contains(r"[\p{Han}\p{Hiragana}\p{Katakana}\u30fc]").not_()
        alike = plain.select(shared).to_series()
        connection.register("comparable", plain.filter(alike).to_arrow())
        with tempfile.TemporaryDirectory() as folder:
            plain_path, packed_path = Path(folder) / "plain.parquet", Path(folder) / "packed.parquet"
            plain.write_parquet(plain_path)
            packed.write_parquet(packed_path)

            def duck(table: str, connection: duckdb.DuckDBPyConnection = connection) -> pl.DataFrame:
                return pl.from_arrow(connection.sql(DUCKDB_QUERY.format(RE2_WORD, table)).to_arrow_table())

            def cold(path: Path = packed_path) -> pl.DataFrame:
                grammars.clear()
                return pl.scan_parquet(path).tadoc.word_count("text").collect()

            counted = with_polars(plain.filter(alike).lazy())
            check(packed.filter(alike).tadoc.word_count("text"), counted, duck("comparable"), name)
            warm = times(
                {
                    "tadoc": lambda: packed.tadoc.word_count("text"),  # noqa: B023 - run before the next corpus
                    "polars": lambda: with_polars(plain.lazy()),  # noqa: B023
                    "duckdb": lambda: duck("texts"),
                },
                args.repeat,
            )
            cool = times(
                {
                    "tadoc": cold,
                    "polars": lambda: with_polars(pl.scan_parquet(plain_path)),  # noqa: B023
                    "duckdb": lambda: duck(f"'{plain_path}'"),  # noqa: B023
                },
                args.repeat,
            )
        print(f"{name:22}{text.str.len_bytes().sum() / 1e6:6.1f}", end="")
        for taken in (warm, cool):
            print(" | " + f"{median_ms(taken, 'tadoc'):8.2f}{median_ms(taken, 'polars'):9.1f}", end="")
            print(f"{median_ms(taken, 'duckdb'):9.1f}{ratio(taken, 'polars', 'tadoc'):7.1f}", end="")
            print(f"{ratio(taken, 'duckdb', 'tadoc'):7.1f}", end="")
        print(flush=True)


if __name__ == "__main__":
    main()
