"""From raw logs to a trend: log files -> compressed Parquet -> words by day -> what is new on the last day.

    python examples/etl_script.py                                        # on the sample in examples/data/logs
    python examples/etl_script.py /var/log/auth --store logs --year 2026

Each step reads what the one before it wrote. Run it every night: what is new in the logs is added to the store, and
nothing in the store is written over. The text is compressed once; whatever is asked of it later, it is asked of the
files of the store, without decompressing them.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from datetime import date
from itertools import count
from pathlib import Path

import polars as pl

import polars_tadoc as tadoc  # noqa: F401 - registers the .tadoc namespaces

SAMPLE = Path(__file__).parent / "data" / "logs"
SYSLOG = r"^([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) "
"""The start of a line: "Apr  7 06:25:01 "; other lines are dropped."""
WORDS = pl.element().str.to_lowercase().str.extract(r"^([a-z]{3,})$")
"""Words of letters only: no numbers, addresses, process ids. It runs once over each vocabulary, not over the lines."""
WEEK = 7


def read(log: Path, year: int) -> pl.LazyFrame:
    """Read the lines of a log: ``time`` and, without it, ``text``."""
    stamp = pl.format("{} {}", pl.lit(str(year)), pl.col("text").str.extract(SYSLOG))
    time = stamp.str.to_datetime("%Y %b %e %H:%M:%S", strict=False)
    message = pl.col("text").str.replace(SYSLOG, "")
    return pl.scan_lines(log, name="text").select(time.alias("time"), message).drop_nulls("time")


def without_known(lines: pl.LazyFrame, folder: Path) -> pl.LazyFrame:
    """Drop the lines that a folder of the store already has; only their hashes are kept in memory."""
    first = lines.select(pl.min("time")).collect(engine="streaming").item()
    if first is None or not any(folder.glob("*.parquet")):
        return lines
    known = pl.scan_parquet(folder / "*.parquet").filter(pl.col("time") >= first).tadoc.decompress("text")
    line = ["time", pl.col("text").hash()]
    return lines.join(known.select(line), left_on=line, right_on=["time", "text"], how="anti", maintain_order="left")


def load(logs: Path, store: Path, year: int) -> Iterator[Path]:
    """Add the new lines of each ``*.log`` to the store, block by block, as one more file: ``auth/0001.parquet``."""
    for log in sorted(logs.glob("*.log")):
        folder = store / log.stem
        folder.mkdir(parents=True, exist_ok=True)
        path = next(path for n in count(1) if not (path := folder / f"{n:04}.parquet").exists())
        unfinished = path.with_suffix(".unfinished")
        without_known(read(log, year), folder).tadoc.compress("text").tadoc.sink_parquet(unfinished)
        if pl.scan_parquet(unfinished).select(pl.len()).collect().item():
            yield unfinished.rename(path)
        else:
            unfinished.unlink()


def scan(store: Path) -> pl.LazyFrame:
    """Read the store: ``time, text, day``."""
    return pl.scan_parquet(store / "*" / "*.parquet").with_columns(day=pl.col("time").dt.date())


def words_by_day(lines: pl.LazyFrame) -> pl.LazyFrame:
    """Count the words of each day, all days in one pass over their grammars: ``day, word, count``."""
    words = pl.col("text").tadoc.word_count(normalize=WORDS)
    by_day = lines.group_by("day").agg(words).explode("text", empty_as_null=False).unnest("text")
    return by_day.sort("day", "count", "word", descending=[False, True, False])


def trend(counts: pl.DataFrame, top: int = 8) -> pl.DataFrame:
    """Words that the last day has more often than the days before (at most a week) on average; most excess first."""
    days = counts["day"].unique().sort().tail(WEEK)
    *before, last = (str(day) for day in days)
    by_day = counts.filter(pl.col("day").is_in(days.implode())).sort("day").pivot("day", values="count", index="word")
    usual = pl.mean_horizontal(before).round(1)
    new = by_day.fill_null(0).with_columns(usual=usual, excess=pl.col(last) - usual)
    return new.filter(pl.col("excess") > 0).sort(["excess", "word"], descending=[True, False]).head(top)


def lines_with(word: str, day: date, lines: pl.LazyFrame) -> pl.LazyFrame:
    """Return the first lines of a day that contain a word; only these are decompressed: ``time, text``."""
    of_day = lines.filter(pl.col("day") == day).with_row_index("line")
    index = of_day.tadoc.inverted_index("text", id="line", normalize=WORDS).filter(pl.col("word") == word)
    found = of_day.join(index.explode("documents"), left_on="line", right_on="documents", how="semi").sort("line")
    return found.head(3).select("time", "text").tadoc.decompress("text")


def main(arguments: list[str] | None = None) -> None:
    """Run the steps, and print the output of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="?", type=Path, default=SAMPLE, help="folder of *.log files in syslog's format")
    parser.add_argument("--store", type=Path, help="folder for the Parquet files (default: a temporary one)")
    parser.add_argument("--year", type=int, default=2017, help="year of new lines: syslog does not write it")
    options = parser.parse_args(arguments)
    if not any(options.logs.glob("*.log")):
        parser.error(f"{options.logs} is no folder with *.log files")
    with tempfile.TemporaryDirectory() as folder:
        store = options.store or Path(folder)

        print("# Compress: the new lines of each log, as one more Parquet file.")
        added = list(load(options.logs, store, options.year))
        for path in added:
            rows = pl.scan_parquet(path).select(pl.len()).collect().item()
            print(f"{path.relative_to(store)}: {rows:,} lines, {path.stat().st_size:,} bytes")
        if not added:
            print("Nothing is new.")
        if not any(store.glob("*/*.parquet")):
            parser.error(f"no line of {options.logs}/*.log starts as syslog's do: Apr  7 06:25:01")

        print("\n# Count: the words of each day, from the compressed files.")
        counts = words_by_day(scan(store)).collect()
        print(counts.group_by("day", maintain_order=True).head(3).tail(3 * WEEK))
        if counts["day"].n_unique() < 2:
            print("There is one day of words only: nothing to compare it with.")
            return

        print("\n# Compare: the words that the last day has more often than usual.")
        more = trend(counts)
        print(more)

        for word in more["word"].head(1):
            print(f'\n# Look closer: the first lines of the last day that hold "{word}"; only these are decompressed.')
            for time, text in lines_with(word, counts["day"].max(), scan(store)).collect().rows():
                print(time, text)


if __name__ == "__main__":
    main()
