"""Packs keys of several numbers into a few 64-bit ones with the same order, and merges sorted runs of them.

A *limb* has as many leading numbers of a key as fit in 64 bits, the first one highest; keys are uint64[limbs, keys].
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polars_tadoc.runtime.addresses import load_u64
from polars_tadoc.runtime.array_types import Int64, UInt32, UInt64
from polars_tadoc.runtime.arrow_memory import allocate
from polars_tadoc.runtime.jit import inner, kernel
from polars_tadoc.runtime.parallel import even_chunks, map_parallel

LIMB_BITS = 63
"""One bit less than a limb has: files store limbs as signed numbers, which keeps the order."""

SLICE = 1 << 15
"""Records merged at a time: they, their counts and a copy of both fit in a core's private cache."""


@dataclass(frozen=True)
class KeyForm:
    """Layout of a key's numbers in its limbs."""

    bits: tuple[int, ...]
    """Bits of each number, 1 to 32."""

    @property
    def limb(self) -> list[int]:
        """The limb that holds each number."""
        limbs: list[int] = []
        used = LIMB_BITS + 1
        for bits in self.bits:
            used += bits
            if used > LIMB_BITS:
                used = bits
                limbs.append(limbs[-1] + 1 if limbs else 0)
            else:
                limbs.append(limbs[-1])
        return limbs

    @property
    def limbs(self) -> int:
        """Number of limbs of a key."""
        return self.limb[-1] + 1

    @property
    def shift(self) -> list[int]:
        """Number of bits after each number in its limb."""
        limb = self.limb
        return [sum(self.bits[c + 1 : c + 1 + limb[c + 1 :].count(limb[c])]) for c in range(len(self.bits))]

    def first_limb_mask(self, columns: int) -> np.uint64:
        """Return the bits of the first limb that contain the first ``columns`` numbers."""
        inside = min(columns, self.limb.count(0))
        return np.uint64((1 << 64) - (1 << self.shift[inside - 1]))

    @property
    def table(self) -> Int64:
        """int64[columns, 3]: limb, shift and bits of each number, for kernels."""
        return np.array([self.limb, self.shift, self.bits], np.int64).T.copy()


def pack(keys: UInt32, form: KeyForm, words: list[bool], numbers: UInt32 | None, out: UInt64) -> None:
    """Pack keys.

    Parameters
    ----------
    keys
        uint32[keys, columns].
    form
        The layout.
    words
        By column: whether its numbers are mapped by ``numbers``.
    numbers
        uint32: the new number of each word; None: unchanged.
    out
        uint64[limbs, keys], filled.

    """
    table = _changed(form, words, numbers)
    numbers = np.zeros(0, np.uint32) if numbers is None else numbers
    _in_chunks(len(keys), lambda a, b: _pack(keys, table, numbers, out, a, b))


def unpack(limbs: UInt64, form: KeyForm) -> UInt32:
    """Return the numbers of keys, uint32[keys, columns]."""
    table, size = form.table, limbs.shape[1]
    keys: UInt32 = allocate(size * len(form.bits), np.uint32)[1].reshape(size, len(form.bits))
    _in_chunks(size, lambda a, b: _unpack(limbs, table, keys, a, b))
    return keys


def repack(limbs: UInt64, form: KeyForm, to: KeyForm, words: list[bool], numbers: UInt32 | None, out: UInt64) -> bool:
    """Repack keys into another layout.

    Parameters
    ----------
    limbs, form
        The keys, and their layout.
    to, words, numbers, out
        As for :func:`pack`; ``out`` may be ``limbs`` if both have one limb.

    Returns
    -------
    bool
        Whether all word numbers are within ``numbers``; otherwise the output is undefined.

    """
    if numbers is None and form == to:
        if out is not limbs:
            out[:] = limbs
        return True
    table, own = _changed(to, words, numbers), form.table
    known = np.zeros(0, np.uint32) if numbers is None else numbers
    done = map_parallel(lambda chunk: _repack(limbs, own, table, known, out, *chunk), even_chunks(limbs.shape[1]))
    return all(done)


def merge_sorted(stretches: Sequence[tuple[UInt64, UInt64 | None]]) -> tuple[UInt64, UInt64 | None]:
    """Merge sorted runs of keys; the counts of equal keys are added.

    Splits the runs into slices of keys, and merges each slice pairwise in a core's private cache, so that each key is
    read from and written to memory once.

    Parameters
    ----------
    stretches
        Ascending keys, uint64[limbs, keys], and uint64 counts; either all runs have counts or none.

    Returns
    -------
    (uint64[limbs, merged], uint64 array or None)
        Ascending keys, and their counts; a single nonempty run is returned without a copy.

    """
    stretches = [one for one in stretches if one[0].shape[1]] or list(stretches[:1])
    if len(stretches) == 1:
        return stretches[0]
    counted = stretches[0][1] is not None
    limbs = len(stretches[0][0])
    addresses = np.array([_addresses(keys, counts) for keys, counts in stretches], np.uint64)
    bounds = _slices([keys[0] for keys, _ in stretches])
    size = int(bounds[-1].sum())
    made: UInt64 = allocate(size * limbs, np.uint64)[1].reshape(limbs, size)
    made_counts: UInt64 = allocate(size if counted else 0, np.uint64)[1]
    starts = bounds.sum(axis=1)  # number of keys before each slice
    largest = int(np.diff(starts).max())

    def merge(chunk: tuple[int, int]) -> tuple[int, int]:
        scratch = np.empty((2, limbs, largest), np.uint64)
        scratch_counts = np.empty((2, largest if counted else 0), np.uint64)
        edges = np.empty((2, len(stretches) + 1), np.int64)
        at = int(starts[chunk[0]])
        own = bounds[chunk[0] : chunk[1] + 1]
        return at, int(_merge_slices(addresses, own, scratch, scratch_counts, edges, made, made_counts, at))

    done = map_parallel(merge, even_chunks(len(bounds) - 1, 2))
    end = done[0][1]
    for first, last in done[1:]:
        made[:, end : end + last - first] = made[:, first:last]
        if counted:
            made_counts[end : end + last - first] = made_counts[first:last]
        end += last - first
    return made[:, :end], made_counts[:end] if counted else None


def _addresses(keys: UInt64, counts: UInt64 | None) -> list[int]:
    """Return the addresses of each limb's numbers, and of the counts."""
    arrays = [*keys, *([] if counts is None else [counts])]
    if any(array.dtype != np.uint64 or array.strides != (8,) for array in arrays):
        raise TypeError("limbs and counts must be contiguous uint64 arrays")
    return [array.ctypes.data for array in arrays]


def _slices(firsts: Sequence[UInt64]) -> Int64:
    """Split runs at some keys of the longest one; return int64[slices + 1, runs], the start of each slice."""
    lengths = [len(own) for own in firsts]
    longest = firsts[int(np.argmax(lengths))]
    count = max(1, sum(lengths) // SLICE)
    pivots = longest[len(longest) * np.arange(1, count) // count]
    bounds = np.zeros((count + 1, len(lengths)), np.int64)
    for k, own in enumerate(firsts):
        bounds[1:-1, k] = np.searchsorted(own, pivots)
    bounds[-1] = lengths
    return bounds


def _changed(form: KeyForm, words: list[bool], numbers: UInt32 | None) -> Int64:
    """int64[columns, 4]: limb, shift, bits, and whether numbers are mapped."""
    changed = np.array([[one and numbers is not None] for one in words], np.int64)
    return np.hstack([form.table, changed])


def _in_chunks(size: int, work: Callable[[int, int], None]) -> None:
    map_parallel(lambda chunk: work(*chunk), even_chunks(size))


@kernel
def _pack(keys: UInt32, table: Int64, numbers: UInt32, out: UInt64, first: int, last: int) -> None:
    for i in range(first, last):
        limb, value = 0, np.uint64(0)
        for c in range(len(table)):
            number = np.uint64(keys[i, c])
            if table[c, 3]:
                number = np.uint64(numbers[number])
            if table[c, 0] != limb:
                out[limb, i] = value
                limb, value = table[c, 0], np.uint64(0)
            value |= number << np.uint64(table[c, 1])
        out[limb, i] = value


@kernel
def _unpack(limbs: UInt64, table: Int64, keys: UInt32, first: int, last: int) -> None:
    for c in range(len(table)):
        limb, shift = table[c, 0], np.uint64(table[c, 1])
        mask = (np.uint64(1) << np.uint64(table[c, 2])) - np.uint64(1)
        for i in range(first, last):
            keys[i, c] = np.uint32((limbs[limb, i] >> shift) & mask)


@kernel
def _repack(limbs: UInt64, own: Int64, table: Int64, numbers: UInt32, out: UInt64, first: int, last: int) -> bool:
    known = np.uint64(len(numbers))
    sound = True
    for i in range(first, last):
        limb, value = 0, np.uint64(0)
        for c in range(len(table)):
            mask = (np.uint64(1) << np.uint64(own[c, 2])) - np.uint64(1)
            number = (limbs[own[c, 0], i] >> np.uint64(own[c, 1])) & mask
            if table[c, 3]:
                if number >= known:
                    sound = False
                    number = np.uint64(0)
                else:
                    number = np.uint64(numbers[number])
            if table[c, 0] != limb:
                out[limb, i] = value
                limb, value = table[c, 0], np.uint64(0)
            value |= number << np.uint64(table[c, 1])
        out[limb, i] = value
    return sound


@inner
def _copy(a: UInt64, counts: UInt64, i: Any, end: Any, out: UInt64, out_counts: UInt64, at: Any) -> Any:
    for limb in range(len(out)):
        for k in range(end - i):
            out[limb, at + k] = a[limb, i + k]
    if len(out_counts):
        for k in range(end - i):
            out_counts[at + k] = counts[i + k]
    return at + max(end - i, 0)


@inner
def _load(addresses: UInt64, i: Any, end: Any, out: UInt64, out_counts: UInt64, at: Any) -> Any:
    """Copy a slice of a run."""
    for limb in range(len(out)):
        base = addresses[limb] + np.uint64(8) * np.uint64(i)
        for k in range(end - i):
            out[limb, at + k] = load_u64(base + np.uint64(8) * np.uint64(k))
    if len(out_counts):
        base = addresses[len(out)] + np.uint64(8) * np.uint64(i)
        for k in range(end - i):
            out_counts[at + k] = load_u64(base + np.uint64(8) * np.uint64(k))
    return at + end - i


@inner
def _merge_two(
    a: UInt64, counts: UInt64, i: Any, i_end: Any, j_end: Any, out: UInt64, out_counts: UInt64, at: Any
) -> Any:
    """Merge two adjacent slices; with one limb, no branch depends on the comparison of keys."""
    counted = len(out_counts) > 0
    j = i_end
    if len(out) == 1:
        while i < i_end and j < j_end:
            x, y = a[0, i], a[0, j]
            of_x, of_y = np.uint64(x <= y), np.uint64(y <= x)
            out[0, at] = min(x, y)
            if counted:
                out_counts[at] = counts[i] * of_x + counts[j] * of_y
            i += np.int64(of_x)
            j += np.int64(of_y)
            at += 1
    while i < i_end and j < j_end:
        take_x, take_y = True, True
        for limb in range(len(out)):
            x, y = a[limb, i], a[limb, j]
            if x != y:
                take_x, take_y = x < y, y < x
                break
        for limb in range(len(out)):
            out[limb, at] = a[limb, i] if take_x else a[limb, j]
        if counted:
            out_counts[at] = counts[i] * np.uint64(take_x) + counts[j] * np.uint64(take_y)
        i += np.int64(take_x)
        j += np.int64(take_y)
        at += 1
    at = _copy(a, counts, i, i_end, out, out_counts, at)
    return _copy(a, counts, j, j_end, out, out_counts, at)


@kernel
def _merge_slices(
    addresses: UInt64,
    bounds: Int64,
    scratch: UInt64,
    scratch_counts: UInt64,
    edges: Int64,
    made: UInt64,
    made_counts: UInt64,
    at: Any,
) -> Any:
    """Merge slice by slice, the runs of each in rounds, pair by pair; the last round writes the result."""
    for s in range(len(bounds) - 1):
        left, side = bounds.shape[1], 0
        edges[0, 0] = 0
        for k in range(left):
            edges[0, k + 1] = _load(
                addresses[k], bounds[s, k], bounds[s + 1, k], scratch[0], scratch_counts[0], edges[0, k]
            )
        while left > 2:
            own, counts, out, out_counts = (
                scratch[side],
                scratch_counts[side],
                scratch[1 - side],
                scratch_counts[1 - side],
            )
            edges[1 - side, 0] = 0
            for k in range(0, left, 2):
                end = edges[side, min(k + 2, left)]
                edges[1 - side, k // 2 + 1] = _merge_two(
                    own, counts, edges[side, k], edges[side, k + 1], end, out, out_counts, edges[1 - side, k // 2]
                )
            left, side = (left + 1) // 2, 1 - side
        at = _merge_two(
            scratch[side], scratch_counts[side], edges[side, 0], edges[side, 1], edges[side, 2], made, made_counts, at
        )
    return at
