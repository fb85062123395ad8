"""Twigs against documents of a grammar: every engine against the plain-Python definition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from threading import Thread
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import polars_tadoc as tadoc
from polars_tadoc.engine.choose import choose
from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.kernels.twigs import twig_automaton_cpu as twig_automaton
from polars_tadoc.kernels.twigs import twig_kept_cpu as twig_kept
from polars_tadoc.kernels.twigs import twig_pruning_cpu as twig_pruning
from polars_tadoc.kernels.twigs import twig_rules_cpu as twig_rules
from polars_tadoc.kernels.twigs.arrays import (
    CLOSE,
    DOUBTFUL,
    EMPTY,
    NOTHING,
    OPEN,
    OTHER,
    SHUT,
    SOUND,
    TEXT,
    UNSOUND,
    Twigs,
    WordEvents,
)
from polars_tadoc.kernels.twigs.reference import twig_rule_matches
from polars_tadoc.kernels.twigs.twig_folding_cpu import fold
from polars_tadoc.model import column
from polars_tadoc.twig.events import parse_documents
from polars_tadoc.twig.twig_set import TwigSet
from polars_tadoc.twig.words import Declarations, JudgedWords
from tests.twig_strategies import Node, compile_twigs, twig_nodes

A, B, C, X, Y = range(2, 7)
SYMBOLS, ATTRIBUTES = 7, [X, Y]
NAMES = [OTHER, OTHER, A, A, B, C]
"""Symbol of the elements of each name; two names may be of one symbol, as with prefixes of one namespace."""


class Word(NamedTuple):
    """A terminal: its kind, name, and symbol and leaves."""

    kind: int
    name: int = 0
    leaves: tuple[int, ...] = ()

    def events(self) -> list[int]:
        leaves = [event for leaf in self.leaves for event in (leaf, CLOSE)]
        if self.kind in (OPEN, EMPTY):
            return [NAMES[self.name], *leaves, *([CLOSE] if self.kind == EMPTY else [])]
        return [CLOSE] if self.kind == SHUT else leaves


class Case(NamedTuple):
    """Twigs, a grammar and its documents."""

    twigs: Twigs
    words: list[Word]
    bodies: list[list[int]]
    rows: list[list[int]]
    most_levels: int

    def arguments(self) -> tuple[Rules, Any, Any, WordEvents, int]:
        rules = Rules(
            len(self.words),
            np.cumsum([0, *map(len, self.bodies)]),
            np.array([symbol for body in self.bodies for symbol in body], np.uint32),
            np.arange(len(self.bodies) + 1),
            np.zeros(len(self.bodies), np.uint64),
        )
        events = [word.events() for word in self.words]
        known = WordEvents(
            np.array([word.kind for word in self.words], np.uint8),
            np.array([word.name for word in self.words], np.uint32),
            np.cumsum([0, *map(len, events)]).astype(np.uint32),
            np.array([symbol for listed in events for symbol in listed], np.uint32),
        )
        root_offsets = np.cumsum([0, *map(len, self.rows)])
        roots = np.array([symbol for row in self.rows for symbol in row], np.uint32)
        return rules, root_offsets, roots, known, self.most_levels


def matched(matcher: Any, kernels: Any, case: Case, times: int = 3) -> tuple[list[list[int]], list[int]]:
    rules, root_offsets, roots, words, most_levels = case.arguments()
    loaded = Rules(
        rules.terminals,
        kernels.load_array(rules.rule_offsets),
        kernels.load_array(rules.symbols),
        rules.level_offsets,
        kernels.load_array(rules.lengths),
    )
    documents = kernels.load_array(root_offsets), kernels.load_array(roots)
    known = kernels.load_word_events(words)
    answers = []
    for _ in range(times):  # with what the calls before have learnt of twigs, rules and documents
        found = matcher.match_rules(loaded, *documents, known, most_levels)
        offsets, matches, states = map(kernels.to_host, found)
        assert (offsets.dtype, matches.dtype, states.dtype) == (np.int64, np.uint32, np.uint8)
        assert (offsets[0], offsets[-1]) == (0, len(matches))
        answers.append(([matches[start:stop].tolist() for start, stop in pairwise(offsets)], states.tolist()))
    assert answers == answers[:1] * times
    return answers[0]


def matches_of(
    engine: str,
    twigs: Sequence[Node],
    words: Sequence[Word],
    bodies: Sequence[Sequence[int]],
    *rows: Sequence[int],
    most_levels: int = 100,
) -> tuple[list[list[int]], list[int]]:
    kernels = choose(engine, 0).kernels
    compiled = compile_twigs(twigs, SYMBOLS, ATTRIBUTES)
    case = Case(compiled, list(words), [list(body) for body in bodies], [list(row) for row in rows], most_levels)
    return matched(kernels.TwigMatcher(compiled), kernels, case)


def below(symbol: int, *children: Node) -> Node:
    return Node(symbol, True, children)


def child(symbol: int, *children: Node) -> Node:
    return Node(symbol, False, children)


@st.composite
def vocabularies(draw: st.DrawFn) -> list[Word]:
    """Each name's tags and others, in any order."""
    leaves = st.lists(st.sampled_from(ATTRIBUTES), max_size=2).map(tuple)
    words = [Word(NOTHING), Word(TEXT), Word(TEXT, 0, draw(leaves)), Word(DOUBTFUL)]
    for name in range(1, len(NAMES)):
        words += [Word(OPEN, name, draw(leaves)), Word(EMPTY, name, draw(leaves)), Word(SHUT, name)]
    return draw(st.permutations(words))


@st.composite
def document(draw: st.DrawFn, words: list[Word]) -> list[int]:
    """Draw a document, mostly a sound one."""
    of = {(word.kind, word.name, i): i for i, word in enumerate(words)}
    inside = [i for (kind, _, _), i in of.items() if kind != DOUBTFUL]
    shut = {name: i for (kind, name, _), i in of.items() if kind == SHUT}
    nothing = words.index(Word(NOTHING))
    row, opened = [nothing] * draw(st.integers(0, 1)), []
    root = draw(st.sampled_from([i for i in inside if words[i].kind == OPEN]))
    for i in [root, *draw(st.lists(st.sampled_from(inside), max_size=25))]:
        if words[i].kind == OPEN:
            opened.append(words[i].name)
        elif words[i].kind == SHUT:
            if len(opened) < 2:
                continue
            i = shut[opened.pop()]
        row.append(i)
    row += [shut[name] for name in reversed(opened)] + [nothing] * draw(st.integers(0, 1))
    if draw(st.integers(0, 3)) == 0:
        place = draw(st.integers(0, len(row)))
        row[place : place + draw(st.integers(0, 1))] = draw(st.lists(st.sampled_from(range(len(words))), max_size=1))
    return row


@st.composite
def folded(draw: st.DrawFn) -> Case:
    """Documents whose runs are rules, wherever they begin and end."""
    words = draw(vocabularies())
    pool = draw(st.lists(document(words), min_size=1, max_size=4))
    rows = [list(row) for row in draw(st.lists(st.sampled_from(pool), max_size=8))]
    bodies: list[list[int]] = []
    picks = st.tuples(st.integers(0, 1 << 20), st.sampled_from([1, 2, 2, 2, 3, 5]))
    for pick, size in draw(st.lists(picks, max_size=25)):
        runs = [tuple(row[i : i + size]) for row in rows for i in range(len(row) - size + 1)]
        if runs:
            run, symbol = list(runs[pick % len(runs)]), len(words) + len(bodies)
            bodies.append(run)
            rows = [replaced(row, run, symbol) for row in rows]
    return Case(draw(twig_sets()), words, bodies, rows, draw(st.sampled_from([1, 2, 3, 4, 6, 100])))


def replaced(row: list[int], run: list[int], symbol: int) -> list[int]:
    out: list[int] = []
    i = 0
    while i < len(row):
        found = row[i : i + len(run)] == run
        out.append(symbol if found else row[i])
        i += len(run) if found else 1
    return out


@st.composite
def random_rules(draw: st.DrawFn) -> Case:
    """Any words in any rules; few documents are sound."""
    words = draw(vocabularies())[: draw(st.integers(1, 20))]
    bodies: list[list[int]] = []
    for _ in range(draw(st.integers(0, 8))):
        bodies.append(draw(st.lists(st.integers(0, len(words) + len(bodies) - 1), max_size=4)))
    symbols = st.integers(0, len(words) + len(bodies) - 1)
    rows = draw(st.lists(st.lists(symbols, max_size=5), max_size=6))
    return Case(draw(twig_sets()), words, bodies, rows, draw(st.integers(0, 5)))


@st.composite
def twig_sets(draw: st.DrawFn) -> Twigs:
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 4, 6, 33, 70]), max_size=6))
    return compile_twigs([draw(twig_nodes(SYMBOLS, ATTRIBUTES, size)) for size in sizes], SYMBOLS, ATTRIBUTES)


cases = st.one_of(folded(), folded(), random_rules())
few = settings(max_examples=max(1, settings().max_examples // 3))  # of cases that are many documents each


@pytest.fixture(autouse=True, scope="module")
def folded_early() -> Iterator[None]:
    """The third call with the same documents folds them: the second one keeps what is left of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twig_kept, "FOLDED_AT", 2)
        yield


@contextmanager
def little_room(**limits: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twig_automaton, "_FIRST_STATES", 4)
        patch.setattr(twig_automaton, "_FIRST_STEPS", 8)
        patch.setattr(twig_rules, "_FIRST_ARENA", 8)
        patch.setattr(twig_rules, "_FIRST_STACK", 3)
        for name, limit in limits.items():
            patch.setattr(twig_rules, name, limit)
        yield


@given(case=cases)
def test_equals_the_definition(engine: str, case: Case) -> None:
    kernels = choose(engine, 0).kernels
    matcher, expected = kernels.TwigMatcher(case.twigs), twig_rule_matches(case.twigs, *case.arguments())
    assert matched(matcher, kernels, case) == expected


@few
@given(case=folded(), order=st.permutations(range(4)))
def test_other_documents_and_other_words_of_the_same_rules(case: Case, order: list[int]) -> None:
    """What is kept of one call is not used where it does not hold."""
    kernels = choose("cpu", 0).kernels
    matcher = kernels.TwigMatcher(case.twigs)
    rules, root_offsets, roots, words, most_levels = case.arguments()
    turned = root_offsets[-1] - root_offsets[::-1], roots[::-1].copy()
    swapped = words._replace(
        names=np.where(words.names == 2, 3, words.names).astype(np.uint32), kinds=words.kinds.copy()
    )
    calls = [
        (root_offsets, roots, words),
        (*turned, words),
        (root_offsets[: len(root_offsets) // 2 + 1], roots, words),
        (root_offsets, roots, swapped),
    ]
    for number in [place for place in order for _ in range(3)]:
        offsets, matches, states = matcher.match_rules(rules, *calls[number], most_levels)
        found = [matches[start:stop].tolist() for start, stop in pairwise(offsets)], states.tolist()
        documents, symbols, known = calls[number]
        assert found == twig_rule_matches(case.twigs, rules, documents, symbols, known, most_levels)


def test_rules_are_pruned_once_for_each_of_several_words(monkeypatch: pytest.MonkeyPatch) -> None:
    pruned: list[int] = []

    def prune(rules: Rules, words: WordEvents) -> Any:
        pruned.append(len(words.kinds))
        return twig_pruning.prune(rules, words)

    monkeypatch.setattr(twig_kept, "prune", prune)
    case = Case(
        compile_twigs([Node(A, False)], SYMBOLS, ATTRIBUTES), [Word(EMPTY, 2), Word(EMPTY, 4)], [], [[0], [1]], 9
    )
    rules, root_offsets, roots, words, most_levels = case.arguments()
    matcher = choose("cpu", 0).kernels.TwigMatcher(case.twigs)
    several = [words._replace(kinds=words.kinds.copy()) for _ in range(3)]
    for _ in range(4):
        for place, one in enumerate(several):
            own = slice(place % 2, place % 2 + 2)
            matcher.match_rules(rules, root_offsets[own], roots, one, most_levels)
    assert len(pruned) == len(several)
    for _ in range(3):
        for _ in range(twig_kept.MAX_WORDS + 1):
            matcher.match_rules(rules, root_offsets, roots, words._replace(kinds=words.kinds.copy()), most_levels)
        entries = twig_kept.kept.get(twig_kept._key(rules))
        assert len(entries or ()) == twig_kept.MAX_WORDS


@few
@given(rows=st.lists(st.lists(st.integers(1, 4), max_size=60), max_size=6), times=st.integers(1, 9))
def test_documents_are_folded_into_pairs(rows: list[list[int]], times: int) -> None:
    rows = [row * times for row in rows]
    offsets = np.cumsum([0, *map(len, rows)])
    pairs, folded_offsets, symbols = fold(5, offsets, np.array([s for row in rows for s in row], np.uint32))

    def expand(symbol: int) -> list[int]:
        return (
            [symbol]
            if symbol < 5
            else [part for half in pairs[2 * symbol - 10 : 2 * symbol - 8] for part in expand(half)]
        )

    assert [[s for symbol in symbols[i:j] for s in expand(symbol)] for i, j in pairwise(folded_offsets)] == rows
    assert len(symbols) <= offsets[-1]


@few
@given(case=cases, expanded=st.sampled_from([0, 5, 1000]))
def test_little_memory_changes_nothing(case: Case, expanded: int) -> None:
    kernels = choose("cpu", 0).kernels
    expected = twig_rule_matches(case.twigs, *case.arguments())
    with little_room():
        assert matched(kernels.TwigMatcher(case.twigs), kernels, case) == expected
    with little_room(MAX_BYTES=0, KEPT_BYTES=0, EXPANDED=expanded):
        assert matched(kernels.TwigMatcher(case.twigs), kernels, case) == expected


@few
@given(case=cases)
def test_documents_without_room_for_what_is_open_are_for_a_parser(case: Case) -> None:
    kernels = choose("cpu", 0).kernels
    expected = zip(*twig_rule_matches(case.twigs, *case.arguments()), strict=True)
    with little_room(MAX_OPEN_BYTES=100):
        found = zip(*matched(kernels.TwigMatcher(case.twigs), kernels, case), strict=True)
        assert all(one in (other, ([], UNSOUND)) for one, other in zip(found, expected, strict=True))


@few
@given(case=cases)
def test_on_several_threads(case: Case) -> None:
    kernels = choose("cpu", 0).kernels
    expected = twig_rule_matches(case.twigs, *case.arguments())
    with tadoc.Config(threads=3), little_room(_FEWEST_ROOTS=1):
        many = case._replace(rows=case.rows * 20)
        found, states = matched(kernels.TwigMatcher(case.twigs), kernels, many)
    assert (found, states) == (expected[0] * 20, expected[1] * 20)


def test_a_matcher_serves_calls_at_the_same_time() -> None:
    kernels = choose("cpu", 0).kernels
    twigs = compile_twigs([below(A, child(B)), below(C)], SYMBOLS, ATTRIBUTES)
    words = [Word(OPEN, 2), Word(SHUT, 2), Word(EMPTY, 4), Word(EMPTY, 5)]
    case = Case(twigs, words, [[0, 2], [4, 1]], [[5], [0, 3, 1], [0, 5, 1]] * 50, 100)
    matcher, results = kernels.TwigMatcher(twigs), []
    threads = [Thread(target=lambda: results.append(matched(matcher, kernels, case))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [([[0], [1], [0]] * 50, [SOUND] * 150)] * 8


A_OPEN, A_SHUT, OTHER_SHUT, A_EMPTY, B_EMPTY, TEXT_WORD, COMMENT = range(7)
WORDS = [Word(OPEN, 2), Word(SHUT, 2), Word(SHUT, 3), Word(EMPTY, 2), Word(EMPTY, 4), Word(TEXT), Word(NOTHING)]


@pytest.mark.parametrize(
    "row",
    [
        [],
        [COMMENT],
        [TEXT_WORD],
        [A_OPEN],
        [A_SHUT],
        [A_OPEN, OTHER_SHUT],
        [A_SHUT, A_OPEN],
        [A_EMPTY, A_EMPTY],
        [A_OPEN, A_SHUT, A_EMPTY],
        [TEXT_WORD, A_EMPTY],
        [A_EMPTY, TEXT_WORD],
        [A_OPEN, A_SHUT, TEXT_WORD],
        [A_OPEN, A_SHUT, A_SHUT],
        [A_OPEN, A_OPEN, A_SHUT],
    ],
)
def test_unsound_documents(engine: str, row: list[int]) -> None:
    """As words, as one rule, and as rules of one symbol each."""
    rules = [[word] for word in row]
    last = len(WORDS) + len(rules)
    rows = [row, [last], list(range(len(WORDS), last)), [COMMENT, *row, COMMENT]]
    assert matches_of(engine, [below(A)], WORDS, [*rules, row], *rows) == ([[]] * 4, [UNSOUND] * 4)


def test_no_documents_no_rules_no_twigs(engine: str) -> None:
    assert matches_of(engine, [below(A)], WORDS, []) == ([], [])
    assert matches_of(engine, [below(A)], [], [], []) == ([[]], [UNSOUND])
    assert matches_of(engine, [], WORDS, [], [A_EMPTY], []) == ([[], []], [SOUND, UNSOUND])


def test_parts_of_a_twig_from_different_elements_do_not_match(engine: str) -> None:
    """Also where one rule ends one element and begins the next."""
    words = [*WORDS, Word(OPEN, 4), Word(SHUT, 4), Word(EMPTY, 5), Word(EMPTY, 1, (X,))]
    b_open, b_shut, c_empty, other, between, apart = range(len(WORDS), len(words) + 2)
    bodies = [[b_shut, b_open], [b_open, c_empty, between, other, b_shut]]
    rows = [A_OPEN, apart, A_SHUT], [A_OPEN, b_open, c_empty, other, b_shut, A_SHUT]
    twigs = [child(A, child(B, child(C), below(OTHER, child(X)))), below(A, below(C), below(X))]
    assert matches_of(engine, twigs, words, bodies, *rows) == ([[1], [0, 1]], [SOUND, SOUND])


@pytest.mark.parametrize("most_levels", [2999, 3000, 3001])
def test_levels_are_counted_exactly(engine: str, most_levels: int) -> None:
    """A chain of rules, each within one element more; and the same from opens and closes of their own."""
    first = len(WORDS)
    balanced = [[A_EMPTY], *([A_OPEN, rule, A_SHUT] for rule in range(first, first + 2999))]
    opens = first + len(balanced)
    opening = [[A_OPEN], *([rule, A_OPEN] for rule in range(opens, opens + 2998))]
    closes = opens + len(opening)
    closing = [[A_SHUT], *([A_SHUT, rule] for rule in range(closes, closes + 2998))]
    rows = [[opens - 1], [closes - 1, B_EMPTY, closes + 2998], [closes - 1, TEXT_WORD, closes + 2998]]
    found, states = matches_of(
        engine, [below(A, child(B))], WORDS, balanced + opening + closing, *rows, most_levels=most_levels
    )
    fits = most_levels >= 3000
    assert found == [[], [0] if fits else [], []]
    assert states == [SOUND if fits else UNSOUND] * 2 + [SOUND]


def test_wide_rule(engine: str) -> None:
    wide = [A_OPEN, *[TEXT_WORD, A_EMPTY] * 50_000, B_EMPTY, A_SHUT]
    rule = len(WORDS)
    found = matches_of(engine, [child(A, child(B), child(A)), below(B, child(OTHER))], WORDS, [wide], [rule], wide)
    assert found == ([[0], [0]], [SOUND, SOUND])


def test_rules_that_stand_for_more_words_than_could_be_read(engine: str) -> None:
    first = len(WORDS)

    def doubled(word: int) -> list[list[int]]:
        return [[word, word], *([rule, rule] for rule in range(first, first + 62))]

    last = first + 62
    twigs = [child(A, child(B)), below(A, child(A))]
    assert matches_of(engine, twigs, WORDS, doubled(B_EMPTY), [A_OPEN, last, A_SHUT], [last]) == ([[0], []], [0, 1])
    for word in (A_OPEN, A_SHUT):
        found = matches_of(engine, twigs, WORDS, doubled(word), [A_OPEN, last, A_SHUT], most_levels=10_000)
        assert found == ([[]], [UNSOUND])


def test_documents_too_long_to_expand_are_for_a_parser() -> None:
    first = len(WORDS)
    rules = [[B_EMPTY, B_EMPTY], *([rule, rule] for rule in range(first, first + 62))]
    with little_room(MAX_BYTES=0):
        twigs = [child(A, child(B)), *(below(A, child(A), child(B, child(symbol))) for symbol in (OTHER, A, B, C))]
        rows = [[A_OPEN, A_EMPTY, first, A_SHUT], [A_OPEN, A_EMPTY, first + 62, A_SHUT]]
        kernels, compiled = choose("cpu", 0).kernels, compile_twigs(twigs, SYMBOLS, ATTRIBUTES)
        case = Case(compiled, WORDS, rules, rows, 100)
        found, states = matched(kernels.TwigMatcher(compiled), kernels, case, 1)
        assert (found[0], states[0]) == ([0], SOUND)
        assert (found[1], states[1]) in (([0], SOUND), ([], UNSOUND))


QUERIES = {"planets": "//planet[mass]/name", "binary": "/system//binary[star]", "other": "/system/star[@x]//name"}


def test_a_compressed_column_as_its_text(engine: str, corpus: Callable[[str], pl.DataFrame]) -> None:
    text = corpus("xml_exoplanet")["text"].head(400)
    (one,) = column.split(tadoc.compress(text, tokenizer="xml"))
    kernels, twigs = choose(engine, 0).kernels, TwigSet(QUERIES)._compiled()
    matcher = kernels.TwigMatcher(twigs.twigs)
    parsed = parse_documents(text, twigs.alphabet, max_depth=100, max_bytes=1 << 30)
    assert not parsed.errors
    expected = map(kernels.to_host, matcher.match(kernels.load_events(parsed.events)))
    ((context,), _) = Declarations.of(one.grammar).contexts(one.root_offsets, one.roots)
    words = kernels.load_word_events(JudgedWords.of(one.grammar.vocabulary, context).events(twigs.alphabet))
    rules = kernels.load_rules(one.grammar)
    documents = kernels.load_array(one.root_offsets), kernels.load_array(one.roots)
    *found, states = map(kernels.to_host, matcher.match_rules(rules, *documents, words, 100))
    assert not states.any()
    assert all(np.array_equal(*pair) for pair in zip(found, expected, strict=True))
    assert len(found[1]) > 0
