"""Publish and subscribe: XML messages arrive in small batches; a thousand XPath subscriptions select the receivers."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import polars as pl

import polars_tadoc as tadoc

DATA = Path(__file__).parent / "data"
TEI = {"t": "http://www.tei-c.org/ns/1.0"}
BATCH = 250
PATTERNS = {
    "says": '//t:sp[@who="{who}"]',
    "acts": '//t:sp[@who="{who}"][.//t:stage]',
    "acts first": '//t:sp[@who="{who}"][t:stage]/t:p',
    "acts in speech": '//t:sp[@who="{who}"]/t:p/t:stage',
    "acts twice": '//t:sp[@who="{who}"][t:stage]/t:p/t:stage',
    "pauses": '//t:sp[@who="{who}"]//t:stage[text()="Пауза."]',
    "in verse": '//t:sp[@who="{who}"]//t:l',
    "acts in verse": '//t:sp[@who="{who}"]/t:lg[t:l][t:stage]',
    "verse and prose": '//t:sp[@who="{who}"][t:p][.//t:l]',
    "explained": '//t:sp[@who="{who}"]//t:note',
}
"""XPath conditions on a character in a play; each message is a speech of one character."""


def subscribe(speeches: pl.Series) -> tadoc.TwigSet:
    """Subscribe to all characters in all ways, up to a thousand."""
    who = speeches.str.extract('who="([^"]+)"').drop_nulls().unique(maintain_order=True)
    wanted = {f"{one[1:]} {what}": query.format(who=one) for what, query in PATTERNS.items() for one in who}
    return tadoc.TwigSet(dict(list(wanted.items())[:1000]), namespaces=TEI)


def deliver(batch: pl.DataFrame, subscriptions: tadoc.TwigSet) -> pl.DataFrame:
    """Give each message the names of the subscriptions that it matches."""
    return batch.with_columns(to=pl.col("text").tadoc.twig_filter(subscriptions))


def main() -> None:
    """Run the stream."""
    stream = pl.read_parquet(DATA / "xml" / "plays.parquet")
    subscriptions = subscribe(stream["text"])
    deliver(stream.head(1), subscriptions)  # compiles kernels on the first call

    print(f"# {len(stream):,} speeches of four plays arrive, {BATCH} at a time; {len(subscriptions):,} subscriptions.")
    seconds, delivered = [], []
    for number, batch in enumerate(stream.iter_slices(BATCH)):
        if number == 4:
            subscriptions.update({"any pause": '//t:stage[text()="Пауза."]', "any verse": "//t:lg/t:l"})
            for what in PATTERNS:
                subscriptions.remove(f"astrov {what}")
            print(f"# Two are added and the ten to Astrov removed; the stream continues with {len(subscriptions)}.")
        start = time.perf_counter()
        delivered.append(deliver(batch, subscriptions))
        seconds.append(time.perf_counter() - start)
        megabytes, deliveries = batch["text"].str.len_bytes().sum() / 1e6, delivered[-1]["to"].list.len().sum()
        print(
            f"batch {number:2}: {len(batch)} speeches, {deliveries:4} deliveries in {1e3 * seconds[-1]:5.1f} ms: "
            f"{len(batch) / seconds[-1]:7,.0f} speeches/s, {megabytes / seconds[-1]:5.1f} MB/s"
        )
    whole = pl.concat(delivered)
    print(f"in all {len(whole) / sum(seconds):,.0f} speeches a second, each against a thousand queries")

    print("\n# Who speaks in verse, and how often?")
    to = whole.select("play", name=pl.col("to")).explode("name").drop_nulls()
    verse = to.filter(pl.col("name").str.ends_with(" in verse"), ~pl.col("name").str.contains("acts"))
    print(verse.group_by("play", "name").len().sort("len", "name", descending=[True, False]).head(5))

    print("\n# A set is saved and loaded unchanged.")
    with tempfile.TemporaryDirectory() as folder:
        subscriptions.save(f"{folder}/subscriptions.json")
        print(tadoc.TwigSet.load(f"{folder}/subscriptions.json") == subscriptions)

    print("\n# The same from a compressed column; its grammar is read once.")
    packed = stream.select("play", text=pl.col("text").tadoc.compress(tokenizer="xml"))
    found = packed.with_row_index("speech").tadoc.twig_filter("text", subscriptions, id="speech")
    print(found.head(3))


if __name__ == "__main__":
    main()
