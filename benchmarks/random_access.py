"""Ten words from anywhere in a row: on compressed rows, against decompressing them and against splitting strings.

Rows are gathered with replacement, offsets are random within each. Decompressing and splitting do a fiftieth of the
rows, as they write whole rows out.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora
from benchmarks.side_by_side import median_ms, times
from polars_tadoc.kernels.host.rows import reference as reference_rows
from polars_tadoc.kernels.tokenize import reference

WORDS = 10
SHARE = 50
ALONE = 200
"""Rows taken one at a time."""
SYMBOLS = 1 << 27
"""Gathered rows hold no more: of a book's 80,000 symbols, 100,000 copies would fill 32 GB."""


def main() -> None:
    parser = corpora.arguments(__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000, help="how many rows are gathered")
    arguments = parser.parse_args()
    print(corpora.machine())
    print(f"microseconds for each row, of {arguments.rows:,} gathered at most; medians of {arguments.repeat} rounds")
    for name in corpora.names(arguments.corpora):
        measure(*corpora.load(name), arguments.rows, arguments.repeat)


def measure(name: str, text: pl.Series, size: int, repeat: int) -> None:
    column = tadoc.compress(text)
    size = min(size, int(SYMBOLS // column.ext.storage().struct.field("symbols").list.len().mean()))
    chance = np.random.default_rng(1)
    drawn = pl.Series(chance.integers(0, len(text), size))
    words = tadoc.token_count(column).gather(drawn)
    offsets = pl.Series((chance.random(size) * words.to_numpy()).astype(np.int64))
    few = slice(0, size // SHARE)
    rows, few_rows, few_texts = column.gather(drawn), column.gather(drawn[few]), text.gather(drawn[few])
    check(rows, few_texts, offsets)

    def split(strings: pl.Series) -> pl.DataFrame:
        frame = pl.DataFrame([strings.alias("text"), offsets[: len(strings)].alias("at")])
        return frame.select(pl.col("text").str.split(" ").list.slice("at", WORDS).list.join(" "))

    taken = times(
        {
            "extract": lambda: tadoc.extract(rows, offsets, WORDS),
            "head": lambda: tadoc.head(rows, WORDS),
            "tail": lambda: tadoc.tail(rows, WORDS),
            "token_count": lambda: tadoc.token_count(rows),
            "gathering the rows": lambda: column.gather(drawn),
            "decompress": lambda: tadoc.decompress(few_rows),
            "split": lambda: split(few_texts),
        },
        repeat,
    )
    print(
        f"\n{name}: {len(text):,} rows of {words.mean():,.0f} words, {size:,} gathered, "
        f"{text.str.len_bytes().sum():,} bytes"
    )
    each = {call: 1e3 * median_ms(taken, call) / size for call in taken}
    for call in ("decompress", "split"):
        each[call] *= size / len(few_texts)
    for call, cost in each.items():
        print(f"  {call:<20} {cost:10.2f} us   {cost / each['extract']:8.1f} times extract")

    longest = int(tadoc.token_count(column).arg_max() or 0)
    longest_row, count = column[longest : longest + 1], int(tadoc.token_count(column)[longest])
    anywhere = pl.Series(chance.integers(0, count, size))
    cost = 1e3 * median_ms(times({"one": lambda: tadoc.extract(longest_row, anywhere, WORDS)}, repeat), "one") / size
    print(f"  {'extract':<20} {cost:10.2f} us, all of the longest row ({count:,} words)")
    at = offsets.to_list()
    for call, run in {
        "extract": lambda k: tadoc.extract(rows[k : k + 1], at[k], WORDS),
        "decompress": lambda k: tadoc.decompress(rows[k : k + 1]),
        "split": lambda k: split(few_texts[k : k + 1]),
    }.items():
        print(f"  {call:<20} {one_at_a_time(run, min(ALONE, len(few_texts))):10.2f} us, one row at a time")


def check(rows: pl.Series, texts: pl.Series, offsets: pl.Series) -> None:
    """Compare with cutting the text in plain Python."""
    many = min(len(texts), 200)
    got = tadoc.extract(rows[:many], offsets[:many], WORDS).to_list()
    for text, offset, own in zip(texts[:many], offsets[:many], got, strict=True):
        assert own == reference_rows.extract(*reference.tokenize(text, "words"), offset, WORDS)


def one_at_a_time(run: Callable[[int], object], rows: int) -> float:
    """Median microseconds of a call on one row."""
    taken = []
    for k in range(rows):
        start = time.perf_counter()
        run(k)
        taken.append(time.perf_counter() - start)
    return 1e6 * float(np.median(taken))


if __name__ == "__main__":
    main()
