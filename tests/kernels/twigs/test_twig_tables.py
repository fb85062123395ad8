"""How twigs are laid out for the device: the tables, read in plain Python, give what the definition gives."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polars_tadoc.kernels.twigs.arrays import CLOSE, OTHER, Events, Twigs
from polars_tadoc.kernels.twigs.reference import twig_matches
from polars_tadoc.kernels.twigs.twig_tables_cuda import (
    WORD,
    Layout,
    lay_out,
    lay_out_in_preorder,
    list_nodes,
    make_tables,
)
from tests.twig_strategies import Node, compile_twigs, count_nodes, make_events, twigs_and_events

ALL = (1 << WORD) - 1


class Tables:
    """The arrays of Twigs in ``twigs.cuh``, in words of Python's numbers."""

    def __init__(self, twigs: Twigs, column: int) -> None:
        nodes = list_nodes(twigs)
        self.layout: Layout = lay_out(nodes)
        self.arrays = make_tables(twigs, nodes, self.layout, column)
        self.column = column
        self.found = self.layout.found
        self.rows: dict[tuple[int, int], list[int]] = {}

    def mask(self, name: str, word: int) -> int:
        return int(self.arrays[name][word])

    def row(self, symbol: int, word: int) -> list[int]:
        """Return the leaves and the other nodes of a word whose name test a symbol passes."""
        if (symbol, word) not in self.rows:
            column, place = divmod(word, self.column)
            starts, columns = self.arrays["row_starts"], self.arrays["row_columns"]
            rows = [row for row in range(starts[symbol], starts[symbol + 1]) if columns[row] == column]
            other = column if self.arrays["elements"][symbol] else len(columns)
            self.rows[symbol, word] = self.arrays["rows"][rows[0] if rows else other, :, place].tolist()
        return self.rows[symbol, word]

    def close(self, word: int, found: int, symbol: int) -> int:
        """Do what ``Masks::close`` of ``twigs.cuh`` does."""
        leaves, inner = self.row(symbol, word)
        whole = found
        sides = found & self.mask("sides", word) if inner & self.mask("owners", word) else 0
        while sides:
            side = sides.bit_length() - 1
            sides ^= 1 << side
            whole |= 1 << int(self.arrays["places"][word // self.column, side, word % self.column])
        highest = self.mask("highest", word)
        carried = (whole & ~highest) + self.mask("lowest", word) & ALL
        return (carried & whole & highest) << 1 & inner | found & self.mask("descendants", word) | leaves

    def matches(self, twigs: Twigs, symbols: Sequence[int]) -> list[int]:
        words = range(self.layout.words)
        opened: list[int] = []
        found = [[0 for _ in words]]
        for symbol in symbols:
            if symbol != CLOSE:
                opened.append(symbol)
                found.append([0 for _ in words])
                continue
            below, own = found.pop(), opened.pop()
            found[-1] = [found[-1][word] | self.close(word, below[word], own) for word in words]
        bits = [(twig, divmod(int(self.found[root]), WORD)) for twig, root in enumerate(twigs.roots)]
        return [twig for twig, (word, bit) in bits if word < len(words) and found[0][word] >> bit & 1]


def hold(twigs: Twigs, events: Events, column: int) -> int:
    """Hold the tables to the definition; return how many twigs match."""
    tables = Tables(twigs, column)
    fits = tables.found[twigs.roots] < WORD * tables.layout.words
    expected = [[twig for twig in matches if fits[twig]] for matches in twig_matches(twigs, events)]
    symbols = events.symbols.tolist()
    assert [tables.matches(twigs, symbols[start:stop]) for start, stop in pairwise(events.offsets.tolist())] == expected
    return sum(map(len, expected))


@given(pair=twigs_and_events(), column=st.sampled_from([1, 2, 32]))
def test_tables_give_what_the_definition_gives(pair: tuple[Twigs, Events], column: int) -> None:
    twigs, events = pair
    if len(twigs.roots):
        hold(twigs, events, column)


def test_children_that_have_children_lie_beside_their_siblings() -> None:
    leaf = [Node(symbol, False) for symbol in range(7)]
    side = Node(3, False, (leaf[4], Node(5, True, (leaf[6], leaf[2]))))
    twig = Node(2, False, (leaf[4], side, Node(3, True, (leaf[5],)), Node(OTHER, False, (leaf[6],)), leaf[5]))
    twigs = compile_twigs([twig, side, twig], 7)
    tables = Tables(twigs, 1)
    places, found = tables.layout.places, tables.found
    assert (places != found).sum() == 4  # two of the five children's three with children, in each of two twigs
    inside = [4, CLOSE, 5, 6, CLOSE, 2, CLOSE, CLOSE]
    whole = [2, 4, CLOSE, 3, *inside, CLOSE, 3, 5, CLOSE, CLOSE, 1, 6, CLOSE, CLOSE, 5, CLOSE, CLOSE]
    parts = [whole, [2, *whole[1:3], 3, *inside, CLOSE, CLOSE], [3, *inside, CLOSE]]
    events = make_events(parts)
    assert twig_matches(twigs, events) == [[0, 2], [], [1]]
    assert hold(twigs, events, 1) == 3


@pytest.mark.parametrize("width", [32, 64])
def test_no_twig_lies_across_parts(width: int) -> None:
    chains = [Node(2, False)]
    for _ in range(70):
        chains.append(Node(3, True, (chains[-1], Node(4, False))))
    twigs = compile_twigs([chains[n] for n in (0, 15, 16, 3, 31, 32, 2, 15, 70, 0, 15, 40)], 6)
    nodes = list_nodes(twigs)
    layout = lay_out_in_preorder(nodes, width) if width == 32 else lay_out(nodes)
    assert len(np.unique(layout.found[nodes.used])) == len(nodes.used)
    assert nodes.sizes.tolist() == [count_nodes(chains[n]) for n in (0, 15, 16, 3, 31, 32, 2, 15, 70, 0, 15, 40)]
    for twig, root in enumerate(nodes.roots):
        bits = layout.found[root : root + nodes.sizes[twig]]
        if nodes.sizes[twig] <= width:
            assert len(np.unique(bits // width)) == 1
            assert bits.max() < WORD * layout.words
        else:
            assert bits.tolist() == list(range(bits[0], bits[0] + len(bits)))
            assert bits[0] % WORD == 0
            assert bits[0] >= WORD * layout.words
    assert layout.all_words == layout.words + sum(-(-size // WORD) for size in nodes.sizes if size > width)
