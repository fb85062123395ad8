"""Windows of documents that a reference has, and the longest matches with it."""

from __future__ import annotations

from typing import Any

import numpy as np

from polars_tadoc.kernels.host.passages.stretches import _mixed as _spread
from polars_tadoc.kernels.host.passages.windows import NONE, _mixed, _moved, _rolled, _whole
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import inner, kernel

UNKNOWN = np.uint32(0xFFFFFFFE)
"""A word that the reference lacks."""

MIXED = np.uint32(0xFFFFFFFE)
"""Different windows, or none, are beside the occurrences of a window."""

_ONE, _6, _32, _63 = np.uint64(1), np.uint64(6), np.uint64(32), np.uint64(63)
_LOW = np.uint64(0xFFFFFFFF)
_ODD, _FINAL = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)


@polled
@kernel
def fill_table(
    words: UInt32,
    starts: Int64,
    length: int,
    base: np.uint64,
    power: np.uint64,
    key: np.uint64,
    first: UInt32,
    slots: UInt64,
    bits: UInt64,
) -> None:
    """Write the distinct windows of a reference into a hash table.

    Parameters
    ----------
    words, starts
        uint32, and int64, documents + 1: the reference.
    length, base, power, key
        Words of a window, and ``windows.Fingerprints``.
    first
        uint32 by place: first occurrence of the window.
    slots
        uint64, a power of two, zeros, more than there are windows: high half of the fingerprint, then the place plus
        one.
    bits
        uint64, a power of two, zeros: a bit for each fingerprint.

    """
    last, last_bit = np.uint64(len(slots) - 1), np.uint64(64 * len(bits) - 1)
    began = interrupts()
    for d in range(len(starts) - 1):
        if interrupts() != began:
            return
        is_fresh, h = False, np.uint64(0)
        for i in range(starts[d], starts[d + 1] - length):
            if i & 0xFFF == 0 and interrupts() != began:
                return
            h = _rolled(h, words, i, length, base, power) if is_fresh else _whole(words, i, length, base)
            is_fresh = True
            if np.int64(first[i]) != i:
                continue
            fingerprint = _mixed(h, key)
            bit = fingerprint & last_bit
            bits[np.int64(bit >> _6)] |= _ONE << (bit & _63)
            slot = fingerprint & last
            while slots[np.int64(slot)] != np.uint64(0):
                slot = (slot + _ONE) & last
            slots[np.int64(slot)] = (fingerprint >> _32) << _32 | np.uint64(i + 1)


@inner
def _gram_bit(words: UInt32, at: int, factors: UInt64, last_bit: np.uint64) -> Any:
    """Return the bit of the gram at a place: the sum of its words times random odd numbers, mixed."""
    h = np.uint64(0)
    for k in range(len(factors)):
        h += np.uint64(words[at + k]) * factors[k]
    return _spread(h) & last_bit


@polled
@kernel
def mark_grams(words: UInt32, factors: UInt64, grams: UInt64) -> None:
    """Enter the grams of a reference in a filter.

    Parameters
    ----------
    words
        uint32: the reference; grams across its documents are entered, too.
    factors
        uint64 by word of a gram: random odd numbers.
    grams
        uint64, a power of two, zeros: a bit for each hash.

    """
    last_bit, began = np.uint64(64 * len(grams) - 1), interrupts()
    for i in range(len(words) - len(factors) + 1):
        if i & 0xFFFF == 0 and interrupts() != began:
            return
        bit = _gram_bit(words, i, factors, last_bit)
        grams[np.int64(bit >> _6)] |= _ONE << (bit & _63)


@polled
@kernel
def find_windows(
    words: UInt32,
    starts: Int64,
    length: int,
    base: np.uint64,
    power: np.uint64,
    key: np.uint64,
    factors: UInt64,
    grams: UInt64,
    slots: UInt64,
    bits: UInt64,
    reference: UInt32,
    first: UInt32,
    found: UInt32,
) -> None:
    """Find each window of documents in a reference.

    A word that the reference lacks tells of all windows with it that the reference lacks them, and so does a gram.

    Parameters
    ----------
    words, starts
        uint32, and int64, documents + 1: the documents, with the numbers that their words have in the reference.
    length, base, power, key, slots, bits
        As for :func:`fill_table`.
    factors, grams
        As for :func:`mark_grams`; without ``grams`` every window is looked up.
    reference, first
        uint32 by place of the reference: its words, and the first occurrences of its windows.
    found
        uint32 by place of the documents: the first place of the window in the reference, or ``NONE``.

    """
    last, last_bit = np.uint64(len(slots) - 1), np.uint64(64 * len(bits) - 1)
    last_gram_bit = np.uint64(64 * len(grams) - 1)
    began = interrupts()
    for d in range(len(starts) - 1):
        if interrupts() != began:
            return
        begin, end = starts[d], starts[d + 1] - length
        for i in range(begin, starts[d + 1]):
            found[i] = NONE
        h = np.uint64(0)
        of: Any = -1
        at: Any = begin
        while at < end:
            if interrupts() != began:
                return
            unknown = at + length - 1
            while unknown >= at and words[unknown] != UNKNOWN:
                unknown -= 1
            if unknown >= at:
                at = unknown + 1  # no window with this word
                continue
            checked = at + length - len(factors)  # the last window that has the last gram of this one
            if len(grams) > 0:
                bit = _gram_bit(words, checked, factors, last_gram_bit)
                if grams[np.int64(bit >> _6)] >> (bit & _63) & _ONE == np.uint64(0):
                    at = checked + 1
                    continue
            place: Any = -1
            while at < end:
                if at & 0xFFF == 0 and interrupts() != began:
                    return
                word = words[at + length - 1]
                if word == UNKNOWN:
                    at += length
                    break
                if place >= 0 and reference[place + length] == word:
                    place = np.int64(first[place + 1])
                    found[at] = np.uint32(place)
                    at += 1
                    continue
                if at > checked:
                    break
                place = -1
                h, of = _moved(h, of, words, at, length, base, power), at
                fingerprint = _mixed(h, key)
                bit = fingerprint & last_bit
                if bits[np.int64(bit >> _6)] >> (bit & _63) & _ONE != np.uint64(0):
                    slot = fingerprint & last
                    while True:
                        kept = slots[np.int64(slot)]
                        if kept == np.uint64(0):
                            break
                        other = np.int64(kept & _LOW) - 1
                        if kept >> _32 == fingerprint >> _32 and _equal_in(reference, other, words, at, length):
                            place = other
                            break
                        slot = (slot + _ONE) & last
                if place >= 0:
                    found[at] = np.uint32(place)
                at += 1


@inner
def _equal_in(reference: UInt32, one: int, words: UInt32, other: int, length: int) -> bool:
    for k in range(length):  # noqa: SIM110 - numba
        if reference[one + k] != words[other + k]:
            return False
    return True


@polled
@kernel
def find_neighbours(first: UInt32, later: UInt32, latest: UInt32, after: UInt32, before: UInt32) -> None:
    """Describe the neighbours of the occurrences of each window of a reference.

    Parameters
    ----------
    first
        uint32 by place: first occurrence of the window.
    later
        uint32 by place: the next occurrence, or ``NONE``.
    latest
        uint32 by place: scratch.
    after, before
        uint32 by first occurrence: the first occurrence of the window that begins one word later or earlier at all
        occurrences, ``NONE`` if there is none at any, or ``MIXED``.

    """
    size, began = len(first), interrupts()
    for i in range(size):
        if i & 0xFFFF == 0 and interrupts() != began:
            return
        later[i] = NONE
        root = first[i]
        if root == NONE:
            continue
        to = first[i + 1] if i + 1 < size else NONE
        of = first[i - 1] if i > 0 else NONE
        at = np.int64(root)
        if at == i:
            after[i], before[i] = to, of
        else:
            later[np.int64(latest[at])] = np.uint32(i)
            if after[at] != to:
                after[at] = MIXED
            if before[at] != of:
                before[at] = MIXED
        latest[at] = np.uint32(i)


@inner
def _list_occurrences(root: int, shift: int, later: UInt32, listed: Int64) -> int:
    """List the occurrences of a window, each minus a shift; return their number."""
    count, place = 0, np.uint32(root)
    while place != NONE:
        listed[count] = np.int64(place) - shift
        count += 1
        place = later[np.int64(place)]
    return count


@inner
def _keep_beside(first: UInt32, wanted: np.uint32, distance: int, listed: Int64, count: int) -> int:
    """Keep the places of a list that are at a distance before those of a window; return their number.

    If there is none, the list stays as it is, and the number is 0.
    """
    kept = 0
    for k in range(count):
        place = listed[k] + distance
        kept += 0 <= place < len(first) and first[place] == wanted
    if kept == 0 or kept == count:
        return kept
    kept = 0
    for k in range(count):
        place = listed[k] + distance
        if 0 <= place < len(first) and first[place] == wanted:
            listed[kept] = listed[k]
            kept += 1
    return kept


@inner
def _list_run(
    found: UInt32,
    first: UInt32,
    later: UInt32,
    length: int,
    t: int,
    start: int,
    stop: int,
    rare: int,
    listed: Int64,
) -> Any:
    """List the places of window ``t`` where the reference has the windows ``start`` to ``stop`` and ``rare``."""
    count = _list_occurrences(np.int64(found[rare]), rare - t, later, listed)
    k: Any = start
    while count > 0:
        count = _keep_beside(first, found[k], k - t, listed, count)
        if k == stop:
            break
        k = min(k + length, stop)
    return count


@inner
def _go_on(
    found: UInt32,
    first: UInt32,
    later: UInt32,
    amounts: UInt32,
    length: int,
    t: int,
    start: int,
    stop: int,
    rare: int,
    to: int,
    place: int,
    count: Any,
    listed: Int64,
    known: Int64,
) -> Any:
    """Return the first place of window ``t`` where a match also has the window ``to`` beside it, or -1; and the places.

    ``place`` is the first without it, ``rare`` the match's rarest window. A match is known by its first place and its
    length: the answer for it and a window is kept.
    """
    q, size = place - (t - start), 2 * (stop - start) + np.int64(to > stop)
    wanted = np.int64(found[to])
    mixed = _mixed(np.uint64(q) * _ODD + np.uint64(size) * _FINAL + np.uint64(wanted), _FINAL)
    slot = np.int64(mixed & np.uint64(len(known) - 1))
    if known[slot, 0] == q and known[slot, 1] == size and known[slot, 2] == wanted:
        made = known[slot, 3]
        if made < 0:
            return np.int64(-1), count
        return made + (t - start), np.int64(-1)
    have: Any = count if count >= 0 else np.int64(amounts[np.int64(found[rare])])
    if np.int64(amounts[wanted]) < have:
        count = _list_run(found, first, later, length, t, start, stop, to, listed)
        kept: Any = count
        count = kept if kept > 0 else np.int64(-1)
    else:
        if count < 0:
            count = _list_run(found, first, later, length, t, start, stop, rare, listed)
        kept = _keep_beside(first, found[to], to - t, listed, count)
        count = kept if kept > 0 else count
    made = listed[0] if kept > 0 else np.int64(-1)  # ascending
    known[slot, 0], known[slot, 1], known[slot, 2] = q, size, wanted
    known[slot, 3] = made - (t - start) if kept > 0 else np.int64(-1)
    return made, count


@polled
@kernel
def find_matches(
    starts: Int64,
    first_document: int,
    stop_document: int,
    length: int,
    found: UInt32,
    first: UInt32,
    later: UInt32,
    after: UInt32,
    before: UInt32,
    amounts: UInt32,
    listed: Int64,
    known: Int64,
    rows: Int64,
    begins: Int64,
    ends: Int64,
    places: Int64,
) -> int:
    """Find the matches of documents with a reference that no longer match contains, in row order.

    Parameters
    ----------
    starts, first_document, stop_document, length
        The documents, those to search, and the words of a window.
    found
        uint32 by place of the documents: result of :func:`find_windows`.
    first, later, after, before
        Of the reference: see :func:`find_neighbours`.
    amounts
        uint32 by place of the reference: at first occurrences, number of occurrences.
    listed
        int64: scratch for the occurrences of a window.
    known
        int64, a power of two by 4, at first -1: answers kept for matches and the windows beside them.
    rows, begins, ends, places
        int64 by match: document, place of the first word, of the one after the last, and first place in the reference.
        Empty: matches are only counted.

    Returns
    -------
    int
        Number of matches.

    """
    number, began = 0, interrupts()
    for d in range(first_document, stop_document):
        if interrupts() != began:
            return number
        begin, end = starts[d], starts[d + 1] - length
        t: Any = begin
        while t < end:
            if interrupts() != began:
                return number
            if found[t] == NONE:
                t += 1
                continue
            # of the matches with window t, one of those with the smallest start; earlier matches lack window t
            start: Any = t
            stop: Any = t
            rare: Any = t
            place: Any = np.int64(found[t])  # the first of window t in the match
            count: Any = np.int64(-1)  # listed places of window t in the match; -1: they are not listed
            for step in (-1, 1):
                while True:
                    own: Any = start if step < 0 else stop
                    to = own + step
                    if to < begin or to >= end or found[to] == NONE:
                        break
                    beside = before[np.int64(found[own])] if step < 0 else after[np.int64(found[own])]
                    if beside == MIXED:
                        made, count = _go_on(
                            found, first, later, amounts, length, t, start, stop, rare, to, place, count, listed, known
                        )
                        if made < 0:
                            break
                        place = made
                    elif beside != found[to]:
                        break
                    if amounts[np.int64(found[to])] < amounts[np.int64(found[rare])]:
                        rare = to
                    start, stop = min(start, to), max(stop, to)
            if number < len(rows):
                rows[number], begins[number], ends[number] = d, start, stop + length
                places[number] = place - (t - start)
            number += 1
            t = stop + 1
    return number
