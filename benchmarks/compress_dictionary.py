"""Columns compressed with a dictionary: ``python -m benchmarks.compress_dictionary``.

For each corpus, in eight grammars and with a dictionary of all its words: bytes of the payloads, the time of
``compress``, of putting the eight vocabularies together, and of an inverted index, each beside those without a
dictionary; results are compared first. Then a frame of one row, with dictionaries of more and more words (all corpora's
most frequent ones): the bytes that they cost.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import polars as pl

import polars_tadoc as tadoc
from benchmarks import corpora, side_by_side
from polars_tadoc.model.vocabulary import unify

GRAMMARS = 8
SIZES = [1_000, 10_000, 100_000, 1_000_000]


def payload_bytes(column: pl.Series) -> int:
    """Bytes of a column's payloads, each counted once."""
    return int(column.ext.storage().struct.field("grammar").unique().cast(pl.String).str.len_bytes().sum())


def counts(text: pl.Series) -> pl.DataFrame:
    """Words and how often they occur."""
    table = tadoc.word_count(tadoc.compress(text))
    return pl.DataFrame(table).with_columns(pl.col("word").cast(pl.String))


def main() -> None:
    """Print the tables."""
    given = corpora.arguments(__doc__ or "").parse_args()
    print(corpora.machine())
    words = []
    for name in corpora.names(given.corpora):
        name, text = corpora.load(name)
        words.append(counts(text))
        dictionary = tadoc.Dictionary.from_words(words[-1]["word"])
        rows = -(-len(text) // GRAMMARS)
        ways: dict[str, dict[str, Any]] = {"without": {}, "dictionary": {"dictionary": dictionary}}
        columns = {way: tadoc.compress(text, rows_per_grammar=rows, **how) for way, how in ways.items()}
        expected, found = (tadoc.inverted_index(column) for column in columns.values())
        if not pl.DataFrame(expected).equals(pl.DataFrame(found)):
            raise SystemExit("the results differ")
        print(f"\n{name}: {len(dictionary):,} words")
        for way, column in columns.items():
            print(f"  {way}: {payload_bytes(column):,} bytes of payloads")
        own = {way: [corpus.grammar.words for corpus in tadoc.column.split(column)] for way, column in columns.items()}
        for what, calls in {
            "compress": {way: partial(tadoc.compress, text, rows_per_grammar=rows, **how) for way, how in ways.items()},
            "unify": {way: partial(unify, own[way]) for way in ways},
            "inverted_index": {way: partial(tadoc.inverted_index, column) for way, column in columns.items()},
        }.items():
            taken = side_by_side.times(calls, given.repeat)
            without, dictionary_ms = (side_by_side.median_ms(taken, way) for way in ways)
            ratio = side_by_side.ratio(taken, "without", "dictionary")
            print(f"  {what}: {without:,.2f} ms without, {dictionary_ms:,.2f} ms with it, {ratio:.2f} times as fast")
    total = pl.concat(words).group_by("word").agg(pl.col("count").sum()).sort("count", "word", descending=[True, False])
    one = text.head(1)
    print(f"\none row of {name}: {payload_bytes(tadoc.compress(one)):,} bytes")
    for size in SIZES:
        some = tadoc.Dictionary.from_words(total["word"].head(size))
        more = payload_bytes(tadoc.compress(one, dictionary=some)) - payload_bytes(tadoc.compress(one))
        print(f"  {len(some):>9,} words: {more:,} bytes more, {more / len(some):.2f} a word")


if __name__ == "__main__":
    main()
