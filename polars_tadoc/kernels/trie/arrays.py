"""The arrays of a dictionary: a path-compressed trie in level order (LOUDS), its edges in blocks of 128.

An edge is a byte, its *label*, and the bytes that follow without a branch, its *tail*. Edges are in level order: first
those of the root, by label; the children of one edge form a *group*, sorted by label. An edge with children is *inner*;
one without is a *leaf* and ends a word. In Patricia tries every inner edge branches or ends a word, so there are few of
them: real vocabularies have 1.3 edges per word.

Three bits per edge tell whether it is inner, starts a group, and has a tail. A block of 128 edges has these bits and
its directory in one cache line: the first child of its first inner edge, the number of inner edges before it, the start
of its tails, and the parent of its first edge. Steps down and up read one or two such lines and one line of labels; no
other structure for rank and select is needed.

Tails are strings of one-byte codes. A code is a *phrase* of one to seven bytes, numbered among those that follow the
same byte: the previous byte (at first the label) and the code identify the phrase. So tails share their bytes, frequent
ones take one byte, and no pointers are stored.

Jacobson, FOCS 1989 (LOUDS); Morrison, JACM 1968 (Patricia); Yata, Tx and marisa-trie (tries of words in this form).
"""

from __future__ import annotations

from typing import Any, NamedTuple

BLOCK = 128
"""Edges in a block."""

WORDS = 8
"""64-bit numbers per line."""

INNER, FIRST, TAILED = 0, 2, 4
"""First of the two numbers of a line with the bits of inner edges, of starts of groups, of edges with tails."""

CHILDREN, TAILS = 6, 7
"""Numbers of a line: the first child of its first inner edge, and the number of inner edges before it; the start of its
tails, and the parent of its first edge. The first of each pair is in the low half."""

COUNTED = 512
"""Inner edges per count of words."""

NO_PARENT = 0xFFFFFFFF
"""Parent of a block whose first edge is at the root."""

LONGEST_PHRASE = 7
"""Maximum bytes of a phrase: with its length they fill 64 bits."""


class Trie(NamedTuple):
    """A dictionary's arrays, NumPy or CuPy; each at least one block, count or number long, and padded with zeros.

    Word ids are 0 to ``words - 1``: first the leaves in level order, then the inner edges at which words end.
    """

    words: int
    """Number of words; also the id of missing words."""

    edges: int
    """Edges."""

    inner: int
    """Number of inner edges; ``edges - inner`` are leaves."""

    longest: int
    """Bytes of the longest word."""

    labels: Any
    """uint8, 128 per block: label of each edge."""

    blocks: Any
    """uint64, 8 per block of 128 edges: two each with the bits of inner edges, of starts of groups, and of edges with
    tails (edge 0 in the lowest bit of the first); then the first child of its first inner edge (low half) and the
    number of inner edges before it (high half); then the start of its tails among the codes (low half) and the parent
    of its first edge (high half; ``NO_PARENT`` at the root)."""

    codes: Any
    """uint8: the concatenated tails."""

    code_ends: Any
    """uint64: a bit per code, set at the end of a tail."""

    phrases: Any
    """uint64: length in the low byte, then the phrase's bytes, first one lowest."""

    phrase_starts: Any
    """uint32, 257: first phrase after each byte."""

    inner_words: Any
    """uint64, 8 per count: a bit per inner edge, set if a word ends there."""

    inner_words_before: Any
    """uint32: number of words that end at inner edges before each 512 of them."""

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(int(array.nbytes) for array in self.arrays)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arrays, in the order of the fields."""
        return tuple(self[4:])


DTYPES = {
    "labels": "uint8",
    "blocks": "uint64",
    "codes": "uint8",
    "code_ends": "uint64",
    "phrases": "uint64",
    "phrase_starts": "uint32",
    "inner_words": "uint64",
    "inner_words_before": "uint32",
}
"""Type of each array, in the order of the fields."""


def problem(trie: Trie) -> str | None:
    """Return why the arrays of an untrusted trie do not fit together, None if they do.

    Look-ups rely on these types, sizes and counts to stay within the arrays. Numbers that point into arrays are not
    checked here: each look-up clamps them itself.
    """
    for name, dtype in DTYPES.items():
        array = getattr(trie, name)
        if array.ndim != 1 or array.dtype != dtype:
            return f"{name} is not a one-dimensional array of {dtype}"
    edges, inner, codes = trie.edges, trie.inner, len(trie.codes)
    if not (0 <= inner <= edges < NO_PARENT and codes < NO_PARENT):
        return f"{inner} inner edges of {edges} and {codes} codes do not form a trie"
    if not (edges - inner <= trie.words <= edges and 0 <= trie.longest < NO_PARENT):
        return f"{trie.words} words of up to {trie.longest} bytes do not fit {edges} edges"
    blocks, counts = max(1, -(-edges // BLOCK)), max(1, -(-inner // COUNTED))
    wanted = {
        "labels": BLOCK * blocks,
        "blocks": WORDS * blocks,
        "codes": max(codes, 1),
        "code_ends": max(1, -(-codes // 64)),
        "phrases": max(len(trie.phrases), 1),
        "phrase_starts": 257,
        "inner_words": COUNTED // 64 * counts,
        "inner_words_before": counts,
    }
    for name, length in wanted.items():
        if len(getattr(trie, name)) != length:
            return f"{name} holds {len(getattr(trie, name))} numbers instead of {length}"
    return None
