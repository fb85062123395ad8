"""Codes the gaps of rows that differ from the predicted ones, by the words on either side of each gap, for files.

A place in a body where some row has such a gap is loud, and so is a rule that contains one. Rows are read in order, and
only loud rules are expanded. Each gap between symbols of a row, before the first and after the last, and at loud places
is guessed: the last one between these words, the last one before the word after it, the last one after the word before
it, or as predicted. A word that was not met yet is taken for any word of its shape. A gap that no guess meets follows
as a number.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.grammars.adaptive_codes import (
    BYTE,
    SCALE,
    code_4_bits,
    code_byte,
    code_hit,
    new_contexts,
)
from polars_tadoc.kernels.host.grammars.coded_gaps import LONG_GAP, MAX_GAP_BITS
from polars_tadoc.kernels.host.grammars.coded_symbols import (
    OK,
    SHAPES,
    TRUNCATED,
    WRONG_COUNT,
    WRONG_END,
    WRONG_TABLE,
    learnt,
    slot_of,
)
from polars_tadoc.runtime.array_types import Bools, Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import inner

MARK, ENCODE, DECODE = range(3)
"""Tasks of :func:`code_row_gaps`."""

GUESSES = 4
CODES = GUESSES + 2 + (MAX_GAP_BITS + 3) // 4
"""Maximum codes of a gap that is visited."""

RAW = BYTE
_GAP_CONTEXTS = RAW + (MAX_GAP_BITS + 3) // 4
"""Contexts: of a gap's number, and of the bits behind the first of a long one, four at a time; their number."""

_LOW = np.uint64(1 << 31)
_POLL = (1 << 12) - 1
_FAR = 1 << 40
_NEVER = 1 << 62


@inner
def _read_varint(data: UInt8, at: int, end: int) -> tuple[int, int]:
    """Return a number and the place after it; ``_NEVER`` if there is none."""
    number, shift = nb.int64(0), 0
    while at < end and shift < 49:
        byte = nb.int64(data[at])
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at
    return nb.int64(_NEVER), end


@inner
def _write_varint(data: UInt8, at: int, number: int) -> int:
    """Write a number; return the place after it, beyond the end if it does not fit."""
    while number >= 0x80:
        if at < len(data):
            data[at] = nb.uint8((number & 0x7F) | 0x80)
        number >>= 7
        at += 1
    if at < len(data):
        data[at] = nb.uint8(number)
    return at + 1


@inner
def _code_gap(is_coded: bool, x: int, codes: UInt32, at: int, contexts: UInt64, gap: int) -> tuple[int, int, int]:
    """Code a gap's number; return -1 if it has too many bits."""
    size, code = 0, gap
    if not is_coded and gap >= LONG_GAP:
        while (gap - LONG_GAP + 1) >> (size + 1):
            size += 1
        code = nb.int64(LONG_GAP + size)
    code, x, at = code_byte(is_coded, x, codes, at, contexts, 0, code)
    if code < LONG_GAP:
        return code, x, at
    size = code - LONG_GAP
    if size > MAX_GAP_BITS:
        return -1, x, at
    rest, above = nb.int64(0), gap - LONG_GAP + 1
    for i in range((size + 3) // 4):
        four, x, at = code_4_bits(is_coded, x, codes, at, contexts, RAW + i, (above >> (4 * i)) & 15)
        rest |= four << (4 * i)
    return LONG_GAP - 1 + ((rest & ((1 << size) - 1)) | 1 << size), x, at


@polled
@njit
def code_row_gaps(
    task: int,
    words: int,
    bits: int,
    shapes: UInt8,
    rule_offsets: UInt32,
    symbols: UInt32,
    predicted: UInt32,
    root_offsets: Int64,
    roots: UInt32,
    visits: int,
    steps: int,
    loud: Bools,
    codes: UInt32,
    offsets: Int64,
    data: UInt8,
) -> tuple[int, int, int]:
    """Mark loud places, encode gaps, or decode them; return ``OK`` or what is wrong, the codes, and the gaps visited.

    Never accesses memory out of bounds if symbols are rules of lower numbers, or words, and offsets ascend.

    Parameters
    ----------
    task
        ``MARK``, ``ENCODE`` or ``DECODE``.
    words, bits
        Number of words, and bits of the hash of two words.
    shapes
        Each word's shape.
    rule_offsets, symbols, predicted
        The bodies, none of them empty, and the predicted gaps, by word, then by position of ``symbols``.
    root_offsets, roots
        Each row's symbols.
    visits, steps
        Maximum number of gaps visited, and of places of rows that are read; beyond them this returns ``WRONG_COUNT``.
    loud
        By position of ``symbols``: filled by ``MARK``, which expects zeros, and ``DECODE``.
    codes
        The stream to decode, or filled with starts and frequencies: at least one for each position of ``symbols``; if
        it is too short for all, this returns ``TRUNCATED``.
    offsets, data
        Gaps of rows that differ, as varint pairs (skipped gaps, gap); ``DECODE`` fills both.

    """
    rules, rows = len(rule_offsets) - 1, len(root_offsets) - 1
    is_coded = task == DECODE
    x, at = _LOW, 0
    if is_coded:
        if len(codes) < 2:
            return TRUNCATED, 0, 0
        x, at = (nb.uint64(codes[0]) << nb.uint64(32)) | nb.uint64(codes[1]), 2
    contexts = new_contexts(_GAP_CONTEXTS)
    chances = np.full(GUESSES * 64 + 8, 1 << (SCALE - 1), np.uint16)
    lengths, firsts = np.ones(words + rules, np.int64), np.empty(words + rules, np.uint32)
    lasts, is_loud = np.empty(words + rules, np.uint32), np.zeros(rules, np.bool_)
    for word in range(words):
        firsts[word], lasts[word] = word, word
    began, history, events = interrupts(), 0, nb.int64(0)
    for rule in range(rules):
        start, stop = nb.int64(rule_offsets[rule]), nb.int64(rule_offsets[rule + 1])
        total = nb.int64(0)
        for i in range(start, stop):
            events += 1
            if events & _POLL == 0 and interrupts() != began:
                return WRONG_END, 0, 0
            if i > start and task != MARK:
                place = GUESSES * 64 + (history & 3) * 2 + nb.int64(predicted[words + i] != 0)
                here, x, at = code_hit(is_coded, x, codes, at, chances, place, loud[i])
                history = 2 * history + nb.int64(here)
                if is_coded:
                    loud[i] = here
                is_loud[rule] |= here
            if symbols[i] >= words:
                is_loud[rule] |= is_loud[symbols[i] - words]
            total = min(total + lengths[symbols[i]], _FAR)
        lengths[words + rule] = total
        firsts[words + rule] = firsts[symbols[start]]
        lasts[words + rule] = lasts[symbols[stop - 1]]
    known = np.zeros((1 << bits) + 2 * (words + SHAPES + 1), np.uint32)
    after, before = 1 << bits, (1 << bits) + words + SHAPES + 1
    is_met = np.zeros(words + 1, np.bool_)
    stack, stops = np.empty(rules + 1, np.int64), np.empty(rules + 1, np.int64)
    places, guesses = np.empty(GUESSES, np.int64), np.empty(GUESSES, np.int64)
    visited, out, history, events = 0, nb.int64(0), 0, nb.int64(0)
    if is_coded:
        offsets[0] = 0
    for row in range(rows):
        position, following = nb.int64(0), nb.int64(0)
        source, end = nb.int64(0), nb.int64(0)
        different, other = nb.int64(_NEVER), nb.int64(0)
        if not is_coded:
            source, end = offsets[row], offsets[row + 1]
            different, source = _read_varint(data, source, end)
            other, source = _read_varint(data, source, end)
        left, root, depth = nb.int64(words), root_offsets[row], 0
        symbol, place = nb.int64(0), nb.int64(-1)
        is_end = False
        while not is_end:
            expected, right = nb.int64(0), nb.int64(words)
            if depth > 0:
                expected = nb.int64(predicted[words + place])
                right = nb.int64(firsts[symbol])
            else:
                is_end = root == root_offsets[row + 1]
                if not is_end:
                    symbol = nb.int64(roots[root])
                    right = nb.int64(firsts[symbol])
                    if root > root_offsets[row]:
                        expected = nb.int64(predicted[right])
                    root += 1
            gap = expected
            events += 1
            if events > steps or (events & _POLL == 0 and interrupts() != began):
                return WRONG_COUNT, 0, 0
            if position == different:
                gap = other
                skipped, source = _read_varint(data, source, end)
                other, source = _read_varint(data, source, end)
                different = position + 1 + skipped if skipped < _FAR else nb.int64(_NEVER)
                if task == MARK and depth > 0:
                    loud[place] = True
                if gap >> (MAX_GAP_BITS + 1):
                    return WRONG_TABLE, 0, 0
            if task != MARK and (depth == 0 or loud[place]):
                visited += 1
                if task == ENCODE and at + CODES > len(codes):
                    return TRUNCATED, 0, 0
                if visited > visits:
                    return WRONG_COUNT, 0, 0
                alike = right
                if right < words and not is_met[right]:
                    alike = words + 1 + nb.int64(shapes[right])
                    is_met[right] = True
                places[0] = slot_of(left + 1, alike, (1 << bits) - 1)
                entry, guesses[0], hit = known[places[0]], -1, False
                if entry != 0:
                    guesses[0] = nb.int64(entry >> nb.uint32(4))
                    chance = nb.int64(entry & nb.uint32(15)) * 4 + history
                    hit, x, at = code_hit(is_coded, x, codes, at, chances, chance, guesses[0] == gap)
                history = (history * 2 + nb.int64(not hit)) & 3
                if hit:  # most are: they teach the other guesses nothing
                    gap = guesses[0]
                    known[places[0]] = entry + nb.uint32(entry & nb.uint32(15) < 15)
                else:
                    places[1], places[2] = before + alike, after + left
                    guesses[3] = expected
                    for i in range(1, GUESSES):
                        sure = nb.uint32(0)
                        if i < 3:
                            entry = known[places[i]]
                            guesses[i] = nb.int64(entry >> nb.uint32(4)) if entry != 0 else -1
                            sure = entry & nb.uint32(15)
                        guess = guesses[i]
                        is_new = guess >= 0
                        for j in range(i):
                            is_new = is_new and guesses[j] != guess
                        if is_new:
                            chance = (i * 16 + nb.int64(sure)) * 4 + history
                            hit, x, at = code_hit(is_coded, x, codes, at, chances, chance, guess == gap)
                            if hit:
                                gap = guess
                                break
                    if not hit:
                        gap, x, at = _code_gap(is_coded, x, codes, at, contexts, gap)
                        if gap < 0:
                            return WRONG_TABLE, 0, 0
                    for i in range(3):
                        known[places[i]] = learnt(known[places[i]], gap)
                if is_coded and gap != expected:
                    out = _write_varint(data, out, position - following)
                    out = _write_varint(data, out, gap)
                    if out > len(data):
                        return WRONG_COUNT, 0, 0
                    following = position + 1
            if is_end:
                break
            position += 1
            while symbol >= words:
                inside = lengths[symbol] - 1
                if not (different < position + inside if task == MARK else is_loud[symbol - words]):
                    position += inside
                    break
                stack[depth] = rule_offsets[symbol - words]
                stops[depth] = rule_offsets[symbol - words + 1]
                symbol = nb.int64(symbols[stack[depth]])
                depth += 1
            left = nb.int64(lasts[symbol])
            if position > _FAR:
                return WRONG_COUNT, 0, 0
            while depth > 0 and stack[depth - 1] + 1 == stops[depth - 1]:
                depth -= 1
            if depth > 0:
                stack[depth - 1] += 1
                place = stack[depth - 1]
                symbol = nb.int64(symbols[place])
        if is_coded:
            offsets[row + 1] = out
    if is_coded and (at != len(codes) or x != _LOW or out != len(data) or visited != visits):
        return WRONG_END, 0, 0
    return OK, at, visited
