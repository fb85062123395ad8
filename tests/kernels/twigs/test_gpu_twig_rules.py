"""What is the device's own in matching twigs against documents of a grammar: parts, stacks, what is kept of rules."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.engine import cuda
from polars_tadoc.engine.choose import choose
from polars_tadoc.engine.cuda import device_problem
from polars_tadoc.kernels.twigs import twig_rules_cuda as twig_rules
from polars_tadoc.kernels.twigs.arrays import CLOSE, EMPTY, OPEN, SHUT, SOUND, UNSOUND, WordEvents
from polars_tadoc.kernels.twigs.reference import twig_rule_matches
from polars_tadoc.model import column
from polars_tadoc.twig.twig_set import TwigSet
from polars_tadoc.twig.words import Declarations, JudgedWords
from tests.kernels.twigs.test_twig_rule_matches import (
    ATTRIBUTES,
    SYMBOLS,
    WORDS,
    A,
    B,
    Case,
    Word,
    below,
    cases,
    matched,
)
from tests.twig_strategies import Node, compile_twigs

pytestmark = pytest.mark.skipif(device_problem() is not None, reason=str(device_problem()))

A_OPEN, A_SHUT, OTHER_SHUT, A_EMPTY, B_EMPTY = range(5)


def found_by(case: Case, times: int = 1) -> tuple[list[list[int]], list[int]]:
    return matched(cuda.TwigMatcher(case.twigs), cuda, case, times)


@given(case=cases, expanded=st.sampled_from([0, 5, 20]), kept=st.sampled_from([0, 1 << 20]))
def test_documents_are_written_in_parts(case: Case, expanded: int, kept: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twig_rules, "EXPANDED", expanded)
        patch.setattr(twig_rules, "_MAX_KEPT", kept)
        assert found_by(case, 2) == twig_rule_matches(case.twigs, *case.arguments())


@pytest.mark.parametrize("level", [0, 1, 31, 62, 63, 64, 65, 66, 200, 1999])
def test_a_tag_that_does_not_match_at_any_level(level: int) -> None:
    def nested(wrong: int) -> list[int]:
        shut = [A_SHUT] * 2000
        if wrong >= 0:
            shut[1999 - wrong] = OTHER_SHUT
        return [A_OPEN] * 1000 + [A_OPEN, A_EMPTY] * 1000 + [B_EMPTY] + shut

    twigs = compile_twigs([below(A, below(B))], SYMBOLS, ATTRIBUTES)
    case = Case(twigs, WORDS, [], [nested(-1), nested(level), [A_EMPTY], nested(-1)], 3000)
    assert found_by(case) == ([[0], [], [], [0]], [SOUND, UNSOUND, SOUND, SOUND])


def test_one_document_too_long_to_be_written() -> None:
    """Rules of which no neighbours are equal."""
    first = len(WORDS)
    rules = [[B_EMPTY], *([rule, A_EMPTY, rule] for rule in range(first, first + 63))]
    rows = [[A_OPEN, symbol, A_SHUT] for symbol in (first + 63, first + 3, first + 40, first + 63, B_EMPTY)]
    case = Case(compile_twigs([below(A, below(B))], SYMBOLS, ATTRIBUTES), WORDS, rules, rows, 10)
    with tadoc.Config(expansion_limit=1 << 20):
        assert found_by(case) == ([[], [0], [], [], [0]], [UNSOUND, SOUND, UNSOUND, UNSOUND, SOUND])


def test_neighbours_that_are_equal_are_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    write = twig_rules._write

    def noted(*arguments: Any) -> Any:
        written.append(write(*arguments))
        return written[-1]

    monkeypatch.setattr(twig_rules, "_write", noted)
    rules = [[A_OPEN, *[B_EMPTY] * 100, A_SHUT], [len(WORDS)] * 70]
    rows = [[A_OPEN, *[len(WORDS) + 1] * 90, A_EMPTY, A_SHUT]]
    case = Case(compile_twigs([below(A, below(B))], SYMBOLS, ATTRIBUTES), WORDS, rules, rows, 10)
    assert found_by(case) == ([[0]], [SOUND])
    assert len(written[0].symbols) == 2 + 2 + 2 + 2


def test_symbols_of_32_bits() -> None:
    symbols = 70_000
    twigs = compile_twigs([Node(symbol, True, ()) for symbol in range(2, symbols, 7)], symbols, [])
    kinds = [OPEN, SHUT, *[EMPTY] * 500]
    events = [[69_995], [CLOSE], *([69_000 + i, CLOSE] for i in range(500))]
    words = WordEvents(
        np.array(kinds, np.uint8),
        np.array([1, 1, *[0] * 500], np.uint32),
        np.cumsum([0, *map(len, events)]).astype(np.uint32),
        np.array([symbol for listed in events for symbol in listed], np.uint32),
    )
    case = Case(twigs, [Word(kind) for kind in kinds], [[*range(2, 102)]], [[0, 502, 1], [0, 300, 1], [4]], 5)
    rules, root_offsets, roots, _, most = case.arguments()
    loaded = cuda_rules(rules)
    documents = cuda.load_array(root_offsets), cuda.load_array(roots)
    result = cuda.TwigMatcher(twigs).match_rules(loaded, *documents, cuda.load_word_events(words), most)
    offsets, matches, states = map(cuda.to_host, result)
    expected = twig_rule_matches(twigs, rules, root_offsets, roots, words, most)
    assert ([matches[i:j].tolist() for i, j in pairwise(offsets)], states.tolist()) == expected
    assert sum(map(len, expected[0])) > 10


def cuda_rules(rules: Any) -> Any:
    return type(rules)(
        rules.terminals,
        cuda.load_array(rules.rule_offsets),
        cuda.load_array(rules.symbols),
        rules.level_offsets,
        cuda.load_array(rules.lengths),
    )


def random_xml(random: np.random.Generator, size: int) -> str:
    parts, opened = ["<r>"], ["r"]
    for _ in range(size):
        kind = random.integers(5)
        name = str(random.choice(list("abcde")))
        if kind < 2:
            parts.append(f"<{name}>" if kind else f"<{name} x='{random.integers(3)}'>")
            opened.append(name)
        elif kind == 2 and len(opened) > 1:
            parts.append(f"</{opened.pop()}>")
        else:
            parts.append(["word other ", f"<{name}/>"][kind % 2])
    parts += [f"</{name}>" for name in reversed(opened)]
    if random.random() < 0.2:
        parts[random.integers(len(parts))] = ["", "</a>", "text", "<b>"][random.integers(4)]
    return "".join(parts)


def test_random_documents_as_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents of one tag to thousands, some of which are broken; each call again, and of other words."""
    random = np.random.default_rng(11)
    sizes = [*random.integers(0, 40, 300), *random.integers(100, 800, 30), 6000]
    text = pl.Series("xml", [random_xml(random, int(size)) for size in sizes] * 2)
    (one,) = column.split(tadoc.compress(text, tokenizer="xml"))
    ((context,), _) = Declarations.of(one.grammar).contexts(one.root_offsets, one.roots)
    queries = [{"one": "//a[b]/c", "two": "/r//d[@x='1'][.//e]", "three": "//*[a/b]//c"}, {"other": "//b[@x]/a"}]
    answers: dict[str, list[Any]] = {"cpu": [], "gpu": []}
    for engine, answer in answers.items():
        kernels = choose(engine, 0).kernels
        rules = kernels.load_rules(one.grammar)
        documents = kernels.load_array(one.root_offsets), kernels.load_array(one.roots)
        for number in (0, 0, 1, 0):
            twigs = TwigSet(queries[number])._compiled()
            words = kernels.load_word_events(JudgedWords.of(one.grammar.vocabulary, context).events(twigs.alphabet))
            for _ in range(2):
                found = kernels.TwigMatcher(twigs.twigs).match_rules(rules, *documents, words, 1000)
                answer.append([kernels.to_host(array).tolist() for array in found])
        monkeypatch.setattr(twig_rules, "EXPANDED", 1000)
    assert answers["gpu"] == answers["cpu"]
    assert 20 < sum(answers["cpu"][0][2]) < 300
    assert len(answers["cpu"][0][1]) > 100
