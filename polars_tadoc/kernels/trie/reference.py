"""Plain-Python definition of a trie; every engine's look-ups must return the same results."""

from __future__ import annotations

from collections.abc import Iterator

from polars_tadoc.kernels.trie.arrays import (
    BLOCK,
    CHILDREN,
    COUNTED,
    FIRST,
    INNER,
    NO_PARENT,
    TAILED,
    TAILS,
    WORDS,
    Trie,
)

_HALF = 0xFFFFFFFF


def _word(trie: Trie, block: int, word: int) -> int:
    return int(trie.blocks[WORDS * block + word])


def _bit(trie: Trie, kind: int, edge: int) -> bool:
    """Tell whether an edge is inner, starts a group, or has a tail."""
    return bool(_word(trie, edge // BLOCK, kind + edge % BLOCK // 64) >> edge % 64 & 1)


def _before(trie: Trie, kind: int, edge: int) -> int:
    """Count the set bits of a kind before an edge in its block."""
    return sum(_bit(trie, kind, other) for other in range(edge // BLOCK * BLOCK, edge))


def _select(trie: Trie, kind: int, edge: int, count: int) -> int:
    """Return the edge of set bit number ``count``, from 0, counted from ``edge`` on; ``edges`` if there is none."""
    for other in range(edge, trie.edges):
        if _bit(trie, kind, other):
            if count == 0:
                return other
            count -= 1
    return trie.edges


def _inner_before(trie: Trie, edge: int) -> int:
    return (_word(trie, edge // BLOCK, CHILDREN) >> 32) + _before(trie, INNER, edge)


def children(trie: Trie, edge: int | None) -> range:
    """Return the children of an edge, or of the root for None."""
    if edge is None:
        start = 0
    elif not _bit(trie, INNER, edge):
        return range(0)
    else:
        first = _word(trie, edge // BLOCK, CHILDREN) & _HALF
        start = _select(trie, FIRST, first, _before(trie, INNER, edge))
    return range(start, _select(trie, FIRST, start + 1, 0))


def parent(trie: Trie, edge: int) -> int | None:
    """Return the parent of an edge, None for an edge at the root."""
    block = edge // BLOCK
    groups = sum(_bit(trie, FIRST, other) for other in range(block * BLOCK + 1, edge + 1))
    above = _word(trie, block, TAILS) >> 32
    if above == NO_PARENT:
        return _select(trie, INNER, 0, groups - 1) if groups else None
    return _select(trie, INNER, above, groups)


def edge_bytes(trie: Trie, edge: int) -> bytes:
    """Return an edge's label and tail."""
    text = bytes([trie.labels[edge]])
    if not _bit(trie, TAILED, edge):
        return text
    at = _word(trie, edge // BLOCK, TAILS) & _HALF
    for _ in range(_before(trie, TAILED, edge)):
        while not int(trie.code_ends[at // 64]) >> at % 64 & 1:
            at += 1
        at += 1
    while True:
        phrase = int(trie.phrases[int(trie.phrase_starts[text[-1]]) + int(trie.codes[at])])
        text += (phrase >> 8).to_bytes(7, "little")[: phrase & 255]
        if int(trie.code_ends[at // 64]) >> at % 64 & 1:
            return text
        at += 1


def word_of(trie: Trie, edge: int) -> int:
    """Return the id of the word that ends at an edge, ``words`` if there is none."""
    inner = _inner_before(trie, edge)
    if not _bit(trie, INNER, edge):
        return edge - inner
    if not int(trie.inner_words[inner // 64]) >> inner % 64 & 1:
        return trie.words
    start = inner // COUNTED * COUNTED
    ends = sum(int(trie.inner_words[other // 64]) >> other % 64 & 1 for other in range(start, inner))
    return trie.edges - trie.inner + int(trie.inner_words_before[inner // COUNTED]) + ends


def path(trie: Trie, text: bytes) -> Iterator[tuple[int, int]]:
    """Walk down along a text; yield each edge that matches completely, and its end in the text."""
    edge, at = None, 0
    while at < len(text):
        for child in children(trie, edge):
            string = edge_bytes(trie, child)
            if text.startswith(string, at):
                edge, at = child, at + len(string)
                yield edge, at
                break
        else:
            return


def look_up(trie: Trie, word: bytes) -> int:
    """Return a word's id, ``words`` for a missing one."""
    for edge, at in path(trie, word):
        if at == len(word):
            return word_of(trie, edge)
    return trie.words


def spell(trie: Trie, word: int) -> bytes:
    """Return the word of an id; empty for an invalid id."""
    edge = next((edge for edge in range(trie.edges) if word_of(trie, edge) == word), None)
    text = b""
    while edge is not None and word < trie.words:
        text = edge_bytes(trie, edge) + text
        edge = parent(trie, edge)
    return text


def common_prefixes(trie: Trie, text: bytes) -> list[int]:
    """Return the ids of the words that are prefixes of a text, shortest first."""
    ids = (word_of(trie, edge) for edge, _ in path(trie, text))
    return [word for word in ids if word < trie.words]


def with_prefix(trie: Trie, prefix: bytes, limit: int | None = None) -> list[int]:
    """Return the ids of the words with a prefix, in byte order, at most ``limit``."""

    def below(edge: int | None, text: bytes) -> Iterator[int]:
        if edge is not None and word_of(trie, edge) < trie.words and text.startswith(prefix):
            yield word_of(trie, edge)
        for child in children(trie, edge):
            string = text + edge_bytes(trie, child)
            if string.startswith(prefix) or prefix.startswith(string):
                yield from below(child, string)

    ids = list(below(None, b""))
    return ids if limit is None else ids[:limit]
