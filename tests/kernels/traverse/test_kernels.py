"""Each engine's kernels against their plain-Python definitions."""

from __future__ import annotations

import itertools
import uuid
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.engine.choose import choose
from polars_tadoc.kernels.primitives.codes import DELETED
from polars_tadoc.kernels.repair import reference as repair_reference
from polars_tadoc.kernels.traverse import reference as traverse_reference
from polars_tadoc.model.vocabulary import Vocabulary
from tests import handmade
from tests.strategies import grammars, texts


def weights(engine: str, grammar: tadoc.Grammar, roots: list[int]) -> Any:
    """Counts by word id as an array of the engine."""
    chosen = choose(engine, 0)
    resident = chosen.load(uuid.uuid4().hex, grammar)
    return chosen.kernels.top_down_weights(resident, chosen.kernels.load_symbols(np.array(roots, np.uint32)))


def on_engine(engine: str, counts: list[int]) -> Any:
    """Any counts as an array of the engine: the weights of roots that repeat each word so often."""
    roots = [word for word, count in enumerate(counts) for _ in range(count)]
    return weights(engine, handmade.grammar(handmade.words(len(counts))), roots)


def listed(engine: str, array: Any) -> list[int]:
    host = choose(engine, 0).kernels.to_host(array)
    return [int(x) for x in host]


@given(made=grammars(), times=st.integers(1, 50))
def test_top_down_weights(engine: str, made: Any, times: int) -> None:
    vocabulary_size, bodies, level_offsets, rows = made
    grammar = handmade.grammar(handmade.words(vocabulary_size), bodies, level_offsets)
    roots = [symbol for row in rows for symbol in row] * times
    expected = traverse_reference.top_down_weights(
        vocabulary_size, grammar.rule_offsets.tolist(), grammar.symbols.tolist(), roots
    )
    assert listed(engine, weights(engine, grammar, roots)) == expected


def test_top_down_weights_beyond_32_bits(engine: str) -> None:
    grammar = handmade.grammar(["a", "b"], [[0, 0], *([k + 1, k + 1] for k in range(1, 32)), [33, 1]])
    with tadoc.Config(expansion_limit=1 << 40):
        assert grammar.expansion_lengths[-2] == 1 << 32
    roots = [33, 34, 34, 1]
    assert listed(engine, weights(engine, grammar, roots)) == [3 << 32, 3]


def test_top_down_weights_of_many_roots(engine: str) -> None:
    """Enough roots that they are split among threads, few symbols."""
    random = np.random.default_rng(1)
    grammar = handmade.grammar(handmade.words(10), [[0, 1], [10, 10, 2], [3, 11]])
    roots = random.integers(0, 13, 1 << 20)
    expected = traverse_reference.top_down_weights(10, [0, 2, 5, 7], [0, 1, 10, 10, 2, 3, 11], range(13))
    with tadoc.Config(threads=2):
        got = listed(engine, weights(engine, grammar, roots.tolist()))
    counts = np.bincount(roots, minlength=13).tolist()
    singles = [traverse_reference.top_down_weights(10, [0, 2, 5, 7], [0, 1, 10, 10, 2, 3, 11], [s]) for s in range(13)]
    assert got == [sum(counts[s] * singles[s][w] for s in range(13)) for w in range(10)]
    assert len(got) == len(expected)


def test_top_down_weights_of_a_deep_grammar(engine: str) -> None:
    depth = 3000
    grammar = handmade.grammar(["a", "b"], [[0, 1], *([2 + k, k % 2] for k in range(depth))])
    roots = [2 + depth, 0]
    assert listed(engine, weights(engine, grammar, roots)) == [2 + depth // 2, 1 + depth // 2]


def test_top_down_weights_of_one_long_rule(engine: str) -> None:
    body = [i % 7 for i in range(100_000)]
    grammar = handmade.grammar(handmade.words(7), [body, [7, 7]])
    assert listed(engine, weights(engine, grammar, [8])) == [2 * body.count(w) for w in range(7)]


@given(data=st.data(), counts=st.lists(st.integers(0, 5), max_size=8))
def test_map_counts(engine: str, data: st.DataObject, counts: list[int]) -> None:
    size = data.draw(st.integers(1, 4))
    image = data.draw(
        st.lists(st.one_of(st.integers(0, size - 1), st.just(DELETED)), min_size=len(counts), max_size=len(counts))
    )
    kernels = choose(engine, 0).kernels
    got = kernels.map_counts(on_engine(engine, counts), np.array(image, np.uint32), size)
    assert listed(engine, got) == traverse_reference.map_counts(counts, image, size)


@given(
    counts=st.one_of(st.lists(st.integers(0, 4), max_size=12), st.lists(st.integers(0, 300), max_size=5)),
    min_count=st.integers(-1, 4),
    top=st.one_of(st.none(), st.integers(0, 14)),
    is_ordered=st.booleans(),
    seed=st.randoms(use_true_random=False),
)
def test_select(engine: str, counts: list[int], min_count: int, top: int | None, is_ordered: bool, seed: Any) -> None:
    words = [f"{'é日az'[i % 4]}{i}" for i in range(len(counts))]
    seed.shuffle(words)
    if is_ordered:  # as ids are numbered by compress
        counts = sorted(counts, reverse=True)
        words.sort()
    ids, chosen = choose(engine, 0).kernels.select(
        on_engine(engine, counts), Vocabulary(pa.array(words, pa.large_string())), min_count, top
    )
    expected = traverse_reference.select(counts, words, min_count, top)
    assert ([int(i) for i in ids], [int(c) for c in chosen]) == expected


def test_select_beyond_32_bits(engine: str) -> None:
    chain = [[0, 0], *([k + 2, k + 2] for k in range(1, 33))]  # words 0 to 2, rules 3 on
    grammar = handmade.grammar(["b", "c", "a"], chain)
    counts = weights(engine, grammar, [3 + 32, 3 + 31, 1, 2])
    for top, expected in ((None, [0, 2, 1]), (2, [0, 2]), (1, [0])):
        ids, chosen = choose(engine, 0).kernels.select(
            counts, Vocabulary(pa.array(["b", "c", "a"], pa.large_string())), 1, top
        )
        assert [int(i) for i in ids] == expected
        assert int(chosen[0]) == 3 << 32


@given(words=st.lists(texts, unique=True, max_size=10))
def test_word_order_is_that_of_code_points(words: list[str]) -> None:
    vocabulary = Vocabulary(pa.array(words, pa.large_string()))
    assert vocabulary.ascending.tolist() == [a < b for a, b in itertools.pairwise(words)]
    assert [sorted(words)[rank] for rank in vocabulary.rank] == words
    ids = np.arange(0, len(words), 3, dtype=np.uint32)
    fresh = Vocabulary(pa.array(words, pa.large_string()))
    assert np.argsort(fresh.rank_of(ids)).tolist() == np.argsort(vocabulary.rank[ids]).tolist()


@given(made=grammars())
def test_expansion_lengths(made: Any) -> None:
    vocabulary_size, bodies, level_offsets, _ = made
    grammar = handmade.grammar(handmade.words(vocabulary_size), bodies, level_offsets)
    offsets, symbols = grammar.rule_offsets.tolist(), grammar.symbols.tolist()
    expansions = [
        traverse_reference.expand(vocabulary_size + r, vocabulary_size, offsets, symbols) for r in range(len(bodies))
    ]
    assert grammar.expansion_lengths.tolist() == [len(expansion) for expansion in expansions]


@given(made=grammars(), data=st.data())
def test_symbol_bytes(made: Any, data: st.DataObject) -> None:
    vocabulary_size, bodies, level_offsets, _ = made
    words, gaps = handmade.words(vocabulary_size), ["", "é, "]
    size = vocabulary_size + sum(len(body) for body in bodies)
    predicted = data.draw(st.lists(st.integers(0, len(gaps)), min_size=size, max_size=size))
    grammar = handmade.grammar(words, bodies, level_offsets, gaps, predicted)
    offsets, symbols = grammar.rule_offsets.tolist(), grammar.symbols.tolist()
    for symbol in range(vocabulary_size + len(bodies)):
        expansion = traverse_reference.expand(symbol, vocabulary_size, offsets, symbols)
        keys = repair_reference.gap_keys([symbol], vocabulary_size, offsets, symbols)
        strings = [words[w] for w in expansion] + [[" ", *gaps][predicted[key]] for key in keys]
        assert grammar.symbol_bytes[symbol] == sum(len(string.encode()) for string in strings)
        assert grammar.leading_gaps[symbol] == predicted[expansion[0]]
