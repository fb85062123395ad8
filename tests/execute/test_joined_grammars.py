"""Several grammars read as one: joined rules and rows expand to the same words, and calls return the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.engine.choose import CPU, GPU, Engine
from polars_tadoc.execute.joined_grammars import join_grammars, joined
from polars_tadoc.execute.stages import Stages
from polars_tadoc.kernels.traverse.rules import GrammarArrays
from polars_tadoc.model.column import split
from polars_tadoc.model.corpus import Corpus
from polars_tadoc.model.kept_columns import split_and_keep
from polars_tadoc.runtime.cache import ByteLRU
from polars_tadoc.traversal import selector
from polars_tadoc.traversal.source import Source

ROWS = st.lists(st.none() | st.lists(st.sampled_from(["a", "b", "c", "d", "ü"]), max_size=12).map(" ".join), max_size=6)

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("word_count", {}),
    ("word_count", {"top": 2}),
    ("word_count", {"strategy": "bottom_up"}),
    ("sort", {"min_count": 2}),
    ("inverted_index", {}),
    ("term_vector", {}),
    ("term_vector", {"top": 1}),
    ("sequence_count", {"n": 2}),
    ("sequence_count", {"n": 3, "top": 2}),
    ("ranked_inverted_index", {"n": 2}),
    ("ranked_inverted_index", {"n": 1, "top": 1, "min_count": 2}),
    ("cooccurrence", {"window": 2}),
    ("word_count", {"lowercase": True, "stopwords": ["b"]}),
    ("sequence_count", {"n": 2, "stopwords": ["a"]}),
]


def column_of(*parts: list[str | None]) -> pl.Series:
    """A column with a grammar for each part."""
    return pl.concat([pl.Series("text", part, pl.String).tadoc.compress() for part in parts])  # type: ignore[attr-defined]


def words_of(grammar: GrammarArrays, vocabulary: list[str], symbols: np.ndarray) -> list[str]:
    """Expand symbols, one after another."""
    found: list[str] = []
    for symbol in symbols.tolist():
        rule = symbol - len(vocabulary)
        if rule < 0:
            found.append(vocabulary[symbol])
        else:
            body = grammar.symbols[grammar.rule_offsets[rule] : grammar.rule_offsets[rule + 1]]
            found += words_of(grammar, vocabulary, body)
    return found


def texts_of(corpus: Corpus) -> dict[int, list[str]]:
    """The words of each row."""
    vocabulary = corpus.grammar.vocabulary.to_pylist()
    return {
        int(row): words_of(
            corpus.grammar, vocabulary, corpus.roots[corpus.root_offsets[k] : corpus.root_offsets[k + 1]]
        )
        for k, row in enumerate(corpus.rows)
    }


@given(st.lists(ROWS, min_size=2, max_size=4), st.randoms())
def test_joined_rows_expand_to_the_same_words(parts: list[list[str | None]], random: Any) -> None:
    column = column_of(*[[text and f"{text} {text} {text}" for text in part] for part in parts])
    order = list(range(len(column)))
    random.shuffle(order)  # rows of grammars take turns
    for given_column in (column, column.gather(order)):
        owner = given_column
        corpora = split_and_keep(given_column, owner)
        whole = joined(corpora, CPU.budget)
        assert len(whole) == min(len(corpora), 1)
        expected: dict[int, list[str]] = {}
        for corpus in corpora:
            expected |= texts_of(corpus)
        assert {row: words for one in whole for row, words in texts_of(one).items()} == dict(sorted(expected.items()))
        for one in whole:
            assert list(one.rows) == sorted(one.rows)
            grammar = one.grammar
            checked = np.zeros(grammar.rule_count, np.uint64)
            for rule in range(grammar.rule_count):
                checked[rule] = len(
                    words_of(grammar, grammar.vocabulary.to_pylist(), np.array([rule + grammar.vocabulary_size]))
                )
            assert checked.tolist() == grammar.expansion_lengths.tolist()
            assert len(set(grammar.vocabulary.to_pylist())) == grammar.vocabulary_size


@given(st.lists(ROWS, min_size=2, max_size=3))
def test_levels_of_joined_rules_name_lower_levels_only(parts: list[list[str | None]]) -> None:
    grammars = [
        one.grammar for one in split(column_of(*[[text and f"{text} x {text}" for text in own] for own in parts]))
    ]
    if not grammars:
        return
    made = join_grammars(grammars).grammar
    assert made.level_offsets[0] == 0
    assert made.level_offsets[-1] == made.rule_count == sum(one.rule_count for one in grammars)
    for level in range(made.level_count):
        first, stop = made.level_offsets[level : level + 2]
        own = made.symbols[made.rule_offsets[first] : made.rule_offsets[stop]]
        assert (own < made.vocabulary_size + first).all()


class Pretended(Engine):
    """The CPU with a cache, that takes rows as a device does."""

    @property
    def name(self) -> str:
        """That of an engine on which grammars are joined."""
        return "gpu"

    @property
    def place(self) -> str:
        """A device."""
        return "pretended:0"


@pytest.mark.parametrize("expands", [False, True])
@pytest.mark.parametrize(("call", "options"), CALLS)
def test_calls_on_joined_grammars_agree(
    call: str, options: dict[str, Any], expands: bool, monkeypatch: pytest.MonkeyPatch
) -> None:

    def milliseconds(source: Source, *_: Any) -> float | None:
        return -1.0 if expands and source.word_total is not None else None

    monkeypatch.setattr(selector, "expanded_milliseconds", milliseconds)
    column = column_of(
        ["to be or not to be to be or", None, "be or not B b"], ["or not to be", "", "zoo b b"], [None, "a b a b a b"]
    )
    expected = getattr(tadoc, call)(column, engine="cpu", **options).to_pylist()
    device = Pretended(CPU.kernels, ByteLRU(lambda: 1 << 30, lambda value: int(value.nbytes)))
    monkeypatch.setattr("polars_tadoc.execute.aggregation.choose", lambda *_: device)
    monkeypatch.setattr(Stages, "find_on", None)  # called for each grammar that stays apart
    for _ in range(2):
        assert getattr(tadoc, call)(column, **options).to_pylist() == expected
    if expands and call in ("ranked_inverted_index", "cooccurrence", "sequence_count") and "stopwords" not in options:
        (rows,) = [key for key in device.resident._values if key.endswith(":words")]  # type: ignore[union-attr]
        assert rows.startswith("pretended:0:")


@pytest.mark.parametrize(("call", "options"), CALLS)
def test_calls_on_several_grammars_agree(engine: str, call: str, options: dict[str, Any]) -> None:
    texts = ["to be or not to be to be or", None, "be or not B b", "or not to be", "", "zoo b b", None, "a b a b a"]
    order = [0, 3, 6, 1, 4, 7, 2, 5]
    turns = column_of(texts[:3], texts[3:6], texts[6:]).gather(order)
    apart = pl.Series("text", texts).gather(order)
    one = apart.tadoc.compress()  # type: ignore[attr-defined]
    expected = getattr(tadoc, call)(one, engine="cpu", **options).to_pylist()
    for _ in range(2):
        assert getattr(tadoc, call)(turns, engine=engine, **options).to_pylist() == expected


def test_grammars_of_two_tokenizers_stay_apart() -> None:
    one = pl.Series("text", ["to be"]).tadoc.compress()  # type: ignore[attr-defined]
    other = pl.Series("text", ["to-be"]).tadoc.compress(tokenizer="whitespace")  # type: ignore[attr-defined]
    column = pl.concat([one, other])
    assert len(joined(split_and_keep(column, column), CPU.budget)) == 2


def test_corpora_that_are_not_kept_stay_apart() -> None:
    assert len(joined(split(column_of(["to be"], ["or not"])), CPU.budget)) == 2


def test_grammars_beyond_the_budget_of_the_cache_stay_apart() -> None:
    """That of the engine: a small device's does not matter to the CPU."""
    column = column_of(["to be"], ["or not"])
    corpora = split_and_keep(column, column)
    with tadoc.Config(device_cache_bytes=10):
        assert len(joined(corpora, GPU.budget)) == 2
        assert len(joined(corpora, CPU.budget)) == 1
    with tadoc.Config(host_cache_bytes=10):
        assert len(joined(corpora, CPU.budget)) == 2
