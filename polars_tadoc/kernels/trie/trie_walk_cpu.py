"""Steps of a walk in a trie, down and up; none reads out of bounds, whatever the arrays contain.

The arrays' sizes must have been checked (:func:`polars_tadoc.kernels.trie.arrays.problem`).
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.trie import arrays as layout
from polars_tadoc.kernels.trie.arrays import Trie
from polars_tadoc.runtime.addresses import count_ones, equal_bits, load_u64, trailing_zeros
from polars_tadoc.runtime.jit import inner

_0, _1, _2, _3, _4, _6, _7, _8, _9 = (np.uint64(number) for number in (0, 1, 2, 3, 4, 6, 7, 8, 9))
INNER, FIRST, TAILED, CHILDREN, TAILS = (
    np.uint64(place) for place in (layout.INNER, layout.FIRST, layout.TAILED, layout.CHILDREN, layout.TAILS)
)
_32, _63, _64, _255 = (np.uint64(number) for number in (32, 63, 64, 255))
_HALF = np.uint64(0xFFFFFFFF)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_FIVES, _THREES, _FIFTEENS, _EACH, _HIGH = (
    np.uint64(byte * 0x0101010101010101) for byte in (0x55, 0x33, 0x0F, 0x01, 0x80)
)

_IN_BYTE = np.array(
    [
        ([place for place in range(8) if byte >> place & 1] + [0] * 8)[count]
        for byte in range(256)
        for count in range(8)
    ],
    np.uint8,
)
"""By byte and count: position of the set bit after ``count`` lower ones."""

GROUP_WORDS = 5
"""64-bit words that the 256 edges of the largest group can span."""

CHILD_WORDS = 514
"""Words that 128 such groups can span."""


@inner
def ones(bits: Any) -> Any:
    """Count the set bits, unsigned."""
    return nb.uint64(count_ones(nb.uint64(bits)))


@inner
def place_of(bits: Any, count: Any) -> Any:
    """Return the position of the set bit after ``count`` lower ones, which must exist.

    Branch-free, as branches would be unpredictable (Vigna, WEA 2008, algorithm 2).
    """
    sums = bits - (bits >> _1 & _FIVES)
    sums = (sums & _THREES) + (sums >> _2 & _THREES)
    sums = (sums + (sums >> _4) & _FIFTEENS) * _EACH  # by byte: number of set bits up to its end
    place = ones(((count * _EACH | _HIGH) - sums) & _HIGH) << _3
    within = count - (sums << _8 >> place & _255)
    return place + nb.uint64(_IN_BYTE[(bits >> place & _255) << _3 | within & _7])


@inner
def bits_at(trie: Trie, edge: Any, kind: Any) -> Any:
    """Return the 64 bits of a kind that contain an edge's bit."""
    return trie.blocks[(edge >> _7 << _3) + kind + (edge >> _6 & _1)]


@inner
def has(trie: Trie, edge: Any, kind: Any) -> Any:
    """Tell whether an edge is ``INNER``, the ``FIRST`` of a group, or ``TAILED``."""
    return bits_at(trie, edge, kind) >> (edge & _63) & _1


@inner
def low_half(trie: Trie, edge: Any, place: Any) -> Any:
    """Return the first child of the first inner edge (``CHILDREN``), or the start of the tails, of an edge's block."""
    return trie.blocks[(edge >> _7 << _3) + place] & _HALF


@inner
def high_half(trie: Trie, edge: Any, place: Any) -> Any:
    """Return the inner edges before an edge's block (``CHILDREN``), or its first edge's parent (``TAILS``)."""
    return trie.blocks[(edge >> _7 << _3) + place] >> _32


@inner
def before_in_block(trie: Trie, edge: Any, kind: Any) -> Any:
    """Count the bits of a kind before an edge in its block."""
    line = (edge >> _7 << _3) + kind
    below = (_1 << (edge & _63)) - _1
    upper = _0 - (edge >> _6 & _1)  # all bits or none: a branch would be mispredicted half the time
    return ones(trie.blocks[line] & (below | upper)) + ones(trie.blocks[line + _1] & below & upper)


@inner
def inner_before(trie: Trie, edge: Any) -> Any:
    """Count the inner edges before an edge."""
    return high_half(trie, edge, CHILDREN) + before_in_block(trie, edge, INNER)


@inner
def child_in_group(trie: Trie, start: Any, byte: Any) -> Any:
    """Return the edge with a label in the group that starts at an edge; ``edges`` if there is none."""
    edges = nb.uint64(trie.edges)
    word, words = start >> _6, nb.uint64(len(trie.labels)) >> _6
    mask = _ALL << (start & _63)
    last = min(word + nb.uint64(GROUP_WORDS), words)
    beyond = mask & ~(_1 << (start & _63))
    while word < last:
        next_group = bits_at(trie, word << _6, FIRST) & beyond
        own = (next_group & (~next_group + _1)) - _1  # the bits below the lowest set one; all if there is none
        hits = equal_bits(trie.labels, word << _6, byte) & mask & own
        if hits != _0:
            return min((word << _6) + nb.uint64(trailing_zeros(hits)), edges)
        if next_group != _0:
            return edges
        word += _1
        mask = beyond = _ALL
    return edges


@inner
def group_below(trie: Trie, edge: Any) -> Any:
    """Return the first child of an inner edge; ``edges`` if the arrays are damaged."""
    count = before_in_block(trie, edge, INNER)
    return nth(trie, FIRST, low_half(trie, edge, CHILDREN), count, nb.uint64(CHILD_WORDS))


@inner
def nth(trie: Trie, kind: Any, start: Any, count: Any, most: Any) -> Any:
    """Return edge number ``count`` of a kind, from 0, counted from an edge on; ``edges`` if not in ``most`` words."""
    word, words = start >> _6, nb.uint64(len(trie.labels)) >> _6
    last = min(word + most, words)
    mask = _ALL << (start & _63)
    while word < last:
        bits = bits_at(trie, word << _6, kind) & mask
        here = ones(bits)
        if count < here:
            return (word << _6) + place_of(bits, count)
        count -= here
        word += _1
        mask = _ALL
    return nb.uint64(trie.edges)


@inner
def tail_of(trie: Trie, edge: Any) -> Any:
    """Return the start of an edge's tail among the codes; the end of the codes if the arrays are damaged."""
    count = before_in_block(trie, edge, TAILED)
    start = low_half(trie, edge, TAILS)
    if count == _0:
        return start
    count -= _1
    word, words = start >> _6, nb.uint64(len(trie.code_ends))
    mask = _ALL << (start & _63)
    while word < words:
        ends = trie.code_ends[word] & mask
        here = ones(ends)
        if count < here:
            return (word << _6) + place_of(ends, count) + _1
        count -= here
        word += _1
        mask = _ALL
    return nb.uint64(len(trie.codes))


@inner
def match_tail(trie: Trie, code: Any, before: Any, text: Any, stop: Any) -> Any:
    """Compare a tail with the bytes from address ``text`` to ``stop``; return the address after it, 0 if it differs.

    ``code`` is its start, ``before`` the byte before it. Eight bytes can be read from each address before ``stop``.
    """
    codes, phrases = nb.uint64(len(trie.codes)), nb.uint64(len(trie.phrases))
    while code < codes:
        phrase = nb.uint64(trie.phrase_starts[before]) + nb.uint64(trie.codes[code])
        if phrase >= phrases or text >= stop:
            return _0
        entry = trie.phrases[phrase]
        length = entry & _255
        if length - _1 > _6 or text + length > stop:
            return _0
        if (load_u64(text) ^ entry >> _8) << (_64 - (length << _3)) != _0:
            return _0
        if trie.code_ends[code >> _6] >> (code & _63) & _1:
            return text + length
        before = entry >> (length << _3) & _255
        text += length
        code += _1
    return _0


@inner
def word_at(trie: Trie, edge: Any) -> Any:
    """Return the id of the word that ends at an edge; ``words`` if there is none."""
    before = inner_before(trie, edge)
    words = nb.uint64(trie.words)
    if not has(trie, edge, INNER):
        return min(edge - before, words)
    if before >= nb.uint64(len(trie.inner_words)) << _6:
        return words
    word = before >> _6
    if not trie.inner_words[word] >> (before & _63) & _1:
        return words
    found = nb.uint64(trie.edges - trie.inner) + nb.uint64(trie.inner_words_before[before >> _9])
    for other in range(word & ~_7, word):
        found += ones(trie.inner_words[other])
    return min(found + ones(trie.inner_words[word] & ((_1 << (before & _63)) - _1)), words)
