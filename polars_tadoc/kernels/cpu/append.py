"""Rows as word ids again, for merging grammars; new rows parsed with rules that exist, for appending."""

from __future__ import annotations

import numba as nb
import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.cpu.expand import _read_varint as read_varint
from polars_tadoc.kernels.cpu.tokenize import EMPTY_ID, SPACE_ID

UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
Int64 = npt.NDArray[np.int64]


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
    addresses: UInt64,
    sizes: UInt32,
    starts: Int64,
    row_words: Int64,
    gaps: UInt32,
    tallies: Int64,
) -> None:
    """Write the words + 1 gaps of each row under new ids from ``gaps[starts[row]]``; the streams were checked before.

    ``tallies`` counts, by new id, gaps that are not the assumed ones.
    """
    for row in range(len(starts)):
        first = starts[row]
        words = row_words[row]
        gaps[first] = EMPTY_ID
        gaps[first + 1 : first + words] = SPACE_ID
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
