"""First occurrence and count of every window of exactly n words, by fingerprints that are verified.

A window's fingerprint is a polynomial of its words modulo 2^61 - 1 at a secret base, rolled from window to window (R.
M. Karp and M. O. Rabin, *Efficient randomized pattern-matching algorithms*, 1987), then mixed with a secret odd number.
So no text can be made whose windows collide: two different windows of ``n`` words do so for fewer than ``n`` bases.
(Modulo 2^64, some windows collide for every base: J. Pachocki and J. Radoszewski, *Where to use and how not to use
polynomial string hashing*, 2013.) The words are read several times:

1. ``link``: each thread links windows to earlier equal ones of its documents. Windows whose fingerprint is divisible by
   ``ANCHORS`` are kept in a small table; where one is found again, the match is followed word by word, in both
   directions, without any look-up. Copies of documents take this path.
2. ``stretches.find_stretches``: windows without a link are their own first occurrences if their least gram occurs once.
3. ``scatter``: fingerprints and places of the other windows go to buckets by hash range, small enough for a cache.
4. ``group``: a table for each bucket gives the first place and the count of each fingerprint.
5. ``resolve``: links are followed to first places, and each window is compared with the words there, in row order, so
   that a window that continues a match costs one comparison. So does one that is equal to the window a period earlier;
   periods are found as by R. P. Brent (*An improved Monte Carlo factorization algorithm*, 1980), among the windows that
   were compared as a whole.
"""

from __future__ import annotations

import secrets
from typing import Any, NamedTuple

import numpy as np

from polars_tadoc.kernels.host.rows.mersenne import PRIME, reduced, shifted, times, times_plus
from polars_tadoc.runtime.array_types import Int64, UInt8, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts, polled
from polars_tadoc.runtime.jit import inner, kernel

NONE = np.uint32(0xFFFFFFFF)
"""No window begins here."""

STAGED = 8
"""Windows that are written into a bucket at once."""

ANCHORS = 16
"""A window of this number is an anchor, on average."""

_ONE = np.uint64(1)
_3, _29, _32 = np.uint64(3), np.uint64(29), np.uint64(32)
_LONG = 12
_ANCHOR = np.uint64(ANCHORS - 1)
_NO_FLAG = np.uint64(0xFFFFFFFFFFFFFFFE)
_LOW = np.uint64(0xFFFFFFFF)
_TWICE_PRIME = np.uint64(2 * PRIME)


class Fingerprints(NamedTuple):
    """The hash function for windows of a length; the same for all windows that are compared."""

    base: np.uint64
    """The polynomial's base, as :func:`polars_tadoc.kernels.host.rows.mersenne.shifted` gives it."""
    power: np.uint64
    """The base to the power of the windows' length."""
    key: np.uint64
    """An odd number."""


def fingerprints_of(seed: int, length: int) -> Fingerprints:
    """Derive what windows of a length are hashed with from 128 bits, which must be secret or random."""
    base = 2 + (seed >> 64) % (PRIME - 2)
    return Fingerprints(*map(np.uint64, (8 * base, pow(base, length, PRIME), seed & 0xFFFFFFFFFFFFFFFF | 1)))


def draw_fingerprints(length: int) -> Fingerprints:
    """Draw what windows of a length are hashed with."""
    return fingerprints_of(secrets.randbits(128), length)


@inner
def _whole(words: UInt32, at: int, length: int, base: np.uint64) -> Any:
    """Return a window's polynomial; as all below, congruent to the exact one, and below 2^61 + 8.

    Long ones are four polynomials, each of every fourth word, whose products do not wait for one another.
    """
    h = np.uint64(0)
    i, end = at, at + length
    if length >= _LONG:
        square = times(base >> _3, base >> _3)
        far = np.uint64(shifted(times(square, square)))
        a, b, c = np.uint64(0), np.uint64(0), np.uint64(0)
        while i + 4 <= end:
            a = times_plus(a, far, np.uint64(words[i]))
            b = times_plus(b, far, np.uint64(words[i + 1]))
            c = times_plus(c, far, np.uint64(words[i + 2]))
            h = times_plus(h, far, np.uint64(words[i + 3]))
            i += 4
        h = times_plus(times_plus(times_plus(a, base, b), base, c), base, h)
    while i < end:
        h = times_plus(h, base, np.uint64(words[i]))
        i += 1
    return h


@inner
def _rolled(h: np.uint64, words: UInt32, at: int, length: int, base: np.uint64, power: np.uint64) -> Any:
    """Return a window's polynomial from that of the window before it."""
    change = np.uint64(words[at + length - 1]) + (_TWICE_PRIME - times(np.uint64(words[at - 1]), power))
    return times_plus(h, base, change)


@inner
def _moved(h: np.uint64, of: int, words: UInt32, at: int, length: int, base: np.uint64, power: np.uint64) -> Any:
    """Return a window's polynomial from that of an earlier one of its document, or of none (-1)."""
    if of < 0 or at - of >= length:
        return _whole(words, at, length, base)
    for i in range(of + 1, at + 1):
        h = _rolled(h, words, i, length, base, power)
    return h


@inner
def _mixed(h: np.uint64, key: np.uint64) -> np.uint64:
    """Mix a value below 2^62 into a fingerprint: any of its bits may choose a slot."""
    reduced_h = np.uint64(reduced(h))
    x = (reduced_h ^ (reduced_h >> _32)) * key
    return x ^ (x >> _29)


@inner
def _equal(words: UInt32, one: int, other: int, length: int) -> bool:
    for k in range(length):  # noqa: SIM110 - numba
        if words[one + k] != words[other + k]:
            return False
    return True


@inner
def _set_link(first: UInt32, counts: UInt32, at: int, source: int) -> None:
    """Link a window to an equal one before it, or to that one's own link."""
    root = first[source]
    if root == NONE:
        root = np.uint32(source)
    first[at] = root
    counts[root] += np.uint32(1)


@polled
@kernel
def link(
    words: UInt32,
    starts: Int64,
    first_document: int,
    stop_document: int,
    length: int,
    base: np.uint64,
    power: np.uint64,
    key: np.uint64,
    mask: np.uint64,
    anchors: UInt64,
    first: UInt32,
    counts: UInt32,
) -> None:
    """Link windows to earlier equal ones of the same documents.

    Parameters
    ----------
    words, starts
        uint32, and int64, documents + 1: the documents, a separator after each.
    first_document, stop_document
        The documents of this thread.
    length, base, power, key
        Words of a window, and :class:`Fingerprints`.
    mask
        Bits of fingerprints that are used.
    anchors
        uint64, a power of two: scratch, zeros.
    first
        uint32 by place: ``NONE``, or the place of the window that this one is linked to, which has no link.
    counts
        uint32 by place: windows linked to this one.

    """
    begin_of_all = starts[first_document]
    slots = np.uint64(len(anchors) - 1)
    began = interrupts()
    for d in range(first_document, stop_document):
        if interrupts() != began:
            return
        begin, end = starts[d], starts[d + 1] - length
        if end <= begin:
            continue
        h = _whole(words, begin, length, base)
        source = np.int64(-1)
        twin, twin_place, number, most = begin, np.int64(-1), 0, 1
        for i in range(begin, end):
            if i & 0xFFF == 0 and interrupts() != began:
                return
            if i > begin:
                h = _rolled(h, words, i, length, base, power)
                if source >= 0:
                    source += 1
                    if words[source + length - 1] == words[i + length - 1]:
                        _set_link(first, counts, i, source)
                        continue
                    source = np.int64(-1)
            fingerprint = _mixed(h, key) & mask
            if fingerprint & _ANCHOR == np.uint64(0):
                slot = np.int64((fingerprint >> np.uint64(4)) & slots)
                kept = anchors[slot]
                place = np.int64(kept & _LOW)
                if kept >> _32 == fingerprint >> _32 and begin_of_all <= place < i and _equal(words, place, i, length):
                    source = (
                        np.int64(twin) if place == twin_place else place
                    )  # in periodic words, this document goes on for longer
                    number += 1
                    if number >= most:
                        twin, twin_place, number, most = i, place, 0, 2 * most
                    _set_link(first, counts, i, place)
                    k = 1
                    while i - k >= begin and i - k > place and first[i - k] == NONE and place - k >= begin_of_all:
                        if words[i - k] != words[place - k]:
                            break
                        _set_link(first, counts, i - k, place - k)
                        k += 1
                    continue
                anchors[slot] = (fingerprint >> _32) << _32 | np.uint64(i)


@polled
@kernel
def count_buckets(
    words: UInt32,
    starts: Int64,
    first_document: int,
    stop_document: int,
    length: int,
    base: np.uint64,
    power: np.uint64,
    key: np.uint64,
    mask: np.uint64,
    shift: np.uint64,
    first: UInt32,
    sizes: Int64,
) -> None:
    """Count the windows without a link by bucket, int64; parameters as for :func:`scatter`."""
    began = interrupts()
    for d in range(first_document, stop_document):
        if interrupts() != began:
            return
        h = np.uint64(0)
        of: Any = -1
        for i in range(starts[d], starts[d + 1] - length):
            if i & 0xFFF == 0 and interrupts() != began:
                return
            if first[i] == NONE:
                h, of = _moved(h, of, words, i, length, base, power), i
                sizes[np.int64((_mixed(h, key) & mask) >> shift)] += 1


@polled
@kernel
def scatter(
    words: UInt32,
    starts: Int64,
    first_document: int,
    stop_document: int,
    length: int,
    base: np.uint64,
    power: np.uint64,
    key: np.uint64,
    mask: np.uint64,
    shift: np.uint64,
    first_bucket: int,
    first: UInt32,
    counts: UInt32,
    cursors: Int64,
    staged: UInt8,
    staged_fingerprints: UInt64,
    staged_places: UInt32,
    fingerprints: UInt64,
    places: UInt32,
) -> None:
    """Write fingerprint and place of each window without a link into its bucket.

    Windows are gathered by bucket, :data:`STAGED` at a time: the buckets are more than a processor keeps pages of.

    Parameters
    ----------
    shift
        A fingerprint shifted right by this number of bits is its bucket.
    first_bucket
        Bucket of ``cursors[0]``; windows of buckets outside of ``cursors`` are left out.
    cursors
        int64 by bucket: where this thread writes next.
    counts
        uint32 by place: windows linked to this one.
    staged, staged_fingerprints, staged_places
        uint8 by bucket, zeros; uint64 and uint32, :data:`STAGED` by bucket: scratch.
    fingerprints, places
        uint64 and uint32: the buckets. The lowest bit of a fingerprint tells whether windows are linked to it.

    """
    began = interrupts()
    for d in range(first_document, stop_document):
        if interrupts() != began:
            return
        begin, end = starts[d], starts[d + 1] - length
        h = np.uint64(0)
        of: Any = -1
        for i in range(begin, end):
            if i & 0xFFF == 0 and interrupts() != began:
                return
            if first[i] != NONE:
                continue
            h, of = _moved(h, of, words, i, length, base, power), i
            fingerprint = _mixed(h, key) & mask
            bucket = np.int64(fingerprint >> shift) - first_bucket
            if 0 <= bucket < len(cursors):
                number, at = np.int64(staged[bucket]), bucket * STAGED
                staged_fingerprints[at + number] = (fingerprint & _NO_FLAG) | np.uint64(counts[i] != np.uint32(0))
                staged_places[at + number] = np.uint32(i)
                if number < STAGED - 1:
                    staged[bucket] = number + 1
                    continue
                staged[bucket] = 0
                to = cursors[bucket]
                for k in range(STAGED):
                    fingerprints[to + k] = staged_fingerprints[at + k]
                    places[to + k] = staged_places[at + k]
                cursors[bucket] = to + STAGED
    for b in range(len(cursors)):
        for k in range(np.int64(staged[b])):
            fingerprints[cursors[b]] = staged_fingerprints[b * STAGED + k]
            places[cursors[b]] = staged_places[b * STAGED + k]
            cursors[b] += 1


@polled
@kernel
def group(
    bases: Int64,
    cursors: Int64,
    first_bucket: int,
    stop_bucket: int,
    fingerprints: UInt64,
    places: UInt32,
    slots: UInt32,
    totals: UInt32,
    first: UInt32,
    counts: UInt32,
) -> None:
    """Find the first place and the count of each fingerprint of some buckets.

    Parameters
    ----------
    bases, cursors
        int64, threads by buckets: start and end of what each thread wrote into each bucket.
    fingerprints, places
        The buckets.
    slots, totals
        uint32: scratch; twice the windows of a bucket, rounded up to a power of two, and the windows of a bucket.
    first, counts
        uint32 by place: for windows with an earlier one of their fingerprint, the place of the first; and at the
        first of several, the count. Other places are left as they are.

    """
    began = interrupts()
    for b in range(first_bucket, stop_bucket):
        if interrupts() != began:
            return
        base: Any = bases[0, b]
        room: Any = 0
        for t in range(len(bases)):
            room += cursors[t, b] - bases[t, b]
        size: Any = 8
        while size < 2 * room:
            size *= 2
        for k in range(size):
            slots[k] = np.uint32(0)
        last = np.uint64(size - 1)
        for t in range(len(bases)):
            for e in range(bases[t, b], cursors[t, b]):
                if e & 0xFFFF == 0 and interrupts() != began:
                    return
                flagged = fingerprints[e]
                fingerprint = flagged & _NO_FLAG
                slot = fingerprint >> _ONE & last
                own = np.uint32(1)
                if flagged != fingerprint:
                    own += counts[np.int64(places[e])]
                while True:
                    known = np.int64(slots[slot])
                    if known == 0:
                        slots[slot] = np.uint32(e - base + 1)
                        totals[e - base] = own
                        break
                    if fingerprints[base + known - 1] & _NO_FLAG == fingerprint:
                        totals[known - 1] += own
                        totals[e - base] = np.uint32(0)
                        first[np.int64(places[e])] = places[base + known - 1]
                        break
                    slot = (slot + _ONE) & last
        for t in range(len(bases)):
            for e in range(bases[t, b], cursors[t, b]):
                if totals[e - base] > np.uint32(1):
                    counts[np.int64(places[e])] = totals[e - base]


@polled
@kernel
def resolve(
    words: UInt32,
    starts: Int64,
    first_document: int,
    stop_document: int,
    length: int,
    first: UInt32,
    counts: UInt32,
    wrong: Int64,
) -> int:
    """Follow links to first places and compare each window with the words there.

    Parameters
    ----------
    first, counts
        uint32 by place: the first place of the window, and, there, the count.
    wrong
        int64: places of windows that differ from the words at their first place.

    Returns
    -------
    int
        Number of such windows, even if ``wrong`` has no room for all.

    """
    count, began = 0, interrupts()
    for d in range(first_document, stop_document):
        if interrupts() != began:
            return count
        begin, end = starts[d], starts[d + 1] - length
        before: Any = -1  # place of the window before this one, if it is right
        period: Any = 0
        is_periodic = False  # whether the window before this one is equal to that a period earlier
        right = begin  # from here on all windows are right
        kept, kept_place, number, most = begin, np.int64(-1), 0, 1
        for i in range(begin, end):
            if i & 0xFFF == 0 and interrupts() != began:
                return count
            linked = first[i]
            place: Any = i
            if linked == NONE:
                counts[i] = max(counts[i], np.uint32(1))
            else:
                root = first[np.int64(linked)]
                place = np.int64(linked if root == NONE else root)
            first[i] = np.uint32(place)
            last = words[i + length - 1]
            is_right = place == i or (before >= 0 and place == before + 1 and words[place + length - 1] == last)
            if not is_right and is_periodic:
                is_right = np.int64(first[i - period]) == place and words[i - period + length - 1] == last
            if not is_right:
                if interrupts() != began:
                    return count
                if not _equal(words, place, i, length):
                    if count < len(wrong):
                        wrong[count] = i
                    count += 1
                    before, is_periodic, right, kept_place, most = -1, False, i + 1, np.int64(-1), 1
                    continue
                number += 1
                if place == kept_place:
                    period = i - kept
                if number >= most:
                    kept, kept_place, number, most = i, place, 0, 2 * most
            before = place
            is_periodic = period > 0 and i - period >= right and np.int64(first[i - period]) == place
    return count
