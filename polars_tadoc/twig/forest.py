"""The nodes of many twigs as bits, and the entries that link each symbol with the nodes that it passes."""

from __future__ import annotations

from array import array
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.twigs import NO_ENTRY, NO_NODE, OTHER, Twigs
from polars_tadoc.twig.alphabet import FIRST_SYMBOL, Alphabet
from polars_tadoc.twig.places import WORD, Places
from polars_tadoc.twig.twig import Twig


class Tree(NamedTuple):
    """Where a twig stands in a forest."""

    root: int
    symbols: tuple[int, ...]
    """By node."""
    has_text: bool
    """One of its nodes asks for a text."""


class Forest:
    """What :class:`polars_tadoc.kernels.twigs.Twigs` holds, in arrays that grow; a change costs what its twig does.

    Attributes
    ----------
    alphabet
        Names and values that the twigs ask for.

    """

    def __init__(self) -> None:
        self.alphabet = Alphabet()
        self._places = Places()
        self._heads = array("I", [NO_ENTRY] * FIRST_SYMBOL)
        self._elements = array("B", [0] * OTHER + [1])
        self._entries: dict[tuple[int, int], int] = {}  # by symbol and word
        self._free_entries: list[int] = []
        self._entry_words, self._entry_bits = array("I", [0]), array("Q", [0])
        self._entry_next, self._entry_back = array("I", [NO_ENTRY]), array("I", [NO_ENTRY])
        self._leaves, self._descendants, self._branches = array("Q"), array("Q"), array("Q")
        self._siblings = array("I")
        self._grow(1)

    def add(self, twig: Twig) -> Tree:
        """Place a twig."""
        size = len(twig)
        root = self._places.take(size)
        self._grow(self._places.words)
        leaves, descendants, branches = self._leaves, self._descendants, self._branches
        symbols = tuple(map(self.alphabet.add, twig.tests))
        last_children = [0] * size  # the root is nobody's child
        for node, (symbol, is_descendant, parent) in enumerate(
            zip(symbols, twig.descendants, twig.parents, strict=True)
        ):
            word, bit = divmod(root + node, WORD)
            bits = 1 << bit
            leaves[word] |= bits
            if is_descendant:
                descendants[word] |= bits
            self._link(symbol, word, bits)
            if not node:
                continue
            last = last_children[parent]
            last_children[parent] = node
            word, bit = divmod(root + parent, WORD)
            if last:
                self._siblings[root + last] = root + node
                branches[word] |= 1 << bit
            else:
                leaves[word] &= ~(1 << bit)
        return Tree(root, symbols, any(test.kind == "text" for test in twig.tests))

    def remove(self, tree: Tree) -> None:
        """Clear a twig's bits, and free its place and what only it asked for."""
        root, size = tree.root, len(tree.symbols)
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

    def twigs(self, roots: npt.NDArray[np.uint32]) -> Twigs:
        """Return a copy of the arrays; there is at least one word."""
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
            roots,
        )

    def _grow(self, words: int) -> None:
        missing = words - len(self._leaves)
        if missing > 0:
            for bits in (self._leaves, self._descendants, self._branches):
                bits.extend([0] * missing)
            self._siblings.extend([NO_NODE] * (WORD * missing))

    def _link(self, symbol: int, word: int, bits: int) -> None:
        entry = self._entries.get((symbol, word))
        if entry is not None:
            self._entry_bits[entry] |= bits
            return
        if symbol == len(self._heads):
            self._heads.append(NO_ENTRY)
            self._elements.append(0)
        following = self._heads[symbol]
        if following == NO_ENTRY:
            self._elements[symbol] = self.alphabet.is_element(symbol)
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
            self.alphabet.remove(symbol)
