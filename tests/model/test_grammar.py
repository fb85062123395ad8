"""The Arrow form of a grammar and every check of it."""

from __future__ import annotations

from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given

import polars_tadoc as tadoc
from polars_tadoc.errors import InvalidGrammarError, LimitExceededError
from polars_tadoc.model.grammar import ARROW_TYPE
from tests import handmade
from tests.strategies import columns, grammars


def assert_same(a: tadoc.Grammar, b: tadoc.Grammar) -> None:
    assert a.vocabulary.equals(b.vocabulary)
    assert a.gap_vocabulary.equals(b.gap_vocabulary)
    assert a.rule_offsets.tolist() == b.rule_offsets.tolist()
    assert a.symbols.tolist() == b.symbols.tolist()
    assert a.level_offsets.tolist() == b.level_offsets.tolist()
    assert a.predicted_gaps.tolist() == b.predicted_gaps.tolist()
    assert a.tokenizer == b.tokenizer


@given(rows=columns)
def test_round_trip(rows: list[str | None]) -> None:
    for corpus in tadoc.column.split(tadoc.compress(pl.Series(rows, dtype=pl.String))):
        array = corpus.grammar.to_arrow()
        assert array.type == ARROW_TYPE
        assert_same(tadoc.Grammar.from_arrow(array), corpus.grammar)


@given(made=grammars())
def test_round_trip_of_any_grammar(made: Any) -> None:
    vocabulary_size, bodies, level_offsets, _ = made
    grammar = handmade.grammar(handmade.words(vocabulary_size), bodies, level_offsets, ["\n"])
    assert_same(tadoc.Grammar.from_arrow(grammar.to_arrow()), grammar)


def test_slice_of_an_array() -> None:
    arrays = pa.concat_arrays([handmade.struct(), handmade.struct(vocabulary=["c", "d"]), handmade.struct()])
    assert tadoc.Grammar.from_arrow(arrays.slice(1, 1)).vocabulary.to_pylist() == ["c", "d"]


def test_vocabulary_may_be_a_slice() -> None:
    words = pa.array(["skipped", "a", "bé", "skipped too"], pa.large_string()).slice(1, 2)
    grammar = handmade.grammar(["a", "bé"])
    sliced = tadoc.Grammar(
        words,
        grammar.rule_offsets,
        grammar.symbols,
        grammar.level_offsets,
        words.slice(2, 0),
        grammar.predicted_gaps,
        "words",
    )
    assert sliced.words.offsets.tolist() == [0, 1, 4]
    assert bytes(sliced.words.data[:4]).decode() == "abé"
    assert_same(tadoc.Grammar.from_arrow(sliced.to_arrow()), grammar)


WRONG = {
    "rule_offsets does not start with 0": [{"rule_offsets": [1, 2, 4]}, {"rule_offsets": []}],
    "rule_offsets falls after rule 1": [{"rule_offsets": [0, 5, 4]}, {"rule_offsets": [0, 2, 1]}],
    "rule_offsets does not end at the number of symbols": [
        {"rule_offsets": [0, 2, 3]},
        {"rule_offsets": [0, 2, 5]},
        {"rule_offsets": [0], "level_offsets": [0]},
        {"symbols": []},
        {"rule_offsets": [0, 2, 0xFFFFFFFF]},
    ],
    r"level_offsets does not ascend from 0 to the number of rules \(level 0\)": [
        {"level_offsets": []},
        {"level_offsets": [0]},
        {"level_offsets": [1, 2]},
        {"level_offsets": [0, 1]},
        {"level_offsets": [0, 3]},
        {"level_offsets": [0, 0xFFFFFFFF]},
    ],
    r"level_offsets does not ascend from 0 to the number of rules \(level 1\)": [
        {"level_offsets": [0, 3, 2]},
        {"level_offsets": [0, 2, 1, 2]},
    ],
    "symbol 3 is neither a word nor a rule": [{"symbols": [0, 1, 2, 4]}, {"symbols": [0, 1, 2, 0xFFFFFFFF]}],
    "rule 0 uses a rule that is not on a lower level": [
        {"symbols": [2, 1, 2, 2]},  # itself
        {"symbols": [3, 1, 2, 2]},  # a cycle of two
        {"vocabulary": ["a"]},  # symbol 1 is now rule 0
    ],
    "rule 1 uses a rule that is not on a lower level": [
        {"symbols": [0, 1, 2, 3]},
        {"level_offsets": [0, 2]},  # a rule of its own level
    ],
    "format version 99, this release reads 2": [{"version": 99}],
    "format version None": [{"version": None}],
    "the tokenizer's name is missing": [{"tokenizer": None}],
    "vocabulary contains nulls": [{"vocabulary": None}, {"vocabulary": ["a", None]}],
    "rule_offsets contains nulls": [{"rule_offsets": None}, {"rule_offsets": [0, None, 4]}],
    "symbols contains nulls": [{"symbols": None}, {"symbols": [0, 1, 2, None]}],
    "level_offsets contains nulls": [{"level_offsets": None}, {"level_offsets": [0, None, 2]}],
    "predicted_gaps does not have one entry for each word and symbol": [
        {"predicted_gaps": []},
        {"predicted_gaps": [0] * 5},
        {"predicted_gaps": [0] * 7},
    ],
    "predicted_gaps has a code that gap_vocabulary lacks": [
        {"predicted_gaps": [0, 2, 0, 0, 0, 0]},
        {"predicted_gaps": [0, 0, 0, 0, 0xFFFFFFFF, 0]},
        {"gap_vocabulary": []},
    ],
    "predicted_gaps contains nulls": [{"predicted_gaps": None}, {"predicted_gaps": [0, 0, 0, None, 0, 0]}],
    "gap_vocabulary contains nulls": [{"gap_vocabulary": None}, {"gap_vocabulary": [None]}],
}


@pytest.mark.parametrize(("message", "changes"), [(m, c) for m, cases in WRONG.items() for c in cases])
def test_says_what_is_wrong(message: str, changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidGrammarError, match=f"^grammar: .*{message}"):
        tadoc.Grammar.from_arrow(handmade.struct(**changes))


def test_wrong_types() -> None:
    array = handmade.struct()
    for other in (
        pa.StructArray.from_arrays(array.flatten()[:7], fields=list(ARROW_TYPE)[:7]),
        pa.array([1]),
        pa.array([{"symbols": [1]}]),
        array.cast(pa.struct([f.with_type(pa.int64()) if f.name == "version" else f for f in ARROW_TYPE])),
    ):
        with pytest.raises(InvalidGrammarError, match="the Arrow type is"):
            tadoc.Grammar.from_arrow(other)


def test_not_one_struct() -> None:
    array = handmade.struct()
    for other in (array.slice(0, 0), pa.concat_arrays([array, array]), pa.nulls(1, ARROW_TYPE)):
        with pytest.raises(InvalidGrammarError, match="expected one struct"):
            tadoc.Grammar.from_arrow(other)


def test_words_that_are_not_utf_8() -> None:
    array = handmade.struct()
    offsets = pa.py_buffer(pa.array([0, 1, 2], pa.int64()).buffers()[1])
    broken = pa.LargeStringArray.from_buffers(2, offsets, pa.py_buffer(b"a\xff"))
    cell = pa.LargeListArray.from_arrays(pa.array([0, 2], pa.int64()), broken)
    with pytest.raises(InvalidGrammarError, match=r"broken Arrow data: .*UTF8"):
        tadoc.Grammar.from_arrow(pa.StructArray.from_arrays([cell, *array.flatten()[1:]], fields=list(ARROW_TYPE)))


def test_doubling_chain_is_refused_before_it_is_expanded() -> None:
    grammar = handmade.grammar(["a"], [[k, k] for k in range(60)])
    with pytest.raises(LimitExceededError, match=r"rule 31 expands to more than 2,147,483,648 words.*expansion_limit"):
        tadoc.Grammar.from_arrow(grammar.to_arrow())
    with tadoc.Config(expansion_limit=1 << 50):
        fresh = tadoc.Grammar.from_arrow(handmade.grammar(["a"], [[k, k] for k in range(50)]).to_arrow())
        assert int(fresh.expansion_lengths[-1]) == 1 << 50


def test_chain_of_more_rules_than_64_bits_count() -> None:
    grammar = handmade.grammar(["a"], [[k] * 8 for k in range(100)])
    with pytest.raises(LimitExceededError):
        tadoc.Grammar.from_arrow(grammar.to_arrow())


def test_rules_shorter_than_two_symbols_are_refused() -> None:
    for bodies in ([[]], [[], *([k, k] for k in range(1, 60))], [[0]]):
        with pytest.raises(InvalidGrammarError):
            tadoc.Grammar.from_arrow(handmade.grammar(["a"], bodies).to_arrow())


def test_empty_levels_are_refused() -> None:
    with pytest.raises(InvalidGrammarError, match="level_offsets"):
        tadoc.Grammar.from_arrow(handmade.struct(level_offsets=[0, 0, 1, 2, 2]))


def test_words_that_repeat_are_refused() -> None:
    with pytest.raises(InvalidGrammarError, match="vocabulary"):
        tadoc.Grammar.from_arrow(handmade.struct(vocabulary=["a", "a"]))


def test_where_there_are_no_rules_none_is_too_long() -> None:
    grammar = tadoc.column.split(tadoc.compress(pl.Series(["a b"])))[0].grammar
    with tadoc.Config(expansion_limit=0):
        grammar.require_within_limit()


def test_expansion_limit_at_its_edge() -> None:
    array = handmade.grammar(["a"], [[k, k] for k in range(4)]).to_arrow()
    with tadoc.Config(expansion_limit=16):
        assert tadoc.Grammar.from_arrow(array).expansion_lengths.tolist() == [2, 4, 8, 16]
    with tadoc.Config(expansion_limit=15), pytest.raises(LimitExceededError, match="rule 3 expands to more than 15"):
        tadoc.Grammar.from_arrow(array)
