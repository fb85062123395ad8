"""Hashes texts by polynomials modulo 2^61 - 1: strings directly, rows from their rules.

:func:`polars_tadoc.kernels.host.rows.reference.content_hash` has the definition. The hash of a concatenation follows
from those of its parts, ``h(ab) = h(a) * B**len(b) + h(b)``, so each symbol is hashed once, whatever its expansion.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.host.rows.expand import GAP_PLACE, GAP_RANGE, GAPS_CUT, OK
from polars_tadoc.kernels.host.rows.mersenne import PRIME, dot, from_limbs, plus, power, reduced, times
from polars_tadoc.kernels.primitives.varint import read_varint
from polars_tadoc.runtime.addresses import load_u8, load_u16, load_u32, load_u64, prefetch
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts, polled

BASES = (0x1A7F55739726180F, 0x0DB1D00784707708)
"""Primitive roots modulo 2^61 - 1: the first ones in the sequence of the SHA-256 of ``polars_tadoc content_hash 1``
(and ``2``), the SHA-256 of that and so on, each modulo the prime. They define the hash: never change them."""

BLOCK = 256
"""Bytes summed before a reduction: the maximum for which all sums of :func:`dot` fit in 31 bits."""

WORDS, BODY, LEADING_GAP = 4, 5, 6
"""Fields of a symbol's line after the part: words of its expansion, start and (from bit 32 on) end of its body, code of
the gap predicted before it in a row."""
LINE = 8
"""Numbers per line."""

_NEVER = 1 << 62
_LOW = np.uint64((1 << 32) - 1)
_AHEAD = 12
"""Prefetch distance in symbols."""
_STRIDE = np.uint64(2 * BLOCK)


def _powers() -> UInt64:
    return np.array([[pow(base, k, PRIME) for k in range(BLOCK + 1)] for base in BASES], np.uint64)


def _limbs() -> npt.NDArray[np.int16]:
    """Signed 16-bit limbs of the powers, descending: by base and limb, uint16 by byte of a block."""
    table = np.empty((len(BASES), 4, BLOCK), np.int16)
    for k, base in enumerate(BASES):
        for i in range(BLOCK):
            value = pow(base, BLOCK - 1 - i, PRIME)
            for limb in range(4):
                low = (value + (1 << 15)) % (1 << 16) - (1 << 15)
                table[k, limb, i] = low
                value = (value - low) >> 16
    return table.reshape(2 * 4, BLOCK)


POWERS, LIMBS = _powers(), _limbs()


@njit(inline="always")
def _head(address: int, length: int, count: int) -> Any:
    """Return the first ``count`` (1 to 16) bytes of a string as the last of sixteen, in two words, zero-padded."""
    at = nb.uint64(address)
    high = nb.uint64(0)
    if length >= 16:
        low = load_u64(at)
        high = load_u64(at + nb.uint64(8))
    elif length > 8:
        low = load_u64(at)
        high = load_u64(at + nb.uint64(length - 8)) >> nb.uint64(8 * (16 - length))
    elif length == 8:
        low = load_u64(at)
    elif length >= 4:
        low = nb.uint64(load_u32(at))
        low |= nb.uint64(load_u32(at + nb.uint64(length - 4))) << nb.uint64(8 * (length - 4))
    elif length >= 2:
        low = nb.uint64(load_u16(at)) | nb.uint64(load_u16(at + nb.uint64(length - 2))) << nb.uint64(8 * (length - 2))
    else:
        low = nb.uint64(load_u8(at))
    away = nb.uint64(8 * (16 - count))
    if away == 0:
        return low, high
    if away < 64:
        return low << away, (high << away) | (low >> (nb.uint64(64) - away))
    return nb.uint64(0), low << (away - nb.uint64(64))


@njit
def _hash_bytes(address: int, length: int, first: int, second: int, powers: UInt64, limbs_at: int) -> Any:
    """Append a string to the two polynomials."""
    at = nb.uint64(address)
    rest = nb.int64(length) & nb.int64(BLOCK - 1)
    if rest:
        count = ((rest - 1) & 15) + 1
        steps = (rest - count) >> 4
        low, high = _head(at, length, count)
        start = nb.uint64(limbs_at) + nb.uint64(2 * (BLOCK - 16 * (steps + 1)))
        a, b, c, d, e, f, g, h = dot(low, high, at + nb.uint64(count), steps, start, _STRIDE)
        first = plus(times(first, powers[0, rest]), from_limbs(a, b, c, d))
        second = plus(times(second, powers[1, rest]), from_limbs(e, f, g, h))
        at += nb.uint64(rest)
    for _ in range(nb.int64(length) >> 8):
        low, high = load_u64(at), load_u64(at + nb.uint64(8))
        a, b, c, d, e, f, g, h = dot(low, high, at + nb.uint64(16), 15, nb.uint64(limbs_at), _STRIDE)
        first = plus(times(first, powers[0, BLOCK]), from_limbs(a, b, c, d))
        second = plus(times(second, powers[1, BLOCK]), from_limbs(e, f, g, h))
        at += nb.uint64(BLOCK)
    return first, second


@njit(inline="always")
def _mixed(value: int) -> Any:
    """Mix 64 bits (Stafford's variant 13, as in SplitMix64: Steele, Lea and Flood, OOPSLA 2014)."""
    value = (value ^ (value >> nb.uint64(30))) * nb.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> nb.uint64(27))) * nb.uint64(0x94D049BB133111EB)
    return value ^ (value >> nb.uint64(31))


@njit(inline="always")
def _finished(first: int, second: int) -> Any:
    """Return the lower and upper half of the hash; a bijection, so no values collide here."""
    low = _mixed(reduced(first))
    high = _mixed(reduced(second) ^ low)
    return _mixed(low ^ high), high


@polled
@njit
def hash_strings(addresses: UInt64, lengths: UInt32, powers: UInt64, limbs_at: int, low: UInt64, high: UInt64) -> None:
    """Fill both halves of each string's hash."""
    began = interrupts()
    one = nb.uint64(1)
    for row in range(len(addresses)):
        if interrupts() != began:
            return
        first, second = _hash_bytes(addresses[row], lengths[row], one, one, powers, limbs_at)
        low[row], high[row] = _finished(first, second)


@njit
def hash_words(offsets: Int64, data_at: int, powers: UInt64, limbs_at: int, parts: UInt64) -> None:
    """Fill each string's part: both polynomials, then both bases to the power of its length."""
    for word in range(len(offsets) - 1):
        start = offsets[word]
        length = offsets[word + 1] - start
        zero = nb.uint64(0)
        at = nb.uint64(data_at) + nb.uint64(start)
        parts[word, 0], parts[word, 1] = _hash_bytes(at, length, zero, zero, powers, limbs_at)
        if length <= BLOCK:
            parts[word, 2], parts[word, 3] = powers[0, length], powers[1, length]
        else:
            parts[word, 2], parts[word, 3] = power(powers[0, 1], length), power(powers[1, 1], length)


@njit(inline="always")
def _join(parts: UInt64, left: int, more: UInt64, right: int) -> Any:
    """Return the part of two concatenated texts."""
    a, b = more[right, 2], more[right, 3]
    return (
        plus(times(parts[left, 0], a), more[right, 0]),
        plus(times(parts[left, 1], b), more[right, 1]),
        times(parts[left, 2], a),
        times(parts[left, 3], b),
    )


@njit
def hash_rules(
    vocabulary_size: int,
    rule_offsets: UInt32,
    symbols: UInt32,
    expansion_lengths: UInt64,
    leading_gaps: UInt32,
    predicted_gaps: UInt32,
    gaps: UInt64,
    known: UInt64,
    places: UInt64,
) -> None:
    """Fill the line of each symbol, from the words' parts, and the positions of bodies.

    ``gaps`` are the parts of gaps by code, the last one that of no gap. A rule refers to words and earlier rules only.
    A symbol's line is its part, including the predicted gaps inside, then ``WORDS``, ``BODY`` and ``LEADING_GAP``: all
    that a row needs of it is in one cache line. A position is its symbol and, from bit 32 on, the code of the gap
    before it; the first position of a body has the code of no gap, because the gap there is the one before the rule.
    """
    no_gap = nb.uint64(len(gaps) - 1)
    for symbol in range(len(known)):
        known[symbol, WORDS], known[symbol, BODY] = 1, 0
        known[symbol, LEADING_GAP] = leading_gaps[symbol]
    for rule in range(len(rule_offsets) - 1):
        own = vocabulary_size + rule
        start, stop = nb.int64(rule_offsets[rule]), nb.int64(rule_offsets[rule + 1])
        known[own, WORDS] = expansion_lengths[rule]
        known[own, BODY] = nb.uint64(start) | (nb.uint64(stop) << nb.uint64(32))
        for i in range(start, stop):
            symbol = nb.int64(symbols[i])
            if i == start:
                places[i] = nb.uint64(symbol) | (no_gap << nb.uint64(32))
                for k in range(4):
                    known[own, k] = known[symbol, k]
                continue
            code = nb.int64(predicted_gaps[vocabulary_size + i])
            places[i] = nb.uint64(symbol) | (nb.uint64(code) << nb.uint64(32))
            known[own, 0], known[own, 1], known[own, 2], known[own, 3] = _join(known, own, gaps, code)
            known[own, 0], known[own, 1], known[own, 2], known[own, 3] = _join(known, own, known, symbol)


@njit
def lead(leading_gaps: UInt32, gaps: UInt64, parts: UInt64, led: UInt64) -> None:
    """Fill each symbol's part including the gap predicted before it in a row."""
    for symbol in range(len(leading_gaps)):
        code = leading_gaps[symbol]
        led[symbol, 0], led[symbol, 1], led[symbol, 2], led[symbol, 3] = _join(gaps, code, parts, symbol)


@njit(inline="always")
def _continued(first: int, second: int, parts: UInt64, which: int) -> Any:
    return (
        plus(times(first, parts[which, 2]), parts[which, 0]),
        plus(times(second, parts[which, 3]), parts[which, 1]),
    )


@njit(inline="always")
def _next_special(before: int, address: int, left: int, codes: int) -> Any:
    """Return error, position and code of the next gap that differs from its prediction, and the rest of the stream."""
    if left <= 0:
        return OK, nb.int64(_NEVER), nb.int64(0), nb.uint64(address), left
    passed, used = read_varint(address, left)
    if used == 0:
        return GAPS_CUT, nb.int64(0), nb.int64(0), nb.uint64(address), left
    address += nb.uint64(used)
    left -= used
    code, used = read_varint(address, left)
    if used == 0:
        return GAPS_CUT, nb.int64(0), nb.int64(0), nb.uint64(address), left
    place = before + 1 + passed
    if code >= codes or (code == 0 and place == 0):
        return GAP_RANGE, nb.int64(0), nb.int64(0), nb.uint64(address), left
    return OK, place, code, nb.uint64(address + nb.uint64(used)), left - used


@polled
@njit
def hash_rows(
    levels: int,
    gaps: UInt64,
    known: UInt64,
    led: UInt64,
    places: UInt64,
    root_offsets: Int64,
    roots: UInt32,
    gap_addresses: UInt64,
    gap_sizes: UInt32,
    low: UInt64,
    high: UInt64,
) -> Any:
    """Fill both halves of each row's hash; return ``(code, row)`` of the first error in its gaps.

    Only rules that contain a gap that differs from its prediction are opened.
    """
    began = interrupts()
    position = np.empty(levels + 1, np.int64)
    stop = np.empty(levels + 1, np.int64)
    codes = no_gap = nb.int64(len(gaps) - 1)
    last = nb.int64(len(roots)) - 1
    for row in range(len(low)):
        if interrupts() != began:
            return OK, row
        first, second = nb.uint64(1), nb.uint64(1)  # a leading digit 1: texts of zero bytes differ by their length
        start, end = root_offsets[row], root_offsets[row + 1]
        left = nb.int64(gap_sizes[row])
        if left == 0:
            if start < end:
                first, second = _continued(first, second, known, roots[start])
            for i in range(start + 1, end):
                prefetch(led, nb.int64(roots[min(i + _AHEAD, last)]) * 4)
                first, second = _continued(first, second, led, roots[i])
            low[row], high[row] = _finished(first, second)
            continue
        word = nb.int64(0)
        wrong, special, special_code, address, left = _next_special(nb.int64(-1), gap_addresses[row], left, codes)
        if wrong != OK:
            return wrong, row
        for i in range(start, end):
            if i & 0xFF == 0 and interrupts() != began:
                return OK, row
            prefetch(known, nb.int64(roots[min(i + _AHEAD, last)]) * LINE)
            symbol = nb.int64(roots[i])
            code = nb.int64(known[symbol, LEADING_GAP]) if i > start else no_gap
            depth = 0
            while True:
                if word == special:
                    code = special_code
                    wrong, special, special_code, address, left = _next_special(special, address, left, codes)
                    if wrong != OK:
                        return wrong, row
                # no gap is a part, too: a mispredicted branch would cost more than the multiplications
                first, second = _continued(first, second, gaps, code)
                length = nb.int64(known[symbol, WORDS])
                if special >= word + length:
                    first, second = _continued(first, second, known, symbol)
                    word += length
                    while depth > 0 and position[depth - 1] == stop[depth - 1]:
                        depth -= 1
                    if depth == 0:
                        break
                else:
                    body = known[symbol, BODY]
                    position[depth] = nb.int64(body & _LOW)
                    stop[depth] = nb.int64(body >> nb.uint64(32))
                    depth += 1
                place = position[depth - 1]
                position[depth - 1] = place + 1
                symbol = nb.int64(places[place] & _LOW)
                code = nb.int64(places[place] >> nb.uint64(32))
        if word == special:
            if special_code == 0:
                return GAP_RANGE, row  # code 0 is one space between words
            first, second = _continued(first, second, gaps, special_code)
            wrong, special, special_code, address, left = _next_special(special, address, left, codes)
            if wrong != OK:
                return wrong, row
        if special != _NEVER:
            return GAP_PLACE, row
        low[row], high[row] = _finished(first, second)
    return OK, 0
