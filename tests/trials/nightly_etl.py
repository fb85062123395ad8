"""Sixty nights: each day's lines are appended like the days before, merged at the end, partitioned, asked about."""

from __future__ import annotations

import datetime as dt
import warnings
from collections import Counter
from pathlib import Path

import polars as pl

import polars_tadoc as tadoc
from polars_tadoc.errors import RepeatedGrammarsWarning
from tests.trials.corpora import log_lines


def run(folder: Path, size: str) -> None:
    """Run the sixty nights; each outcome is checked with plain Polars or a Counter."""
    lines = log_lines(size)
    column = pl.Series("text", [], tadoc.DTYPE)
    meta = lines.drop("text").clear()
    for (day,), batch in lines.group_by("day", maintain_order=True):
        like = column if len(column) else None
        new = tadoc.compress(batch["text"], like=like, tokenizer="whitespace")
        column = tadoc.recompress(pl.concat([column, new]), tail=True)
        meta = pl.concat([meta, batch.drop("text")])
        if day == dt.date(2024, 1, 15):
            half = meta.with_columns(text=column).lazy()
            half.tadoc.sink_packed(folder / "half.parquet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepeatedGrammarsWarning)  # what a tail keeps
        assert tadoc.info(column)["grammars"][0] <= 12
    stored = meta.with_columns(text=column)
    assert stored.tadoc.decompress("text").select(lines.columns).equals(lines)

    stored.lazy().tadoc.sink_parquet(folder / "by_day", partition_by="day")
    assert len(list((folder / "by_day").iterdir())) == lines["day"].n_unique()
    week = pl.col("day").is_between(dt.date(2024, 2, 1), dt.date(2024, 2, 7))
    asked = pl.scan_parquet(folder / "by_day").filter(week).tadoc.word_count("text").collect()
    counted = Counter(word for text in lines.filter(week)["text"] for word in text.split())
    assert dict(asked.rows()) == dict(counted)

    first = tadoc.scan_packed(folder / "half.parquet")
    wanted = lines.filter(pl.col("day") <= dt.date(2024, 1, 15))
    assert first.tadoc.decompress("text").collect().select(lines.columns).equals(wanted)
    by_system = stored.group_by("system").agg(pl.col("text").tadoc.info().struct.field("words").sum().alias("words"))
    plain = lines.group_by("system").agg(pl.col("text").str.split(" ").len().alias("lines"))
    assert sorted(by_system["system"].fill_null("")) == sorted(plain["system"].fill_null(""))
