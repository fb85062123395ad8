"""An incident: which systems, which days, which phrases, what is new since the day before."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import duckdb
import polars as pl

import polars_tadoc as tadoc
from tests.trials.corpora import log_lines


def run(folder: Path, size: str) -> None:
    """Ask what an engineer asks; DuckDB and plain Polars answer the same of the text."""
    lines = log_lines(size)
    lines.lazy().tadoc.compress("text", tokenizer="whitespace").tadoc.sink_packed(folder / "logs.parquet")
    lf = tadoc.scan_packed(folder / "logs.parquet")

    phrase = " ".join(lines["text"].str.split(" ").list.slice(-2).list.join(" ").drop_nulls().mode()[0].split()[-2:])
    hits = lf.filter(pl.col("text").tadoc.contains_phrase(phrase)).select("line").collect()["line"]
    wanted = [i for i, text in enumerate(lines["text"]) if f" {phrase} " in f" {' '.join(text.split())} "]
    assert hits.to_list() == wanted
    assert wanted

    by_day = (
        lf.with_columns(hit=pl.col("text").tadoc.contains_phrase(phrase))
        .group_by("day")
        .agg(pl.col("hit").sum())
        .sort("day")
        .collect()
    )
    text = lines.with_columns(
        pl.col("text").str.split(" ").list.eval(pl.element().filter(pl.element() != "")).list.join(" ")
    )
    asked = "SELECT day, sum(((' ' || text || ' ') LIKE ?)::INT)::BIGINT AS hit FROM text GROUP BY day ORDER BY day"
    escaped = phrase.replace("%", "")
    if escaped == phrase and "_" not in phrase and not lines["text"].str.contains(r"[\t\x0b\x0c\r]").any():
        answered = duckdb.connect().execute(asked, [f"% {phrase} %"]).fetchall()
        assert [(day, int(hit)) for day, hit in by_day.rows()] == [(day, int(hit)) for day, hit in answered]
    assert text.height == lines.height

    # request ids and paths: parts of words and several words, with what separates them
    ids = r"\b[0-9a-f]{6,}\b|id[=:] ?\d+"
    text_of = pl.col("text").tadoc  # type: ignore[attr-defined]
    found = lf.filter(text_of.contains(ids)).select("line", ids=text_of.extract_all(ids)).collect()
    matching = lines.filter(pl.col("text").str.contains(ids))
    assert found["ids"].to_list() == matching["text"].str.extract_all(ids).to_list()
    assert found.height
    path = lines["text"].str.extract(r"(\S*/\S+/\S*)").drop_nulls()[0]
    with_path = lf.filter(text_of.contains(path, literal=True)).select("line", at=text_of.find(path, literal=True))
    wanted_lines = lines.filter(pl.col("text").str.contains(path, literal=True))
    assert with_path.collect()["at"].to_list() == wanted_lines["text"].str.find(path, literal=True).to_list()
    assert lf.select(text_of.count_matches(path, literal=True).sum()).collect().item() >= wanted_lines.height

    last = lines["day"].max()
    today = dict(lf.filter(pl.col("day") == last).tadoc.word_count("text").collect().rows())
    before = dict(lf.filter(pl.col("day") < last).tadoc.word_count("text").collect().rows())
    now = Counter(word for line in lines.filter(pl.col("day") == last)["text"] for word in line.split())
    then = Counter(word for line in lines.filter(pl.col("day") < last)["text"] for word in line.split())
    assert set(today) - set(before) == set(now) - set(then)

    triples = lf.tadoc.sequence_count("text", n=3, top=20).collect()
    counted: Counter[tuple[str, ...]] = Counter()
    for line in lines["text"]:
        found = line.split()
        counted.update(zip(found, found[1:], found[2:], strict=False))
    best = sorted(counted.values(), reverse=True)[:20]
    assert triples["count"].to_list() == best
