"""Cuts words out of rows: the results are rows of the same grammar, and only rules at the ends are opened."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.primitives.varint import read_varint, write_varint
from polars_tadoc.runtime.addresses import load_u64
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.jit import inner, kernel

OK, GAPS_CUT, GAP_RANGE, FULL = 0, 1, 2, 3

LONG = 255
"""A short length of this value means this many words or more."""

_NEVER = (1 << 63) - 1
_PAIR = 20  # maximum bytes of two varints
_CUT_OFF = -1
_HIGH_BITS = np.uint64(0x8080808080808080)
_GATHER_BITS = np.uint64(0x0102040810204080)
_EVEN_BYTES = np.uint64(0x00FF00FF00FF00FF)
_ONES = np.uint64(0x0001000100010001)


def _pair_tables() -> tuple[UInt8, UInt64]:
    """Return tables about eight bytes of a stream, indexed by the mask of bytes that end a number.

    The number of complete pairs times 16, plus their bytes; and a mask of the bytes with numbers of skipped gaps. Pairs
    count up to the first whose number of skipped gaps needs more than one byte.
    """
    whole, passed = np.zeros(256, np.uint8), np.zeros(256, np.uint64)
    for ends in range(256):
        at = 0
        while True:
            after = at + 1
            while after < 8 and not ends >> after & 1:
                after += 1
            if after >= 8 or not ends >> at & 1:
                break
            passed[ends] |= np.uint64(0xFF << 8 * at)
            at = after + 1
            whole[ends] += 16
        whole[ends] += at
    return whole, passed


_WHOLE_PAIRS, _PASSED = _pair_tables()


@kernel
def count_words(
    vocabulary_size: int,
    expansion_lengths: UInt64,
    short_lengths: UInt8,
    root_offsets: Int64,
    roots: UInt32,
    row_words: UInt64,
) -> None:
    """Fill the words of each row."""
    base = nb.uint64(vocabulary_size)
    for row in range(len(row_words)):
        words = nb.uint64(0)
        for i in range(nb.uint64(root_offsets[row]), nb.uint64(root_offsets[row + 1])):
            symbol = nb.uint64(roots[i])
            length = nb.uint64(short_lengths[symbol])
            if length == nb.uint64(LONG):
                length = expansion_lengths[symbol - base]
            words += length
        row_words[row] = words


@inner
def _skip_gaps(address: int, left: int, gap: int, most: int) -> Any:
    """Skip the pairs of a stream whose position is at most ``most``.

    ``gap`` is the position after the last pair's. The pairs in eight bytes take one step: four if all numbers have one
    byte, otherwise as in the tables (half the time on text with many gaps). Returns the stream from the first pair not
    skipped, and the position after the last skipped one; ``left`` is ``_CUT_OFF`` if the stream ends inside a number.
    """
    while left > 0:
        if left >= 8:
            eight = load_u64(address)
            if eight & _HIGH_BITS == nb.uint64(0):
                moved = nb.int64(((eight & _EVEN_BYTES) * _ONES) >> nb.uint64(48)) + 4
                if gap + moved <= most + 1:
                    gap += moved
                    address += nb.uint64(8)
                    left -= 8
                    continue
            # one bit per byte: whether a number ends there
            ends = (((~eight & _HIGH_BITS) >> nb.uint64(7)) * _GATHER_BITS) >> nb.uint64(56)
            whole = nb.uint64(_WHOLE_PAIRS[ends])
            passed = eight & _PASSED[ends]
            passed = (passed & _EVEN_BYTES) + ((passed >> nb.uint64(8)) & _EVEN_BYTES)
            moved = nb.int64((passed * _ONES) >> nb.uint64(48)) + nb.int64(whole >> nb.uint64(4))
            if whole != nb.uint64(0) and gap + moved <= most + 1:
                gap += moved
                address += whole & nb.uint64(15)
                left -= nb.int64(whole & nb.uint64(15))
                continue
        passed, used = read_varint(address, left)
        if used == 0:
            return address, nb.int64(_CUT_OFF), gap
        if gap + passed > most:
            break
        _, used_too = read_varint(address + nb.uint64(used), left - used)
        if used_too == 0:
            return address, nb.int64(_CUT_OFF), gap
        gap += passed + 1
        address += nb.uint64(used + used_too)
        left -= used + used_too
    return address, left, gap


@inner
def _read_gap(address: int, left: int, gap: int) -> Any:
    """Return position and code of a stream's next gap, and the rest of the stream; as for :func:`_skip_gaps`."""
    if left == 0:
        return nb.int64(_NEVER), nb.int64(0), address, left
    passed, used = read_varint(address, left)
    code, used_too = read_varint(address + nb.uint64(used), left - used)
    if used == 0 or used_too == 0:
        return nb.int64(_NEVER), nb.int64(0), address, nb.int64(_CUT_OFF)
    return gap + passed, code, address + nb.uint64(used + used_too), left - used - used_too


@njit
def cut(
    vocabulary_size: int,
    rule_offsets: UInt32,
    symbols: UInt32,
    levels: int,
    expansion_lengths: UInt64,
    short_lengths: UInt8,
    leading_gaps: UInt32,
    predicted_gaps: UInt32,
    gap_codes: int,
    root_offsets: Int64,
    roots: UInt32,
    gap_addresses: UInt64,
    gap_sizes: UInt32,
    documents: Int64,
    firsts: Int64,
    stops: Int64,
    begin: int,
    cut_offsets: Int64,
    cut_symbols: UInt32,
    stream_offsets: Int64,
    stream: UInt8,
) -> Any:
    """Cut words ``firsts[k]`` to ``stops[k]`` out of a document, from cut ``begin`` on.

    A cut is a row: the minimum number of symbols that expand to the words, and a gap stream with the document's gaps
    between them. Both follow those of the previous cut, whose offsets are already written. Returns ``(code, cut)`` of
    the first cut that is damaged or does not fit; only the parts of a stream that are read are checked. Consecutive
    cuts of one document, with ascending ``firsts``, search it once.
    """
    base = nb.uint64(vocabulary_size)
    position = np.empty(levels + 1, np.uint64)  # next position in each of the rules around the current one
    end = np.empty(levels + 1, np.uint64)
    stream_at = nb.uint64(stream.ctypes.data)
    document = nb.int64(-1)
    reached = i = last_root = before = left = gap = nb.int64(0)  # state of the search: words before root i
    address = nb.uint64(0)
    for k in range(begin, len(documents)):
        first, stop = firsts[k], stops[k]
        size, written = cut_offsets[k], stream_offsets[k]
        if documents[k] != document or first < reached:
            document = documents[k]
            i, last_root = root_offsets[document], root_offsets[document + 1]
            before = gap = nb.int64(0)
            address, left = gap_addresses[document], nb.int64(gap_sizes[document])
        reached = first
        symbol = nb.uint64(0)
        while i < last_root:
            symbol = nb.uint64(roots[nb.uint64(i)])
            length = nb.int64(short_lengths[symbol])
            if length == LONG:
                length = nb.int64(expansion_lengths[symbol - base])
            if before + length > first:
                break
            before += length
            i += 1
        if i < last_root and first < stop:
            address, left, gap = _skip_gaps(address, left, gap, first)
            if left < 0:
                return GAPS_CUT, k
            special, special_code, own_address, own_left = _read_gap(address, left, gap)
            following = first  # the gap after the last one written
            word = before
            at_root = nb.uint64(i)
            depth = nb.uint64(0)
            code = nb.int64(leading_gaps[symbol])
            while True:
                length = nb.int64(short_lengths[symbol])
                if length == LONG:
                    length = nb.int64(expansion_lengths[symbol - base])
                after = word + length
                if after > first:
                    if word < first or after > stop:
                        start = nb.uint64(rule_offsets[symbol - base])
                        position[depth] = start + nb.uint64(1)
                        end[depth] = nb.uint64(rule_offsets[symbol - base + nb.uint64(1)])
                        depth += nb.uint64(1)
                        symbol = nb.uint64(symbols[start])
                        continue
                    if size == len(cut_symbols):
                        return FULL, k
                    cut_symbols[nb.uint64(size)] = nb.uint32(symbol)
                    size += 1
                    # the prediction before a symbol of a row may differ from the one here
                    differs = word > first and code != nb.int64(leading_gaps[symbol])
                    while differs or special < after:
                        if special == word or not differs:
                            place, code = special, special_code
                            if code >= gap_codes:
                                return GAP_RANGE, k
                            special, special_code, own_address, own_left = _read_gap(own_address, own_left, special + 1)
                        else:
                            place = word
                        differs = False
                        if written + _PAIR > len(stream):
                            return FULL, k
                        written = write_varint(stream_at, written, place - following)
                        written = write_varint(stream_at, written, code)
                        following = place + 1
                    if own_left < 0:
                        return GAPS_CUT, k
                if after >= stop:
                    break
                word = after
                while depth > nb.uint64(0) and position[depth - nb.uint64(1)] == end[depth - nb.uint64(1)]:
                    depth -= nb.uint64(1)
                if depth == nb.uint64(0):
                    at_root += nb.uint64(1)
                    if at_root == nb.uint64(last_root):
                        break
                    symbol = nb.uint64(roots[at_root])
                    code = nb.int64(leading_gaps[symbol])
                else:
                    inside = position[depth - nb.uint64(1)]
                    position[depth - nb.uint64(1)] = inside + nb.uint64(1)
                    symbol = nb.uint64(symbols[inside])
                    code = nb.int64(predicted_gaps[base + inside])
        cut_offsets[k + 1], stream_offsets[k + 1] = size, written
    return OK, 0
