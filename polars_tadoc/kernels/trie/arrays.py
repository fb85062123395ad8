"""The arrays of a dictionary: a path-compressed trie in level order (LOUDS), its edges in blocks of 128.

An edge is a byte, its *label*, and the bytes that follow with no branch, its *tail*. Edges stand in level order:
those of the root first, by label; the children of one edge stand together, a *group*, by label. An edge with children
is *inner*, one without is a *leaf* and ends a word. Patricia tries branch or end a word at every inner edge, so
there are few of them: real vocabularies have 1.3 edges a word.

Three bits tell of an edge whether it is inner, whether it starts a group, and whether it has a tail. A block of 128
edges keeps these bits and its directory in one cache line: where the children of its first inner edge start, the
inner edges before it, where its tails start and whose children its first edge is among. Steps down and up read one
or two such lines and one of labels, and nothing else need be kept for rank and select.

Tails are strings of one-byte codes. A code stands for a *phrase* of one to seven bytes, numbered among those that
follow the same byte: the byte before (the label at first) and the code tell the phrase. So the tails share their
bytes, frequent ones take a byte in all, and no pointer is kept for any.

Jacobson, FOCS 1989 (LOUDS); Morrison, JACM 1968 (Patricia); Yata, Tx and marisa-trie (tries of words in this form).
"""

from __future__ import annotations

from typing import Any, NamedTuple

BLOCK = 128
"""Edges in a block."""

WORDS = 8
"""Numbers of 64 bits that a block's line has."""

INNER, FIRST, TAILED = 0, 2, 4
"""First of the two numbers of a line whose bits tell which edges are inner, which start a group, which have a tail."""

CHILDREN, TAILS = 6, 7
"""Numbers of a line: where the children of its first inner edge start, and the inner edges before it; where its tails
start, and the edge whose child its first edge is. The first of each pair is in the low half."""

COUNTED = 512
"""Inner edges for which one count of the words before is kept."""

NO_PARENT = 0xFFFFFFFF
"""Says that a block's first edge is one of the root's."""

LONGEST_PHRASE = 7
"""Bytes of a phrase: with its length they fill a number of 64 bits."""


class Trie(NamedTuple):
    """A dictionary's arrays, NumPy's or CuPy's; each at least one block, count or number long, and padded with zero.

    Word ids run from 0 to ``words - 1``: first the leaves in level order, then the inner edges at which words end.
    """

    words: int
    """Words; also the id of what is none of them."""

    edges: int
    """Edges."""

    inner: int
    """Inner edges; ``edges - inner`` are leaves."""

    longest: int
    """Bytes of the longest word."""

    labels: Any
    """uint8, 128 a block: first byte of each edge."""

    blocks: Any
    """uint64, 8 a block of 128 edges: two each of bits that tell which edges are inner, which start a group, and
    which have a tail (edge 0 in the lowest bit of the first); then the edge where the children of its first inner
    edge start (low half) and the inner edges before it (high half); then the code where its tails start (low half) and
    the edge whose child its first edge is (high half; ``NO_PARENT``: the root's)."""

    codes: Any
    """uint8: the tails one after another."""

    code_ends: Any
    """uint64: a bit for each code, set where a tail ends."""

    phrases: Any
    """uint64: length in the low byte, then the phrase's bytes, first one lowest."""

    phrase_starts: Any
    """uint32, 257: first phrase that follows each byte."""

    inner_words: Any
    """uint64, 8 a count: a bit for each inner edge, set where a word ends."""

    inner_words_before: Any
    """uint32: words that end at inner edges before each 512 of them."""

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(int(array.nbytes) for array in self.arrays)

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The arrays, in the order of their fields."""
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
    """Say why the arrays of a made-up trie do not fit each other, None where they do.

    Types, sizes and counts are what look-ups rely on for their reads to stay within the arrays. Where the numbers in
    them point is not looked at: each look-up clamps that itself.
    """
    for name, dtype in DTYPES.items():
        array = getattr(trie, name)
        if array.ndim != 1 or array.dtype != dtype:
            return f"{name} is not one row of {dtype}"
    edges, inner, codes = trie.edges, trie.inner, len(trie.codes)
    if not (0 <= inner <= edges < NO_PARENT and codes < NO_PARENT):
        return f"{inner} inner edges of {edges} and {codes} codes are no trie"
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
            return f"{name} holds {len(getattr(trie, name))} numbers in place of {length}"
    return None
