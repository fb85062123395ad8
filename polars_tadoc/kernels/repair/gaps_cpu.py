"""Predicts gaps from the following position in a rule or the following word, and encodes those that differ."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from polars_tadoc.kernels.primitives.varint import read_own_varint, write_varint
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import kernel
from polars_tadoc.runtime.process.shared_tasks import all_done, done, take

SYMBOLS_PER_TASK = 1 << 13
"""Fewest symbols that a task measures."""

_1 = np.uint64(1)


@njit
def _measure_words(first: int, stop: int, spans: UInt32) -> None:
    for word in range(first, stop):
        spans[2 * word], spans[2 * word + 1] = 1, word


@njit
def _measure_rules(
    vocabulary_size: int, rule_offsets: UInt32, symbols: UInt32, first: int, stop: int, spans: UInt32
) -> None:
    for rule in range(first, stop):
        total = nb.int64(0)
        for i in range(rule_offsets[rule], rule_offsets[rule + 1]):
            total += nb.int64(spans[2 * nb.int64(symbols[i])])
        own = 2 * (vocabulary_size + rule)
        spans[own], spans[own + 1] = total, spans[2 * nb.int64(symbols[rule_offsets[rule]]) + 1]


@polled
@njit
def measure(
    progress: Int64,
    tasks: int,
    vocabulary_size: int,
    rule_offsets: UInt32,
    symbols: UInt32,
    level_offsets: UInt32,
    root_offsets: Int64,
    roots: UInt32,
    row_edges: Int64,
    spans: UInt32,
    row_words: Int64,
) -> None:
    """Fill the length and the first word of each symbol's expansion, and the number of words of each row.

    ``spans`` has both by symbol, in one cache line; no rows have 2^32 words or more. Symbols are words, then rules
    ascending; a level's rules use lower levels only. ``progress`` is as of :func:`.shared_tasks.share_tasks`, with a
    step for the words, each level and the rows; ``tasks`` is the most tasks of a step of words or rules, ``row_edges``
    has the edges of the rows' tasks.
    """
    began, levels = interrupts(), len(level_offsets) - 1
    for step in range(levels + 1):
        first = nb.int64(level_offsets[step - 1]) if step > 0 else nb.int64(0)
        size = nb.int64(level_offsets[step]) - first if step > 0 else nb.int64(vocabulary_size)
        many = max(1, min(tasks, size // SYMBOLS_PER_TASK))
        k = take(progress, step)
        while k < many and interrupts() == began:
            start, stop = first + size * k // many, first + size * (k + 1) // many
            if step == 0:
                _measure_words(start, stop, spans)
            else:
                _measure_rules(vocabulary_size, rule_offsets, symbols, start, stop, spans)
            k = done(progress, step)
        if not all_done(progress, step, many, began):
            return
    k = take(progress, levels + 1)
    while k < len(row_edges) - 1 and interrupts() == began:
        for row in range(row_edges[k], row_edges[k + 1]):
            total = nb.int64(0)
            for i in range(root_offsets[row], root_offsets[row + 1]):
                total += nb.int64(spans[2 * nb.int64(roots[i])])
            row_words[row] = total
        k = done(progress, levels + 1)


@polled
@njit
def fill_keys(
    vocabulary_size: int,
    rule_offsets: UInt32,
    symbols: UInt32,
    levels: int,
    spans: UInt32,
    root_offsets: Int64,
    roots: UInt32,
    starts: Int64,
    keys: UInt32,
    known: UInt32,
) -> None:
    """Write the key of each gap: gap g of a row at ``keys[starts[row] + g]``, 0 for a row's first and last.

    A rule is expanded at its first occurrence; later occurrences are copied from there: ``known``, zeros, gets its
    place, counted from the first row's start, + 1.
    """
    began = interrupts()
    position = np.empty(levels + 1, np.int64)
    stop = np.empty(levels + 1, np.int64)
    for row in range(len(starts)):
        if interrupts() != began:
            return
        at = nb.uint64(starts[row])
        for i in range(root_offsets[row], root_offsets[row + 1]):
            if i & 0xFF == 0 and interrupts() != began:
                return
            symbol = nb.int64(roots[i])
            keys[at] = spans[2 * symbol + 1] if i > root_offsets[row] else nb.uint32(0)
            at += _1
            depth = 0
            while True:
                rule = symbol - vocabulary_size
                if rule >= 0 and known[rule] == 0:
                    known[rule] = at - nb.uint64(starts[0]) + _1
                    position[depth] = nb.int64(rule_offsets[rule]) + 1
                    stop[depth] = rule_offsets[rule + 1]
                    depth += 1
                    symbol = nb.int64(symbols[rule_offsets[rule]])
                    continue
                if rule >= 0:
                    inside = nb.uint64(spans[2 * symbol]) - _1
                    source = nb.uint64(starts[0]) + nb.uint64(known[rule]) - _1
                    for k in range(inside):
                        keys[at + k] = keys[source + k]
                    at += inside
                while depth > 0 and position[depth - 1] == stop[depth - 1]:
                    depth -= 1
                if depth == 0:
                    break
                place = position[depth - 1]
                position[depth - 1] += 1
                keys[at] = vocabulary_size + place
                at += _1
                symbol = nb.int64(symbols[place])
        keys[at] = 0


@polled
@kernel
def count_keys(keys: UInt32, starts: Int64, row_words: Int64, totals: UInt32) -> None:
    """Count the keys of rows."""
    began = interrupts()
    for row in range(len(starts)):
        if interrupts() != began:
            return
        for i in range(starts[row] + 1, starts[row] + row_words[row]):
            totals[keys[i]] += nb.uint32(1)


@kernel
def drop_codes(left: Int64, codes: UInt32) -> None:
    """Drop the codes of keys that have another gap, one space, at least as often."""
    for key in range(len(codes)):
        if left[key] <= 0:
            codes[key] = 0


@polled
@kernel
def partition(
    keys: UInt32,
    starts: Int64,
    row_words: Int64,
    gap_offsets: Int64,
    gap_data: UInt8,
    bits: int,
    code_bits: int,
    places: Int64,
    seen: Any,
) -> Any:
    """Count the gaps that are not one space by bucket, their key's lowest ``bits``, or write items to the buckets.

    An item is ``key >> bits << code_bits | code``. Returns the highest code. ``places`` has the buckets' first places
    in ``seen``, and is advanced; without ``seen``, gaps are only counted. The gaps are encoded as by the tokenizer:
    varint pairs (skipped gaps, gap id).
    """
    began = interrupts()
    gaps_at, writes = nb.uint64(gap_data.ctypes.data), len(seen) > 0
    mask = (nb.int64(1) << bits) - 1
    highest = nb.int64(0)
    for row in range(len(starts)):
        if interrupts() != began:
            break
        at = gap_offsets[row]
        place = nb.int64(0)
        while at < gap_offsets[row + 1]:
            passed, at = read_own_varint(gaps_at, at)
            gap, at = read_own_varint(gaps_at, at)
            place += passed
            if 0 < place < row_words[row]:
                key = keys[starts[row] + place]
                bucket = nb.int64(key) & mask
                if writes:
                    high = nb.uint64(key) >> nb.uint64(bits) << nb.uint64(code_bits)
                    seen[places[bucket]] = high | nb.uint64(gap + 1)
                places[bucket] += 1
                highest = max(highest, gap + 1)
            place += 1
    return highest


@polled
@njit
def decide(
    seen: Any, edges: Int64, first_bucket: int, bits: int, code_bits: int, highest: int, codes: UInt32, left: Int64
) -> None:
    """Set the most frequent code, apart from one space, of the keys of some buckets; ``codes`` is initially zero.

    A code seen only once does not count; ties go to the smaller one. The items from ``edges[b]`` to ``edges[b + 1]``
    are those of bucket ``first_bucket + b``. ``left`` of a key with a code becomes its least number of
    occurrences where one space is as frequent as the code.
    """
    began, all_codes = interrupts(), (nb.uint64(1) << nb.uint64(code_bits)) - nb.uint64(1)
    ends = np.empty((len(codes) >> bits) + 2, np.int64)
    by_key = np.empty(np.diff(edges).max(), np.uint32)
    times = np.zeros(highest + 1, np.uint32)
    for b in range(len(edges) - 1):
        if interrupts() != began:
            return
        own = seen[edges[b] : edges[b + 1]]
        ends[:] = 0
        for item in own:
            ends[nb.int64(nb.uint64(item) >> nb.uint64(code_bits)) + 1] += 1
        for k in range(1, len(ends)):
            ends[k] += ends[k - 1]
        for item in own:
            k = nb.int64(nb.uint64(item) >> nb.uint64(code_bits))
            by_key[ends[k]] = nb.uint64(item) & all_codes
            ends[k] += 1
        first = 0
        for k in range(len(ends) - 1):
            group = by_key[first : ends[k]]
            first = ends[k]
            if len(group) < 2:
                continue
            key = (k << bits) + first_bucket + b
            for code in group:
                times[code] += nb.uint32(1)
            most, best = nb.int64(1), nb.uint32(0)
            for code in group:
                seen_here = nb.int64(times[code])
                if seen_here > most or (seen_here == most and code < best):
                    most, best = seen_here, code
            for code in group:
                times[code] = 0
            if most > 1:
                codes[key], left[key] = best, most + len(group)


MOST_BYTES = 10
"""Most bytes of an encoded gap: two numbers of up to 35 bits."""


@polled
@kernel
def encode(
    codes: UInt32,
    keys: UInt32,
    starts: Int64,
    row_words: Int64,
    gap_offsets: Int64,
    gap_data: UInt8,
    sizes: Int64,
    data: UInt8,
) -> Any:
    """Encode each row's gaps that differ from the prediction: varint pairs (skipped gaps, gap code).

    The first and the last gap of a row are predicted to be empty. ``sizes`` becomes the bytes by row; ``data`` has room
    for ``MOST_BYTES`` per gap. Returns the bytes of all rows.
    """
    began = interrupts()
    gaps_at, data_at = nb.uint64(gap_data.ctypes.data), nb.uint64(data.ctypes.data)
    out = nb.int64(0)
    for row in range(len(starts)):
        if interrupts() != began:
            break
        first, at, stop = out, gap_offsets[row], gap_offsets[row + 1]
        start, words = starts[row], row_words[row]
        following = i = nb.int64(0)  # the gap after the last one encoded; the gap to be looked at
        while i <= words:
            place, code = words + 1, nb.int64(0)  # of the next gap that is not the default
            if at < stop:
                passed, at = read_own_varint(gaps_at, at)
                gap, at = read_own_varint(gaps_at, at)
                place, code = i + passed, gap + 1
            while i < min(place, words):
                if i > 0 and codes[keys[start + i]] != 0:
                    out = write_varint(data_at, out, i - following)
                    out = write_varint(data_at, out, 0)
                    following = i + 1
                i += 1
            if place > words:
                break
            i = place
            guess = nb.int64(codes[keys[start + i]]) if 0 < i < words else 0
            if code != guess:
                out = write_varint(data_at, out, i - following)
                out = write_varint(data_at, out, code)
                following = i + 1
            i += 1
        sizes[row] = out - first
    return out
