"""Marks the ends of lines in a sequence, finds equal lines or paragraphs, and writes each distinct one once.

The last word of a line has the bit ``LINE_END``, and ``PARAGRAPH_END`` too if a paragraph ends, unless it is the last
word of its row: there the separator ends the line, which has both bits. Kernels take units: lines or paragraphs.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.primitives.varint import read_own_varint
from polars_tadoc.kernels.repair.equal_rows_cpu import DROPPED, class_of, weight_of
from polars_tadoc.kernels.tokenize.tokenize_cpu import SEPARATOR
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import inner, kernel
from polars_tadoc.runtime.secret import first_secret

LINE_END, PARAGRAPH_END = 1 << 31, 1 << 30
"""Bits of the last word of a line, and of a paragraph, inside a row; a separator has both."""

WORD = PARAGRAPH_END - 1

LINE_MARK, PARAGRAPH_MARK = LINE_END, LINE_END | PARAGRAPH_END
"""The bits at the end of a line, and of a paragraph."""

SAMPLE_BITS = 3
"""Units whose hash has so many zeros on top are in the sample that decides whether units repeat."""

LOOK = 1 << 12
"""Units between polls for interrupts."""

LINE_FEED = ord("\n")

BLOCK = 64
"""Symbols that are looked at together."""

_K1, _K2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_1, _2, _32 = np.uint64(1), np.uint64(2), np.uint64(32)


@kernel
def mark_gaps(offsets: Int64, data: UInt8, marks: UInt32) -> bool:
    """Set the bits of the word before each gap, a string; return whether any gap has a line end."""
    any_end = False
    for gap in range(len(marks)):
        ends = 0
        for i in range(offsets[gap], offsets[gap + 1]):
            ends += data[i] == LINE_FEED
            if ends == 2:
                break
        marks[gap] = 0 if ends == 0 else (LINE_MARK if ends == 1 else PARAGRAPH_MARK)
        any_end |= ends > 0
    return any_end


@polled
@njit
def mark_ends(
    sequence: UInt32, starts: Int64, gap_offsets: Int64, gap_data: UInt8, marks: UInt32, first: int, stop: int
) -> None:
    """Mark the last word of each line inside rows ``first`` to ``stop - 1``, except the last line's.

    ``starts`` has the first position of each row, then the one after the last row. ``marks`` has by gap id the bits of
    the word before it.
    """
    began = interrupts()
    data = nb.uint64(gap_data.ctypes.data)
    for row in range(first, stop):
        if interrupts() != began:
            return
        at, end = gap_offsets[row], gap_offsets[row + 1]
        place, last = starts[row], starts[row + 1] - 1
        while at < end:
            skipped, at = read_own_varint(data, at)
            gap, at = read_own_varint(data, at)
            place += skipped
            if starts[row] < place < last:  # most gaps; a branch on their marks would be unpredictable
                sequence[place - 1] |= marks[gap]
            place += 1


@njit
def clear_ends(sequence: UInt32) -> None:
    """Clear the marks of a part of a sequence."""
    for i in range(len(sequence)):  # the compiler makes vectors of it
        symbol = sequence[i]
        sequence[i] = symbol if symbol == SEPARATOR else symbol & np.uint32(WORD)


@njit
def count_ends(sequence: UInt32, mark: int) -> int:
    """Count the symbols of a part of a sequence that have all bits of ``mark``, which are the highest ones."""
    ends = 0
    for i in range(len(sequence)):
        ends += sequence[i] >= np.uint32(mark)
    return ends


@kernel
def list_starts(sequence: UInt32, first: int, stop: int, starts: Int64) -> None:
    """Write the position after each separator from position ``first`` to before ``stop``."""
    at = 0
    for block in range(first, stop, BLOCK):
        own = sequence[block : min(block + BLOCK, stop)]
        many = 0
        for k in range(len(own)):  # the compiler makes vectors of it
            many += own[k] == SEPARATOR
        k = 0
        while many > 0:
            if own[k] == SEPARATOR:
                starts[at] = block + k + 1
                at += 1
                many -= 1
            k += 1


@inner
def _hash_word(symbol: int) -> Any:
    word = (nb.uint64(symbol & np.uint32(WORD)) + _1) * _K1
    return (word ^ (word >> _32)) * _K2


@polled
@njit
def sample_units(
    sequence: UInt32,
    starts: Int64,
    row_hashes: UInt64,
    units: Int64,
    hashes: UInt64,
    words: Int64,
    rows: Int64,
    sampled: Int64,
) -> None:
    """Hash rows, and list the lines and the paragraphs of the sample.

    The hash of a line is the sum of its words' hashes, each times twice the word's number and one; that of a paragraph,
    or of a row, is such a sum of its lines' hashes.

    Parameters
    ----------
    sequence, starts
        Marked words; by row: its first position; then the one after the last row.
    row_hashes, units
        Output by row: its hash; ``units[0]`` and ``units[1]``: its numbers of lines and of paragraphs.
    hashes, words, rows
        Output by sampled line (first index 0) or paragraph (1): its hash, words and row.
    sampled
        Output: the number of sampled lines and paragraphs; those for which there is no room are only counted.

    """
    began = interrupts()
    room = hashes.shape[1]
    sampled[:] = 0
    for row in range(len(row_hashes)):
        if interrupts() != began:
            return
        i, end = starts[row], starts[row + 1]
        h, factor = nb.uint64(0), _1
        paragraph, own_factor, paragraph_start, line_start = nb.uint64(0), _1, i, i
        row_hash, row_factor = nb.uint64(0), _1
        units[0, row] = units[1, row] = 0
        while i < end:
            symbol = sequence[i]
            i += 1
            if symbol != SEPARATOR:
                h += _hash_word(symbol) * factor
                factor += _2
            if symbol >= LINE_END:
                stop = i - nb.int64(symbol == SEPARATOR)
                paragraph += h * own_factor
                row_hash += h * row_factor
                own_factor += _2
                row_factor += _2
                units[0, row] += 1
                if h >> nb.uint64(64 - SAMPLE_BITS) == 0:
                    k = sampled[0]
                    if k < room:
                        hashes[0, k], words[0, k], rows[0, k] = h, stop - line_start, row
                    sampled[0] = k + 1
                h, factor, line_start = nb.uint64(0), _1, i
                if symbol & np.uint32(PARAGRAPH_END) != 0:
                    units[1, row] += 1
                    if paragraph >> nb.uint64(64 - SAMPLE_BITS) == 0:
                        k = sampled[1]
                        if k < room:
                            hashes[1, k], words[1, k], rows[1, k] = paragraph, stop - paragraph_start, row
                        sampled[1] = k + 1
                    paragraph, own_factor, paragraph_start = nb.uint64(0), _1, i
        row_hashes[row] = row_hash


@polled
@njit
def hash_units(sequence: UInt32, at: int, stop: int, mark: int, stops: Int64, hashes: UInt64, ends_row: UInt8) -> None:
    """Hash the units that end from position ``at`` on and before ``stop``, as :func:`sample_units` does.

    A unit ends at a symbol with all bits of ``mark``. Fills ``stops``, the position after each unit and its separator,
    and ``ends_row``, whether it has one.
    """
    began = interrupts()
    i, least = nb.int64(at), np.uint32(mark)
    while i > 0 and sequence[i - 1] < least:
        i -= 1
    many, factor, h, unit, unit_factor = nb.int64(0), _1, nb.uint64(0), nb.uint64(0), _1
    while i < stop:
        symbol = sequence[i]
        i += 1
        if symbol != SEPARATOR:
            h += _hash_word(symbol) * factor
            factor += _2
        if symbol >= LINE_END:
            unit += h * unit_factor
            unit_factor += _2
            factor, h = _1, nb.uint64(0)
            if symbol >= least:
                if many % LOOK == 0 and interrupts() != began:
                    return
                stops[many], hashes[many], ends_row[many] = i, unit, symbol == SEPARATOR
                many += 1
                unit, unit_factor = nb.uint64(0), _1


@njit
def _part_of(h: int, parts: int) -> Any:
    """Return the part that finds the units with this hash."""
    return (((nb.uint64(h) * first_secret()) >> _32) * nb.uint64(parts)) >> _32


@polled
@njit
def list_first(hashes: UInt64, part: int, parts: int, first: Int64) -> None:
    """Write for each unit of a part the first unit with the same hash."""
    began = interrupts()
    own = nb.int64(0)
    for unit in range(len(hashes)):
        own += _part_of(hashes[unit], parts) == part
    slots = 8
    while slots < 2 * own:
        slots *= 2
    table = np.full(slots, -1, np.int64)
    for unit in range(len(hashes)):
        if unit % LOOK == 0 and interrupts() != began:
            return
        h = hashes[unit]
        if _part_of(h, parts) != part:
            continue
        s = nb.int64((h * first_secret()) & nb.uint64(slots - 1))
        while table[s] >= 0 and hashes[table[s]] != h:
            s = (s + 1) & (slots - 1)
        if table[s] < 0:
            table[s] = unit
        first[unit] = table[s]


@polled
@njit
def confirm(sequence: UInt32, stops: Int64, ends_row: UInt8, first: Int64, begin: int, stop: int) -> None:
    """Set ``first`` of units that differ from their first one to themselves; such hash collisions may stay unequal."""
    began = interrupts()
    for unit in range(begin, stop):
        if unit % LOOK == 0 and interrupts() != began:
            return
        other = first[unit]
        if other == unit:
            continue
        own_start = stops[unit - 1] if unit > 0 else nb.int64(0)
        other_start = stops[other - 1] if other > 0 else nb.int64(0)
        size = stops[unit] - ends_row[unit] - own_start
        same = size == stops[other] - ends_row[other] - other_start
        if same:
            differs = nb.uint32(0)
            for i in range(size):  # without branches, as nearly all are equal; the mark is not part of the word
                differs |= (sequence[own_start + i] ^ sequence[other_start + i]) & np.uint32(WORD)
            same = differs == 0
        if not same:
            first[unit] = unit


@polled
@njit
def classify(
    hashes: UInt64, row_classes: UInt8, part: int, parts: int, first: Int64, left: Int64, classes: UInt8
) -> None:
    """Give the units of a part classes whose weights sum to those of all equal units; the others are ``DROPPED``.

    A unit of a row of class c counts as often as the rows that this one represents; without ``row_classes`` once.
    ``left``, by unit, is initially zero.
    """
    began = interrupts()
    for unit in range(len(hashes)):
        if unit % LOOK == 0 and interrupts() != began:
            return
        if _part_of(hashes[unit], parts) == part:
            left[first[unit]] += nb.int64(weight_of(row_classes[unit])) if len(row_classes) > 0 else 1
    for unit in range(len(hashes)):
        if unit % LOOK == 0 and interrupts() != began:
            return
        if _part_of(hashes[unit], parts) != part:
            continue
        classes[unit], left[first[unit]] = class_of(left[first[unit]])


@njit
def measure_kept(stops: Int64, ends_row: UInt8, unit_classes: UInt8, first: int, stop: int) -> Any:
    """Return the number of kept units of a range, and of their words and separators."""
    units = size = nb.int64(0)
    before = stops[first - 1] if first > 0 else nb.int64(0)
    for unit in range(first, stop):
        if unit_classes[unit] != DROPPED:
            units += 1
            size += stops[unit] - before - ends_row[unit] + 1
        before = stops[unit]
    return units, size


@polled
@njit
def keep_units(
    sequence: UInt32,
    stops: Int64,
    ends_row: UInt8,
    unit_classes: UInt8,
    first: int,
    stop: int,
    number: int,
    to: int,
    numbers: Int64,
    kept: UInt32,
    classes: UInt8,
) -> None:
    """Copy those of a range of units that are not dropped to ``kept[to:]``, each with a separator.

    ``numbers`` becomes their number among all kept units, from ``number`` on, and ``classes`` the class by position.
    """
    began = interrupts()
    out = nb.int64(to)
    before = stops[first - 1] if first > 0 else nb.int64(0)
    for unit in range(first, stop):
        if unit % LOOK == 0 and interrupts() != began:
            return
        end = stops[unit] - ends_row[unit]
        if unit_classes[unit] != DROPPED:
            numbers[unit] = number
            number += 1
            size = end - before
            for i in range(size):
                kept[out + i] = sequence[before + i] & np.uint32(WORD)
            kept[out + size] = SEPARATOR
            classes[out : out + size + 1] = unit_classes[unit]
            out += size + 1
        before = stops[unit]


@njit
def number_units(numbers: Int64, first: Int64, begin: int, stop: int) -> None:
    """Replace the first unit that equals each one of a range by its number."""
    for unit in range(begin, stop):
        first[unit] = numbers[first[unit]]


@njit
def measure_units(starts: Int64, sources: Int64, ends_row: UInt8, first: int, stop: int) -> Any:
    """Return the number of symbols that a range of units has, with the separators of rows."""
    size = nb.int64(0)
    for unit in range(first, stop):
        size += starts[sources[unit] + 1] - starts[sources[unit]] - 1 + ends_row[unit]
    return size


@polled
@njit
def join_units(
    symbols: UInt32,
    starts: Int64,
    sources: Int64,
    ends_row: UInt8,
    row_classes: UInt8,
    first: int,
    stop: int,
    to: int,
    sequence: UInt32,
    classes: UInt8,
) -> None:
    """Write the symbols of a range of units to ``sequence[to:]``, and a separator after each row."""
    began = interrupts()
    out = nb.int64(to)
    for unit in range(first, stop):
        if unit % LOOK == 0 and interrupts() != began:
            return
        source = starts[sources[unit]]
        size = starts[sources[unit] + 1] - source - 1
        for i in range(size):
            sequence[out + i] = symbols[source + i]
        if ends_row[unit] != 0:
            sequence[out + size] = SEPARATOR
            size += 1
        if len(row_classes) > 0:
            classes[out : out + size] = row_classes[unit]
        out += size
