"""The arrays of a set of twig patterns and of the events they are matched against.

A twig is a tree of nodes. Its nodes stand in preorder, so a node's first child has the next number; the root is its
lowest. Node ``q`` is bit ``q % 64`` of word ``q // 64`` of a node set. A twig of at most 32 nodes lies within half a
word, one of at most 64 within a word, a larger one begins a word: what a twig matches in one word depends on no other.

An element, an attribute and a text are *symbols*: those that some twig names, and one for all other elements.
Attributes and texts that twigs ask for are children without children of their own.

Whether a document matches follows from the leaves up. A node is *satisfied* at an element if its name test passes and
all its children are found below: let ``found(e)`` be the nodes satisfied at a child of e, and those reached by ``//``
that are satisfied anywhere below. Then at the end of an element c whose parent is e ::

    satisfied(c) = {q : test(q) passes the symbol of c, and every child of q is in found(c)}
    found(e) |= satisfied(c) | (found(c) & descendants)

and a document matches a twig whose root is in what was found below the document itself. This is exactly XPath's
``boolean()``: no candidate is ever joined from two elements. Nothing comes from above, and unions do not mind order
or repetition, so what a balanced run of events adds to its parent is the same wherever it occurs.

Gottlob, Koch and Pichler, VLDB 2002 (XPath evaluated for all nodes bottom up); Gupta and Suciu, SIGMOD 2003 (many
twigs by one automaton from the leaves up, made as documents come).
"""

from __future__ import annotations

from typing import Any, NamedTuple

CLOSE = 0
"""Event that ends the element, attribute or text opened last."""

OTHER = 1
"""Symbol of every element that no twig names; the nodes it lists are those that any element passes (``*``)."""

NO_NODE = 0
"""No further sibling: number 0 is always a root."""

NO_ENTRY = 0
"""End of a symbol's entries; entry 0 is not used."""


class Twigs(NamedTuple):
    """Compiled twigs; NumPy's or CuPy's arrays. Arrays may be longer than what is used."""

    words: int
    """Words of 64 bits in a node set."""

    heads: Any
    """uint32[symbols]: the first entry of each symbol, or ``NO_ENTRY``. An entry is a word and bits of it: the nodes
    whose name test the symbol passes. An element passes its own symbol's and ``OTHER``'s."""
    elements: Any
    """uint8[symbols]: 1 for elements, 0 for attributes and texts, which pass their own entries only."""
    entry_words: Any
    """uint32[entries]: word of each entry; a symbol has at most one entry a word."""
    entry_bits: Any
    """uint64[entries]."""
    entry_next: Any
    """uint32[entries]: the symbol's next entry, or ``NO_ENTRY``."""

    leaves: Any
    """uint64[words]: nodes without children."""
    descendants: Any
    """uint64[words]: nodes reached by ``//``; the others by ``/``."""
    branches: Any
    """uint64[words]: nodes with more than one child."""
    siblings: Any
    """uint32[64 * words]: the next child of a node's parent, or ``NO_NODE``."""

    roots: Any
    """uint32[twigs]: the root node of each twig that is asked for; twig numbers are places in this array. Several
    twigs may have the same root; roots that nobody asks for are left out (a removed twig's nodes have no bits)."""


class Events(NamedTuple):
    """Documents as what opens and closes in them, attributes and texts that twigs name among it."""

    symbols: Any
    """uint16 or uint32[events], as wide as the symbols need: a symbol opens, ``CLOSE`` closes. Each document is
    balanced and has one element at its top, or it has no events."""
    offsets: Any
    """int64[documents + 1]."""
    depth: int
    """Levels that no document exceeds, attributes and texts counted."""


NOTHING, TEXT, OPEN, SHUT, EMPTY, DOUBTFUL = range(6)
"""Kinds of words of a compressed column cut as XML: a comment or processing instruction; text; a start tag; an end
tag; a tag of an empty element; what only a parser can judge."""


class WordEvents(NamedTuple):
    """What the words of a grammar mean for twigs, by terminal."""

    kinds: Any
    """uint8[terminals]."""
    names: Any
    """uint32[terminals]: number of the name as written in a start or end tag; 0 for other kinds."""
    offsets: Any
    """uint32[terminals + 1]."""
    symbols: Any
    """uint32: events of each terminal. A start tag opens its element and after it come its attributes (each with its
    ``CLOSE``); an empty element's tag has the final ``CLOSE``, too; an end tag is one ``CLOSE``; a text may stand for
    texts that twigs name (each with its ``CLOSE``)."""

    @property
    def nbytes(self) -> int:
        """Bytes that the arrays hold."""
        return sum(int(array.nbytes) for array in self)


SOUND, UNSOUND = 0, 1
"""State of a document in a grammar: its events are those of one well-formed document; or a parser has to look: it has
a doubtful word, tags do not match, not one element at its top, text outside of it, or too many levels."""
