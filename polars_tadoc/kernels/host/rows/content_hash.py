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
from polars_tadoc.kernels.host.rows.mersenne import (
    PRIME,
    dot,
    from_limbs,
    plus,
    power,
    reduced,
    shifted,
    times,
    times_plus,
)
from polars_tadoc.kernels.primitives.varint import read_varint
from polars_tadoc.runtime.addresses import load_u8, load_u16, load_u32, load_u64, prefetch
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import polled_njit

BASES = (0x1A7F55739726180F, 0x0DB1D00784707708)
"""Primitive roots modulo 2^61 - 1: the first ones in the sequence of the SHA-256 of ``polars_tadoc content_hash 1``
(and ``2``), the SHA-256 of that and so on, each modulo the prime. They define the hash: never change them."""

BLOCK = 256
"""Bytes summed before a reduction: the maximum for which all sums of :func:`dot` fit in 31 bits."""

LONG = 255
"""Words from which on a symbol's length isn't in the table of lengths."""

_NEVER = 1 << 62
_UNREAD = -1
_BUFFERED = 256
"""Gaps and parts that are listed before they are used."""
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


@polled_njit
def hash_strings(addresses: UInt64, lengths: UInt32, powers: UInt64, limbs_at: int, low: UInt64, high: UInt64) -> None:
    """Fill both halves of each string's hash."""
    began = interrupts()
    one = nb.uint64(1)
    for row in range(len(addresses)):
        if interrupts() != began:
            return
        first, second = _hash_bytes(addresses[row], nb.int64(lengths[row]), one, one, powers, limbs_at)
        low[row], high[row] = _finished(first, second)


@njit
def hash_words(
    offsets: Int64, data_at: int, powers: UInt64, limbs_at: int, parts: UInt64, start: int, step: int
) -> None:
    """Fill each string's part: both polynomials, then both bases to the power of its length."""
    for word in range(len(offsets) - 1):
        begin = offsets[word]
        length = offsets[word + 1] - begin
        zero = nb.uint64(0)
        own = start + step * word
        at = nb.uint64(data_at) + nb.uint64(begin)
        parts[own, 0], parts[own, 1] = _hash_bytes(at, length, zero, zero, powers, limbs_at)
        if length <= BLOCK:
            parts[own, 2], parts[own, 3] = powers[0, length], powers[1, length]
        else:
            parts[own, 2], parts[own, 3] = power(powers[0, 1], length), power(powers[1, 1], length)


@njit(inline="always")
def _join(parts: UInt64, own: int, left: int, right: int) -> None:
    """Fill the part of two concatenated texts."""
    a, b = parts[right, 2], parts[right, 3]
    parts[own, 0] = plus(times(parts[left, 0], a), parts[right, 0])
    parts[own, 1] = plus(times(parts[left, 1], b), parts[right, 1])
    parts[own, 2], parts[own, 3] = times(parts[left, 2], a), times(parts[left, 3], b)


@njit
def hash_rules(
    vocabulary_size: int,
    rule_offsets: UInt32,
    symbols: UInt32,
    leading_gaps: UInt32,
    predicted_gaps: UInt32,
    start: int,
    parts: UInt64,
) -> None:
    """Fill the parts of each rule, from those of gaps and words, and each symbol's part with the gap before it.

    The parts of gaps are at their codes, those of symbol ``s`` at ``start + 2 * s``: its expansion with the predicted
    gaps inside, and then the same with the gap that is predicted before the symbol in a row. Both are in one cache
    line. A rule refers to words and earlier rules only. At the end, powers become factors of :func:`times_plus`.
    """
    for rule in range(len(rule_offsets) - 1):
        own = start + 2 * (vocabulary_size + rule)
        first = nb.int64(rule_offsets[rule])
        for i in range(first, nb.int64(rule_offsets[rule + 1])):
            symbol = start + 2 * nb.int64(symbols[i])
            if i == first:
                for k in range(4):
                    parts[own, k] = parts[symbol, k]
            else:
                _join(parts, own, own, nb.int64(predicted_gaps[vocabulary_size + i]))
                _join(parts, own, own, symbol)
    for symbol in range(len(leading_gaps)):
        own = start + 2 * symbol
        _join(parts, own + 1, nb.int64(leading_gaps[symbol]), own)
    for own in range(len(parts)):
        parts[own, 2], parts[own, 3] = shifted(parts[own, 2]), shifted(parts[own, 3])


@njit(inline="always")
def _continued(first: int, second: int, parts: UInt64, which: int) -> Any:
    own = nb.uint64(which)
    return (
        times_plus(first, parts[own, 2], parts[own, 0]),
        times_plus(second, parts[own, 3], parts[own, 1]),
    )


@njit(inline="always")
def _hash_items(first: int, second: int, parts: UInt64, items: UInt64, count: int) -> Any:
    """Append the listed parts to the two polynomials."""
    for i in range(nb.uint64(count)):
        first, second = _continued(first, second, parts, items[i])
    return first, second


@njit(inline="always")
def _read_specials(
    address: int, left: int, place: int, codes: int, special_places: Int64, special_codes: UInt64, parts: UInt64
) -> Any:
    """Read gaps that differ from their prediction, as many as there is room for: positions and codes.

    Returns an error, the rest of the stream and the last position. After the last gap of the row there is ``_NEVER``,
    and ``_UNREAD`` where there are more.
    """
    count = nb.uint64(0)
    while left > 0 and count < _BUFFERED:
        pair = nb.int64(load_u16(address)) if left > 1 else nb.int64(0x80)
        if pair & 0x8080 == 0:  # both are below 128: most are
            passed, code, used = pair & 0x7F, pair >> 8, nb.int64(2)
        else:
            passed, used = read_varint(address, left)
            code, more = read_varint(address + nb.uint64(used), left - used)
            if used == 0 or more == 0:
                return GAPS_CUT, address, left, place
            used += more
        place += 1 + passed
        if code >= codes or (code == 0 and place == 0):
            return GAP_RANGE, address, left, place
        address += nb.uint64(used)
        left -= used
        special_places[count] = place
        prefetch(parts, code * 4)
        special_codes[count] = code
        count += nb.uint64(1)
    special_places[count] = _UNREAD if left > 0 else _NEVER
    return OK, address, left, place


@polled_njit
def hash_rows(
    levels: int,
    vocabulary_size: int,
    rule_offsets: UInt32,
    symbols: UInt32,
    expansion_lengths: UInt64,
    leading_gaps: UInt32,
    predicted_gaps: UInt32,
    codes: int,
    start: int,
    parts: UInt64,
    lengths: UInt8,
    root_offsets: Int64,
    roots: UInt32,
    gap_addresses: UInt64,
    gap_sizes: UInt32,
    low: UInt64,
    high: UInt64,
) -> Any:
    """Fill both halves of each row's hash; return ``(code, row)`` of the first error in its gaps.

    Only rules that contain a gap that differs from its prediction are opened. The parts of a row are listed before they
    are hashed, without a branch for the gap before a symbol: a mispredicted branch costs more than a part.
    """
    began = interrupts()
    position = np.empty(levels + 1, np.int64)
    stop = np.empty(levels + 1, np.int64)
    special_places = np.empty(_BUFFERED + 1, np.int64)
    special_codes = np.empty(_BUFFERED + 1, np.uint64)
    special_codes[_BUFFERED] = 0
    items = np.empty(_BUFFERED + 2, np.uint64)
    last = nb.int64(len(roots)) - 1
    one = nb.uint64(1)
    base = nb.uint64(start)
    for row in range(len(low)):
        if interrupts() != began:
            return OK, row
        first, second = one, one  # a leading digit 1: texts of zero bytes differ by their length
        begin, end = root_offsets[row], root_offsets[row + 1]
        left = nb.int64(gap_sizes[row])
        led = nb.uint64(0)  # before the first word no gap is predicted
        if left == 0:
            for i in range(begin, end):
                prefetch(parts, (start + 2 * nb.int64(roots[min(i + _AHEAD, last)])) * 4)
                first, second = _continued(first, second, parts, base + nb.uint64(2) * nb.uint64(roots[i]) + led)
                led = one
            low[row], high[row] = _finished(first, second)
            continue
        address = nb.uint64(gap_addresses[row])
        wrong, address, left, place = _read_specials(
            address, left, nb.int64(-1), codes, special_places, special_codes, parts
        )
        if wrong != OK:
            return wrong, row
        special, count, word = nb.uint64(0), nb.uint64(0), nb.int64(0)
        for i in range(nb.uint64(begin), nb.uint64(end)):
            if count >= _BUFFERED:
                first, second = _hash_items(first, second, parts, items, count)
                count = nb.uint64(0)
                if interrupts() != began:
                    return OK, row
            symbol = nb.uint64(roots[i])
            own = base + nb.uint64(2) * symbol
            prefetch(parts, nb.int64(own) * 4)
            length = nb.int64(lengths[symbol])
            hit = nb.uint64(special_places[special] == word)
            if special_places[special + hit] >= word + length and length < LONG:
                items[count] = special_codes[special]
                items[count + hit] = own + (led & (hit ^ one))
                count += one + hit
                special += hit
                word += length
                led = one
                continue
            depth = 0
            code = nb.int64(leading_gaps[symbol]) if led else nb.int64(-1)
            while True:
                if special_places[special] == word:
                    code = nb.int64(special_codes[special])
                    special += one
                if special_places[special] == _UNREAD:
                    wrong, address, left, place = _read_specials(
                        address, left, place, codes, special_places, special_codes, parts
                    )
                    if wrong != OK:
                        return wrong, row
                    special = nb.uint64(0)
                    continue
                if count >= _BUFFERED:
                    first, second = _hash_items(first, second, parts, items, count)
                    count = nb.uint64(0)
                    if interrupts() != began:
                        return OK, row
                if code >= 0:
                    items[count] = code
                    count += one
                rule = nb.int64(symbol) - vocabulary_size
                length = nb.int64(expansion_lengths[rule]) if rule >= 0 else nb.int64(1)
                opened = special_places[special] < word + length
                if opened:
                    position[depth], stop[depth] = rule_offsets[rule], rule_offsets[rule + 1]
                    depth += 1
                else:
                    items[count] = base + nb.uint64(2) * symbol
                    count += one
                    word += length
                    while depth > 0 and position[depth - 1] == stop[depth - 1]:
                        depth -= 1
                    if depth == 0:
                        break
                at = position[depth - 1]
                position[depth - 1] = at + 1
                code = nb.int64(-1) if opened else nb.int64(predicted_gaps[vocabulary_size + at])
                symbol = nb.uint64(symbols[at])
            led = one
        first, second = _hash_items(first, second, parts, items, count)
        while special_places[special] == _UNREAD:
            wrong, address, left, place = _read_specials(
                address, left, place, codes, special_places, special_codes, parts
            )
            if wrong != OK:
                return wrong, row
            special = nb.uint64(0)
        if special_places[special] == word:
            if special_codes[special] == 0:
                return GAP_RANGE, row  # code 0 is one space between words
            first, second = _continued(first, second, parts, special_codes[special])
            special += one
        if special_places[special] != _NEVER:
            return GAP_PLACE, row
        low[row], high[row] = _finished(first, second)
    return OK, 0
