"""From raw logs to a trend: log files -> compressed Parquet by day -> words by day -> what is new on the last day.

    python examples/etl_script.py                                        # on the sample in examples/data/logs
    python examples/etl_script.py /var/log/auth --store logs --year 2026

Each step reads what the one before it wrote, so that a step can be run again, or every night. The text is compressed
once; whatever is asked of it later, it is asked of the files of the store, without decompressing them.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl

import polars_tadoc as tadoc  # noqa: F401 - registers the .tadoc namespaces

SAMPLE = Path(__file__).parent / "data" / "logs"
SYSLOG = r"^([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) "
"""How a line starts: "Apr  7 06:25:01 "; lines that start otherwise are left out."""
WORDS = pl.element().str.to_lowercase().str.extract(r"^([a-z]{3,})$")
"""Words of letters only: no numbers, addresses, process ids. It runs once over each vocabulary, not over the lines."""


def extract(logs: Path, year: int) -> pl.LazyFrame:
    """Read all lines of the ``*.log`` files of a folder: ``time`` and, without it, ``text``."""
    stamp = pl.format("{} {}", pl.lit(str(year)), pl.col("text").str.extract(SYSLOG))
    time = stamp.str.to_datetime("%Y %b %e %H:%M:%S", strict=False)
    message = pl.col("text").str.replace(SYSLOG, "")
    return pl.scan_lines(logs / "*.log", name="text").select(time.alias("time"), message).drop_nulls("time")


def load(lines: pl.LazyFrame, store: Path) -> Iterator[Path]:
    """Compress each day's lines and write them to a file of its own: ``2026-04-07.parquet``."""
    for (day,), rows in lines.collect().group_by(pl.col("time").dt.date(), maintain_order=True):
        path = store / f"{day}.parquet"
        rows.tadoc.compress("text").write_parquet(path)
        yield path


def count(store: Path) -> pl.LazyFrame:
    """Count the words of each day, all days in one pass over their grammars: ``day, word, count``."""
    words = pl.col("text").tadoc.word_count(normalize=WORDS)
    by_day = pl.scan_parquet(store / "*.parquet").group_by(day=pl.col("time").dt.date()).agg(words)
    return by_day.explode("text").unnest("text").sort("day", "count", "word", descending=[False, True, False])


def trend(counts: pl.DataFrame, top: int = 8) -> pl.DataFrame:
    """Words of the last day that it has more of than the days before had on average, those with most excess first."""
    days = counts["day"].unique().sort().dt.strftime("%b %d").to_list()
    usual, last = pl.mean_horizontal(days[:-1]).round(1), pl.col(days[-1])
    by_day = (
        counts.sort("day").with_columns(pl.col("day").dt.strftime("%b %d")).pivot("day", values="count", index="word")
    )
    new = by_day.fill_null(0).with_columns(usual.alias("usual")).with_columns((last - pl.col("usual")).alias("excess"))
    return new.filter(pl.col("excess") > 0).sort(["excess", "word"], descending=[True, False]).head(top)


def main(arguments: list[str] | None = None) -> None:
    """Run the steps, and print what each leaves behind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="?", type=Path, default=SAMPLE, help="folder of *.log files in syslog's format")
    parser.add_argument("--store", type=Path, help="folder for the Parquet files (default: a temporary one)")
    parser.add_argument("--year", type=int, default=2017, help="syslog does not write the year")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        store = options.store or Path(folder)
        store.mkdir(parents=True, exist_ok=True)

        print("# Compress: one Parquet file for each day.")
        for path in load(extract(options.logs, options.year), store):
            rows = pl.scan_parquet(path).select(pl.len()).collect().item()
            print(f"{path.name}: {rows} lines, {path.stat().st_size:,} bytes")

        print("\n# Count: the words of each day, from the compressed files.")
        counts = count(store).collect()
        print(counts.group_by("day", maintain_order=True).head(3))

        print("\n# Compare: what the last day has more of than usual.")
        print(trend(counts))

        word = trend(counts, top=1)["word"].item()
        print(f'\n# Look closer: the first lines of the last day that hold "{word}"; only these are decompressed.')
        lines = pl.scan_parquet(store / f"{counts['day'].max()}.parquet").with_row_index("line")
        index = lines.tadoc.inverted_index("text", id="line", normalize=WORDS).filter(pl.col("word") == word)
        first = lines.join(index.explode("documents"), left_on="line", right_on="documents", how="semi").head(3)
        for time, text in first.select("time", "text").tadoc.decompress("text").collect().rows():
            print(time, text)


if __name__ == "__main__":
    main()
