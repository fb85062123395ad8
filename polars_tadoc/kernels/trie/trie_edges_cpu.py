"""Lists the edges of a trie in level order from sorted words, and fills its bit vectors and directories."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from polars_tadoc.kernels.trie.arrays import BLOCK, CHILDREN, COUNTED, FIRST, INNER, NO_PARENT, TAILED, TAILS, WORDS
from polars_tadoc.runtime.addresses import count_ones
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import inner, kernel, polled_kernel

_POLLED = 0xFFFF
"""Words or edges between polls for interrupts: 3 ms; the other kernels take 12 ms per million words."""

_1, _32, _63 = (np.uint64(number) for number in (1, 32, 63))


class Edges(NamedTuple):
    """Edges in level order."""

    starts: Int64
    lengths: UInt32
    """By edge: start of its bytes in the words, and their number."""
    ends_word: UInt8
    """By edge: whether a word ends there."""
    labels: UInt8
    blocks: UInt64
    """As in :class:`~polars_tadoc.kernels.trie.arrays.Trie`; initially zero."""


@inner
def _line(edge: Any) -> Any:
    """Return the position in ``blocks`` of the word with an edge's ``INNER`` bit."""
    return WORDS * (edge // BLOCK) + edge % BLOCK // 64


@inner
def _has(blocks: UInt64, edge: Any, kind: int) -> Any:
    """Return an edge's bit of a kind."""
    return nb.int64(blocks[_line(edge) + kind] >> (nb.uint64(edge) & _63) & _1)


@kernel
def common_lengths(offsets: Int64, data: UInt8, first: int, stop: int, common: UInt32) -> int:
    """Compute the length of the common prefix of each of the words ``first`` to ``stop`` with the word before.

    Returns the first word that is empty or not greater than the one before, -1 if there is none.
    """
    for word in range(first, stop):
        start, end = offsets[word], offsets[word + 1]
        if start == end:
            return word
        if word == 0:
            common[0] = 0
            continue
        before = offsets[word - 1]
        shorter = min(start - before, end - start)
        length = 0
        while length < shorter and data[before + length] == data[start + length]:
            length += 1
        if start + length == end or (before + length < start and data[before + length] > data[start + length]):
            return word
        common[word] = length
    return -1


@polled_kernel
def list_edges(offsets: Int64, common: UInt32, words: UInt32, ends: UInt32, stack: UInt32) -> int:
    """List the edges, from the back of ``words`` and ``ends``, so that each precedes its descendants.

    An edge is the first word below it and its end in that word. Words are processed from last to first: edges beyond
    the common prefix with the word before are then complete. Returns the start of the list. ``words`` and ``ends`` have
    room for two edges per word, ``stack`` for one per byte of the longest word.
    """
    began = interrupts()
    count = len(common)
    at, top = 2 * count, 0
    for word in range(count - 1, -1, -1):
        if word & _POLLED == 0 and interrupts() != began:
            return at
        shared = common[word + 1] if word + 1 < count else nb.uint32(0)
        while top > 0 and stack[top - 1] > shared:
            top -= 1
            at -= 1
            words[at], ends[at] = word + 1, stack[top]
        length = nb.uint32(offsets[word + 1] - offsets[word])
        for end in (shared, length):
            if end > 0 and (top == 0 or stack[top - 1] < end):
                stack[top] = end
                top += 1
    while top > 0:
        top -= 1
        at -= 1
        words[at], ends[at] = 0, stack[top]
    return at


@kernel
def count_levels(words: UInt32, ends: UInt32, common: UInt32, stack: UInt32, levels: UInt32, sizes: Int64) -> None:
    """Compute the level of each edge, and the number of edges per level."""
    top = 0
    for edge in range(len(words)):
        if edge == 0 or words[edge] != words[edge - 1]:
            shared = common[words[edge]]
            while top > 0 and stack[top - 1] > shared:
                top -= 1
        levels[edge] = top
        sizes[top] += 1
        stack[top] = ends[edge]
        top += 1


@polled_kernel
def place_edges(
    offsets: Int64,
    data: UInt8,
    words: UInt32,
    ends: UInt32,
    levels: UInt32,
    places: Int64,
    stack: UInt32,
    placed: Edges,
) -> None:
    """Put the edges in level order; ``places`` has the next position of each level, and is advanced."""
    began = interrupts()
    count = len(words)
    for edge in range(count):
        if edge & _POLLED == 0 and interrupts() != began:
            return
        level = levels[edge]
        place = places[level]
        places[level] += 1
        word, end = words[edge], ends[edge]
        start = stack[level - 1] if level > 0 else nb.uint32(0)
        stack[level] = end
        placed.starts[place] = offsets[word] + start
        placed.lengths[place] = end - start
        placed.labels[place] = data[offsets[word] + start]
        placed.ends_word[place] = offsets[word] + end == offsets[word + 1]
        line, bit = _line(place), _1 << (nb.uint64(place) & _63)
        if edge + 1 < count and levels[edge + 1] > level:
            placed.blocks[line + INNER] |= bit
        if edge == 0 or levels[edge - 1] < level:
            placed.blocks[line + FIRST] |= bit
        if end - start > 1:
            placed.blocks[line + TAILED] |= bit


@kernel
def fill_directory(edges: int, blocks: UInt64, codes: int, code_ends: UInt64) -> None:
    """Fill the directory of each block: references to the edges before, above and below it."""
    inner, groups, tails = 0, 0, 0  # numbers before the block
    child, child_groups = 0, 1  # the current group starts at ``child``; initially the root's
    parent, parents = -1, 0  # the last inner edge passed, and the number of these
    code, code_tails = 0, 0
    for block in range(len(blocks) // WORDS):
        line = WORDS * block
        while child_groups < inner + 2 and child < edges:  # the root's group, those before, and the current one
            child += 1
            if child < edges:
                child_groups += _has(blocks, child, FIRST)
        own = groups + _has(blocks, BLOCK * block, FIRST) - 1  # the group of the first edge; the root's is 0
        while parents < own:
            parent += 1
            parents += _has(blocks, parent, INNER)
        while code_tails < tails and code < codes:
            code_tails += nb.int64(code_ends[code // 64] >> (nb.uint64(code) & _63) & _1)
            code += 1
        above = nb.uint64(parent) if own > 0 else nb.uint64(NO_PARENT)
        blocks[line + CHILDREN] = nb.uint64(child) | nb.uint64(inner) << _32
        blocks[line + TAILS] = nb.uint64(code) | above << _32
        for half in range(2):
            inner += count_ones(blocks[line + INNER + half])
            groups += count_ones(blocks[line + FIRST + half])
            tails += count_ones(blocks[line + TAILED + half])


@kernel
def fill_inner_words(edges: int, blocks: UInt64, ends_word: UInt8, inner_words: UInt64, before: UInt32) -> None:
    """Fill the bits of inner edges that end words, and the counts before each ``COUNTED`` of them."""
    number, found = 0, 0
    for edge in range(edges):
        if _has(blocks, edge, INNER):
            if number % COUNTED == 0:
                before[number // COUNTED] = found
            if ends_word[edge]:
                inner_words[number // 64] |= _1 << (nb.uint64(number) & _63)
                found += 1
            number += 1
