from __future__ import annotations

import time
import timeit
from collections import defaultdict
from collections.abc import Callable
from functools import partial

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from benchmarks.compress import PeakMemory
from polars_tadoc.errors import LimitExceededError
from polars_tadoc.kernels.repair import reference
from polars_tadoc.kernels.repair import sequitur_cpu as sequitur
from polars_tadoc.kernels.repair.prune import LevelledRules
from polars_tadoc.kernels.tokenize.tokenizer import Tokenizer, tokenize
from tests.handmade import SEPARATOR, column, cut, flatten, grammar, words
from tests.strategies import sequences

# few words, long rows: rules meet, grow and are put back; copies of earlier stretches make deep ones
dense = st.builds(
    lambda words, cuts: [words[a:b] for a, b in zip([0, *sorted(cuts)], [*sorted(cuts), None], strict=True)],
    st.lists(st.integers(0, 1), max_size=150),
    st.lists(st.integers(0, 150), max_size=3),
)


@st.composite
def copied(draw: st.DrawFn) -> list[list[int]]:
    row = draw(st.lists(st.integers(0, 2), min_size=1, max_size=6))
    for length, at in draw(st.lists(st.tuples(st.integers(1, 20), st.integers(0, 200)), max_size=25)):
        start = at % len(row)
        row = [*row, *row[start : start + length], *([at % 3] if at % 4 == 0 else [])]
    return [row]


rows_of_words = st.one_of(sequences(), dense.map(lambda rows: (rows, 2)), copied().map(lambda rows: (rows, 3)))


def build(rows: list[list[int]], vocabulary_size: int) -> LevelledRules:
    sequence = flatten(rows)
    rules = sequitur.build(sequence, vocabulary_size, len(rows))
    assert np.array_equal(sequence, flatten(rows)), "the sequence is only read"
    return rules


def expand(rules: LevelledRules, vocabulary_size: int) -> list[list[int]]:
    """The rows' words; rules stand in level order, so that none has to recur."""
    expansions = [[word] for word in range(vocabulary_size)]
    for body in cut(rules.symbols, rules.rule_offsets):
        expansions.append([word for symbol in body for word in expansions[symbol]])
    return [[w for symbol in row for w in expansions[symbol]] for row in cut(rules.roots, rules.root_offsets)]


def assert_invariants(rules: LevelledRules, vocabulary_size: int) -> None:
    bodies = cut(rules.symbols, rules.rule_offsets)
    lines = [*bodies, *cut(rules.roots, rules.root_offsets)]
    uses = np.bincount(np.concatenate([rules.symbols, rules.roots]), minlength=vocabulary_size + len(bodies))
    assert np.all(uses[vocabulary_size:] >= 2), "rule utility"
    assert all(len(body) >= 2 for body in bodies)
    places: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    for number, line in enumerate(lines):
        for i in range(len(line) - 1):
            places[line[i], line[i + 1]].append((number, i))
    for digram, found in places.items():
        (line, first), (last_line, last) = found[0], found[-1]
        assert line == last_line, f"{digram} occurs in two lines"
        assert last - first <= (digram[0] == digram[1]), f"{digram} occurs twice without overlap"


def assert_level_order(rules: LevelledRules, vocabulary_size: int) -> None:
    level = np.repeat(np.arange(1, len(rules.level_offsets)), np.diff(rules.level_offsets.astype(np.int64))).tolist()
    assert len(level) == len(rules.rule_offsets) - 1
    for own, body in zip(level, cut(rules.symbols, rules.rule_offsets), strict=True):
        assert own == 1 + max((level[s - vocabulary_size] for s in body if s >= vocabulary_size), default=0)


@given(given_rows=rows_of_words)
def test_matches_reference(given_rows: tuple[list[list[int]], int]) -> None:
    rows, vocabulary_size = given_rows
    got = build(rows, vocabulary_size)
    bodies, roots = cut(got.symbols, got.rule_offsets), cut(got.roots, got.root_offsets)
    assert (bodies, got.level_offsets.tolist(), roots) == reference.sequitur(rows, vocabulary_size)


@given(given_rows=rows_of_words)
def test_invariants_and_expansion(given_rows: tuple[list[list[int]], int]) -> None:
    rows, vocabulary_size = given_rows
    got = build(rows, vocabulary_size)
    assert_invariants(got, vocabulary_size)
    assert_level_order(got, vocabulary_size)
    assert expand(got, vocabulary_size) == rows


def test_textbook_example() -> None:
    """The paper's own: abcdbcabcdbc."""
    a, b, c, d = range(4)
    got = build([[a, b, c, d, b, c, a, b, c, d, b, c]], 4)
    assert cut(got.symbols, got.rule_offsets) == [[b, c], [a, 4, d, 4]]
    assert got.roots.tolist() == [5, 5]


@pytest.mark.parametrize("length", range(40))
def test_runs_of_one_word(length: int) -> None:
    for rows in ([[0] * length], [[0] * length] * 2, [[1], [0] * length, [1, 0, 0, 0, 1]]):
        got = build(rows, 2)
        assert_invariants(got, 2)
        assert expand(got, 2) == rows


@pytest.mark.parametrize("rows", [[], [[]], [[], []], [[0]], [[], [0], []], [[0, 0, 0]], [[0], [0], [0]]])
def test_without_rules(rows: list[list[int]]) -> None:
    got = build(rows, 1)
    assert (got.rule_offsets.tolist(), got.symbols.tolist(), got.level_offsets.tolist()) == ([0], [], [0])
    assert cut(got.roots, got.root_offsets) == rows


def test_more_than_32_bits_are_refused() -> None:
    with pytest.raises(LimitExceededError, match="rows_per_grammar"):
        sequitur.build(np.array([0, SEPARATOR], np.uint32), (1 << 32) - 3, 1)


def nasty(name: str, size: int) -> np.ndarray:
    if name == "one word":
        words = np.zeros(size)
    elif name == "two words in turn":
        words = np.arange(size) % 2
    elif name == "Fibonacci word":
        shorter, longer = [0], [0, 1]
        while len(longer) < size:
            shorter, longer = longer, longer + shorter
        words = np.array(longer[:size])
    elif name == "runs of growing length":  # each run is a rule's start and a little more
        edge = int((2 * size) ** 0.5)
        words = np.concatenate([np.r_[np.zeros(k), 1] for k in range(edge)])
    elif name == "random bits":
        words = np.random.default_rng(5).integers(0, 2, size)
    else:
        words = np.arange(size)
    return words.astype(np.uint32)


NASTY = [
    *("one word", "two words in turn", "Fibonacci word", "runs of growing length", "random bits"),
    "every word distinct",
]


@pytest.mark.parametrize("name", NASTY)
def test_a_million_nasty_words(name: str) -> None:
    words = nasty(name, 1_000_000)
    sequence = np.append(words, np.uint32(SEPARATOR))
    vocabulary_size = int(words.max()) + 1
    build([[0, 0]], 1)  # compile first
    with PeakMemory() as memory:
        got = sequitur.build(sequence, vocabulary_size, 1)
    # 12 bytes a symbol's place, 8 a slot of a table that is 30 % to 60 % full, half as much while it doubles
    assert memory.most - memory.before < 64 * len(words)
    if vocabulary_size <= 2:
        assert_invariants(got, vocabulary_size)
        assert np.array_equal(expand(got, vocabulary_size)[0], words)
    else:
        assert np.array_equal(got.roots, words)


@pytest.mark.parametrize("name", NASTY)
def test_linear_time(name: str) -> None:
    def seconds(size: int) -> float:
        words = nasty(name, size)
        sequence = np.append(words, np.uint32(SEPARATOR))
        work = partial(sequitur.build, sequence, int(words.max()) + 1, 1)
        return min(timeit.repeat(work, timer=time.process_time, number=1, repeat=3))  # others run beside this one

    assert seconds(800_000) < 60 * seconds(40_000)  # 400 times if it were quadratic


def test_real_corpus(corpus: Callable[[str], pl.DataFrame]) -> None:
    text = corpus("multi_react")["text"].rechunk()
    tokens = tokenize(text, Tokenizer("words"), lossless=False)
    size = len(tokens.vocabulary)
    got = sequitur.build(tokens.sequence, size, len(text))
    assert_invariants(got, size)
    assert_level_order(got, size)
    again = sequitur.build(tokens.sequence, size, len(text))
    for field in ("rule_offsets", "symbols", "level_offsets", "root_offsets", "roots"):
        assert np.array_equal(getattr(got, field), getattr(again, field))
    assert np.array_equal(flatten(expand(got, size)), tokens.sequence)


def as_column(rules: LevelledRules, vocabulary: list[str]) -> pl.Series:
    bodies, roots = cut(rules.symbols, rules.rule_offsets), cut(rules.roots, rules.root_offsets)
    return column(grammar(vocabulary, bodies, rules.level_offsets.tolist()), roots)


def assert_counts_and_text(compressed: pl.Series, rows: list[list[str]], engine: str) -> None:
    assert tadoc.decompress(compressed).to_list() == [" ".join(row) for row in rows]
    found = pl.from_arrow(tadoc.word_count(compressed, engine=engine)).sort("word")
    expected = (
        pl.DataFrame({"word": [w for row in rows for w in row]}, {"word": pl.String}).group_by("word").len("count")
    )
    assert found.rows() == expected.sort("word").rows()


@given(given_rows=rows_of_words)
def test_analytics_take_its_grammars(engine: str, given_rows: tuple[list[list[int]], int]) -> None:
    rows, vocabulary_size = given_rows
    if not rows:
        return
    vocabulary = words(vocabulary_size)
    texts = [[vocabulary[w] for w in row] for row in rows]
    assert_counts_and_text(as_column(build(rows, vocabulary_size), vocabulary), texts, engine)


def test_thousands_of_levels(engine: str) -> None:
    """Rows that are each other's beginning, one word longer each time: every rule ends in a word of its own."""
    depth = 3000
    rows = [[*range(k + 2)] for k in range(depth)]
    got = build(rows, depth + 1)
    assert len(got.level_offsets) - 1 > depth - 10
    assert_invariants(got, depth + 1)
    vocabulary = words(depth + 1)
    assert_counts_and_text(as_column(got, vocabulary), [[vocabulary[w] for w in row] for row in rows], engine)
