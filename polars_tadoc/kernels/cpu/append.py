"""Rows as word ids again, for merging grammars; new rows parsed with rules that exist, for appending."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.cpu.expand import read_varint
from polars_tadoc.kernels.cpu.gaps import _read_varint as read_number
from polars_tadoc.kernels.cpu.gaps import _varint_size as number_size
from polars_tadoc.kernels.cpu.gaps import _write_varint as write_number
from polars_tadoc.kernels.cpu.tokenize import EMPTY_ID, SPACE_ID

UInt8 = npt.NDArray[np.uint8]
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
Int64 = npt.NDArray[np.int64]

UNKNOWN = 0xFFFFFFFE
"""Stands for a word or gap that the grammar does not have."""

PIECE = 1 << 14
"""Words of a row that are parsed together."""

MOST_MATCHES = 64
"""Rules kept that match at one position."""

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@nb.njit(nogil=True, cache=True)
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
    """Write each row's words under new ids from ``sequence[starts[row]]``.

    A rule's words are copied from where they were written last: long phrases cost what copying does.
    """
    copied_from = np.full(len(rule_offsets) - 1, -1, np.int64)
    position = np.empty(levels + 1, np.int64)
    stop = np.empty(levels + 1, np.int64)
    for row in range(len(starts)):
        at = starts[row]
        for i in range(root_offsets[row], root_offsets[row + 1]):
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
                        for j in range(length):
                            sequence[at + j] = sequence[source + j]
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


@nb.njit(nogil=True, cache=True)
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
    """Write the words + 1 gaps of each row under new ids from ``gaps[starts[row]]``; the streams were checked before.

    ``gap_ids`` are new ids by gap code, ``keys`` name what predicts each gap; ``tallies`` counts, by new id, gaps
    that are not the assumed ones.
    """
    key = 0
    for row in range(len(starts)):
        first = starts[row]
        words = row_words[row]
        gaps[first] = EMPTY_ID
        for i in range(1, words):
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
            gap = gaps[first + i]
            if gap != (EMPTY_ID if i == 0 or i == words else SPACE_ID):
                tallies[gap] += 1


@nb.njit(nogil=True, cache=True)
def list_gaps(
    gaps: UInt32, starts: Int64, row_words: Int64, ids: UInt32, writing: bool, sizes: Int64, data: UInt8
) -> None:
    """List each row's gaps as the tokenizer does: pairs of gaps passed over as assumed and ``ids[gap]``.

    Either ``sizes`` (bytes by row) is filled, or, ``writing``, the bytes are.
    """
    out = 0
    for row in range(len(row_words)):
        words = row_words[row]
        passed = 0
        size = 0
        for i in range(words + 1):
            gap = gaps[starts[row] + i]
            if gap == (EMPTY_ID if i == 0 or i == words else SPACE_ID):
                passed += 1
                continue
            if writing:
                out = write_number(data, out, passed)
                out = write_number(data, out, nb.int64(ids[gap]))
            else:
                size += number_size(passed) + number_size(nb.int64(ids[gap]))
            passed = 0
        if not writing:
            sizes[row] = size


@nb.njit(nogil=True, cache=True)
def translate_gaps(
    gap_ids: UInt32, offsets: Int64, data: UInt8, rows: Int64, writing: bool, sizes: Int64, translated: UInt8
) -> None:
    """Give the gaps of some rows, listed as the tokenizer does, other ids.

    Either ``sizes`` (bytes by row, -1 where a gap's new id is ``UNKNOWN``) is filled, or, ``writing``, the bytes are.
    """
    out = 0
    for k in range(len(rows)):
        at = offsets[rows[k]]
        size = 0
        while at < offsets[rows[k] + 1]:
            passed, at = read_number(data, at)
            gap, at = read_number(data, at)
            new = nb.int64(gap_ids[gap])
            if writing:
                out = write_number(translated, out, passed)
                out = write_number(translated, out, new)
            elif new == UNKNOWN or size < 0:
                size = -1
            else:
                size += number_size(passed) + number_size(new)
        if not writing:
            sizes[k] = size


@nb.njit(nogil=True, cache=True, inline="always")
def _child(edges: UInt32, node: int, symbol: int) -> Any:
    """Slot of the edge from a node by a symbol, or of where it would stand."""
    mask = len(edges) // 3 - 1
    h = ((nb.uint64(node) << nb.uint64(32)) | nb.uint64(symbol)) * _MULTIPLIER
    s = nb.int64((h >> nb.uint64(32)) & nb.uint64(mask))
    while edges[3 * s + 2] != 0 and (edges[3 * s] != node or edges[3 * s + 1] != symbol):
        s = (s + 1) & mask
    return s


@nb.njit(nogil=True, cache=True)
def build_trie(
    vocabulary_size: int,
    rule_offsets: UInt32,
    symbols: UInt32,
    edges: UInt32,
    rules: UInt32,
    inner: npt.NDArray[np.bool_],
    begins: npt.NDArray[np.bool_],
) -> None:
    """Build the trie of all bodies; node 0 is its root.

    ``edges`` is a hash table of (node, symbol, next node), all zero at first (no edge leads to the root), its slots a
    power of two and at least twice the symbols. ``rules[node]`` becomes the symbol of the rule whose body ends there,
    0 where none does; ``inner[node]`` tells whether a body goes on there, ``begins[symbol]`` whether one begins so.
    """
    nodes = 1
    for r in range(len(rule_offsets) - 1):
        begins[symbols[rule_offsets[r]]] = True
        node = 0
        for i in range(rule_offsets[r], rule_offsets[r + 1]):
            inner[node] = True
            s = _child(edges, node, symbols[i])
            if edges[3 * s + 2] == 0:
                edges[3 * s] = node
                edges[3 * s + 1] = symbols[i]
                edges[3 * s + 2] = nodes
                nodes += 1
            node = nb.int64(edges[3 * s + 2])
        if rules[node] == 0:
            rules[node] = vocabulary_size + r


@nb.njit(nogil=True, cache=True)
def parse_rows(
    edges: UInt32,
    rules: UInt32,
    inner: npt.NDArray[np.bool_],
    begins: npt.NDArray[np.bool_],
    starts: Int64,
    symbols: UInt32,
    sizes: Int64,
) -> None:
    """Replace each row's words by the fewest words and rules that stand for them.

    Row r is ``symbols[starts[r]:starts[r] + sizes[r]]``, words before and what is left after. From right to left, all
    rules that match at a position are found from those that match further right; the shortest path over them is the
    row. Rows are cut every ``PIECE`` words, and ``MOST_MATCHES`` rules at most are kept at a position, so that time
    and memory stay linear.
    """
    match = np.empty(PIECE * 4, np.uint32)
    match_end = np.empty(PIECE * 4, np.int32)
    first_match = np.empty(PIECE + 1, np.int64)  # a position's matches stand before those of the one to its left
    fewest = np.empty(PIECE + 1, np.int32)
    choice = np.empty(PIECE, np.int64)
    stack = np.empty(64, np.int64)
    stack_end = np.empty(64, np.int64)
    for row in range(len(sizes)):
        written = starts[row]
        for piece in range(starts[row], starts[row] + sizes[row], PIECE):
            size = min(PIECE, starts[row] + sizes[row] - piece)
            fewest[size] = 0
            found = 0
            for i in range(size - 1, -1, -1):
                if found + MOST_MATCHES > len(match):
                    match = np.concatenate((match, np.empty_like(match)))
                    match_end = np.concatenate((match_end, np.empty_like(match_end)))
                first_match[i] = found
                match[found] = symbols[piece + i]
                match_end[found] = i + 1
                here = found
                found += 1
                while here < found:  # matches at this position grow while they are gone through
                    end = nb.int64(match_end[here])
                    if fewest[end] + 1 < fewest[i] or here == first_match[i]:
                        fewest[i] = fewest[end] + 1
                        choice[i] = here
                    if begins[match[here]]:
                        stack[0] = nb.int64(edges[3 * _child(edges, 0, match[here]) + 2])
                        stack_end[0] = end
                        depth = 1
                        while depth > 0:
                            depth -= 1
                            node = stack[depth]
                            end = stack_end[depth]
                            if rules[node] != 0 and found - first_match[i] < MOST_MATCHES:
                                match[found] = rules[node]
                                match_end[found] = end
                                found += 1
                            if inner[node] and end < size:
                                last = first_match[end - 1]
                                for k in range(first_match[end], last):
                                    following = nb.int64(edges[3 * _child(edges, node, match[k]) + 2])
                                    if following != 0:
                                        if depth == len(stack):
                                            stack = np.concatenate((stack, np.empty_like(stack)))
                                            stack_end = np.concatenate((stack_end, np.empty_like(stack_end)))
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
