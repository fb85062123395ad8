from __future__ import annotations

import time
from itertools import pairwise

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.analytics.info import SCHEMA
from tests import handmade
from tests.strategies import columns


@given(rows=columns, rows_per_grammar=st.integers(1, 20))
def test_counts_what_is_there(rows: list[str | None], rows_per_grammar: int) -> None:
    column = tadoc.compress(pl.Series(rows, dtype=pl.String), rows_per_grammar=rows_per_grammar)
    table = tadoc.info(column)
    assert (table.height, table.schema) == (1, SCHEMA)
    row = table.to_dicts()[0]
    corpora = tadoc.column.split(column)
    text = [row for row in rows if row is not None]
    assert row["rows"] == len(rows)
    assert row["grammars"] == len(corpora)
    assert row["words_only"] == sum(c.grammar.rule_count == 0 for c in corpora)
    assert row["text_bytes"] == sum(len(t.encode()) for t in text)
    assert row["words"] == sum(column.tadoc.word_count()["count"])
    assert row["symbols"] == sum(len(c.roots) + len(c.grammar.symbols) for c in corpora)
    assert row["rules"] == sum(c.grammar.rule_count for c in corpora)
    assert row["vocabulary"] == sum(c.grammar.vocabulary_size for c in corpora)
    assert row["ratio"] == (row["text_bytes"] / row["bytes"] if row["bytes"] else None)


def test_schema() -> None:
    df = pl.DataFrame({"text": ["a b c"]}).tadoc.compress("text")
    assert df.tadoc.info().schema == SCHEMA
    assert df["text"].tadoc.info().schema == SCHEMA
    assert df.clear().tadoc.info().schema == SCHEMA
    assert isinstance(tadoc.info(df["text"]), pl.DataFrame)


def test_a_known_column() -> None:
    grammar = handmade.grammar(["a", "bé"], [[0, 1], [2, 2, 1]], gaps=["\n"])
    column = handmade.column(grammar, [[3, 0], [2], None], [b"\x00\x01", b"", None])
    row = tadoc.info(column).to_dicts()[0]
    # "\na bé a bé bé a" and "a bé"
    assert {name: value for name, value in row.items() if name not in ("bytes", "grammar_bytes", "ratio")} == {
        "rows": 3,
        "grammars": 1,
        "words_only": 0,
        "words": 8,
        "vocabulary": 2,
        "rules": 2,
        "symbols": 8,
        "levels": 2,
        "text_bytes": 1 + len("a bé a bé bé a".encode()) + len("a bé".encode()),
    }


def test_replaced_gaps_in_nested_rules() -> None:
    bodies = [[0, 1], [2, 0, 2], [3, 3, 1]]  # each gap after which a rule ends is asked for, and each inside one
    predicted = [1, 2, 0, 1, 0, 2, 1, 0, 1, 2]
    grammar = handmade.grammar(["a", "bé"], bodies, gaps=["--", "+++"], predicted_gaps=predicted)
    row = [4, 2, 4, 0]
    words = 11 + 2 + 11 + 1
    streams = [
        b"".join(bytes([next_ - before - 1, code]) for before, next_ in pairwise([-1, *places]))
        for code in (1, 2)
        for places in (range(words + 1), range(0, words + 1, 3), range(1, words, 2), [10, 11, 13], [24], [25], [])
    ]
    column = handmade.column(grammar, [row] * len(streams), streams)
    text = tadoc.decompress(column)
    assert tadoc.info(column)["text_bytes"].to_list() == [text.str.len_bytes().sum()]
    for at in range(len(column)):
        assert tadoc.info(column.slice(at, 1))["text_bytes"].to_list() == [len(text[at].encode())]


def test_time_grows_as_the_replaced_gaps_do() -> None:
    words = [f"w{i}" for i in range(400_000)]
    one, two = " ".join(words), "  ".join(words)
    column = tadoc.compress(pl.Series([one, one, one, two]))  # one rule of all words, and a row that replaces its gaps
    tadoc.info(column.head(1))  # not to be timed: the grammar's tables, the kernel's compilation
    started = time.perf_counter()
    size = tadoc.info(column)["text_bytes"].to_list()
    assert time.perf_counter() - started < 5  # a search from the rule's start for each gap takes a minute
    assert size == [3 * len(one) + len(two)]


def test_only_rows_that_are_left_count() -> None:
    df = pl.DataFrame({"text": ["a b c", "d", None]}).tadoc.compress("text")
    row = df.tail(2).tadoc.info().row(0, named=True)
    assert (row["rows"], row["words"], row["text_bytes"], row["vocabulary"]) == (2, 1, 1, 4)


def test_nothing() -> None:
    row = tadoc.info(tadoc.compress(pl.Series([], dtype=pl.String))).to_dicts()[0]
    assert row == {**dict.fromkeys(SCHEMA, 0), "ratio": None}
