"""Stretches of windows that share the place of their least gram, and a filter for those that may occur again.

Of the grams of a window, runs of about half as many words, the one of the least hash is chosen: equal windows have
equal least grams (S. Schleimer, D. Wilkerson and A. Aiken, *Winnowing*, SIGMOD 2003; partitions of k-mers by
minimizers, M. Roberts et al., *Reducing storage requirements for biological sequence comparison*, 2004). Neighbours
mostly share it: for windows of 50 words, a stretch has 13 windows. So the text is read once, and only a thirteenth of
it is looked up: a window whose least gram occurs at one place cannot be repeated.
"""

from __future__ import annotations

import secrets
from typing import Any, NamedTuple

import numpy as np

from polars_tadoc.kernels.host.passages.windows import NONE
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.interrupts import interrupts
from polars_tadoc.runtime.jit import inner, kernel, polled_kernel

ROTATION = np.uint64(7)
"""Rotation of hashes for a first filter."""

SLOTS_A_NUMBER = 32
"""Slots of a filter in 64 bits: each has a bit for "occurs", and one for "occurs again"."""

_ODD = np.uint64(0x9E3779B97F4A7C15)
_FINAL = np.uint64(0xD6E8FEB86659FD93)
_0, _1, _2, _3, _5, _29, _31, _32, _64 = (np.uint64(number) for number in (0, 1, 2, 3, 5, 29, 31, 32, 64))


class Grams(NamedTuple):
    """The length of grams and their hash function; the same for all windows that are compared."""

    length: int
    """Words of a window."""
    gram: int
    """Words of a gram: half a window, so that grams that repeat are mostly in windows that do."""
    base: np.uint64
    """Odd base of a polynomial modulo 2^64. Grams of one hash only cost time."""
    power: np.uint64
    """The base to the power of the grams' length."""


def grams_of(base: int, length: int) -> Grams:
    """Return the grams for windows of a length; ``base`` is odd."""
    gram = (length + 1) // 2
    return Grams(length, gram, np.uint64(base), np.uint64(pow(base, gram, 1 << 64)))


def draw_grams(length: int) -> Grams:
    """Return the grams for windows of a length, with a random base: no text can be made to be slow."""
    return grams_of(secrets.randbits(64) | 1, length)


@inner
def _value(word: int) -> np.uint64:
    x = (np.uint64(word) + _1) * _ODD
    return x ^ (x >> _29)


@inner
def _mixed(h: np.uint64) -> np.uint64:
    x = (h ^ (h >> _32)) * _FINAL
    return x ^ (x >> _29)


@polled_kernel
def find_stretches(
    words: UInt32,
    starts: Int64,
    first_document: int,
    stop_document: int,
    length: int,
    gram: int,
    base: np.uint64,
    power: np.uint64,
    first: UInt32,
    ring: UInt64,
    places: UInt32,
    sizes: UInt32,
    keys: UInt64,
) -> int:
    """Find the stretches of some documents, in order.

    Parameters
    ----------
    words, starts
        uint32, and int64, documents + 1: the documents, a separator after each.
    first_document, stop_document
        The documents to read.
    length, gram, base, power
        See :class:`Grams`.
    first
        uint32 by place: windows that have another value than ``NONE`` are left out. Empty: none is.
    ring
        uint64, a power of two, at least ``length - gram + 1``: scratch.
    places, sizes, keys
        uint32, uint32 and uint64 by stretch: place of the first window, number of windows, hash of the least gram.
        There is room for one stretch per window.

    Returns
    -------
    int
        Number of stretches.

    """
    count, began = 0, interrupts()
    last = len(ring) - 1
    for d in range(first_document, stop_document):
        stop: Any = starts[d]
        end_of_windows = starts[d + 1] - length
        while True:
            begin: Any = stop
            if interrupts() != began:
                return count
            while begin < end_of_windows and len(first) > 0 and first[begin] != NONE:
                begin += 1
            if begin >= end_of_windows:
                break
            stop = begin + 1 if len(first) > 0 else end_of_windows
            while stop < end_of_windows and first[stop] == NONE:
                stop += 1
            h, least, of = _0, _0, _0
            least_at: Any = -1
            of_at: Any = -1
            place: Any = begin
            size = 0
            for e in range(begin, stop + length - 1):
                if e & 0xFFFF == 0 and interrupts() != began:
                    return count
                h = h * base + _value(words[e])
                at, window = e - gram + 1, e - length + 1
                if at < begin:
                    continue
                if at > begin:
                    h -= _value(words[at - 1]) * power
                own = _mixed(h)
                ring[at & last] = own
                if at == begin or own <= least:
                    least, least_at = own, at
                elif least_at < window:
                    least, least_at = own, at
                    for k in range(window, at):
                        if ring[k & last] < least:
                            least, least_at = ring[k & last], k
                if window < begin:
                    continue
                if least_at == of_at:
                    size += 1
                    continue
                if size > 0:
                    places[count], sizes[count], keys[count] = place, size, _mixed(of)
                    count += 1
                place, size, of, of_at = window, 1, least, least_at
            places[count], sizes[count], keys[count] = place, size, _mixed(of)
            count += 1
    return count


@inner
def _rotated(key: np.uint64, rotation: np.uint64) -> np.uint64:
    return key >> rotation | key << (_64 - rotation)


@inner
def _occurs_again(key: np.uint64, rotation: np.uint64, slots: UInt64) -> bool:
    slot = _rotated(key, rotation) & np.uint64(SLOTS_A_NUMBER * len(slots) - 1)
    return bool(slots[np.int64(slot >> _5)] >> ((slot & _31) << _1) & _2 != _0)


@kernel
def keep_marked(slots: UInt64, rotation: np.uint64, places: UInt32, sizes: UInt32, keys: UInt64) -> int:
    """Move the stretches that may occur again to the front, and return their number; parameters as below."""
    count = 0
    for k in range(len(keys)):
        if _occurs_again(keys[k], rotation, slots):
            places[count], sizes[count], keys[count] = places[k], sizes[k], keys[k]
            count += 1
    return count


@polled_kernel
def mark(keys: UInt64, rotation: np.uint64, slots: UInt64) -> None:
    """Enter stretches in a filter.

    Parameters
    ----------
    keys
        uint64: the hashes.
    rotation
        Bits by which hashes are rotated, from 1 to 63: each filter takes other bits.
    slots
        uint64, a power of two: the filter, at first zeros.

    """
    last, began = np.uint64(SLOTS_A_NUMBER * len(slots) - 1), interrupts()
    for k in range(len(keys)):
        if k & 0xFFFF == 0 and interrupts() != began:
            return
        slot = _rotated(keys[k], rotation) & last
        at, shift = np.int64(slot >> _5), (slot & _31) << _1
        had = slots[at]
        if had >> shift & _3 != _3:
            slots[at] = had | (_1 | (had >> shift & _1) << _1) << shift


@polled_kernel
def set_single(
    slots: UInt64,
    rotation: np.uint64,
    places: UInt32,
    sizes: UInt32,
    keys: UInt64,
    first: UInt32,
    counts: UInt32,
) -> int:
    """Make each window that cannot occur again its own first occurrence.

    Parameters
    ----------
    slots, rotation
        The filter; see :func:`mark`.
    places, sizes, keys
        The stretches.
    first, counts
        uint32 by place: the first occurrence, and the number of windows linked to it, which becomes the count.

    Returns
    -------
    int
        Number of windows that may occur again.

    """
    left, began = 0, interrupts()
    for k in range(len(keys)):
        if k & 0xFFFF == 0 and interrupts() != began:
            return left
        if _occurs_again(keys[k], rotation, slots):
            left += sizes[k]
            continue
        for at in range(places[k], places[k] + sizes[k]):
            first[at] = at
            counts[at] += np.uint32(1)
    return left
