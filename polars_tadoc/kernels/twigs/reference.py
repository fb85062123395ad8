"""Plain-Python definition of twig filtering; both engines must return the same results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from polars_tadoc.kernels.traverse.rules import Rules
from polars_tadoc.kernels.twigs.arrays import (
    CLOSE,
    DOUBTFUL,
    EMPTY,
    NO_ENTRY,
    NO_NODE,
    OPEN,
    OTHER,
    SHUT,
    SOUND,
    TEXT,
    UNSOUND,
    Events,
    Twigs,
    WordEvents,
)


def nodes_in(words: Sequence[int]) -> Iterator[int]:
    """Yield the nodes whose bits are set.

    Examples
    --------
    >>> list(nodes_in([0b101, 1]))
    [0, 2, 64]

    """
    for word, bits in enumerate(words):
        for bit in range(64):
            if int(bits) >> bit & 1:
                yield 64 * word + bit


def nodes_of(twigs: Twigs, symbol: int) -> set[int]:
    """Return the nodes whose name test a symbol passes."""
    found: set[int] = set()
    for own in {symbol, OTHER} if twigs.elements[symbol] else {symbol}:
        entry = int(twigs.heads[own])
        while entry != NO_ENTRY:
            found |= {64 * int(twigs.entry_words[entry]) + bit for bit in nodes_in([int(twigs.entry_bits[entry])])}
            entry = int(twigs.entry_next[entry])
    return found


def children_of(twigs: Twigs, node: int) -> list[int]:
    """Return a node's children."""
    if node in set(nodes_in(twigs.leaves[: twigs.words])):
        return []
    children = [node + 1]
    while (following := int(twigs.siblings[children[-1]])) != NO_NODE:
        children.append(following)
    return children


def twig_matches(twigs: Twigs, events: Events) -> list[list[int]]:
    """Return the twigs that match each document, ascending.

    Engines return ``(offsets int64[documents + 1], matches uint32)``.
    """
    passed = [nodes_of(twigs, symbol) if symbol != CLOSE else set() for symbol in range(len(twigs.heads))]
    used = sorted(set().union(*passed))
    children = {node: children_of(twigs, node) for node in used}
    descendants = set(nodes_in(twigs.descendants[: twigs.words]))
    matches = []
    for start, stop in pairwise(events.offsets):
        opened: list[int] = []
        found: list[set[int]] = [set()]
        for symbol in events.symbols[start:stop]:
            if symbol != CLOSE:
                opened.append(int(symbol))
                found.append(set())
                continue
            below = found.pop()
            satisfied = {node for node in passed[opened.pop()] if below.issuperset(children[node])}
            found[-1] |= satisfied | (below & descendants)
        matches.append([twig for twig, root in enumerate(twigs.roots) if int(root) in found[0]])
    return matches


def twig_rule_matches(
    twigs: Twigs, rules: Rules, root_offsets: Sequence[int], roots: Sequence[int], words: WordEvents, most_levels: int
) -> tuple[list[list[int]], list[int]]:
    """Return the twigs that match each document of a grammar, and ``SOUND`` or ``UNSOUND`` for each.

    An unsound document matches nothing. Engines return ``(offsets int64[documents + 1], matches uint32, states
    uint8[documents])``. ``most_levels`` limits the number of open elements.
    """

    def expand(symbols: Sequence[int]) -> Iterator[int]:
        for symbol in symbols:
            if symbol < rules.terminals:
                yield int(symbol)
            else:
                rule = int(symbol) - rules.terminals
                yield from expand(rules.symbols[int(rules.rule_offsets[rule]) : int(rules.rule_offsets[rule + 1])])

    matches: list[list[int]] = []
    states: list[int] = []
    for start, stop in pairwise(root_offsets):
        document = list(expand(roots[start:stop]))
        if not is_sound(document, words, most_levels):
            matches.append([])
            states.append(UNSOUND)
            continue
        symbols = [
            int(symbol)
            for word in document
            for symbol in words.symbols[int(words.offsets[word]) : int(words.offsets[word + 1])]
        ]
        matches += twig_matches(twigs, Events(symbols, [0, len(symbols)], 0))
        states.append(SOUND)
    return matches, states


def is_sound(document: Sequence[int], words: WordEvents, most_levels: int) -> bool:
    """Tell whether a document's words, by their kinds and names, are those of one well-formed document."""
    opened: list[int] = []
    elements = 0
    for word in document:
        kind, name = int(words.kinds[word]), int(words.names[word])
        if kind == DOUBTFUL or (kind == TEXT and not opened):
            return False
        if kind in (OPEN, EMPTY):
            elements += not opened
            if len(opened) + 1 > most_levels:
                return False
        if kind == OPEN:
            opened.append(name)
        if kind == SHUT and (not opened or opened.pop() != name):
            return False
    return elements == 1 and not opened
