"""Cuts rows into words and gaps and interns both, one pass over the bytes."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from polars_tadoc.kernels.cpu.memory import equal_bytes, load_u8, load_u16, load_u32, load_u64, prefetch

GAP, SINGLE, WORD, MARK = 0, 1, 2, 3
"""Character classes: SINGLE is a word of one character (with the marks that follow it); those above it go on a word."""

SPACE_ID, EMPTY_ID = 0, 1
"""Gap ids that every table starts with: one space, and nothing."""

SEPARATOR = 0xFFFFFFFF
"""Stands after each row in the sequence that grammar construction works on."""

DONE, TABLE_FULL = 0, 1
ROW, POSITION, WORDS, GAPS, DISTINCT_WORDS, DISTINCT_GAPS, MATCH = range(7)
"""Places in the state vector that lets a scan stop for larger tables and go on."""

FIELDS = 4
KEY, ADDRESS, LENGTH, TALLY = range(FIELDS)
"""An interned string's entry, 32 bytes: its key (see :func:`_key`), where it stands, bytes, occurrences."""

BATCH = 64
"""Words whose cache lines are asked for before the first of them is looked up."""

_K1, _K2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


@nb.njit(nogil=True, cache=True, inline="always")
def _key(address: int, length: int) -> Any:
    """Up to 8 bytes: the bytes themselves (overlapping loads, injective for one length); more: a 64-bit hash."""
    p = nb.uint64(address)
    n = nb.uint64(length)
    if length > 8:
        last = n - nb.uint64(8)
        h = n * _K1
        i = nb.uint64(0)
        while i < last:
            h = (h ^ load_u64(p + i)) * _K2
            h ^= h >> nb.uint64(32)
            i += nb.uint64(8)
        h = (h ^ load_u64(p + last)) * _K2
        return h ^ (h >> nb.uint64(32))
    if length >= 4:
        return nb.uint64(load_u32(p)) | (nb.uint64(load_u32(p + n - nb.uint64(4))) << nb.uint64(32))
    if length >= 2:
        return nb.uint64(load_u16(p)) | (nb.uint64(load_u16(p + n - nb.uint64(2))) << nb.uint64(16))
    if length == 1:
        return nb.uint64(load_u8(p))
    return nb.uint64(0)


@nb.njit(nogil=True, cache=True, inline="always")
def _slot(key: int, length: int, mask: int) -> Any:
    h = (nb.uint64(key) + nb.uint64(length) * _K1) * _K2
    return nb.int64((h ^ (h >> nb.uint64(29))) & nb.uint64(mask))


@nb.njit(nogil=True, cache=True, inline="always")
def _intern(address: int, length: int, key: int, slots: Any, entries: Any, distinct: int) -> Any:
    """Return the string's id; ``distinct`` means that it is new and its entry has been written."""
    mask = len(slots) - 1
    s = _slot(key, length, mask)
    while True:
        known = nb.int64(slots[s]) - 1
        if known < 0:
            slots[s] = distinct + 1
            at = FIELDS * distinct
            entries[at + KEY] = key
            entries[at + ADDRESS] = address
            entries[at + LENGTH] = length
            entries[at + TALLY] = 0
            return distinct
        at = FIELDS * known
        if (
            entries[at + KEY] == key
            and entries[at + LENGTH] == nb.uint64(length)
            and (length <= 8 or equal_bytes(entries[at + ADDRESS], address, length))
        ):
            return known
        s = (s + 1) & mask


@nb.njit(nogil=True, cache=True, inline="always")
def _classify(address: int, left: int, page_of: Any, pages: Any) -> Any:
    """Class and width in bytes of the character at an address; ``left`` bytes may be read."""
    p = nb.uint64(address)
    lead = nb.int64(load_u8(p))
    if lead < 0x80:
        return nb.int64(pages[lead]), 1
    width = 2 if lead < 0xE0 else (3 if lead < 0xF0 else 4)
    width = min(width, left)
    point = lead & (0xFF >> (width + 1))
    for i in range(1, width):
        point = (point << 6) | (nb.int64(load_u8(p + nb.uint64(i))) & 0x3F)
    point = min(point, 0x10FFFF)
    return nb.int64(pages[(nb.int64(page_of[point >> 8]) << 8) + (point & 0xFF)]), width


@nb.njit(nogil=True, cache=True)
def scan(
    row_addresses: npt.NDArray[np.uint64],
    row_lengths: npt.NDArray[np.uint32],
    stop_row: int,
    page_of: npt.NDArray[np.uint16],
    pages: npt.NDArray[np.uint8],
    match_starts: npt.NDArray[np.uint32],
    match_lengths: npt.NDArray[np.uint32],
    match_ends: npt.NDArray[np.int64],
    state: npt.NDArray[np.int64],
    words: npt.NDArray[np.uint32],
    gaps: npt.NDArray[np.uint32],
    row_ends: npt.NDArray[np.int64],
    word_slots: npt.NDArray[np.int32],
    word_entries: npt.NDArray[np.uint64],
    gap_slots: npt.NDArray[np.int32],
    gap_entries: npt.NDArray[np.uint64],
) -> int:
    """Cut rows ``state[ROW]`` to ``stop_row`` into word ids and gap ids.

    A row of n words has n + 1 gaps. ``row_ends[row]`` becomes the words written so far. Where
    ``match_ends`` is empty the character classes cut; otherwise the words are the given matches, which
    start so many bytes into their row. The tallies of gaps leave out those that decompression assumes anyway (one
    space inside a row, nothing at its ends).
    """
    row, position = state[ROW], state[POSITION]
    written, gaps_written = state[WORDS], state[GAPS]
    distinct_words, distinct_gaps, match = state[DISTINCT_WORDS], state[DISTINCT_GAPS], state[MATCH]
    by_class = len(match_ends) == 0
    word_mask = len(word_slots) - 1
    addresses = np.empty(BATCH, np.uint64)
    lengths = np.empty(BATCH, np.int64)
    keys = np.empty(BATCH, np.uint64)
    code = DONE
    while row < stop_row and code == DONE:
        if 2 * (distinct_words + BATCH) >= len(word_slots):
            code = TABLE_FULL
            break
        many = 0
        while many < BATCH and row < stop_row:
            if 2 * (distinct_gaps + 1) >= len(gap_slots):
                code = TABLE_FULL
                break
            base = row_addresses[row]
            length = nb.int64(row_lengths[row])
            start = position
            end = length
            if by_class:
                kind, width = GAP, 0
                while start < length:
                    kind, width = _classify(base + nb.uint64(start), length - start, page_of, pages)
                    if kind != GAP:
                        break
                    start += width
                end = start + width
                if kind == SINGLE:
                    while end < length:
                        following, width = _classify(base + nb.uint64(end), length - end, page_of, pages)
                        if following != MARK:
                            break
                        end += width
                elif kind != GAP:
                    while end < length:
                        following, width = _classify(base + nb.uint64(end), length - end, page_of, pages)
                        if following <= SINGLE:
                            break
                        end += width
            elif match < match_ends[row]:
                start = nb.int64(match_starts[match])
                end = start + nb.int64(match_lengths[match])
                match += 1
            else:
                start = length
            gap = start - position
            at_end = start >= length
            if gap == 1 and load_u8(base + nb.uint64(position)) == 32:
                g = SPACE_ID
            elif gap == 0:
                g = EMPTY_ID
            else:
                where = base + nb.uint64(position)
                g = _intern(where, gap, _key(where, gap), gap_slots, gap_entries, distinct_gaps)
                distinct_gaps = max(distinct_gaps, g + 1)
            if g != (EMPTY_ID if position == 0 or at_end else SPACE_ID):
                gap_entries[FIELDS * g + TALLY] += nb.uint64(1)
            gaps[gaps_written] = g
            gaps_written += 1
            if at_end:
                row_ends[row] = written + many
                row += 1
                position = 0
            else:
                where = base + nb.uint64(start)
                key = _key(where, end - start)
                prefetch(word_slots, _slot(key, end - start, word_mask))
                addresses[many], lengths[many], keys[many] = where, end - start, key
                many += 1
                position = end
        for k in range(many):
            prefetch(word_entries, FIELDS * (nb.int64(word_slots[_slot(keys[k], lengths[k], word_mask)]) - 1))
        for k in range(many):
            w = _intern(addresses[k], lengths[k], keys[k], word_slots, word_entries, distinct_words)
            distinct_words = max(distinct_words, w + 1)
            word_entries[FIELDS * w + TALLY] += nb.uint64(1)
            words[written + k] = w
        written += many
    state[ROW], state[POSITION] = row, position
    state[WORDS], state[GAPS] = written, gaps_written
    state[DISTINCT_WORDS], state[DISTINCT_GAPS], state[MATCH] = distinct_words, distinct_gaps, match
    return code


@nb.njit(nogil=True, cache=True)
def match_spans(
    gap_lengths: npt.NDArray[np.uint32],
    match_counts: npt.NDArray[np.uint32],
    match_lengths: npt.NDArray[np.uint32],
    starts: npt.NDArray[np.uint32],
    ends: npt.NDArray[np.int64],
) -> int:
    """Find where matches start in their rows, from the lengths of all matches and of what stands between them.

    A row of n matches has n + 1 gaps. Empty matches are dropped: ``starts`` and ``match_lengths`` are
    compacted in place, ``ends[row]`` becomes the matches kept so far. Returns how many are kept.
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


@nb.njit(nogil=True, cache=True)
def rehash(slots: npt.NDArray[np.int32], entries: npt.NDArray[np.uint64], distinct: int) -> None:
    """Fill an empty, larger slot array from the entries."""
    mask = len(slots) - 1
    for entry in range(distinct):
        s = _slot(entries[FIELDS * entry + KEY], nb.int64(entries[FIELDS * entry + LENGTH]), mask)
        while slots[s] != 0:
            s = (s + 1) & mask
        slots[s] = entry + 1


@nb.njit(nogil=True, cache=True)
def merge_table(
    slots: npt.NDArray[np.int32],
    entries: npt.NDArray[np.uint64],
    distinct: int,
    others: npt.NDArray[np.uint64],
    other_distinct: int,
    ids: npt.NDArray[np.uint32],
) -> int:
    """Intern another table's strings into a table with room for all; ``ids`` maps the other's ids to this one's."""
    for entry in range(other_distinct):
        at = FIELDS * entry
        length = nb.int64(others[at + LENGTH])
        g = _intern(others[at + ADDRESS], length, others[at + KEY], slots, entries, distinct)
        distinct = max(distinct, g + 1)
        entries[FIELDS * g + TALLY] += others[at + TALLY]
        ids[entry] = g
    return distinct


@nb.njit(nogil=True, cache=True)
def copy_strings(addresses: Any, offsets: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> None:
    """Copy each string from its address to ``data[offsets[i]:offsets[i + 1]]``."""
    for i in range(len(offsets) - 1):
        base = addresses[i]
        first = offsets[i]
        for j in range(offsets[i + 1] - first):
            data[first + j] = load_u8(base + nb.uint64(j))


@nb.njit(nogil=True, cache=True)
def renumber_rows(
    words: npt.NDArray[np.uint32],
    row_ends: npt.NDArray[np.int64],
    ids: npt.NDArray[np.uint32],
    sequence: npt.NDArray[np.uint32],
) -> None:
    """Write each row's words under their final ids, a separator after each row."""
    out = 0
    i = 0
    for row in range(len(row_ends)):
        while i < row_ends[row]:
            sequence[out] = ids[words[i]]
            out += 1
            i += 1
        sequence[out] = SEPARATOR
        out += 1


@nb.njit(nogil=True, cache=True, inline="always")
def _varint_size(value: int) -> int:
    size = 1
    while value >= 0x80:
        value >>= 7
        size += 1
    return size


@nb.njit(nogil=True, cache=True, inline="always")
def _write_varint(data: Any, at: int, value: int) -> int:
    while value >= 0x80:
        data[at] = (value & 0x7F) | 0x80
        value >>= 7
        at += 1
    data[at] = value
    return at + 1


@nb.njit(nogil=True, cache=True)
def encode_gaps(
    gaps: npt.NDArray[np.uint32],
    row_ends: npt.NDArray[np.int64],
    ids: npt.NDArray[np.uint32],
    writing: bool,
    sizes: npt.NDArray[np.int64],
    data: npt.NDArray[np.uint8],
) -> None:
    """Encode each row's gaps that are not the assumed ones as varint pairs: gaps passed over, gap id.

    Either ``sizes`` (bytes by row) is filled, or, ``writing``, the bytes are.
    """
    at = 0
    g = 0
    before = 0
    for row in range(len(row_ends)):
        count = row_ends[row] - before
        before = row_ends[row]
        skipped = 0
        size = 0
        for i in range(count + 1):
            gap = gaps[g]
            g += 1
            if gap == (EMPTY_ID if i == 0 or i == count else SPACE_ID):
                skipped += 1
            elif writing:
                at = _write_varint(data, at, skipped)
                at = _write_varint(data, at, nb.int64(ids[gap]))
                skipped = 0
            else:
                size += _varint_size(skipped) + _varint_size(nb.int64(ids[gap]))
                skipped = 0
        if not writing:
            sizes[row] = size
