"""Subscribers come and go while XML messages stream by."""

from __future__ import annotations

from pathlib import Path

import polars as pl
from lxml import etree

import polars_tadoc as tadoc
from tests.trials.corpora import messages

FIRST = {
    "planets": "//system/star/planet",
    "binaries": "//binary",
    "massive": "//star[mass]/planet",
    "open": "//planet/list",
}
LATER = {"named": "//planet[name]", "stars of binaries": "//binary//star"}


def run(folder: Path, size: str) -> None:
    """Deliver in batches, with a set that changes and is saved between them; lxml delivers the same."""
    stream = messages(size)
    twigs = tadoc.TwigSet(FIRST)
    queries = dict(FIRST)
    step = -(-stream.height // 6)
    for number, batch in enumerate(stream.iter_slices(step)):
        if number == 2:
            twigs.update(LATER)
            queries.update(LATER)
        if number == 4:
            twigs.remove("open")
            del queries["open"]
            twigs.save(folder / "subscriptions.json")
            twigs = tadoc.TwigSet.load(folder / "subscriptions.json")
        given = batch.with_columns(to=pl.col("text").tadoc.twig_filter(twigs))
        compressed = batch.tadoc.compress("text", tokenizer="xml")
        again = compressed.with_columns(to=pl.col("text").tadoc.twig_filter(twigs))
        paths = {name: etree.XPath(query) for name, query in queries.items()}
        for text, to, same in zip(batch["text"], given["to"], again["to"], strict=True):
            document = etree.fromstring(text.encode())
            wanted = {name for name, path in paths.items() if path(document)}
            assert set(to) == set(same) == wanted
    packed = stream.lazy().tadoc.compress("text", tokenizer="xml")
    packed.tadoc.sink_packed(folder / "messages.parquet")
    counted = tadoc.scan_packed(folder / "messages.parquet").tadoc.twig_filter("text", twigs).collect()
    found = counted.group_by("query").len().sort("query")
    documents = [etree.fromstring(text.encode()) for text in stream["text"]]
    wanted = {name: sum(bool(etree.XPath(query)(one)) for one in documents) for name, query in queries.items()}
    assert dict(found.with_columns(pl.col("query").cast(pl.String)).rows()) == {k: v for k, v in wanted.items() if v}
