"""Twigs against events: every engine against the plain-Python definition."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from threading import Thread
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from polars_tadoc.engine.choose import choose
from polars_tadoc.kernels.twigs import twig_automaton_cpu as twig_automaton
from polars_tadoc.kernels.twigs import twigs_cpu as cpu_twigs
from polars_tadoc.kernels.twigs.arrays import CLOSE, OTHER, Events, Twigs
from polars_tadoc.kernels.twigs.reference import twig_matches
from tests.twig_strategies import Node, compile_twigs, make_events, twigs_and_events

A, B, C, D, E, X = range(2, 8)


def matched(matcher: Any, kernels: Any, events: Events) -> list[list[int]]:
    offsets, matches = matcher.match(kernels.load_events(events))
    offsets, matches = kernels.to_host(offsets), kernels.to_host(matches)
    assert (offsets.dtype, matches.dtype) == (np.int64, np.uint32)
    assert (offsets[0], offsets[-1]) == (0, len(matches))
    return [matches[start:stop].tolist() for start, stop in pairwise(offsets)]


def matches_of(engine: str, twigs: Twigs, *documents: Sequence[int]) -> list[list[int]]:
    kernels = choose(engine, 0).kernels
    events = make_events(documents)
    found = matched(kernels.TwigMatcher(twigs), kernels, events)
    assert found == twig_matches(twigs, events)
    return found


def element(symbol: int, *parts: list[int]) -> list[int]:
    return [symbol, *(event for part in parts for event in part), CLOSE]


def below(symbol: int, *children: Node) -> Node:
    return Node(symbol, True, children)


def child(symbol: int, *children: Node) -> Node:
    return Node(symbol, False, children)


@given(pair=twigs_and_events())
def test_equals_the_definition(engine: str, pair: tuple[Twigs, Events]) -> None:
    twigs, events = pair
    kernels = choose(engine, 0).kernels
    matcher, expected = kernels.TwigMatcher(twigs), twig_matches(twigs, events)
    assert matched(matcher, kernels, events) == expected
    assert matched(matcher, kernels, events) == expected  # with what the first call has learnt


@settings(max_examples=max(1, settings().max_examples // 3))
@given(pair=twigs_and_events())
def test_little_memory_changes_nothing(pair: tuple[Twigs, Events]) -> None:
    twigs, events = pair
    kernels = choose("cpu", 0).kernels
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twig_automaton, "_FIRST_STATES", 4)
        patch.setattr(twig_automaton, "_FIRST_STEPS", 8)
        patch.setattr(cpu_twigs, "MAX_BYTES", 0)
        patch.setattr(cpu_twigs, "_NODES_FOR", 3)
        matcher = kernels.TwigMatcher(twigs)
        for _ in range(2):
            assert matched(matcher, kernels, events) == twig_matches(twigs, events)


def test_parts_of_a_twig_from_different_elements_do_not_match(engine: str) -> None:
    twigs = compile_twigs([child(A, child(B, child(C), child(D)))], 8)
    apart = element(A, element(B, element(C)), element(B, element(D)))
    together = element(A, element(B), element(B, element(D), element(C)))
    assert matches_of(engine, twigs, apart, together) == [[], [0]]


def test_axes(engine: str) -> None:
    twigs = compile_twigs([child(A, child(C)), child(A, below(C)), below(C), child(C), below(OTHER, child(C))], 8)
    deep, flat, top = element(A, element(B, element(C))), element(A, element(C)), element(C)
    assert matches_of(engine, twigs, deep, flat, top) == [[1, 2, 4], [0, 1, 2, 4], [2, 3]]


def test_stars_pass_elements_only(engine: str) -> None:
    twigs = compile_twigs([child(A, child(OTHER)), child(A, child(X))], 8, attributes=[X])
    assert matches_of(engine, twigs, element(A, element(X)), element(A, element(OTHER))) == [[1], [0]]


def test_nothing_to_match(engine: str) -> None:
    twigs = compile_twigs([child(A)], 8)
    assert matches_of(engine, twigs) == []
    assert matches_of(engine, twigs, [], element(A), []) == [[], [0], []]
    assert matches_of(engine, compile_twigs([], 8), element(A), []) == [[], []]


@pytest.mark.parametrize("size", [1, 31, 32, 33, 63, 64, 65, 128, 129, 300])
def test_wide_and_long_twigs(engine: str, size: int) -> None:
    wide = Node(A, False, tuple(child(B + place % 3) if place % 2 else below(E) for place in range(size)))
    long = child(A)
    for place in range(size - 1):
        long = Node(A + place % 2, False, (long,))
    twigs = compile_twigs([below(A), wide, long, wide], 8)
    document = element(A, *(element(symbol) for symbol in (B, C, D, E)))
    chain = [event for place in reversed(range(size)) for event in [A if place == 0 else A + (place - 1) % 2]]
    assert matches_of(engine, twigs, document, chain + [CLOSE] * size)[0][:2] == [0, 1]


@pytest.mark.parametrize("depth", [1, 2, 100, 3000, 20_000])
def test_deep_documents(engine: str, depth: int) -> None:
    twigs = compile_twigs([below(A, below(B)), below(B, child(A, child(A))), child(A, child(B))], 8)
    document = [A, *[B] * (depth - 1), *[CLOSE] * depth]
    assert matches_of(engine, twigs, document, element(A)) == [[0, 2] if depth > 1 else [], []]


def test_more_symbols_than_sixteen_bits(engine: str) -> None:
    last = 100_000
    twigs = compile_twigs([child(last, below(last - 1)), child(A)], last + 1)
    events = make_events([element(last, element(last - 1)), element(last - 1, element(last))], wide=True)
    kernels = choose(engine, 0).kernels
    assert matched(kernels.TwigMatcher(twigs), kernels, events) == [[0], []]


def random_documents(seed: int, documents: int, size: int) -> Events:
    """Make documents in which hardly two elements are equal."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(documents):
        events, opened = [A], 1
        for symbol in random.integers(A, 40, size):
            while opened > 1 and random.random() < 0.4:
                events.append(CLOSE)
                opened -= 1
            events.append(int(symbol))
            opened += 1
        made.append(events + [CLOSE] * opened)
    return make_events(made)


def random_twigs(seed: int, count: int, size: int) -> Twigs:
    random = np.random.default_rng(seed)

    def grow(nodes: int, top: bool) -> Node:
        symbol = OTHER if random.random() < 0.3 else int(random.integers(A, 40))
        children, left = [], nodes - 1
        while left:
            part = int(random.integers(1, left + 1))
            children.append(grow(part, False))
            left -= part
        return Node(symbol, top or bool(random.random() < 0.7), tuple(children))

    return compile_twigs([grow(size, True) for _ in range(count)], 40)


def test_where_nothing_repeats(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_twigs, "MAX_BYTES", 1 << 18)
    twigs, events = random_twigs(1, 60, 5), random_documents(2, 30, 400)
    kernels = choose(engine, 0).kernels
    expected = twig_matches(twigs, events)
    assert sum(map(len, expected)) > 100
    assert matched(kernels.TwigMatcher(twigs), kernels, events) == expected


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_twigs, "MAX_BYTES", 1 << 20)
    matcher = cpu_twigs.TwigMatcher(random_twigs(1, 60, 5))
    for seed in range(4):
        matcher.match(random_documents(seed, 100, 400))
        assert all(automaton.nbytes <= 1 << 20 for automaton in matcher.idle)


def test_calls_at_once(engine: str) -> None:
    twigs, kernels = random_twigs(3, 40, 4), choose(engine, 0).kernels
    matcher = kernels.TwigMatcher(twigs)
    streams = [random_documents(seed, 10, 300) for seed in range(4)]
    found: dict[int, Any] = {}

    def run(number: int) -> None:
        found[number] = [matched(matcher, kernels, streams[number]) for _ in range(3)]

    threads = [Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, events in enumerate(streams):
        assert found[number] == [twig_matches(twigs, events)] * 3
