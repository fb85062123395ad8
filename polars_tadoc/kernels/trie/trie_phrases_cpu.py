"""Finds phrases shared by a trie's tails, and encodes the tails as phrases.

A phrase is one to seven bytes after a known byte. At most 256 are kept per preceding byte, so a code has one byte. They
are chosen by pruning (as SentencePiece's unigram model is, Kudo, ACL 2018): starting from all frequent phrases, tails
are encoded with as few phrases as possible, and the phrases that save least are dropped, until few enough are left.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from polars_tadoc.kernels.trie.arrays import LONGEST_PHRASE
from polars_tadoc.runtime.addresses import bit_length
from polars_tadoc.runtime.array_types import Bools, Int64, UInt8, UInt16, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import inner, kernel, polled_kernel
from polars_tadoc.runtime.parallel import even_chunks, map_parallel

SAMPLE = 1 << 20
"""Tails used for choosing phrases."""

CODES = 256
"""Maximum phrases after one byte."""

ROUNDS = (1024, 480, 300, 270, 256, 256)
"""Phrases kept per byte in each round: dropping fewer at a time gives better phrases."""

JOINS = 2
"""Rounds that add pairs of adjacent phrases again, which were dropped too early or are longer."""

JOINED = 128
"""Phrases added per byte in such a round."""

WORTH = 8
"""Codes that a 64-bit phrase must save: a code has eight bits, and one in the vector of ends."""

_0, _1, _8, _29, _255 = (np.uint64(number) for number in (0, 1, 8, 29, 255))
_MIX, _STIR = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)


class Table(NamedTuple):
    """Hash table of phrases: by slot a phrase with the byte before it, 0 if free, and its number."""

    keys: UInt64
    numbers: UInt32


class Parsed(NamedTuple):
    """Encoding of one edge's bytes, by byte: number of codes from there on, length and phrase of the first code."""

    codes: Int64
    steps: Int64
    phrases: UInt32


@inner
def _slot(keys: UInt64, key: Any) -> Any:
    """Return the slot of a key, or its free slot; a key is the byte before a phrase and the phrase's bytes."""
    last = nb.uint64(len(keys) - 1)
    mixed = nb.uint64(key) * _MIX
    mixed ^= mixed >> _29
    slot = (mixed * _STIR >> _29) & last
    while keys[slot] != _0 and keys[slot] != key:
        slot = (slot + _1) & last
    return nb.int64(slot)


@polled_kernel
def _count_phrases(data: UInt8, starts: Int64, lengths: UInt32, keys: UInt64, counts: UInt32) -> None:
    """Count the phrases of edges, until the table is nearly full."""
    found, room = 0, len(keys) // 4 * 3
    began = interrupts()
    for edge in range(len(starts)):
        if edge & 0xFF == 0 and interrupts() != began:
            break
        start, end = starts[edge], starts[edge] + lengths[edge]
        for at in range(start, end - 1):
            key = nb.uint64(data[at])
            for length in range(1, min(LONGEST_PHRASE, end - 1 - at) + 1):
                key |= nb.uint64(data[at + length]) << nb.uint64(8 * length)
                slot = _slot(keys, key)
                if keys[slot] == _0:
                    if found == room:
                        continue
                    keys[slot] = key
                    found += 1
                counts[slot] += nb.uint32(1)


@kernel
def _fill(phrases: UInt64, table: Table) -> None:
    for phrase in range(len(phrases)):
        slot = _slot(table.keys, phrases[phrase])
        table.keys[slot] = phrases[phrase]
        table.numbers[slot] = phrase


@inner
def _parse(data: UInt8, start: int, end: int, table: Table, parsed: Parsed) -> None:
    """Encode the bytes after ``start`` with as few phrases as possible; ties go to the longest first phrase."""
    size = end - 1 - start
    parsed.codes[size] = 0
    for i in range(size - 1, -1, -1):
        key = nb.uint64(data[start + i])
        fewest = nb.int64(1) << 40
        for length in range(1, min(LONGEST_PHRASE, size - i) + 1):
            key |= nb.uint64(data[start + i + length]) << nb.uint64(8 * length)
            slot = _slot(table.keys, key)
            if table.keys[slot] == key and 1 + parsed.codes[i + length] <= fewest:
                fewest = 1 + parsed.codes[i + length]
                parsed.steps[i], parsed.phrases[i] = length, table.numbers[slot]
        parsed.codes[i] = fewest


@polled_kernel
def _count_uses(data: UInt8, starts: Int64, lengths: UInt32, table: Table, parsed: Parsed, uses: Int64) -> None:
    """Count the uses of each phrase."""
    began = interrupts()
    for edge in range(len(starts)):
        if edge & 0xFF == 0 and interrupts() != began:
            break
        _parse(data, starts[edge], starts[edge] + lengths[edge], table, parsed)
        i, size = nb.int64(0), nb.int64(lengths[edge]) - 1
        while i < size:
            uses[parsed.phrases[i]] += 1
            i += parsed.steps[i]


@polled_kernel
def _count_joined(
    data: UInt8, starts: Int64, lengths: UInt32, table: Table, parsed: Parsed, joined: UInt64, counts: UInt32
) -> None:
    """Count pairs of adjacent phrases that are short enough to be a phrase together."""
    found, room = 0, len(joined) // 4 * 3
    began = interrupts()
    for edge in range(len(starts)):
        if edge & 0xFF == 0 and interrupts() != began:
            break
        start, size = starts[edge], nb.int64(lengths[edge]) - 1
        _parse(data, start, start + size + 1, table, parsed)
        i, steps = nb.int64(0), parsed.steps
        while i + steps[i] < size:
            length = steps[i] + steps[i + steps[i]]
            if length <= LONGEST_PHRASE:
                key = _0
                for k in range(length + 1):
                    key |= nb.uint64(data[start + i + k]) << nb.uint64(8 * k)
                slot = _slot(joined, key)
                if joined[slot] == _0 and found < room:
                    joined[slot] = key
                    found += 1
                if joined[slot] == key:
                    counts[slot] += nb.uint32(1)
            i += steps[i]


@polled_kernel
def _write_codes(
    data: UInt8, starts: Int64, lengths: UInt32, table: Table, parsed: Parsed, codes: UInt16, ends: UInt8
) -> int:
    """Write the phrases of tails contiguously with marks at the tails' ends; return their number."""
    written = 0
    began = interrupts()
    for edge in range(len(starts)):
        if edge & 0xFF == 0 and interrupts() != began:
            break
        _parse(data, starts[edge], starts[edge] + lengths[edge], table, parsed)
        i, size = nb.int64(0), nb.int64(lengths[edge]) - 1
        while i < size:
            codes[written] = parsed.phrases[i]
            i += parsed.steps[i]
            ends[written] = i >= size
            written += 1
    return written


@kernel
def _count_without(phrases: UInt64, keys: UInt64, without: Int64, best: Int64) -> None:
    """Count the codes that each phrase of several bytes would take without itself."""
    for phrase in range(len(phrases)):
        key = phrases[phrase]
        size = (bit_length(key) - 1) // 8
        best[size] = 0
        for i in range(size - 1, -1, -1):
            fewest = nb.int64(1) << 40
            for length in range(1, size - i + (i > 0)):
                part = key >> nb.uint64(8 * i) & (_1 << nb.uint64(8 * (length + 1))) - _1
                if keys[_slot(keys, part)] == part:
                    fewest = min(fewest, 1 + best[i + length])
            best[i] = fewest
        without[phrase] = best[0]


@kernel
def _mark_pairs(data: UInt8, starts: Int64, lengths: UInt32, seen: UInt8) -> None:
    """Mark each pair of adjacent bytes in an edge."""
    for edge in range(len(starts)):
        for at in range(starts[edge], starts[edge] + lengths[edge] - 1):
            seen[256 * nb.int64(data[at]) + data[at + 1]] = 1


def _byte_counts(values: UInt64) -> Int64:
    """Return the number of bytes up to the highest nonzero one."""
    return np.searchsorted(_1 << np.arange(0, 64, 8, dtype=np.uint64), values, side="right")


def _table(phrases: UInt64) -> Table:
    size = 1 << max(10, (2 * len(phrases)).bit_length())
    table = Table(np.zeros(size, np.uint64), np.zeros(size, np.uint32))
    _fill(phrases, table)
    return table


def _room(lengths: UInt32) -> Parsed:
    """Allocate for the longest edge."""
    size = int(lengths.max()) + 1
    return Parsed(np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.uint32))


def _largest(phrases: UInt64, gains: Int64, limit: Int64) -> Bools:
    """Choose at most ``limit`` phrases after each byte, by descending gain."""
    before = phrases & _255
    order = np.lexsort((phrases, -gains, before))
    counts = np.bincount(before[order].astype(np.int64), minlength=256)
    places = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = np.zeros(len(phrases), np.bool_)
    kept[order[places < limit[before[order].astype(np.int64)]]] = True
    return kept


def _choose(data: UInt8, starts: Int64, lengths: UInt32) -> UInt64:
    """Choose phrases, each with the byte before it, including all that are needed to encode any tail."""
    seen = np.zeros(1 << 16, np.uint8)
    _mark_pairs(data, starts, lengths, seen)
    pairs = np.flatnonzero(seen).astype(np.uint64)
    single = pairs >> _8 | (pairs & _255) << _8
    free = CODES - np.bincount((pairs >> _8).astype(np.int64), minlength=256)

    step = max(1, len(starts) // SAMPLE)
    starts, lengths = np.ascontiguousarray(starts[::step]), np.ascontiguousarray(lengths[::step])
    inside = lengths.astype(np.int64) - 1
    substrings = int((inside * np.minimum(inside, LONGEST_PHRASE)).sum())
    size = 1 << min(23, max(10, (2 * substrings).bit_length()))
    keys, counts = np.zeros(size, np.uint64), np.zeros(size, np.uint32)
    _count_phrases(data, starts, lengths, keys, counts)
    often = np.flatnonzero((counts.astype(np.int64) * step >= WORTH) & (keys >= 1 << 16) & (counts > 1))
    phrases, gains = keys[often], counts[often].astype(np.int64)
    sizes = _byte_counts(phrases) - 1
    phrases = phrases[_largest(phrases, gains * sizes, np.full(256, 2048))]
    room = _room(lengths)

    def prune(phrases: UInt64, left: int) -> UInt64:
        """Keep the ``left`` phrases after each byte that save most."""
        every = np.concatenate([single, phrases])
        table = _table(every)
        uses, without = np.zeros(len(every), np.int64), np.zeros(len(every), np.int64)
        _count_uses(data, starts, lengths, table, room, uses)
        _count_without(every, table.keys, without, np.zeros(LONGEST_PHRASE + 1, np.int64))
        gains = (uses * (without - 1))[len(single) :] * step
        return phrases[_largest(phrases, gains, np.minimum(left, free)) & (gains >= WORTH)]

    def join(phrases: UInt64) -> UInt64:
        """Add the most frequent concatenations of two adjacent phrases."""
        every = np.concatenate([single, phrases])
        size = 1 << min(21, max(10, (4 * len(starts)).bit_length()))
        joined, counts = np.zeros(size, np.uint64), np.zeros(size, np.uint32)
        _count_joined(data, starts, lengths, _table(every), room, joined, counts)
        often = np.flatnonzero(counts * step >= WORTH)
        added, times = joined[often], counts[often].astype(np.int64)
        return np.concatenate([phrases, added[_largest(added, times, np.full(256, JOINED))]])

    for left in ROUNDS:
        phrases = prune(phrases, left)
    for _ in range(JOINS):
        phrases = join(phrases)
        for left in ROUNDS[-4:]:
            phrases = prune(phrases, left)
    return np.concatenate([single, phrases])


def write_tails(data: UInt8, starts: Int64, lengths: UInt32) -> tuple[UInt8, UInt64, UInt64, UInt32]:
    """Encode the tails of edges.

    Parameters
    ----------
    data
        uint8: text without zeros.
    starts, lengths
        int64, uint32 by edge with a tail, in order: position of its label, and bytes including it.

    Returns
    -------
    (uint8 array, uint64 array, uint64 array, uint32 array)
        Codes, bits of ends, phrases and first phrases of :class:`~polars_tadoc.kernels.trie.arrays.Trie`.

    """
    if len(starts) == 0:
        return np.zeros(1, np.uint8), np.zeros(1, np.uint64), np.zeros(1, np.uint64), np.zeros(257, np.uint32)
    phrases = _choose(data, starts, lengths)
    table = _table(phrases)

    def write(chunk: tuple[int, int]) -> tuple[UInt16, UInt8]:
        part = slice(*chunk)
        room = int(lengths[part].sum(dtype=np.int64))
        codes, ends = np.empty(room, np.uint16), np.empty(room, np.uint8)
        written = _write_codes(data, starts[part], lengths[part], table, _room(lengths[part]), codes, ends)
        return codes[:written], ends[:written]

    parts = map_parallel(write, even_chunks(len(starts)))
    written = np.concatenate([codes for codes, _ in parts])
    ends = np.concatenate([ends for _, ends in parts])
    used = np.flatnonzero(np.bincount(written, minlength=len(phrases)))
    before = (phrases[used] & _255).astype(np.int64)
    order = np.lexsort((phrases[used], before))
    counts = np.bincount(before, minlength=256)
    first = np.concatenate([[0], np.cumsum(counts)])
    code = np.zeros(len(phrases), np.uint8)
    code[used[order]] = np.arange(len(used)) - first[before[order]]
    bits = np.zeros(-(-len(ends) // 64) * 8, np.uint8)
    packed = np.packbits(ends, bitorder="little")
    bits[: len(packed)] = packed
    texts = phrases[used[order]] >> _8
    sizes = _byte_counts(texts).astype(np.uint64)
    return code[written], bits.view(np.uint64), texts << _8 | sizes, first.astype(np.uint32)
