"""Cuts rows into words and gaps and interns both, in one pass over the bytes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from polars_tadoc.kernels.primitives.keyed_hash import keyed, keyed_more
from polars_tadoc.kernels.primitives.varint import read_own_varint, write_varint
from polars_tadoc.runtime.addresses import (
    count_ones,
    equal_bytes,
    high_bits,
    load_u8,
    load_u16,
    load_u32,
    load_u64,
    prefetch_address,
    range_bits,
    store_u8,
    store_u32,
    store_u64,
    trailing_zeros,
)
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt16, UInt32, UInt64
from polars_tadoc.runtime.compiled import njit
from polars_tadoc.runtime.secret import first_secret

GAP, SINGLE, WORD, MARK = 0, 1, 2, 3
"""Character classes: SINGLE is a word of one character (plus the marks that follow); higher classes continue a word."""

SPACE_ID, EMPTY_ID = 0, 1
"""Initial gap ids of every table: one space, and empty."""

SEPARATOR = 0xFFFFFFFF
"""Separator after each row in the sequence for grammar construction."""

SEPARATOR_ID = 0
"""Its id while scanning: that of the empty string, which is never a word."""

SPACE = 0x20
"""The byte of most gaps."""

BLOCK = 64
"""Bytes classified per block."""

BATCH = 128
"""Words whose cache lines are prefetched before the first of them is looked up."""

MAX_PAIR_BYTES = 10
"""Maximum bytes of an encoded gap while scanning."""

SPANS = 512
"""Edges of words found before the words are put into a batch."""

EDGES = SPANS + 4 * BLOCK
"""Room for edges."""

BATCH_WORDS = BATCH + EDGES // 2
"""Room for words of a batch."""

WORD_FIELDS = 5
"""64-bit numbers per word of a batch."""

WORK_BYTES = BLOCK + 8 * WORD_FIELDS * BATCH_WORDS
"""Work space of a thread: a block at the end of a row, and a batch. It is an argument, because Numba frees a kernel's
own arrays after the last use of their name, while their addresses are still used."""

# by length: masks of the first and of the second eight bytes of a string of up to 16 bytes
LOW = np.array([(1 << 8 * min(n, 8)) - 1 for n in range(17)], np.uint64)
_HIGH = np.array([(1 << 8 * max(n - 8, 0)) - 1 for n in range(17)], np.uint64)


# Numba updates an array's reference count, atomically, at every call that takes it. Therefore the innermost functions
# take addresses, and no kernel rebinds a table. The arrays behind the addresses are arguments of the kernel, so they
# stay alive until its end.


class Classes(NamedTuple):
    """Where to cut: character classes as a two-stage table, and the ASCII word characters as four ranges."""

    page_of: UInt16
    pages: UInt8
    firsts: np.uint32
    widths: np.uint32


class Matches(NamedTuple):
    """Spans to cut at instead, if ``ends`` is not empty; ``ends[row]`` is the number of spans up to that row."""

    starts: UInt32
    lengths: UInt32
    ends: Int64


class Piece(NamedTuple):
    """Text from a byte of a row to before a byte of the same or a later row."""

    first_row: int
    first_byte: int
    last_row: int
    last_byte: int


class Table(NamedTuple):
    """Interned strings: open addressing, at most two thirds full.

    A string of up to 16 bytes is identified by its bytes (``low``, ``high``, zero-padded) and length; a longer one by a
    hash, its last 8 bytes, its length and an exact comparison at its address.
    """

    slots: UInt64
    """Four per slot: ``low``; ``high``; length << 32 | id + 1, or 0 if the slot is free; the tally.

    Looking up a known string of up to 16 bytes reads one cache line."""
    strings: UInt64
    """Two per id: address; length."""


@njit
def hash_of(low: int, high: int, length: int) -> Any:
    """Return the hash of a string; its highest bits are the place in a table of any size."""
    return keyed(low, high, length)


@njit
def shift_of(table: Table) -> Any:
    """Return by how much hashes are shifted to places of a table."""
    return nb.uint64(64 - trailing_zeros(nb.uint64(len(table.slots) // 4)))


@njit
def load_up_to_8(address: int, length: int) -> Any:
    """Load up to 8 bytes of a string, zero-padded, without reading beyond it."""
    p = nb.uint64(address)
    n = nb.uint64(length)
    if length >= 8:
        return load_u64(p)
    if length >= 4:
        rest = n - nb.uint64(4)
        return nb.uint64(load_u32(p)) | (nb.uint64(load_u32(p + rest)) << (nb.uint64(8) * rest))
    if length >= 2:
        rest = n - nb.uint64(2)
        return nb.uint64(load_u16(p)) | (nb.uint64(load_u16(p + rest)) << (nb.uint64(8) * rest))
    if length == 1:
        return nb.uint64(load_u8(p))
    return nb.uint64(0)


@njit
def key_of(address: int, length: int) -> Any:
    """Return ``low`` and ``high`` of a string without reading beyond it."""
    p = nb.uint64(address)
    if length <= 8:
        return load_up_to_8(p, length), nb.uint64(0)
    if length <= 16:
        return load_u64(p), load_up_to_8(p + nb.uint64(8), length - 8)
    last = nb.uint64(length) - nb.uint64(8)
    h = first_secret() ^ nb.uint64(length)
    i = nb.uint64(0)
    while i < last:
        h = keyed_more(h, load_u64(p + i))
        i += nb.uint64(8)
    high = load_u64(p + last)
    return keyed_more(h, high), high


@njit
def find_or_add(
    place: int,
    slots: int,
    shift: int,
    strings: int,
    distinct: int,
    low: int,
    high: int,
    length: int,
    address: int,
) -> Any:
    """Return the string's id, ``distinct`` for a new one, and its slot; takes the addresses of the table's arrays."""
    place, last = nb.uint64(place), ~nb.uint64(0) >> nb.uint64(shift)
    while True:
        slot = slots + place * nb.uint64(32)
        described = load_u64(slot + nb.uint64(16))
        if described == 0:
            break
        if (
            load_u64(slot) == low
            and load_u64(slot + nb.uint64(8)) == high
            and (described >> nb.uint64(32)) == nb.uint64(length)
        ):
            known = (described & nb.uint64(0xFFFFFFFF)) - nb.uint64(1)
            if length <= 16 or equal_bytes(load_u64(strings + known * nb.uint64(16)), address, length):
                return nb.int64(known), slot
        place = (place + nb.uint64(1)) & last
    own = nb.uint64(distinct)
    store_u64(slot, low)
    store_u64(slot + nb.uint64(8), high)
    store_u64(slot + nb.uint64(16), (nb.uint64(length) << nb.uint64(32)) | (own + nb.uint64(1)))
    store_u64(slot + nb.uint64(24), nb.uint64(0))
    fields = strings + own * nb.uint64(16)
    store_u64(fields, nb.uint64(address))
    store_u64(fields + nb.uint64(8), nb.uint64(length))
    return nb.int64(own), slot


@njit
def tally(slot: int, count: int) -> None:
    """Add to the tally of a slot."""
    at = nb.uint64(slot) + nb.uint64(24)
    store_u64(at, load_u64(at) + nb.uint64(count))


@njit
def intern_batch(
    batch: int, many: int, slots: int, shift: int, strings: int, distinct: int, ids: int, keeps: bool
) -> int:
    """Intern the words of a batch, whose slots were prefetched; return the table's new number of strings.

    Parameters
    ----------
    batch
        Address of ``WORD_FIELDS`` numbers per word: ``low``, ``high``, length, slot, address.
    many
        Number of words.
    slots, shift, strings, distinct
        Addresses of the table, which has room for all of them.
    ids, keeps
        Address for ids, uint32, and whether to write them.

    """
    at, to = nb.uint64(batch), nb.uint64(ids)
    for _ in range(many):
        low, high, length = load_u64(at), load_u64(at + nb.uint64(8)), load_u64(at + nb.uint64(16))
        slot = load_u64(at + nb.uint64(24))
        described = load_u64(slot + nb.uint64(16))
        differs = (load_u64(slot) ^ low) | (load_u64(slot + nb.uint64(8)) ^ high)
        differs |= (described >> nb.uint64(32)) ^ length
        if differs == 0 and described != 0 and length <= nb.uint64(16):  # 97 of 100 words: without a call
            own = nb.int64(described & nb.uint64(0xFFFFFFFF)) - 1
        else:
            place, address = (slot - nb.uint64(slots)) >> nb.uint64(5), load_u64(at + nb.uint64(32))
            own, slot = find_or_add(place, slots, shift, strings, distinct, low, high, nb.int64(length), address)
            distinct = max(distinct, own + 1)
        tally(slot, 1)
        if keeps:
            store_u32(to, nb.uint32(own))
            to += nb.uint64(4)
        at += nb.uint64(8 * WORD_FIELDS)
    return distinct


@njit
def add_to_batch(batch: int, many: int, word: int, length: int, room: int, slots: int, shift: int) -> None:
    """Put a word at an address, whose row has ``room`` bytes from there on, into a batch, and prefetch its slot."""
    if length <= 16 and room >= 16:
        low = load_u64(word) & LOW[nb.uint64(length)]
        high = load_u64(word + nb.uint64(8)) & _HIGH[nb.uint64(length)]
    else:
        low, high = key_of(word, length)
    slot = slots + nb.uint64(32) * (hash_of(low, high, length) >> nb.uint64(shift))
    prefetch_address(slot)
    at = nb.uint64(batch) + nb.uint64(8 * WORD_FIELDS) * nb.uint64(many)
    store_u64(at, low)
    store_u64(at + nb.uint64(8), high)
    store_u64(at + nb.uint64(16), nb.uint64(length))
    store_u64(at + nb.uint64(24), slot)
    store_u64(at + nb.uint64(32), nb.uint64(word))


@njit
def write_edges(edges: int, count: int, position: int, starts: int, ends: int) -> int:
    """Append the starts and ends of a block's words, alternating, to ``count`` edges; return the new number.

    Needs room for 136 more: bits are read in groups of eight, without a branch on their number.
    """
    to = nb.uint64(edges) + nb.uint64(8 * count)
    bits = starts | ends
    if starts & ends == 0:
        while bits != 0:
            for j in range(8):
                store_u64(to + nb.uint64(8 * j), nb.uint64(position + trailing_zeros(bits)))
                bits &= bits - nb.uint64(1)
            to += nb.uint64(64)
        return int(count + count_ones(starts) + count_ones(ends))
    while bits != 0:  # a word ends where the next one starts
        one = bits & (~bits + nb.uint64(1))
        at = nb.uint64(position + trailing_zeros(bits))
        for edge in (ends, starts):
            if edge & one:
                store_u64(to, at)
                to += nb.uint64(8)
                count += 1
        bits ^= one
    return count


@njit
def classify(address: int, left: int, page_of: int, pages: int) -> Any:
    """Return class and width in bytes of the character at an address; ``left`` bytes may be read."""
    p = nb.uint64(address)
    lead = nb.int64(load_u8(p))
    width = 1 if lead < 0x80 else (2 if lead < 0xE0 else (3 if lead < 0xF0 else 4))
    width = min(width, left)
    point = lead if lead < 0x80 else lead & (0xFF >> (width + 1))
    for i in range(1, width):
        point = (point << 6) | (nb.int64(load_u8(p + nb.uint64(i))) & 0x3F)
    point = min(point, 0x10FFFF)
    page = nb.uint64(load_u16(nb.uint64(page_of) + nb.uint64(2 * (point >> 8))))
    return nb.int64(load_u8(nb.uint64(pages) + (page << nb.uint64(8)) + nb.uint64(point & 0xFF))), width


@njit
def _lowest(count: int) -> Any:
    """Return a mask of the lowest ``count`` bits, 1 to 64."""
    return ~nb.uint64(0) >> nb.uint64(64 - count)


@njit
def _classify_wide(
    address: int, size: int, last: bool, words: int, wide: int, single_end: int, page_of: int, pages: int
) -> Any:
    """Classify the non-ASCII characters of a block.

    Returns a mask of the bytes of words; a mask of the bytes where a new word begins even after a byte of a word; the
    block's size in bytes (it ends before a character that crosses its end, unless it is the ``last``); and
    ``single_end`` for the next block: the end of a SINGLE character and its marks.
    """
    breaks = nb.uint64(single_end == 0)
    while wide != 0:
        at = trailing_zeros(wide)
        if not last and at + 4 > size:
            lead = load_u8(nb.uint64(address) + nb.uint64(at))
            if at + (2 if lead < 0xE0 else (3 if lead < 0xF0 else 4)) > size:
                size = at
                words &= _lowest(size)
                breaks &= _lowest(size)
                break
        kind, width = classify(nb.uint64(address) + nb.uint64(at), size - at, page_of, pages)
        own = _lowest(width) << nb.uint64(at)
        wide &= ~own
        if kind != GAP:
            words |= own
        if kind == SINGLE or (kind == MARK and at == single_end):
            here = nb.uint64(1) << nb.uint64(at)
            breaks = breaks | here if kind == SINGLE else breaks & ~here
            single_end = at + width
            if single_end < BLOCK:
                breaks |= nb.uint64(1) << nb.uint64(single_end)
    return words, breaks, size, single_end - size


@njit
def cut_block(
    address: int,
    left: int,
    in_word: int,
    single_end: int,
    firsts: int,
    widths: int,
    page_of: int,
    pages: int,
    tail: int,
) -> Any:
    """Return bit masks of the starts and ends of words in the next bytes of a row, at most 64.

    ``in_word`` is 1 if the previous byte belongs to a word. Returns the starts, the ends, the number of bytes, and
    ``in_word`` and ``single_end`` for the next block. An end at the end of the block is reported by the next one.
    """
    size = min(left, BLOCK)
    if size < BLOCK:  # never read beyond the row: its bytes may be the last of the buffer
        address = _copied(address, size, tail)
    inside = _lowest(size)
    words = range_bits(address, firsts, widths) & inside
    wide = high_bits(address) & inside
    breaks = nb.uint64(single_end == 0)
    if wide != 0:
        words, breaks, size, single_end = _classify_wide(
            address, size, left <= BLOCK, words, wide, single_end, page_of, pages
        )
    else:
        single_end = -1
    after = (words << nb.uint64(1)) | nb.uint64(in_word)
    starts = words & (~after | breaks)
    ends = after & (~words | breaks) & _lowest(size)
    return starts, ends, size, nb.int64(words >> nb.uint64(size - 1)) & 1, single_end


@njit
def _copied(address: int, size: int, tail: int) -> Any:
    p, to, n = nb.uint64(address), nb.uint64(tail), nb.uint64(size)
    i = nb.uint64(0)
    while i + nb.uint64(8) <= n:
        store_u64(to + i, load_u64(p + i))
        i += nb.uint64(8)
    while i < n:
        store_u8(to + i, load_u8(p + i))
        i += nb.uint64(1)
    return to


@njit
def tables_of(classes: Classes, tail: UInt8) -> Any:
    """Return the inputs of :func:`cut_block`: first bytes, widths, addresses of pages and of work space."""
    page_of, pages = nb.uint64(classes.page_of.ctypes.data), nb.uint64(classes.pages.ctypes.data)
    return classes.firsts, classes.widths, page_of, pages, nb.uint64(tail.ctypes.data)


@njit
def word_end_from(address: int, length: int, start: int, stop: int, classes: Classes, tail: UInt8) -> int:
    """Return the first position from ``start`` on at which a word has ended in any context; -1 if there is none.

    Splitting the text there does not change its words.
    """
    p, tables = nb.uint64(address), tables_of(classes, tail)
    at = start
    while at < stop and (load_u8(p + nb.uint64(at)) & 0xC0) == 0x80:
        at += 1
    in_word, single_end = 0, -1
    while at < stop:
        _, ends, size, in_word, single_end = cut_block(p + nb.uint64(at), length - at, in_word, single_end, *tables)
        if ends != 0:
            return int(at + trailing_zeros(ends))
        at += size
    return -1


@njit
def count_ids(addresses: UInt64, lengths: UInt32, piece: Piece, classes: Classes, matches: Matches, tail: UInt8) -> int:
    """Count a piece's words and the rows that end in it; arguments as for :func:`scan`."""
    count = piece.last_row - piece.first_row
    if len(matches.ends):
        last = nb.int64(matches.ends[piece.last_row - 1]) if piece.last_row > 0 else 0
        return count + last - (nb.int64(matches.ends[piece.first_row - 1]) if piece.first_row > 0 else 0)
    tables = tables_of(classes, tail)
    for row in range(piece.first_row, piece.last_row + 1):
        position = piece.first_byte if row == piece.first_row else 0
        stop = nb.int64(lengths[row]) if row < piece.last_row else piece.last_byte
        in_word, single_end = 0, -1
        while position < stop:
            starts, _, size, in_word, single_end = cut_block(
                addresses[row] + nb.uint64(position), stop - position, in_word, single_end, *tables
            )
            count += count_ones(starts)
            position += size
    return count


@njit
def first_match(matches: Matches, piece: Piece) -> int:
    """Return the number of the first match that a piece has; 0 if there are no matches."""
    if len(matches.ends) == 0:
        return 0
    match = nb.int64(matches.ends[piece.first_row - 1]) if piece.first_row > 0 else 0
    while piece.first_byte > 0 and match < matches.ends[piece.first_row]:
        if matches.starts[match] >= piece.first_byte:
            break
        match += 1
    return match


@njit
def addresses_of(table: Table) -> Any:
    """Return the addresses of a table's arrays."""
    return nb.uint64(table.slots.ctypes.data), nb.uint64(table.strings.ctypes.data)


@njit
def match_spans(gap_lengths: UInt32, match_counts: UInt32, match_lengths: UInt32, starts: UInt32, ends: Int64) -> int:
    """Compute the starts of matches in their rows from the lengths of all matches and of the gaps between them.

    A row of n matches has n + 1 gaps. Empty matches are dropped: ``starts`` and ``match_lengths`` are compacted in
    place, ``ends[row]`` becomes the number of matches kept so far. Returns the total.
    """
    gap = match = kept = 0
    for row in range(len(match_counts)):
        at = nb.uint32(0)
        for _ in range(match_counts[row]):
            at += gap_lengths[gap]
            gap += 1
            length = match_lengths[match]
            match += 1
            starts[kept] = at
            match_lengths[kept] = length
            kept += length > 0
            at += length
        gap += 1
        ends[row] = kept
    return kept


@njit
def renumber(sequence: UInt32, ids: UInt32) -> None:
    """Replace each id by ``ids[id]``."""
    for i in range(len(sequence)):
        sequence[i] = ids[sequence[i]]


@njit
def encode_gaps(pairs: UInt8, gap_ends: Int64, ids: UInt32, passed: int, data: UInt8) -> int:
    """Write the pairs of a piece to ``data`` with final ids; return their bytes.

    ``passed`` gaps of its first row were skipped before the piece. The ``gap_ends`` of the rows that end in the piece
    become offsets in ``data``, which has room for ``MAX_PAIR_BYTES`` per pair.
    """
    pairs_at, data_at = nb.uint64(pairs.ctypes.data), nb.uint64(data.ctypes.data)
    at = i = 0
    for row in range(len(gap_ends) + 1):
        stop = gap_ends[row] if row < len(gap_ends) else len(pairs)
        while i < stop:
            skipped, i = read_own_varint(pairs_at, i)
            gap, i = read_own_varint(pairs_at, i)
            at = write_varint(data_at, at, skipped + passed)
            at = write_varint(data_at, at, nb.int64(ids[gap]))
            passed = 0
        passed = 0
        if row < len(gap_ends):
            gap_ends[row] = at
    return at
