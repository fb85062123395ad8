"""Expands rows to word ids, for merging grammars; parses new rows with existing rules, for appending."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.primitives.lists import copy_run
from polars_tadoc.kernels.primitives.varint import read_own_varint, read_varint, varint_size, write_varint
from polars_tadoc.kernels.tokenize.tokenize_cpu import EMPTY_ID, SPACE_ID
from polars_tadoc.runtime.addresses import load_u32, load_u64, store_u32, store_u64
from polars_tadoc.runtime.array_types import Bools, Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import kernel

UNKNOWN = 0xFFFFFFFE
"""Id of a word or gap that the grammar does not have."""

PIECE = 1 << 14
"""Words of a row that are parsed together."""

MAX_MATCHES = 64
"""Maximum rules kept per position."""

STEPS = 128
"""Trie steps per word; steps not used at one position remain for positions to its left."""

MAX_STEPS = 1 << 17
"""Maximum steps for one position, including remaining ones: a rule takes as many as its body has symbols, thousands."""

_K2 = np.uint64(0xD6E8FEB86659FD93)
_32 = np.uint64(32)
_EDGE_BYTES = np.uint64(12)
_NEXT = np.uint64(8)
"""Index of the next node in an edge."""


@polled
@njit
def expand_rows(
    vocabulary_size: int,
    rule_offsets: UInt32,
    symbols: UInt32,
    levels: int,
    expansion_lengths: UInt64,
    word_ids: UInt32,
    root_offsets: Int64,
    roots: UInt32,
    starts: Int64,
    sequence: UInt32,
) -> None:
    """Write each row's words with mapped ids from ``sequence[starts[row]]``.

    A rule's words are copied from their last occurrence in the output: long phrases cost one copy.
    """
    began = interrupts()
    copied_from = np.full(len(rule_offsets) - 1, -1, np.int64)
    position = np.empty(levels + 1, np.int64)
    stop = np.empty(levels + 1, np.int64)
    for row in range(len(starts)):
        if interrupts() != began:
            return
        at = starts[row]
        for i in range(root_offsets[row], root_offsets[row + 1]):
            if i & 0xFF == 0 and interrupts() != began:
                return
            depth = 0
            symbol = nb.int64(roots[i])
            while True:
                if symbol < vocabulary_size:
                    sequence[at] = word_ids[symbol]
                    at += 1
                else:
                    rule = symbol - vocabulary_size
                    source = copied_from[rule]
                    if source >= 0:
                        length = nb.int64(expansion_lengths[rule])
                        if not copy_run(sequence, source, at, length, began):
                            return
                        at += length
                    else:
                        copied_from[rule] = at
                        position[depth] = rule_offsets[rule]
                        stop[depth] = rule_offsets[rule + 1]
                        depth += 1
                while depth > 0 and position[depth - 1] == stop[depth - 1]:
                    depth -= 1
                if depth == 0:
                    break
                symbol = nb.int64(symbols[position[depth - 1]])
                position[depth - 1] += 1


@polled
@kernel
def place_gaps(
    gap_ids: UInt32,
    predicted_gaps: UInt32,
    keys: UInt32,
    addresses: UInt64,
    sizes: UInt32,
    starts: Int64,
    row_words: Int64,
    gaps: UInt32,
    tallies: Int64,
) -> None:
    """Write the words + 1 gaps of each row with mapped ids from ``gaps[starts[row]]``; the streams are already checked.

    ``gap_ids`` are new ids by gap code, ``keys`` are keys of predictions; ``tallies`` counts, by new id, gaps that are
    not the default ones.
    """
    began = interrupts()
    key = 0
    for row in range(len(starts)):
        if interrupts() != began:
            return
        first = starts[row]
        words = row_words[row]
        gaps[first] = EMPTY_ID
        for i in range(1, words):
            if i & 0xFFFF == 0 and interrupts() != began:
                return
            gaps[first + i] = gap_ids[predicted_gaps[keys[key + i]]]
        key += words + 1
        gaps[first + words] = EMPTY_ID
        address = addresses[row]
        left = nb.int64(sizes[row])
        at = first
        while left > 0:
            skipped, used = read_varint(address, left)
            gap, used_too = read_varint(address + nb.uint64(used), left - used)
            address += nb.uint64(used + used_too)
            left -= used + used_too
            at += skipped
            gaps[at] = gap_ids[gap]
            at += 1
        for i in range(words + 1):
            if i & 0xFFFF == 0 and interrupts() != began:
                return
            gap = gaps[first + i]
            if gap != (EMPTY_ID if i == 0 or i == words else SPACE_ID):
                tallies[gap] += 1


@polled
@kernel
def list_gaps(
    gaps: UInt32, starts: Int64, row_words: Int64, ids: UInt32, writing: bool, sizes: Int64, data: UInt8
) -> None:
    """List each row's gaps as the tokenizer does: pairs (skipped default gaps, ``ids[gap]``).

    Fills either ``sizes`` (bytes by row) or, if ``writing``, the bytes.
    """
    began = interrupts()
    data_at = nb.uint64(data.ctypes.data)
    out = 0
    for row in range(len(row_words)):
        if interrupts() != began:
            return
        words = row_words[row]
        passed = 0
        size = 0
        for i in range(words + 1):
            if i & 0xFFFF == 0 and interrupts() != began:
                return
            gap = gaps[starts[row] + i]
            if gap == (EMPTY_ID if i == 0 or i == words else SPACE_ID):
                passed += 1
                continue
            if writing:
                out = write_varint(data_at, out, passed)
                out = write_varint(data_at, out, nb.int64(ids[gap]))
            else:
                size += varint_size(passed) + varint_size(nb.int64(ids[gap]))
            passed = 0
        if not writing:
            sizes[row] = size


@polled
@kernel
def translate_gaps(
    gap_ids: UInt32, offsets: Int64, data: UInt8, rows: Int64, writing: bool, sizes: Int64, translated: UInt8
) -> None:
    """Map the gap ids of some rows whose gaps are listed as by the tokenizer.

    Fills either ``sizes`` (bytes by row, -1 if a gap's new id is ``UNKNOWN``) or, if ``writing``, the bytes.
    """
    began = interrupts()
    data_at, translated_at = nb.uint64(data.ctypes.data), nb.uint64(translated.ctypes.data)
    out = 0
    for k in range(len(rows)):
        if interrupts() != began:
            return
        at = offsets[rows[k]]
        size = 0
        while at < offsets[rows[k] + 1]:
            passed, at = read_own_varint(data_at, at)
            gap, at = read_own_varint(data_at, at)
            new = nb.int64(gap_ids[gap])
            if writing:
                out = write_varint(translated_at, out, passed)
                out = write_varint(translated_at, out, new)
            elif new == UNKNOWN or size < 0:
                size = -1
            else:
                size += varint_size(passed) + varint_size(new)
        if not writing:
            sizes[k] = size


@njit(inline="always")
def _edge(edges: int, mask: int, seed: int, node: int, symbol: int) -> Any:
    """Return the address of the edge from a node by a symbol, or of its free slot; ``edges`` is the table's address.

    Takes an address, because passing the array would update its reference count, atomically, at every step.
    """
    key = nb.uint64(node) | (nb.uint64(symbol) << _32)
    h = key * (nb.uint64(seed) | nb.uint64(1))
    h = (h ^ (h >> _32)) * _K2
    s = (h >> _32) & nb.uint64(mask)
    at = nb.uint64(edges) + _EDGE_BYTES * s
    while load_u32(at + _NEXT) != 0 and load_u64(at) != key:
        s = (s + nb.uint64(1)) & nb.uint64(mask)
        at = nb.uint64(edges) + _EDGE_BYTES * s
    return at


@njit(inline="always")
def _bit(symbol: int) -> Any:
    """Return the symbol's bit in 64-bit sketches of sets: a set without the bit does not contain the symbol."""
    return nb.uint64(1) << (nb.uint64(symbol) & nb.uint64(63))


@polled
@kernel
def build_trie(
    vocabulary_size: int,
    rule_offsets: UInt32,
    symbols: UInt32,
    seed: int,
    edges: UInt32,
    rules: UInt32,
    onward: UInt64,
    begins: Bools,
) -> None:
    """Build the trie of all bodies; node 0 is its root.

    ``edges`` is a hash table of (node, symbol, next node), initially zero (no edge leads to the root), with a power of
    two of slots, at least twice the symbols; ``seed`` is random, so that grammars cannot be crafted to make edges
    collide. ``rules[node]`` becomes the symbol of the rule whose body ends there, 0 if none; ``onward[node]`` a sketch
    of the symbols on its edges; ``begins[symbol]`` tells whether a body begins with the symbol.
    """
    began = interrupts()
    edges_at, mask = nb.uint64(edges.ctypes.data), nb.uint64(len(edges) // 3 - 1)
    nodes = 1
    for r in range(len(rule_offsets) - 1):
        if r & 0xFF == 0 and interrupts() != began:
            return
        begins[symbols[rule_offsets[r]]] = True
        node = 0
        for i in range(rule_offsets[r], rule_offsets[r + 1]):
            edge = _edge(edges_at, mask, seed, node, symbols[i])
            following = nb.int64(load_u32(edge + _NEXT))
            if following == 0:
                store_u64(edge, nb.uint64(node) | (nb.uint64(symbols[i]) << _32))
                store_u32(edge + _NEXT, nb.uint32(nodes))
                onward[node] |= _bit(symbols[i])
                following = nodes
                nodes += 1
            node = following
        if rules[node] == 0:
            rules[node] = vocabulary_size + r


@polled
@njit
def parse_rows(
    seed: int, edges: UInt32, rules: UInt32, onward: UInt64, begins: Bools, starts: Int64, symbols: UInt32, sizes: Int64
) -> None:
    """Replace each row's words by the minimum number of words and rules that expand to them.

    Row r is ``symbols[starts[r]:starts[r] + sizes[r]]``: words before, the result after. From right to left, all rules
    that match at a position are found from those that match further right; the shortest path over them is the row. Rows
    are split every ``PIECE`` words, at most ``MAX_MATCHES`` rules are kept per position, and if ``STEPS`` trie steps
    are used up, only the rules found so far count: so time and memory stay linear.
    """
    began = interrupts()
    edges_at, mask = nb.uint64(edges.ctypes.data), nb.uint64(len(edges) // 3 - 1)
    match = np.empty(PIECE * MAX_MATCHES, np.uint32)  # untouched pages take no memory
    match_end = np.empty(PIECE * MAX_MATCHES, np.int32)
    first_match = np.empty(PIECE + 1, np.int64)  # a position's matches precede those of the position to its left
    fewest = np.empty(PIECE + 1, np.int32)
    choice = np.empty(PIECE, np.int64)
    sketch = np.empty(PIECE, np.uint64)  # of the rules and the word that match at each position
    stack = np.empty(MAX_STEPS + MAX_MATCHES, np.int64)  # a step pushes one node; the last loop may exceed the limit
    stack_end = np.empty(MAX_STEPS + MAX_MATCHES, np.int64)
    for row in range(len(sizes)):
        if interrupts() != began:
            return
        written = starts[row]
        for piece in range(starts[row], starts[row] + sizes[row], PIECE):
            if interrupts() != began:
                return
            size = min(PIECE, starts[row] + sizes[row] - piece)
            fewest[size] = 0
            found = 0
            left = 0
            for i in range(size - 1, -1, -1):
                first_match[i] = found
                match[found] = symbols[piece + i]
                match_end[found] = i + 1
                here = found
                sketch[i] = _bit(symbols[piece + i])
                found += 1
                left = min(left + STEPS, MAX_STEPS)
                while here < found:  # matches at this position are appended during the loop
                    end = nb.int64(match_end[here])
                    if fewest[end] + 1 < fewest[i] or here == first_match[i]:
                        fewest[i] = fewest[end] + 1
                        choice[i] = here
                    if left > 0 and begins[match[here]]:
                        left -= 1
                        stack[0] = nb.int64(load_u32(_edge(edges_at, mask, seed, 0, match[here]) + _NEXT))
                        stack_end[0] = end
                        depth = 1
                        while depth > 0 and left > 0:
                            depth -= 1
                            node = stack[depth]
                            end = stack_end[depth]
                            if rules[node] != 0 and found - first_match[i] < MAX_MATCHES:
                                match[found] = rules[node]
                                match_end[found] = end
                                sketch[i] |= _bit(rules[node])
                                found += 1
                            left -= 1
                            if end == size or onward[node] & sketch[end] == 0:
                                continue
                            for k in range(first_match[end], first_match[end - 1]):
                                if onward[node] & _bit(match[k]) == 0:
                                    continue
                                left -= 1
                                following = nb.int64(load_u32(_edge(edges_at, mask, seed, node, match[k]) + _NEXT))
                                if following != 0:
                                    stack[depth] = following
                                    stack_end[depth] = match_end[k]
                                    depth += 1
                    here += 1
            i = 0
            while i < size:
                symbols[written] = match[choice[i]]
                i = nb.int64(match_end[choice[i]])
                written += 1
        sizes[row] = written - starts[row]
