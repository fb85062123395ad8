"""The arrays of a set of twig patterns, and of the events they are matched against.

A twig is a tree of nodes, numbered in preorder: the root has the lowest number, and a node's first child the next one.
Node ``q`` is bit ``q % 64`` of word ``q // 64`` of a node set. A twig of at most 32 nodes is within half a word, one of
at most 64 within a word, and a larger one starts a word: so the matches in one word depend on no other word.

Elements, attributes and texts are *symbols*: one for each that a twig names, and one for all other elements. Attributes
and texts in twigs are childless children.

Matching runs from the leaves up. A node is *satisfied* at an element if its name test passes and all its children are
found
below. Let ``found(e)`` be the nodes satisfied at a child of e, and those reached by ``//`` that are satisfied anywhere
below. Then at the end of an element c whose parent is e ::

    satisfied(c) = {q : test(q) passes the symbol of c, and every child of q is in found(c)}
    found(e) |= satisfied(c) | (found(c) & descendants)

and a document matches a twig whose root is found below the document itself. This is exactly XPath's ``boolean()``: no
match is joined from two elements. Nothing depends on ancestors, and unions ignore order and repetition, so a balanced
run of events adds the same to its parent wherever it occurs.

Gottlob, Koch and Pichler, VLDB 2002 (XPath evaluated for all nodes bottom up); Gupta and Suciu, SIGMOD 2003 (many twigs
by one lazy bottom-up automaton).
"""

from __future__ import annotations

from typing import Any, NamedTuple

CLOSE = 0
"""Event that ends the most recently opened element, attribute or text."""

OTHER = 1
"""Symbol of all elements that no twig names; its nodes are those that any element passes (``*``)."""

NO_NODE = 0
"""No further sibling: node 0 is always a root."""

NO_ENTRY = 0
"""End of a symbol's entries; entry 0 is unused."""


class Twigs(NamedTuple):
    """Compiled twigs; NumPy or CuPy arrays, possibly longer than their used part."""

    words: int
    """64-bit words in a node set."""

    heads: Any
    """uint32[symbols]: the first entry of each symbol, or ``NO_ENTRY``. An entry is a word and bits of it: the nodes
    whose name test the symbol passes. An element passes the nodes of its own symbol and of ``OTHER``."""
    elements: Any
    """uint8[symbols]: 1 for elements, 0 for attributes and texts, which pass only their own nodes."""
    entry_words: Any
    """uint32[entries]: word of each entry; a symbol has at most one entry per word."""
    entry_bits: Any
    """uint64[entries]."""
    entry_next: Any
    """uint32[entries]: the symbol's next entry, or ``NO_ENTRY``."""

    leaves: Any
    """uint64[words]: nodes without children."""
    descendants: Any
    """uint64[words]: nodes reached by ``//``; others are reached by ``/``."""
    branches: Any
    """uint64[words]: nodes with more than one child."""
    siblings: Any
    """uint32[64 * words]: the next child of a node's parent, or ``NO_NODE``."""

    roots: Any
    """uint32[twigs]: the root node of each twig; twig numbers are positions in this array. Several twigs may have the
    same root; unused roots are left out (a removed twig's nodes have no bits)."""


class Events(NamedTuple):
    """Documents as sequences of opening and closing events, including attributes and texts that twigs name."""

    symbols: Any
    """uint16 or uint32[events], as wide as the symbols need: a symbol opens, ``CLOSE`` closes. Each document is
    balanced and has one top element, or it has no events."""
    offsets: Any
    """int64[documents + 1]."""
    depth: int
    """Upper bound of the depth of all documents, including attributes and texts."""


NOTHING, TEXT, OPEN, SHUT, EMPTY, DOUBTFUL = range(6)
"""Kinds of words of a compressed column of XML: a comment or processing instruction; text; a start tag; an end tag; an
empty element's tag; a word that only a parser can judge."""


class WordEvents(NamedTuple):
    """Events of the words of a grammar, by terminal."""

    kinds: Any
    """uint8[terminals]."""
    names: Any
    """uint32[terminals]: number of the name in a start or end tag as written; 0 for other kinds."""
    offsets: Any
    """uint32[terminals + 1]."""
    symbols: Any
    """uint32: events of each terminal. A start tag opens its element; its attributes follow (each with its ``CLOSE``).
    An empty element's tag also has the final ``CLOSE``; an end tag is one ``CLOSE``. A text may be several texts that
    twigs compare (each with its ``CLOSE``)."""

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(int(array.nbytes) for array in self)


SOUND, UNSOUND = 0, 1
"""State of a document in a grammar: its events are those of one well-formed document; or a parser must decide, because
it has a doubtful word, mismatched tags, not exactly one top element, text outside of it, or too many levels."""
