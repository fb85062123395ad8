"""Appending: new rows with the grammar of a column that exists."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.compress import append
from polars_tadoc.kernels.host.grammars import append as kernels
from polars_tadoc.kernels.repair import reference
from polars_tadoc.model.grammar_cache import grammars
from tests import handmade, strategies


def grammar_count(column: pl.Series) -> int:
    return len(tadoc.column.split(column))


def like(text: pl.Series, column: pl.Series, **options: object) -> pl.Series:
    """Compress like a column; the text comes back, and the words counted are those of the text."""
    got = tadoc.compress(text, like=column, **options)
    assert got.dtype == tadoc.DTYPE
    assert got.name == text.name
    assert tadoc.decompress(got).equals(text, check_names=True, null_equal=True)
    tokenizer = next((c.grammar.tokenizer for c in tadoc.column.split(got)), None)
    if tokenizer in ("words", "whitespace"):
        assert got.tadoc.word_count().equals(tadoc.compress(text, tokenizer=tokenizer).tadoc.word_count())
    return got


@given(
    before=st.lists(st.tuples(strategies.columns, st.integers(1, 5)), max_size=3),
    after=st.lists(strategies.columns, min_size=1, max_size=3),
    tokenizer=st.sampled_from(["words", "whitespace", re.compile("[a-z]+")]),
)
def test_text_comes_back(
    before: list[tuple[list[str | None], int]], after: list[list[str | None]], tokenizer: str
) -> None:
    parts = [
        tadoc.compress(pl.Series("t", rows, pl.String), tokenizer=tokenizer, rows_per_grammar=per)
        for rows, per in before
    ]
    column = pl.concat([pl.Series("t", [], tadoc.DTYPE), *parts])
    expected = [text for rows, _ in before for text in rows]
    for rows in after:
        told = tokenizer if column.null_count() == len(column) else None
        column = pl.concat([column, like(pl.Series("t", rows, pl.String), column, tokenizer=told)])
        expected += rows
    assert tadoc.decompress(column).to_list() == expected
    assert tadoc.decompress(tadoc.recompress(column)).to_list() == expected


@given(strategies.columns, st.data())
def test_rows_that_are_there_already(rows: list[str | None], data: st.DataObject) -> None:
    column = tadoc.compress(pl.Series("t", rows, pl.String))
    again = data.draw(st.lists(st.sampled_from(rows), max_size=30)) if rows else []
    both = pl.concat([column, like(pl.Series("t", again, pl.String), column, tokenizer="words")])
    assert grammar_count(both) <= max(1, grammar_count(column))


def test_unknown_words_get_one_grammar_more() -> None:
    known = [f"the {animal} sat on the {thing}" for animal in ("cat", "dog", "emu") for thing in ("mat", "hat", "bat")]
    column = tadoc.compress(pl.Series("t", known * 9))
    text = pl.Series("t", [*known * 5, "an okapi", None, *known * 5, "", "another okapi"])
    got = like(text, column)
    first = tadoc.column.split(column)[0]
    reused, other = tadoc.column.split(got)
    assert reused.key == first.key
    assert other.rows.tolist() == [45, 93]
    assert reused.grammar is first.grammar


def test_unknown_gaps_get_another_grammar() -> None:
    column = tadoc.compress(pl.Series("t", ["a b c d e f"] * 50))
    got = like(pl.Series("t", ["a b c d e f", "a; b", "a b c d e f"] * 9), column)
    assert sorted(len(corpus.rows) for corpus in tadoc.column.split(got)) == [9, 18]
    lossy = tadoc.compress(pl.Series("t", ["a b c d e f"] * 50), lossless=False)
    assert grammar_count(pl.concat([lossy, tadoc.compress(pl.Series("t", ["a; b"]), like=lossy)])) == 1


def test_a_batch_that_a_new_grammar_stores_better_gets_one() -> None:
    words = [f"w{i}" for i in range(200)]
    column = tadoc.compress(pl.Series("t", words))
    got = like(pl.Series("t", [" ".join(words)] * 500), column)
    assert tadoc.column.split(got)[0].key != tadoc.column.split(column)[0].key


def test_the_grammar_is_the_one_that_most_recent_rows_use() -> None:
    old = tadoc.compress(pl.Series("t", ["a b"] * 10))
    new = tadoc.compress(pl.Series("t", ["a b c"] * 10))
    for column, expected in ((pl.concat([old, new, old.head(1)]), old), (pl.concat([old, new]), new)):
        got = tadoc.compress(pl.Series("t", ["a b"]), like=column)
        assert tadoc.column.split(got)[0].key == tadoc.column.split(expected)[0].key


@pytest.mark.parametrize("rows", [[], [None], [None, None]])
def test_like_nothing(rows: list[None]) -> None:
    column = pl.Series("t", rows, pl.String).tadoc.compress(tokenizer="xml")
    text = pl.Series("t", ["a b", None])
    for call in (
        lambda: tadoc.compress(text, like=column),
        lambda: text.to_frame().tadoc.compress("t", like=column),
        lambda: text.to_frame().lazy().tadoc.compress("t", like=column),
        lambda: pl.col("t").tadoc.compress(like=column),  # type: ignore[attr-defined]
    ):
        with pytest.raises(ValueError, match=r"like= has only null rows.* pass tokenizer="):
            call()
    got = like(text, column, tokenizer="xml")
    assert tadoc.column.split(got)[0].grammar.tokenizer == "xml"
    assert tadoc.column.split(like(text, pl.concat([column, got])))[0].grammar.tokenizer == "xml"
    got = tadoc.compress(pl.Series("t", ["a-b"]), like=column, tokenizer="whitespace", lossless=False)
    assert tadoc.column.split(got)[0].grammar.tokenizer == "whitespace"


def test_many_nulls_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(append, "RECENT_ROWS", 2)
    column = tadoc.compress(pl.Series("t", ["a b", None, None, None]), tokenizer="xml")
    got = like(pl.Series("t", ["a b"]), column)
    assert [corpus.grammar.tokenizer for corpus in tadoc.column.split(got)] == ["xml"]


def test_tokenizer_is_inherited() -> None:
    regex = re.compile("[a-z]+", re.IGNORECASE)
    for tokenizer in ("words", "whitespace", regex):
        column = tadoc.compress(pl.Series("t", ["A-b c", "d"]), tokenizer=tokenizer)
        expected = tadoc.column.split(column)[0].grammar.tokenizer
        for given_too in (None, tokenizer):
            got = like(pl.Series("t", ["e-f A", "d"]), column, tokenizer=given_too)
            assert {corpus.grammar.tokenizer for corpus in tadoc.column.split(got)} == {expected}
    with pytest.raises(ValueError, match=r'like= has tokenizer "regex:.*", not "words"'):
        tadoc.compress(pl.Series(["a"]), like=column, tokenizer="words")


def test_lossless_is_inherited() -> None:
    column = tadoc.compress(pl.Series("t", ["a,  b"]), lossless=False)
    text = pl.Series("t", ["b,a", "c,d"])
    assert tadoc.decompress(tadoc.compress(text, like=column)).to_list() == ["b a", "c d"]
    assert tadoc.decompress(tadoc.compress(text, like=column, lossless=True)).to_list() == ["b,a", "c,d"]
    column = tadoc.compress(pl.Series("t", ["a,  b"]))
    assert tadoc.decompress(tadoc.compress(text, like=column)).to_list() == ["b,a", "c,d"]
    assert tadoc.decompress(tadoc.compress(text, like=column, lossless=False)).to_list() == ["b a", "c d"]


def test_namespaces_pass_it_on() -> None:
    column = tadoc.compress(pl.Series("t", ["a b c d"] * 50))
    key = tadoc.column.split(column)[0].key
    df = pl.DataFrame({"t": ["a b c d"] * 3})
    for got in (
        df["t"].tadoc.compress(like=column),
        df.tadoc.compress("t", like=column)["t"],
        df.lazy().tadoc.compress("t", like=column).collect()["t"],
        df.select(pl.col("t").tadoc.compress(like=column))["t"],
    ):
        assert tadoc.column.split(got)[0].key == key


def test_errors() -> None:
    for wrong in (pl.Series(["a"]), pl.Series([1])):
        with pytest.raises(tadoc.errors.NotCompressedError, match="like="):
            tadoc.compress(pl.Series(["a"]), like=wrong)
    damaged = handmade.column("TADOC1nonsense", [[0]])
    with pytest.raises(tadoc.errors.InvalidGrammarError):
        tadoc.compress(pl.Series(["a"]), like=damaged)


@given(strategies.grammars(), st.integers(0, 2**64 - 1))
def test_parse_rows(example: tuple[int, list[list[int]], list[int], list[list[int]]], random: int) -> None:
    size, bodies, levels, rows = example
    rows_of_words = reference.expand_rows(size, bodies, rows, range(size))
    rows_of_words = [words[:40] for words in rows_of_words]
    grammar = handmade.grammar(handmade.words(size), bodies, levels)
    starts = np.cumsum([0, *(len(row) for row in rows_of_words)])
    symbols = np.array([word for row in rows_of_words for word in row], np.uint32)
    sizes = np.diff(starts)
    space = len(grammar.symbols) + 1
    edges = np.zeros(3 << 10, np.uint32)
    seed = np.uint64(random)
    rules, onward = np.zeros(space, np.uint32), np.zeros(space, np.uint64)
    begins = np.zeros(size + len(bodies), np.bool_)
    kernels.build_trie(size, grammar.rule_offsets, grammar.symbols, seed, edges, rules, onward, begins)
    kernels.parse_rows(seed, edges, rules, onward, begins, starts[:-1], symbols, sizes)
    parsed = [symbols[first : first + n].tolist() for first, n in zip(starts[:-1], sizes, strict=True)]
    assert reference.expand_rows(size, bodies, parsed, range(size)) == rows_of_words
    if len(set(map(tuple, bodies))) == len(bodies):  # of rules with the same body only the first is ever used
        assert sizes.tolist() == reference.fewest_symbols(size, bodies, rows_of_words)


def test_long_rows_are_parsed_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    row = " ".join(f"w{i % 7}" for i in range(2 * kernels.PIECE + 5))
    column = tadoc.compress(pl.Series("t", [row]))
    assert grammar_count(pl.concat([column, like(pl.Series("t", [row]), column)])) == 1


def test_a_rule_of_many_symbols_is_found() -> None:
    document = [*range(1, 10_001)]
    column = handmade.column(handmade.grammar(handmade.words(10_001), [document]), [[10_001]])
    recent = append.RecentGrammar.of(column)
    assert recent is not None
    sizes, symbols = np.array([10_000]), np.array(document, np.uint32)
    append.Parser.of(recent.corpus.key, recent.corpus.grammar).parse(np.array([0]), symbols, sizes)
    assert symbols[: sizes[0]].tolist() == [10_001]


def test_many_rules_at_one_position() -> None:
    rows = [" ".join(["a"] * n) for n in range(1, 300)]
    column = tadoc.compress(pl.Series("t", rows * 2))
    assert tadoc.decompress(like(pl.Series("t", rows[::-1]), column)).to_list() == rows[::-1]


def fastest(call: Callable[[], object]) -> float:
    """Seconds of processor time that the fastest of three calls takes."""
    seconds = []
    for _ in range(3):
        start = time.process_time()
        call()
        seconds.append(time.process_time() - start)
    return min(seconds)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["batch_repair", "sequitur"])
def test_runs_of_few_words_take_little_longer_than_compressing(method: str) -> None:
    few = np.where(np.random.default_rng(0).random((5, 20_000)) < 0.05, "1", "0")
    text = pl.Series("t", [" ".join(row) for row in few])
    column = tadoc.compress(text, method=method)
    like(text, column)
    assert fastest(lambda: tadoc.compress(text, like=column, method=method)) < 8 * fastest(
        lambda: tadoc.compress(text, method=method)
    )


@pytest.mark.slow
def test_many_rules_that_match_everywhere_take_a_bounded_time() -> None:
    runs = [[0] * n for n in range(2, 49)]  # rule n - 2 is symbol n - 1
    triples = [[a, b, c] for a in range(48) for b in range(48) for c in range(48) if max(a, b, c) > 0]
    grammar = handmade.grammar(["a"], runs + triples, [0, len(runs), len(runs) + len(triples)])
    column = handmade.column(grammar, [[0]])
    text = pl.Series("t", [" ".join(["a"] * 4000)])
    like(text, column)
    recent = append.RecentGrammar.of(column)
    assert recent is not None
    parser = append.Parser.of(recent.corpus.key, recent.corpus.grammar)

    def parse() -> None:
        sizes, symbols = np.array([4000]), np.zeros(4000, np.uint32)
        parser.parse(np.array([0]), symbols, sizes)
        parsed = reference.expand_rows(1, runs + triples, [symbols[: sizes[0]].tolist()], range(1))
        assert parsed == [[0] * 4000]

    assert fastest(parse) < 1


def test_no_grammar_makes_edges_collide() -> None:
    length, words = 1 << 14, 1 << 10
    mask = (1 << (2 * length).bit_length()) - 1
    node = np.arange(length, dtype=np.uint64)[:, None] << np.uint64(32)
    with np.errstate(over="ignore"):  # one multiplication by a number that all know
        hashes = (node | np.arange(words, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
    crafted = ((hashes >> np.uint64(32)) & np.uint64(mask)).argmin(axis=1)
    random = np.random.default_rng(0).integers(words, size=length)
    seconds = []
    for body in (random, crafted):
        grammar = handmade.grammar(handmade.words(words), [body.tolist()])
        seconds.append(fastest(lambda grammar=grammar: append.Parser._prepare(grammar)))
    assert seconds[1] < 10 * seconds[0]


def test_what_is_only_compared_is_not_kept() -> None:
    def categories(marker: str) -> int:
        """How many categories there are; the marker is a new one, the last."""
        return int(pl.Series([marker], dtype=tadoc.STORAGE.fields[0].dtype).to_physical().item())

    text = pl.Series("t", [f"kept only if it is {n} or so" for n in ("one", "two", "three")] * 40)
    column = tadoc.compress(text)
    before, cached = categories("before"), len(grammars)
    got = tadoc.compress(text.filter(text.str.contains("one")), like=column)
    assert grammar_count(pl.concat([column, got])) == 1
    assert categories("after") == before + 1
    assert len(grammars) == cached


@pytest.mark.parametrize("name", ["logs_dmesg", "docs_peps", "multi_cldr_annotations"])
def test_corpora(name: str, corpus: Callable[[str], pl.DataFrame]) -> None:
    text = corpus(name)["text"].head(2000)
    text = text.filter(text.str.len_bytes().cum_sum() < 1_000_000)
    half = text.head(len(text) // 2)
    column = tadoc.compress(half)
    got = like(text, column)
    assert tadoc.decompress(pl.concat([column, got])).equals(pl.concat([half, text]))


def test_like_a_column_of_the_empty_regex() -> None:
    column = tadoc.compress(pl.Series("t", ["a b"]), tokenizer=re.compile(""))
    assert grammar_count(pl.concat([column, like(pl.Series("t", ["a b"]), column)])) == 1


@pytest.mark.parametrize("name", ["of tomorrow", "regex:("])
def test_like_a_column_of_a_tokenizer_that_is_not_there(name: str) -> None:
    grammar = dataclasses.replace(handmade.grammar(["a"]), tokenizer=name)
    with pytest.raises(tadoc.errors.InvalidGrammarError, match="does not exist in this release"):
        tadoc.compress(pl.Series(["a"]), like=handmade.column(grammar, [[0]]))
