"""Spells the words of ids, and searches a trie by prefixes."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.trie.arrays import Trie
from polars_tadoc.kernels.trie.trie_walk_cpu import (
    CHILDREN,
    FIRST,
    INNER,
    TAILED,
    TAILS,
    before_in_block,
    bits_at,
    child_in_group,
    group_below,
    has,
    high_half,
    match_tail,
    nth,
    ones,
    place_of,
    tail_of,
    word_at,
)
from polars_tadoc.runtime.addresses import load_u8, store_u8
from polars_tadoc.runtime.array_types import Int64, UInt32
from polars_tadoc.runtime.jit import inner, kernel

_0, _1, _2, _3, _6, _7 = (np.uint64(number) for number in (0, 1, 2, 3, 6, 7))
_63, _255 = (np.uint64(number) for number in (63, 255))
_HALF = np.uint64(0xFFFFFFFF)


@inner
def _nth_inner(trie: Trie, start: Any, count: Any) -> Any:
    """Return inner edge number ``count``, from 0, counted from an edge on; ``edges`` if there is none."""
    return nth(trie, INNER, start, count, nb.uint64(len(trie.labels)) >> _6)


@inner
def _edge_of_inner(trie: Trie, number: Any) -> Any:
    """Return the inner edge with a number."""
    low, high = _0, nb.uint64(len(trie.blocks)) >> _3  # the last block with at most this many inner edges before it
    while high - low > _1:
        middle = (low + high) >> _1
        if high_half(trie, middle << _7, CHILDREN) <= number:
            low = middle
        else:
            high = middle
    before = high_half(trie, low << _7, CHILDREN)
    return _nth_inner(trie, low << _7, number - min(before, number))


@inner
def _edge_of_leaf(trie: Trie, number: Any) -> Any:
    """Return the leaf with a number."""
    low, high = _0, nb.uint64(len(trie.blocks)) >> _3
    while high - low > _1:
        middle = (low + high) >> _1
        if (middle << _7) - high_half(trie, middle << _7, CHILDREN) <= number:
            low = middle
        else:
            high = middle
    count = number - min((low << _7) - high_half(trie, low << _7, CHILDREN), number)
    for half in range(_2):
        start = (low << _7) + (half << _6)
        bits = ~bits_at(trie, start, INNER)
        here = ones(bits)
        if count < here:
            return start + place_of(bits, count)
        count -= here
    return nb.uint64(trie.edges)


@inner
def _edge_of_word(trie: Trie, word: Any) -> Any:
    """Return the edge at which the word of an id ends; ``edges`` for an invalid id."""
    leaves = nb.uint64(trie.edges - trie.inner)
    if word >= nb.uint64(trie.words):
        return nb.uint64(trie.edges)
    if word < leaves:
        return _edge_of_leaf(trie, word)
    count = word - leaves
    low, high = _0, nb.uint64(len(trie.inner_words_before))
    while high - low > _1:
        middle = (low + high) >> _1
        if trie.inner_words_before[middle] <= count:
            low = middle
        else:
            high = middle
    count -= min(nb.uint64(trie.inner_words_before[low]), count)
    for number in range(low << _3, (low + _1) << _3):
        bits = trie.inner_words[number]
        here = ones(bits)
        if count < here:
            return _edge_of_inner(trie, (number << _6) + place_of(bits, count))
        count -= here
    return nb.uint64(trie.edges)


@inner
def _parent(trie: Trie, edge: Any) -> Any:
    """Return the parent of an edge, which is lower; ``edges`` for an edge at the root."""
    # groups that start after the block's first edge, up to this one
    groups = before_in_block(trie, edge, FIRST) + has(trie, edge, FIRST) - has(trie, edge >> _7 << _7, FIRST)
    above = high_half(trie, edge, TAILS)
    if above == _HALF:
        if groups == _0:
            return nb.uint64(trie.edges)
        above = _0
        groups -= _1
    found = _nth_inner(trie, above, groups)
    return found if found < edge else nb.uint64(trie.edges)


@inner
def _tail_length(trie: Trie, edge: Any, most: Any) -> Any:
    """Count the bytes after an edge's label, up to ``most`` or a few more."""
    code, codes, phrases = tail_of(trie, edge), nb.uint64(len(trie.codes)), nb.uint64(len(trie.phrases))
    before, length = nb.uint64(trie.labels[edge]), _0
    while code < codes and length < most:
        phrase = nb.uint64(trie.phrase_starts[before]) + nb.uint64(trie.codes[code])
        if phrase >= phrases:
            break
        entry = trie.phrases[phrase]
        size = min(entry & _255, _7)
        length += size
        if trie.code_ends[code >> _6] >> (code & _63) & _1:
            break
        before = entry >> (size << _3) & _255
        code += _1
    return length


@inner
def _write_edge(trie: Trie, edge: Any, text: Any, room: Any) -> None:
    """Write an edge's first ``room`` bytes at an address."""
    if room == _0:
        return
    before = nb.uint64(trie.labels[edge])
    store_u8(text, trie.labels[edge])
    if not has(trie, edge, TAILED):
        return
    code, codes, phrases = tail_of(trie, edge), nb.uint64(len(trie.codes)), nb.uint64(len(trie.phrases))
    at = _1
    while code < codes and at < room:
        phrase = nb.uint64(trie.phrase_starts[before]) + nb.uint64(trie.codes[code])
        if phrase >= phrases:
            break
        entry = trie.phrases[phrase]
        size = min(entry & _255, _7)
        for i in range(_1, size + _1):
            if at < room:
                store_u8(text + at, nb.uint8(entry >> (i << _3) & _255))
                at += _1
        if trie.code_ends[code >> _6] >> (code & _63) & _1:
            break
        before = entry >> (size << _3) & _255
        code += _1


@inner
def _edge_length(trie: Trie, edge: Any) -> Any:
    return _1 + (_tail_length(trie, edge, nb.uint64(trie.longest)) if has(trie, edge, TAILED) else _0)


@kernel
def spelled_lengths(trie: Trie, ids: UInt32, first: Any, last: Any, lengths: Int64) -> None:
    """Compute the lengths of the words of ids; 0 for an invalid id, at most the longest word's."""
    edges, longest = nb.uint64(trie.edges), nb.uint64(trie.longest)
    for i in range(first, last):
        edge = _edge_of_word(trie, nb.uint64(ids[i]))
        length = _0
        while edge < edges and length < longest:
            length += _edge_length(trie, edge)
            edge = _parent(trie, edge)
        lengths[i] = min(length, longest)


@kernel
def write_words(trie: Trie, ids: UInt32, offsets: Int64, first: Any, last: Any, data: Any) -> None:
    """Write the words of ids to the positions from :func:`spelled_lengths`, from address ``data`` on."""
    edges = nb.uint64(trie.edges)
    for i in range(first, last):
        start, stop = data + nb.uint64(offsets[i]), data + nb.uint64(offsets[i + 1])
        edge = _edge_of_word(trie, nb.uint64(ids[i]))
        while edge < edges and stop > start:
            length = _edge_length(trie, edge)
            room = min(length, stop - start)
            stop -= room
            _write_edge(trie, edge, stop, room)
            edge = _parent(trie, edge)


@kernel
def list_prefixes(trie: Trie, text: Any, stop: Any, found: UInt32) -> Any:
    """List the words that are prefixes of the text between two addresses, shortest first; return their number."""
    group, edges, count = _0, nb.uint64(trie.edges), 0
    while text < stop and group < edges and count < len(found):
        byte = load_u8(text)
        edge = child_in_group(trie, group, byte)
        if edge >= edges:
            break
        text += _1
        if has(trie, edge, TAILED):
            text = match_tail(trie, tail_of(trie, edge), nb.uint64(byte), text, stop)
            if text == _0:
                break
        word = word_at(trie, edge)
        if word < nb.uint64(trie.words):
            found[count] = word
            count += 1
        if not has(trie, edge, INNER):
            break
        group = group_below(trie, edge)
    return count


@inner
def _starts_with(trie: Trie, edge: Any, text: Any, stop: Any, buffer: Any) -> Any:
    """Compare an edge's bytes with a text up to the end of either; return the edge's length, 0 if they differ."""
    length = _edge_length(trie, edge)
    common = min(length, stop - text)
    _write_edge(trie, edge, buffer, common)
    for i in range(common):
        if load_u8(buffer + i) != load_u8(text + i):
            return _0
    return length


@kernel
def top_of_prefix(trie: Trie, text: Any, stop: Any, buffer: Any) -> Any:
    """Return the highest edge below which all words have the text between two addresses as a prefix; ``edges`` if none.

    ``buffer`` is the address of as many bytes as the text has.
    """
    group, edges = _0, nb.uint64(trie.edges)
    while group < edges and text < stop:
        edge = child_in_group(trie, group, load_u8(text))
        if edge >= edges:
            break
        length = _starts_with(trie, edge, text, stop, buffer)
        if length == _0:
            break
        if length >= stop - text:
            return edge
        text += length
        if not has(trie, edge, INNER):
            break
        group = group_below(trie, edge)
    return edges


@kernel
def list_below(trie: Trie, top: Any, found: UInt32) -> Any:
    """List the words at and below an edge, all words for ``edges``, in byte order; return their number.

    Visits an edge, then those below it, then the next one of its group, or of the lowest group above with a next edge.
    Needs no stack: parents lead back up. Takes at most as many steps as there are edges, at most as deep as the longest
    word.
    """
    edges, words, longest = nb.uint64(trie.edges), nb.uint64(trie.words), nb.uint64(trie.longest)
    count, depth, edge = 0, _1, nb.uint64(top)
    if edge >= edges:
        edge = _0
    whole = nb.uint64(top) >= edges
    for _ in range(trie.edges):
        if edge >= edges or count >= len(found):
            break
        word = word_at(trie, edge)
        if word < words:
            found[count] = word
            count += 1
        below = group_below(trie, edge) if has(trie, edge, INNER) and depth < longest else edges
        if below < edges:
            edge = below
            depth += _1
            continue
        while edge < edges:  # the next edge of this group, or of one above
            if not whole and depth == _1:
                return count
            following = edge + _1
            if following < edges and not has(trie, following, FIRST):
                edge = following
                break
            edge = _parent(trie, edge)
            depth -= _1
            if depth == _0:
                return count
    return count
