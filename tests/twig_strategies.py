"""Random twigs and events, and their compiled arrays: what tests of both families draw from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from polars_tadoc.kernels.twigs.arrays import CLOSE, NO_ENTRY, NO_NODE, OTHER, Events, Twigs


class Node(NamedTuple):
    """A node of a twig: the symbol it asks for (``OTHER`` for any element), the axis to it, its children."""

    symbol: int
    descendant: bool
    children: tuple[Node, ...] = ()


def compile_twigs(twigs: Sequence[Node], symbols: int, attributes: Sequence[int] = (), spare: int = 0) -> Twigs:
    """Lay twigs out in node sets; ``spare`` more items than needed stand at the end of each array."""
    nodes: list[tuple[int, Node]] = []
    roots: list[int] = []
    siblings: dict[int, int] = {}
    free = 0

    def place(number: int, node: Node) -> int:
        nodes.append((number, node))
        starts = [number + 1]
        for child in node.children:
            starts.append(place(starts[-1], child))
        siblings.update(pairwise(starts[:-1]))
        return starts[-1]

    for twig in twigs:
        size = count_nodes(twig)
        if size > 64:
            free = -(-free // 64) * 64
        elif size > 32:
            free = free if free % 64 + size <= 64 else -(-free // 64) * 64
        else:
            free = free if free % 32 + size <= 32 else -(-free // 32) * 32
        roots.append(free)
        free = place(free, twig)
    words = -(-free // 64)

    def bits(chosen: list[int]) -> Any:
        array = np.zeros(words + spare, np.uint64)
        for number in chosen:
            array[number // 64] |= np.uint64(1 << number % 64)
        return array

    passed: dict[int, dict[int, int]] = {}
    for number, node in nodes:
        entries = passed.setdefault(node.symbol, {})
        entries[number // 64] = entries.get(number // 64, 0) | 1 << number % 64
    heads = np.zeros(symbols, np.uint32)
    words_of, bits_of, following_of = [0], [0], [NO_ENTRY]
    for symbol, entries in passed.items():
        for word, value in entries.items():
            following_of.append(int(heads[symbol]))
            heads[symbol] = len(words_of)
            words_of.append(word)
            bits_of.append(value)
    elements = np.ones(symbols, np.uint8)
    elements[list(attributes)] = 0
    following = np.full(64 * (words + spare), NO_NODE, np.uint32)
    for child, sibling in siblings.items():
        following[child] = sibling
    return Twigs(
        words,
        heads,
        elements,
        np.array(words_of + [0] * spare, np.uint32),
        np.array(bits_of + [0] * spare, np.uint64),
        np.array(following_of + [0] * spare, np.uint32),
        bits([number for number, node in nodes if not node.children]),
        bits([number for number, node in nodes if node.descendant]),
        bits([number for number, node in nodes if len(node.children) > 1]),
        following,
        np.array(roots, np.uint32),
    )


def count_nodes(twig: Node) -> int:
    """Count a twig's nodes."""
    return 1 + sum(count_nodes(child) for child in twig.children)


def make_events(documents: Sequence[Sequence[int]], wide: bool = False) -> Events:
    """Join documents' symbols; the depth is what the deepest needs."""
    lengths = [len(document) for document in documents]
    symbols = np.array([symbol for document in documents for symbol in document], np.uint32 if wide else np.uint16)
    steps = np.where(symbols == CLOSE, -1, 1)
    depth = int(np.cumsum(steps).max(initial=0))
    return Events(symbols, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), depth)


@st.composite
def twig_nodes(draw: st.DrawFn, symbols: int, attributes: Sequence[int], most: int) -> Node:
    """Draw a twig of at most ``most`` nodes; symbols below 6, so that many match."""
    size = draw(st.integers(1, most))
    parents = [draw(st.integers(max(0, node - draw(st.integers(1, 4))), node - 1)) for node in range(1, size)]
    children: list[list[int]] = [[] for _ in range(size)]
    for node, parent in enumerate(parents, 1):
        children[parent].append(node)
    names = st.sampled_from([OTHER, *(symbol for symbol in range(2, symbols) if symbol not in attributes)])
    leaves = st.sampled_from([OTHER, *range(2, symbols)])

    def build(node: int) -> Node:
        below = tuple(build(child) for child in children[node])
        return Node(draw(names if below else leaves), draw(st.booleans()), below)

    return build(0)


@st.composite
def documents(draw: st.DrawFn, symbols: int, attributes: Sequence[int], most: int = 40) -> list[int]:
    """Draw a document's symbols, or none."""
    steps = draw(st.lists(st.integers(CLOSE, symbols - 1), max_size=most))
    if not steps:
        return []
    events, opened = [draw(st.sampled_from([OTHER, *(s for s in range(2, symbols) if s not in attributes)]))], 1
    for symbol in steps:
        if symbol == CLOSE:
            if opened > 1:
                events.append(CLOSE)
                opened -= 1
        else:
            events.append(symbol)
            if symbol in attributes:
                events.append(CLOSE)
            else:
                opened += 1
    return events + [CLOSE] * opened


@st.composite
def twigs_and_events(draw: st.DrawFn) -> tuple[Twigs, Events]:
    """Draw compiled twigs, some above a word in size, and documents that many of them match."""
    symbols = draw(st.integers(2, 7))
    attributes = draw(st.lists(st.integers(2, 6), max_size=2, unique=True))
    attributes = [symbol for symbol in attributes if symbol < symbols]
    sizes = draw(st.lists(st.sampled_from([1, 2, 3, 4, 6, 10, 33, 70, 150]), max_size=8))
    twigs: list[Node] = [draw(twig_nodes(symbols, attributes, size)) for size in sizes]
    compiled = compile_twigs(twigs, symbols, attributes, draw(st.integers(0, 2)))
    shared: bool = draw(st.booleans())
    if twigs and shared:
        compiled = compiled._replace(roots=np.concatenate([compiled.roots, compiled.roots[:1]]))
    drawn = draw(st.lists(documents(symbols, attributes), max_size=6))
    wide: bool = draw(st.booleans())
    return compiled, make_events(drawn, wide)
