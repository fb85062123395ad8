"""The nodes of many twigs as bits, and for each symbol the words of bits (nodes) that it passes."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from polars_tadoc.kernels.twigs.arrays import NO_ENTRY, NO_NODE, OTHER, Twigs
from polars_tadoc.twig.alphabet import FIRST_SYMBOL, Alphabet, GrowingAlphabet
from polars_tadoc.twig.places import WORD, Places
from polars_tadoc.twig.twig import NO_PARENT, Twig

SPARSE = 4
"""Repack once the forest has more than this many times the words that its nodes need."""


class Tree(NamedTuple):
    """Position of a twig in a forest."""

    root: int
    symbols: tuple[int, ...]
    """Per node."""
    has_text: bool
    """One of its nodes compares a text."""


class Forest:
    """Growable version of the arrays of :class:`polars_tadoc.kernels.twigs.arrays.Twigs`."""

    def __init__(self, alphabet: GrowingAlphabet | None = None) -> None:
        self._alphabet = alphabet or GrowingAlphabet()
        self._nodes = 0
        self._places = Places()
        self._heads, self._elements = array("I"), array("B")
        self._entries: dict[tuple[int, int], int] = {}  # position by (symbol, word)
        self._free_entries: list[int] = []
        self._entry_words, self._entry_bits = array("I", [0]), array("Q", [0])
        self._entry_next, self._entry_back = array("I", [NO_ENTRY]), array("I", [NO_ENTRY])
        self._leaves, self._descendants, self._branches = array("Q"), array("Q"), array("Q")
        self._siblings = array("I")
        self._grow(1, FIRST_SYMBOL)
        self._elements[OTHER] = 1

    def add(self, twig: Twig) -> Tree:
        """Add a twig and return its position."""
        has_text = any(test.kind == "text" for test in twig.tests)
        return self._plant(tuple(map(self._alphabet.add, twig.tests)), twig.descendants, twig.parents, has_text)

    def remove(self, tree: Tree) -> None:
        """Clear a twig's bits, and free its position and the symbols that only it used."""
        root, size = tree.root, len(tree.symbols)
        self._nodes -= size
        for node, symbol in enumerate(tree.symbols, root):
            self._unlink(symbol, node // WORD, 1 << node % WORD)
        for word in range(root // WORD, (root + size - 1) // WORD + 1):
            first, end = max(root - word * WORD, 0), min(root + size - word * WORD, WORD)
            kept = ~(((1 << end - first) - 1) << first)
            self._leaves[word] &= kept
            self._descendants[word] &= kept
            self._branches[word] &= kept
        self._siblings[root : root + size] = array("I", [NO_NODE]) * size
        self._places.give(root, size)

    def twigs(self) -> Twigs:
        """Return a copy of the arrays, without roots; at least one word."""
        words = max(self._places.words, 1)
        return Twigs(
            words,
            np.array(self._heads, np.uint32),
            np.array(self._elements, np.uint8),
            np.array(self._entry_words, np.uint32),
            np.array(self._entry_bits, np.uint64),
            np.array(self._entry_next, np.uint32),
            np.array(self._leaves, np.uint64)[:words],
            np.array(self._descendants, np.uint64)[:words],
            np.array(self._branches, np.uint64)[:words],
            np.array(self._siblings, np.uint32)[: words * WORD],
            np.zeros(0, np.uint32),
        )

    def alphabet(self) -> Alphabet:
        """Return the current symbols of the arrays."""
        return self._alphabet.now()

    @property
    def is_sparse(self) -> bool:
        """Whether removed twigs have scattered the others over many more words than they need."""
        return self._places.words * WORD > SPARSE * max(self._nodes, WORD)

    def repacked(self, trees: Iterable[Tree]) -> tuple[Forest, list[Tree]]:
        """Return a compact forest of the given trees, which must be all trees, and their new positions.

        Do not use this forest afterwards.
        """
        forest = Forest(self._alphabet)
        return forest, [forest._plant(tree.symbols, *self._shape(tree), tree.has_text) for tree in trees]

    def _shape(self, tree: Tree) -> tuple[list[bool], list[int]]:
        """Return for each node whether it is reached by ``//``, and its parent relative to the root."""
        root, size = tree.root, len(tree.symbols)
        descendants, parents = [False] * size, [NO_PARENT] * size
        for node in range(size):
            word, bit = divmod(root + node, WORD)
            descendants[node] = bool(self._descendants[word] >> bit & 1)
            if not self._leaves[word] >> bit & 1:
                parents[node + 1] = node
            if self._siblings[root + node] != NO_NODE:
                parents[self._siblings[root + node] - root] = parents[node]
        return descendants, parents

    def _plant(
        self, symbols: tuple[int, ...], descendants: Sequence[bool], parents: Sequence[int], has_text: bool
    ) -> Tree:
        size = len(symbols)
        root = self._places.take(size)
        self._nodes += size
        self._grow(self._places.words, self._alphabet.symbol_count)
        last_children = [0] * size  # the root has no parent
        for node, symbol in enumerate(symbols):
            word, bit = divmod(root + node, WORD)
            self._leaves[word] |= 1 << bit
            if descendants[node]:
                self._descendants[word] |= 1 << bit
            self._link(symbol, word, 1 << bit)
            if node:
                self._hang(root, node, parents[node], last_children)
        return Tree(root, symbols, has_text)

    def _hang(self, root: int, node: int, parent: int, last_children: list[int]) -> None:
        """Append a node to its parent's children."""
        last, last_children[parent] = last_children[parent], node
        word, bit = divmod(root + parent, WORD)
        if last:
            self._siblings[root + last] = root + node
            self._branches[word] |= 1 << bit
        else:
            self._leaves[word] &= ~(1 << bit)

    def _grow(self, words: int, symbols: int) -> None:
        missing = max(words - len(self._leaves), 0)
        for bits in (self._leaves, self._descendants, self._branches):
            bits.extend([0] * missing)
        self._siblings.extend([NO_NODE] * (WORD * missing))
        missing = max(symbols - len(self._heads), 0)
        self._heads.extend([NO_ENTRY] * missing)
        self._elements.extend([0] * missing)

    def _link(self, symbol: int, word: int, bits: int) -> None:
        entry = self._entries.get((symbol, word))
        if entry is not None:
            self._entry_bits[entry] |= bits
            return
        following = self._heads[symbol]
        if following == NO_ENTRY:
            self._elements[symbol] = self._alphabet.is_element(symbol)
        if self._free_entries:
            entry = self._free_entries.pop()
        else:
            entry = len(self._entry_words)
            for numbers in (self._entry_words, self._entry_bits, self._entry_next, self._entry_back):
                numbers.append(0)
        self._entry_words[entry], self._entry_bits[entry] = word, bits
        self._entry_next[entry], self._entry_back[entry] = following, NO_ENTRY
        self._entry_back[following] = entry
        self._heads[symbol] = self._entries[symbol, word] = entry

    def _unlink(self, symbol: int, word: int, bits: int) -> None:
        entry = self._entries[symbol, word]
        self._entry_bits[entry] &= ~bits
        if self._entry_bits[entry]:
            return
        del self._entries[symbol, word]
        self._free_entries.append(entry)
        following, previous = self._entry_next[entry], self._entry_back[entry]
        self._entry_back[following] = previous
        if previous != NO_ENTRY:
            self._entry_next[previous] = following
            return
        self._heads[symbol] = following
        if following == NO_ENTRY and symbol != OTHER:
            self._elements[symbol] = 0
            self._alphabet.remove(symbol)
