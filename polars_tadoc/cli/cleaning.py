"""``tadoc repeats``."""

from __future__ import annotations

import polars as pl

import polars_tadoc as tadoc
from polars_tadoc.cli.reading import Reading, Source
from polars_tadoc.cli.running import Running
from polars_tadoc.cli.writing import Writing, say, write

DEFAULTS = Reading(), Writing(), Running()
SHOWN_WORDS = 40
"""Words of a passage that are shown."""


def repeats(
    *sources: Source,
    length: int = 50,
    min_count: int = 2,
    lowercase: bool = False,
    top: int = 20,
    drop: str | None = None,
    reading: Reading = DEFAULTS[0],
    writing: Writing = DEFAULTS[1],
    running: Running = DEFAULTS[2],
) -> None:
    """Find passages that occur more than once, those with most repeated words first.

    Parameters
    ----------
    length
        Minimum number of words of a passage.
    min_count
        Leave out passages that occur less often.
    lowercase
        Compare words in lower case.
    top
        Number of passages; 0: all.
    drop
        Write the input without later copies of passages to this file, instead of listing them.

    Examples
    --------
    $ tadoc repeats speeches.parquet --length 12

    $ tadoc repeats corpus.parquet --drop clean.parquet

    """
    lf, column = reading.scan(sources)
    frame = lf.collect()
    if drop is not None:
        kept = tadoc.of(frame).drop_repeats(column, length=length, lowercase=lowercase)
        write(kept.lazy(), drop)
        say(f"{drop}: {kept.height:,} of {frame.height:,} rows")
        return
    found = tadoc.of(frame).repeats(column, length=length, min_count=min_count, lowercase=lowercase)
    most = found.filter("first").sort(pl.col("length") * (pl.col("copies") - 1), descending=True, maintain_order=True)
    shown = most.head(top) if top else most
    rows = frame[column].gather(shown["id"])
    held = rows if tadoc.is_tadoc(rows.dtype) else tadoc.compress(rows)
    passages = tadoc.extract(held, shown["offset"].cast(pl.Int64), shown["length"].clip(0, SHOWN_WORDS).cast(pl.Int64))
    writing.write(shown.select(pl.col("id").alias("row"), "offset", "length", "copies").with_columns(passage=passages))
