"""Appending batch by batch, and merging grammars: ``python -m benchmarks.append``.

Each corpus' rows (its texts' lines, where it has too few) are appended in batches of 100. Three ways: each batch
compressed by itself, compressed like the column, and that with the column's tail merged after each batch. Times are
medians of the first and the last tenth of the batches; sizes are bytes of the columns' arrays over those of one
``compress`` of all rows. Then ``recompress`` of the column of many grammars, in turn with ``compress(decompress())``.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora, side_by_side

BATCH = 100
STANDARD = ["logs_elastic", "docs_tldr", "docs_peps", "logs_dmesg"]


def rows_of(given: str, batches: int) -> tuple[str, pl.Series]:
    """Return a corpus' name and its rows, or its lines where that many batches need them."""
    name, text = corpora.load(given)
    if len(text) < batches * BATCH:
        text = text.str.split("\n").explode()
        name += ", lines"
    return name, text.head(batches * BATCH).rechunk()


def by_itself(column: pl.Series, batch: pl.Series) -> pl.Series:
    """Compress the batch with a grammar of its own."""
    return pl.concat([column, tadoc.compress(batch)])


def like(column: pl.Series, batch: pl.Series) -> pl.Series:
    """Compress the batch with the column's words and rules where that pays."""
    return pl.concat([column, tadoc.compress(batch, like=column)])


def merged(column: pl.Series, batch: pl.Series) -> pl.Series:
    """The same, and merge the small grammars at the end."""
    return tadoc.recompress(like(column, batch), tail=True)


def append(text: pl.Series, way: Callable[[pl.Series, pl.Series], pl.Series]) -> tuple[pl.Series, list[float]]:
    """Append batch after batch; returns the column and the seconds that each took."""
    column = tadoc.compress(text.head(BATCH))
    seconds = []
    for at in range(BATCH, len(text), BATCH):
        start = time.perf_counter()
        column = way(column, text.slice(at, BATCH))
        seconds.append(time.perf_counter() - start)
    if not tadoc.decompress(column).equals(text):
        raise SystemExit("the appended text differs")
    return column, seconds


def fields(column: pl.Series) -> pl.DataFrame:
    """Payloads, symbols and gaps, to be compared."""
    return column.ext.storage().struct.unnest().with_columns(pl.col("grammar").cast(pl.String).hash())


def stored_bytes(column: pl.Series) -> int:
    """Bytes of a column's arrays, each payload once."""
    fields = column.ext.storage().struct
    rows = 4 * int(fields.field("symbols").list.len().sum()) + int(fields.field("gaps").bin.size().sum())
    return rows + int(fields.field("grammar").unique().cast(pl.String).str.len_bytes().sum())


def main() -> None:
    """Run and print two tables."""
    parser = corpora.arguments("appending in batches of 100 rows, and merging")
    parser.add_argument("--batches", type=int, default=1000)
    given = parser.parse_args()
    print(corpora.machine())
    print(f"{given.batches} batches of {BATCH} rows")
    columns: dict[str, pl.Series] = {}
    header = ["corpus", "way", "early ms", "late ms", "mean ms", "slowest ms", "grammars", "bytes / one shot"]
    print(" | ".join(header))
    for name in given.corpora or STANDARD:
        short, text = rows_of(name, given.batches)
        one_shot = stored_bytes(tadoc.compress(text))
        append(text.head(5 * BATCH), merged)  # compile first
        for way in (by_itself, like, merged):
            column, seconds = append(text, way)
            tenth = max(1, len(seconds) // 10)
            early, late = statistics.median(seconds[:tenth]), statistics.median(seconds[-tenth:])
            times = [f"{1e3 * s:.1f}" for s in (early, late, statistics.mean(seconds), max(seconds))]
            grammars = tadoc.info(column)["grammars"][0]
            ratio = stored_bytes(column) / one_shot
            print(" | ".join([short, way.__name__, *times, str(grammars), f"{ratio:.2f}"]), flush=True)
            columns.setdefault(short, column)
    print(" | ".join(["corpus", "grammars", "recompress ms", "compress(decompress) ms", "ratio"]))
    for short, column in columns.items():

        def anew(column: pl.Series = column) -> pl.Series:
            return tadoc.compress(tadoc.decompress(column))

        def merge(column: pl.Series = column) -> pl.Series:
            return tadoc.recompress(column)

        taken = side_by_side.times({"merge": merge, "anew": anew}, given.repeat)
        if not fields(merge()).equals(fields(anew())):
            raise SystemExit(f"{short}: recompress gives another column than compress(decompress())")
        grammars = tadoc.info(column)["grammars"][0]
        times = [f"{side_by_side.median_ms(taken, name):.0f}" for name in ("merge", "anew")]
        print(" | ".join([short, str(grammars), *times, f"{side_by_side.ratio(taken, 'anew', 'merge'):.2f}"]))


if __name__ == "__main__":
    main()
