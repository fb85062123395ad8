"""Spells out the gaps of rows: rules with all gaps that occur in them, so that no row deviates from its rules.

A gap that differs from the rule's prediction makes a variant of each rule around it, with a number of its own. Equal
variants share one: texts of many versions deviate in the same way in each.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from polars_tadoc.kernels.host.patterns.match import FULL, Text, length_of, next_gap
from polars_tadoc.kernels.host.rows.expand import GAP_PLACE, OK
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import inner, polled_kernel, polled_njit


class Variants(NamedTuple):
    """Variants of rules; all arrays have room for more."""

    offsets: Int64
    """Offsets of bodies."""
    symbols: UInt32
    """Bodies; a variant's symbol follows those of the grammar."""
    gaps: UInt32
    """Gap code before each symbol of a body; arbitrary before the first."""
    rules: UInt32
    """Symbol of the rule that each is a variant of."""
    deviation_offsets: Int64
    """Offsets of deviations."""
    deviations: UInt64
    """Words before the gap, from the rule's start, and its code: ``words << 32 | code``."""
    hashes: UInt64
    """By variant."""


@inner
def _hash(symbol: int, first: int, stop: int, start: int, places: Int64, codes: UInt32) -> Any:
    own = nb.uint64(symbol) * nb.uint64(0x9E3779B97F4A7C15)
    for k in range(first, stop):
        own ^= nb.uint64(places[k] - start) << nb.uint64(32) | nb.uint64(codes[k])
        own *= nb.uint64(0xD6E8FEB86659FD93)
        own ^= own >> nb.uint64(32)
    return own


@inner
def _find(
    own: int,
    symbol: int,
    first: int,
    stop: int,
    start: int,
    places: Int64,
    codes: UInt32,
    made: Variants,
    slots: UInt32,
) -> Any:
    """Return the number of a variant, or -1."""
    mask = nb.uint64(len(slots) - 1)
    at = nb.uint64(own) & mask
    while slots[at] != 0:
        number = nb.int64(slots[at]) - 1
        low = made.deviation_offsets[number]
        same = made.hashes[number] == nb.uint64(own) and made.rules[number] == nb.uint32(symbol)
        if same and made.deviation_offsets[number + 1] - low == stop - first:
            for k in range(first, stop):
                one = nb.uint64(places[k] - start) << nb.uint64(32) | nb.uint64(codes[k])
                if made.deviations[low + k - first] != one:
                    same = False
                    break
            if same:
                return number
        at = (at + nb.uint64(1)) & mask
    return nb.int64(-1)


@inner
def _insert(own: int, number: int, slots: UInt32) -> None:
    mask = nb.uint64(len(slots) - 1)
    at = nb.uint64(own) & mask
    while slots[at] != 0:
        at = (at + nb.uint64(1)) & mask
    slots[at] = nb.uint32(number + 1)


@polled_kernel
def insert_all(hashes: UInt64, count: int, slots: UInt32) -> None:
    """Fill a larger hash table, which is initially zero."""
    began = interrupts()
    for number in range(count):
        if number & 0xFFFF == 0 and interrupts() != began:
            return
        _insert(hashes[number], number, slots)


@polled_njit
def spell_out(
    text: Text,
    levels: int,
    root_offsets: Int64,
    roots: UInt32,
    gap_addresses: UInt64,
    gap_sizes: UInt32,
    begin: int,
    made: Variants,
    slots: UInt32,
    used: Int64,
    exact_roots: UInt32,
    exact_gaps: UInt32,
    ends: UInt32,
) -> Any:
    """Spell out rows.

    Parameters
    ----------
    text
        Words, gaps and rules.
    levels
        Levels of rules.
    root_offsets, roots, gap_addresses, gap_sizes
        The documents' symbols and gaps.
    begin
        First document.
    made, slots
        The variants, and a hash table of their numbers plus 1.
    used
        The number of variants.
    exact_roots, exact_gaps
        Output: symbol, and the gap before it, by position in ``roots``; number of gap codes: no gap.
    ends
        Output: gap after the last word of each document, likewise.

    Returns
    -------
    (error, document)
        ``FULL``: go on with this document after making room.

    """
    began = interrupts()
    size, nothing = text.vocabulary_size, len(text.gap_offsets)
    known = size + len(text.rule_offsets) - 1
    largest = 0
    for row in range(len(gap_sizes)):
        largest = max(largest, nb.int64(gap_sizes[row]))
    places, codes = np.empty(largest // 2 + 1, np.int64), np.empty(largest // 2 + 1, np.uint32)
    symbols = np.empty(len(text.symbols) + levels + 2, np.uint32)
    gaps = np.empty(len(symbols), np.uint32)
    at, stop, base = np.empty(levels + 1, np.int64), np.empty(levels + 1, np.int64), np.empty(levels + 1, np.int64)
    start, word = np.empty(levels + 1, np.int64), np.empty(levels + 1, np.int64)
    low, here, high = np.empty(levels + 1, np.int64), np.empty(levels + 1, np.int64), np.empty(levels + 1, np.int64)
    own, hashes = np.empty(levels + 1, np.int64), np.empty(levels + 1, np.uint64)
    for row in range(begin, len(root_offsets) - 1):
        if interrupts() != began:
            return OK, row
        count = 0
        wrong, place, code, address, left = next_gap(-1, gap_addresses[row], gap_sizes[row], nothing)
        while place < nb.int64(1 << 62):
            if wrong != OK:
                return wrong, row
            places[count], codes[count] = place, code
            count += 1
            wrong, place, code, address, left = next_gap(place, address, left, nothing)
        if wrong != OK:
            return wrong, row
        at[0], stop[0] = root_offsets[row], root_offsets[row + 1]
        word[0], here[0], high[0] = 0, 0, count
        depth, top = 0, 0
        while True:
            i = at[depth]
            if i == stop[depth]:
                if depth == 0:
                    break
                number, length = used[0], top - base[depth]
                first, deviations = made.offsets[number], high[depth] - low[depth]
                begins = made.deviation_offsets[number]
                if (
                    number + 2 > len(made.rules)
                    or 2 * (number + 2) > len(slots)
                    or first + length > len(made.symbols)
                    or begins + deviations > len(made.deviations)
                ):
                    return FULL, row
                for k in range(length):
                    made.symbols[first + k] = symbols[base[depth] + k]
                    made.gaps[first + k] = gaps[base[depth] + k]
                for k in range(deviations):
                    j = low[depth] + k
                    made.deviations[begins + k] = nb.uint64(places[j] - start[depth]) << nb.uint64(32) | nb.uint64(
                        codes[j]
                    )
                made.offsets[number + 1] = first + length
                made.deviation_offsets[number + 1] = begins + deviations
                made.rules[number] = own[depth]
                made.hashes[number] = hashes[depth]
                _insert(hashes[depth], number, slots)
                used[0] = number + 1
                top = base[depth]
                depth -= 1
                if depth == 0:
                    exact_roots[at[0] - 1] = known + number
                else:
                    symbols[top - 1] = known + number
                continue
            at[depth] = i + 1
            follows = depth == 0 or top > base[depth]
            if depth == 0:
                symbol = nb.int64(roots[i])
                gap = nb.int64(text.leading_gaps[symbol]) if i > root_offsets[row] else nothing
            else:
                symbol = nb.int64(text.symbols[i])
                gap = nb.int64(text.predicted_gaps[size + i])
            first = here[depth]
            if follows and first < high[depth] and places[first] == word[depth]:
                gap = nb.int64(codes[first])
                first += 1
            begins = word[depth]
            word[depth] += length_of(symbol, text)
            last = first
            while last < high[depth] and places[last] < word[depth]:
                last += 1
            here[depth] = last
            inside = nb.uint64(0)
            deep = last > first
            if deep:
                inside = _hash(symbol, first, last, begins, places, codes)
                number = _find(inside, symbol, first, last, begins, places, codes, made, slots)
                if number >= 0:
                    symbol, deep = known + number, False
                else:
                    own[depth + 1] = symbol
            if depth == 0:
                exact_roots[i], exact_gaps[i] = symbol, gap
            else:
                symbols[top], gaps[top] = symbol, gap
                top += 1
            if deep:
                depth += 1
                at[depth] = nb.int64(text.rule_offsets[symbol - size])
                stop[depth] = nb.int64(text.rule_offsets[symbol - size + 1])
                base[depth], start[depth], word[depth] = top, begins, begins
                low[depth], here[depth], high[depth], hashes[depth] = first, first, last, inside
        ends[row] = nothing
        if here[0] < count and places[here[0]] == word[0]:
            ends[row] = codes[here[0]]
            here[0] += 1
        if here[0] < count:
            return GAP_PLACE, row
    return OK, 0


@polled_kernel
def reach(vocabulary_size: int, offsets: Int64, symbols: UInt32, roots: UInt32, numbers: UInt32) -> int:
    """Number the rules that rows use, from 1 on; bodies have lower rules only. ``numbers`` is initially zero."""
    began = interrupts()
    for i in range(len(roots)):
        if roots[i] >= vocabulary_size:
            numbers[roots[i] - vocabulary_size] = 1
    for rule in range(len(numbers) - 1, -1, -1):
        if rule & 0xFFF == 0 and interrupts() != began:
            return 0
        if numbers[rule] != 0:
            for i in range(offsets[rule], offsets[rule + 1]):
                if symbols[i] >= vocabulary_size:
                    numbers[symbols[i] - vocabulary_size] = 1
    count = 0
    for rule in range(len(numbers)):
        if numbers[rule] != 0:
            count += 1
            numbers[rule] = count
    return count


@polled_kernel
def renumber(vocabulary_size: int, symbols: UInt32, numbers: UInt32, renumbered: UInt32) -> None:
    """Write symbols by their rules' numbers."""
    began = interrupts()
    for i in range(len(symbols)):
        if i & 0xFFFFF == 0 and interrupts() != began:
            return
        symbol = nb.int64(symbols[i])
        if symbol >= vocabulary_size:
            symbol = vocabulary_size + nb.int64(numbers[symbol - vocabulary_size]) - 1
        renumbered[i] = symbol
